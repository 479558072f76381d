/* A file read by pread, with the old bytes of a journal applied. */
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/source_struct.h"

#include <string.h>

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
