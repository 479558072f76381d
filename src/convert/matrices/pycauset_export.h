/* Shared by the conversions from pycauset: reads the values of a matrix in the order that the output needs.
 */
#ifndef COFFER_CONVERT_PYCAUSET_EXPORT_H
#define COFFER_CONVERT_PYCAUSET_EXPORT_H

#include "base/real.h"
#include "coffer/pycauset.h"
#include "convert/convert.h"
#include "io/sink.h"

/* The capabilities of an output format. */
typedef struct coffer__pycauset_target {
    const char *name; /* "NumPy" */
    bool has_complex;
    bool has_half_complex; /* C32; else it becomes C64 */
} coffer__pycauset_target;

typedef enum coffer__pycauset_part {
    COFFER__PYCAUSET_ALL,
    COFFER__PYCAUSET_REAL,
    COFFER__PYCAUSET_IMAG,
    COFFER__PYCAUSET_ABS
} coffer__pycauset_part;

typedef struct coffer__pycauset_export {
    const coffer__convert_job *job;
    coffer_pycauset *matrix;
    const coffer_pycauset_info *info;
    coffer_pycauset_tile selection;
    bool is_whole;         /* the selection is all there is */
    bool is_vector;        /* of one dimension */
    bool keeps_properties; /* the output has a place for them */
    coffer_dtype dtype;    /* of the values that are given out; BOOL for bits */
    coffer__pycauset_part part;
    /* How values are read before they become that. */
    coffer_dtype read_dtype;
    uint8_t *read, *values;
    uint64_t capacity; /* elements of each */
    coffer_pycauset_tile next;
} coffer__pycauset_export;

/* Opens the matrix and understands the settings. */
coffer_status coffer__pycauset_export_open(coffer__pycauset_export *out, const coffer__convert_job *job,
                                           const coffer__pycauset_target *target, coffer_error *err);
void coffer__pycauset_export_close(coffer__pycauset_export *export);

/* The next values in the order of rows, borrowed until the next call: whole rows of the selection, or a piece
 * of one that is too long. *values is NULL at the end. tile : rows and columns of the matrix. */
coffer_status coffer__pycauset_export_next(const uint8_t **values, coffer_pycauset_tile *tile,
                                           coffer__pycauset_export *export, coffer_error *err);
/* Starts again at the first row. */
void coffer__pycauset_export_rewind(coffer__pycauset_export *export);
/* Any tile of up to `capacity` elements, row by row. */
coffer_status coffer__pycauset_export_tile(const uint8_t **values, const coffer_pycauset_tile *tile,
                                           coffer__pycauset_export *export, coffer_error *err);

/* A new output of the job. */
coffer_status coffer__pycauset_export_create(coffer__sink **out, const coffer__pycauset_export *export,
                                             coffer_error *err);
/* Commits the output, and with it the metadata where a file for it is asked for. Frees the sink, whether it
 * succeeds or not. */
coffer_status coffer__pycauset_export_commit(coffer__sink *sink, const coffer__pycauset_export *export,
                                             coffer_error *err);
/* Only the metadata file, for outputs that do not use a sink: not committed yet; NULL when not requested.
 */
coffer_status coffer__pycauset_export_metadata(coffer__sink **out, const coffer__pycauset_export *export,
                                               coffer_error *err);

/* One value as decimal text, without a NUL; a complex one as two numbers with a blank between them. */
#define COFFER__PYCAUSET_VALUE_TEXT (2 * COFFER__REAL_TEXT + 1)
char *coffer__pycauset_put_value(char *to, const uint8_t *value, coffer_dtype dtype);
/* The text of `count` values from `first` on, each with the separator after it. */
void coffer__pycauset_put_values(coffer__buffer *text, const uint8_t *values, uint64_t first, size_t count,
                                 coffer_dtype dtype, char separator);
#define COFFER__PYCAUSET_TEXT_PIECE 4096 /* values that one thread turns into text at a time */
bool coffer__pycauset_is_zero(const uint8_t *value, coffer_dtype dtype);

#endif
