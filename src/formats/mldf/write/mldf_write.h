/* A set being written: what the files of the writer share. */
#ifndef COFFER_FORMATS_MLDF_WRITE_H
#define COFFER_FORMATS_MLDF_WRITE_H

#include "base/buffer.h"
#include "base/fail.h"
#include "base/work.h"
#include "coffer/error.h"
#include "formats/mldf/mldf_private.h"
#include "io/journal.h"
#include "io/sink.h"

#include <zstd.h>

/* Which payloads are in the file already. */

/* Payloads are the same when size, CRC-32 and a 128-bit hash are; the hash has a seed of its own for every
 * writer, so that a set cannot be made in which two different ones look the same. */
typedef struct coffer__mldf_known {
    uint64_t hash[2];
    uint64_t offset; /* never 0: 0 marks a free place */
    uint32_t size, crc;
} coffer__mldf_known;

typedef struct coffer__mldf_dedup {
    uint64_t seed;
    coffer__mldf_known *places; /* open addressing, a power of two of them */
    size_t count, capacity;
    size_t max; /* of count: later payloads are stored without being remembered */
} coffer__mldf_dedup;

void coffer__mldf_dedup_init(coffer__mldf_dedup *dedup, uint64_t memory);
void coffer__mldf_dedup_free(coffer__mldf_dedup *dedup);
/* Where an equal payload stands, or 0. */
uint64_t coffer__mldf_dedup_find(const coffer__mldf_dedup *dedup, const coffer__mldf_known *payload);
/* payload : not in the table. */
coffer_status coffer__mldf_dedup_add(coffer__mldf_dedup *dedup, const coffer__mldf_known *payload,
                                     coffer_error *err);

/* Where a set is written: into a new file, or after the end of one that is changed in place. */
typedef struct coffer__mldf_output {
    coffer__sink *sink;
    coffer__update *update;
    uint64_t position; /* in the file */
    bool summed;
    uint32_t crc;          /* of what was written since the caller set it, when summed */
    bool guarded, payload; /* the file gets a guard; a payload is being written */
    uint32_t tail_crc;     /* of what was written since the last payload, when guarded */
} coffer__mldf_output;

coffer_status coffer__mldf_out_write(coffer__mldf_output *out, const void *bytes, size_t len,
                                     coffer_error *err);
/* The same, as a callback of coffer__mldf_spill_each. */
coffer_status coffer__mldf_out_take(void *output, const void *bytes, size_t len, coffer_error *err);
coffer_status coffer__mldf_out_zeros(coffer__mldf_output *out, uint64_t count, coffer_error *err);
/* Zeros up to a multiple of alignment, a power of two. */
coffer_status coffer__mldf_out_align(coffer__mldf_output *out, uint64_t alignment, coffer_error *err);
/* Changes bytes that were written before; of an update, also those that it was begun for. */
coffer_status coffer__mldf_out_patch(coffer__mldf_output *out, uint64_t offset, const void *bytes, size_t len,
                                     coffer_error *err);

/* Magic and header. */
void coffer__mldf_compose_head(uint8_t out[COFFER__MLDF_HEAD_SIZE], const coffer__mldf_header *head);
/* The descriptor of a field, without the bytes that only one of the strides has. arguments : of a type that
 * is unknown; may be NULL. */
void coffer__mldf_compose_field(uint8_t out[COFFER__MLDF_STRIDE_TUTORIAL], const coffer_mldf_field *field,
                                const uint8_t *arguments);

/* Bytes that grow at the end and are read back once: in memory up to a limit, then in a file without a name.
 */
typedef struct coffer__mldf_spill {
    uint8_t *memory; /* what is not in the file */
    size_t buffered, capacity;
    size_t limit; /* of the memory */
    uint64_t in_file;
    bool has_file;
    int fd;
} coffer__mldf_spill;

/* limit : at least one piece is always held. */
void coffer__mldf_spill_init(coffer__mldf_spill *spill, size_t limit);
void coffer__mldf_spill_free(coffer__mldf_spill *spill);
uint64_t coffer__mldf_spill_size(const coffer__mldf_spill *spill);
coffer_status coffer__mldf_spill_add(coffer__mldf_spill *spill, const void *bytes, size_t len,
                                     coffer_error *err);

/* Reads bytes that were added; the range is there. */
coffer_status coffer__mldf_spill_read(const coffer__mldf_spill *spill, uint64_t offset, void *out, size_t len,
                                      coffer_error *err);

