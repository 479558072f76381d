#include "mldf/set_report.h"

#include "term.h"

coffer_status mldf_describe_set(coffer_node *out, const char *path, coffer_error *err)
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
        status = mldf_describe_set(root, path, &err);
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
