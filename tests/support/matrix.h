/* Matrices for tests: random ones of any type, and what they hold, worked out the slow way. */
#ifndef SUPPORT_MATRIX_H
#define SUPPORT_MATRIX_H

#include "coffer/coffer.h"
#include "coffer/pycauset.h"

typedef struct test_matrix {
    coffer_pycauset_shape shape;
    coffer_dtype element; /* of `rows`: BOOL for BIT */
    uint8_t *rows;        /* as coffer_pycauset_writer_put_rows takes them */
    double *pairs;        /* the stored values, (real, imaginary), mirror images in place */
} test_matrix;

/* Zeros where the type demands them; values are small, so that every type holds them exactly. */
void test_matrix_make(test_matrix *out, const coffer_pycauset_shape *shape, uint64_t seed);
void test_matrix_free(test_matrix *matrix);
/* Writes it, `at_once` rows in a call; replaces a file of that name. */
void test_matrix_write(const test_matrix *matrix, const char *path, uint64_t at_once,
                       const coffer_pycauset_writer_opts *opts);
/* Element (row, col) as it is seen. */
void test_matrix_value(double pair[2], const test_matrix *matrix, uint64_t row, uint64_t col);
uint64_t test_matrix_seen_rows(const test_matrix *matrix);
uint64_t test_matrix_seen_cols(const test_matrix *matrix);

/* The statistics of a matrix, copied. */
coffer_status test_matrix_stats(coffer_pycauset_summary *out, const coffer_pycauset *matrix,
                                const coffer_pycauset_stats_opts *opts, coffer_error *err);

/* Every type of matrix with every type of element it can have. */
size_t test_matrix_kinds(void);
coffer_pycauset_shape test_matrix_kind(size_t index, uint64_t rows, uint64_t cols);

#endif