/* Hands out all bytes in order, piece by piece. */
typedef coffer_status (*coffer__mldf_spill_take)(void *context, const void *bytes, size_t len,
                                                 coffer_error *err);
coffer_status coffer__mldf_spill_each(const coffer__mldf_spill *spill, coffer__mldf_spill_take take,
                                      void *context, coffer_error *err);

/* ---- Fields (mldf_schema.c) ---- */

typedef struct coffer__mldf_column {
    coffer_mldf_field field; /* its name and dictionary are below */
    char name[COFFER__MLDF_NAME_SIZE];
    uint8_t *arguments; /* of a type that is unknown, as in another file; else NULL */
    uint8_t *dictionary;
    ZSTD_CDict *prepared; /* of the dictionary */
    uint64_t set_in;      /* 1 + the number of the sample in which it was set last */
} coffer__mldf_column;

/* Takes the fields over: checks them against the format and against each other. columns : the caller's,
 * coffer__mldf_columns_free. */
coffer_status coffer__mldf_make_columns(coffer__mldf_column **columns, uint32_t *row_size,
                                        const coffer_mldf_field *fields, size_t count, coffer_error *err);
void coffer__mldf_columns_free(coffer__mldf_column *columns, size_t count);
/* ---- Values that wait to be encoded (mldf_encode.c) ---- */

enum { COFFER__MLDF_STEP_ZSTD = 1, COFFER__MLDF_STEP_SEAL = 2, COFFER__MLDF_STEP_HASH = 4 };

typedef struct coffer__mldf_item {
    uint64_t sample;
    size_t row; /* in the batch */
    uint16_t field;
    uint8_t steps;
    const uint8_t *outside; /* borrowed from the caller; NULL = in the batch */
    size_t at, size;        /* of the value, in the batch unless it is outside */
    size_t room_at;         /* of what is made of it */
    /* Set by encoding. */
    const uint8_t *stored;
    uint32_t stored_size, crc;
    uint64_t hash[2];
} coffer__mldf_item;

typedef struct coffer__mldf_batch_out {
    coffer__buffer bytes; /* values */
    coffer__buffer rows;  /* of the samples that are finished, and of the one that is not */
    size_t row_count;     /* finished */
    coffer__mldf_item *items;
    size_t item_count, item_capacity;
    uint8_t *encoded;
    size_t encoded_capacity;
    size_t value_bytes; /* of all items */
    size_t limit;       /* of value_bytes: then the batch is written */
    bool borrows;       /* some item is outside */
    bool heavy;         /* some item is to be compressed or encrypted */
} coffer__mldf_batch_out;

typedef struct coffer__mldf_encoder coffer__mldf_encoder; /* of one thread */

/* Compresses, encrypts, counts sums and hashes of all items of the batch. */
coffer_status coffer__mldf_encode_batch(coffer_mldf_writer *writer, coffer_error *err);
void coffer__mldf_encoders_free(coffer_mldf_writer *writer);
/* The dictionary of a column, ready for use. */
coffer_status coffer__mldf_prepare_dictionary(coffer__mldf_column *column, int level, coffer_error *err);

/* ---- The writer ---- */

/* The set that is changed in place. */
typedef struct coffer__mldf_base {
    coffer__update *update;
    coffer_mldf *set; /* as it was */
    bool begun;
    bool keeps_rows;          /* the old rows precede the new ones; else all rows are new */
    bool same_fields;         /* the descriptors are as long as they were */
    coffer__mldf_mark *marks; /* of the set as it was */
    size_t mark_count;
    coffer__mldf_allocation *payloads; /* by size and CRC-32, to be shared; NULL = none are */
    size_t payload_count;
} coffer__mldf_base;

/* State of a resumable writer: the file PATH.partial-rows, and rows and entries that are not in it yet. */
typedef struct coffer__mldf_checkpoint {
    char *path;
    int fd;
    uint64_t position;
    coffer__buffer rows, entries, origins;
    uint64_t schema[2], tag[2]; /* hashes */
    coffer_mldf_origin origin;  /* of the current sample */
} coffer__mldf_checkpoint;

