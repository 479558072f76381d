/* Where bytes go: a new file that replaces the old one when complete, a stream, or memory. Buffered; after
 * an error every later call returns it again. */
#ifndef COFFER_IO_SINK_H
#define COFFER_IO_SINK_H

#include "base/buffer.h"
#include "coffer/error.h"
#include "coffer/progress.h"
#include "coffer/source.h"

typedef struct coffer__sink coffer__sink;

typedef struct coffer__sink_opts {
    bool exclusive; /* COFFER_E_EXISTS when the file exists, at create and again at commit */
    bool no_sync;   /* scratch files: skip the syncs, keep the atomic rename */
    bool partial;   /* the file grows, locked, as PATH.partial, which stays when it is not committed; writing
                     * resumes after the existing bytes (coffer__sink_cut) */
    bool no_follow; /* a symbolic link at the path is replaced, not followed; with `exclusive` it exists */
    bool rewrites;  /* the file is a cache, or is rewritten in place: it may be one that is read (inputs.h) */
} coffer__sink_opts;

/* A new file under a temporary name in the folder of `path`; it takes the name at commit. A symbolic link is
 * followed, the mode of a file that is replaced is kept. A path that is not a regular file (a terminal, a
 * pipe, /dev/null) is written straight through and cannot be patched. "-" is standard output. A file that is
 * being read is COFFER_E_INVALID_ARGUMENT (inputs.h). opts may be NULL. */
coffer_status coffer__sink_create(coffer__sink **out, const char *path, const coffer__sink_opts *opts,
                                  coffer_error *err);
/* A sink for a file whose name comes from a file that is not trusted: a relative path of plain names under a
 * folder, which exists; missing folders on the way are created. No symbolic link below the folder is
 * followed: one on the way is COFFER_E_UNSAFE_PATH, one at the end is replaced or exists, as with a file.
 * Errors name the path. */
coffer_status coffer__sink_create_in(coffer__sink **out, const char *folder, const char *name,
                                     const coffer__sink_opts *opts, coffer_error *err);
coffer_status coffer__sink_to_buffer(coffer__sink **out, coffer__buffer *buffer, coffer_error *err);

coffer_status coffer__sink_write(coffer__sink *sink, const void *bytes, size_t len, coffer_error *err);
coffer_status coffer__sink_fill(coffer__sink *sink, uint8_t byte, uint64_t count, coffer_error *err);
/* Overwrites bytes that were written before. COFFER_E_UNSUPPORTED on a stream. */
coffer_status coffer__sink_patch(coffer__sink *sink, uint64_t offset, const void *bytes, size_t len,
                                 coffer_error *err);
/* Bytes written so far, which is where the next go. */
uint64_t coffer__sink_position(const coffer__sink *sink);
/* CRC-32 of what is written from here on. */
void coffer__sink_crc_begin(coffer__sink *sink);
uint32_t coffer__sink_crc(const coffer__sink *sink);
/* Copies a range of an open file without passing through user memory where the kernel can. */
coffer_status coffer__sink_copy_file(coffer__sink *sink, int fd, uint64_t offset, uint64_t len,
                                     const char *name, coffer_error *err);
/* Copies a range of a source. progress : may be NULL; COFFER_E_CANCELLED when it stops the work. */
coffer_status coffer__sink_copy_source(coffer__sink *sink, coffer_source *src, uint64_t offset, uint64_t len,
                                       const coffer_progress *progress, coffer_error *err);
/* Takes back what was written from `position` on; it costs no space. COFFER_E_UNSUPPORTED on a stream. */
coffer_status coffer__sink_cut(coffer__sink *sink, uint64_t position, coffer_error *err);
bool coffer__sink_can_patch(const coffer__sink *sink);
/* Holds the write lock on the file under its temporary name, so that it is locked from the moment it appears.
 * The descriptor is handed over to the caller at commit. */
coffer_status coffer__sink_lock(coffer__sink *sink, coffer_error *err);

/* Flushes and lends the descriptor of the file under its temporary name, to read back what was written.
 * COFFER_E_UNSUPPORTED when the sink does not write to such a file. */
coffer_status coffer__sink_read_back(int *fd, coffer__sink *sink, coffer_error *err);

/* Flushes and syncs a file that waits for others before it is committed, and gives its buffer back. Nothing
 * can be written after it. */
coffer_status coffer__sink_rest(coffer__sink *sink, coffer_error *err);

/* Flushes, syncs, rolls back an interrupted update of the old file (COFFER_E_LOCKED while one is under way),
 * renames, syncs the folder, frees. On failure nothing of the new file is left and the old
 * one is untouched; only when the last sync fails the new file has the name already, complete, and a crash
 * may still bring the old one back. */
coffer_status coffer__sink_commit(coffer__sink *sink, coffer_error *err);
/* The same, but keeps the file open for reading and writing: *fd is the caller's. */
coffer_status coffer__sink_commit_open(coffer__sink *sink, int *fd, coffer_error *err);
/* Frees; what was not committed is removed. NULL allowed. */
void coffer__sink_discard(coffer__sink *sink);

#endif
