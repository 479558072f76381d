/* Training sets for tests, put together byte by byte. */
#ifndef SUPPORT_DATASET_H
#define SUPPORT_DATASET_H

#include "coffer/format.h"
#include "coffer/mldf.h"
#include "support/acts.h"
#include "support/temp.h"

#include <stdatomic.h>

#define DATASET_MAX_FIELDS 32

typedef struct dataset_opts {
    uint32_t stride; /* 208 or 204; 0 = 208 */
    bool rows_last;  /* data region, then rows, as a streaming writer leaves them; else rows first */
    bool checksummed;
    bool unsized;       /* zstd frames that do not say how much they hold */
    uint32_t page_size; /* 0 = 4096 */
    const uint8_t *key; /* of encrypted fields */
} dataset_opts;

typedef struct dataset dataset;

/* opts : NULL = zeros. The test fails when something does not fit. */
dataset *dataset_new(uint64_t samples, const dataset_opts *opts);
void dataset_free(dataset *set);
/* Fields first, then values. flags : of the field. Gives its index. */
size_t dataset_field(dataset *set, const char *name, uint16_t type, uint16_t flags);
/* One of a type that nobody knows, or with a row entry of another size. */
size_t dataset_foreign_field(dataset *set, const char *name, uint16_t type, uint32_t row_size);
/* A field whose type has an array descriptor; dtype is the number in the file format. */
size_t dataset_array_field(dataset *set, const char *name, uint16_t type, uint16_t flags, uint8_t dtype,
                           uint32_t ndim, const uint64_t *dims);
/* A zstd dictionary for the payloads of the field, which are given after it. */
void dataset_dictionary(dataset *set, size_t field, const void *bytes, size_t len);

void dataset_int(dataset *set, uint64_t sample, size_t field, int64_t value);
void dataset_float(dataset *set, uint64_t sample, size_t field, double value);
/* Compressed and encrypted as the field says. entry : what the row says beside place and size; may be NULL.
 * Values that are not set are absent. */
void dataset_bytes(dataset *set, uint64_t sample, size_t field, const void *bytes, size_t len,
                   const coffer_mldf_entry *entry);
/* The payload of another sample. */
void dataset_share(dataset *set, uint64_t sample, size_t field, uint64_t other);
/* Row bytes as they are. */
void dataset_row(dataset *set, uint64_t sample, size_t field, const void *bytes, size_t len);

/* Where the parts are. */
typedef struct dataset_places {
    uint64_t descriptors, rows, data, table;
    uint32_t stride, row_size;
} dataset_places;

/* The file (free()); places : may be NULL. */
uint8_t *dataset_make(size_t *len, dataset_places *places, dataset *set);
/* Place of a row entry in it. */
size_t dataset_entry_at(const dataset *set, const dataset_places *places, uint64_t sample, size_t field);
/* Puts the sums of a checksummed file right after its bytes were changed. */
void dataset_repair_sums(uint8_t *bytes, size_t len);

/* "image" raw 2×3 RGB, "label" int, "score" float, "caption" text, "blob" bytes that every third sample does
 * not have, in this order; what they hold follows from the number of the sample. */
dataset *dataset_small(uint64_t samples, const dataset_opts *opts);
enum { SMALL_IMAGE, SMALL_LABEL, SMALL_SCORE, SMALL_CAPTION, SMALL_BLOB, SMALL_FIELDS };
/* The bytes that the small set has there (at most 256); gives their number, or SIZE_MAX for none. */
size_t dataset_small_value(uint8_t out[256], uint64_t sample, size_t field);

/* A source without views that counts what is read; closing it leaves the counts. */
typedef struct dataset_reads {
    const uint8_t *bytes;
    _Atomic(uint64_t) calls, total;
} dataset_reads;
coffer_source *dataset_counting_source(dataset_reads *reads, const void *bytes, size_t len);

/* Opens, or fails the test. */
coffer_source *dataset_source_of(const void *bytes, size_t len);
coffer_mldf *dataset_open(coffer_source *src);
/* See acts.h. */
static inline coffer_report *dataset_check(coffer_source *src, bool full)
{
    return acts_check(src, full);
}
static inline bool dataset_has(const coffer_report *report, coffer_status code, coffer_severity severity)
{
    return acts_found(report, code, severity);
}
static inline const char *dataset_text(const coffer_report *report, coffer_status code)
{
    return acts_text(report, code);
}
/* Fails the test unless check --full finds nothing in these bytes. */
void dataset_assert_clean(const void *bytes, size_t len);

#endif
