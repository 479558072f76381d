#ifndef COFFER_MLDF_H
#define COFFER_MLDF_H

#include "coffer/bytes.h"
#include "coffer/dtype.h"
#include "coffer/error.h"
#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/report.h"
#include "coffer/source.h"

COFFER_BEGIN_DECLS

/* MLDF: a training set in one file: a schema, one fixed-size row per sample, and the large values in a data
 * region. docs/formats/mldf.md describes the file. */

typedef enum coffer_mldf_type {
    COFFER_MLDF_INT = 1,
    COFFER_MLDF_FLOAT = 2,
    COFFER_MLDF_BYTES = 3,
    COFFER_MLDF_NDARRAY = 4,
    COFFER_MLDF_JSON = 5,
    COFFER_MLDF_IMAGE_RAW = 10,
    COFFER_MLDF_IMAGE_JPEG = 11,
    COFFER_MLDF_IMAGE_PNG = 12,
    COFFER_MLDF_AUDIO = 20,
    COFFER_MLDF_AUDIO_COMPRESSED = 21,
    COFFER_MLDF_SPECTROGRAM = 22,
    COFFER_MLDF_CODEC_TOKENS = 23,
    COFFER_MLDF_VIDEO_FRAMES = 30,
    COFFER_MLDF_VIDEO_COMPRESSED = 31,
    COFFER_MLDF_OPTICAL_FLOW = 32,
    COFFER_MLDF_TEXT = 40,
    COFFER_MLDF_TEXT_TOKENISED = 41,
    COFFER_MLDF_TEXT_PACKED = 42,
    COFFER_MLDF_TEXT_HIERARCHICAL = 43,
    COFFER_MLDF_MULTIMODAL = 50
} coffer_mldf_type;

/* The name of a type ("image-jpeg"), NULL for an unknown number; and the type of a name, 0 for an unknown
 * name. */
COFFER_API const char *coffer_mldf_type_name(uint16_t type);
COFFER_API uint16_t coffer_mldf_type_by_name(const char *name);

/* The kinds of entries that a row consists of. */
typedef enum coffer_mldf_entry_kind {
    COFFER_MLDF_ENTRY_OPAQUE = 0, /* of an unknown type: row bytes */
    COFFER_MLDF_ENTRY_INT,
    COFFER_MLDF_ENTRY_FLOAT,
    COFFER_MLDF_ENTRY_BYTES,
    COFFER_MLDF_ENTRY_IMAGE,
    COFFER_MLDF_ENTRY_AUDIO,
    COFFER_MLDF_ENTRY_TEXT
} coffer_mldf_entry_kind;

#define COFFER_MLDF_MAX_DIMS 13
#define COFFER_MLDF_KEY_SIZE 32

/* coffer_mldf_entry.mode, .codec and .encoding. A file may contain other numbers. */
typedef enum coffer_mldf_image_mode {
    COFFER_MLDF_MODE_RAW = 0,
    COFFER_MLDF_MODE_JPEG = 1,
    COFFER_MLDF_MODE_PNG = 2
} coffer_mldf_image_mode;

typedef enum coffer_mldf_audio_codec {
    COFFER_MLDF_CODEC_PCM = 0,
    COFFER_MLDF_CODEC_FLAC = 1,
    COFFER_MLDF_CODEC_AAC = 2,
    COFFER_MLDF_CODEC_MP3 = 3,
    COFFER_MLDF_CODEC_VORBIS = 4, /* from here on ours: docs/formats/mldf.md */
    COFFER_MLDF_CODEC_OPUS = 5,
    COFFER_MLDF_CODEC_FILE = 6 /* a complete file whose own header says what it is */
} coffer_mldf_audio_codec;

typedef enum coffer_mldf_text_encoding {
    COFFER_MLDF_ENCODING_UTF8 = 0,
    COFFER_MLDF_ENCODING_I32 = 1, /* token ids */
    COFFER_MLDF_ENCODING_I16 = 2
} coffer_mldf_text_encoding;

/* num_tokens of a text with more tokens than 16 bits can count: use the size of the payload. */
#define COFFER_MLDF_TOKENS_BY_SIZE 65535

/* Flags of a file, and of a field. */
enum {
    COFFER_MLDF_LITTLE_ENDIAN = 1,
    COFFER_MLDF_COMPRESSED = 2,
    COFFER_MLDF_CHECKSUMMED = 4,
    COFFER_MLDF_ENCRYPTED = 8
};
enum { COFFER_MLDF_FIELD_ZSTD = 1, COFFER_MLDF_FIELD_ENCRYPTED = 2, COFFER_MLDF_FIELD_OPTIONAL = 4 };

/* In an array of fields, struct_size of the first one is the distance between them. */
typedef struct coffer_mldf_field {
    uint32_t struct_size;
    const char *name; /* UTF-8, at most 63 bytes; borrowed */
    uint16_t type;    /* coffer_mldf_type, or an unknown number */
    uint16_t flags;
    /* Types with an array descriptor; a dimension of 0 varies from sample to sample. */
    coffer_dtype dtype;
    uint32_t ndim;
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    uint8_t jpeg_quality; /* IMAGE_JPEG; 0 = unspecified */
    uint32_t sample_rate; /* a hint for the audio types; 0 = unspecified */
    /* A zstd dictionary for FIELD_ZSTD: its bytes when writing, its offset and size when reading. */
    const void *dictionary;
    uint32_t dictionary_size;
    uint64_t dictionary_offset;
    /* Filled by the reader. */
    coffer_mldf_entry_kind kind;
    uint32_t row_offset, row_size;
} coffer_mldf_field;

