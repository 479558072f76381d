#ifndef COFFER_SOURCE_H
#define COFFER_SOURCE_H

#include "coffer/error.h"
#include "coffer/report.h"

COFFER_BEGIN_DECLS

/* Where bytes come from: a file, a mapping, memory, or anything that can answer read_at. Every reader of the
 * library works over each kind. Thread-safety: all calls but close may run at the same time. A source opened
 * before fork() works in the children. */
typedef struct coffer_source coffer_source;

typedef enum coffer_access {
    COFFER_ACCESS_AUTO = 0,   /* map regular files once a view is asked for, read others */
    COFFER_ACCESS_MAP = 1,    /* map or fail */
    COFFER_ACCESS_READ = 2,   /* pread, never map */
    COFFER_ACCESS_DIRECT = 3, /* pread past the page cache, where the file system can: for large files that
                               * are read once; small reads are slow */
    COFFER_ACCESS_COPY = 4    /* as AUTO; the memory of a view of a local file may be written, which changes a
                               * private copy of the page and never the file */
} coffer_access;

typedef struct coffer_source_opts {
    uint32_t struct_size;
    coffer_access access;
    bool ignore_journal; /* show the current bytes, even when an interrupted update left a journal */
} coffer_source_opts;

#define COFFER_SOURCE_OPTS_INIT                               \
    {                                                         \
        sizeof(coffer_source_opts), COFFER_ACCESS_AUTO, false \
    }

/* When a commit returns. */
typedef enum coffer_durability {
    COFFER_DURABILITY_FULL = 0, /* the data is on disk when the call returns */
    COFFER_DURABILITY_ORDERED,  /* a crash leaves the old or the new state, perhaps the old one */
    COFFER_DURABILITY_NONE      /* for scratch files */
} coffer_durability;

COFFER_API void coffer_source_opts_init(coffer_source_opts *opts, uint32_t struct_size);

/* Opens a file for reading. A path that begins with http://, https://, s3:// or hf:// is fetched from a
 * server as it is read (coffer_remote_configure); its access is always by reading. "-" is standard input;
 * pipes are spooled to an unnamed temporary file first (a named one must have a writer within a minute). When
 * the file has a complete rollback journal, the source shows the state before the interrupted update
 * (coffer_source_interrupted_update). Mapping installs, once for the process, a SIGBUS handler that serves
 * only mappings of this library and passes every other signal on: a file that is truncated while it is mapped
 * gives COFFER_E_CHANGED instead of killing the process. */
COFFER_API_STATUS coffer_source_open(coffer_source **out, const char *path, const coffer_source_opts *opts,
                                     coffer_error *err);

/* data : borrowed, must outlive the source. */
COFFER_API_STATUS coffer_source_from_memory(coffer_source **out, const void *data, size_t size,
                                            coffer_error *err);

typedef struct coffer_range {
    uint64_t offset;
    uint64_t len;
} coffer_range;

/* A source of the caller's own (HTTP ranges, an archive member …). */
typedef struct coffer_source_ops {
    uint32_t struct_size;
    /* Fills out[0..len). The range has been checked against the size. Must be thread-safe. */
    coffer_status (*read_at)(void *context, void *out, uint64_t offset, size_t len, coffer_error *err);
    /* Borrowed bytes, valid until close, or NULL when they are not in memory. May be NULL. */
    const uint8_t *(*view)(void *context, uint64_t offset, size_t len);
    /* Fails when bytes handed out by `view` may have been wrong. May be NULL. */
    coffer_status (*intact)(void *context, coffer_error *err);
    void (*close)(void *context); /* may be NULL */
    /* These bytes will be read soon; they are sorted and inside the source. Must not wait. May be NULL. */
    void (*prefetch)(void *context, const coffer_range *ranges, size_t count);
} coffer_source_ops;

#define COFFER_SOURCE_OPS_INIT                                  \
    {                                                           \
        sizeof(coffer_source_ops), NULL, NULL, NULL, NULL, NULL \
    }

COFFER_API void coffer_source_ops_init(coffer_source_ops *ops, uint32_t struct_size);

/* name : copied, for messages. context : passed to every call; `close` is not called when this function
 * fails. */
COFFER_API_STATUS coffer_source_new(coffer_source **out, const coffer_source_ops *ops, void *context,
                                    uint64_t size, const char *name, coffer_error *err);

COFFER_API void coffer_source_close(coffer_source *src);

COFFER_API uint64_t coffer_source_size(const coffer_source *src);
COFFER_API const char *coffer_source_name(const coffer_source *src);

/* True when the file has the journal of an interrupted update and the source shows the old state. */
COFFER_API bool coffer_source_interrupted_update(const coffer_source *src);

/* Reads exactly len bytes; a range past the end is COFFER_E_OUT_OF_BOUNDS, and out is then untouched. */
COFFER_API_STATUS coffer_source_read_at(void *out, coffer_source *src, uint64_t offset, size_t len,
                                        coffer_error *err);

/* Borrowed bytes until close, or NULL (not mapped, or the range is past the end): then use read_at.
 * After using a view, call coffer_source_intact before trusting results that were computed from it. */
COFFER_API const uint8_t *coffer_source_view(coffer_source *src, uint64_t offset, size_t len);

