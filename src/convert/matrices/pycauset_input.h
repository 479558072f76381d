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

/* Parts of the conversions to pycauset. */

/* Describes a matrix before it is written. */
void coffer__pycauset_info_of_shape(coffer_pycauset_info *out, const coffer_pycauset_shape *shape);
/* Chooses the shape of the file from the settings "type", "diagonal", "dtype" and "portable" and from the
 * input. */
coffer_status coffer__pycauset_choose_shape(coffer_pycauset_shape *out, const coffer__pycauset_input *input,
                                            const coffer__convert_job *job, coffer_error *err);

/* Adds what the JSON file of the setting "metadata" says, but for the keys that speak of the payload it was
 * written with. */
coffer_status coffer__pycauset_import_metadata(coffer_pycauset_changes *changes,
                                               const coffer__convert_job *job, coffer_error *err);

/* Detects a matrix that equals its mirror image at the diagonal, with sums over both halves: equal halves
 * have equal sums in any order, and in practice others do not. Takes no memory, so rows can stream by. */
typedef struct coffer__mirror_check {
    bool negative; /* the image has the other sign */
    uint64_t upper, lower;
} coffer__mirror_check;

void coffer__mirror_check_add(coffer__mirror_check *check, const void *rows, coffer_dtype dtype,
                              uint64_t first_row, uint64_t count, uint64_t cols);
bool coffer__mirror_check_holds(const coffer__mirror_check *check);

#endif
