/* Writes a block matrix from existing files. Children get names that no older child has, so that the old
 * matrix stays intact until the new one replaces it. */
#include "formats/pycauset/pycauset_blocks.h"
#include "formats/pycauset/pycauset_writer.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "io/file.h"
#include "io/os.h"
#include "io/source_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 96

typedef struct block_source {
    coffer_source *source;
    coffer_pycauset *matrix;
    const char *uuid; /* borrowed from the matrix */
    char name[NAME_SIZE];
    bool made; /* the file is new: to be removed when all fails */
} block_source;

typedef struct block_writer {
    const char *path;
    char *folder;
    bool folder_made;
    uint64_t rows, cols; /* of blocks */
    block_source *blocks;
    size_t count;
    coffer_pycauset_writer_opts opts;
} block_writer;

/* ---- The children ---- */

static coffer_status open_block(block_source *block, const char *path, uint64_t row, uint64_t col,
                                coffer_error *err)
{
    coffer_status status = coffer__source_open_other(&block->source, path, NULL, err);
    if (status)
        return status;
    status = coffer_pycauset_open(&block->matrix, block->source, NULL, err);
    if (status)
        return coffer__fail_other(err, status, path);
    const coffer_pycauset_value *uuid =
        coffer__pycauset_get_key(block->matrix->metadata.root, "payload_uuid");
    block->uuid = coffer_pycauset_value_text(uuid, NULL);
    if (!block->uuid || !coffer__pycauset_is_uuid(block->uuid))
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                            "%s: a child must have a payload_uuid of %d hexadecimal digits", path,
                            COFFER__PYCAUSET_UUID_SIZE);
    if (block->matrix->info.type == COFFER_PYCAUSET_BLOCK)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%s is a block matrix; pass its children instead", path);
    snprintf(block->name, sizeof block->name, "block-%" PRIu64 "-%" PRIu64 "-%s.pycauset", row, col,
             block->uuid);
    return COFFER_OK;
}

/* Blocks of a row have its height, those of a column its width. */
static coffer_status check_grid(const block_writer *writer, coffer_error *err)
{
    for (size_t i = 0; i < writer->count; i++) {
        const coffer_pycauset_info *info = &writer->blocks[i].matrix->info;
        uint64_t rows = writer->blocks[i / writer->cols * writer->cols].matrix->info.rows;
        uint64_t cols = writer->blocks[i % writer->cols].matrix->info.cols;
        if (info->rows != rows || info->cols != cols || rows == 0 || cols == 0)
            return coffer__fail_other(err,
                                      coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                                   "%" PRIu64 " x %" PRIu64
                                                   " values, its position requires %" PRIu64 " x %" PRIu64,
                                                   info->rows, info->cols, rows, cols),
                                      coffer_source_name(writer->blocks[i].source));
    }
    return COFFER_OK;
}

/* The type that all values have, or COFFER_DTYPE_NONE. */
static coffer_dtype common_dtype(const block_writer *writer)
{
    coffer_dtype dtype = writer->blocks[0].matrix->info.value_dtype;
    for (size_t i = 1; i < writer->count; i++) {
        if (writer->blocks[i].matrix->info.value_dtype != dtype)
            return COFFER_DTYPE_NONE;
    }
    return dtype == COFFER_DTYPE_BOOL ? COFFER_DTYPE_BIT : dtype;
}

/* ---- Metadata ---- */

static void write_edges(coffer__buffer *json, uint64_t *size, const block_writer *writer, bool rows)
{
    uint64_t at = 0;
    coffer__buffer_printf(json, "[0");
    for (uint64_t i = 0; i < (rows ? writer->rows : writer->cols); i++) {
        const coffer_pycauset_info *info = &writer->blocks[rows ? i * writer->cols : i].matrix->info;
        at += rows ? info->rows : info->cols;
        coffer__buffer_printf(json, ",%" PRIu64, at);
    }
    coffer__buffer_printf(json, "]");
    *size = at;
}