/* The second copy of rows and table entries, in blocks between the payloads. */
typedef struct coffer__mldf_recovery {
    bool on;
    uint64_t from;          /* blocks that count begin here or later; 0 = not yet written */
    uint64_t last;          /* offset of the last block */
    uint64_t last_end;      /* or where the data begins */
    uint64_t rows, entries; /* bytes of rows and table entries that are in blocks */
    uint64_t first_sample;  /* that the writer had to begin with: its rows are not in writer->rows */
} coffer__mldf_recovery;

struct coffer_mldf_writer {
    coffer_mldf_writer_opts opts;
    coffer_limits limits;
    bool has_key;
    uint8_t key[COFFER_MLDF_KEY_SIZE];
    char *path;
    coffer__mldf_output out;
    coffer__sticky sticky; /* the first failed write */

    coffer__mldf_column *columns;
    size_t column_count;
    uint32_t row_size, stride;
    bool checksums;
    bool guarded;                     /* the file gets a guard */
    uint8_t id[COFFER__MLDF_ID_SIZE]; /* of the file, part of what encrypted payloads are tied to */
    bool keeps_id;                    /* it is that of another file, or none */
    coffer__mldf_mark *marks;         /* what could not be verified */
    size_t mark_count, mark_capacity;
    coffer__mldf_recovery recovery;
    uint64_t data_at;
    uint64_t data_end; /* of the last payload */
    uint32_t data_crc; /* up to there */

    uint64_t sample; /* that is being written */
    uint64_t mark, next_mark;
    bool begun_on_disk; /* payloads of this sample were written already */
    size_t only_field;  /* that may be set; SIZE_MAX = any */
    bool copies;        /* the next value, although bytes are borrowed */
    coffer__mldf_batch_out batch;
    coffer__mldf_spill rows, table;
    bool dedup;
    coffer__mldf_dedup known;

    coffer__pool *pool;             /* made when first needed */
    coffer__mldf_encoder *encoders; /* one for each of its threads */
    uint32_t encoder_count;

    coffer__mldf_base *base;             /* NULL for a new set */
    coffer__mldf_checkpoint *checkpoint; /* NULL when not resumable */
};

/* ---- mldf_write.c, mldf_write_batch.c, mldf_write_sample.c ---- */

/* Bytes of plain values, or of rows, that are written together. */
#define COFFER__MLDF_PLAIN_BATCH ((size_t)1 << 20)

coffer_status coffer__mldf_fail_without_key(const coffer__mldf_column *column, coffer_error *err);

/* A writer with fields and memory, but nothing to write to. opts : taken, checked. */
coffer_status coffer__mldf_writer_new(coffer_mldf_writer **out, const char *path,
                                      const coffer_mldf_writer_opts *opts, coffer_error *err);
void coffer__mldf_writer_free(coffer_mldf_writer *writer);
coffer_status coffer__mldf_writer_columns(coffer_mldf_writer *writer, const coffer_mldf_field *fields,
                                          size_t count, coffer_error *err);
coffer_status coffer__mldf_open_sink(coffer_mldf_writer *writer, coffer_error *err);
/* COFFER_E_INVALID_ARGUMENT when a field is to be encrypted and the writer has no key. */
coffer_status coffer__mldf_expect_key(const coffer_mldf_writer *writer, coffer_error *err);
/* Bytes before the padding that ends at the first page of data. */
uint64_t coffer__mldf_front_size(const coffer_mldf_writer *writer);
/* Head, room for the descriptors and the guard, and the dictionaries as the first payloads. */
coffer_status coffer__mldf_write_front(coffer_mldf_writer *writer, coffer_error *err);
coffer_status coffer__mldf_add_entry(coffer_mldf_writer *writer, uint64_t offset, uint32_t size, uint32_t crc,
                                     coffer_error *err);
/* A payload that belongs to no sample. */
coffer_status coffer__mldf_store_payload(coffer_mldf_writer *writer, const void *bytes, uint32_t size,
                                         coffer_error *err);
/* The dictionary of a field, if it has one that is not in the file yet. */
coffer_status coffer__mldf_write_dictionary(coffer_mldf_writer *writer, size_t field, coffer_error *err);
/* Encodes and writes what waits, and hands the finished rows on. */
coffer_status coffer__mldf_flush(coffer_mldf_writer *writer, coffer_error *err);
coffer_status coffer__mldf_end_row(coffer_mldf_writer *writer, coffer_error *err);
/* No payload of the sample that is being written is in the file or about to be written. */
bool coffer__mldf_between_samples(const coffer_mldf_writer *writer);
/* Puts a row in the place of the one that is being written; places of payloads in it are those of another
 * file until they are put. */
