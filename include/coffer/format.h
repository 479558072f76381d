#ifndef COFFER_FORMAT_H
#define COFFER_FORMAT_H

#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/report.h"
#include "coffer/source.h"

COFFER_BEGIN_DECLS

/* The formats of the library, and the calls that work on a file of any of them. Sources are borrowed for the
 * call. An `out` of type coffer_node or coffer_report belongs to the caller, fresh from its _new. When a call
 * fails, `out` keeps the values that were read before the failure, so that a damaged file can be shown as far
 * as it is readable. COFFER_E_UNSUPPORTED when the format does not support the operation. */
typedef struct coffer_format coffer_format;

COFFER_API size_t coffer_format_count(void);
COFFER_API const coffer_format *coffer_format_at(size_t index);          /* NULL past the end */
COFFER_API const coffer_format *coffer_format_by_name(const char *name); /* "mscan"; NULL if unknown */
COFFER_API const char *coffer_format_name(const coffer_format *format);
COFFER_API const char *coffer_format_extension(const coffer_format *format); /* ".mscan" */
COFFER_API const char *coffer_format_title(const coffer_format *format);     /* "neural-network scan" */

/* Operations and options that a format may support. */
typedef enum coffer_capability {
    COFFER_CAN_DESCRIBE = 0,
    COFFER_CAN_CHECK,
    COFFER_CAN_LIST,
    COFFER_CAN_DIFF,
    COFFER_CAN_REPAIR,
    COFFER_CAN_COMPACT,
    COFFER_CAN_COMPRESS,
    COFFER_CAN_RECOVER,          /* a file from the parts of a killed recording */
    COFFER_CAN_HASH,             /* coffer_describe_opts.hash */
    COFFER_CAN_SHOW_GENERATIONS, /* coffer_describe_opts.generation, coffer_repair_opts.to_generation */
    COFFER_CAN_REPAIR_FROM_COPY, /* coffer_repair_opts.copy */
    COFFER_CAN_OPEN_AS_TENSORS   /* coffer_tensors_open */
} coffer_capability;

COFFER_API bool coffer_format_can(const coffer_format *format, coffer_capability what);
/* Names for coffer_list_opts.what; the first is the default. */
COFFER_API size_t coffer_format_list_count(const coffer_format *format);
COFFER_API const char *coffer_format_list_at(const coffer_format *format,
                                             size_t index); /* NULL past the end */
/* Suffixes of the files that a recording writes next to the final name: ".part". */
COFFER_API size_t coffer_format_part_suffix_count(const coffer_format *format);
COFFER_API const char *coffer_format_part_suffix_at(const coffer_format *format,
                                                    size_t index); /* NULL past the end */

/* Recognizes a file by its first bytes, never by its name.
 * COFFER_E_NOT_RECOGNISED with the first bytes and the known formats in the text; COFFER_E_BAD_MAGIC when the
 * bytes are a mangled magic of a known format, with a guess at what mangled it. */
COFFER_API_STATUS coffer_identify(const coffer_format **out, coffer_source *src, coffer_error *err);
COFFER_API_STATUS coffer_identify_path(const coffer_format **out, const char *path, coffer_error *err);

/* The version of a file, and the newest one that this library knows. */
typedef struct coffer_format_version {
    uint32_t struct_size;
    bool has_minor; /* false: one number, `major` */
    bool is_newer;  /* the file is read as far as it is understood; warn the user */
    uint32_t major, minor;
    uint32_t newest_major, newest_minor;
} coffer_format_version;

#define COFFER_FORMAT_VERSION_INIT                      \
    {                                                   \
        sizeof(coffer_format_version), 0, 0, 0, 0, 0, 0 \
    }
COFFER_API void coffer_format_version_init(coffer_format_version *version, uint32_t struct_size);

/* Reads the version of a file of a format; zeros for a format whose readers accept only one version. Reads
 * the first bytes only. out->struct_size must be set. */
COFFER_API_STATUS coffer_format_get_version(coffer_format_version *out, const coffer_format *format,
                                            coffer_source *src, coffer_error *err);

typedef struct coffer_check_opts {
    uint32_t struct_size;
    bool full;        /* check payloads and checksums too, not only the structure */
    uint32_t threads; /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
    const uint8_t *key; /* 32 bytes: with `full`, encrypted payloads are decrypted and checked; NULL = not */
    bool decode;        /* coffer_file_check: decode the pictures and sounds of a training set */
} coffer_check_opts;

#define COFFER_CHECK_OPTS_INIT                                       \
    {                                                                \
        sizeof(coffer_check_opts), false, 0, NULL, NULL, NULL, false \
    }

