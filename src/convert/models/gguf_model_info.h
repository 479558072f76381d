/* GGUF metadata and the ModelInfo of an MCF model. Nothing is lost in either direction:
 *
 *   GGUF key                           ModelInfo
 *   general.architecture, general.name arch, model_name
 *   ARCH.context_length and its like   the field of the same meaning
 *   any other                          the key "gguf.KEY": u32, f32 and string as they are; other types as
 * JSON under "gguf.KEY#TYPE" (gguf_json.h) mcf.kv.KEY                         a key of another origin, "KEY"
 *   mcf.section.NAME                   a section: "config.json", or "0x00000200" for one without a name
 *
 * A value that its field cannot hold to the bit, such as an architecture "qwen2", stays a key beside the
 * field, and is what goes back. general.alignment is layout and is left out. */
#ifndef COFFER_CONVERT_GGUF_MODEL_INFO_H
#define COFFER_CONVERT_GGUF_MODEL_INFO_H

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

/* Appends the keys that say what the model says, and counts them. quantized : there are blocks among the
 * tensors. (gguf_export_keys.c) */
coffer_status coffer__gguf_put_model(coffer__buffer *out, uint64_t *key_count, const coffer_mcf *model,
                                     bool quantized, const coffer_limits *limits, coffer_error *err);

#endif
