/* GGUF metadata and the ModelInfo of an MCF model. Nothing is lost in either direction:
 *
 *   GGUF key                           ModelInfo
 *   general.architecture, general.name arch, model_name
 *   ARCH.context_length and its like   the field of the same meaning
 *   any other, u32, f32 or string      the key "gguf.KEY"
 *   any other, of another type         the key "gguf.KEY#TYPE", as JSON
 *   mcf.kv.KEY                         the key "KEY", which did not come from GGUF
 *   mcf.section.NAME                   a section: "config.json", or "0x00000200" for one without a name
 *
 * A value that its field cannot hold exactly, such as an architecture "qwen2", is also kept as a key,
 * which an export prefers to the field. general.alignment is layout and is left out. */
#ifndef COFFER_CONVERT_GGUF_MODEL_INFO_H
#define COFFER_CONVERT_GGUF_MODEL_INFO_H

#include "base/json.h"
#include "coffer/mcf.h"
#include "convert/models/mcf_pack.h"
#include "outside/models/gguf.h"

#define COFFER__GGUF_KEY "gguf."
#define COFFER__GGUF_FROM_KV "mcf.kv."
#define COFFER__GGUF_FROM_SECTION "mcf.section."

/* A number of ModelInfo with a key of its own: ARCH followed by `key`. */
typedef struct coffer__gguf_field {
    const char *key;
    size_t offset; /* in coffer_mcf_model_info */
    bool is_float;
} coffer__gguf_field;

extern const coffer__gguf_field coffer__gguf_fields[];
extern const size_t coffer__gguf_field_count;

/* Adds the metadata of the file to the pack: fields and keys to its ModelInfo, and the sections that came
 * from an MCF file. The model keeps its name unless the options give one. COFFER_E_UNSUPPORTED for a part
 * of a split model. */
coffer_status coffer__gguf_to_pack(coffer__mcf_pack *pack, const coffer__gguf *gguf, coffer_error *err);

/* Appends the keys for the metadata of the model, and counts them. quantized : some tensors are stored as
 * blocks. (gguf_export_keys.c) */
coffer_status coffer__gguf_put_model(coffer__buffer *out, uint64_t *key_count, const coffer_mcf *model,
                                     bool quantized, const coffer_limits *limits, coffer_error *err);

/* ---- gguf_json.c: GGUF metadata as JSON and back, without loss ----
 *
 * A type is written as its name, an array's as "[i32]". Numbers that JSON lacks are the texts "NaN",
 * "Infinity" and "-Infinity". Strings that are not UTF-8 have the type "bytes" and are hexadecimal. An array
 * inside an array states its own type: {"type": "i32", "items": […]}. */

/* Appends the value's JSON to `json` and its type, such as "bool" or "[string]", to `type`. */
coffer_status coffer__gguf_to_json(coffer__buffer *json, coffer__buffer *type, const coffer__gguf *gguf,
                                   const coffer__gguf_key *key, coffer_error *err);
/* Appends type and value of a key as the file has them. type : "bool", "[string]". COFFER_E_BAD_VALUE when
 * the JSON does not have that type. */
coffer_status coffer__gguf_from_json(coffer__buffer *out, const char *type, size_t type_len,
                                     const coffer__json_value *value, coffer_error *err);

#endif