static coffer_status say_manifest(coffer_pycauset_changes *says, const block_writer *writer,
                                  coffer_error *err)
{
    coffer__buffer json = COFFER__BUFFER_INIT;
    uint64_t rows, cols;
    coffer__buffer_printf(&json, "{\"version\":1,\"row_partitions\":");
    write_edges(&json, &rows, writer, true);
    coffer__buffer_printf(&json, ",\"col_partitions\":");
    write_edges(&json, &cols, writer, false);
    coffer__buffer_printf(&json, ",\"children\":[");
    for (size_t i = 0; i < writer->count; i++) {
        bool first = i % writer->cols == 0, last = (i + 1) % writer->cols == 0;
        coffer__buffer_printf(&json, "%s%s{\"path\":\"%s\",\"payload_uuid\":\"%s\"}%s", i > 0 ? "," : "",
                              first ? "[" : "", writer->blocks[i].name, writer->blocks[i].uuid,
                              last ? "]" : "");
    }
    coffer__buffer_printf(&json, "]}");
    coffer_status status;
    if (json.failed)
        status = coffer__fail_no_memory(err, json.len);
    else
        status = coffer_pycauset_changes_set_u64(says, "rows", rows, err);
    if (!status)
        status = coffer_pycauset_changes_set_u64(says, "cols", cols, err);
    if (!status)
        status =
            coffer_pycauset_changes_set_json(says, "block_manifest", (const char *)json.data, json.len, err);
    coffer__buffer_free(&json);
    return status;
}

static coffer_status say_all(coffer_pycauset_changes *says, const block_writer *writer, coffer_error *err)
{
    static const char view[] = "{\"is_transposed\":false,\"is_conjugated\":false,\"scalar\":1.0}";
    static const char layout[] = "{\"kind\":\"none\",\"params\":{}}";
    const char *dtype = coffer_pycauset_dtype_name(common_dtype(writer));
    coffer_status status = coffer_pycauset_changes_set_string(says, "matrix_type", "BLOCK", 5, err);
    if (!status)
        status = coffer_pycauset_changes_set_string(says, "data_type", dtype, strlen(dtype), err);
    if (!status)
        status = coffer_pycauset_changes_set_u64(says, "seed", 0, err);
    if (!status)
        status = coffer_pycauset_changes_set_json(says, "payload_layout", layout, sizeof layout - 1, err);
    if (!status)
        status = coffer_pycauset_changes_set_json(says, "view", view, sizeof view - 1, err);
    if (status)
        return status;
    return say_manifest(says, writer, err);
}

/* ---- The files ---- */

