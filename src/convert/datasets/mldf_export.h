/* Shared by all conversions from a training set: the set, the chosen fields and samples, their values. */
#ifndef COFFER_CONVERT_MLDF_EXPORT_H
#define COFFER_CONVERT_MLDF_EXPORT_H

#include "base/buffer.h"
#include "base/json_write.h"
#include "coffer/mldf.h"
#include "convert/convert.h"
#include "convert/datasets/dataset_columns.h"
#include "io/sink.h"

/* The options of every conversion from a set. */
#define COFFER__MLDF_EXPORT_OPTIONS                                                                  \
    { "field", "NAME", "only this field; repeatable" }, { "samples", "A..B", "only these samples" }, \
        { "where", "CONDITION",                                                                      \
          "only samples that meet it, such as label=3, score>=0.5, 'path~cat/*', image.width<64; "   \
          "repeatable" },                                                                            \
    {                                                                                                \
        "key-file", "FILE", "the key of encrypted fields: 32 bytes or 64 hexadecimal digits"         \
    }

typedef struct coffer__mldf_export {
    const coffer__convert_job *job;
    coffer_mldf *set;
    size_t *fields; /* those that are asked for, in the order of the set */
    size_t field_count;
    uint64_t begin, end; /* samples, or positions in `chosen` */
    uint64_t *chosen;    /* the samples that "where" selects; NULL = all */
    coffer__sink *sink;
    /* The value that was read last. */
    coffer_mldf_entry entry;
    coffer_bytes bytes;
    uint64_t dims[COFFER_MLDF_MAX_DIMS]; /* of an array; of a raw picture and of tokens as well */
    bool has_dims;
    coffer_dtype dtype; /* of the elements when there are dims */
    uint32_t ndim;
} coffer__mldf_export;

/* Opens the set and looks at the settings "field", "samples", "where" and "key-file". */
coffer_status coffer__mldf_export_open(coffer__mldf_export *out, const coffer__convert_job *job,
                                       coffer_error *err);
void coffer__mldf_export_close(coffer__mldf_export *export);
coffer_status coffer__mldf_export_create(coffer__mldf_export *export, coffer_error *err);
/* Checks that the input was not changed meanwhile, and commits the output. */
coffer_status coffer__mldf_export_commit(coffer__mldf_export *export, coffer_error *err);

/* The sample at a position from begin to end. */
uint64_t coffer__mldf_export_sample(const coffer__mldf_export *export, uint64_t position);
const coffer_mldf_field *coffer__mldf_export_field(const coffer__mldf_export *export, size_t index);
/* Reads value `index` of those chosen. An absent one has entry.present false. */
coffer_status coffer__mldf_export_read(coffer__mldf_export *export, uint64_t sample, size_t index,
                                       coffer_error *err);
/* The key of 32 bytes, or 64 hexadecimal digits, in the file that the setting "key-file" names; *key is NULL
 * without it. */
coffer_status coffer__mldf_job_key(const uint8_t **key, uint8_t room[COFFER_MLDF_KEY_SIZE],
                                   const coffer__convert_job *job, coffer_error *err);

/* Values of a set inside JSON. A value that JSON cannot hold exactly is an object with its type, its bytes in
 * base64 or as text, and what the row says about them:
 *
 *   {"type": "image-jpeg", "height": 480, "width": 640, "channels": 3, "mode": 1, "base64": "…"}
 *   {"type": "ndarray", "dtype": "f32", "shape": [2, 3], "base64": "…"}
 *   {"type": "json", "text": "[1,\n2]"}      JSON of several lines, null, or a bare number or text
 *   {"type": "float", "base64": "AAAAAAAA+H8="}   NaN and the infinities
 */

/* Writes the object. dims : of an array; else NULL. */
coffer_status coffer__mldf_json_put(coffer__json_writer *writer, const coffer_mldf_field *field,
                                    const coffer_mldf_entry *entry, const uint64_t *dims,
                                    const uint8_t *bytes, size_t size, coffer_error *err);
/* The same with the bytes as text, for JSON and texts. */
void coffer__mldf_json_put_text(coffer__json_writer *writer, uint16_t type, const char *text, size_t len);
/* A float that is not finite. */
coffer_status coffer__mldf_json_put_float(coffer__json_writer *writer, double value, coffer_error *err);
/* True when a JSON value is such an object. */
bool coffer__mldf_json_is(const coffer__json_value *value);
uint16_t coffer__mldf_json_type(const coffer__json_value *object);
/* Its type, and what its array looks like, for the survey of a column. */
coffer_status coffer__mldf_json_survey(coffer__column *column, const coffer__json_value *object,
                                       coffer_error *err);
/* The value itself, READY for its field. */
coffer_status coffer__mldf_json_take(coffer__dataset_value *value, const coffer__json_value *object,
                                     const coffer_mldf_field *field, coffer_error *err);

/* How the fields of a set are named in a tar file, and back. */

/* A member that says what the others are, in a folder that readers of WebDataset pass over. */
#define COFFER__TAR_SCHEMA "__mldf__/schema.json"

typedef enum coffer__tar_class {
    COFFER__TAR_BYTES,
    COFFER__TAR_IMAGE,
    COFFER__TAR_AUDIO,
    COFFER__TAR_VIDEO,
    COFFER__TAR_INT,
    COFFER__TAR_FLOAT,
    COFFER__TAR_TEXT,
    COFFER__TAR_JSON,
    COFFER__TAR_ARRAY
} coffer__tar_class;

typedef struct coffer__tar_extension {
    const char *name;
    coffer__tar_class kind;
    bool is_first; /* pictures that are stored as PNG, sounds that are compressed */
} coffer__tar_extension;

/* By the part after the last dot ("seg.png"), or all of it; NULL when it is unknown. */
const coffer__tar_extension *coffer__tar_extension_of(const char *extension);

#endif
