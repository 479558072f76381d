#ifndef COFFER_MLDF_H
#define COFFER_MLDF_H

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

/* "image-jpeg"; NULL for a number that is no type. And back; 0 when there is none of that name. */
COFFER_API const char *coffer_mldf_type_name(uint16_t type);
COFFER_API uint16_t coffer_mldf_type_by_name(const char *name);

/* What stands in the row of a sample. */
typedef enum coffer_mldf_entry_kind {
    COFFER_MLDF_ENTRY_OPAQUE = 0, /* of a type that is not known: row bytes */
    COFFER_MLDF_ENTRY_INT,
    COFFER_MLDF_ENTRY_FLOAT,
    COFFER_MLDF_ENTRY_BYTES,
    COFFER_MLDF_ENTRY_IMAGE,
    COFFER_MLDF_ENTRY_AUDIO,
    COFFER_MLDF_ENTRY_TEXT
} coffer_mldf_entry_kind;

#define COFFER_MLDF_MAX_DIMS 13
#define COFFER_MLDF_KEY_SIZE 32

/* Flags of a file, and of a field. */
enum {
    COFFER_MLDF_LITTLE_ENDIAN = 1,
    COFFER_MLDF_COMPRESSED = 2,
    COFFER_MLDF_CHECKSUMMED = 4,
    COFFER_MLDF_ENCRYPTED = 8
};
enum { COFFER_MLDF_FIELD_ZSTD = 1, COFFER_MLDF_FIELD_ENCRYPTED = 2, COFFER_MLDF_FIELD_OPTIONAL = 4 };

typedef struct coffer_mldf_field {
    const char *name; /* UTF-8, at most 63 bytes; borrowed */
    uint16_t type;    /* coffer_mldf_type, or a number that is not known */
    uint16_t flags;
    /* Of the types with an array descriptor; a dim of 0 varies from sample to sample. */
    coffer_dtype dtype;
    uint32_t ndim;
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    uint8_t jpeg_quality; /* IMAGE_JPEG; 0 = not said */
    uint32_t sample_rate; /* hint of the audio types; 0 = not said */
    /* A zstd dictionary for FIELD_ZSTD: when writing, its bytes; when reading, its place and size. */
    const void *dictionary;
    uint32_t dictionary_size;
    uint64_t dictionary_offset;
    /* Filled by the reader. */
    coffer_mldf_entry_kind kind;
    uint32_t row_offset, row_size;
} coffer_mldf_field;

#define COFFER_MLDF_FIELD_INIT                                                                    \
    {                                                                                             \
        NULL, 0, 0, COFFER_DTYPE_NONE, 0, { 0 }, 0, 0, NULL, 0, 0, COFFER_MLDF_ENTRY_OPAQUE, 0, 0 \
    }

/* ---- Reading ---- */

typedef struct coffer_mldf coffer_mldf;

typedef struct coffer_mldf_open_opts {
    uint32_t struct_size;
    /* Every payload that is read is looked up in the allocation table, and its checksum compared where the
     * file has them. Else a read touches the row and the payload and nothing else; pointers are still checked
     * against the bounds of the data region. */
    bool verify;
    const uint8_t *key; /* of COFFER_MLDF_KEY_SIZE bytes, copied; NULL = encrypted payloads cannot be read */
    const coffer_limits *limits; /* memory_bytes also bounds one decompressed payload */
} coffer_mldf_open_opts;

#define COFFER_MLDF_OPEN_OPTS_INIT                       \
    {                                                    \
        sizeof(coffer_mldf_open_opts), false, NULL, NULL \
    }

/* Opens a set. src : borrowed, must outlive the handle.     opts : NULL = defaults.
 * Reads header and field descriptors: O(fields), whatever the number of samples. Thread-safety: after success
 * all calls with a const handle may run at the same time, and in the children of a fork. */
COFFER_API coffer_status coffer_mldf_open(coffer_mldf **out, coffer_source *src,
                                          const coffer_mldf_open_opts *opts, coffer_error *err);
COFFER_API void coffer_mldf_close(coffer_mldf *set);

