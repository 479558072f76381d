/* Prints what this program consists of, for bug reports. */
#include "verbs.h"

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

static int run(const cli_args *args)
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
    .run = run,
};
