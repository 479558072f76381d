/* From GGUF metadata to ModelInfo. */
#include "convert/models/gguf_model_info.h"
#include "convert/tensors/tensors.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "convert/models/mcf_stand_in.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(key, member, is_float)                           \
    {                                                          \
        key, offsetof(coffer_mcf_model_info, member), is_float \
    }

const coffer__gguf_field coffer__gguf_fields[] = {
    FIELD(".vocab_size", vocab_size, false),
    FIELD(".embedding_length", hidden_size, false),
    FIELD(".block_count", layer_count, false),
    FIELD(".attention.head_count", head_count, false),
    FIELD(".attention.head_count_kv", head_count_kv, false),
    FIELD(".context_length", context_length, false),
    FIELD(".rope.scaling.original_context_length", train_context, false),
    FIELD(".rope.freq_base", rope_freq_base, true),
    FIELD(".rope.scaling.factor", rope_scale, true),
};

const size_t coffer__gguf_field_count = sizeof coffer__gguf_fields / sizeof *coffer__gguf_fields;

typedef struct gguf_import {
    coffer__mcf_pack *pack;
    const coffer__gguf *gguf;
    char *arch; /* general.architecture, or NULL */
    bool has_config;
    bool has_vocab_size;           /* a key, whatever its value */
    bool was_renamed;              /* the architecture is that of config.json */
    coffer__tensors_names derived; /* keys that config.json and tokenizer.json give again */
} gguf_import;

/* ---- Values ---- */

static bool is_text(const uint8_t *bytes, size_t len)
{
    return !memchr(bytes, 0, len) && coffer__utf8_valid(bytes, len);
}

/* The text of a string key (coffer__free); *out is NULL when the key is not a string or not valid text. */
static coffer_status read_text(char **out, size_t *len, const coffer__gguf *gguf, const char *name,
                               coffer_error *err)
{
    const coffer__gguf_key *key = coffer__gguf_find(gguf, name);
    uint8_t *bytes = NULL;
    *out = NULL;
    if (!key || key->type != COFFER__GGUF_STRING)
        return COFFER_OK;
    coffer_status status = coffer__gguf_read_value(&bytes, len, gguf, key, err);
    if (status)
        return status;
    if (!is_text(bytes, *len)) {
        coffer__free(bytes);
        return COFFER_OK;
    }
    *out = (char *)bytes;
    return COFFER_OK;
}

/* ---- Keys ---- */

/* A type that the table of ModelInfo has as well. */
static bool is_plain(const coffer__gguf_key *key)
{
    return key->type == COFFER__GGUF_U32 || key->type == COFFER__GGUF_F32 || key->type == COFFER__GGUF_STRING;
}

/* As JSON, with the type after the name. */
static coffer_status keep_json(gguf_import *import, const coffer__gguf_key *key, coffer_error *err)
{
    coffer__buffer json = COFFER__BUFFER_INIT, name = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&name, "%s#", key->name);
    coffer_status status = coffer__gguf_to_json(&json, &name, import->gguf, key, err);
    if (!status && name.failed)
        status = coffer__fail_no_memory(err, name.len);
    if (!status)
        status = coffer__mcf_info_add_text(&import->pack->info, COFFER__GGUF_KEY, coffer__buffer_text(&name),
                                           (const char *)json.data, json.len, err);
    coffer__buffer_free(&json);
    coffer__buffer_free(&name);
    return status;
}

/* Under a name of the caller's choice. */
static coffer_status keep_plain(gguf_import *import, const coffer__gguf_key *key, const char *prefix,
                                const char *name, const uint8_t *bytes, size_t len, coffer_error *err)
{
    coffer__mcf_info *info = &import->pack->info;
    switch (key->type) {
    case COFFER__GGUF_U32:
        return coffer__mcf_info_add_u32(info, prefix, name, coffer__load_u32(bytes), err);
    case COFFER__GGUF_F32:
        return coffer__mcf_info_add_f32(info, prefix, name, coffer__float_from_bits(coffer__load_u32(bytes)),
                                        err);
    default:
        return coffer__mcf_info_add_text(info, prefix, name, (const char *)bytes, len, err);
    }
}

/* Remembers that the file does not have a key whose field is filled from elsewhere. filled : the value, as
 * JSON; when the field has another one later, an export writes the key. */
