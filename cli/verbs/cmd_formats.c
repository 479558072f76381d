/* The formats, and which verbs work with each. */
#include "verbs.h"

#include "term.h"

#include <string.h>

static bool converts(const char *format)
{
    for (size_t i = 0; i < coffer_conversion_count(); i++)
        if (strcmp(coffer_conversion_from(coffer_conversion_at(i)), format) == 0)
            return true;
    return false;
}

static void add_verbs(coffer_node *list, const char *kind)
{
    const struct {
        const char *name;
        bool available;
    } generic[] = {
        { "info", coffer_file_kind_can(kind, COFFER_CAN_DESCRIBE) },
        { "check", coffer_file_kind_can(kind, COFFER_CAN_CHECK) },
        { "ls", coffer_file_kind_can(kind, COFFER_CAN_LIST) },
        { "diff", coffer_file_kind_can(kind, COFFER_CAN_DIFF) ||
                      coffer_file_kind_can(kind, COFFER_CAN_OPEN_AS_TENSORS) },
        { "repair", coffer_file_kind_can(kind, COFFER_CAN_REPAIR) },
        { "compact", coffer_file_kind_can(kind, COFFER_CAN_COMPACT) },
        { "compress", coffer_file_kind_can(kind, COFFER_CAN_COMPRESS) },
        { "convert", converts(kind) },
        { "quantize", coffer_file_kind_can(kind, COFFER_CAN_OPEN_AS_TENSORS) },
    };
    for (size_t i = 0; i < sizeof generic / sizeof generic[0]; i++)
        if (generic[i].available ||
            (cli_find_verb(generic[i].name)->run && cli_find_format_verb(generic[i].name, kind)))
            coffer_node_add_text(list, NULL, generic[i].name);
    /* A verb of every format that has a row as well is in the list already. */
    for (size_t i = 0; cli_format_verbs[i]; i++)
        if (cli_row_is_for(cli_format_verbs[i], kind) && !cli_find_verb(cli_format_verbs[i]->verb)->run)
            coffer_node_add_text(list, NULL, cli_format_verbs[i]->verb);
}

static void add_kind(coffer_node *list, const char *kind, bool is_own)
{
    coffer_node *map = coffer_node_add_map(list, NULL);
    coffer_node_add_text(map, "name", kind);
    coffer_node_add_text(map, "extension", coffer_convert_extension_at(kind, 0));
    coffer_node_add_text(map, "title", coffer_convert_title(kind));
    coffer_node_add_bool(map, "own", is_own);
    add_verbs(coffer_node_add_list(map, "verbs"), kind);
    coffer_node *from = coffer_node_add_list(map, "made_from");
    for (size_t i = 0; i < coffer_conversion_count(); i++)
        if (strcmp(coffer_conversion_to(coffer_conversion_at(i)), kind) == 0)
            coffer_node_add_text(from, NULL, coffer_conversion_from(coffer_conversion_at(i)));
}

/* Kinds of other programs are those of the table of conversions. */
static bool is_listed(const coffer_node *list, const char *kind)
{
    for (const coffer_node *map = coffer_node_first(list); map; map = coffer_node_next(map))
        if (strcmp(coffer_node_get_text(coffer_node_find(map, "name"), NULL), kind) == 0)
            return true;
    return false;
}

static coffer_status make_list(coffer_node *root, coffer_error *err)
{
    coffer_node *list = coffer_node_add_list(root, "formats");
    for (size_t i = 0; i < coffer_format_count(); i++)
        add_kind(list, coffer_format_name(coffer_format_at(i)), true);
    for (size_t i = 0; i < coffer_conversion_count(); i++) {
        const char *ends[2] = { coffer_conversion_from(coffer_conversion_at(i)),
                                coffer_conversion_to(coffer_conversion_at(i)) };
        for (size_t j = 0; j < 2; j++)
            if (!is_listed(list, ends[j]))
                add_kind(list, ends[j], false);
    }
    return coffer_node_status(root, err);
}

static void add_words(term_table *table, const coffer_node *words)
{
    char text[400] = "";
    size_t len = 0;
    for (const coffer_node *word = coffer_node_first(words); word && len < sizeof text;
         word = coffer_node_next(word))
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", len > 0 ? " " : "",
                                coffer_node_get_text(word, NULL));
    term_table_cell(table, text);
}

static void print_table(const coffer_node *list, bool own)
{
    term_table *table = term_table_new();
    term_table_column(table, own ? "format" : "other programs", TERM_LEFT);
    term_table_column(table, "extension", TERM_LEFT);
    term_table_column(table, "what it is", TERM_LEFT);
    term_table_column(table, "verbs", TERM_LEFT);
    term_table_uncut(table);
    for (const coffer_node *map = coffer_node_first(list); map; map = coffer_node_next(map)) {
        if (coffer_node_get_bool(coffer_node_find(map, "own")) != own)
            continue;
        term_table_cell(table, coffer_node_get_text(coffer_node_find(map, "name"), NULL));
        term_table_cell(table, coffer_node_get_text(coffer_node_find(map, "extension"), NULL));
        term_table_cell(table, coffer_node_get_text(coffer_node_find(map, "title"), NULL));
        add_words(table, coffer_node_find(map, "verbs"));
    }
    term_table_print(table, stdout);
}

static int print(const cli_args *args, const coffer_node *list)
{
    int result = CLI_OK;
    if (cli_has(args, "csv"))
        return cli_print_csv(stdout, list);
    if (cli_has(args, "json")) {
        for (const coffer_node *map = coffer_node_first(list); map && !result; map = coffer_node_next(map))
            result = cli_print_json_line(stdout, map);
        return result;
    }
    print_table(list, true);
    putchar('\n');
    print_table(list, false);
    puts("\n'coffer convert --list' lists what each can be converted to.");
    return CLI_OK;
}

static int run(const cli_args *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    if (cli_check_output(args))
        return CLI_USAGE;
    coffer_status status = coffer_node_new(&root, &err);
    if (!status)
        status = make_list(root, &err);
    int result = status ? cli_fail("formats", &err, NULL) : print(args, coffer_node_find(root, "formats"));
    coffer_node_free(root);
    return result;
}

static const cli_option options[] = {
    CLI_CSV_OPTION,
    { "json", 0, NULL, NULL, "one line of JSON per format" },
    { 0 },
};

const cli_verb cli_verb_formats = {
    .name = "formats",
    .usage = "",
    .summary = "list the supported formats",
    .pages = true,
    .group = CLI_GROUP_HELP,
    .description = "Names, usual file name extensions, and the verbs that work with each: the formats of "
                   "Coffer, then files of other "
                   "programs. All of it comes from the tables of the library and the command.",
    .examples = "  coffer formats\n"
                "  coffer formats --json | jq -r .extension\n",
    .options = options,
    .run = run,
};
