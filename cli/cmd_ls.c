/* The entries of a file. */
#include "verbs.h"

#include "base/report.h"
#include "term.h"

static int print_entries(const coffer_node *root, bool json)
{
    const coffer_node *entries = coffer_node_find(root, "entries");
    int status = CLI_OK;
    if (!entries)
        return CLI_OK;
    if (!json) {
        cli_print_table(stdout, entries);
        return CLI_OK;
    }
    for (const coffer_node *entry = coffer_node_first(entries); entry && !status;
         entry = coffer_node_next(entry))
        status = cli_print_json_line(stdout, entry);
    return status;
}

static int run(const cli_args *args)
{
    const char *path = cli_operand(args, 0);
    coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_node *root = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    int status = cli_open(&src, path);
    if (status)
        return status;
    opts.glob = cli_operand(args, 1);
    opts.what = cli_value(args, "what");
    if (coffer_node_new(&root, &err) != COFFER_OK || coffer_list(root, src, &opts, &err) != COFFER_OK ||
        coffer__node_status(root, &err) != COFFER_OK)
        status = cli_fail(path, &err, NULL);
    else
        status = print_entries(root, cli_has(args, "json"));
    coffer_node_free(root);
    coffer_source_close(src);
    return status;
}

static const cli_option options[] = {
    { "what", 0, "LIST", NULL, "which of the format's lists; mscan: sequences (default) or params" },
    { "json", 0, NULL, NULL, "one JSON object per line" },
    { 0 },
};

const cli_verb cli_verb_ls = {
    .name = "ls",
    .usage = "FILE [PATTERN]",
    .summary = "list the entries of a file",
    .description =
        "Lists what the file is made of, one entry a line. PATTERN chooses by name: * ? and [a-z], where * "
        "also crosses dots and slashes. Quote it, or the shell will take it for file names.",
    .examples = "  coffer ls scan.mscan\n"
                "  coffer ls scan.mscan '*.mlp.*' --what params   # parameters by name\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
