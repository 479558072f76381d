#ifndef COFFER_MLDF_SELECT_H
#define COFFER_MLDF_SELECT_H

#include "coffer/mldf.h"

COFFER_BEGIN_DECLS

/* Training sets: selecting samples by their values, dropping and renaming fields, training dictionaries. */

typedef struct coffer_mldf_select_opts {
    uint32_t struct_size;
    const coffer_progress *progress; /* counts samples */
} coffer_mldf_select_opts;

#define COFFER_MLDF_SELECT_OPTS_INIT          \
    {                                         \
        sizeof(coffer_mldf_select_opts), NULL \
    }

COFFER_API void coffer_mldf_select_opts_init(coffer_mldf_select_opts *out, uint32_t struct_size);

/* Indices of the samples that meet all conditions, ascending. *samples is owned by the caller, coffer_free();
 * NULL when no sample does. A condition compares a number or text field with a value, "label=3",
 * "score>=0.5", "class!=cat", a text with a shell pattern, "path~train/?*.png", or a property of a picture,
 * sound or other value: "image.width<64" (size, width, height, channels, seconds, sample_rate). "caption"
 * alone means that the value is there, "!caption" that it is absent; an absent value meets != and !~ only.
 * COFFER_E_INVALID_ARGUMENT for a condition that cannot be understood. */
COFFER_API_STATUS coffer_mldf_select(uint64_t **samples, uint64_t *count, const coffer_mldf *set,
                                     const char *const *conditions, size_t condition_count,
                                     const coffer_mldf_select_opts *opts, coffer_error *err);

/* Drops fields, or gives one another name. The file is written again next to the old one, which it replaces
 * at the end. Encrypted fields require the key when the fields before them are dropped. */
COFFER_API_STATUS coffer_mldf_update_drop_fields(const char *path, const size_t *fields, size_t count,
                                                 const coffer_mldf_update_opts *opts, coffer_error *err);
COFFER_API_STATUS coffer_mldf_update_rename_field(const char *path, size_t field, const char *name,
                                                  const coffer_mldf_update_opts *opts, coffer_error *err);

typedef struct coffer_mldf_train_opts {
    uint32_t struct_size;
    size_t size; /* at most this many bytes, at least 256; 0 = 110 KiB */
} coffer_mldf_train_opts;

#define COFFER_MLDF_TRAIN_OPTS_INIT       \
    {                                     \
        sizeof(coffer_mldf_train_opts), 0 \
    }

COFFER_API void coffer_mldf_train_opts_init(coffer_mldf_train_opts *out, uint32_t struct_size);

/* Trains a zstd dictionary on values of a field, sampled evenly over the set. */
COFFER_API_STATUS coffer_mldf_train_dictionary(coffer_bytes *out, const coffer_mldf *set, size_t field,
                                               const coffer_mldf_train_opts *opts, coffer_error *err);

COFFER_END_DECLS

#endif
