/* Shared by all conversions from a training set: the set, the chosen fields and samples, their values. */
#ifndef COFFER_CONVERT_MLDF_EXPORT_H
#define COFFER_CONVERT_MLDF_EXPORT_H

#include "base/buffer.h"
#include "coffer/mldf.h"
#include "convert/convert.h"
#include "io/sink.h"

/* The options of every conversion from a set. */
#define COFFER__MLDF_EXPORT_OPTIONS                                                                  \
    { "field", "NAME", "only this field; repeatable" }, { "samples", "A..B", "only these samples" }, \
    {                                                                                                \
        "key-file", "FILE", "the key of encrypted fields: 32 bytes or 64 hexadecimal digits"         \
    }

typedef struct coffer__mldf_export {
    const coffer__convert_job *job;
    coffer_mldf *set;
    size_t *fields; /* those that are asked for, in the order of the set */
    size_t field_count;
    uint64_t begin, end; /* samples */
    coffer__sink *sink;
    /* The value that was read last. */
    coffer_mldf_entry entry;
    coffer_bytes bytes;
    uint64_t dims[COFFER_MLDF_MAX_DIMS]; /* of an array; of a raw picture and of tokens as well */
    bool has_dims;
    coffer_dtype dtype; /* of the elements when there are dims */
    uint32_t ndim;
} coffer__mldf_export;

/* Opens the set and looks at the settings "field", "samples" and "key-file". */
coffer_status coffer__mldf_export_open(coffer__mldf_export *out, const coffer__convert_job *job,
                                       coffer_error *err);
void coffer__mldf_export_close(coffer__mldf_export *export);
coffer_status coffer__mldf_export_create(coffer__mldf_export *export, coffer_error *err);
/* Checks that the input was not changed meanwhile, and commits the output. */
coffer_status coffer__mldf_export_commit(coffer__mldf_export *export, coffer_error *err);

const coffer_mldf_field *coffer__mldf_export_field(const coffer__mldf_export *export, size_t index);
/* Reads value `index` of those chosen. An absent one has entry.present false. */
coffer_status coffer__mldf_export_read(coffer__mldf_export *export, uint64_t sample, size_t index,
                                       coffer_error *err);
/* The key of 32 bytes, or 64 hexadecimal digits, in the file that the setting "key-file" names; *key is NULL
 * without it. */
coffer_status coffer__mldf_job_key(const uint8_t **key, uint8_t room[COFFER_MLDF_KEY_SIZE],
                                   const coffer__convert_job *job, coffer_error *err);

#endif
