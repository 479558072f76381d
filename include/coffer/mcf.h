#ifndef COFFER_MCF_H
#define COFFER_MCF_H

#include "coffer/dtype.h"
#include "coffer/error.h"
#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/quant.h"
#include "coffer/source.h"

COFFER_BEGIN_DECLS

/* MCF: a model in one file. docs/formats/mcf.md describes it. */

enum { /* section types */
       COFFER_MCF_MODEL_INFO = 0x0001,
       COFFER_MCF_QUANT_INFO = 0x0002,
       COFFER_MCF_TENSOR_INDEX = 0x0003,
       COFFER_MCF_TENSOR_DATA = 0x0004,
       COFFER_MCF_CONFIG = 0x0100,
       COFFER_MCF_GENERATION_CONFIG = 0x0101,
       COFFER_MCF_TOKENIZER = 0x0102,
       COFFER_MCF_TOKENIZER_CONFIG = 0x0103,
       COFFER_MCF_VOCAB = 0x0104,
       COFFER_MCF_MERGES = 0x0105,
       COFFER_MCF_CHECKSUMS = 0x434B0001, /* ours: a sum per MiB of the payload area */
       COFFER_MCF_QUALITY = 0x434B0002    /* ours: what quantizing has cost each tensor */
};

/* "TensorIndex", "config.json"; NULL for a type that the format does not name. */
COFFER_API const char *coffer_mcf_section_name(uint32_t type);
/* 0 when there is none of that name. */
COFFER_API uint32_t coffer_mcf_section_by_name(const char *name);

/* The number of a type in the file, and back; 0 and COFFER_DTYPE_NONE when there is none. */
COFFER_API uint32_t coffer_mcf_dtype_code(coffer_dtype dtype);
COFFER_API coffer_dtype coffer_mcf_dtype_from_code(uint32_t code);

/* Payload bytes of a tensor of that type and shape; activations : int8 and int4 with a zero point.
 * COFFER_E_SIZE_MISMATCH when they do not fit into 64 bits, COFFER_E_BAD_VALUE when the type cannot have the
 * shape. */
COFFER_API coffer_status coffer_mcf_payload_size(uint64_t *out, coffer_dtype dtype, uint32_t rank,
                                                 const uint64_t *dims, bool activations, coffer_error *err);

/* ---- Reading ---- */

typedef struct coffer_mcf coffer_mcf;

typedef struct coffer_mcf_open_opts {
    uint32_t struct_size;
    /* Check the sums of the chunks that a read touches, where the file has them; COFFER_E_MISSING at open
     * when it has none. */
    bool verify;
    /* Open what is whole of a damaged file: sections that lie outside of it are left out; tensors that do
     * stay in the list and give an error when they are read. */
    bool lenient;
    const coffer_limits *limits;
} coffer_mcf_open_opts;

#define COFFER_MCF_OPEN_OPTS_INIT                        \
    {                                                    \
        sizeof(coffer_mcf_open_opts), false, false, NULL \
    }

typedef struct coffer_mcf_section {
    uint32_t type, version;
    uint64_t offset, size;
} coffer_mcf_section;

typedef struct coffer_mcf_tensor {
    const char *name; /* not NUL-terminated; borrowed from the handle */
    size_t name_len;
    coffer_dtype dtype; /* COFFER_DTYPE_NONE: a code we do not know */
    uint32_t dtype_code;
    uint32_t rank;
    const uint64_t *dims;  /* rank of them; borrowed from the handle */
    uint64_t elements;     /* 0 also when there are more than 64 bits can count */
    uint64_t offset, size; /* of the payload in the file */
} coffer_mcf_tensor;

/* Opens a model for reading.
 * src : borrowed, must outlive the handle.     opts : NULL = defaults.
 * out : owned by the caller, coffer_mcf_close(); untouched on failure.
 * Reads header, directory and index, no payload byte. O(tensors).
 * Thread-safety: after success all calls with a const handle may run at the same time. */
COFFER_API coffer_status coffer_mcf_open(coffer_mcf **out, coffer_source *src,
                                         const coffer_mcf_open_opts *opts, coffer_error *err);
COFFER_API void coffer_mcf_close(coffer_mcf *model);

COFFER_API uint64_t coffer_mcf_flags(const coffer_mcf *model);
COFFER_API size_t coffer_mcf_section_count(const coffer_mcf *model);
COFFER_API coffer_mcf_section coffer_mcf_section_at(const coffer_mcf *model,
                                                    size_t index); /* index < count */