static char *path_in(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = coffer__malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static char *path_of(const block_writer *writer, const char *name)
{
    return path_in(writer->folder, name);
}

/* The name comes from a file: no link in the folder is followed. */
static coffer_status copy_file(const char *folder, const char *name, coffer_source *src,
                               const coffer__sink_opts *opts, coffer_error *err)
{
    coffer__sink *sink = NULL;
    coffer_status status = coffer__sink_create_in(&sink, folder, name, opts, err);
    if (status)
        return status;
    status = coffer__sink_copy_source(sink, src, 0, coffer_source_size(src), NULL, err);
    if (!status)
        return coffer__sink_commit(sink, err);
    coffer__sink_discard(sink);
    return status;
}

static coffer_status copy_block(block_writer *writer, block_source *block, coffer_error *err)
{
    coffer__sink_opts sink_opts = { .no_sync = writer->opts.durability == COFFER_DURABILITY_NONE };
    struct stat before;
    char *path = path_of(writer, block->name);
    if (!path)
        return coffer__fail_no_memory(err, NAME_SIZE);
    bool existed = coffer__os_stat(path, &before) == 0;
    coffer_status status = coffer_pycauset_verify(block->matrix, err);
    if (!status)
        status = copy_file(writer->folder, block->name, block->source, &sink_opts, err);
    block->made = !existed; /* a failure may come after the file has its name */
    coffer__free(path);
    return status;
}

static void remove_child(const block_writer *writer, const char *name)
{
    char *path = path_of(writer, name);
    if (path)
        coffer__os_unlink(path);
    coffer__free(path);
}

/* ---- The matrix that has the name ---- */

/* Open as long as its manifest is needed, which borrows from it. */
typedef struct named_matrix {
    coffer_source *source;
    coffer_pycauset *matrix;
    coffer__pycauset_manifest manifest; /* empty when the file is not a block matrix */
} named_matrix;

static void named_open(named_matrix *named, const char *path)
{
    if (coffer_source_open(&named->source, path, NULL, NULL) == COFFER_OK &&
        coffer_pycauset_open(&named->matrix, named->source, NULL, NULL) == COFFER_OK &&
        named->matrix->info.type == COFFER_PYCAUSET_BLOCK)
        (void)coffer__pycauset_manifest_read(&named->manifest, named->matrix->metadata.root,
                                             &named->matrix->info, 0, NULL);
}

static void named_close(named_matrix *named)
{
    coffer__pycauset_manifest_free(&named->manifest);
    coffer_pycauset_close(named->matrix);
    coffer_source_close(named->source);
}

/* The block with a child's name, or NULL. Our names contain the position of the block. */
static const block_source *block_of(const block_writer *writer, const char *name)
{
    static const char prefix[] = "block-";
    char *end;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return NULL;
    unsigned long long row = strtoull(name + sizeof prefix - 1, &end, 10);
    unsigned long long col = *end == '-' ? strtoull(end + 1, &end, 10) : ULLONG_MAX;
    if (row >= writer->rows || col >= writer->cols)
        return NULL;
    const block_source *block = &writer->blocks[row * writer->cols + col];
    return strcmp(block->name, name) == 0 ? block : NULL;
}

/* Removes children of the old matrix that the new one does not have. What cannot be removed does no harm. */
static void remove_old(const block_writer *writer, const named_matrix *old)
{
    for (size_t i = 0; i < old->manifest.child_count; i++) {
        if (!block_of(writer, old->manifest.children[i].path))
            remove_child(writer, old->manifest.children[i].path);
    }
}

/* A failure of the last sync leaves the new matrix under its name: it needs its children. */
static bool has_the_name(const block_writer *writer)
{
    named_matrix now = { .source = NULL };
    bool found = false;
    named_open(&now, writer->path);
    for (size_t i = 0; i < now.manifest.child_count && !found; i++) {
        const block_source *block = block_of(writer, now.manifest.children[i].path);
        found = block && block->made;
    }
    named_close(&now);
    return found;
}

static void undo(block_writer *writer)
{
    if (has_the_name(writer))
        return;
    for (size_t i = 0; i < writer->count; i++) {
        if (writer->blocks[i].made)
            remove_child(writer, writer->blocks[i].name);
    }
    if (writer->folder_made)
        coffer__os_remove_folder(writer->folder);
}

static coffer_status make_folder(bool *made, const char *folder, coffer_error *err)
{
    if (coffer__os_make_folder(folder, 0777) == 0)
        *made = true;
    else if (errno != EEXIST)
        return coffer__fail_other(err, coffer__fail_errno(err, "cannot create", errno), folder);
    /* A reader will not follow a link in its place. */
    int fd = coffer__file_try_open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0)
        return coffer__fail_other(err, coffer__fail_errno(err, "cannot write into the folder", errno),
                                  folder);
    coffer__file_close(fd);
    return COFFER_OK;
}

/* ---- Copies of a whole matrix ---- */

static coffer_status copy_child(struct coffer__pycauset_blocks *blocks, const coffer_pycauset *matrix,
                                size_t index, const char *folder, coffer_report *report, coffer_error *err)
{
    coffer__pycauset_block_child *child;
    coffer_status status = coffer__pycauset_blocks_acquire(&child, blocks, matrix, index, err);
    if (status)
        return status;
    char *path = path_in(folder, blocks->manifest.children[index].path);
    if (!path)
        status = coffer__fail_no_memory(err, strlen(folder));
    if (!status && !report)
        status = coffer_pycauset_verify(child->matrix, err);
    if (!status)
        status = copy_file(folder, blocks->manifest.children[index].path, child->source, NULL, err);
    if (!status && child->matrix->info.type == COFFER_PYCAUSET_BLOCK)
        status = coffer__pycauset_copy_children(child->matrix, path, report, err);
    coffer__free(path);
    coffer__pycauset_blocks_release(blocks, child);
    return status;
}