COFFER_API uint64_t coffer_mldf_sample_count(const coffer_mldf *set);
COFFER_API uint32_t coffer_mldf_flags(const coffer_mldf *set);
COFFER_API uint32_t coffer_mldf_page_size(const coffer_mldf *set);
COFFER_API uint32_t coffer_mldf_descriptor_stride(const coffer_mldf *set); /* 208 or 204 */
COFFER_API uint32_t coffer_mldf_row_size(const coffer_mldf *set);
COFFER_API size_t coffer_mldf_field_count(const coffer_mldf *set);
COFFER_API const coffer_mldf_field *coffer_mldf_field_at(const coffer_mldf *set,
                                                         size_t index); /* index < count */
/* Index of the field of that name, or SIZE_MAX. */
COFFER_API size_t coffer_mldf_find_field(const coffer_mldf *set, const char *name);

/* A row entry, decoded. Which members count follows from the kind of the field. */
typedef struct coffer_mldf_entry {
    bool present;    /* scalars always are */
    uint64_t offset; /* of the stored payload in the file */
    uint32_t size;   /* stored bytes, before decryption and decompression */
    int64_t i64;
    double f64;
    uint16_t height, width;            /* image */
    uint8_t mode;                      /* 0 raw, 1 jpeg, 2 png */
    uint16_t channels;                 /* image, audio */
    uint32_t num_samples, sample_rate; /* audio */
    uint8_t bit_depth, codec;          /* 0 pcm, 1 flac, 2 aac, 3 mp3 */
    uint16_t num_tokens;               /* text; 65535 = see the size */
    uint8_t encoding;                  /* 0 UTF-8, 1 int32 ids, 2 int16 ids */
} coffer_mldf_entry;

/* Reads one row entry. COFFER_E_OUT_OF_BOUNDS for a sample or field that is not there. */
COFFER_API coffer_status coffer_mldf_entry_at(coffer_mldf_entry *out, const coffer_mldf *set, uint64_t sample,
                                              size_t field, coffer_error *err);

/* Memory that grows and is used again; coffer_mldf_bytes_free(). */
typedef struct coffer_mldf_bytes {
    uint8_t *data;
    size_t size, capacity;
} coffer_mldf_bytes;

#define COFFER_MLDF_BYTES_INIT \
    {                          \
        NULL, 0, 0             \
    }

COFFER_API void coffer_mldf_bytes_free(coffer_mldf_bytes *bytes);

/* The value of one field of one sample, decrypted and decompressed; the row bytes of scalars and of unknown
 * types. An absent value has size 0 and entry->present false. entry : may be NULL.
 * "authentication failed for sample N, field F" is COFFER_E_BAD_CHECKSUM. */
COFFER_API coffer_status coffer_mldf_read(coffer_mldf_bytes *out, coffer_mldf_entry *entry,
                                          const coffer_mldf *set, uint64_t sample, size_t field,
                                          coffer_error *err);
/* The payload as it is stored. */
COFFER_API coffer_status coffer_mldf_read_stored(coffer_mldf_bytes *out, const coffer_mldf *set,
                                                 uint64_t sample, size_t field, coffer_error *err);
/* Borrowed bytes of a value that is stored as it is and mapped or in memory, else NULL: then read. Ask
 * coffer_source_intact when done. */
COFFER_API const uint8_t *coffer_mldf_view(size_t *size, const coffer_mldf *set, uint64_t sample,
                                           size_t field);

/* Typed accessors: COFFER_E_INVALID_ARGUMENT when the field is of another type, COFFER_E_MISSING when the
 * value is absent. */
COFFER_API coffer_status coffer_mldf_get_int(int64_t *out, const coffer_mldf *set, uint64_t sample,
                                             size_t field, coffer_error *err);
COFFER_API coffer_status coffer_mldf_get_float(double *out, const coffer_mldf *set, uint64_t sample,
                                               size_t field, coffer_error *err);
/* UTF-8, checked, with a NUL behind it. Raw text and JSON. */
COFFER_API coffer_status coffer_mldf_get_text(coffer_mldf_bytes *out, const coffer_mldf *set, uint64_t sample,
                                              size_t field, coffer_error *err);
/* Elements of an array in out, its dims in dims[0..ndim): the size has been checked against them. */
COFFER_API coffer_status coffer_mldf_get_array(coffer_mldf_bytes *out, uint64_t dims[COFFER_MLDF_MAX_DIMS],
                                               const coffer_mldf *set, uint64_t sample, size_t field,
                                               coffer_error *err);
