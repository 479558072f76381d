#include "formats/pycauset/pycauset_blocks.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Children that nobody reads stay open up to this number. */
#define KEPT_OPEN 64

/* ---- The set of children ---- */

char *coffer__pycauset_blocks_folder(const char *path)
{
    size_t size = strlen(path) + sizeof ".blocks";
    char *folder = coffer__malloc(size);
    if (folder)
        snprintf(folder, size, "%s.blocks", path);
    return folder;
}

static void close_child(coffer__pycauset_block_child *child)
{
    coffer_pycauset_close(child->matrix);
    coffer_source_close(child->source);
    coffer__free(child);
}

void coffer__pycauset_blocks_free(struct coffer__pycauset_blocks *blocks)
{
    if (!blocks)
        return;
    for (size_t i = 0; i < blocks->open_count; i++)
        close_child(blocks->open[i]);
    coffer__free(blocks->open);
    coffer__pycauset_manifest_free(&blocks->manifest);
    coffer__free(blocks->folder);
    pthread_mutex_destroy(&blocks->mutex);
    coffer__free(blocks);
}

static coffer_status find_folder(struct coffer__pycauset_blocks *blocks, const coffer_pycauset *matrix,
                                 coffer_error *err)
{
    const char *path =
        matrix->parent ? coffer_source_name(matrix->source) : coffer__source_path(matrix->source);
    blocks->folder_given = matrix->blocks_folder != NULL;
    if (!matrix->blocks_folder && !path)
        return COFFER_OK;
    blocks->folder =
        matrix->blocks_folder ? coffer__strdup(matrix->blocks_folder) : coffer__pycauset_blocks_folder(path);
    return blocks->folder ? COFFER_OK : coffer__fail_no_memory(err, 0);
}

static coffer_status blocks_new(struct coffer__pycauset_blocks **out, const coffer_pycauset *matrix,
                                coffer_error *err)
{
    struct coffer__pycauset_blocks *blocks = coffer__calloc(1, sizeof *blocks);
    if (!blocks)
        return coffer__fail_no_memory(err, sizeof *blocks);
    pthread_mutex_init(&blocks->mutex, NULL);
    coffer_status status = find_folder(blocks, matrix, err);
    if (!status)
        status = coffer__pycauset_manifest_read(&blocks->manifest, matrix->metadata.root, &matrix->info,
                                                matrix->metadata_offset, err);
    if (status) {
        coffer__pycauset_blocks_free(blocks);
        return status;
    }
    *out = blocks;
    return COFFER_OK;
}

coffer_status coffer__pycauset_blocks_get(struct coffer__pycauset_blocks **out, const coffer_pycauset *matrix,
                                          coffer_error *err)
{
    /* Opening children does not change the logical value of a const handle. */
    coffer_pycauset *handle = (coffer_pycauset *)(uintptr_t)matrix;
    struct coffer__pycauset_blocks *blocks = atomic_load(&handle->blocks), *none = NULL;
    if (!blocks) {
        coffer_status status = blocks_new(&blocks, matrix, err);
        if (status)
            return status;
        if (!atomic_compare_exchange_strong(&handle->blocks, &none, blocks)) { /* another was faster */
            coffer__pycauset_blocks_free(blocks);
            blocks = none;
        }
    }
    *out = blocks;
    return COFFER_OK;
}

/* ---- One child ---- */

/* Refuses a child that contains itself or is nested too deep. */
static coffer_status check_ancestors(const coffer_source *source, const coffer_pycauset *parent,
                                     coffer_error *err)
{
    unsigned depth = 1;
    for (const coffer_pycauset *above = parent; above; above = above->parent, depth++) {
        if (coffer__source_same_file(source, above->source))
            return coffer__fail_other(err,
                                      coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                                                   "the block matrix is its own child"),
                                      coffer_source_name(source));
    }
    if (depth > COFFER__PYCAUSET_BLOCK_DEPTH)
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                               "block matrices nested more than %d deep",
                                               COFFER__PYCAUSET_BLOCK_DEPTH),
                                  coffer_source_name(source));
    return COFFER_OK;
}

