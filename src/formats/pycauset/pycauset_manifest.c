#include "formats/pycauset/pycauset_blocks.h"

#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Partitions ---- */

static coffer_status read_edges(uint64_t **out, size_t *blocks, const coffer_pycauset_value *manifest,
                                const char *key, uint64_t size, uint64_t offset, coffer_error *err)
{
    const coffer_pycauset_value *array = coffer__pycauset_get_key(manifest, key);
    if (!array || array->kind != COFFER_PYCAUSET_ARRAY || array->count < 2)
        return coffer__fail(err, array ? COFFER_E_BAD_VALUE : COFFER_E_MISSING, offset,
                            "\"block_manifest.%s\" is not an array of two numbers or more", key);
    uint64_t *edges = coffer__alloc_array(array->count, sizeof *edges);
    if (!edges)
        return coffer__fail_no_memory(err, array->count * sizeof *edges);
    coffer_status status = COFFER_OK;
    for (uint32_t i = 0; i < array->count && !status; i++) {
        if (!coffer__pycauset_is_u64(&edges[i], &array->as.children[i]))
            status =
                coffer__fail(err, COFFER_E_BAD_VALUE, offset,
                             "entry %lu of \"block_manifest.%s\" is not a number", (unsigned long)i, key);
        else if (i > 0 && edges[i] <= edges[i - 1])
            status =
                coffer__fail(err, COFFER_E_NOT_SORTED, offset,
                             "\"block_manifest.%s\" goes from %" PRIu64 " to %" PRIu64 ": it must increase",
                             key, edges[i - 1], edges[i]);
    }
    if (!status && edges[0] != 0)
        status = coffer__fail(err, COFFER_E_BAD_VALUE, offset,
                              "\"block_manifest.%s\" begins with %" PRIu64 ", it must be 0", key, edges[0]);
    if (!status && edges[array->count - 1] != size)
        status = coffer__fail(err, COFFER_E_INCONSISTENT, offset,
                              "\"block_manifest.%s\" ends with %" PRIu64 ", the matrix has %" PRIu64, key,
                              edges[array->count - 1], size);
    if (status) {
        coffer__free(edges);
        return status;
    }
    *out = edges;
    *blocks = array->count - 1;
    return COFFER_OK;
}

/* ---- Children ---- */

static coffer_status read_child(coffer__pycauset_manifest_child *out, const coffer_pycauset_value *value,
                                size_t row, size_t col, uint64_t offset, coffer_error *err)
{
    const coffer_pycauset_value *path = coffer__pycauset_get_key(value, "path");
    const coffer_pycauset_value *uuid = coffer__pycauset_get_key(value, "payload_uuid");
    if (!path || !uuid || path->kind != COFFER_PYCAUSET_STRING || uuid->kind != COFFER_PYCAUSET_STRING)
        return coffer__fail(err, path && uuid ? COFFER_E_BAD_VALUE : COFFER_E_MISSING, offset,
                            "child (%zu, %zu) of the block manifest has no path and payload_uuid", row, col);
    if (!coffer__file_name_is_plain(path->as.text, path->count))
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, offset,
                            "child (%zu, %zu) has the path \"%s\": it must be a plain file name", row, col,
                            path->as.text);
    *out = (coffer__pycauset_manifest_child){ path->as.text, uuid->as.text };
    return COFFER_OK;
}

static coffer_status read_children(coffer__pycauset_manifest_child *out,
                                   const coffer__pycauset_manifest *manifest,
                                   const coffer_pycauset_value *rows, uint64_t offset, coffer_error *err)
{
    for (size_t i = 0; i < manifest->block_rows; i++) {
        const coffer_pycauset_value *row = &rows->as.children[i];
        for (size_t j = 0; j < manifest->block_cols; j++) {
            coffer_status status =
                read_child(&out[i * manifest->block_cols + j], &row->as.children[j], i, j, offset, err);
            if (status)
                return status;
        }
    }
    return COFFER_OK;
}

typedef struct numbered_child {
    coffer__pycauset_manifest_child child;
    size_t block;
} numbered_child;

static int compare_children(const void *a, const void *b)
{
    const numbered_child *x = a, *y = b;
    int order = strcmp(x->child.path, y->child.path);
    if (order == 0)
        order = strcmp(x->child.uuid, y->child.uuid);
    return order != 0 ? order : (x->block > y->block) - (x->block < y->block);
}

