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

static int print_json(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    int status = CLI_OK;
    for (size_t i = 0; i < coffer_format_count() && !status; i++) {
        const coffer_format *format = coffer_format_at(i);
        coffer_node *root = NULL;
        if (coffer_node_new(&root, &err) != COFFER_OK)
            return cli_fail("formats", &err, NULL);
        coffer_node_add_text(root, "name", coffer_format_name(format));
        coffer_node_add_text(root, "extension", coffer_format_extension(format));
        coffer_node_add_text(root, "title", coffer_format_title(format));
        add_verbs(coffer_node_add_list(root, "verbs"), format);
        status = cli_print_json_line(stdout, root);
        coffer_node_free(root);
    }
    return status;
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
    if (cli_has(args, "json"))
        return print_json();
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
