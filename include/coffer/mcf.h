#ifndef COFFER_MCF_H
#define COFFER_MCF_H

#include "coffer/dtype.h"
#include "coffer/error.h"
#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/quant.h"
#include "coffer/source.h"

COFFER_BEGIN_DECLS

/* MCF stores a model in one file. docs/formats/mcf.md describes the format. */

typedef enum coffer_mcf_section_type {
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
    COFFER_MCF_CHECKSUMS = 0x434B0001,      /* Coffer extension: checksums of every byte of the file */
    COFFER_MCF_QUALITY = 0x434B0002,        /* Coffer extension: quantization error of each tensor */
    COFFER_MCF_DIRECTORY_COPY = 0x434B0003, /* Coffer extension: header and directory, near the front */
    COFFER_MCF_DAMAGE = 0x434B0004,         /* Coffer extension: bytes that are known to be damaged */
    COFFER_MCF_FILES = 0x434B0005           /* Coffer extension: other files of the model's folder */
} coffer_mcf_section_type;

/* "TensorIndex", "config.json"; NULL for a type that the format does not name. */
COFFER_API const char *coffer_mcf_section_name(uint32_t type);
/* 0 for an unknown name. */
COFFER_API uint32_t coffer_mcf_section_by_name(const char *name);

/* The number of an element type in the file, and back; 0 and COFFER_DTYPE_NONE for unknown ones. */
COFFER_API uint32_t coffer_mcf_dtype_code(coffer_dtype dtype);
COFFER_API coffer_dtype coffer_mcf_dtype_from_code(uint32_t code);

/* Payload size of a tensor of that type and shape; activations : int8 and int4 with a zero point.
 * COFFER_E_SIZE_MISMATCH when the size does not fit into 64 bits, COFFER_E_BAD_VALUE when the type does not
 * allow the shape. */
COFFER_API_STATUS coffer_mcf_payload_size(uint64_t *out, coffer_dtype dtype, uint32_t rank,
                                          const uint64_t *dims, bool activations, coffer_error *err);

/* ---- Reading ---- */

typedef struct coffer_mcf coffer_mcf;

typedef struct coffer_mcf_open_opts {
    uint32_t struct_size;
    /* Require checksums: COFFER_E_MISSING at open when the file has none, or stale ones. Without it, reads
     * are verified whenever the file has checksums. */
    bool verify;
    /* Open the intact part of a damaged file: sections outside of the file are left out; tensors outside of
     * it are listed, and reading them fails. */
    bool lenient;
    const coffer_limits *limits;
    /* Return payloads whose checksum is wrong instead of failing with COFFER_E_BAD_CHECKSUM. Header,
     * directory, index and sections are verified all the same. */
    bool allow_damaged;
} coffer_mcf_open_opts;

#define COFFER_MCF_OPEN_OPTS_INIT                               \
    {                                                           \
        sizeof(coffer_mcf_open_opts), false, false, NULL, false \
    }

COFFER_API void coffer_mcf_open_opts_init(coffer_mcf_open_opts *out, uint32_t struct_size);

/* The structs that the reading functions return belong to the handle and may get members at their end. */
typedef struct coffer_mcf_section {
    uint32_t type, version;
    uint64_t offset, size;
} coffer_mcf_section;

typedef struct coffer_mcf_tensor {
    const char *name; /* NUL-terminated */
    size_t name_len;
    coffer_dtype dtype; /* COFFER_DTYPE_NONE: an unknown code */
    uint32_t dtype_code;
    uint32_t rank;
    const uint64_t *dims;  /* rank of them */
    uint64_t elements;     /* 0 also when the number does not fit into 64 bits */
    uint64_t offset, size; /* of the payload in the file */
} coffer_mcf_tensor;

