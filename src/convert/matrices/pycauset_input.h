/* Shared by the conversions to pycauset: an input gives the rows of a matrix. */
#ifndef COFFER_CONVERT_PYCAUSET_INPUT_H
#define COFFER_CONVERT_PYCAUSET_INPUT_H

#include "coffer/pycauset.h"
#include "convert/convert.h"

typedef enum coffer__pycauset_mirror {
    COFFER__PYCAUSET_PLAIN,
    COFFER__PYCAUSET_SYMMETRIC,
    COFFER__PYCAUSET_ANTISYMMETRIC,
    COFFER__PYCAUSET_HERMITIAN
} coffer__pycauset_mirror;

typedef struct coffer__pycauset_input {
    uint64_t rows, cols; /* a vector has cols 1 */
    bool is_vector;
    coffer_dtype dtype; /* of the elements that `read` gives; BOOL where they are bits */
    /* SYMMETRIC or ANTISYMMETRIC: `read` gives the upper triangle, and anything below it. */
    coffer__pycauset_mirror half;
    uint64_t band_rows;               /* 0, or: rows are best asked for in multiples of this */
    uint64_t band_bytes;              /* 0, or: in pieces of about this size */
    coffer_pycauset_changes *changes; /* metadata that the file brings along, or NULL; freed by the user */
    void *state;
    /* The next `count` rows without a gap. */
    coffer_status (*read)(void *out, uint64_t count, struct coffer__pycauset_input *input, coffer_error *err);
    void (*close)(void *state); /* NULL allowed */
} coffer__pycauset_input;

/* Opens the job's input; closed by out->close(out->state). On failure there is nothing to close. */
typedef coffer_status (*coffer__pycauset_opener)(coffer__pycauset_input *out, const coffer__convert_job *job,
                                                 coffer_error *err);
coffer_status coffer__pycauset_input_npy(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err);
coffer_status coffer__pycauset_input_npz(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err);
coffer_status coffer__pycauset_input_raw(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err);
coffer_status coffer__pycauset_input_csv(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err);
coffer_status coffer__pycauset_input_mtx(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err);
coffer_status coffer__pycauset_input_hdf5(coffer__pycauset_input *out, const coffer__convert_job *job,
                                          coffer_error *err);

/* The setting "slice": an index for each of the dimensions before the last two, as the number of the matrix
 * among all of them. COFFER_E_INVALID_ARGUMENT when there are more or fewer indices, or one is too large. */
coffer_status coffer__pycauset_slice(uint64_t *matrix, const uint64_t *shape, size_t dimensions,
                                     const coffer__convert_job *job, coffer_error *err);

/* Sets the shape for `count` elements from the settings "rows" and "cols", either of which may be missing.
 * COFFER_E_INVALID_ARGUMENT when the product is not `count`. */
coffer_status coffer__pycauset_reshape(coffer__pycauset_input *out, uint64_t count,
                                       const coffer__convert_job *job, coffer_error *err);

/* ---- Consecutive elements of a source ---- */

typedef struct coffer__pycauset_elements {
    coffer_source *src;
    uint64_t offset; /* of the first */
    bool by_columns; /* instead of by rows */
    bool big_endian;
    coffer__pycauset_mirror mirror; /* by_columns: the lower triangle is there, the upper one is its image */
    void *owner;                    /* closed with the input */
    void (*close_owner)(void *owner);
} coffer__pycauset_elements;

/* out has shape and dtype; this fills the rest. Takes the owner over on success. */
coffer_status coffer__pycauset_input_elements(coffer__pycauset_input *out,
                                              const coffer__pycauset_elements *elements,
                                              const coffer_limits *limits, coffer_error *err);

#endif
