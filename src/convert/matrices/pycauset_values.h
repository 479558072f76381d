/* Elements on their way between a matrix and a file of another kind: what both directions share. */
#ifndef COFFER_CONVERT_PYCAUSET_VALUES_H
#define COFFER_CONVERT_PYCAUSET_VALUES_H

#include "coffer/pycauset.h"
#include "convert/convert.h"

/* The setting "dtype", one that a matrix can have. Untouched when it is not there. */
coffer_status coffer__pycauset_dtype_setting(coffer_dtype *out, const coffer__convert_job *job,
                                             coffer_error *err);
/* The setting "delimiter" (default: a comma); a blank matches any blanks. */
coffer_status coffer__pycauset_delimiter(char *out, const coffer__convert_job *job, coffer_error *err);
/* COFFER_E_LIMIT when a file would expand to more than the setting "max-size", or the limits, allow.
 * overflows : it is even more than 64 bits can say. */
coffer_status coffer__pycauset_check_expansion(uint64_t bytes, bool overflows, uint64_t from_bytes,
                                               const coffer__convert_job *job, coffer_error *err);
/* The type of the same values in memory, where a bit takes a byte. */
static inline coffer_dtype coffer__pycauset_memory_dtype(coffer_dtype dtype)
{
    return dtype == COFFER_DTYPE_BIT ? COFFER_DTYPE_BOOL : dtype;
}

/* The position of a run of elements, for messages. */
typedef struct coffer__pycauset_place {
    uint64_t row, col; /* of its first element */
    uint64_t cols;     /* after which the next row begins, at first_col */
    uint64_t first_col;
} coffer__pycauset_place;

/* Converts a run of elements. Real numbers are rounded; an integer or a bit must be what the value was, and a
 * complex number does not become a real one: an error that names the option. in and out do not overlap. */
coffer_status coffer__pycauset_cast(void *out, coffer_dtype to, const void *in, coffer_dtype from,
                                    size_t count, const coffer__pycauset_place *place, coffer_error *err);

/* Copies the elements of a block of columns, each column of `rows` elements without a gap, to rows that are
 * row_stride bytes apart. size : of an element, 1, 2, 4, 8 or 16. */
void coffer__pycauset_columns_to_rows(uint8_t *out, size_t row_stride, const uint8_t *columns, size_t rows,
                                      size_t cols, size_t size);

#endif