static coffer_status check_uuid(const coffer_pycauset *matrix, const coffer__pycauset_manifest_child *child,
                                coffer_error *err)
{
    const coffer_pycauset_value *uuid = coffer__pycauset_get_key(matrix->metadata.root, "payload_uuid");
    const char *text = coffer_pycauset_value_text(uuid, NULL);
    if (text && strcmp(text, child->uuid) == 0)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_INCONSISTENT, matrix->metadata_offset,
                        "mixed snapshot: child \"%s\" has the payload_uuid %s, the manifest says %s",
                        child->path, text ? text : "(none)", child->uuid);
}

/* COFFER_E_NOT_FOUND of a file is a reference into the void. */
static coffer_status open_source(coffer_source **out, const struct coffer__pycauset_blocks *blocks,
                                 const coffer__pycauset_manifest_child *child, coffer_error *err)
{
    coffer_error why = COFFER_ERROR_INIT;
    if (!blocks->folder)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "child \"%s\": the matrix is not a file; set blocks_folder", child->path);
    coffer_status status =
        coffer__source_open_in(out, blocks->folder, blocks->folder_given, child->path, &why);
    if (status == COFFER_E_NOT_FOUND)
        status = why.status = COFFER_E_DANGLING_REFERENCE;
    return status ? coffer__fail_copy(err, &why) : COFFER_OK;
}

static coffer_status open_child(coffer__pycauset_block_child *out,
                                const struct coffer__pycauset_blocks *blocks, const coffer_pycauset *parent,
                                coffer_error *err)
{
    const coffer__pycauset_manifest_child *child = &blocks->manifest.children[out->index];
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_status status;
    opts.limits = &parent->limits;
    status = open_source(&out->source, blocks, child, err);
    if (!status)
        status = check_ancestors(out->source, parent, err);
    if (!status)
        status = coffer__pycauset_open_child(&out->matrix, out->source, &opts, parent, err);
    if (status)
        return status;
    return check_uuid(out->matrix, child, err);
}

/* Closes the one that was used longest ago when there are many. */
static void close_idle(struct coffer__pycauset_blocks *blocks)
{
    while (blocks->open_count > KEPT_OPEN) {
        size_t oldest = SIZE_MAX;
        for (size_t i = 0; i < blocks->open_count; i++) {
            if (blocks->open[i]->users == 0 &&
                (oldest == SIZE_MAX || blocks->open[i]->last_used < blocks->open[oldest]->last_used))
                oldest = i;
        }
        if (oldest == SIZE_MAX)
            return;
        close_child(blocks->open[oldest]);
        blocks->open[oldest] = blocks->open[--blocks->open_count];
    }
}

static coffer_status acquire_locked(coffer__pycauset_block_child **out,
                                    struct coffer__pycauset_blocks *blocks, const coffer_pycauset *parent,
                                    size_t index, coffer_error *err)
{
    for (size_t i = 0; i < blocks->open_count; i++) {
        if (blocks->open[i]->index == index) {
            *out = blocks->open[i];
            return COFFER_OK;
        }
    }
    coffer_status status = coffer__array_reserve_one(&blocks->open, &blocks->open_capacity,
                                                     blocks->open_count, sizeof *blocks->open, err);
    if (status)
        return status;
    coffer__pycauset_block_child *child = coffer__calloc(1, sizeof *child);
    if (!child)
        return coffer__fail_no_memory(err, sizeof *child);
    child->index = index;
    status = open_child(child, blocks, parent, err);
    if (status) {
        close_child(child);
        return status;
    }
    blocks->open[blocks->open_count++] = child;
    *out = child;
    return COFFER_OK;
}

coffer_status coffer__pycauset_blocks_acquire(coffer__pycauset_block_child **out,
                                              struct coffer__pycauset_blocks *blocks,
                                              const coffer_pycauset *parent, size_t child, coffer_error *err)
{
    pthread_mutex_lock(&blocks->mutex);
    coffer_status status = acquire_locked(out, blocks, parent, child, err);
    if (!status) {
        (*out)->users++;
        (*out)->last_used = ++blocks->clock;
        close_idle(blocks);
    }
    pthread_mutex_unlock(&blocks->mutex);
    return status;
}

void coffer__pycauset_blocks_release(struct coffer__pycauset_blocks *blocks,
                                     coffer__pycauset_block_child *child)
{
    pthread_mutex_lock(&blocks->mutex);
    child->users--;
    close_idle(blocks);
    pthread_mutex_unlock(&blocks->mutex);
}

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
