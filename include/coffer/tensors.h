#ifndef COFFER_TENSORS_H
#define COFFER_TENSORS_H

#include "coffer/dtype.h"
#include "coffer/error.h"
#include "coffer/format.h"
#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/report.h"
#include "coffer/source.h"

COFFER_BEGIN_DECLS

/* A set of named tensors in any kind of file: MCF, safetensors (one file, an index of shards, or a Hugging
 * Face folder), GGUF, NPZ, NPY. */
typedef struct coffer_tensors coffer_tensors;

typedef struct coffer_tensors_open_opts {
    uint32_t struct_size;
    const coffer_limits *limits;
    coffer_access access; /* for files that are opened by path */
    bool allow_damaged;   /* read payloads whose checksum is wrong instead of COFFER_E_BAD_CHECKSUM */
} coffer_tensors_open_opts;

#define COFFER_TENSORS_OPEN_OPTS_INIT                                     \
    {                                                                     \
        sizeof(coffer_tensors_open_opts), NULL, COFFER_ACCESS_AUTO, false \
    }

COFFER_API void coffer_tensors_open_opts_init(coffer_tensors_open_opts *out, uint32_t struct_size);

/* Belongs to the set; may get members at its end. */
typedef struct coffer_tensor {
    const char *name;      /* NUL-terminated, UTF-8 */
    coffer_dtype dtype;    /* COFFER_DTYPE_NONE for a type that only this kind of file has, see type_name */
    const char *type_name; /* the file's own name of the type: "BF16", "Q4_K" */
    uint32_t rank;
    const uint64_t *dims; /* outermost first, also where the file stores the innermost first */
    uint64_t elements;
    uint64_t size;    /* bytes of the payload */
    const char *file; /* the shard that contains it */
    uint64_t offset;  /* of the payload in that file; COFFER_OFFSET_NONE when it is compressed */
} coffer_tensor;

/* Opens the tensors of a source, whose kind is detected by content.
 * src : borrowed, must outlive the set.     opts : NULL for defaults.
 * out : owned by the caller, free with coffer_tensors_close(); untouched on failure.
 * Thread safety: after success, all calls that take a const set may run concurrently. */
COFFER_API_STATUS coffer_tensors_open(coffer_tensors **out, coffer_source *src,
                                      const coffer_tensors_open_opts *opts, coffer_error *err);
/* The same by path, of a file or a folder; the set owns its sources. */
COFFER_API_STATUS coffer_tensors_open_path(coffer_tensors **out, const char *path,
                                           const coffer_tensors_open_opts *opts, coffer_error *err);
COFFER_API void coffer_tensors_close(coffer_tensors *set);

COFFER_API const char *coffer_tensors_kind(const coffer_tensors *set);  /* "safetensors", "gguf", "mcf" … */
COFFER_API const char *coffer_tensors_title(const coffer_tensors *set); /* "safetensors model" */
COFFER_API size_t coffer_tensors_count(const coffer_tensors *set);
/* Bytes of all payloads. */
COFFER_API uint64_t coffer_tensors_size(const coffer_tensors *set);
/* True when the tensors are in more than one file. */
COFFER_API bool coffer_tensors_is_sharded(const coffer_tensors *set);
/* Sorted by name; NULL past the end. */
COFFER_API const coffer_tensor *coffer_tensors_at(const coffer_tensors *set, size_t index);
/* The index of a name, or COFFER_INDEX_NONE. */
COFFER_API size_t coffer_tensors_find(const coffer_tensors *set, const char *name);
/* The name of its dtype ("f32"), or the file's own name of a type that only this kind of file has ("Q4_K").
 */
COFFER_API const char *coffer_tensor_dtype_name(const coffer_tensor *tensor);

