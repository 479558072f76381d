#ifndef COFFER_FORMAT_H
#define COFFER_FORMAT_H

#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/report.h"
#include "coffer/source.h"

COFFER_BEGIN_DECLS

/* The formats the library knows, and what can be done with any of them without knowing which it is. Sources
 * are borrowed for the call. An `out` of type coffer_node or coffer_report is the caller's, fresh from its
 * _new; after a failure it may hold a part. COFFER_E_UNSUPPORTED when the format of the file does not have
 * the verb. */
typedef struct coffer_format coffer_format;

COFFER_API size_t coffer_format_count(void);
COFFER_API const coffer_format *coffer_format_at(size_t index);          /* NULL past the end */
COFFER_API const coffer_format *coffer_format_by_name(const char *name); /* "mscan"; NULL if there is none */
COFFER_API const char *coffer_format_name(const coffer_format *format);
COFFER_API const char *coffer_format_extension(const coffer_format *format); /* ".mscan" */
COFFER_API const char *coffer_format_title(const coffer_format *format);     /* "neural-network scan" */

/* Recognizes a file by its first bytes, never by its name.
 * COFFER_E_NOT_RECOGNISED with the first bytes and the known formats in the text; COFFER_E_BAD_MAGIC when the
 * bytes are a mangled magic of a known format, with a guess at what mangled it. */
COFFER_API coffer_status coffer_identify(const coffer_format **out, coffer_source *src, coffer_error *err);

typedef struct coffer_check_opts {
    uint32_t struct_size;
    bool full;        /* payloads and checksums too, not only the structure */
    uint32_t threads; /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
    const uint8_t *key; /* 32 bytes: with `full`, encrypted payloads are decrypted too; NULL = they are not */
} coffer_check_opts;

#define COFFER_CHECK_OPTS_INIT                                \
    {                                                         \
        sizeof(coffer_check_opts), false, 0, NULL, NULL, NULL \
    }

typedef struct coffer_describe_opts {
    uint32_t struct_size;
    uint64_t generation; /* an older state of the file, where the format keeps them; 0 = the active one */
    bool hash;           /* a hash of the content that does not depend on the layout; reads everything */
    uint32_t threads;    /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_describe_opts;

#define COFFER_DESCRIBE_OPTS_INIT                             \
    {                                                         \
        sizeof(coffer_describe_opts), 0, false, 0, NULL, NULL \
    }

/* Fills `out` with a summary whose keys are the public keys of `coffer info --json`, after file, format and
 * size. */
COFFER_API coffer_status coffer_describe(coffer_node *out, coffer_source *src,
                                         const coffer_describe_opts *opts, coffer_error *err);

/* Collects findings. COFFER_OK when the check ran to its end, whatever it found; an error only when the file
 * could not be read. A file that no format recognizes gives the finding not-recognised or bad-magic. */
COFFER_API coffer_status coffer_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                      coffer_error *err);

typedef struct coffer_list_opts {
    uint32_t struct_size;
    const char *what; /* which of a format's lists; NULL = its main one */
    const char *glob; /* on the name; NULL = all */
    const coffer_limits *limits;
} coffer_list_opts;

#define COFFER_LIST_OPTS_INIT                      \
    {                                              \
        sizeof(coffer_list_opts), NULL, NULL, NULL \
    }

/* Fills `out` with one map per entry, all with the same keys, in a list named "entries". */
COFFER_API coffer_status coffer_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                     coffer_error *err);

typedef struct coffer_diff_opts {
    uint32_t struct_size;
    double tolerance;   /* differences up to this do not count */
    uint64_t max_shown; /* how many single differences are listed */
    uint32_t threads;   /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
    const uint8_t *key; /* 32 bytes: encrypted payloads are compared by what they hold; NULL = as stored */
} coffer_diff_opts;

#define COFFER_DIFF_OPTS_INIT                                  \
    {                                                          \
        sizeof(coffer_diff_opts), 0.0, 20, 0, NULL, NULL, NULL \
    }

/* Compares two files of the same format. out gets "equal" (bool) and what differs. */
COFFER_API coffer_status coffer_diff(coffer_node *out, coffer_source *a, coffer_source *b,
                                     const coffer_diff_opts *opts, coffer_error *err);

typedef struct coffer_repair_opts {
    uint32_t struct_size;
    bool keep_tail; /* take in whole records that an unfinished append left behind */
    bool overwrite; /* replace an output that exists */
    uint64_t
        to_generation; /* go back to an older state, where the format keeps them; 0 = the newest whole one */
    const coffer_limits *limits;
    const coffer_progress *progress;
    coffer_source *copy; /* a second copy of the file that lost parts are taken from, where the format can;
                          * borrowed; NULL = none */
    const uint8_t *key;  /* 32 bytes, where payloads can be encrypted; NULL = none */
} coffer_repair_opts;

#define COFFER_REPAIR_OPTS_INIT                                             \
    {                                                                       \
        sizeof(coffer_repair_opts), false, false, 0, NULL, NULL, NULL, NULL \
    }

/* Writes what can be saved of `src` to out_path (replaced atomically, never the input's own bytes in place);
 * `out` says what was done and what was lost. A clean file is copied as it is and the report has no finding.
 */
COFFER_API coffer_status coffer_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                       const coffer_repair_opts *opts, coffer_error *err);

typedef struct coffer_compact_opts {
    uint32_t struct_size;
    bool exclusive; /* fail with COFFER_E_EXISTS when out_path exists */
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_compact_opts;

#define COFFER_COMPACT_OPTS_INIT                       \
    {                                                  \
        sizeof(coffer_compact_opts), false, NULL, NULL \
    }

/* Writes a file without the bytes that nothing refers to any more, under the write lock of the old one.
 * out_path : NULL = replace `path` atomically. `out` gets "size_before", "size_after" and what was dropped.
 */
COFFER_API coffer_status coffer_compact(coffer_node *out, const char *path, const char *out_path,
                                        const coffer_compact_opts *opts, coffer_error *err);

typedef struct coffer_compress_opts {
    uint32_t struct_size;
    bool plain;     /* the other way: no compression, and nothing that a plain file cannot have */
    int level;      /* 0 = fast; what others there are depends on the format */
    bool exclusive; /* fail with COFFER_E_EXISTS when out_path exists */
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_compress_opts;

#define COFFER_COMPRESS_OPTS_INIT                                 \
    {                                                             \
        sizeof(coffer_compress_opts), false, 0, false, NULL, NULL \
    }

/* Writes a file anew, compressed or plain; what it holds stays the same. out_path : NULL = replace `path`
 * atomically. `out` gets "size_before", "size_after" and what the format adds. */
COFFER_API coffer_status coffer_compress(coffer_node *out, const char *path, const char *out_path,
                                         const coffer_compress_opts *opts, coffer_error *err);

/* Makes the file `path` of the parts that a recording which was killed left beside it, and removes them;
 * `out` says what may be missing. COFFER_E_NOT_FOUND when there are none, COFFER_E_LOCKED while the recording
 * is under way, COFFER_E_EXISTS when the file is there and opts->overwrite is not set. */
COFFER_API coffer_status coffer_recover(const coffer_format **format, coffer_report *out, const char *path,
                                        const coffer_repair_opts *opts, coffer_error *err);

COFFER_END_DECLS

#endif