/* Opens a model for reading. Everything that is read is verified when the file has checksums, a MiB at a time
 * and once; COFFER_E_BAD_CHECKSUM names the tensors.
 * src : borrowed, must outlive the handle.     opts : NULL for defaults.
 * out : owned by the caller, free with coffer_mcf_close(); untouched on failure.
 * Reads the header, directory and index, no payload. O(tensors).
 * Thread safety: after success, all calls that take a const handle may run concurrently. */
COFFER_API_STATUS coffer_mcf_open(coffer_mcf **out, coffer_source *src, const coffer_mcf_open_opts *opts,
                                  coffer_error *err);
/* The same by path; the handle owns its source. */
COFFER_API_STATUS coffer_mcf_open_path(coffer_mcf **out, const char *path, const coffer_mcf_open_opts *opts,
                                       coffer_error *err);
COFFER_API void coffer_mcf_close(coffer_mcf *model);

COFFER_API uint64_t coffer_mcf_flags(const coffer_mcf *model);
COFFER_API size_t coffer_mcf_section_count(const coffer_mcf *model);
COFFER_API const coffer_mcf_section *coffer_mcf_section_at(const coffer_mcf *model, size_t index);
/* The first section of a type; NULL when the file has none. */
COFFER_API const coffer_mcf_section *coffer_mcf_find_section(const coffer_mcf *model, uint32_t type);
/* Fails with COFFER_E_MISSING and names all listed sections that the file lacks: "section missing:
 * TensorIndex". */
COFFER_API_STATUS coffer_mcf_require(const coffer_mcf *model, const uint32_t *types, size_t count,
                                     coffer_error *err);
/* Reads a section into new memory (coffer_free) and adds a NUL. At most limits.json_bytes. */
COFFER_API_STATUS coffer_mcf_read_section(uint8_t **out, size_t *len, const coffer_mcf *model, uint32_t type,
                                          coffer_error *err);

COFFER_API size_t coffer_mcf_tensor_count(const coffer_mcf *model);
COFFER_API const coffer_mcf_tensor *coffer_mcf_tensor_at(const coffer_mcf *model, size_t index);
/* Index of the tensor of that name, or COFFER_INDEX_NONE. O(log tensors), also when the file is not sorted.
 */
COFFER_API size_t coffer_mcf_find_tensor(const coffer_mcf *model, const char *name, size_t name_len);

/* Options of the calls that read many payloads. */
typedef struct coffer_mcf_work_opts {
    uint32_t struct_size;
    uint32_t threads; /* 0 = one per core */
    const coffer_progress *progress;
    bool allow_damaged; /* coffer_mcf_editor_set_checksums: record damage instead of failing */
} coffer_mcf_work_opts;

#define COFFER_MCF_WORK_OPTS_INIT                    \
    {                                                \
        sizeof(coffer_mcf_work_opts), 0, NULL, false \
    }

COFFER_API void coffer_mcf_work_opts_init(coffer_mcf_work_opts *out, uint32_t struct_size);

/* Verifies payload bytes [begin, begin + len) of a tensor, for callers that read them by themselves.
 * COFFER_OK when the file has no checksums. */
COFFER_API_STATUS coffer_mcf_verify(const coffer_mcf *model, size_t tensor, uint64_t begin, uint64_t len,
                                    coffer_error *err);
/* Reads payload bytes [begin, begin + len) of a tensor. */
COFFER_API_STATUS coffer_mcf_read(void *out, const coffer_mcf *model, size_t tensor, uint64_t begin,
                                  size_t len, coffer_error *err);
/* Reads the payloads of several tensors, each into memory of its size, in parallel. Fastest over a source of
 * COFFER_ACCESS_READ, or COFFER_ACCESS_DIRECT when the file is not cached. opts : NULL for defaults. */
COFFER_API_STATUS coffer_mcf_read_many(void *const *outs, const coffer_mcf *model, const size_t *tensors,
                                       size_t count, const coffer_mcf_work_opts *opts, coffer_error *err);
/* The payload itself where the source is mapped or in memory, else NULL. Call coffer_source_intact after
 * use. */