/* Adds the numbers of tensors and parameters, the totals by type and the metadata to `out`, a map. */
COFFER_API_STATUS coffer_tensors_describe(coffer_node *out, const coffer_tensors *set, coffer_error *err);
/* Adds the metadata of the file to `out`, a map: safetensors __metadata__, GGUF keys, ModelInfo. */
COFFER_API_STATUS coffer_tensors_metadata(coffer_node *out, const coffer_tensors *set, coffer_error *err);
/* Adds one value of the metadata to `out`, a map, under its name and in full; coffer_tensors_metadata
 * shortens long arrays. name : a key of the file, also inside of nested maps ("rope.factor"); keys of an MCF
 * file may begin with "kv.". COFFER_E_NOT_FOUND when the file does not have it. */
COFFER_API_STATUS coffer_tensors_metadata_value(coffer_node *out, const coffer_tensors *set, const char *name,
                                                coffer_error *err);
/* Adds the list "entries" to `out`: name, dtype, shape, offset and size of each tensor, and its file when
 * there are several. opts : NULL for defaults. */
COFFER_API_STATUS coffer_tensors_list(coffer_node *out, const coffer_tensors *set,
                                      const coffer_list_opts *opts, coffer_error *err);
/* Opening a set has checked its structure. With opts->full, reads every payload too and adds a finding for
 * each that cannot be read. opts : NULL for defaults. */
COFFER_API_STATUS coffer_tensors_check(coffer_report *out, const coffer_tensors *set,
                                       const coffer_check_opts *opts, coffer_error *err);

/* Saves the complete tensors of a damaged safetensors or GGUF file to out_path, which appears complete or not
 * at all. Of a folder or an index, the tensors of all shards go into one safetensors file. `out` gets an
 * error for each lost tensor; the new file lists them too, and coffer_tensors_check reports them. opts : NULL
 * for defaults; keep_tail, to_generation, copy and key are not used. COFFER_E_UNSUPPORTED for other kinds of
 * files; an error when no tensor is complete. */
COFFER_API_STATUS coffer_tensors_repair(coffer_report *out, const char *path, const char *out_path,
                                        const coffer_repair_opts *opts, coffer_error *err);

/* Reads payload bytes [begin, begin + len). */
COFFER_API_STATUS coffer_tensors_read(void *out, const coffer_tensors *set, size_t tensor, uint64_t begin,
                                      size_t len, coffer_error *err);
/* Says which tensors will be read soon, so that a remote file can be asked for them ahead of the reads, and
 * for nothing else. Returns at once; has no effect where it would not help. tensors : NULL = all of them. */
COFFER_API void coffer_tensors_prefetch(const coffer_tensors *set, const size_t *tensors, size_t count);
/* The payload itself where the file stores it plainly and is mapped or in memory, else NULL. Call
 * coffer_tensors_intact after use. */
COFFER_API const uint8_t *coffer_tensors_view(const coffer_tensors *set, size_t tensor);
/* Compares payload bytes [begin, begin + len) with the checksums that cover them, as coffer_tensors_read
 * does; for use with coffer_tensors_view. COFFER_OK where the file has no checksums, and with allow_damaged.
 */
COFFER_API_STATUS coffer_tensors_verify(const coffer_tensors *set, size_t tensor, uint64_t begin,
                                        uint64_t len, coffer_error *err);
/* COFFER_E_CHANGED when one of the files was truncated while it was mapped: views may have shown zeros. */
COFFER_API_STATUS coffer_tensors_intact(const coffer_tensors *set, coffer_error *err);
/* Reads elements [first, first + count) as `dtype` (F32, F64, F16, BF16 …); quantized ones are decoded. The
 * range of a quantized tensor must consist of whole rows. */
COFFER_API_STATUS coffer_tensors_read_as(void *out, coffer_dtype dtype, const coffer_tensors *set,
                                         size_t tensor, uint64_t first, uint64_t count, coffer_error *err);

/* ---- Writing one tensor ---- */