#define COFFER_MLDF_FIELD_INIT                                                                \
    {                                                                                         \
        sizeof(coffer_mldf_field), NULL, 0, 0, COFFER_DTYPE_NONE, 0, { 0 }, 0, 0, NULL, 0, 0, \
            COFFER_MLDF_ENTRY_OPAQUE, 0, 0                                                    \
    }

COFFER_API void coffer_mldf_field_init(coffer_mldf_field *out, uint32_t struct_size);

/* A list of fields parsed from JSON: [{"name": "image", "type": "image-jpeg", "optional": true, "zstd": true,
 * "encrypted": true, "dtype": "f32", "shape": [3, 0], "sample_rate": 16000, "jpeg_quality": 90}, …], or
 * {"fields": […]}. */
typedef struct coffer_mldf_schema coffer_mldf_schema;

typedef struct coffer_mldf_schema_opts {
    uint32_t struct_size;
    const coffer_limits *limits;
} coffer_mldf_schema_opts;

#define COFFER_MLDF_SCHEMA_OPTS_INIT          \
    {                                         \
        sizeof(coffer_mldf_schema_opts), NULL \
    }

COFFER_API void coffer_mldf_schema_opts_init(coffer_mldf_schema_opts *out, uint32_t struct_size);

/* out : owned by the caller, coffer_mldf_schema_free(). */
COFFER_API_STATUS coffer_mldf_schema_parse(coffer_mldf_schema **out, const char *text, size_t len,
                                           const coffer_mldf_schema_opts *opts, coffer_error *err);
COFFER_API void coffer_mldf_schema_free(coffer_mldf_schema *schema);
COFFER_API size_t coffer_mldf_schema_count(const coffer_mldf_schema *schema);
/* The fields as an array, borrowed from the schema. */
COFFER_API const coffer_mldf_field *coffer_mldf_schema_fields(const coffer_mldf_schema *schema);

/* ---- Reading ---- */

typedef struct coffer_mldf coffer_mldf;

typedef struct coffer_mldf_open_opts {
    uint32_t struct_size;
    /* Where the file has checksums: compare header, rows and tables with them at open, which is O(samples),
     * and every payload when it is read. Without it a read touches only the row and the payload; offsets are
     * always checked against the bounds of the data region. */
    bool verify;
    const uint8_t *key; /* COFFER_MLDF_KEY_SIZE bytes, copied; NULL = encrypted payloads cannot be read */
    const coffer_limits *limits; /* memory_bytes also bounds one decompressed payload */
} coffer_mldf_open_opts;

#define COFFER_MLDF_OPEN_OPTS_INIT                       \
    {                                                    \
        sizeof(coffer_mldf_open_opts), false, NULL, NULL \
    }

COFFER_API void coffer_mldf_open_opts_init(coffer_mldf_open_opts *out, uint32_t struct_size);

/* Opens a set. src : borrowed, must outlive the handle.     opts : NULL = defaults.
 * out : owned by the caller, coffer_mldf_close().
 * Reads header and field descriptors: O(fields), independent of the number of samples. Thread safety: after
 * success all calls that take a const handle may run concurrently, also in the children of a fork. */
COFFER_API_STATUS coffer_mldf_open(coffer_mldf **out, coffer_source *src, const coffer_mldf_open_opts *opts,
                                   coffer_error *err);
/* The same for a file; the handle owns its source. */
COFFER_API_STATUS coffer_mldf_open_path(coffer_mldf **out, const char *path,
                                        const coffer_mldf_open_opts *opts, coffer_error *err);
COFFER_API void coffer_mldf_close(coffer_mldf *set);

COFFER_API uint64_t coffer_mldf_sample_count(const coffer_mldf *set);
COFFER_API uint32_t coffer_mldf_flags(const coffer_mldf *set);
/* Minor version of the file. A newer one than this library knows is read as far as it is understood. */
COFFER_API uint16_t coffer_mldf_version_minor(const coffer_mldf *set);
COFFER_API bool coffer_mldf_is_newer(const coffer_mldf *set);
COFFER_API uint32_t coffer_mldf_page_size(const coffer_mldf *set);
COFFER_API uint32_t coffer_mldf_descriptor_stride(const coffer_mldf *set); /* 208 or 204 */
COFFER_API uint32_t coffer_mldf_row_size(const coffer_mldf *set);
COFFER_API size_t coffer_mldf_field_count(const coffer_mldf *set);
/* Borrowed from the handle; NULL past the end. */
COFFER_API const coffer_mldf_field *coffer_mldf_field_at(const coffer_mldf *set, size_t index);
/* Index of the field with that name, or COFFER_INDEX_NONE. */
COFFER_API size_t coffer_mldf_find_field(const coffer_mldf *set, const char *name);