/* Token ids, widened. */
COFFER_API coffer_status coffer_mldf_get_tokens(coffer_mldf_bytes *out_u32, const coffer_mldf *set,
                                                uint64_t sample, size_t field, coffer_error *err);

/* Scalars [first, first + count) of a field, 8 bytes each (i64 or f64 as the field is), without touching
 * payloads. */
COFFER_API coffer_status coffer_mldf_read_column(void *out, const coffer_mldf *set, size_t field,
                                                 uint64_t first, uint64_t count, uint32_t threads,
                                                 coffer_error *err);
/* Row entries of a range, in one go. */
COFFER_API coffer_status coffer_mldf_read_entries(coffer_mldf_entry *out, const coffer_mldf *set,
                                                  size_t field, uint64_t first, uint64_t count,
                                                  coffer_error *err);

/* ---- Batches ---- */

/* Where the values of one field go. Scalars: 8 bytes each, contiguous. Payloads: value i begins at
 * data + i × stride and may have up to `stride` bytes when stride is not 0; else values lie one behind the
 * other, in the order of the samples asked for, and offsets[0..count] says where. */
typedef struct coffer_mldf_target {
    size_t field;
    void *data;
    size_t data_size;
    size_t stride;
    uint64_t *offsets; /* count + 1 of them; may be NULL when stride is not 0 */
    uint32_t *sizes;   /* count of them; may be NULL */
} coffer_mldf_target;

typedef enum coffer_mldf_policy {
    COFFER_MLDF_POLICY_ERROR = 0, /* the first damaged value ends the call */
    COFFER_MLDF_POLICY_SKIP = 1   /* a damaged value has size 0, and damaged[i] is set */
} coffer_mldf_policy;

typedef struct coffer_mldf_batch_opts {
    uint32_t struct_size;
    uint32_t threads; /* 0 = one per core */
    coffer_mldf_policy policy;
    bool *damaged; /* count of them, set where a value of the sample could not be read; may be NULL */
    /* Called for each damaged value, from the thread that made the call, after the rest was read; may be
     * NULL. */
    void (*on_damage)(void *context, uint64_t sample, size_t field, const coffer_error *why);
    void *context;
} coffer_mldf_batch_opts;

#define COFFER_MLDF_BATCH_OPTS_INIT                                                   \
    {                                                                                 \
        sizeof(coffer_mldf_batch_opts), 0, COFFER_MLDF_POLICY_ERROR, NULL, NULL, NULL \
    }

/* A batch reader keeps threads and working memory from call to call: one per thread that reads. After the
 * first calls nothing is allocated. set : borrowed. */
typedef struct coffer_mldf_batch coffer_mldf_batch;

COFFER_API coffer_status coffer_mldf_batch_new(coffer_mldf_batch **out, const coffer_mldf *set,
                                               const coffer_mldf_batch_opts *opts, coffer_error *err);
COFFER_API void coffer_mldf_batch_free(coffer_mldf_batch *batch);
/* Bytes that `data` of a target without stride must have; rows only are read, unless the field is compressed
 * or encrypted with a size that is not in the frame. */
COFFER_API coffer_status coffer_mldf_batch_size(uint64_t *out, coffer_mldf_batch *batch,
                                                const uint64_t *samples, size_t count, size_t field,
                                                coffer_error *err);
/* Reads the fields of the samples (any order, repeats allowed): sorted by place, close ones in one read,
 * several threads, straight into the caller's memory. COFFER_E_LIMIT when a value does not fit. */
COFFER_API coffer_status coffer_mldf_batch_read(coffer_mldf_batch *batch, const uint64_t *samples,
                                                size_t count, const coffer_mldf_target *targets,
                                                size_t target_count, coffer_error *err);

/* ---- Order ---- */

/* A keyed permutation of [0, count) without a table: every position is computed by itself. From `count` on
 * it begins again. */
COFFER_API uint64_t coffer_mldf_shuffle_at(uint64_t count, uint64_t seed, uint64_t epoch, uint64_t position);

