/* Values of a set inside JSON. A value that JSON cannot hold exactly is an object with its type, its bytes in
 * base64 or as text, and what the row says about them:
 *
 *   {"type": "image-jpeg", "height": 480, "width": 640, "channels": 3, "mode": 1, "base64": "…"}
 *   {"type": "ndarray", "dtype": "f32", "shape": [2, 3], "base64": "…"}
 *   {"type": "json", "text": "[1,\n2]"}      JSON of several lines, null, or a bare number or text
 *   {"type": "float", "base64": "AAAAAAAA+H8="}   NaN and the infinities
 */
#ifndef COFFER_CONVERT_MLDF_JSON_H
#define COFFER_CONVERT_MLDF_JSON_H

#include "base/json_write.h"
#include "convert/datasets/dataset_columns.h"

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

#endif
