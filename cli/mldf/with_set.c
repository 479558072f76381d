#include "mldf/mldf_verbs.h"

#include "term.h"

#include <string.h>

const cli_old_spelling mldf_max_old[] = { { "--count", NULL }, { 0 } };

int mldf_fail(const char *path, const coffer_error *err)
{
    const char *hint = NULL;
    if (err->status == COFFER_E_MISSING || err->status == COFFER_E_UNSUPPORTED)
        hint = "";
    return cli_fail(path, err, hint);
}

int mldf_fail_between(const char *input, const char *output, const coffer_error *err)
{
    return mldf_fail(err->subject == COFFER_SUBJECT_OUTPUT ? output : input, err);
}

int mldf_with_set(const cli_args *args, coffer_source *src,
                  int (*work)(const cli_args *args, const coffer_mldf *set, const cli_key *key))
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf *set = NULL;
    cli_key key;
    int result = cli_key_read(&key, args);
    if (result)
        return result;
    opts.key = key.at;
    opts.verify = true;
    if (coffer_mldf_open(&set, src, &opts, &err) == COFFER_OK)
        result = work(args, set, &key);
    else
        result = mldf_fail(cli_operand(args, 0), &err);
    coffer_mldf_close(set);
    cli_key_wipe(&key);
    return result;
}

int mldf_expect_file(const cli_args *args)
{
    if (strcmp(cli_operand(args, 0), "-") == 0)
        return cli_usage(args, "a set is changed where it is: standard input cannot be");
    return CLI_OK;
}

/* Pages of other programs can be of any size. */
static uint32_t page_size_of(const coffer_mldf *set)
{
    uint32_t size = coffer_mldf_page_size(set);
    return size >= 4096 && (size & (size - 1)) == 0 ? size : 0;
}

int mldf_write_opts(coffer_mldf_writer_opts *out, const cli_args *args, const cli_key *key,
                    const coffer_mldf *like)
{
    coffer_mldf_writer_opts opts = COFFER_MLDF_WRITER_OPTS_INIT;
    uint64_t level, threads;
    if (!cli_number(&level, args, "zstd-level", 0, 1, 22) ||
        !cli_number(&threads, args, "threads", 0, 1, 1024))
        return CLI_USAGE;
    /* In the order of MLDF_PAGE_SIZES. */
    static const uint32_t page_sizes[] = { 4U << 10, 16U << 10, 64U << 10, 256U << 10,
                                           1U << 20, 2U << 20,  4U << 20,  8U << 20 };
    if (cli_has(args, "page-size"))
        opts.page_size = page_sizes[cli_choice(args, "page-size", 0)];
    else if (like)
        opts.page_size = page_size_of(like);
    opts.descriptor_stride = cli_choice(args, "descriptor-stride", 0) == 1 ? 204 : 208;
    opts.no_checksums = cli_has(args, "no-checksums");
    opts.dedup = cli_has(args, "dedup");
    opts.zstd_level = (int)level;
    opts.threads = (uint32_t)threads;
    opts.key = key->at;
    opts.overwrite = cli_has(args, "force");
    *out = opts;
    return CLI_OK;
}

/* The members of the JSON object alone. */
static coffer_status describe_set(coffer_node *out, const char *path, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    coffer_status status = coffer_source_open(&src, path, NULL, err);
    if (!status)
        status = coffer_mldf_open(&set, src, NULL, err);
    if (!status) {
        coffer_node_add_text(out, "file", path);
        coffer_node_add_text(out, "format", "mldf");
        coffer_node_add_u64(out, "size", coffer_source_size(src), COFFER_UNIT_BYTES);
        coffer_node_add_u64(out, "samples", coffer_mldf_sample_count(set), COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "fields", coffer_mldf_field_count(set), COFFER_UNIT_NONE);
    }
    coffer_mldf_close(set);
    coffer_source_close(src);
    return status;
}

void mldf_print_set(const coffer_node *described)
{
    term_text samples, fields, size;
    size_t len;
    const char *path = coffer_node_get_text(coffer_node_find(described, "file"), &len);
    term_print_text(stdout, path, len, 0);
    printf(": samples: %s, fields: %s, %s\n",
           term_count(samples, coffer_node_get_u64(coffer_node_find(described, "samples"))),
           term_count(fields, coffer_node_get_u64(coffer_node_find(described, "fields"))),
           term_bytes(size, coffer_node_get_u64(coffer_node_find(described, "size"))));
}

int mldf_report_set(const char *path, bool json)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    int result = CLI_OK;
    coffer_status status = coffer_node_new(&root, &err);
    if (!status)
        status = describe_set(root, path, &err);
    if (!status)
        status = coffer_node_status(root, &err);
    if (status)
        result = cli_fail(path, &err, NULL);
    else if (json)
        result = cli_print_json(stdout, root);
    else
        mldf_print_set(root);
    coffer_node_free(root);
    return result;
}