static coffer_status keep_absence(gguf_import *import, const char *prefix, const char *name,
                                  const coffer__buffer *filled, coffer_error *err)
{
    coffer__buffer key = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&key, "%s%s#" COFFER__GGUF_ABSENT, prefix, name);
    coffer_status status =
        key.failed || filled->failed
            ? coffer__fail_no_memory(err, key.len)
            : coffer__mcf_info_add_text(&import->pack->info, COFFER__GGUF_KEY, coffer__buffer_text(&key),
                                        (const char *)filled->data, filled->len, err);
    coffer__buffer_free(&key);
    return status;
}

/* A file type that contradicts the tensors was not ours to correct: with its type in the name, an export
 * writes it unchanged. */
static bool is_odd_file_type(const coffer__gguf *gguf, const coffer__gguf_key *key, const uint8_t *bytes)
{
    coffer__gguf_type_totals totals = { 0 };
    if (strcmp(key->name, COFFER__GGUF_FILE_TYPE) != 0 || key->type != COFFER__GGUF_U32)
        return false;
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        const coffer__gguf_tensor *tensor = &gguf->tensors[i];
        uint64_t elements = tensor->size / tensor->type->bytes * tensor->type->elements;
        coffer__gguf_count_type(&totals, tensor->type, tensor->rank, elements);
    }
    return totals.largest && !coffer__gguf_file_type_fits(coffer__load_u32(bytes), totals.largest);
}

/* A name with the sign that sets the type off always says its type, so that the way back is never in doubt.
 */
static coffer_status keep(gguf_import *import, const coffer__gguf_key *key, coffer_error *err)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    if (!is_plain(key) || strchr(key->name, '#'))
        return keep_json(import, key, err);
    coffer_status status = coffer__gguf_read_value(&bytes, &len, import->gguf, key, err);
    if (status)
        return status;
    if ((key->type == COFFER__GGUF_STRING && !is_text(bytes, len)) ||
        is_odd_file_type(import->gguf, key, bytes))
        status = keep_json(import, key, err);
    else
        status = keep_plain(import, key, COFFER__GGUF_KEY, key->name, bytes, len, err);
    coffer__free(bytes);
    return status;
}

/* ---- Fields ---- */

static const coffer__gguf_field *find_field(const gguf_import *import, const char *name)
{
    size_t arch_len = import->arch ? strlen(import->arch) : 0;
    if (!arch_len || strncmp(name, import->arch, arch_len) != 0)
        return NULL;
    for (size_t i = 0; i < coffer__gguf_field_count; i++) {
        if (strcmp(name + arch_len, coffer__gguf_fields[i].key) == 0)
            return &coffer__gguf_fields[i];
    }
    return NULL;
}

/* *exact : the field holds all of the value. */
static coffer_status take_field(bool *exact, gguf_import *import, const coffer__gguf_field *field,
                                const coffer__gguf_key *key, coffer_error *err)
{
    uint8_t *target = (uint8_t *)&import->pack->info.info + field->offset, *bytes = NULL;
    size_t len;
    *exact = false;
    if (key->type == COFFER__GGUF_STRING || key->type == COFFER__GGUF_ARRAY)
        return COFFER_OK;
    coffer_status status = coffer__gguf_read_value(&bytes, &len, import->gguf, key, err);
    if (status)
        return status;
    coffer__cursor cursor = coffer__cursor_over(bytes, len, key->offset);
    coffer__number number = coffer__gguf_number(&cursor, key->type);
    if (field->is_float) {
        float value = (float)coffer__number_as_f64(&number);
        memcpy(target, &value, sizeof value);
        *exact = key->type == COFFER__GGUF_F32 && value != 0;
    } else if (number.kind == COFFER__NUMBER_U64 && number.as.u64 <= UINT32_MAX) {
        uint32_t value = (uint32_t)number.as.u64;
        memcpy(target, &value, sizeof value);
        *exact = key->type == COFFER__GGUF_U32 && value != 0; /* 0 means that the field is not set */
    }
    coffer__free(bytes);
    return COFFER_OK;
}

static coffer_status take_architecture(gguf_import *import, coffer_error *err)
{
    size_t len;
    coffer_status status = read_text(&import->arch, &len, import->gguf, "general.architecture", err);
    if (!status && import->arch)
        import->pack->info.info.arch = coffer__mcf_arch_of(import->arch);
    return status;
}