/* A decoded row entry. The kind of the field decides which members are used. */
typedef struct coffer_mldf_entry {
    uint32_t struct_size;
    bool present;    /* always true for scalars */
    uint64_t offset; /* of the stored payload in the file */
    uint32_t size;   /* stored bytes, before decryption and decompression */
    int64_t i64;
    double f64;
    uint16_t height, width;            /* image */
    uint8_t mode;                      /* image: coffer_mldf_image_mode */
    uint16_t channels;                 /* image, audio */
    uint32_t num_samples, sample_rate; /* audio */
    uint8_t bit_depth, codec;          /* audio: coffer_mldf_audio_codec */
    uint16_t num_tokens;               /* text; COFFER_MLDF_TOKENS_BY_SIZE = see the size */
    uint8_t encoding;                  /* text: coffer_mldf_text_encoding */
} coffer_mldf_entry;

#define COFFER_MLDF_ENTRY_INIT                                                     \
    {                                                                              \
        sizeof(coffer_mldf_entry), false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

COFFER_API void coffer_mldf_entry_init(coffer_mldf_entry *out, uint32_t struct_size);

/* Reads one row entry. COFFER_E_OUT_OF_BOUNDS for a sample or field that does not exist. */
COFFER_API_STATUS coffer_mldf_entry_at(coffer_mldf_entry *out, const coffer_mldf *set, uint64_t sample,
                                       size_t field, coffer_error *err);

/* Reads the value of one field of one sample, decrypted and decompressed; for scalars and unknown types the
 * row bytes. An absent value has size 0 and entry->present false. entry : may be NULL.
 * An encrypted value is COFFER_E_KEY_NEEDED without a key and COFFER_E_AUTHENTICATION_FAILED with a wrong
 * one. */
COFFER_API_STATUS coffer_mldf_read(coffer_bytes *out, coffer_mldf_entry *entry, const coffer_mldf *set,
                                   uint64_t sample, size_t field, coffer_error *err);
/* Says which values will be read soon, one by one, so that a remote file sends them together. Has no effect
 * on other files; coffer_mldf_batch_read does the same by itself. */
COFFER_API void coffer_mldf_prefetch(const coffer_mldf *set, size_t field, const uint64_t *samples,
                                     size_t count);
/* Reads the payload as it is stored. */
COFFER_API_STATUS coffer_mldf_read_stored(coffer_bytes *out, const coffer_mldf *set, uint64_t sample,
                                          size_t field, coffer_error *err);
/* Borrowed bytes of a value that is stored unencoded and is mapped or in memory; NULL for others: use
 * coffer_mldf_read. Call coffer_source_intact when done. */
COFFER_API const uint8_t *coffer_mldf_view(size_t *size, const coffer_mldf *set, uint64_t sample,
                                           size_t field);

/* Typed accessors: COFFER_E_INVALID_ARGUMENT when the field has another type, COFFER_E_MISSING when the value
 * is absent. */
COFFER_API_STATUS coffer_mldf_get_int(int64_t *out, const coffer_mldf *set, uint64_t sample, size_t field,
                                      coffer_error *err);
COFFER_API_STATUS coffer_mldf_get_float(double *out, const coffer_mldf *set, uint64_t sample, size_t field,
                                        coffer_error *err);
/* Raw text and JSON: valid UTF-8, followed by a NUL that size does not count. */
COFFER_API_STATUS coffer_mldf_get_text(coffer_bytes *out, const coffer_mldf *set, uint64_t sample,
                                       size_t field, coffer_error *err);
/* Elements of an array, little-endian, and its dimensions in dims[0..ndim); the size has been checked against
 * them. */
COFFER_API_STATUS coffer_mldf_get_array(coffer_bytes *out, uint64_t dims[COFFER_MLDF_MAX_DIMS],
                                        const coffer_mldf *set, uint64_t sample, size_t field,
                                        coffer_error *err);
/* Token ids, widened to 32 bits: each one a uint32_t of the machine. */
COFFER_API_STATUS coffer_mldf_get_tokens(coffer_bytes *out_u32, const coffer_mldf *set, uint64_t sample,
                                         size_t field, coffer_error *err);

/* The parts of a value of type TEXT_HIERARCHICAL (its texts, without names) or MULTIMODAL. */
typedef struct coffer_mldf_parts coffer_mldf_parts;

typedef struct coffer_mldf_part {
    uint32_t struct_size;
    uint16_t type;    /* coffer_mldf_type, or an unknown number */
    const char *name; /* UTF-8, not terminated; borrowed from the parts, like the bytes */
    size_t name_len;
    const uint8_t *bytes;
    size_t size;
} coffer_mldf_part;

#define COFFER_MLDF_PART_INIT                         \
    {                                                 \
        sizeof(coffer_mldf_part), 0, NULL, 0, NULL, 0 \
    }

COFFER_API void coffer_mldf_part_init(coffer_mldf_part *out, uint32_t struct_size);
/* out : owned by the caller, coffer_mldf_parts_free(). The value is read and checked as a whole. */
COFFER_API_STATUS coffer_mldf_get_parts(coffer_mldf_parts **out, const coffer_mldf *set, uint64_t sample,
                                        size_t field, coffer_error *err);
COFFER_API void coffer_mldf_parts_free(coffer_mldf_parts *parts);
COFFER_API size_t coffer_mldf_parts_count(const coffer_mldf_parts *parts);
COFFER_API_STATUS coffer_mldf_parts_at(coffer_mldf_part *out, const coffer_mldf_parts *parts, size_t index,
                                       coffer_error *err);

typedef struct coffer_mldf_column_opts {
    uint32_t struct_size;
    uint32_t threads; /* 0 = one per core */
} coffer_mldf_column_opts;

#define COFFER_MLDF_COLUMN_OPTS_INIT       \
    {                                      \
        sizeof(coffer_mldf_column_opts), 0 \
    }

COFFER_API void coffer_mldf_column_opts_init(coffer_mldf_column_opts *out, uint32_t struct_size);

/* Reads scalars [first, first + count) of a field, 8 bytes each (int64_t or double, as the field is),
 * without touching payloads. */
COFFER_API_STATUS coffer_mldf_read_column(void *out, const coffer_mldf *set, size_t field, uint64_t first,
                                          uint64_t count, const coffer_mldf_column_opts *opts,
                                          coffer_error *err);
/* Reads the row entries of a range of samples. out : count entries; out[0].struct_size is the distance
 * between them. */
COFFER_API_STATUS coffer_mldf_read_entries(coffer_mldf_entry *out, const coffer_mldf *set, size_t field,
                                           uint64_t first, uint64_t count, coffer_error *err);

/* An entry of the allocation table: a payload, in whatever field it is used. */
typedef struct coffer_mldf_allocation {
    uint32_t struct_size;
    uint64_t offset;
    uint32_t size;
    bool has_crc32; /* the table has checksums */
    uint32_t crc32; /* of the stored bytes */
} coffer_mldf_allocation;

#define COFFER_MLDF_ALLOCATION_INIT                    \
    {                                                  \
        sizeof(coffer_mldf_allocation), 0, 0, false, 0 \
    }

COFFER_API void coffer_mldf_allocation_init(coffer_mldf_allocation *out, uint32_t struct_size);
COFFER_API uint64_t coffer_mldf_allocation_count(const coffer_mldf *set);
/* The table is sorted by offset. */
COFFER_API_STATUS coffer_mldf_allocation_at(coffer_mldf_allocation *out, const coffer_mldf *set,
                                            uint64_t index, coffer_error *err);
/* Reads the stored bytes of the payload that begins at `offset`; the allocation table has their number. They
 * are compared with their checksum. COFFER_E_DANGLING_REFERENCE when no payload begins there. */
COFFER_API_STATUS coffer_mldf_read_payload(coffer_bytes *out, const coffer_mldf *set, uint64_t offset,
                                           coffer_error *err);

/* A repair marks the values that it could not verify, or lost. The file keeps these marks, and check reports
 * them, until the values are replaced or the samples deleted. */
typedef enum coffer_mldf_mark_kind {
    COFFER_MLDF_MARK_UNVERIFIED = 1, /* nothing says that the bytes are those that were written */
    COFFER_MLDF_MARK_LOST = 2        /* the value is absent because it was damaged */
} coffer_mldf_mark_kind;

typedef struct coffer_mldf_mark {
    uint32_t struct_size;
    uint64_t first, count; /* samples */
    size_t field;          /* COFFER_INDEX_NONE = the whole row */
    coffer_mldf_mark_kind kind;
} coffer_mldf_mark;

#define COFFER_MLDF_MARK_INIT                                                    \
    {                                                                            \
        sizeof(coffer_mldf_mark), 0, 0, COFFER_INDEX_NONE, COFFER_MLDF_MARK_LOST \
    }

COFFER_API void coffer_mldf_mark_init(coffer_mldf_mark *out, uint32_t struct_size);
COFFER_API uint64_t coffer_mldf_mark_count(const coffer_mldf *set);
COFFER_API_STATUS coffer_mldf_mark_at(coffer_mldf_mark *out, const coffer_mldf *set, uint64_t index,
                                      coffer_error *err);

/* ---- Batches ---- */

/* The memory that receives the values of one field. Scalars: 8 bytes each, contiguous. Payloads: with a
 * stride, value i begins at data + i × stride and has at most `stride` bytes; without one the values are
 * contiguous, in the order of the requested samples, and offsets[0..count] receives where they begin. In an
 * array of targets, struct_size of the first one is the distance between them. */
typedef struct coffer_mldf_target {
    uint32_t struct_size;
    size_t field;
    void *data;
    size_t data_size;
    size_t stride;
    uint64_t *offsets; /* count + 1 of them; may be NULL when stride is not 0 */
    uint32_t *sizes;   /* count of them; may be NULL */
} coffer_mldf_target;

#define COFFER_MLDF_TARGET_INIT                               \
    {                                                         \
        sizeof(coffer_mldf_target), 0, NULL, 0, 0, NULL, NULL \
    }

COFFER_API void coffer_mldf_target_init(coffer_mldf_target *out, uint32_t struct_size);

typedef enum coffer_mldf_policy {
    COFFER_MLDF_POLICY_ERROR = 0, /* the first damaged value ends the call */
    COFFER_MLDF_POLICY_SKIP = 1   /* a damaged value has size 0, and damaged[i] is set */
} coffer_mldf_policy;

typedef struct coffer_mldf_batch_opts {
    uint32_t struct_size;
    uint32_t threads; /* 0 = one per core */
    coffer_mldf_policy policy;
    bool *damaged; /* one per sample, set when one of its values could not be read; may be NULL */
    /* Called for each damaged value, from the calling thread, after the others were read; may be NULL. */
    void (*on_damage)(void *context, uint64_t sample, size_t field, const coffer_error *why);
    void *context;
} coffer_mldf_batch_opts;

#define COFFER_MLDF_BATCH_OPTS_INIT                                                   \
    {                                                                                 \
        sizeof(coffer_mldf_batch_opts), 0, COFFER_MLDF_POLICY_ERROR, NULL, NULL, NULL \
    }

COFFER_API void coffer_mldf_batch_opts_init(coffer_mldf_batch_opts *out, uint32_t struct_size);

/* A batch reader keeps threads and working memory between calls: use one per reading thread. After the first
 * calls it does not allocate. set : borrowed. */
typedef struct coffer_mldf_batch coffer_mldf_batch;

COFFER_API_STATUS coffer_mldf_batch_new(coffer_mldf_batch **out, const coffer_mldf *set,
                                        const coffer_mldf_batch_opts *opts, coffer_error *err);
COFFER_API void coffer_mldf_batch_free(coffer_mldf_batch *batch);
/* Number of bytes that `data` of a target without stride needs. Reads only rows, unless the field is
 * compressed or encrypted and the frame does not contain the size. */
COFFER_API_STATUS coffer_mldf_batch_size(uint64_t *out, coffer_mldf_batch *batch, const uint64_t *samples,
                                         size_t count, size_t field, coffer_error *err);
/* Reads fields of samples, in any order, repeats allowed, into the caller's memory. Reads are sorted by
 * offset, near ones are merged, and several threads work. COFFER_E_LIMIT when a value does not fit. */
COFFER_API_STATUS coffer_mldf_batch_read(coffer_mldf_batch *batch, const uint64_t *samples, size_t count,
                                         const coffer_mldf_target *targets, size_t target_count,
                                         coffer_error *err);

/* ---- Order ---- */

/* A keyed permutation of [0, count), computed position by position without a table. Positions from `count` on
 * repeat it. */
COFFER_API uint64_t coffer_mldf_shuffle_at(uint64_t count, uint64_t seed, uint64_t epoch, uint64_t position);

typedef enum coffer_mldf_tail {
    COFFER_MLDF_TAIL_UNEVEN = 0, /* every sample exactly once; ranks may differ by one sample */
    COFFER_MLDF_TAIL_DROP = 1,   /* the same number for all ranks; the last few of the epoch are skipped */
    COFFER_MLDF_TAIL_PAD = 2     /* the same number for all ranks; the first few of the epoch are repeated */
} coffer_mldf_tail;

typedef struct coffer_mldf_order_opts {
    uint32_t struct_size;
    uint64_t seed;
    bool sequential; /* no shuffling */
    /* 0 = shuffle all samples. Otherwise pages of page_samples neighboring samples come in random order, and
     * samples are drawn at random from a window of this many pages. */
    uint32_t window_pages;
    uint64_t page_samples;    /* required with a window; see coffer_mldf_samples_per_page */
    uint32_t rank, world;     /* world 0 = 1 */
    uint32_t worker, workers; /* workers 0 = 1; the samples of a rank are dealt to its workers */
    coffer_mldf_tail tail;
} coffer_mldf_order_opts;

#define COFFER_MLDF_ORDER_OPTS_INIT                                                         \
    {                                                                                       \
        sizeof(coffer_mldf_order_opts), 0, false, 0, 0, 0, 0, 0, 0, COFFER_MLDF_TAIL_UNEVEN \
    }

COFFER_API void coffer_mldf_order_opts_init(coffer_mldf_order_opts *out, uint32_t struct_size);

/* Plain data: it can be copied and stored, and needs no free. */
typedef struct coffer_mldf_order {
    uint32_t struct_size;
    uint64_t count; /* samples of the set */
    uint64_t seed;
    uint64_t page_samples;
    uint32_t window_pages;
    uint32_t rank, world, worker, workers;
    bool sequential;
    coffer_mldf_tail tail;
} coffer_mldf_order;

#define COFFER_MLDF_ORDER_INIT                                                            \
    {                                                                                     \
        sizeof(coffer_mldf_order), 0, 0, 0, 0, 0, 1, 0, 1, false, COFFER_MLDF_TAIL_UNEVEN \
    }

COFFER_API void coffer_mldf_order_init(coffer_mldf_order *out, uint32_t struct_size);

/* COFFER_E_INVALID_ARGUMENT for a rank or worker that is not less than their number. */
COFFER_API_STATUS coffer_mldf_order_prepare(coffer_mldf_order *out, uint64_t sample_count,
                                            const coffer_mldf_order_opts *opts, coffer_error *err);
/* Samples per epoch of this rank and worker. */
COFFER_API uint64_t coffer_mldf_order_length(const coffer_mldf_order *order);
/* The sample at a position of an epoch; position < length, other positions give an unspecified sample of the
 * set. To resume, continue with the next position. */
COFFER_API uint64_t coffer_mldf_order_at(const coffer_mldf_order *order, uint64_t epoch, uint64_t position);
/* Average number of neighboring samples in a page of the file; at least 1. */
COFFER_API uint64_t coffer_mldf_samples_per_page(const coffer_mldf *set);

/* ---- Writing ---- */

/* A writer serves one thread at a time (encoding runs on its own threads). A call with invalid arguments
 * changes nothing; after a failed write every further call returns that error. */
typedef struct coffer_mldf_writer coffer_mldf_writer;

/* Identifies the files of a sample: a sample is packed again when its file has changed since. */
typedef struct coffer_mldf_origin {
    uint32_t struct_size;
    uint64_t size;    /* bytes of the file, or of all files of the sample */
    int64_t time;     /* of the last change, in nanoseconds */
    uint64_t hash[2]; /* of the bytes; 0 = not known */
} coffer_mldf_origin;

#define COFFER_MLDF_ORIGIN_INIT           \
    {                                     \
        sizeof(coffer_mldf_origin), 0, 0, \
        {                                 \
            0, 0                          \
        }                                 \
    }

COFFER_API void coffer_mldf_origin_init(coffer_mldf_origin *out, uint32_t struct_size);

/* Called by coffer_mldf_writer_resume for each sample of the interrupted writer, in order. mark : that of
 * coffer_mldf_writer_set_mark. *same = false: this sample and all after it have to be written again. */
typedef coffer_status (*coffer_mldf_resume_check)(bool *same, void *context, uint64_t mark,
                                                  const coffer_mldf_origin *origin, coffer_error *err);

typedef struct coffer_mldf_writer_opts {
    uint32_t struct_size;
    uint32_t page_size;         /* a power of two >= 4096; 0 = 2 MiB */
    uint32_t descriptor_stride; /* 208 or 204; 0 = 208 */
    bool no_checksums;
    bool dedup;                  /* store equal payloads once (never encrypted ones) */
    int zstd_level;              /* for fields with FIELD_ZSTD; 0 = 3 */
    const uint8_t *key;          /* for fields with FIELD_ENCRYPTED; copied */
    uint32_t threads;            /* 0 = one per core; the written bytes do not depend on it */
    bool overwrite;              /* replace an existing file; otherwise it is COFFER_E_EXISTS */
    const coffer_limits *limits; /* rows and table entries past memory_bytes spill to a temporary file */
    bool resumable;              /* see coffer_mldf_writer_resume */
    const char *resume_tag;      /* identifies the input; resuming with another tag is refused; copied */
    bool borrow; /* do not copy the bytes of values: they stay valid until flush, commit or discard */
    coffer_mldf_resume_check resume_check; /* NULL = samples of the interrupted writer are kept unseen */
    void *resume_context;
    bool no_partial; /* coffer_mldf_pack: nothing is left to resume when it fails or is interrupted */
} coffer_mldf_writer_opts;

#define COFFER_MLDF_WRITER_OPTS_INIT                                                                      \
    {                                                                                                     \
        sizeof(coffer_mldf_writer_opts), 0, 0, false, false, 0, NULL, 0, false, NULL, false, NULL, false, \
            NULL, NULL, false                                                                             \
    }

COFFER_API void coffer_mldf_writer_opts_init(coffer_mldf_writer_opts *out, uint32_t struct_size);

/* Starts a new set. The file appears at `path` only at commit. fields : copied. */
COFFER_API_STATUS coffer_mldf_writer_create(coffer_mldf_writer **out, const char *path,
                                            const coffer_mldf_field *fields, size_t field_count,
                                            const coffer_mldf_writer_opts *opts, coffer_error *err);
/* The same, with the schema as JSON: see coffer_mldf_schema_parse. */
COFFER_API_STATUS coffer_mldf_writer_create_json(coffer_mldf_writer **out, const char *path,
                                                 const char *schema, size_t schema_len,
                                                 const coffer_mldf_writer_opts *opts, coffer_error *err);
/* With opts.resumable a new set is written to PATH.partial and PATH.partial-rows. Both remain when the
 * process dies or the writer is discarded or fails; commit turns them into the file, and creating the set
 * again discards them. Resuming keeps every sample that is complete on disk: coffer_mldf_writer_sample
 * returns their number. fields and opts : as at creation, otherwise COFFER_E_INCONSISTENT. COFFER_E_NOT_FOUND
 * when there is nothing to resume, COFFER_E_LOCKED while another process writes it. */
COFFER_API_STATUS coffer_mldf_writer_resume(coffer_mldf_writer **out, const char *path,
                                            const coffer_mldf_field *fields, size_t field_count,
                                            const coffer_mldf_writer_opts *opts, coffer_error *err);
/* Stores a number of the caller's (such as the position in the input) with the current sample.
 * coffer_mldf_writer_mark returns the one of the last finished sample, also after resuming; 0 when none was
 * set. */
COFFER_API void coffer_mldf_writer_set_mark(coffer_mldf_writer *writer, uint64_t mark);
COFFER_API uint64_t coffer_mldf_writer_mark(const coffer_mldf_writer *writer);
/* Stores with the current sample what it is made of, for opts.resume_check of a resumable writer. */
COFFER_API_STATUS coffer_mldf_writer_set_origin(coffer_mldf_writer *writer, const coffer_mldf_origin *origin,
                                                coffer_error *err);
/* Removes the files that an interrupted resumable writer of `path` left, if there are any. */
COFFER_API_STATUS coffer_mldf_writer_drop_partial(const char *path, coffer_error *err);
/* Opens a set to append samples. Takes the write lock and rolls back an interrupted update. Readers see the
 * old state until commit. Only key, dedup, zstd_level, threads and limits of opts are used. */
COFFER_API_STATUS coffer_mldf_writer_append_to(coffer_mldf_writer **out, const char *path,
                                               const coffer_mldf_writer_opts *opts, coffer_error *err);

/* Index of the current sample, which end_sample will finish. */
COFFER_API uint64_t coffer_mldf_writer_sample(const coffer_mldf_writer *writer);
COFFER_API size_t coffer_mldf_writer_field_count(const coffer_mldf_writer *writer);
COFFER_API const coffer_mldf_field *coffer_mldf_writer_field_at(const coffer_mldf_writer *writer,
                                                                size_t index);
/* Set values of the current sample, in any order. A value that is not set is absent (0 for scalars); setting
 * a value again replaces it. Bytes are copied, unless the writer borrows them. COFFER_E_INVALID_ARGUMENT when
 * a value does not match its field. */
COFFER_API_STATUS coffer_mldf_writer_set_int(coffer_mldf_writer *writer, size_t field, int64_t value,
                                             coffer_error *err);
COFFER_API_STATUS coffer_mldf_writer_set_float(coffer_mldf_writer *writer, size_t field, double value,
                                               coffer_error *err);
/* Any field with a payload. entry : its description in the row (height, sample_rate, encoding …); NULL = the
 * one that follows from the type alone. For an unknown type: all of its bytes in the row. */
COFFER_API_STATUS coffer_mldf_writer_set_bytes(coffer_mldf_writer *writer, size_t field, const void *bytes,
                                               size_t size, const coffer_mldf_entry *entry,
                                               coffer_error *err);
COFFER_API_STATUS coffer_mldf_writer_set_text(coffer_mldf_writer *writer, size_t field, const char *text,
                                              size_t len, coffer_error *err);
/* dims : as many as the field has; they must agree with the fixed ones of the field. */
COFFER_API_STATUS coffer_mldf_writer_set_array(coffer_mldf_writer *writer, size_t field, const uint64_t *dims,
                                               const void *elements, size_t size, coffer_error *err);
/* Discards the values of the current sample. */
COFFER_API void coffer_mldf_writer_cancel_sample(coffer_mldf_writer *writer);
COFFER_API_STATUS coffer_mldf_writer_end_sample(coffer_mldf_writer *writer, coffer_error *err);
/* Writes values whose bytes are borrowed, which the writer then no longer uses. Call it between samples. */
COFFER_API_STATUS coffer_mldf_writer_flush(coffer_mldf_writer *writer, coffer_error *err);

typedef struct coffer_mldf_copy_opts {
    uint32_t struct_size;
    uint64_t first, count; /* samples of the set; count 0 = all from `first` on */
    const coffer_progress *progress;
} coffer_mldf_copy_opts;

#define COFFER_MLDF_COPY_OPTS_INIT                \
    {                                             \
        sizeof(coffer_mldf_copy_opts), 0, 0, NULL \
    }

COFFER_API void coffer_mldf_copy_opts_init(coffer_mldf_copy_opts *out, uint32_t struct_size);

/* Adds samples of a set with the same fields. Call it between samples. Stored payloads are copied unchanged
 * unless encryption ties them to an index, and each is compared with its checksum. COFFER_E_INCONSISTENT when
 * the fields differ. opts : NULL for defaults. */
COFFER_API_STATUS coffer_mldf_writer_copy(coffer_mldf_writer *writer, const coffer_mldf *set,
                                          const coffer_mldf_copy_opts *opts, coffer_error *err);
/* Makes everything durable and visible, and frees the writer even when it fails: the old file, if any, is
 * then unchanged. */
COFFER_API_STATUS coffer_mldf_writer_commit(coffer_mldf_writer *writer, coffer_error *err);
COFFER_API void coffer_mldf_writer_discard(coffer_mldf_writer *writer);

/* ---- Changing a set ---- */

typedef struct coffer_mldf_update_opts {
    uint32_t struct_size;
    bool dedup;                  /* store equal payloads once */
    int zstd_level;              /* for fields with FIELD_ZSTD; 0 = 3 */
    const uint8_t *key;          /* required when an encrypted payload has to be written */
    uint32_t threads;            /* 0 = one per core */
    const coffer_limits *limits; /* rows and table entries past memory_bytes spill to a temporary file */
    const coffer_progress *progress;
} coffer_mldf_update_opts;

#define COFFER_MLDF_UPDATE_OPTS_INIT                                   \
    {                                                                  \
        sizeof(coffer_mldf_update_opts), false, 0, NULL, 0, NULL, NULL \
    }

COFFER_API void coffer_mldf_update_opts_init(coffer_mldf_update_opts *out, uint32_t struct_size);

/* Sets the value of field `field` of a sample on the writer, or leaves it absent. */
typedef coffer_status (*coffer_mldf_fill)(void *context, coffer_mldf_writer *writer, uint64_t sample,
                                          size_t field, coffer_error *err);
/* Each update is one commit. Adds a field after the others: new rows and tables are written after the old
 * end, payloads are not moved. */
COFFER_API_STATUS coffer_mldf_update_add_field(const char *path, const coffer_mldf_field *field,
                                               coffer_mldf_fill fill, void *context,
                                               const coffer_mldf_update_opts *opts, coffer_error *err);
/* Replaces single values: fill is called for each pair (samples[i], fields[i]); a value that it does not set
 * becomes absent, or 0. COFFER_E_DUPLICATE when a pair occurs twice. */
COFFER_API_STATUS coffer_mldf_update_replace(const char *path, const uint64_t *samples, const size_t *fields,
                                             size_t count, coffer_mldf_fill fill, void *context,
                                             const coffer_mldf_update_opts *opts, coffer_error *err);
/* Deletes samples; the following ones move up. Their payloads remain in the file until coffer_compact.
 * Encrypted fields require the key, because the index of a sample is authenticated with its payloads. */
COFFER_API_STATUS coffer_mldf_update_delete(const char *path, const uint64_t *samples, size_t count,
                                            const coffer_mldf_update_opts *opts, coffer_error *err);

/* Drops fields, or gives one another name. The file is written again next to the old one, which it replaces
 * at the end. Encrypted fields require the key when the fields before them are dropped. */
COFFER_API_STATUS coffer_mldf_update_drop_fields(const char *path, const size_t *fields, size_t count,
                                                 const coffer_mldf_update_opts *opts, coffer_error *err);
COFFER_API_STATUS coffer_mldf_update_rename_field(const char *path, size_t field, const char *name,
                                                  const coffer_mldf_update_opts *opts, coffer_error *err);

typedef struct coffer_mldf_concat_opts {
    uint32_t struct_size;
    const coffer_mldf_writer_opts *write; /* NULL = defaults */
    const coffer_progress *progress;
} coffer_mldf_concat_opts;

#define COFFER_MLDF_CONCAT_OPTS_INIT                \
    {                                               \
        sizeof(coffer_mldf_concat_opts), NULL, NULL \
    }

COFFER_API void coffer_mldf_concat_opts_init(coffer_mldf_concat_opts *out, uint32_t struct_size);

/* Writes the samples of several sets with the same fields, one set after the other. Stored payloads are
 * copied unchanged unless encryption ties them to an index, and each is compared with its checksum. */
COFFER_API_STATUS coffer_mldf_concat(const char *out_path, coffer_mldf *const *sets, size_t count,
                                     const coffer_mldf_concat_opts *opts, coffer_error *err);

typedef struct coffer_mldf_extract_opts {
    uint32_t struct_size;
    const uint64_t *samples; /* in the order of the new set; NULL = all */
    uint64_t sample_count;
    const size_t *fields; /* NULL = all */
    size_t field_count;
    const coffer_mldf_writer_opts *write; /* NULL = defaults */
    const coffer_progress *progress;
    const char *const *names; /* of the fields in the new set, one for each; NULL = as they are */
} coffer_mldf_extract_opts;

#define COFFER_MLDF_EXTRACT_OPTS_INIT                                        \
    {                                                                        \
        sizeof(coffer_mldf_extract_opts), NULL, 0, NULL, 0, NULL, NULL, NULL \
    }

COFFER_API void coffer_mldf_extract_opts_init(coffer_mldf_extract_opts *out, uint32_t struct_size);

/* Writes some samples and some fields of a set to a new one: a split, a subset, a shuffled copy. */
COFFER_API_STATUS coffer_mldf_extract(const char *out_path, const coffer_mldf *set,
                                      const coffer_mldf_extract_opts *opts, coffer_error *err);

typedef struct coffer_mldf_repair_opts {
    uint32_t struct_size;
    const coffer_mldf *copy; /* a second copy, the source of damaged samples; NULL = none */
    const uint8_t *key;      /* verifies encrypted payloads; NULL = only their checksums are verified */
    bool overwrite;          /* replace an existing file; otherwise it is COFFER_E_EXISTS */
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_mldf_repair_opts;

#define COFFER_MLDF_REPAIR_OPTS_INIT                                   \
    {                                                                  \
        sizeof(coffer_mldf_repair_opts), NULL, NULL, false, NULL, NULL \
    }

COFFER_API void coffer_mldf_repair_opts_init(coffer_mldf_repair_opts *out, uint32_t struct_size);

/* Writes a set without the damaged samples, or with the samples of the copy (same schema; a sample of the
 * copy is used when its checksum or, without checksums, its size and row agree). The report names each of
 * them. */
COFFER_API_STATUS coffer_mldf_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                     const coffer_mldf_repair_opts *opts, coffer_error *err);

COFFER_END_DECLS

#include "coffer/mldf_analyze.h"

#endif
