/* Values of a set as files of other programs. */
#ifndef COFFER_CLI_SAMPLE_FILE_H
#define COFFER_CLI_SAMPLE_FILE_H

#include "coffer/media.h"
#include "mldf/sample_value.h"

typedef enum sample_file {
    SAMPLE_FILE_VALUE, /* the value's own bytes: a JPEG is a JPEG, a text a text */
    SAMPLE_FILE_NPY,
    SAMPLE_FILE_PNG,
    SAMPLE_FILE_JPG,
    SAMPLE_FILE_WAV
} sample_file;

/* By the extension of a name; SAMPLE_FILE_VALUE for one that says nothing about values of the field. */
sample_file sample_file_of_name(const char *path, const coffer_mldf_field *field);
/* "jpg" for a JPEG, "npy" for an array: what a file with the value would be called, and what it would be. */
const char *sample_file_extension(sample_file *out, const coffer_mldf_field *field,
                                  const coffer_mldf_entry *entry);

/* The bytes of such a file. COFFER_E_MISSING for an absent value, COFFER_E_UNSUPPORTED when such a file
 * cannot hold it. */
coffer_status sample_put_file(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t index,
                              sample_file as, coffer_error *err);

/* A picture of the set in pixels: decoded, or as it is when it is stored raw. */
coffer_status sample_pixels(coffer_pixels *out, coffer_image_decoder *decoder, sample_reader *reader,
                            uint64_t sample, size_t field, const coffer_image_decode_opts *opts,
                            coffer_error *err);
/* The samples of a sound, −1 to 1, interleaved. *frames of *channels each; *out is coffer__free()d. */
coffer_status sample_sound(float **out, uint64_t *frames, uint32_t *channels, uint32_t *rate,
                           sample_reader *reader, uint64_t sample, size_t field, coffer_error *err);

#endif
