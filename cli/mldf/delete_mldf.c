/* delete, for training sets. */
#include "mldf/mldf_verbs.h"
#include "mldf/sample_place.h"
#include "term.h"

#include <string.h>

static const cli_option options[] = {
    MLDF_WHERE_OPTION,
    { "field", 0, "NAME", NULL, "delete this field of all samples instead; repeatable" },
    { "json", 0, NULL, NULL, "one JSON object: file, format, deleted, samples; fields with --field" },
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

static int report_fields(const cli_args *args, const sample_reader *reader)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    const char *path = cli_operand(args, 0);
    size_t left = coffer_mldf_field_count(reader->set) - reader->field_count;
    if (!cli_has(args, "json")) {
        term_print_text(stdout, path, strlen(path), 0);
        printf(": fields deleted: %zu, left: %zu\n", reader->field_count, left);
        return CLI_OK;
    }
    if (coffer_node_new(&root, &err) != COFFER_OK)
        return cli_fail(path, &err, NULL);
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "mldf");
    coffer_node_add_u64(root, "deleted", reader->field_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "fields", left, COFFER_UNIT_NONE);
    int status = cli_print_json(stdout, root);
    coffer_node_free(root);
    return status;
}

static int drop_fields(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    sample_reader reader = SAMPLE_READER_INIT(set, key->at != NULL);
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    if (cli_operand_count(args) > 1 || cli_has(args, "where"))
        return cli_usage(args, "--field deletes a field of all samples; without it, samples are deleted");
    int result = sample_fields_read(&reader, args);
    opts.key = key->at;
    if (!result) {
        cli_hold_signals();
        coffer_status status = coffer_mldf_update_drop_fields(cli_operand(args, 0), reader.fields,
                                                              reader.field_count, &opts, &err);
        if (status)
            cli_release_signals();
        else
            cli_finish_signals();
        result = !status                                   ? report_fields(args, &reader)
                 : err.status == COFFER_E_INVALID_ARGUMENT ? cli_usage(args, "%s", err.text)
                                                           : mldf_fail(cli_operand(args, 0), &err);
    }
    sample_reader_free(&reader);
    return result;
}

/* The operands and the conditions: a sample must be among both when both are given. */
static int read_samples(sample_list *list, const cli_args *args, const coffer_mldf *set)
{
    sample_list named;
    bool selected = false;
    int result = sample_where_read(list, &selected, args, set);
    if (result || !selected) {
        sample_list_free(list);
        return result ? result : sample_list_read(list, args, 1, coffer_mldf_sample_count(set));
    }
    if (cli_operand_count(args) == 1)
        return CLI_OK;
    result = sample_list_read(&named, args, 1, coffer_mldf_sample_count(set));
    size_t kept = 0, next = 0;
    for (size_t i = 0; !result && i < list->count; i++) {
        while (next < named.count && named.at[next] < list->at[i])
            next++;
        if (next < named.count && named.at[next] == list->at[i])
            list->at[kept++] = list->at[i];
    }
    list->count = kept;
    sample_list_free(&named);
    return result;
}

static int run_on(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    sample_list list = { NULL, 0 };
    if (cli_has(args, "field"))
        return drop_fields(args, set, key);
    if (cli_operand_count(args) == 1 && !cli_has(args, "where"))
        return cli_usage(args, "say which samples: 3, 7..9 or --where CONDITION; or --field NAME");
    int result = read_samples(&list, args, set);
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
                "  coffer delete train.mldf 3 7..9 && coffer compact train.mldf\n"
                "  coffer delete train.mldf --where 'label=3'\n"
                "  coffer delete train.mldf --field caption\n",
    .run = run,
};