/* Each file once, however many blocks it is. */
static coffer_status number_children(coffer__pycauset_manifest *manifest,
                                     const coffer__pycauset_manifest_child *all, coffer_error *err)
{
    size_t count = manifest->block_rows * manifest->block_cols;
    numbered_child *sorted = coffer__alloc_array(count, sizeof *sorted);
    manifest->child_of = coffer__alloc_array(count, sizeof *manifest->child_of);
    manifest->children = coffer__alloc_array(count, sizeof *manifest->children);
    if (!sorted || !manifest->child_of || !manifest->children) {
        coffer__free(sorted);
        return coffer__fail_no_memory(err, count * sizeof *sorted);
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = (numbered_child){ all[i], i };
    qsort(sorted, count, sizeof *sorted, compare_children);
    for (size_t i = 0; i < count; i++) {
        const coffer__pycauset_manifest_child *child = &sorted[i].child;
        if (i == 0 || strcmp(child->path, sorted[i - 1].child.path) != 0 ||
            strcmp(child->uuid, sorted[i - 1].child.uuid) != 0)
            manifest->children[manifest->child_count++] = *child;
        manifest->child_of[sorted[i].block] = manifest->child_count - 1;
    }
    coffer__free(sorted);
    return COFFER_OK;
}

static coffer_status read_grid(coffer__pycauset_manifest *out, const coffer_pycauset_value *manifest,
                               uint64_t offset, coffer_error *err)
{
    const coffer_pycauset_value *rows = coffer__pycauset_get_key(manifest, "children");
    size_t count = out->block_rows * out->block_cols;
    if (!rows || rows->kind != COFFER_PYCAUSET_ARRAY || rows->count != out->block_rows)
        return coffer__fail(err, rows ? COFFER_E_INCONSISTENT : COFFER_E_MISSING, offset,
                            "\"block_manifest.children\" is not an array of %zu rows", out->block_rows);
    /* Two arrays may promise more children than there are: look before allocating. */
    for (uint32_t i = 0; i < rows->count; i++) {
        const coffer_pycauset_value *row = &rows->as.children[i];
        if (row->kind != COFFER_PYCAUSET_ARRAY || row->count != out->block_cols)
            return coffer__fail(err, COFFER_E_INCONSISTENT, offset,
                                "row %lu of \"block_manifest.children\" does not have %zu children",
                                (unsigned long)i, out->block_cols);
    }
    coffer__pycauset_manifest_child *all = coffer__alloc_array(count, sizeof *all);
    if (!all)
        return coffer__fail_no_memory(err, count * sizeof *all);
    coffer_status status = read_children(all, out, rows, offset, err);
    if (!status)
        status = number_children(out, all, err);
    coffer__free(all);
    return status;
}

coffer_status coffer__pycauset_manifest_read(coffer__pycauset_manifest *out,
                                             const coffer_pycauset_value *root,
                                             const coffer_pycauset_info *info, uint64_t offset,
                                             coffer_error *err)
{
    const coffer_pycauset_value *manifest = coffer__pycauset_get_key(root, "block_manifest");
    coffer__pycauset_manifest made = { 0 };
    uint64_t version;
    coffer_status status;
    if (!manifest || manifest->kind != COFFER_PYCAUSET_MAP)
        return coffer__fail(err, manifest ? COFFER_E_BAD_VALUE : COFFER_E_MISSING, offset,
                            "a block matrix without a \"block_manifest\"");
    if (!coffer__pycauset_is_u64(&version, coffer__pycauset_get_key(manifest, "version")) || version != 1)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, offset,
                            "the version of the block manifest is not 1");
    status = read_edges(&made.row_edges, &made.block_rows, manifest, "row_partitions", info->stored_rows,
                        offset, err);
    if (!status)
        status = read_edges(&made.col_edges, &made.block_cols, manifest, "col_partitions", info->stored_cols,
                            offset, err);
    if (!status)
        status = read_grid(&made, manifest, offset, err);
    if (status) {
        coffer__pycauset_manifest_free(&made);
        return status;
    }
    *out = made;
    return COFFER_OK;
}

void coffer__pycauset_manifest_free(coffer__pycauset_manifest *manifest)
{
    coffer__free(manifest->row_edges);
    coffer__free(manifest->col_edges);
    coffer__free(manifest->child_of);
    coffer__free(manifest->children);
    *manifest = (coffer__pycauset_manifest){ 0 };
}
