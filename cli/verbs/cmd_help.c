/* help and version. */
#include "help.h"
#include "verbs.h"

/* Whether the verb has options for files of this kind. */
static bool has_row(const cli_verb *verb, const char *kind)
{
    return cli_find_format_verb(verb->name, kind) != NULL;
}

static int run_help(const cli_args *args)
{
    const char *name = cli_operand(args, 0), *kind = cli_operand(args, 1);
    if (!name) {
        cli_help_overview(stdout);
        return CLI_OK;
    }
    const cli_verb *verb = cli_find_verb(name);
    if (!verb)
        return cli_unknown_verb(name);
    if (kind && !has_row(verb, kind))
        return cli_usage(args, "'coffer %s' has no options for %s files; 'coffer help %s' shows all", name,
                         kind, name);
    cli_help_verb(stdout, verb, kind);
    return CLI_OK;
}

const cli_verb cli_verb_help = {
    .name = "help",
    .usage = "[VERB [FORMAT]]",
    .summary = "explain a verb, its options and examples",
    .pages = true,
    .group = CLI_GROUP_HELP,
    .description = "Without VERB, lists the verbs. With FORMAT, shows only the options for that format.",
    .examples = "  coffer help check\n"
                "  coffer help get mcf                     # the options of one format\n",
    .max_operands = 2,
    .run = run_help,
};

/* Prints what this program consists of, for bug reports. */

static void print_modules(const coffer_node *modules)
{
    const char *title = "modules";
    for (const coffer_node *module = coffer_node_first(modules); module; module = coffer_node_next(module)) {
        const coffer_node *found = coffer_node_first(module);
        printf("%-10s%-6s %s%s\n", title, coffer_node_get_name(module),
               coffer_node_get_bool(found) ? "" : "missing: ",
               coffer_node_get_text(coffer_node_next(found), NULL));
        title = "";
    }
}

static void print_list(const coffer_node *list)
{
    printf("%-10s", coffer_node_get_name(list));
    for (const coffer_node *item = coffer_node_first(list); item; item = coffer_node_next(item))
        printf("%s%s", coffer_node_get_text(item, NULL), coffer_node_next(item) ? ", " : "\n");
}

static void print(const coffer_node *about)
{
    const coffer_node *line = coffer_node_first(about);
    printf("coffer %s\n", coffer_node_get_text(line, NULL));
    for (line = coffer_node_next(line); line; line = coffer_node_next(line)) {
        if (coffer_node_get_kind(line) == COFFER_NODE_TEXT)
            printf("%-10s%s\n", coffer_node_get_name(line), coffer_node_get_text(line, NULL));
        else if (coffer_node_get_kind(line) == COFFER_NODE_LIST)
            print_list(line);
        else
            print_modules(line);
    }
}

static int run_version(const cli_args *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *about = NULL;
    int status = CLI_OK;
    if (coffer_about(&about, &err))
        return cli_fail("version", &err, NULL);
    if (cli_has(args, "json"))
        status = cli_print_json(stdout, about);
    else
        print(about);
    coffer_node_free(about);
    return status;
}

static const cli_option options[] = {
    { "json", 0, NULL, NULL, "one JSON object" },
    { 0 },
};

const cli_verb cli_verb_version = {
    .name = "version",
    .usage = "",
    .summary = "print the version, the CPU level and the libraries in use",
    .group = CLI_GROUP_HELP,
    .description = "Also as 'coffer --version'.",
    .examples = "  coffer version --json                  # for a report of something that went wrong\n",
    .options = options,
    .run = run_version,
};