typedef struct coffer_tensors_write_opts {
    uint32_t struct_size;
    const char
        *kind; /* "npy", "safetensors", "csv" or "raw"; NULL = by the extension of the path, else csv */
    /* Write float32. Without it a quantized tensor can only be written raw, and all of it; other types stay
     * as they are where the kind has them (NumPy has no bfloat16: it becomes float32, which is exact). */
    bool dequantize;
    bool overwrite;                /* replace an existing file instead of failing with COFFER_E_EXISTS */
    uint64_t first_row, row_count; /* of the first dimension; UINT64_MAX = all that follow */
    const coffer_progress *progress;
} coffer_tensors_write_opts;

#define COFFER_TENSORS_WRITE_OPTS_INIT                                             \
    {                                                                              \
        sizeof(coffer_tensors_write_opts), NULL, false, false, 0, UINT64_MAX, NULL \
    }

COFFER_API void coffer_tensors_write_opts_init(coffer_tensors_write_opts *out, uint32_t struct_size);

/* Writes a tensor, or some of its rows, as a file for other programs. path : "-" = standard output. opts :
 * NULL for defaults. COFFER_E_INVALID_ARGUMENT for rows that the tensor does not have and for an unknown
 * kind; COFFER_E_UNSUPPORTED where the kind cannot hold the tensor. */
COFFER_API_STATUS coffer_tensors_write(const char *path, const coffer_tensors *set, size_t tensor,
                                       const coffer_tensors_write_opts *opts, coffer_error *err);

/* ---- Statistics ---- */

#define COFFER_TENSOR_HISTOGRAM_BINS 64

/* Belongs to the statistics; may get members at its end. */
typedef struct coffer_tensor_stats {
    size_t tensor; /* its index in the set */
    uint64_t elements, nans, infinities, zeros;
    uint64_t outliers;                                /* farther than six standard deviations from the mean */
    double min, max, mean, std;                       /* of the finite values */
    uint64_t histogram[COFFER_TENSOR_HISTOGRAM_BINS]; /* equal bins from min to max */
} coffer_tensor_stats;

typedef struct coffer_tensors_stats coffer_tensors_stats;

typedef struct coffer_tensors_stats_opts {
    uint32_t struct_size;
    uint32_t threads;              /* 0 = one per core */
    const char *include, *exclude; /* globs on the name; NULL = all, none */
    const coffer_progress *progress;
} coffer_tensors_stats_opts;

#define COFFER_TENSORS_STATS_OPTS_INIT                         \
    {                                                          \
        sizeof(coffer_tensors_stats_opts), 0, NULL, NULL, NULL \
    }

COFFER_API void coffer_tensors_stats_opts_init(coffer_tensors_stats_opts *out, uint32_t struct_size);

/* Computes the statistics of the selected tensors. Reads every payload twice: histogram and outliers need
 * the results of the first pass. opts : NULL for defaults. */
COFFER_API_STATUS coffer_tensors_stats_new(coffer_tensors_stats **out, const coffer_tensors *set,
                                           const coffer_tensors_stats_opts *opts, coffer_error *err);
COFFER_API void coffer_tensors_stats_free(coffer_tensors_stats *stats);
COFFER_API size_t coffer_tensors_stats_count(const coffer_tensors_stats *stats);
/* In the order of the set; NULL past the end. */
COFFER_API const coffer_tensor_stats *coffer_tensors_stats_at(const coffer_tensors_stats *stats,
                                                              size_t index);

/* ---- Comparing ---- */

typedef struct coffer_tensors_diff_opts {
    uint32_t struct_size;
    uint32_t threads;              /* 0 = one per core */
    const char *include, *exclude; /* globs on the name; NULL = all, none */
    double tolerance;              /* absolute difference of two elements that count as equal */
    uint64_t max_shown;            /* tensors in each list of the result */
    const coffer_progress *progress;
} coffer_tensors_diff_opts;

#define COFFER_TENSORS_DIFF_OPTS_INIT                                  \
    {                                                                  \
        sizeof(coffer_tensors_diff_opts), 0, NULL, NULL, 0.0, 20, NULL \
    }