/* The first section of a type; false when there is none. */
COFFER_API bool coffer_mcf_find_section(coffer_mcf_section *out, const coffer_mcf *model, uint32_t type);
/* COFFER_E_MISSING that names every section of the list that the file lacks: "section missing: TensorIndex".
 */
COFFER_API coffer_status coffer_mcf_require(const coffer_mcf *model, const uint32_t *types, size_t count,
                                            coffer_error *err);
/* Reads a section into fresh memory (coffer_mcf_free_bytes), with a NUL behind it. Within limits.json_bytes.
 */
COFFER_API coffer_status coffer_mcf_read_section(uint8_t **out, size_t *len, const coffer_mcf *model,
                                                 uint32_t type, coffer_error *err);
COFFER_API void coffer_mcf_free_bytes(uint8_t *bytes);

COFFER_API size_t coffer_mcf_tensor_count(const coffer_mcf *model);
COFFER_API coffer_mcf_tensor coffer_mcf_tensor_at(const coffer_mcf *model, size_t index); /* index < count */
/* Index of the tensor of that name, or SIZE_MAX. O(log tensors), also when the file is not sorted. */
COFFER_API size_t coffer_mcf_find_tensor(const coffer_mcf *model, const char *name, size_t name_len);

/* Payload bytes [begin, begin + len) of a tensor. */
COFFER_API coffer_status coffer_mcf_read(void *out, const coffer_mcf *model, size_t tensor, uint64_t begin,
                                         size_t len, coffer_error *err);
/* Whole payloads of several tensors at once, each into memory of its size, in parallel pieces. Fastest over a
 * source of COFFER_ACCESS_READ, or COFFER_ACCESS_DIRECT when the file is not in memory. threads : 0 = one per
 * core. */
COFFER_API coffer_status coffer_mcf_read_many(void *const *outs, const coffer_mcf *model,
                                              const size_t *tensors, size_t count, uint32_t threads,
                                              const coffer_progress *progress, coffer_error *err);
/* Borrowed payload where it is mapped or in memory, else NULL. Ask coffer_source_intact when done. */
COFFER_API const uint8_t *coffer_mcf_view(const coffer_mcf *model, size_t tensor);
/* Rows [first, first + count) of a plain tensor as they stand; rank 0 and 1 are a single row. Touches nothing
 * else. */
COFFER_API coffer_status coffer_mcf_read_rows(void *out, const coffer_mcf *model, size_t tensor,
                                              uint64_t first, uint64_t count, coffer_error *err);
/* The same as float32, decoded where the tensor is quantized. */
COFFER_API coffer_status coffer_mcf_read_rows_f32(float *out, const coffer_mcf *model, size_t tensor,
                                                  uint64_t first, uint64_t count, coffer_error *err);
/* Elements of a row: the product of all dims but the first. */
COFFER_API uint64_t coffer_mcf_row_elements(const coffer_mcf_tensor *tensor);
COFFER_API uint64_t coffer_mcf_row_count(const coffer_mcf_tensor *tensor);

typedef struct coffer_mcf_quant {
    coffer_dtype method;
    bool activations;
    uint16_t block_size, super_size;
    float min_clip, max_clip;
} coffer_mcf_quant;

/* The QuantInfo record of a tensor; false when there is none. */
COFFER_API bool coffer_mcf_get_quant(coffer_mcf_quant *out, const coffer_mcf *model, size_t tensor);

/* How far a quantized tensor is from what it was. */
typedef struct coffer_mcf_quality {
    coffer_quant_method method;
    float snr_db;           /* signal to noise; infinite when nothing was lost */
    float max_error;        /* the largest difference of an element */
    const char *importance; /* where the weights of the columns came from, not NUL-terminated; NULL = none */
    size_t importance_len;
} coffer_mcf_quality;

/* What the file says of it; false when it does not say. out->importance : borrowed from the handle. */
COFFER_API bool coffer_mcf_get_quality(coffer_mcf_quality *out, const coffer_mcf *model, size_t tensor);

/* ---- ModelInfo ---- */

typedef enum coffer_mcf_kv_type {
    COFFER_MCF_KV_U32 = 1,
    COFFER_MCF_KV_F32 = 2,
    COFFER_MCF_KV_STRING = 3
} coffer_mcf_kv_type;

typedef struct coffer_mcf_kv {
    const char *key; /* NUL-terminated, UTF-8 */
    coffer_mcf_kv_type type;
    uint32_t u32;
    float f32;
    const char *text; /* NUL-terminated */
    size_t text_len;
} coffer_mcf_kv;

