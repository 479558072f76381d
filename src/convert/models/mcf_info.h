/* ModelInfo while it is put together: the numbers, and a table that owns its texts. */
#ifndef COFFER_CONVERT_MCF_INFO_H
#define COFFER_CONVERT_MCF_INFO_H

#include "coffer/mcf.h"

typedef struct coffer__mcf_info {
    coffer_mcf_model_info info; /* its kvs and texts are set by coffer__mcf_info_finish */
    char *model_name, *base_model;
    coffer_mcf_kv *kvs; /* keys and texts owned */
    size_t count, capacity;
} coffer__mcf_info;

#define COFFER__MCF_INFO_INIT                              \
    {                                                      \
        COFFER_MCF_MODEL_INFO_INIT, NULL, NULL, NULL, 0, 0 \
    }

/* The key is prefix followed by name. */
coffer_status coffer__mcf_info_add_u32(coffer__mcf_info *info, const char *prefix, const char *name,
                                       uint32_t value, coffer_error *err);
coffer_status coffer__mcf_info_add_f32(coffer__mcf_info *info, const char *prefix, const char *name,
                                       float value, coffer_error *err);
coffer_status coffer__mcf_info_add_text(coffer__mcf_info *info, const char *prefix, const char *name,
                                        const char *text, size_t len, coffer_error *err);
/* Copies the text; replaces an existing name. */
coffer_status coffer__mcf_info_set_name(char **name, const char *text, size_t len, coffer_error *err);
/* Sorts the table and gives all of it as the writer wants it. COFFER_E_DUPLICATE for a key that is there
 * twice. */
coffer_status coffer__mcf_info_finish(const coffer_mcf_model_info **out, coffer__mcf_info *info,
                                      coffer_error *err);
void coffer__mcf_info_free(coffer__mcf_info *info); /* frees the members, not info itself */

/* The family that a model's type names: its members have its name in theirs, "qwen2_moe", "gemma3_text". 0
 * for none. */
uint32_t coffer__mcf_arch_of(const char *model_type);
/* The numbers of a Hugging Face config.json, of its "text_config" where it has one, into info. name : of the
 * file, for messages. */
coffer_status coffer__mcf_info_from_config(coffer__mcf_info *info, const uint8_t *text, size_t len,
                                           const char *name, const coffer_limits *limits, coffer_error *err);

#endif
