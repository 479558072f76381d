/* The metadata of a new GGUF file, key by key. */
#ifndef COFFER_CONVERT_GGUF_KEYS_H
#define COFFER_CONVERT_GGUF_KEYS_H

#include "base/buffer.h"
#include "base/json.h"
#include "coffer/mcf.h"
#include "convert/models/gguf_names.h"
#include "outside/models/gguf.h"

/* The key that lists those which were computed from the files of a Hugging Face folder. An import leaves them
 * out: the files are in the GGUF file as well. */
#define COFFER__GGUF_DERIVED "mcf.derived_keys"

typedef struct coffer__gguf_keys {
    coffer__buffer *out;
    char **names; /* of the keys so far, owned */
    size_t count, capacity;
    size_t first_derived; /* of the names; SIZE_MAX before coffer__gguf_keys_derive */
} coffer__gguf_keys;

void coffer__gguf_keys_free(coffer__gguf_keys *keys); /* the names */
/* Notes a name that the caller writes by itself. */
coffer_status coffer__gguf_keys_note(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                     size_t name_len, coffer_error *err);
/* Name and type of a key; the value comes next. The name is prefix followed by name. */
coffer_status coffer__gguf_keys_begin(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                      coffer__gguf_value type, coffer_error *err);
coffer_status coffer__gguf_keys_text(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                     const char *text, size_t len, coffer_error *err);
coffer_status coffer__gguf_keys_u32(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                    uint32_t value, coffer_error *err);
coffer_status coffer__gguf_keys_f32(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                    float value, coffer_error *err);
coffer_status coffer__gguf_keys_bool(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                     bool value, coffer_error *err);
/* An array; its items come next. */
coffer_status coffer__gguf_keys_array(coffer__gguf_keys *keys, const char *name, coffer__gguf_value item,
                                      uint64_t count, coffer_error *err);
bool coffer__gguf_keys_have(const coffer__gguf_keys *keys, const char *prefix, const char *name);

/* All keys that follow are derived ones, and those that exist already are not derived again. */
void coffer__gguf_keys_derive(coffer__gguf_keys *keys);
/* Writes the list of derived keys. */
coffer_status coffer__gguf_keys_finish(coffer__gguf_keys *keys, coffer_error *err);

/* ---- Files of a Hugging Face folder (gguf_config_keys.c, gguf_tokenizer_keys.c) ---- */

/* A member of an object by key; NULL when it is missing or null. */
const coffer__json_value *coffer__gguf_look_up(const coffer__json_value *map, const char *key);

/* A model with names of transformers that llama.cpp can run under its own. */
typedef struct coffer__gguf_hf {
    const coffer__gguf_arch *arch;
    coffer__json *json; /* of config.json */
    const coffer__json_value *config;
    coffer__gguf_heads heads;
    uint32_t vocab_size; /* rows of the embedding */
    bool has_prefix;     /* names begin with that of the architecture */
    float *rope_factors; /* of rope_freqs.weight; NULL without */
    uint32_t rope_factor_count;
} coffer__gguf_hf;

/* hf->arch stays NULL when the model has no config.json, or one of an architecture that is not in the table.
 * COFFER_E_UNSUPPORTED for options of a known architecture that llama.cpp does not have. */
coffer_status coffer__gguf_hf_open(coffer__gguf_hf *hf, const coffer_mcf *model, const coffer_limits *limits,
                                   coffer_error *err);
void coffer__gguf_hf_close(coffer__gguf_hf *hf);
coffer_status coffer__gguf_put_config(coffer__gguf_keys *keys, const coffer__gguf_hf *hf, coffer_error *err);
/* reason : gets why the tokenizer could not be converted, or what llama.cpp will do differently; may stay "".
 */
coffer_status coffer__gguf_put_tokenizer(coffer__gguf_keys *keys, char reason[160], const coffer__gguf_hf *hf,
                                         const coffer_mcf *model, const coffer_limits *limits,
                                         coffer_error *err);

#endif
