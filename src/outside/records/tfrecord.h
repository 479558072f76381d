/* TFRecord files, and the tf.train.Example messages that are usually in them.
 *
 *   record: u64 length | u32 masked CRC-32C of the length | bytes | u32 masked CRC-32C of the bytes
 *   mask:   rotate right by 15, add 0xa282ead8
 *
 *   Example  { Features features = 1 }            Feature   { BytesList = 1 | FloatList = 2 | Int64List = 3 }
 *   Features { map<string, Feature> feature = 1 } …List     { repeated value = 1, packed for numbers }
 */
#ifndef COFFER_CONVERT_TFRECORD_H
#define COFFER_CONVERT_TFRECORD_H

#include "base/buffer.h"
#include "coffer/limits.h"
#include "outside/archives/byte_stream.h"

bool coffer__tfrecord_probe(const uint8_t *head, size_t len);

/* The next record: in `own`, or borrowed from the source. *bytes is NULL at the end. number : of the record,
 * for messages. */
coffer_status coffer__tfrecord_next(const uint8_t **bytes, size_t *size, coffer__buffer *own,
                                    coffer__byte_stream *stream, const char *name, uint64_t number,
                                    const coffer_limits *limits, coffer_error *err);
/* Appends the header, or the trailer, of a record of these bytes. */
void coffer__tfrecord_put_front(coffer__buffer *out, uint64_t size);
void coffer__tfrecord_put_back(coffer__buffer *out, const void *bytes, size_t size);

/* ---- Examples ---- */

typedef enum coffer__tf_kind {
    COFFER__TF_NONE = 0,
    COFFER__TF_BYTES = 1, /* the numbers of the fields */
    COFFER__TF_FLOAT = 2,
    COFFER__TF_INT64 = 3
} coffer__tf_kind;

typedef struct coffer__tf_feature {
    const char *key; /* not NUL-terminated */
    size_t key_len;
    coffer__tf_kind kind;
    const uint8_t *list; /* the message with the values, already checked */
    size_t list_len;
    uint64_t count; /* of values */
} coffer__tf_feature;

typedef struct coffer__tf_example {
    coffer__tf_feature *features;
    size_t count, capacity;
} coffer__tf_example;

/* Borrows from the bytes. COFFER_E_BAD_VALUE when they are not such a message. */
coffer_status coffer__tf_parse(coffer__tf_example *out, const uint8_t *bytes, size_t size, coffer_error *err);
void coffer__tf_free(coffer__tf_example *example);

/* One value after the other: *at begins as feature->list. False after the last. */
bool coffer__tf_next_bytes(const uint8_t **bytes, size_t *size, const uint8_t **at,
                           const coffer__tf_feature *feature);
/* All values; room for feature->count of them. */
void coffer__tf_floats(float *out, const coffer__tf_feature *feature);
void coffer__tf_int64s(int64_t *out, const coffer__tf_feature *feature);

/* Appends a feature to the contents of a Features message. The values of each kind are those of the
 * functions above. */
void coffer__tf_put_bytes(coffer__buffer *out, const char *key, const void *bytes, size_t size);
void coffer__tf_put_floats(coffer__buffer *out, const char *key, const float *values, size_t count);
void coffer__tf_put_int64s(coffer__buffer *out, const char *key, const int64_t *values, size_t count);
/* Wraps the contents of a Features message into an Example. */
void coffer__tf_put_example(coffer__buffer *out, const coffer__buffer *features);

#endif