static bool arch_is_exact(const gguf_import *import)
{
    uint32_t arch = import->pack->info.info.arch;
    return arch && strcmp(coffer_mcf_arch_name(arch), import->arch) == 0;
}

/* Stores a name of the model; *exact when the field keeps it unchanged. */
static coffer_status take_name(bool *exact, gguf_import *import, const char *key, char **target,
                               coffer_error *err)
{
    char *text;
    size_t len;
    coffer_status status = read_text(&text, &len, import->gguf, key, err);
    *exact = text && len;
    if (!status && *exact)
        status = coffer__mcf_info_set_name(target, text, len, err);
    coffer__free(text);
    return status;
}

/* The rope types of ModelInfo; *exact when the type keeps all of the text. */
static coffer_status take_rope(bool *exact, gguf_import *import, const char *name, coffer_error *err)
{
    char *text;
    size_t len;
    coffer_status status = read_text(&text, &len, import->gguf, name, err);
    *exact = false;
    for (uint32_t type = 2; text && type <= 3; type++) {
        if (strcmp(text, coffer_mcf_rope_name(type)) == 0) {
            import->pack->info.info.rope_type = type;
            *exact = true;
        }
    }
    coffer__free(text);
    return status;
}

/* Whether the name is the architecture followed by `rest`. */
static bool is_of_arch(const gguf_import *import, const char *name, const char *rest)
{
    size_t len = import->arch ? strlen(import->arch) : 0;
    return len && strncmp(name, import->arch, len) == 0 && strcmp(name + len, rest) == 0;
}

/* ---- Keys that were converted from MCF ---- */

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Sections that describe the tensors are written again. */
static bool is_structure(uint32_t type)
{
    return type == 0 || type == COFFER_MCF_MODEL_INFO || type == COFFER_MCF_QUANT_INFO ||
           type == COFFER_MCF_TENSOR_INDEX || type == COFFER_MCF_TENSOR_DATA ||
           type == COFFER_MCF_CHECKSUMS || type == COFFER_MCF_QUALITY || type == COFFER_MCF_DIRECTORY_COPY ||
           type == COFFER_MCF_DAMAGE || type == COFFER_MCF_FILES;
}

/* The section type for a key that contains a section; 0 for other keys. */
static uint32_t section_of(uint32_t *version, const coffer__gguf_key *key)
{
    static const size_t prefix = sizeof COFFER__GGUF_FROM_SECTION - 1;
    char *end = NULL;
    *version = 1;
    if (key->type != COFFER__GGUF_STRING || !begins(key->name, COFFER__GGUF_FROM_SECTION))
        return 0;
    const char *name = key->name + prefix;
    unsigned long type = strncmp(name, "0x", 2) == 0 ? strtoul(name, &end, 16) : 0, number = 1;
    if (end && *end == '.')
        number = strtoul(end + 1, &end, 10);
    if (!end || *end || type > UINT32_MAX || number > UINT32_MAX)
        type = coffer_mcf_section_by_name(name);
    else
        *version = (uint32_t)number;
    return is_structure((uint32_t)type) ? 0 : (uint32_t)type;
}

static coffer_status add_section(gguf_import *import, const coffer__gguf_key *key, uint32_t type,
                                 uint32_t version, coffer_error *err)
{
    coffer__mcf_pack *pack = import->pack;
    coffer__mcf_resource resource = { .type = type, .version = version };
    coffer_status status = coffer__array_reserve_one(&pack->resources, &pack->resource_capacity,
                                                     pack->resource_count, sizeof *pack->resources, err);
    if (!status)
        status = coffer__gguf_read_value(&resource.bytes, &resource.len, import->gguf, key, err);
    if (status)
        return status;
    resource.path = coffer__strdup(key->name);
    if (!resource.path) {
        coffer__free(resource.bytes);
        return coffer__fail_no_memory(err, strlen(key->name));
    }
    pack->resources[pack->resource_count++] = resource;
    return COFFER_OK;
}