typedef struct coffer_describe_opts {
    uint32_t struct_size;
    uint64_t generation; /* an older state of the file; 0 = the current one */
    bool hash;           /* compute a hash of the content that does not depend on the layout; reads all */
    uint32_t threads;    /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
    bool verbose; /* add where the parts of the file are, and other internals */
} coffer_describe_opts;

#define COFFER_DESCRIBE_OPTS_INIT                                    \
    {                                                                \
        sizeof(coffer_describe_opts), 0, false, 0, NULL, NULL, false \
    }

COFFER_API void coffer_check_opts_init(coffer_check_opts *opts, uint32_t struct_size);
COFFER_API void coffer_describe_opts_init(coffer_describe_opts *opts, uint32_t struct_size);

/* Fills `out` with a summary whose keys are the public keys of `coffer info --json`, after file, format and
 * size. The calls with `format` are for a file that was identified before. */
COFFER_API_STATUS coffer_describe(coffer_node *out, coffer_source *src, const coffer_describe_opts *opts,
                                  coffer_error *err);
COFFER_API_STATUS coffer_format_describe(coffer_node *out, const coffer_format *format, coffer_source *src,
                                         const coffer_describe_opts *opts, coffer_error *err);

/* Collects findings. COFFER_OK when the check ran to its end, whatever it found; an error only when the file
 * could not be read. A file that no format recognizes gives the finding not-recognised or bad-magic. */
COFFER_API_STATUS coffer_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                               coffer_error *err);
COFFER_API_STATUS coffer_format_check(coffer_report *out, const coffer_format *format, coffer_source *src,
                                      const coffer_check_opts *opts, coffer_error *err);

typedef struct coffer_list_opts {
    uint32_t struct_size;
    const char *what; /* one of coffer_format_list_at; NULL = the first */
    const char *glob; /* only entries whose name matches; NULL = all */
    const coffer_limits *limits;
    bool natural; /* tensors by name, layer 2 before layer 10, instead of in the order of the file */
    /* Only samples that meet all of these (coffer_mldf_select); for the list "samples", which is then the
     * default. */
    const char *const *where;
    size_t where_count;
} coffer_list_opts;

#define COFFER_LIST_OPTS_INIT                                      \
    {                                                              \
        sizeof(coffer_list_opts), NULL, NULL, NULL, false, NULL, 0 \
    }

COFFER_API void coffer_list_opts_init(coffer_list_opts *opts, uint32_t struct_size);

/* Fills `out` with one map per entry, all with the same keys, in a list named "entries". */
COFFER_API_STATUS coffer_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                              coffer_error *err);
COFFER_API_STATUS coffer_format_list(coffer_node *out, const coffer_format *format, coffer_source *src,
                                     const coffer_list_opts *opts, coffer_error *err);

typedef struct coffer_diff_opts {
    uint32_t struct_size;
    double tolerance;   /* differences up to this do not count */
    uint64_t max_shown; /* number of single differences to list */
    uint32_t threads;   /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
    const uint8_t *key;   /* 32 bytes: encrypted payloads are compared decrypted; NULL = as stored */
    bool header;          /* also compare the header: layout, offsets, checksums; not part of "equal" */
    const char *align_by; /* training sets: the field that names a sample; NULL = found, or by content */
    const char *group_by; /* scans: sum up differences by "param" (NULL), "layer", "token" or "sequence" */
} coffer_diff_opts;

#define COFFER_DIFF_OPTS_INIT                                                     \
    {                                                                             \
        sizeof(coffer_diff_opts), 0.0, 20, 0, NULL, NULL, NULL, false, NULL, NULL \
    }

COFFER_API void coffer_diff_opts_init(coffer_diff_opts *opts, uint32_t struct_size);

/* Compares two files of the same format. `out` gets "equal" (bool) and the differences. */
COFFER_API_STATUS coffer_diff(coffer_node *out, coffer_source *a, coffer_source *b,
                              const coffer_diff_opts *opts, coffer_error *err);
COFFER_API_STATUS coffer_format_diff(coffer_node *out, const coffer_format *format, coffer_source *a,
                                     coffer_source *b, const coffer_diff_opts *opts, coffer_error *err);

typedef struct coffer_repair_opts {
    uint32_t struct_size;
    bool keep_tail;         /* also keep complete records that an unfinished append left */
    bool overwrite;         /* replace an output that exists; not used by coffer_repair_in_place */
    uint64_t to_generation; /* go back to this state of the file; 0 = the newest intact one */
    const coffer_limits *limits;
    const coffer_progress *progress;
    coffer_source *copy; /* a second copy of the file, to replace lost parts from; borrowed; NULL = none */
    const uint8_t *key;  /* 32 bytes, for encrypted payloads; NULL = none */
    bool in_place;       /* the output will take the name of the input; set by coffer_repair_in_place */
} coffer_repair_opts;

