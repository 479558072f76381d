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

static void add_verbs(coffer_node *list, const coffer_format *format)
{
    const struct {
        const char *name;
        bool available;
    } generic[] = {
        { "info", coffer_format_can(format, COFFER_CAN_DESCRIBE) },
        { "check", coffer_format_can(format, COFFER_CAN_CHECK) },
        { "ls", coffer_format_can(format, COFFER_CAN_LIST) },
        { "diff", coffer_format_can(format, COFFER_CAN_DIFF) ||
                      coffer_format_can(format, COFFER_CAN_OPEN_AS_TENSORS) },
        { "repair", coffer_format_can(format, COFFER_CAN_REPAIR) },
        { "compact", coffer_format_can(format, COFFER_CAN_COMPACT) },
        { "convert", converts(coffer_format_name(format)) },
    };
    for (size_t i = 0; i < sizeof generic / sizeof generic[0]; i++)
        if (generic[i].available)
            coffer_node_add_text(list, NULL, generic[i].name);
    /* A verb of every format that has a row as well is in the list already. */
    for (size_t i = 0; cli_format_verbs[i]; i++)
        if (cli_row_is_for(cli_format_verbs[i], coffer_format_name(format)) &&
            !cli_find_verb(cli_format_verbs[i]->verb)->run)
            coffer_node_add_text(list, NULL, cli_format_verbs[i]->verb);
}

/* With --csv or --json. */
static int print_nodes(bool csv)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    coffer_status status = coffer_node_new(&root, &err);
    coffer_node *list = status ? NULL : coffer_node_add_list(root, "formats");
    for (size_t i = 0; i < coffer_format_count() && !status; i++) {
        const coffer_format *format = coffer_format_at(i);
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "name", coffer_format_name(format));
        coffer_node_add_text(map, "extension", coffer_format_extension(format));
        coffer_node_add_text(map, "title", coffer_format_title(format));
        add_verbs(coffer_node_add_list(map, "verbs"), format);
    }
    if (!status)
        status = coffer_node_status(root, &err);
    int result = status ? cli_fail("formats", &err, NULL) : CLI_OK;
    if (!status && csv)
        result = cli_print_csv(stdout, list);
    else
        for (const coffer_node *map = status ? NULL : coffer_node_first(list); map && !result;
             map = coffer_node_next(map))
            result = cli_print_json_line(stdout, map);
    coffer_node_free(root);
    return result;
}

static void print_verbs(term_table *table, const coffer_format *format)
{
    coffer_node *root = NULL;
    char text[160] = "";
    size_t len = 0;
    if (coffer_node_new(&root, NULL) == COFFER_OK) {
        add_verbs(root, format);
        for (const coffer_node *verb = coffer_node_first(root); verb && len < sizeof text;
             verb = coffer_node_next(verb))
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", len > 0 ? " " : "",
                                    coffer_node_get_text(verb, NULL));
    }
    term_table_cell(table, text);
    coffer_node_free(root);
}

static int run(const cli_args *args)
{
    if (cli_check_output(args))
        return CLI_USAGE;
    if (cli_has(args, "json") || cli_has(args, "csv"))
        return print_nodes(cli_has(args, "csv"));
    term_table *table = term_table_new();
    term_table_column(table, "format", TERM_LEFT);
    term_table_column(table, "extension", TERM_LEFT);
    term_table_column(table, "what it is", TERM_LEFT);
    term_table_column(table, "verbs", TERM_LEFT);
    for (size_t i = 0; i < coffer_format_count(); i++) {
        const coffer_format *format = coffer_format_at(i);
        term_table_cell(table, coffer_format_name(format));
        term_table_cell(table, coffer_format_extension(format));
        term_table_cell(table, coffer_format_title(format));
        print_verbs(table, format);
    }
    term_table_print(table, stdout);
    return CLI_OK;
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
    .group = CLI_GROUP_HELP,
    .description = "Names, usual file name extensions, and the verbs that work with each.",
    .examples = "  coffer formats\n"
                "  coffer formats --json | jq -r .extension\n",
    .options = options,
    .run = run,
};