/* Says which bytes will be read soon, so that a remote file can be asked for many of them at once. Returns
 * at once; has no effect where it would not help. ranges : best sorted by offset. */
COFFER_API void coffer_source_prefetch(coffer_source *src, const coffer_range *ranges, size_t count);

/* COFFER_E_CHANGED when the file was truncated while it was mapped: views may have shown zeros. */
COFFER_API_STATUS coffer_source_intact(coffer_source *src, coffer_error *err);

/* Continues at damage: from now on, payload whose checksum is wrong is returned as it is stored instead of
 * COFFER_E_BAD_CHECKSUM, and `out` gets an error for each damaged range that is read. What the structure of
 * the file depends on (headers, indexes) still has to be right. Calls that write a file record the damage in
 * it where its format can, so that a check keeps reporting it. Set it before the first handle is opened.
 * out : borrowed, must outlive the source; additions are serialized. NULL = fail again. */
COFFER_API void coffer_source_keep_damaged(coffer_source *src, coffer_report *out);
/* The same for every source that this process opens from now on; the findings name the file. For programs
 * that do one thing and end, such as a command. NULL = fail again. */
COFFER_API void coffer_keep_damaged(coffer_report *out);
/* True when a call of this process has failed at damage that it could have accepted. */
COFFER_API bool coffer_stopped_at_damage(void);

/* How remote files are read. Each member left at 0 keeps its present value. */
typedef struct coffer_remote_opts {
    uint32_t struct_size;
    bool download;            /* where a server has no ranges, fetch the whole file instead of failing */
    uint32_t parallel;        /* requests at once; at first 16. Up to four times as many small ones. */
    uint32_t deadline_ms;     /* longest time without receiving anything; at first 3 minutes */
    uint64_t cache_bytes;     /* memory for blocks of remote files; at first COFFER_CACHE, else 64 MiB. Counts
                               * before the first remote file is opened. */
    const char *cache_folder; /* blocks are also kept here, for later programs; at first COFFER_CACHE_DIR */
    bool one_version;         /* an address that was opened once shows the same version of its file until the
                               * process ends, or fails with COFFER_E_CHANGED. For programs that do one thing. */
    bool spool; /* blocks of a file that is larger than the memory for them go to an unnamed temporary file,
                 * too: for work that reads a file more than once */
} coffer_remote_opts;

#define COFFER_REMOTE_OPTS_INIT                                        \
    {                                                                  \
        sizeof(coffer_remote_opts), false, 0, 0, 0, NULL, false, false \
    }

COFFER_API void coffer_remote_opts_init(coffer_remote_opts *opts, uint32_t struct_size);

/* Settings of the process. opts : not NULL. Not while another thread opens a remote file. */
COFFER_API_STATUS coffer_remote_configure(const coffer_remote_opts *opts, coffer_error *err);

/* A name for an address that is safe to show: an address with a password or a query is remembered, and its
 * name, without them, can be opened in its place from now on. *out : free with coffer_free. */
COFFER_API_STATUS coffer_remote_name(char **out, const char *address, coffer_error *err);

/* False for a remote file whose server sends neither an ETag nor a time of change: when such a file is
 * replaced by one of the same size while it is read, nobody notices. True for all other sources. */
COFFER_API bool coffer_source_is_pinned(const coffer_source *src);

/* True for http://, https://, s3:// and hf://. */
COFFER_API bool coffer_is_remote(const char *path);

/* Makes an empty file under a temporary name in the folder of `path`, for data that is not wanted under its
 * own name yet. Writers of this library fill it in its place when they may overwrite. out : the name; give it
 * to coffer_temporary_remove. A file that a process leaves behind when it is killed is removed by the next
 * one that makes such a file for the same path. */
COFFER_API_STATUS coffer_temporary_create(char **out, const char *path, coffer_error *err);
/* Removes the file and frees its name. A source that is open over it stays readable. NULL is allowed. */
COFFER_API void coffer_temporary_remove(char *temporary);

/* Removes every temporary file that this process is writing at the moment. Async-signal-safe: made for the
 * handler of a program that is about to die by a signal. */
COFFER_API void coffer_remove_temporaries(void);

/* From now on no call replaces a file that this process has opened for reading, by whatever path or link and
 * whether or not it is still open: such a call returns COFFER_E_INVALID_ARGUMENT, also with `overwrite`.
 * Calls that change a file in place are not affected. For programs that do one thing and end, such as a
 * command; without it, coffer_convert refuses to replace its own input. Cannot be undone. */
COFFER_API void coffer_protect_inputs(void);
/* From now on a pipe, device or standard input that was opened for reading is kept: opening it again gives
 * the same bytes, instead of none or of waiting for another writer. For programs that do one thing and end:
 * calls that take a path may open it several times. Cannot be undone. */
COFFER_API void coffer_keep_streams(void);

/* Rolls back an interrupted in-place update of `path`: the file then has the bytes it had before. COFFER_OK
 * also when there was nothing to do; *done is true when an update was rolled back (may be NULL). */
COFFER_API_STATUS coffer_roll_back(bool *done, const char *path, coffer_error *err);

COFFER_END_DECLS

#endif
