/* GGUF metadata as JSON and back, without loss: what a container with fewer types of values can keep.
 *
 * A type is written as its name, an array's as "[i32]". Numbers that JSON lacks are the texts "NaN",
 * "Infinity" and "-Infinity". Strings that are not UTF-8 are of the type "bytes", in hexadecimal. An array
 * inside an array says its type itself: {"type": "i32", "items": […]}. */
#ifndef COFFER_CONVERT_GGUF_JSON_H
#define COFFER_CONVERT_GGUF_JSON_H

#include "base/json.h"
#include "outside/models/gguf.h"

/* Appends the value's JSON to `json` and its type, such as "bool" or "[string]", to `type`. */
coffer_status coffer__gguf_to_json(coffer__buffer *json, coffer__buffer *type, const coffer__gguf *gguf,
                                   const coffer__gguf_key *key, coffer_error *err);
/* Appends type and value of a key as the file has them. type : "bool", "[string]". COFFER_E_BAD_VALUE when
 * the JSON is no value of that type. */
coffer_status coffer__gguf_from_json(coffer__buffer *out, const char *type, size_t type_len,
                                     const coffer__json_value *value, coffer_error *err);

#endif
