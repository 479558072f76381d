/* Functions that all kinds of source share. */
#include "coffer/source.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/file.h"
#include "io/source_private.h"
#include "io/source_struct.h"

#include <inttypes.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_source_ops, COFFER_SOURCE_OPS_INIT)

coffer_status coffer_source_new(coffer_source **out, const coffer_source_ops *ops, void *context,
                                uint64_t size, const char *name, coffer_error *err)
{
    coffer_source_ops known = COFFER_SOURCE_OPS_INIT;
    coffer_status status = coffer__take_options(&known, sizeof known, ops, err);
    if (status)
        return status;
    if (!known.read_at)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a source needs a read_at function");
    coffer_source *src = coffer__calloc(1, sizeof *src);
    if (!src)
        return coffer__fail_no_memory(err, sizeof *src);
    src->name = coffer__strdup(name);
    if (!src->name) {
        coffer__free(src);
        return coffer__fail_no_memory(err, strlen(name) + 1);
    }
    src->ops = known;
    src->context = context;
    src->size = size;
    src->fd = -1;
    src->damage = coffer__source_default_damage_report();
    *out = src;
    return COFFER_OK;
}

void coffer_source_close(coffer_source *src)
{
    if (!src)
        return;
    if (src->ops.close)
        src->ops.close(src->context);
    coffer__free(src->facts.path);
    coffer__free(src->name);
    coffer__free(src);
}

uint64_t coffer_source_size(const coffer_source *src)
{
    return src->size;
}

const char *coffer_source_name(const coffer_source *src)
{
    return src->name;
}

const char *coffer__source_other_name(const coffer_source *src)
{
    return src->other ? src->name : NULL;
}

bool coffer_source_interrupted_update(const coffer_source *src)
{
    return src->interrupted;
}

coffer_status coffer_source_read_at(void *out, coffer_source *src, uint64_t offset, size_t len,
                                    coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!coffer__range_fits(offset, len, src->size))
        status =
            coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, offset,
                         "%zu bytes at %" PRIu64 " requested, the file has %" PRIu64, len, offset, src->size);
    else if (len > 0)
        status = src->ops.read_at(src->context, out, offset, len, err);
    return status ? coffer__fail_other(err, status, coffer__source_other_name(src)) : COFFER_OK;
}

const uint8_t *coffer_source_view(coffer_source *src, uint64_t offset, size_t len)
{
    if (!src->ops.view || !coffer__range_fits(offset, len, src->size))
        return NULL;
    return src->ops.view(src->context, offset, len);
}

void coffer_source_prefetch(coffer_source *src, const coffer_range *ranges, size_t count)
{
    bool inside = src->ops.prefetch != NULL;
    for (size_t i = 0; i < count && inside; i++)
        inside = coffer__range_fits(ranges[i].offset, ranges[i].len, src->size);
    if (inside && count)
        src->ops.prefetch(src->context, ranges, count);
}

coffer_status coffer_source_intact(coffer_source *src, coffer_error *err)
{
    coffer_status status = src->ops.intact ? src->ops.intact(src->context, err) : COFFER_OK;
    return status ? coffer__fail_other(err, status, coffer__source_other_name(src)) : COFFER_OK;
}

static coffer_status memory_read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    (void)err;
    memcpy(out, (const uint8_t *)context + offset, len);
    return COFFER_OK;
}

static const uint8_t *memory_view(void *context, uint64_t offset, size_t len)
{
    (void)len;
    return (const uint8_t *)context + offset;
}

coffer_status coffer_source_from_memory(coffer_source **out, const void *data, size_t size, coffer_error *err)
{
    static const coffer_source_ops ops = {
        .struct_size = sizeof ops,
        .read_at = memory_read_at,
        .view = memory_view,
    };
    /* The operations only read: the context is const in all but type. NULL is fine for no bytes. */
    void *context = (void *)(uintptr_t)(size > 0 ? data : "");
    return coffer_source_new(out, &ops, context, size, "memory", err);
}

/* A file read by pread, with the old bytes of a journal applied. */

struct read_file {
    int fd;
    bool owns_fd;
    uint64_t in_file; /* where the bytes of the file itself end; what follows is in the journal */
    coffer__journal *journal;
};

static coffer_status file_read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    const struct read_file *file = context;
    size_t there = len;
    if (offset + len > file->in_file)
        there = offset < file->in_file ? (size_t)(file->in_file - offset) : 0;
    coffer_status status = coffer__file_read_at(file->fd, out, there, offset, NULL, err);
    if (!status && file->journal)
        coffer__journal_lay_over(file->journal, out, offset, len);
    return status;
}

static void file_close(void *context)
{
    struct read_file *file = context;
    if (file->owns_fd)
        coffer__file_close(file->fd);
    coffer__journal_free(file->journal);
    coffer__free(file);
}

coffer_status coffer__source_over_fd(coffer_source **out, int fd, bool owns_fd, uint64_t size,
                                     const char *name, coffer__journal *journal, coffer_error *err)
{
    static const coffer_source_ops ops = {
        .struct_size = sizeof ops,
        .read_at = file_read_at,
        .close = file_close,
    };
    uint64_t shown = size;
    if (journal) {
        coffer_status status = coffer__journal_covers(journal, size, err);
        if (status)
            return status;
        shown = journal->old_size;
    }
    struct read_file *file = coffer__malloc(sizeof *file);
    if (!file)
        return coffer__fail_no_memory(err, sizeof *file);
    coffer_source *src;
    coffer_status status = coffer_source_new(&src, &ops, file, shown, name, err);
    if (status) {
        coffer__free(file);
        return status;
    }
    *file = (struct read_file){ fd, owns_fd, size < shown ? size : shown, journal };
    src->fd = fd;
    src->interrupted = journal != NULL;
    *out = src;
    return COFFER_OK;
}

coffer_status coffer__source_fetch(const uint8_t **out, coffer_source *src, uint64_t offset, size_t len,
                                   void *scratch, coffer_error *err)
{
    const uint8_t *view = coffer_source_view(src, offset, len);
    if (view) {
        *out = view;
        return COFFER_OK;
    }
    coffer_status status = coffer_source_read_at(scratch, src, offset, len, err);
    if (!status)
        *out = scratch;
    return status;
}

coffer_status coffer__source_fetch_new(const uint8_t **out, uint8_t **own, coffer_source *src,
                                       uint64_t offset, size_t len, coffer_error *err)
{
    const uint8_t *view = coffer_source_view(src, offset, len);
    if (view) {
        *out = view;
        *own = NULL;
        return COFFER_OK;
    }
    uint8_t *copy = coffer__malloc(len);
    if (!copy)
        return coffer__fail_no_memory(err, len);
    coffer_status status = coffer_source_read_at(copy, src, offset, len, err);
    if (status) {
        coffer__free(copy);
        return status;
    }
    *out = *own = copy;
    return COFFER_OK;
}
