/* delete, for training sets. */
#include "mldf/mldf_verbs.h"
#include "mldf/sample_place.h"
#include "term.h"

#include <string.h>

static const cli_option options[] = {
    { "json", 0, NULL, NULL, "one JSON object: file, format, deleted, samples" },
    CLI_KEY_OPTION,
    { 0 },
};

static int report(const cli_args *args, uint64_t deleted, uint64_t left)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    term_text gone, rest;
    const char *path = cli_operand(args, 0);
    if (!cli_has(args, "json")) {
        term_print_text(stdout, path, strlen(path), 0);
        printf(": samples deleted: %s, left: %s; 'coffer compact' frees their bytes\n",
               term_count(gone, deleted), term_count(rest, left));
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "mldf");
    coffer_node_add_u64(root, "deleted", deleted, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "samples", left, COFFER_UNIT_NONE);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

/* Signals wait until the file has its old or its new content, so that no journal is left. */
static int take_out(const cli_args *args, const sample_list *list, uint64_t samples, const cli_key *key)
{
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    opts.key = key->at;
    cli_hold_signals();
    coffer_status status =
        coffer_mldf_update_delete(cli_operand(args, 0), list->at, list->count, &opts, &err);
    if (status)
        cli_release_signals();
    else
        cli_finish_signals();
    return status ? mldf_fail(cli_operand(args, 0), &err) : report(args, list->count, samples - list->count);
}

static int run_on(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    sample_list list;
    int result = sample_list_read(&list, args, 1, coffer_mldf_sample_count(set));
    if (!result)
        result = take_out(args, &list, coffer_mldf_sample_count(set), key);
    sample_list_free(&list);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    int result = mldf_expect_file(args);
    if (!result && cli_operand_count(args) < 2)
        result = cli_usage(args, "no samples given");
    return result ? result : mldf_with_set(args, src, run_on);
}

const cli_format_verb cli_mldf_delete = {
    .format = "mldf",
    .verb = "delete",
    .options = options,
    .examples = "  coffer delete train.mldf 42             # one sample\n"
                "  coffer delete train.mldf 3 7..9 && coffer compact train.mldf\n",
    .run = run,
};
