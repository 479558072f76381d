#include "formats/pycauset/pycauset_blocks.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/source_private.h"

#include <stdio.h>
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