/* The name of a file that the key contains; NULL for other keys. */
static const char *file_of(coffer_mcf_file_kind *kind, const coffer__gguf_key *key)
{
    bool is_head = begins(key->name, COFFER__GGUF_FROM_HEAD);
    const char *name =
        key->name + (is_head ? strlen(COFFER__GGUF_FROM_HEAD) : strlen(COFFER__GGUF_FROM_FILE));
    *kind = is_head ? COFFER_MCF_FILE_SAFETENSORS_HEAD : COFFER_MCF_FILE_WHOLE;
    return key->type == COFFER__GGUF_STRING && (is_head || begins(key->name, COFFER__GGUF_FROM_FILE)) &&
                   coffer_mcf_file_name_is_safe(name)
               ? name
               : NULL;
}

static coffer_status add_file(gguf_import *import, const coffer__gguf_key *key, const char *name,
                              coffer_mcf_file_kind kind, coffer_error *err)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status = coffer__gguf_read_value(&bytes, &len, import->gguf, key, err);
    return status ? status : coffer__mcf_pack_add_file(import->pack, name, kind, bytes, len, err);
}

/* Keys derived from config.json are derived again. */
static coffer_status restore_kv(gguf_import *import, const coffer__gguf_key *key, coffer_error *err)
{
    const char *name = key->name + strlen(COFFER__GGUF_FROM_KV);
    uint8_t *bytes;
    size_t len;
    if (import->has_config && begins(name, "hf."))
        return COFFER_OK;
    coffer_status status = coffer__gguf_read_value(&bytes, &len, import->gguf, key, err);
    if (status)
        return status;
    if (key->type == COFFER__GGUF_STRING && !is_text(bytes, len))
        status = keep_json(import, key, err);
    else
        status = keep_plain(import, key, "", name, bytes, len, err);
    coffer__free(bytes);
    return status;
}

static bool is_kv(const coffer__gguf_key *key)
{
    const char *name = key->name + strlen(COFFER__GGUF_FROM_KV);
    /* Names that mean something here must come from where it was meant. */
    return is_plain(key) && begins(key->name, COFFER__GGUF_FROM_KV) && *name &&
           !begins(name, COFFER__GGUF_KEY) && !begins(name, COFFER__MCF_DTYPE_KEY);
}

/* ---- Everything ---- */

/* True for keys that say the same as the files of the model. */
static bool is_derived(const gguf_import *import, const char *name)
{
    return strcmp(name, COFFER__GGUF_DERIVED) == 0 ||
           (import->was_renamed && strcmp(name, "general.architecture") == 0) ||
           coffer__tensors_names_have(&import->derived, name);
}

static coffer_status take_key(gguf_import *import, const coffer__gguf_key *key, coffer_error *err)
{
    const coffer__gguf_field *field = find_field(import, key->name);
    coffer__mcf_info *info = &import->pack->info;
    uint32_t version = 1, section = section_of(&version, key);
    coffer_mcf_file_kind kind;
    const char *file = file_of(&kind, key);
    coffer_status status = COFFER_OK;
    bool done = false;
    /* Damage becomes a section. */
    if (strcmp(key->name, "general.alignment") == 0 || strcmp(key->name, COFFER__TENSORS_DAMAGED_KEY) == 0 ||
        is_derived(import, key->name))
        return COFFER_OK;
    if (section)
        return add_section(import, key, section, version, err);
    if (file)
        return add_file(import, key, file, kind, err);
    if (is_kv(key))
        return restore_kv(import, key, err);
    if (strcmp(key->name, COFFER__GGUF_ROPE_TYPE) == 0 && key->type == COFFER__GGUF_U32)
        return COFFER_OK; /* fill_gaps reads it */
    if (strcmp(key->name, "general.architecture") == 0)
        done = import->arch && arch_is_exact(import);
    else if (strcmp(key->name, "general.name") == 0 && import->pack->opts.model_name)
        done = true; /* the caller has another */
    else if (strcmp(key->name, "general.name") == 0)
        status = take_name(&done, import, key->name, &info->model_name, err);
    else if (strcmp(key->name, "general.base_model.0.name") == 0)
        status = take_name(&done, import, key->name, &info->base_model, err);
    else if (is_of_arch(import, key->name, ".rope.scaling.type"))
        status = take_rope(&done, import, key->name, err);
    else if (field) {
        import->has_vocab_size |= field->offset == offsetof(coffer_mcf_model_info, vocab_size);
        status = take_field(&done, import, field, key, err);
    }
    return status || done ? status : keep(import, key, err);
}

