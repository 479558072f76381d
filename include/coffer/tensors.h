#ifndef COFFER_TENSORS_H
#define COFFER_TENSORS_H

#include "coffer/dtype.h"
#include "coffer/error.h"
#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/report.h"
#include "coffer/source.h"

COFFER_BEGIN_DECLS

/* A set of named tensors, whatever file they are in: MCF, safetensors (one file, an index of shards, or a
 * Hugging Face folder), GGUF, NPZ, NPY. */
typedef struct coffer_tensors coffer_tensors;

typedef struct coffer_tensors_open_opts {
    uint32_t struct_size;
    const coffer_limits *limits;
    coffer_access access; /* of the files that are opened by path */
} coffer_tensors_open_opts;

#define COFFER_TENSORS_OPEN_OPTS_INIT                              \
    {                                                              \
        sizeof(coffer_tensors_open_opts), NULL, COFFER_ACCESS_AUTO \
    }

typedef struct coffer_tensor {
    const char *name;      /* NUL-terminated, UTF-8; borrowed from the set */
    coffer_dtype dtype;    /* COFFER_DTYPE_NONE for a type of the file's own, see type_name */
    const char *type_name; /* as the file calls it: "BF16", "Q4_K" */
    uint32_t rank;
    const uint64_t *dims; /* outermost first, also where the file counts the other way; borrowed */
    uint64_t elements;
    uint64_t size;    /* bytes of the payload */
    const char *file; /* the shard it is in; borrowed */
    uint64_t offset;  /* of the payload in that file; COFFER_OFFSET_NONE when it is compressed */
} coffer_tensor;

/* path : a file or a folder. Recognized by content. */
COFFER_API coffer_status coffer_tensors_open(coffer_tensors **out, const char *path,
                                             const coffer_tensors_open_opts *opts, coffer_error *err);
/* The same for one file that is open already; src is borrowed. */
COFFER_API coffer_status coffer_tensors_from_source(coffer_tensors **out, coffer_source *src,
                                                    const coffer_tensors_open_opts *opts, coffer_error *err);
COFFER_API void coffer_tensors_close(coffer_tensors *set);

COFFER_API const char *coffer_tensors_kind(const coffer_tensors *set); /* "safetensors", "gguf", "mcf" … */
COFFER_API size_t coffer_tensors_count(const coffer_tensors *set);
COFFER_API const coffer_tensor *coffer_tensors_at(const coffer_tensors *set,
                                                  size_t index);                    /* sorted by name */
COFFER_API size_t coffer_tensors_find(const coffer_tensors *set, const char *name); /* SIZE_MAX: none */

/* Metadata as a tree: what the file says beside its tensors (safetensors __metadata__, GGUF keys, ModelInfo).
 */
COFFER_API coffer_status coffer_tensors_describe(coffer_node *out, const coffer_tensors *set,
                                                 coffer_error *err);

/* Bytes [begin, begin + len) of a payload. */
COFFER_API coffer_status coffer_tensors_read(void *out, const coffer_tensors *set, size_t tensor,
                                             uint64_t begin, size_t len, coffer_error *err);
/* Elements [first, first + count) as `dtype` (F32, F64, F16, BF16 …), decoded where they are quantized. The
 * range of a quantized tensor must be whole rows. */
COFFER_API coffer_status coffer_tensors_read_as(void *out, coffer_dtype dtype, const coffer_tensors *set,
                                                size_t tensor, uint64_t first, uint64_t count,
                                                coffer_error *err);

/* ---- Statistics ---- */

typedef struct coffer_tensor_stats {
    uint64_t elements, nans, infinities, zeros;
    uint64_t outliers;          /* farther than six deviations from the mean */
    double min, max, mean, std; /* of the finite values */
    uint64_t histogram[64];     /* even bins from min to max */
} coffer_tensor_stats;

typedef struct coffer_tensors_work {
    uint32_t struct_size;
    uint32_t threads;              /* 0 = one per core */
    const char *include, *exclude; /* globs on the name; NULL = all, none */
    double tolerance;              /* of a comparison */
    uint64_t max_shown;            /* tensors listed by a comparison */
    const coffer_progress *progress;
} coffer_tensors_work;

#define COFFER_TENSORS_WORK_INIT                                  \
    {                                                             \
        sizeof(coffer_tensors_work), 0, NULL, NULL, 0.0, 20, NULL \
    }

/* Calls `each` for every tensor in order. A status other than COFFER_OK from it stops. Histogram and outliers
 * take a second pass. */
COFFER_API coffer_status coffer_tensors_stats(const coffer_tensors *set, const coffer_tensors_work *work,
                                              coffer_status (*each)(void *context, size_t tensor,
                                                                    const coffer_tensor_stats *stats),
                                              void *context, coffer_error *err);

/* Compares two sets: names, shapes, types, metadata, values. out gets "equal" and what differs, and per
 * tensor max_abs, rmse, snr_db, cosine. */
COFFER_API coffer_status coffer_tensors_diff(coffer_node *out, const coffer_tensors *a,
                                             const coffer_tensors *b, const coffer_tensors_work *work,
                                             coffer_error *err);

/* ---- Packing ---- */

typedef struct coffer_mcf_pack_opts {
    uint32_t struct_size;
    coffer_dtype cast; /* F16 or BF16: float tensors of other types become this; COFFER_DTYPE_NONE = keep */
    const char *const *include, *const *exclude; /* globs on tensor names */
    size_t include_count, exclude_count;
    uint32_t align; /* as in coffer_mcf_writer_opts */
    bool no_dedup, no_checksums, exclusive;
    const char *model_name; /* NULL = the folder's or file's name */
    uint32_t threads;
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_mcf_pack_opts;

#define COFFER_MCF_PACK_OPTS_INIT                                                                           \
    {                                                                                                       \
        sizeof(coffer_mcf_pack_opts), COFFER_DTYPE_NONE, NULL, NULL, 0, 0, 0, false, false, false, NULL, 0, \
            NULL, NULL                                                                                      \
    }

/* Packs folders and files into one MCF file: tensors, config, tokenizer, ModelInfo. */
COFFER_API coffer_status coffer_mcf_pack(const char *out_path, const char *const *inputs, size_t input_count,
                                         const coffer_mcf_pack_opts *opts, coffer_error *err);

COFFER_END_DECLS

#endif