COFFER_API void coffer_tensors_diff_opts_init(coffer_tensors_diff_opts *out, uint32_t struct_size);

/* Compares the names, shapes, types, metadata and values of two sets, and the files of two models: those in a
 * folder or an MCF file next to the tensors, JSON key by key. Adds "equal" and the differences to
 * `out`, for each tensor max_abs, rmse, snr_db and cosine. opts : NULL for defaults. */
COFFER_API_STATUS coffer_tensors_diff(coffer_node *out, const coffer_tensors *a, const coffer_tensors *b,
                                      const coffer_tensors_diff_opts *opts, coffer_error *err);

/* ---- Packing ---- */

typedef struct coffer_mcf_pack_opts {
    uint32_t struct_size;
    coffer_dtype cast; /* F16, BF16, F32: convert float tensors of other types; COFFER_DTYPE_NONE = keep */
    const char *const *include, *const *exclude; /* globs on tensor names */
    size_t include_count, exclude_count;
    uint32_t align; /* as in coffer_mcf_writer_opts */
    bool no_dedup, no_checksums;
    bool overwrite;         /* replace an existing file instead of failing with COFFER_E_EXISTS */
    const char *model_name; /* NULL = the name of the folder or file */
    uint32_t threads;       /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
    /* Copy tensors of an MCF file whose checksum is wrong, and record the damage in the output; otherwise
     * COFFER_E_BAD_CHECKSUM. */
    bool allow_damaged;
    /* Leave out the files of a folder that are not sections of their own, and the headers of safetensors
     * files: the folder cannot be restored then. */
    bool no_files;
    uint64_t max_file_bytes; /* larger files of a folder are left out; 0 = 64 MiB */
    /* NULL, or a map that gets "files": found, packed, left_out, a list of name, size and reason, and
     * complete, which is false when some of them could not be read. */
    coffer_node *report;
    coffer_report *notes; /* gets what was decoded or converted; NULL = not wanted */
} coffer_mcf_pack_opts;

#define COFFER_MCF_PACK_OPTS_INIT                                                                           \
    {                                                                                                       \
        sizeof(coffer_mcf_pack_opts), COFFER_DTYPE_NONE, NULL, NULL, 0, 0, 0, false, false, false, NULL, 0, \
            NULL, NULL, false, false, 0, NULL, NULL                                                         \
    }

COFFER_API void coffer_mcf_pack_opts_init(coffer_mcf_pack_opts *out, uint32_t struct_size);

/* Packs folders and files into one MCF file: tensors, ModelInfo, config, tokenizer and the other files of a
 * folder. opts : NULL for defaults. */
COFFER_API_STATUS coffer_mcf_pack(const char *out_path, const char *const *inputs, size_t input_count,
                                  const coffer_mcf_pack_opts *opts, coffer_error *err);

typedef struct coffer_mcf_unpack_opts {
    uint32_t struct_size;
    bool overwrite; /* replace files that exist instead of failing with COFFER_E_EXISTS */
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_mcf_unpack_opts;

#define COFFER_MCF_UNPACK_OPTS_INIT                       \
    {                                                     \
        sizeof(coffer_mcf_unpack_opts), false, NULL, NULL \
    }

COFFER_API void coffer_mcf_unpack_opts_init(coffer_mcf_unpack_opts *out, uint32_t struct_size);

/* Restores the folder that a model was packed from. Weights are restored byte for byte when the model has
 * their safetensors headers and unconverted tensors; otherwise they are written as model.safetensors.
 * out : may be NULL; gets "files", a list of name, size, exact (bool) and reason (why a file is not exact),
 * and "exact", the number of exact ones. folder : created when it does not exist. opts : NULL for defaults.
 */
COFFER_API_STATUS coffer_mcf_unpack(coffer_node *out, const char *folder, const char *path,
                                    const coffer_mcf_unpack_opts *opts, coffer_error *err);

COFFER_END_DECLS

#endif