typedef enum coffer_mldf_tail {
    COFFER_MLDF_TAIL_UNEVEN = 0, /* every sample exactly once; ranks may differ by one */
    COFFER_MLDF_TAIL_DROP = 1,   /* the same number for all; the last few of the epoch are left out */
    COFFER_MLDF_TAIL_PAD = 2     /* the same number for all; the first few of the epoch come again */
} coffer_mldf_tail;

typedef struct coffer_mldf_order_opts {
    uint32_t struct_size;
    uint64_t seed;
    bool sequential; /* no shuffling */
    /* 0 = all samples are shuffled among each other. Else pages of page_samples neighbors come in random
     * order, and samples at random from a window of this many open pages. */
    uint32_t window_pages;
    uint64_t page_samples;    /* with a window: coffer_mldf_samples_per_page gives as many as fill one */
    uint32_t rank, world;     /* world 0 = 1 */
    uint32_t worker, workers; /* workers 0 = 1; a rank's samples are dealt to its workers */
    coffer_mldf_tail tail;
} coffer_mldf_order_opts;

#define COFFER_MLDF_ORDER_OPTS_INIT                                                         \
    {                                                                                       \
        sizeof(coffer_mldf_order_opts), 0, false, 0, 0, 0, 0, 0, 0, COFFER_MLDF_TAIL_UNEVEN \
    }

/* Plain data: copy it, keep it; nothing to free. */
typedef struct coffer_mldf_order {
    uint64_t count; /* samples of the set */
    uint64_t seed;
    uint64_t page_samples;
    uint32_t window_pages;
    uint32_t rank, world, worker, workers;
    bool sequential;
    coffer_mldf_tail tail;
} coffer_mldf_order;

/* COFFER_E_INVALID_ARGUMENT for a rank or worker that is not below its number. */
COFFER_API coffer_status coffer_mldf_order_init(coffer_mldf_order *out, uint64_t sample_count,
                                                const coffer_mldf_order_opts *opts, coffer_error *err);
/* Samples per epoch of this rank and worker. */
COFFER_API uint64_t coffer_mldf_order_length(const coffer_mldf_order *order);
/* The sample at a position of an epoch; position < length, and some sample of the set for any other. To
 * resume, go on with the next position. */
COFFER_API uint64_t coffer_mldf_order_at(const coffer_mldf_order *order, uint64_t epoch, uint64_t position);
/* How many neighboring samples fill a page of the file on average; at least 1. */
COFFER_API uint64_t coffer_mldf_samples_per_page(const coffer_mldf *set);

/* ---- Writing ---- */

/* A writer serves one thread at a time (encoding runs on its own threads). A call that is refused for its
 * arguments changes nothing; after a failed write every further call gives that error. */
typedef struct coffer_mldf_writer coffer_mldf_writer;

typedef struct coffer_mldf_writer_opts {
    uint32_t struct_size;
    uint32_t page_size;         /* a power of two >= 4096; 0 = 2 MiB */
    uint32_t descriptor_stride; /* 208 or 204; 0 = 208 */
    bool no_checksums;
    bool dedup;                  /* equal payloads are stored once (never encrypted ones) */
    int zstd_level;              /* of fields with FIELD_ZSTD; 0 = 3 */
    const uint8_t *key;          /* for fields with FIELD_ENCRYPTED; copied */
    uint32_t threads;            /* 0 = one per core; the bytes do not depend on it */
    bool exclusive;              /* fail with COFFER_E_EXISTS instead of replacing a file */
    const coffer_limits *limits; /* rows and table entries past memory_bytes spill to a temporary file */
    bool resumable;              /* see coffer_mldf_writer_resume */
    const char *resume_tag; /* what the samples come from: resuming with another one is refused; copied */
} coffer_mldf_writer_opts;

#define COFFER_MLDF_WRITER_OPTS_INIT                                                              \
    {                                                                                             \
        sizeof(coffer_mldf_writer_opts), 0, 0, false, false, 0, NULL, 0, false, NULL, false, NULL \
    }

/* Starts a new set. The file appears under `path` only at commit. fields : copied. */
COFFER_API coffer_status coffer_mldf_writer_create(coffer_mldf_writer **out, const char *path,
                                                   const coffer_mldf_field *fields, size_t field_count,
                                                   const coffer_mldf_writer_opts *opts, coffer_error *err);
