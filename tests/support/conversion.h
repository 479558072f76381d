/* Matrices for the tests of conversions: made, converted and compared. */
#ifndef SUPPORT_CONVERSION_H
#define SUPPORT_CONVERSION_H

#include "coffer/convert.h"
#include "coffer/pycauset.h"
#include "support/temp.h"

/* A matrix in the folder of the test, see support/matrix.h. */
void matrix_make(const char *name, const coffer_pycauset_shape *shape);

/* A file of the folder becomes another; settings are pairs of name and value (NULL for a switch), up to a
 * NULL name. */
coffer_status matrix_convert(coffer_error *err, const char *in, const char *out, ...);
/* The same; the test fails when it does. */
#define matrix_must_convert(...)                                      \
    do {                                                              \
        coffer_error must_err = COFFER_ERROR_INIT;                    \
        if (matrix_convert(&must_err, __VA_ARGS__) != COFFER_OK)      \
            fail_msg("%s:%d: %s", __FILE__, __LINE__, must_err.text); \
    } while (0)

/* Fails the test unless the conversion fails with this status and a text that has this in it, and leaves no
 * output. */
#define matrix_must_refuse(status, part, ...)                                                            \
    do {                                                                                                 \
        coffer_error must_err = COFFER_ERROR_INIT;                                                       \
        matrix_check_refused(matrix_convert(&must_err, __VA_ARGS__), &must_err, status, part, __LINE__); \
    } while (0)
void matrix_check_refused(coffer_status got, const coffer_error *err, coffer_status expected,
                          const char *part, int line);

/* All values as pairs of doubles; free(). info : may be NULL. */
double *matrix_values(coffer_pycauset_info *info, const char *name);
/* Fails unless both matrices have the same shape and values. */
void matrix_assert_same(const char *a, const char *b);
/* Fails unless the file is a matrix of these values, row by row; the imaginary parts 0. */
void matrix_assert_values(const char *name, uint64_t rows, uint64_t cols, const double *values);

#endif