coffer_status coffer__pycauset_copy_children(const coffer_pycauset *matrix, const char *path,
                                             coffer_report *report, coffer_error *err)
{
    struct coffer__pycauset_blocks *blocks;
    char *resolved = NULL, *folder = NULL;
    bool made = false;
    coffer_status status = coffer__pycauset_blocks_get(&blocks, matrix, err);
    if (!status)
        status = coffer__file_resolve(&resolved, path, err);
    if (!status && !(folder = coffer__pycauset_blocks_folder(resolved)))
        status = coffer__fail_no_memory(err, strlen(resolved));
    if (!status && (!blocks->folder || strcmp(blocks->folder, folder) != 0))
        status = make_folder(&made, folder, err);
    else if (!status) /* they are there */
        blocks = NULL;
    for (size_t i = 0; !status && blocks && i < blocks->manifest.child_count; i++) {
        coffer_error why = COFFER_ERROR_INIT;
        status = copy_child(blocks, matrix, i, folder, report, &why);
        if (status && report && status != COFFER_E_NO_MEMORY) {
            coffer__report_add(report, status, COFFER_WARNING, COFFER_OFFSET_NONE, "child \"%s\" is lost: %s",
                               blocks->manifest.children[i].path, why.text);
            status = COFFER_OK;
        } else if (status) {
            status = coffer__fail_copy(err, &why);
        }
    }
    coffer__free(folder);
    coffer__free(resolved);
    return status;
}

/* ---- All together ---- */

static coffer_status write_files(block_writer *writer, coffer_error *err)
{
    coffer_pycauset_changes *says = NULL;
    coffer_pycauset_writer *file = NULL;
    coffer_status status = coffer__pycauset_system_changes_new(&says, err);
    if (status)
        return status;
    status = say_all(says, writer, err);
    if (status) {
        coffer_pycauset_changes_free(says);
        return status;
    }
    status = coffer__pycauset_writer_new(&file, writer->path, says, &writer->opts, err);
    if (!status)
        status = make_folder(&writer->folder_made, writer->folder, err);
    if (status)
        goto out;
    for (size_t i = 0; i < writer->count; i++) {
        coffer__digest_add(file->output.digest, writer->blocks[i].uuid, COFFER__PYCAUSET_UUID_SIZE);
        status = copy_block(writer, &writer->blocks[i], err);
        if (status)
            goto out;
    }
    status = coffer_pycauset_writer_commit(file, err);
    file = NULL;
out:
    coffer_pycauset_writer_discard(file);
    if (status)
        undo(writer);
    return status;
}

static coffer_status open_blocks(block_writer *writer, const char *const *children, coffer_error *err)
{
    for (size_t i = 0; i < writer->count; i++) {
        coffer_status status =
            open_block(&writer->blocks[i], children[i], i / writer->cols, i % writer->cols, err);
        if (status)
            return status;
    }
    return check_grid(writer, err);
}

static void writer_close(block_writer *writer)
{
    for (size_t i = 0; writer->blocks && i < writer->count; i++) {
        coffer_pycauset_close(writer->blocks[i].matrix);
        coffer_source_close(writer->blocks[i].source);
    }
    coffer__free(writer->blocks);
    coffer__free(writer->folder);
}

coffer_status coffer_pycauset_write_blocks(const char *path, const char *const *children, uint64_t block_rows,
                                           uint64_t block_cols, const coffer_pycauset_writer_opts *opts,
                                           coffer_error *err)
{
    block_writer writer = { .path = path, .rows = block_rows, .cols = block_cols };
    named_matrix old = { .source = NULL };
    char *resolved = NULL;
    writer.opts = (coffer_pycauset_writer_opts)COFFER_PYCAUSET_WRITER_OPTS_INIT;
    coffer_status status = coffer__take_options(&writer.opts, sizeof writer.opts, opts, err);
    if (status)
        return status;
    uint64_t count;
    if (strcmp(path, "-") == 0 || block_rows == 0 || block_cols == 0 ||
        !coffer__mul_u64(&count, block_rows, block_cols) || !coffer__to_size(&writer.count, count))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " x %" PRIu64 " blocks cannot be written to %s", block_rows,
                            block_cols, path);
    status = coffer__file_resolve(&resolved, path, err);
    if (status)
        return status;
    writer.folder = coffer__pycauset_blocks_folder(resolved);
    writer.blocks = coffer__calloc(writer.count, sizeof *writer.blocks);
    if (!writer.folder || !writer.blocks)
        status = coffer__fail_no_memory(err, writer.count * sizeof *writer.blocks);
    else
        status = open_blocks(&writer, children, err);
    if (!status) {
        named_open(&old, path);
        status = write_files(&writer, err);
        if (!status)
            remove_old(&writer, &old);
    }
    named_close(&old);
    writer_close(&writer);
    coffer__free(resolved);
    return status;
}