void coffer__mldf_put_row(coffer_mldf_writer *writer, const uint8_t *row, size_t len);
uint8_t *coffer__mldf_current_row(coffer_mldf_writer *writer);
/* Puts the payload of a field as it is to be stored; with COFFER__MLDF_STEP_SEAL it is encrypted first, with
 * COFFER__MLDF_STEP_ZSTD compressed. */
coffer_status coffer__mldf_put_payload(coffer_mldf_writer *writer, size_t field, const void *bytes,
                                       size_t size, unsigned steps, coffer_error *err);

/* ---- mldf_write_end.c ---- */

uint32_t coffer__mldf_file_flags(const coffer_mldf_writer *writer);
/* The descriptors as they are in the file; the caller frees them. */
coffer_status coffer__mldf_compose_fields(uint8_t **out, size_t *len, const coffer_mldf_writer *writer,
                                          coffer_error *err);

/* Gives the writer an identifier and decides whether the file gets a guard; called when its fields are known.
 */
void coffer__mldf_guard_begin(coffer_mldf_writer *writer);
/* Adds a mark of a repair; adjoining samples become one mark. */
coffer_status coffer__mldf_add_mark(coffer_mldf_writer *writer, const coffer__mldf_mark *mark,
                                    coffer_error *err);
/* Copies the marks of one sample of another set to the current sample. fields : of the set, in the order of
 * the writer's; NULL = all. */
coffer_status coffer__mldf_carry_marks(coffer_mldf_writer *writer, const coffer__mldf_mark *marks,
                                       size_t count, uint64_t sample, const size_t *fields,
                                       coffer_error *err);
/* Writes the marks and leaves room for the second guard, after the rows and before the table. */
coffer_status coffer__mldf_guard_place(coffer_mldf_writer *writer, coffer__mldf_guard *guard,
                                       coffer_error *err);
/* Writes both guards, when everything else is written; front_crc is set. */
coffer_status coffer__mldf_guard_finish(coffer_mldf_writer *writer, coffer__mldf_guard *guard,
                                        const coffer__mldf_header *head, coffer_error *err);
uint32_t coffer__mldf_sum_zeros(uint32_t crc, uint64_t count);

/* ---- mldf_write_recovery.c ---- */

/* True when a block should be written before a payload at this position. */
bool coffer__mldf_recovery_due(const coffer_mldf_writer *writer, uint64_t position);
/* Writes blocks of all rows and entries that are not in one. batch_rows : rows of the batch that are complete
 * and not yet in writer->rows. */
coffer_status coffer__mldf_recovery_write(coffer_mldf_writer *writer, size_t batch_rows, coffer_error *err);

/* ---- mldf_append.c ---- */

/* Opens the set at writer->path to change it; the writer continues after its last sample. */
coffer_status coffer__mldf_base_open(coffer_mldf_writer *writer, coffer_error *err);
/* The fields of the set, and one more or NULL. */
coffer_status coffer__mldf_base_fields(coffer_mldf_writer *writer, const coffer_mldf_field *added,
                                       coffer_error *err);
/* Before the first byte is appended. */
coffer_status coffer__mldf_base_begin(coffer_mldf_writer *writer, coffer_error *err);
coffer_status coffer__mldf_base_commit(coffer_mldf_writer *writer, coffer_error *err);
void coffer__mldf_base_free(coffer__mldf_base *base);

/* ---- mldf_dedup.c ---- */

coffer_status coffer__mldf_base_learn(coffer_mldf_writer *writer, coffer_error *err);
/* Offset of an equal payload in the set that is changed; 0 if it has no equal payload. */
coffer_status coffer__mldf_base_find(uint64_t *offset, const coffer_mldf_writer *writer,
                                     const coffer__mldf_item *item, coffer_error *err);

/* ---- mldf_copy.c ---- */

/* Gives the writer the fields of a set (those of the list; NULL = all, and then perhaps one more after
 * them), with their dictionaries. */
coffer_status coffer__mldf_take_fields(coffer_mldf_writer *writer, const coffer_mldf *set,
                                       const size_t *fields, size_t count, const coffer_mldf_field *added,
                                       coffer_error *err);

