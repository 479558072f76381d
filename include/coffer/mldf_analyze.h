#ifndef COFFER_MLDF_ANALYZE_H
#define COFFER_MLDF_ANALYZE_H

#include "coffer/mldf.h"

COFFER_BEGIN_DECLS

/* Analyzing a training set: damaged samples, selections, dictionaries, statistics. */

typedef struct coffer_mldf_find_damaged_opts {
    uint32_t struct_size;
    uint32_t threads; /* 0 = one per core */
    const coffer_progress *progress;
} coffer_mldf_find_damaged_opts;

#define COFFER_MLDF_FIND_DAMAGED_OPTS_INIT             \
    {                                                  \
        sizeof(coffer_mldf_find_damaged_opts), 0, NULL \
    }

COFFER_API void coffer_mldf_find_damaged_opts_init(coffer_mldf_find_damaged_opts *out, uint32_t struct_size);

/* Indices of the samples that cannot be read completely, ascending. *samples is owned by the caller,
 * coffer_free(). Encrypted payloads are verified with the key of the set, if it has one. */
COFFER_API_STATUS coffer_mldf_find_damaged(uint64_t **samples, uint64_t *count, const coffer_mldf *set,
                                           const coffer_mldf_find_damaged_opts *opts, coffer_error *err);

typedef struct coffer_mldf_select_opts {
    uint32_t struct_size;
    const coffer_progress *progress; /* counts samples */
} coffer_mldf_select_opts;

#define COFFER_MLDF_SELECT_OPTS_INIT          \
    {                                         \
        sizeof(coffer_mldf_select_opts), NULL \
    }

COFFER_API void coffer_mldf_select_opts_init(coffer_mldf_select_opts *out, uint32_t struct_size);

/* Indices of the samples that meet all conditions, ascending. *samples is owned by the caller, coffer_free();
 * NULL when no sample does. A condition compares a number or text field with a value, "label=3",
 * "score>=0.5", "class!=cat", a text with a shell pattern, "path~train/?*.png", or a property of a picture,
 * sound or other value: "image.width<64" (size, width, height, channels, seconds, sample_rate). "caption"
 * alone means that the value is there, "!caption" that it is absent; an absent value meets != and !~ only.
 * COFFER_E_INVALID_ARGUMENT for a condition that cannot be understood. */
COFFER_API_STATUS coffer_mldf_select(uint64_t **samples, uint64_t *count, const coffer_mldf *set,
                                     const char *const *conditions, size_t condition_count,
                                     const coffer_mldf_select_opts *opts, coffer_error *err);

typedef struct coffer_mldf_train_opts {
    uint32_t struct_size;
    size_t size; /* at most this many bytes, at least 256; 0 = 110 KiB */
} coffer_mldf_train_opts;

#define COFFER_MLDF_TRAIN_OPTS_INIT       \
    {                                     \
        sizeof(coffer_mldf_train_opts), 0 \
    }

COFFER_API void coffer_mldf_train_opts_init(coffer_mldf_train_opts *out, uint32_t struct_size);

/* Trains a zstd dictionary on values of a field, sampled evenly over the set. */
COFFER_API_STATUS coffer_mldf_train_dictionary(coffer_bytes *out, const coffer_mldf *set, size_t field,
                                               const coffer_mldf_train_opts *opts, coffer_error *err);

/* Statistics from the rows of a set; no payload is read. */
typedef struct coffer_mldf_stats coffer_mldf_stats;

typedef struct coffer_mldf_stats_opts {
    uint32_t struct_size;
    const coffer_progress *progress; /* counts fields */
    const uint64_t *samples;         /* only these, ascending; NULL = all */
    uint64_t sample_count;
} coffer_mldf_stats_opts;

#define COFFER_MLDF_STATS_OPTS_INIT                   \
    {                                                 \
        sizeof(coffer_mldf_stats_opts), NULL, NULL, 0 \
    }

COFFER_API void coffer_mldf_stats_opts_init(coffer_mldf_stats_opts *out, uint32_t struct_size);

/* A measured quantity. Never grows: it is part of coffer_mldf_field_stats. */
typedef struct coffer_mldf_range {
    uint64_t count; /* the other members are 0 when count is 0 */
    double min, max, sum;
} coffer_mldf_range;

typedef struct coffer_mldf_field_stats {
    uint32_t struct_size;
    const coffer_mldf_field *field; /* borrowed from the set */
    uint64_t present, absent;
    uint64_t not_finite;       /* scalars that are infinite or NaN; `scalars` does not count them */
    coffer_mldf_range bytes;   /* stored sizes of payloads */
    coffer_mldf_range scalars; /* values of scalars */
    coffer_mldf_range widths, heights;
    coffer_mldf_range seconds;
    coffer_mldf_range tokens;
    /* Distinct integers, picture sizes or sample rates. When there are too many to count,
     * values_overflowed is set and values_counted is incomplete. */
    size_t values_counted;
    bool values_overflowed;
} coffer_mldf_field_stats;

/* One distinct value of a field and the number of its samples. */
typedef struct coffer_mldf_value_count {
    uint32_t struct_size;
    int64_t value;          /* the integer, or the sample rate */
    uint32_t width, height; /* of pictures */
    uint64_t count;
    uint64_t first_sample;
} coffer_mldf_value_count;

#define COFFER_MLDF_VALUE_COUNT_INIT                   \
    {                                                  \
        sizeof(coffer_mldf_value_count), 0, 0, 0, 0, 0 \
    }

COFFER_API void coffer_mldf_value_count_init(coffer_mldf_value_count *out, uint32_t struct_size);

/* Computes statistics of all fields. set : borrowed, must outlive the statistics. O(samples × fields). */
COFFER_API_STATUS coffer_mldf_stats_new(coffer_mldf_stats **out, const coffer_mldf *set,
                                        const coffer_mldf_stats_opts *opts, coffer_error *err);
COFFER_API void coffer_mldf_stats_free(coffer_mldf_stats *stats);
/* Sum of the stored sizes of all values, and the same with each shared payload counted once. The two are
 * equal when there are too many payloads to tell. */
COFFER_API uint64_t coffer_mldf_stats_payload_bytes(const coffer_mldf_stats *stats);
COFFER_API uint64_t coffer_mldf_stats_stored_bytes(const coffer_mldf_stats *stats);
/* Borrowed from the statistics; NULL past the last field. */
COFFER_API const coffer_mldf_field_stats *coffer_mldf_stats_field_at(const coffer_mldf_stats *stats,
                                                                     size_t field);
/* The most frequent value first, equally frequent ones ascending. index < values_counted of the field,
 * otherwise COFFER_E_OUT_OF_BOUNDS. */
COFFER_API_STATUS coffer_mldf_stats_value_at(coffer_mldf_value_count *out, const coffer_mldf_stats *stats,
                                             size_t field, size_t index, coffer_error *err);

COFFER_END_DECLS

#endif