#define COFFER_REPAIR_OPTS_INIT                                                    \
    {                                                                              \
        sizeof(coffer_repair_opts), false, false, 0, NULL, NULL, NULL, NULL, false \
    }

COFFER_API void coffer_repair_opts_init(coffer_repair_opts *opts, uint32_t struct_size);

/* Writes what can be saved of `src` to out_path, which appears complete or not at all; `out` lists what was
 * repaired and what was lost. An intact file is copied unchanged and the report has no findings. */
COFFER_API_STATUS coffer_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                const coffer_repair_opts *opts, coffer_error *err);
COFFER_API_STATUS coffer_format_repair(coffer_report *out, const coffer_format *format, coffer_source *src,
                                       const char *out_path, const coffer_repair_opts *opts,
                                       coffer_error *err);

/* Repairs a file in its own place. The result is written under a temporary name, checked in full, and renamed
 * over the file; the original stays as "PATH.orig". Holds the write lock from before the repair to its end.
 * src      : a file that was opened by its path; the repair may follow a symbolic link.
 * left     : the findings of the check of the result; may be NULL, then it is not checked.
 * original : the path of the kept original, free with coffer_free(); may be NULL; untouched on failure.
 * COFFER_E_CHANGED when the file changed since `src` was opened, COFFER_E_LOCKED while another program writes
 * it, COFFER_E_EXISTS when "PATH.orig" exists, COFFER_E_INTERRUPTED_UPDATE when it has to be rolled back
 * first (coffer_roll_back). On failure the file is as it was. */
COFFER_API_STATUS coffer_repair_in_place(coffer_report *out, coffer_report *left, char **original,
                                         coffer_source *src, const coffer_repair_opts *opts,
                                         coffer_error *err);

typedef struct coffer_compact_opts {
    uint32_t struct_size;
    bool overwrite; /* replace out_path if it exists; else COFFER_E_EXISTS */
    const coffer_limits *limits;
    const coffer_progress *progress;
    bool allow_damaged; /* copy data whose checksum is wrong, and record that; else COFFER_E_BAD_CHECKSUM */
    uint64_t keep;      /* number of states to keep, of formats with a history; 0 = the newest only */
} coffer_compact_opts;

#define COFFER_COMPACT_OPTS_INIT                                 \
    {                                                            \
        sizeof(coffer_compact_opts), false, NULL, NULL, false, 0 \
    }

COFFER_API void coffer_compact_opts_init(coffer_compact_opts *opts, uint32_t struct_size);

/* Rewrites a file without its unused bytes, under the write lock of the old one. out_path : NULL = replace
 * `path` atomically. `out` gets "size_before", "size_after" and what was dropped. */
COFFER_API_STATUS coffer_compact(coffer_node *out, const char *path, const char *out_path,
                                 const coffer_compact_opts *opts, coffer_error *err);

typedef struct coffer_compress_opts {
    uint32_t struct_size;
    bool plain;     /* write the uncompressed form instead */
    int level;      /* 0 = fast; the others depend on the format */
    bool overwrite; /* replace out_path if it exists; else COFFER_E_EXISTS */
    const coffer_limits *limits;
    const coffer_progress *progress;
    bool drop_extensions; /* traces: leave out extension events, which a plain one cannot have */
    bool archive;         /* traces: the smallest form, slower to write */
} coffer_compress_opts;

#define COFFER_COMPRESS_OPTS_INIT                                               \
    {                                                                           \
        sizeof(coffer_compress_opts), false, 0, false, NULL, NULL, false, false \
    }

COFFER_API void coffer_compress_opts_init(coffer_compress_opts *opts, uint32_t struct_size);

/* Rewrites a file compressed or plain, with the same content. out_path : NULL = replace `path` atomically.
 * `out` gets "size_before", "size_after" and what the format adds. */
COFFER_API_STATUS coffer_compress(coffer_node *out, const char *path, const char *out_path,
                                  const coffer_compress_opts *opts, coffer_error *err);

/* Builds the file `path` from the parts that a killed recording left next to it, and removes them; `out`
 * lists what may be missing. COFFER_E_NOT_FOUND without parts, COFFER_E_LOCKED while the recording
 * is running, COFFER_E_EXISTS when the file exists and opts->overwrite is not set. */
COFFER_API_STATUS coffer_recover(const coffer_format **format, coffer_report *out, const char *path,
                                 const coffer_repair_opts *opts, coffer_error *err);
/* The path to recover, when `path` is one of the parts of a recording, or names a file of which only parts
 * exist; else COFFER_E_NOT_FOUND. out : free with coffer_free(). */
COFFER_API_STATUS coffer_recover_path(char **out, const char *path, coffer_error *err);

COFFER_END_DECLS

#endif
