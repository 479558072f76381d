/* Parts of the conversions to pycauset. */
#ifndef COFFER_CONVERT_PYCAUSET_IMPORT_H
#define COFFER_CONVERT_PYCAUSET_IMPORT_H

#include "convert/matrices/pycauset_input.h"

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