COFFER_API const uint8_t *coffer_mcf_view(const coffer_mcf *model, size_t tensor);
/* Reads rows [first, first + count) of a tensor that is not quantized; ranks 0 and 1 are a single row. */
COFFER_API_STATUS coffer_mcf_read_rows(void *out, const coffer_mcf *model, size_t tensor, uint64_t first,
                                       uint64_t count, coffer_error *err);
/* The same as float32; quantized tensors are decoded. */
COFFER_API_STATUS coffer_mcf_read_rows_f32(float *out, const coffer_mcf *model, size_t tensor, uint64_t first,
                                           uint64_t count, coffer_error *err);
/* Elements of a row: the product of all dims but the first. */
COFFER_API uint64_t coffer_mcf_row_elements(const coffer_mcf_tensor *tensor);
COFFER_API uint64_t coffer_mcf_row_count(const coffer_mcf_tensor *tensor);

typedef struct coffer_mcf_quant {
    uint32_t struct_size;
    coffer_dtype method;
    bool activations;
    uint16_t block_size, super_size;
    float min_clip, max_clip;
} coffer_mcf_quant;

#define COFFER_MCF_QUANT_INIT                                                \
    {                                                                        \
        sizeof(coffer_mcf_quant), COFFER_DTYPE_NONE, false, 0, 0, 0.0f, 0.0f \
    }

COFFER_API void coffer_mcf_quant_init(coffer_mcf_quant *out, uint32_t struct_size);

/* The QuantInfo record of a tensor, borrowed from the handle; NULL when it has none. */
COFFER_API const coffer_mcf_quant *coffer_mcf_quant_at(const coffer_mcf *model, size_t tensor);

/* The error that quantization added to a tensor. */
typedef struct coffer_mcf_quality {
    uint32_t struct_size;
    coffer_quant_method method;
    float snr_db;           /* signal-to-noise ratio; infinite when nothing was lost */
    float max_error;        /* largest absolute difference of an element */
    const char *importance; /* where the column weights came from, NUL-terminated; NULL = no weights */
} coffer_mcf_quality;

#define COFFER_MCF_QUALITY_INIT                                        \
    {                                                                  \
        sizeof(coffer_mcf_quality), COFFER_QUANT_FIT, 0.0f, 0.0f, NULL \
    }

COFFER_API void coffer_mcf_quality_init(coffer_mcf_quality *out, uint32_t struct_size);

/* The QuantQuality record of a tensor, borrowed from the handle; NULL when it has none. */
COFFER_API const coffer_mcf_quality *coffer_mcf_quality_at(const coffer_mcf *model, size_t tensor);

/* ---- Damage ---- */

typedef enum coffer_mcf_damage_reason {
    COFFER_MCF_DAMAGE_CHECKSUM = 1,   /* the bytes do not have the checksum `expected` */
    COFFER_MCF_DAMAGE_UNVERIFIED = 2, /* the bytes were saved from a damaged file and could not be verified */
    COFFER_MCF_DAMAGE_LOST = 3        /* a repair could not save the tensor or section, which is not there */
} coffer_mcf_damage_reason;

/* Bytes that were known to be damaged when the file was written. */
typedef struct coffer_mcf_damage {
    uint32_t struct_size;
    uint32_t section; /* type of the section; 0 = a tensor */
    const char *name; /* of the tensor or section, NUL-terminated */
    size_t name_len;
    coffer_mcf_damage_reason reason;
    uint64_t begin, size; /* in the payload or section */
    uint32_t expected;    /* CRC-32 before the damage; COFFER_MCF_DAMAGE_CHECKSUM only */
    uint32_t found;       /* CRC-32 of the damaged bytes */
} coffer_mcf_damage;

#define COFFER_MCF_DAMAGE_INIT                                                          \
    {                                                                                   \
        sizeof(coffer_mcf_damage), 0, NULL, 0, COFFER_MCF_DAMAGE_UNVERIFIED, 0, 0, 0, 0 \
    }

