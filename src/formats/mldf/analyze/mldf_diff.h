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
    uint64_t samples; /* that both have */
    coffer__mldf_pair *pairs;
    size_t pair_count;
} coffer__mldf_comparison;

/* Compares the values of all pairs, and lists the first opts->max_shown differences in `differences`. */
coffer_status coffer__mldf_compare_values(coffer__mldf_comparison *comparison, coffer_node *differences,
                                          coffer_error *err);

#endif
