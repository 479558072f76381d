/* The state of a comparison of two sets. */
#ifndef COFFER_FORMATS_MLDF_DIFF_H
#define COFFER_FORMATS_MLDF_DIFF_H

#include "formats/mldf/analyze/mldf_survey.h"

/* A field that both have, under one name, with values that can be compared. */
typedef struct coffer__mldf_pair {
    size_t field[2];
    uint64_t differing;
    uint64_t first; /* sample; UINT64_MAX if no sample differs */
    double largest; /* of numbers: |a − b| */
} coffer__mldf_pair;

typedef struct coffer__mldf_comparison {
    const coffer_mldf *set[2];
    const coffer_diff_opts *opts;
    uint64_t samples;  /* that both have */
    uint64_t *matches; /* pairs of them, (a, b), in the order of a; NULL = the same numbers in both */
    uint64_t moved;    /* of them, in another order */
    coffer__mldf_pair *pairs;
    size_t pair_count;
} coffer__mldf_comparison;

static inline uint64_t coffer__mldf_sample_of(const coffer__mldf_comparison *comparison, uint64_t index,
                                              int side)
{
    return comparison->matches ? comparison->matches[2 * index + (uint64_t)side] : index;
}

/* The pair whose values name samples, by opts->align_by or a usual name; SIZE_MAX = none. */
coffer_status coffer__mldf_align_field(size_t *out, const coffer__mldf_comparison *comparison,
                                       coffer_error *err);
/* Finds which samples are the same, and sets samples, matches and moved. key : of the function above. */
coffer_status coffer__mldf_align(coffer__mldf_comparison *comparison, size_t key, coffer_error *err);

/* Compares the values of all pairs, and lists the first opts->max_shown differences in `differences`,
 * which may be NULL. */
coffer_status coffer__mldf_compare_values(coffer__mldf_comparison *comparison, coffer_node *differences,
                                          coffer_error *err);

#endif