typedef struct coffer_mcf_model_info {
    uint32_t struct_size;
    uint32_t arch; /* 0 unknown, 1 llama, 2 mistral, 3 qwen, 4 gemma, 5 granite, 6 smollm3 */
    uint32_t vocab_size, hidden_size, layer_count, head_count, head_count_kv, context_length, train_context;
    uint32_t rope_type; /* 0 none, 1 standard, 2 linear, 3 yarn */
    float rope_freq_base, rope_scale;
    const char *model_name, *base_model; /* NUL-terminated; NULL = absent */
    const coffer_mcf_kv *kvs;
    size_t kv_count;
} coffer_mcf_model_info;

#define COFFER_MCF_MODEL_INFO_INIT                                                                \
    {                                                                                             \
        sizeof(coffer_mcf_model_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0f, 0.0f, NULL, NULL, NULL, 0 \
    }

COFFER_API const char *coffer_mcf_arch_name(uint32_t arch);      /* "llama"; "unknown" */
COFFER_API uint32_t coffer_mcf_arch_by_name(const char *name);   /* 0 when not known */
COFFER_API const char *coffer_mcf_rope_name(uint32_t rope_type); /* "yarn"; "none" */
/* Decoded when first asked for, kept by the handle. COFFER_E_MISSING when the file has no ModelInfo. */
COFFER_API coffer_status coffer_mcf_get_model_info(const coffer_mcf_model_info **out, const coffer_mcf *model,
                                                   coffer_error *err);

/* SHA-256 over names, types, shapes and payload bytes of all tensors in the order of their names: the same
 * tensors give the same id, whatever the file's layout. threads : 0 = one per core. */
COFFER_API coffer_status coffer_mcf_content_hash(uint8_t out[32], const coffer_mcf *model, uint32_t threads,
                                                 const coffer_progress *progress, coffer_error *err);

/* ---- Writing ---- */

typedef struct coffer_mcf_writer_opts {
    uint32_t struct_size;
    uint32_t align;    /* of tensor starts: a power of two from 64 to 2 MiB; 0 = 64 */
    bool no_dedup;     /* write equal payloads again instead of once */
    bool no_checksums; /* leave the table of sums out */
    bool exclusive;    /* fail with COFFER_E_EXISTS instead of replacing a file */
    bool no_sync;      /* scratch files */
    uint64_t flags;    /* kept beside those that the content asks for */
    uint32_t threads;  /* 0 = one per core */
} coffer_mcf_writer_opts;

#define COFFER_MCF_WRITER_OPTS_INIT                                         \
    {                                                                       \
        sizeof(coffer_mcf_writer_opts), 0, false, false, false, false, 0, 0 \
    }

typedef struct coffer_mcf_writer coffer_mcf_writer;

/* Streams a model into a new file that takes its name at commit. Equal calls give equal bytes. Memory: the
 * index, and a buffer. */
COFFER_API coffer_status coffer_mcf_writer_create(coffer_mcf_writer **out, const char *path,
                                                  const coffer_mcf_writer_opts *opts, coffer_error *err);
/* A section's bytes as they are. Those that come after the first tensor are kept in memory until commit.
 * COFFER_E_DUPLICATE for a type that came before; the types that the writer
 * makes itself (TensorIndex, TensorData, QuantInfo, ModelInfo, checksums, QuantQuality) are refused. */
COFFER_API coffer_status coffer_mcf_writer_add_section(coffer_mcf_writer *writer, uint32_t type,
                                                       uint32_t version, const void *bytes, size_t len,
                                                       coffer_error *err);
COFFER_API coffer_status coffer_mcf_writer_set_model_info(coffer_mcf_writer *writer,
                                                          const coffer_mcf_model_info *info,
                                                          coffer_error *err);

/* Makes room for the index in front of the payloads, when what it will hold is known: of a download that
 * breaks off, every tensor that is whole can then be saved. Before the first tensor. An index that needs more
 * goes behind the payloads. */
COFFER_API coffer_status coffer_mcf_writer_reserve_index(coffer_mcf_writer *writer, uint32_t tensors,
                                                         uint32_t dims, uint64_t name_bytes,
                                                         coffer_error *err);

/* What a new tensor is. quant : needed for int8 and int4; NULL = the record that the type implies, if any. */
typedef struct coffer_mcf_new_tensor {
    const char *name;
    size_t name_len;
    coffer_dtype dtype;
    uint32_t rank;
    const uint64_t *dims;
    const coffer_mcf_quant *quant;
} coffer_mcf_new_tensor;

/* begin, write until the payload is whole, end. Payloads stand in the file in the order of the calls. */
COFFER_API coffer_status coffer_mcf_writer_begin_tensor(coffer_mcf_writer *writer,
                                                        const coffer_mcf_new_tensor *tensor,
                                                        coffer_error *err);
COFFER_API coffer_status coffer_mcf_writer_write(coffer_mcf_writer *writer, const void *bytes, size_t len,
                                                 coffer_error *err);
/* The same from a source; without a copy through user memory where the kernel can. */
COFFER_API coffer_status coffer_mcf_writer_write_from(coffer_mcf_writer *writer, coffer_source *src,
                                                      uint64_t offset, uint64_t len, coffer_error *err);
/* Zeros, for bytes that come later by coffer_mcf_writer_write_at. */
COFFER_API coffer_status coffer_mcf_writer_skip(coffer_mcf_writer *writer, uint64_t len, coffer_error *err);
/* Overwrites bytes [begin, begin + len) of the payload that were written, or skipped, before. */
COFFER_API coffer_status coffer_mcf_writer_write_at(coffer_mcf_writer *writer, uint64_t begin,
                                                    const void *bytes, size_t len, coffer_error *err);
/* The clip bounds in the record of the tensor, when they are known only behind its payload. */
COFFER_API coffer_status coffer_mcf_writer_set_clip(coffer_mcf_writer *writer, float min_clip, float max_clip,
                                                    coffer_error *err);
/* What quantizing has cost the tensor that is being written. */
COFFER_API coffer_status coffer_mcf_writer_set_quality(coffer_mcf_writer *writer,
                                                       const coffer_mcf_quality *quality, coffer_error *err);
COFFER_API coffer_status coffer_mcf_writer_end_tensor(coffer_mcf_writer *writer, coffer_error *err);
/* Frees the writer, also on failure: then nothing of the file is left and an old one is as it was. */
COFFER_API coffer_status coffer_mcf_writer_commit(coffer_mcf_writer *writer, coffer_error *err);
COFFER_API void coffer_mcf_writer_discard(coffer_mcf_writer *writer);

/* ---- Editing in place ---- */

/* Holds the write lock from open to close. Changes gather and go into the file in one commit, in time
 * proportional to the changed sections, under the rollback journal: a crash leaves old or new. */
typedef struct coffer_mcf_editor coffer_mcf_editor;

typedef struct coffer_mcf_editor_opts {
    uint32_t struct_size;
    const coffer_limits *limits;
} coffer_mcf_editor_opts;

#define COFFER_MCF_EDITOR_OPTS_INIT          \
    {                                        \
        sizeof(coffer_mcf_editor_opts), NULL \
    }

COFFER_API coffer_status coffer_mcf_editor_open(coffer_mcf_editor **out, const char *path,
                                                const coffer_mcf_editor_opts *opts, coffer_error *err);
/* JSON sections must be valid JSON. What belongs to the payloads (TensorIndex, TensorData, QuantInfo, the
 * sums) is refused; the sums can be removed. */
COFFER_API coffer_status coffer_mcf_editor_set_section(coffer_mcf_editor *editor, uint32_t type,
                                                       const void *bytes, size_t len, coffer_error *err);
COFFER_API coffer_status coffer_mcf_editor_remove_section(coffer_mcf_editor *editor, uint32_t type,
                                                          coffer_error *err);
/* A field of ModelInfo ("model_name", "context_length") or a key of its table ("kv.general.license"), from
 * text: a table value keeps its type, a new one is a string unless `type` (0 = keep) says otherwise. NULL
 * removes. */
COFFER_API coffer_status coffer_mcf_editor_set_model_info(coffer_mcf_editor *editor, const char *field,
                                                          const char *text, coffer_mcf_kv_type type,
                                                          coffer_error *err);
/* Adds or renews the table of sums; reads every payload. */
COFFER_API coffer_status coffer_mcf_editor_set_checksums(coffer_mcf_editor *editor, uint32_t threads,
                                                         const coffer_progress *progress, coffer_error *err);
/* Nothing is written when the changes are what stands there already. An editor commits once. */
COFFER_API coffer_status coffer_mcf_editor_commit(coffer_mcf_editor *editor, coffer_error *err);
COFFER_API void coffer_mcf_editor_close(coffer_mcf_editor *editor);

COFFER_END_DECLS

#endif