/* Rows of a set, read many at a time as long as they are asked for in order. */
typedef struct coffer__mldf_row_reader {
    const coffer_mldf *set;
    uint8_t *rows;
    uint64_t first;
    size_t count, capacity; /* rows */
} coffer__mldf_row_reader;

coffer_status coffer__mldf_row_reader_init(coffer__mldf_row_reader *out, const coffer_mldf *set,
                                           coffer_error *err);
void coffer__mldf_row_reader_free(coffer__mldf_row_reader *reader);
/* sample : is there. The row is valid until the next call. */
coffer_status coffer__mldf_row_of(const uint8_t **out, coffer__mldf_row_reader *reader, uint64_t sample,
                                  coffer_error *err);

/* A payload as another file, or another place of this one, has it. */
typedef struct coffer__mldf_stored {
    const uint8_t *bytes;
    size_t size;
    uint64_t sample;
    size_t field;
    const uint8_t *id; /* of the file that it comes from */
} coffer__mldf_stored;

/* Puts it into the current sample as it is. One that is encrypted for another sample or field is encrypted
 * again: the numbers are part of what is authenticated. */
coffer_status coffer__mldf_put_stored(coffer_mldf_writer *writer, const coffer__mldf_stored *from, size_t to,
                                      coffer_bytes *scratch, coffer_error *err);

/* Copies samples of a set into a writer that has its fields. */
typedef struct coffer__mldf_copier {
    coffer_mldf_writer *writer;
    coffer_mldf *set;     /* a handle of its own: every payload is compared with its checksum */
    const size_t *fields; /* of the set, in the order of the writer's; NULL = all */
    coffer__mldf_row_reader rows;
    coffer__mldf_mark *marks; /* of the set */
    size_t mark_count;
    coffer_bytes stored, plain;
} coffer__mldf_copier;

/* set : its source, key and limits are used. */
coffer_status coffer__mldf_copier_init(coffer__mldf_copier *out, coffer_mldf_writer *writer,
                                       const coffer_mldf *set, const size_t *fields, coffer_error *err);
void coffer__mldf_copier_free(coffer__mldf_copier *copier);
/* The next sample of the writer is this one. */
coffer_status coffer__mldf_copy_sample(coffer__mldf_copier *copier, uint64_t sample, coffer_error *err);
/* The payload of one value, compared with its checksum. */
coffer_status coffer__mldf_copy_payload(coffer__mldf_copier *copier, uint64_t sample, size_t from, size_t to,
                                        coffer_error *err);

/* ---- mldf_extract.c ---- */

/* COFFER_E_INCONSISTENT with the first difference between the fields of a set and those of the first one,
 * which the writer has. */
coffer_status coffer__mldf_compare_fields(const coffer_mldf_writer *writer, const coffer_mldf *first,
                                          const coffer_mldf *set, coffer_error *err);
/* The settings with which a set was written. */
coffer_mldf_writer_opts coffer__mldf_settings_of(const coffer_mldf *set);
/* A writer of a new file with fields of a set (NULL = all). */
coffer_status coffer__mldf_start_copy(coffer_mldf_writer **out, const char *path, const coffer_mldf *set,
                                      const size_t *fields, size_t count, const coffer_mldf_writer_opts *opts,
                                      coffer_error *err);
/* Writes the whole set to a new file. */
coffer_status coffer__mldf_rewrite(const char *out_path, const coffer_mldf *set, bool overwrite,
                                   const coffer_limits *limits, const coffer_progress *progress,
                                   coffer_error *err);

/* ---- mldf_checkpoint.c ---- */

/* A new one; what stood in PATH.partial is cut off. */
coffer_status coffer__mldf_checkpoint_start(coffer_mldf_writer *writer, coffer_error *err);
/* Keeps finished rows, and the table entries that were added since, as soon as a sample ends. */
coffer_status coffer__mldf_checkpoint_add(coffer_mldf_writer *writer, const uint8_t *rows, size_t len,
                                          coffer_error *err);
/* Keeps where the sample comes from that has just ended. */
coffer_status coffer__mldf_checkpoint_origin(coffer_mldf_writer *writer, coffer_error *err);
/* The set is whole under its name: nothing is left to resume. Rows that cannot be removed do no harm without
 * the data. */
void coffer__mldf_checkpoint_remove(const coffer__mldf_checkpoint *checkpoint);
void coffer__mldf_checkpoint_free(coffer__mldf_checkpoint *checkpoint);

#endif