COFFER_API void coffer_mcf_damage_init(coffer_mcf_damage *out, uint32_t struct_size);

/* The damage that the file records. `coffer_mcf_read` of such bytes fails with COFFER_E_BAD_CHECKSUM, unless
 * the file was opened with allow_damaged. */
COFFER_API size_t coffer_mcf_damage_count(const coffer_mcf *model);
COFFER_API const coffer_mcf_damage *coffer_mcf_damage_at(const coffer_mcf *model, size_t index);
/* Finds the damaged ranges of a tensor: those that the file records, and pieces with a wrong checksum. Reads
 * the payload. out : coffer_free; its names belong to the handle. NULL and a count of 0 when it is intact. */
COFFER_API_STATUS coffer_mcf_tensor_damage(coffer_mcf_damage **out, size_t *count, const coffer_mcf *model,
                                           size_t tensor, coffer_error *err);

/* ---- Other files of the model's folder ---- */

typedef enum coffer_mcf_file_kind {
    COFFER_MCF_FILE_WHOLE = 0, /* the bytes of the file */
    /* Everything before the tensors of a safetensors file; the tensors are in the model under their names. */
    COFFER_MCF_FILE_SAFETENSORS_HEAD = 1
} coffer_mcf_file_kind;

/* Belongs to the handle; may get members at its end. */
typedef struct coffer_mcf_file {
    const char *name; /* relative path with "/", NUL-terminated, UTF-8; it cannot lead out of a folder */
    uint64_t size;
    coffer_mcf_file_kind kind;
} coffer_mcf_file;

/* Sorted by name. The files that are sections of their own (config.json, tokenizer.json …) are not in this
 * list, unless their bytes differ from the section. Decoded on first use. */
COFFER_API_STATUS coffer_mcf_get_files(const coffer_mcf_file **out, size_t *count, const coffer_mcf *model,
                                       coffer_error *err);
/* Reads a file of that list into new memory (coffer_free) and adds a NUL. COFFER_E_MISSING for an unknown
 * name. */
COFFER_API_STATUS coffer_mcf_read_file(uint8_t **out, size_t *len, const coffer_mcf *model, const char *name,
                                       coffer_error *err);
/* True for a name that a model may store: a relative path without empty, "." or ".." parts, backslashes,
 * colons and control characters, valid UTF-8, at most 1024 bytes. */
COFFER_API bool coffer_mcf_file_name_is_safe(const char *name);

/* ---- ModelInfo ---- */

typedef enum coffer_mcf_arch {
    COFFER_MCF_ARCH_UNKNOWN = 0,
    COFFER_MCF_ARCH_LLAMA = 1,
    COFFER_MCF_ARCH_MISTRAL = 2,
    COFFER_MCF_ARCH_QWEN = 3,
    COFFER_MCF_ARCH_GEMMA = 4,
    COFFER_MCF_ARCH_GRANITE = 5,
    COFFER_MCF_ARCH_SMOLLM3 = 6
} coffer_mcf_arch;

typedef enum coffer_mcf_rope {
    COFFER_MCF_ROPE_NONE = 0,
    COFFER_MCF_ROPE_STANDARD = 1,
    COFFER_MCF_ROPE_LINEAR = 2,
    COFFER_MCF_ROPE_YARN = 3
} coffer_mcf_rope;

typedef enum coffer_mcf_kv_type {
    COFFER_MCF_KV_U32 = 1,
    COFFER_MCF_KV_F32 = 2,
    COFFER_MCF_KV_STRING = 3
} coffer_mcf_kv_type;

typedef struct coffer_mcf_kv {
    uint32_t struct_size;
    coffer_mcf_kv_type type;
    const char *key; /* NUL-terminated, UTF-8 */
    uint32_t u32;
    float f32;
    const char *text; /* NUL-terminated */
    size_t text_len;
} coffer_mcf_kv;

