/* Values of a set as text: for people in a line, for programs as JSON. */
#ifndef COFFER_CLI_SAMPLE_VALUE_H
#define COFFER_CLI_SAMPLE_VALUE_H

#include "base/buffer.h"
#include "base/json_write.h"
#include "coffer/mldf.h"

/* A set with memory that is used again for every value. */
typedef struct sample_reader {
    const coffer_mldf *set;
    bool has_key;
    coffer_bytes bytes;
    bool decoding;  /* the value was read; an error now is about its content and does not name the sample */
    size_t *fields; /* those to show; NULL = all */
    size_t field_count;
    const uint64_t *selection; /* samples by position, borrowed; NULL = all of them */
} sample_reader;

#define SAMPLE_READER_INIT(set, has_key)       \
    {                                          \
        set, has_key, COFFER_BYTES_INIT, false \
    }

void sample_reader_free(sample_reader *reader);
/* The sample at a position of what is shown. */
static inline uint64_t sample_at(const sample_reader *reader, uint64_t position)
{
    return reader->selection ? reader->selection[position] : position;
}
/* The fields to show, in their order. */
size_t sample_field_count(const sample_reader *reader);
size_t sample_field_at(const sample_reader *reader, size_t index);

/* True for text and numbers, which a terminal can show. */
bool sample_is_readable(const coffer_mldf_field *field);
/* "image-jpeg"; "type 99" for one that has no name. */
typedef char sample_type_text[24];
const char *sample_type_name(sample_type_text out, const coffer_mldf_field *field);

/* A number or text as it is; of other values what they are: "jpeg 224 × 224 × 3, 12.3 KiB"; "–" for an
 * absent one. Payloads are read for text and JSON alone. */
coffer_status sample_put_text(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t index,
                              coffer_error *err);
/* Numbers, texts and token ids as such, JSON as it is, null for absent ones, of others a description.
 * elements : also those of arrays. */
coffer_status sample_put_json(coffer__json_writer *json, sample_reader *reader, uint64_t sample, size_t index,
                              bool elements, coffer_error *err);
/* The fields of a sample in an object, after "sample". */
coffer_status sample_put_object(coffer__json_writer *json, sample_reader *reader, uint64_t sample,
                                coffer_error *err);

/* ---- Values with parts (sample_parts.c) ---- */

bool sample_has_parts(const coffer_mldf_field *field);
/* The texts of a hierarchy, a line each; names, types and sizes of the parts of a multimodal sample. */
coffer_status sample_put_parts_text(coffer__buffer *out, const coffer_mldf *set, uint64_t sample,
                                    size_t field, coffer_error *err);
coffer_status sample_put_parts_json(coffer__json_writer *json, const coffer_mldf *set, uint64_t sample,
                                    size_t field, coffer_error *err);

#endif