/* The schema as JSON: [{"name": "image", "type": "image-jpeg", "optional": true, "zstd": true, "encrypted":
 * true, "dtype": "f32", "shape": [3, 0], "sample_rate": 16000, "jpeg_quality": 90}, …], or {"fields": […]}.
 */
COFFER_API coffer_status coffer_mldf_writer_create_json(coffer_mldf_writer **out, const char *path,
                                                        const char *schema, size_t schema_len,
                                                        const coffer_mldf_writer_opts *opts,
                                                        coffer_error *err);
/* With opts.resumable a new set grows in PATH.partial, and what it needs to go on in PATH.partial-rows. Both
 * stay when the process dies or the writer is discarded or fails; commit turns them into the file. Creating
 * anew drops what was left. Resuming takes up every sample that is whole on the disk:
 * coffer_mldf_writer_sample is then their number. fields and opts : as at creation, else
 * COFFER_E_INCONSISTENT. COFFER_E_NOT_FOUND when nothing was left, COFFER_E_LOCKED while another writes it.
 */
COFFER_API coffer_status coffer_mldf_writer_resume(coffer_mldf_writer **out, const char *path,
                                                   const coffer_mldf_field *fields, size_t field_count,
                                                   const coffer_mldf_writer_opts *opts, coffer_error *err);
/* A number of the caller's (how far the input was read) that is kept with the sample being written.
 * coffer_mldf_writer_mark gives the one of the last finished sample, also after resuming; 0 when none was
 * set. */
COFFER_API void coffer_mldf_writer_set_mark(coffer_mldf_writer *writer, uint64_t mark);
COFFER_API uint64_t coffer_mldf_writer_mark(const coffer_mldf_writer *writer);
/* Removes what an interrupted resumable writer of `path` left. COFFER_OK also when there is nothing. */
COFFER_API coffer_status coffer_mldf_writer_drop_partial(const char *path, coffer_error *err);
/* Opens a set to append samples. Takes the write lock and rolls back what an interrupted update left. Readers
 * see the old state until commit. Of opts, only key, dedup, zstd_level, threads and limits count. */
COFFER_API coffer_status coffer_mldf_writer_append_to(coffer_mldf_writer **out, const char *path,
                                                      const coffer_mldf_writer_opts *opts, coffer_error *err);

/* Number of the sample that is being written: the one that end_sample will finish. */
COFFER_API uint64_t coffer_mldf_writer_sample(const coffer_mldf_writer *writer);
COFFER_API size_t coffer_mldf_writer_field_count(const coffer_mldf_writer *writer);
COFFER_API const coffer_mldf_field *coffer_mldf_writer_field_at(const coffer_mldf_writer *writer,
                                                                size_t index);
/* Values of the current sample, in any order; one that is not set is absent (0 for scalars), one that is set
 * again is replaced. Bytes are copied. Checked against the field: COFFER_E_INVALID_ARGUMENT when they do not
 * fit it. */
COFFER_API coffer_status coffer_mldf_writer_set_int(coffer_mldf_writer *writer, size_t field, int64_t value,
                                                    coffer_error *err);
COFFER_API coffer_status coffer_mldf_writer_set_float(coffer_mldf_writer *writer, size_t field, double value,
                                                      coffer_error *err);
/* Any field with a payload. entry : what the row says about it (height, sample_rate, encoding …); NULL = what
 * can be told from the type alone. Of a type that is not known: its bytes in the row, all of them. */
COFFER_API coffer_status coffer_mldf_writer_set_bytes(coffer_mldf_writer *writer, size_t field,
                                                      const void *bytes, size_t size,
                                                      const coffer_mldf_entry *entry, coffer_error *err);
COFFER_API coffer_status coffer_mldf_writer_set_text(coffer_mldf_writer *writer, size_t field,
                                                     const char *text, size_t len, coffer_error *err);
/* dims : ndim of the field; they must agree with those that do not vary. */
COFFER_API coffer_status coffer_mldf_writer_set_array(coffer_mldf_writer *writer, size_t field,
                                                      const uint64_t *dims, const void *elements, size_t size,
                                                      coffer_error *err);
/* Drops the values of the current sample. */
COFFER_API void coffer_mldf_writer_cancel_sample(coffer_mldf_writer *writer);
COFFER_API coffer_status coffer_mldf_writer_end_sample(coffer_mldf_writer *writer, coffer_error *err);
/* Makes everything durable and visible, and frees the writer, whether it succeeds or not: on failure the old
 * file (or none) stands as before. */