static coffer_status check_split(const coffer__gguf *gguf, coffer_error *err)
{
    const coffer__gguf_key *key = coffer__gguf_find(gguf, "split.count");
    uint8_t *bytes;
    size_t len;
    if (!key || key->type != COFFER__GGUF_U16)
        return COFFER_OK;
    coffer_status status = coffer__gguf_read_value(&bytes, &len, gguf, key, err);
    if (status)
        return status;
    unsigned parts = coffer__load_u16(bytes);
    coffer__free(bytes);
    if (parts < 2)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_UNSUPPORTED, key->offset,
                        "the model is split into %u files: join them with llama-gguf-split --merge", parts);
}

static coffer_status take_rope_type(bool *taken, gguf_import *import, coffer_error *err)
{
    const coffer__gguf_key *key = coffer__gguf_find(import->gguf, COFFER__GGUF_ROPE_TYPE);
    uint8_t *bytes;
    size_t len;
    *taken = key && key->type == COFFER__GGUF_U32;
    if (!*taken)
        return COFFER_OK;
    coffer_status status = coffer__gguf_read_value(&bytes, &len, import->gguf, key, err);
    if (status)
        return status;
    import->pack->info.info.rope_type = coffer__load_u32(bytes);
    coffer__free(bytes);
    return COFFER_OK;
}

static coffer_status fill_vocab_size(gguf_import *import, coffer_error *err)
{
    coffer_mcf_model_info *info = &import->pack->info.info;
    const coffer__gguf_key *tokens = coffer__gguf_find(import->gguf, "tokenizer.ggml.tokens");
    coffer__buffer filled = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    if (info->vocab_size || !tokens || tokens->type != COFFER__GGUF_ARRAY || tokens->count > UINT32_MAX ||
        import->has_vocab_size)
        return COFFER_OK;
    info->vocab_size = (uint32_t)tokens->count;
    coffer__buffer_printf(&filled, "%" PRIu32, info->vocab_size);
    if (import->arch)
        status = keep_absence(import, import->arch, ".vocab_size", &filled, err);
    coffer__buffer_free(&filled);
    return status;
}

static coffer_status fill_name(gguf_import *import, coffer_error *err)
{
    coffer__mcf_pack *pack = import->pack;
    coffer__buffer filled = COFFER__BUFFER_INIT;
    coffer__json_writer json;
    if (pack->info.model_name || pack->opts.model_name || coffer__gguf_find(import->gguf, "general.name"))
        return COFFER_OK;
    coffer_status status = coffer__mcf_pack_name(pack, coffer_source_name(import->gguf->src), false, err);
    if (status)
        return status;
    coffer__json_writer_init(&json, &filled, 0);
    coffer__json_string(&json, pack->info.model_name);
    status = keep_absence(import, "", "general.name", &filled, err);
    coffer__buffer_free(&filled);
    return status;
}

/* Fields without a key of their own, derived from other keys. */
static coffer_status fill_gaps(gguf_import *import, coffer_error *err)
{
    coffer_mcf_model_info *info = &import->pack->info.info;
    bool taken = false;
    coffer_status status = fill_vocab_size(import, err);
    if (!status)
        status = fill_name(import, err);
    if (!status)
        status = take_rope_type(&taken, import, err);
    if (!taken && !info->rope_type && info->rope_freq_base > 0)
        info->rope_type = 1;
    return status;
}

coffer_status coffer__gguf_to_pack(coffer__mcf_pack *pack, const coffer_tensors *set, coffer_error *err)
{
    const coffer__gguf *gguf = coffer__gguf_of(set);
    gguf_import import = { .pack = pack, .gguf = gguf };
    coffer_status status = check_split(gguf, err);
    import.has_config = coffer__gguf_find(gguf, COFFER__GGUF_FROM_SECTION "config.json") != NULL;
    import.was_renamed = import.has_config && coffer__gguf_find(gguf, COFFER__GGUF_NAMES);
    if (!status && import.was_renamed)
        status = coffer__tensors_recorded_names(&import.derived, set, COFFER__GGUF_DERIVED, err);
    coffer__tensors_names_sort(&import.derived);
    if (!status)
        status = take_architecture(&import, err);
    for (size_t i = 0; !status && i < gguf->key_count; i++)
        status = take_key(&import, &gguf->keys[i], err);
    if (!status)
        status = fill_gaps(&import, err);
    coffer__tensors_names_free(&import.derived);
    coffer__free(import.arch);
    return status;
}