#define COFFER_MCF_KV_INIT                                                  \
    {                                                                       \
        sizeof(coffer_mcf_kv), COFFER_MCF_KV_STRING, NULL, 0, 0.0f, NULL, 0 \
    }

COFFER_API void coffer_mcf_kv_init(coffer_mcf_kv *out, uint32_t struct_size);

typedef struct coffer_mcf_model_info {
    uint32_t struct_size;
    uint32_t arch; /* coffer_mcf_arch; a file may contain other numbers */
    uint32_t vocab_size, hidden_size, layer_count, head_count, head_count_kv, context_length, train_context;
    uint32_t rope_type; /* coffer_mcf_rope; a file may contain other numbers */
    float rope_freq_base, rope_scale;
    const char *model_name, *base_model; /* NUL-terminated; NULL = absent */
    const coffer_mcf_kv *kvs;            /* the struct_size of the first one is the stride */
    size_t kv_count;
} coffer_mcf_model_info;

#define COFFER_MCF_MODEL_INFO_INIT                                                                \
    {                                                                                             \
        sizeof(coffer_mcf_model_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0f, 0.0f, NULL, NULL, NULL, 0 \
    }

COFFER_API void coffer_mcf_model_info_init(coffer_mcf_model_info *out, uint32_t struct_size);

/* Key and value number `index` of an info that the library returned; NULL past the end. */
COFFER_API const coffer_mcf_kv *coffer_mcf_model_info_kv_at(const coffer_mcf_model_info *info, size_t index);
COFFER_API const char *coffer_mcf_arch_name(uint32_t arch);      /* "llama"; "unknown" */
COFFER_API uint32_t coffer_mcf_arch_by_name(const char *name);   /* COFFER_MCF_ARCH_UNKNOWN when not known */
COFFER_API const char *coffer_mcf_rope_name(uint32_t rope_type); /* "yarn"; "none" */
/* Decoded on first use; owned by the handle. COFFER_E_MISSING when the file has no ModelInfo. */
COFFER_API_STATUS coffer_mcf_get_model_info(const coffer_mcf_model_info **out, const coffer_mcf *model,
                                            coffer_error *err);

/* SHA-256 over the names, types, shapes and payloads of all tensors in the order of their names: files with
 * the same tensors have the same hash, regardless of layout. opts : NULL for defaults. */
COFFER_API_STATUS coffer_mcf_content_hash(uint8_t out[32], const coffer_mcf *model,
                                          const coffer_mcf_work_opts *opts, coffer_error *err);

/* ---- Writing ---- */

typedef struct coffer_mcf_writer_opts {
    uint32_t struct_size;
    uint32_t align;    /* of payloads: a power of two from 64 to 2 MiB; 0 = 64 */
    bool no_dedup;     /* store equal payloads again instead of sharing them */
    bool no_checksums; /* write no Checksums section */
    bool overwrite;    /* replace an existing file instead of failing with COFFER_E_EXISTS */
    coffer_durability durability;
    uint64_t flags;   /* added to the flags that the content requires */
    uint32_t threads; /* 0 = one per core */
} coffer_mcf_writer_opts;

#define COFFER_MCF_WRITER_OPTS_INIT                                                          \
    {                                                                                        \
        sizeof(coffer_mcf_writer_opts), 0, false, false, false, COFFER_DURABILITY_FULL, 0, 0 \
    }

COFFER_API void coffer_mcf_writer_opts_init(coffer_mcf_writer_opts *out, uint32_t struct_size);

typedef struct coffer_mcf_writer coffer_mcf_writer;

/* Streams a model into a new file, which gets its name at commit. The same calls write the same bytes.
 * Memory: the index and a buffer. */
COFFER_API_STATUS coffer_mcf_writer_create(coffer_mcf_writer **out, const char *path,
                                           const coffer_mcf_writer_opts *opts, coffer_error *err);
/* Adds a section. Sections added after the first tensor stay in memory until commit. COFFER_E_DUPLICATE for a
 * type that was added before; the types that the writer creates itself (TensorIndex, TensorData, QuantInfo,
 * ModelInfo, Checksums, QuantQuality, DirectoryCopy, Damage) are refused. */
COFFER_API_STATUS coffer_mcf_writer_add_section(coffer_mcf_writer *writer, uint32_t type, uint32_t version,
                                                const void *bytes, size_t len, coffer_error *err);
COFFER_API_STATUS coffer_mcf_writer_set_model_info(coffer_mcf_writer *writer,
                                                   const coffer_mcf_model_info *info, coffer_error *err);

/* Adds a file of the model's folder. Call it before the first tensor. COFFER_E_UNSAFE_PATH for a name that is
 * not safe, COFFER_E_DUPLICATE for one that was added before. */
COFFER_API_STATUS coffer_mcf_writer_add_file(coffer_mcf_writer *writer, const char *name,
                                             coffer_mcf_file_kind kind, const void *bytes, size_t len,
                                             coffer_error *err);

/* Reserves room for the index before the payloads: all complete tensors of a partial download can then be
 * recovered. Call it before the first tensor. An index that needs more room is written after the payloads. */
COFFER_API_STATUS coffer_mcf_writer_reserve_index(coffer_mcf_writer *writer, uint32_t tensors, uint32_t dims,
                                                  uint64_t name_bytes, coffer_error *err);

/* Reserves room for the Checksums section before the payloads: the complete tensors of a partial download can
 * then be verified. Call it before the first tensor. bytes : of all payloads. A table that needs more room is
 * written after the payloads. */
COFFER_API_STATUS coffer_mcf_writer_reserve_checksums(coffer_mcf_writer *writer, uint32_t tensors,
                                                      uint64_t bytes, coffer_error *err);

typedef struct coffer_mcf_new_tensor {
    uint32_t struct_size;
    coffer_dtype dtype;
    const char *name;
    size_t name_len;
    uint32_t rank;
    const uint64_t *dims;
    const coffer_mcf_quant *quant; /* NULL = derived from the type; int8 and int4 of activations need it */
} coffer_mcf_new_tensor;

#define COFFER_MCF_NEW_TENSOR_INIT                                               \
    {                                                                            \
        sizeof(coffer_mcf_new_tensor), COFFER_DTYPE_NONE, NULL, 0, 0, NULL, NULL \
    }

COFFER_API void coffer_mcf_new_tensor_init(coffer_mcf_new_tensor *out, uint32_t struct_size);

/* For each tensor: begin, write until the payload is complete, end. Payloads are stored in the order of the
 * calls. */
COFFER_API_STATUS coffer_mcf_writer_begin_tensor(coffer_mcf_writer *writer,
                                                 const coffer_mcf_new_tensor *tensor, coffer_error *err);
COFFER_API_STATUS coffer_mcf_writer_write(coffer_mcf_writer *writer, const void *bytes, size_t len,
                                          coffer_error *err);
/* The same from a source; the kernel copies the bytes where it can. */
COFFER_API_STATUS coffer_mcf_writer_write_from(coffer_mcf_writer *writer, coffer_source *src, uint64_t offset,
                                               uint64_t len, coffer_error *err);
/* Writes zeros, to be overwritten by coffer_mcf_writer_write_at. */
COFFER_API_STATUS coffer_mcf_writer_skip(coffer_mcf_writer *writer, uint64_t len, coffer_error *err);
/* Overwrites payload bytes [begin, begin + len), which were written or skipped before. */
COFFER_API_STATUS coffer_mcf_writer_write_at(coffer_mcf_writer *writer, uint64_t begin, const void *bytes,
                                             size_t len, coffer_error *err);
/* Sets the clip bounds in the tensor's QuantInfo record, if they are known only after the payload. */
COFFER_API_STATUS coffer_mcf_writer_set_clip(coffer_mcf_writer *writer, float min_clip, float max_clip,
                                             coffer_error *err);
/* Sets the quantization error of the tensor that is being written. */
COFFER_API_STATUS coffer_mcf_writer_set_quality(coffer_mcf_writer *writer, const coffer_mcf_quality *quality,
                                                coffer_error *err);
/* Records damage of the file that is being written: `check` reports it until the bytes are replaced. Names
 * tensors and sections of the new file; what is not in it at commit is ignored. `found` is computed, and a
 * `size` past the end means the rest. */
COFFER_API_STATUS coffer_mcf_writer_add_damage(coffer_mcf_writer *writer, const coffer_mcf_damage *damage,
                                               coffer_error *err);
COFFER_API_STATUS coffer_mcf_writer_end_tensor(coffer_mcf_writer *writer, coffer_error *err);
/* Frees the writer, also on failure; then no new file exists and an old one is unchanged. */
COFFER_API_STATUS coffer_mcf_writer_commit(coffer_mcf_writer *writer, coffer_error *err);
COFFER_API void coffer_mcf_writer_discard(coffer_mcf_writer *writer);

/* ---- Editing in place ---- */

/* Holds the write lock from open to close. Changes are collected and written in one commit, in time
 * proportional to the changed sections, under the rollback journal: a crash leaves the old or the new
 * state. */
typedef struct coffer_mcf_editor coffer_mcf_editor;

typedef struct coffer_mcf_editor_opts {
    uint32_t struct_size;
    const coffer_limits *limits;
} coffer_mcf_editor_opts;

#define COFFER_MCF_EDITOR_OPTS_INIT          \
    {                                        \
        sizeof(coffer_mcf_editor_opts), NULL \
    }

COFFER_API void coffer_mcf_editor_opts_init(coffer_mcf_editor_opts *out, uint32_t struct_size);

COFFER_API_STATUS coffer_mcf_editor_open(coffer_mcf_editor **out, const char *path,
                                         const coffer_mcf_editor_opts *opts, coffer_error *err);
/* JSON sections must be valid JSON. The sections that belong to the payloads (TensorIndex, TensorData,
 * QuantInfo, Checksums) are refused; Checksums can be removed. */
COFFER_API_STATUS coffer_mcf_editor_set_section(coffer_mcf_editor *editor, uint32_t type, const void *bytes,
                                                size_t len, coffer_error *err);
COFFER_API_STATUS coffer_mcf_editor_remove_section(coffer_mcf_editor *editor, uint32_t type,
                                                   coffer_error *err);
/* Sets a field of ModelInfo ("model_name", "context_length") or a key of its table ("kv.general.license")
 * from text. A table value keeps its type, a new one is a string, unless `type` (0 = keep) says otherwise.
 * NULL removes it. */
COFFER_API_STATUS coffer_mcf_editor_set_model_info(coffer_mcf_editor *editor, const char *field,
                                                   const char *text, coffer_mcf_kv_type type,
                                                   coffer_error *err);
/* Adds, replaces or, with bytes == NULL, removes a file of the model's folder. A name of a section
 * (config.json) is refused: use coffer_mcf_editor_set_section. */
COFFER_API_STATUS coffer_mcf_editor_set_file(coffer_mcf_editor *editor, const char *name, const void *bytes,
                                             size_t len, coffer_error *err);
/* Adds or recomputes the Checksums section; reads every payload. Existing checksums are verified first:
 * COFFER_E_BAD_CHECKSUM when one is wrong. opts : NULL for defaults. */
COFFER_API_STATUS coffer_mcf_editor_set_checksums(coffer_mcf_editor *editor, const coffer_mcf_work_opts *opts,
                                                  coffer_error *err);
/* Writes nothing when the changes equal the existing content. An editor commits once. */
COFFER_API_STATUS coffer_mcf_editor_commit(coffer_mcf_editor *editor, coffer_error *err);
COFFER_API void coffer_mcf_editor_close(coffer_mcf_editor *editor);

COFFER_END_DECLS

#endif