COFFER_API coffer_status coffer_mldf_writer_commit(coffer_mldf_writer *writer, coffer_error *err);
COFFER_API void coffer_mldf_writer_discard(coffer_mldf_writer *writer);

/* ---- Changing a set ---- */

/* Gives the value of the new field for a sample: sets it on the writer (field index `field`) or leaves it
 * absent. */
typedef coffer_status (*coffer_mldf_fill)(void *context, coffer_mldf_writer *writer, uint64_t sample,
                                          size_t field, coffer_error *err);
/* Adds a field behind the others: new rows and tables after the old end, payloads stay where they are. */
COFFER_API coffer_status coffer_mldf_update_add_field(const char *path, const coffer_mldf_field *field,
                                                      coffer_mldf_fill fill, void *context,
                                                      const coffer_mldf_writer_opts *opts,
                                                      const coffer_progress *progress, coffer_error *err);
/* Replaces single values, all in one commit: fill is called for each of the places (samples[i], fields[i]);
 * what it leaves unset is absent afterwards, or 0. A place must not be there twice. */
COFFER_API coffer_status coffer_mldf_update_replace(const char *path, const uint64_t *samples,
                                                    const size_t *fields, size_t count, coffer_mldf_fill fill,
                                                    void *context, const coffer_mldf_writer_opts *opts,
                                                    coffer_error *err);
/* Takes samples out; those behind them move up. Payloads stay until coffer_compact. Encrypted fields need the
 * key, since the number of a sample is part of what is authenticated. */
COFFER_API coffer_status coffer_mldf_update_delete(const char *path, const uint64_t *samples, size_t count,
                                                   const coffer_mldf_writer_opts *opts, coffer_error *err);

/* Writes the samples of several sets with the same fields, one set behind the other. Stored payloads are
 * copied as they are unless encryption ties them to a number; every one is compared with its checksum. */
COFFER_API coffer_status coffer_mldf_concat(const char *out_path, coffer_mldf *const *sets, size_t count,
                                            const coffer_mldf_writer_opts *opts,
                                            const coffer_progress *progress, coffer_error *err);
/* Writes the samples given, in that order, with the fields given (NULL = all): a split, a subset, a shuffled
 * copy. samples NULL = all. */
COFFER_API coffer_status coffer_mldf_extract(const char *out_path, const coffer_mldf *set,
                                             const uint64_t *samples, uint64_t count, const size_t *fields,
                                             size_t field_count, const coffer_mldf_writer_opts *opts,
                                             const coffer_progress *progress, coffer_error *err);

typedef struct coffer_mldf_repair_opts {
    uint32_t struct_size;
    const coffer_mldf *copy; /* a second copy that damaged samples are taken from; NULL = none */
    const uint8_t *key;      /* also verifies encrypted payloads; NULL = their checksums only */
    bool exclusive;
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_mldf_repair_opts;

#define COFFER_MLDF_REPAIR_OPTS_INIT                                   \
    {                                                                  \
        sizeof(coffer_mldf_repair_opts), NULL, NULL, false, NULL, NULL \
    }

/* Writes a set without the damaged samples, or with them fetched from the copy (same schema; a sample is
 * taken when its checksum or, without one, its size and row agree). The report names each one. */
COFFER_API coffer_status coffer_mldf_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                            const coffer_mldf_repair_opts *opts, coffer_error *err);

/* Numbers of the samples that cannot be read whole, ascending; *samples is the caller's,
 * coffer_mldf_samples_free(). key : may be NULL. */
COFFER_API coffer_status coffer_mldf_find_damaged(uint64_t **samples, uint64_t *count, const coffer_mldf *set,
                                                  uint32_t threads, const coffer_progress *progress,
                                                  coffer_error *err);
COFFER_API void coffer_mldf_samples_free(uint64_t *samples);

/* Trains a zstd dictionary on values of a field, sampled evenly over the set; at most `size` bytes. */
COFFER_API coffer_status coffer_mldf_train_dictionary(coffer_mldf_bytes *out, const coffer_mldf *set,
                                                      size_t field, size_t size, coffer_error *err);

COFFER_END_DECLS

#endif
