/* GGUF metadata and the ModelInfo of an MCF model. Nothing is lost in either direction:
 *
 *   GGUF key                           ModelInfo
 *   general.architecture, general.name arch, model_name
 *   ARCH.context_length and its like   the field of the same meaning
 *   any other, u32, f32 or string      the key "gguf.KEY"
 *   any other, of another type         the key "gguf.KEY#TYPE", as JSON
 *   no ARCH.vocab_size, general.name   the key "gguf.KEY#none", when the field was filled from elsewhere
 *   mcf.kv.KEY                         the key "KEY", which did not come from GGUF
 *   mcf.model_info.rope_type           the field, when the other keys would give another value
 *   mcf.section.NAME                   a section: "config.json", or "0x00000200" for one without a name; with
 *                                      its version after a dot when that is not 1: "0x00000200.2"
 *   mcf.file.NAME                      another file of the model's folder
 *   mcf.safetensors_head.NAME          the head of a safetensors file
 *   mcf.names                          the tensors had other names: "huggingface"
 *   mcf.derived_keys                   keys that were computed from config.json and tokenizer.json; not
 *                                      imported, and neither is this list
 *
 * A value that its field cannot hold exactly, such as an architecture "qwen2", is also kept as a key,
 * which an export prefers to the field. general.alignment is layout and is left out. */
#ifndef COFFER_CONVERT_GGUF_MODEL_INFO_H
#define COFFER_CONVERT_GGUF_MODEL_INFO_H

#include "base/json.h"
#include "coffer/mcf.h"
#include "convert/models/gguf_keys.h"
#include "convert/models/mcf_pack.h"
#include "outside/models/gguf.h"

#define COFFER__GGUF_KEY "gguf."
#define COFFER__GGUF_FROM_KV "mcf.kv."
#define COFFER__GGUF_FROM_SECTION "mcf.section."
#define COFFER__GGUF_FROM_FILE "mcf.file."
#define COFFER__GGUF_FROM_HEAD "mcf.safetensors_head."
#define COFFER__GGUF_ROPE_TYPE "mcf.model_info.rope_type"
/* In the place of a type: the GGUF file did not have the key. */
#define COFFER__GGUF_ABSENT "none"
#define COFFER__GGUF_FILE_TYPE "general.file_type"

/* A number of ModelInfo with a key of its own: ARCH followed by `key`. */
typedef struct coffer__gguf_field {
    const char *key;
    size_t offset; /* in coffer_mcf_model_info */
    bool is_float;
} coffer__gguf_field;

extern const coffer__gguf_field coffer__gguf_fields[];
extern const size_t coffer__gguf_field_count;

/* Adds the metadata of a GGUF set to the pack: fields and keys to its ModelInfo, and the sections that came
 * from an MCF file. The model keeps its name unless the options give one. COFFER_E_UNSUPPORTED for a part
 * of a split model. */
coffer_status coffer__gguf_to_pack(coffer__mcf_pack *pack, const coffer_tensors *set, coffer_error *err);

/* ---- general.file_type names the type of most weights ---- */

/* Elements by type. */
typedef struct coffer__gguf_type_totals {
    uint64_t elements[64]; /* by the id of the type */
    const coffer__gguf_type *largest;
} coffer__gguf_type_totals;

/* Tensors of fewer than two dimensions do not count. */
void coffer__gguf_count_type(coffer__gguf_type_totals *totals, const coffer__gguf_type *type, uint32_t rank,
                             uint64_t elements);
/* Whether a value of general.file_type is right for that type; true for values that are unknown. */
bool coffer__gguf_file_type_fits(uint32_t file_type, const coffer__gguf_type *type);

/* ---- gguf_export_keys.c ---- */

typedef struct coffer__gguf_written {
    bool quantized;                     /* some tensors are stored as blocks */
    const coffer__gguf_type *main_type; /* of most weights; NULL without weights */
    const coffer__gguf_hf *hf;          /* the tensors have the names of llama.cpp; NULL: their own */
    /* Set by the call: */
    uint64_t key_count;
    const char *arch;             /* borrowed from the model */
    bool has_arch, has_tokenizer; /* as llama.cpp knows them */
    char reason[160];             /* what is wrong with the tokenizer; "" = nothing */
} coffer__gguf_written;

/* Appends the keys for the metadata of the model. */
coffer_status coffer__gguf_put_model(coffer__buffer *out, coffer__gguf_written *written,
                                     const coffer_mcf *model, const coffer_limits *limits, coffer_error *err);

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
