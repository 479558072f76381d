/* From ModelInfo and sections to GGUF metadata. */
#include "convert/models/gguf_model_info.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "convert/models/mcf_stand_in.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of general.file_type, which llama.cpp shows as the type of a model. */

/* Several mixtures have the same main type; the first row of a type is the one that is written. */
static const struct {
    uint8_t file_type, type;
} file_types[] = {
    { 0, 0 },   { 1, 1 },   { 2, 2 },   { 3, 3 },   { 4, 3 },   { 7, 8 },   { 8, 6 },
    { 9, 7 },   { 10, 10 }, { 11, 11 }, { 12, 11 }, { 13, 11 }, { 14, 12 }, { 15, 12 },
    { 16, 13 }, { 17, 13 }, { 18, 14 }, { 19, 16 }, { 20, 17 }, { 21, 10 }, { 22, 21 },
    { 23, 18 }, { 24, 19 }, { 25, 20 }, { 26, 21 }, { 27, 21 }, { 28, 17 }, { 29, 22 },
    { 30, 23 }, { 31, 29 }, { 32, 30 }, { 36, 34 }, { 37, 35 }, { 38, 39 },
};

#define FILE_TYPE_COUNT (sizeof file_types / sizeof *file_types)

void coffer__gguf_count_type(coffer__gguf_type_totals *totals, const coffer__gguf_type *type, uint32_t rank,
                             uint64_t elements)
{
    if (rank < 2 || type->id >= sizeof totals->elements / sizeof *totals->elements)
        return;
    totals->elements[type->id] += elements;
    if (!totals->largest || totals->elements[type->id] > totals->elements[totals->largest->id])
        totals->largest = type;
}

bool coffer__gguf_file_type_fits(uint32_t file_type, const coffer__gguf_type *type)
{
    for (size_t i = 0; i < FILE_TYPE_COUNT; i++) {
        if (file_types[i].file_type == file_type)
            return file_types[i].type == type->id;
    }
    return true;
}

/* The value for that type. False when the table has no such type. */
static bool gguf_file_type_of(uint32_t *out, const coffer__gguf_type *type)
{
    for (size_t i = 0; i < FILE_TYPE_COUNT; i++) {
        if (file_types[i].type == type->id) {
            *out = file_types[i].file_type;
            return true;
        }
    }
    return false;
}

/* ggml's version of its block types. */
#define QUANTIZATION_VERSION 2

typedef struct gguf_export {
    coffer__gguf_keys keys;
    const coffer_mcf *model;
    const coffer_mcf_model_info *info;
    const coffer_limits *limits;
    const coffer__gguf_type *main_type;
    const coffer__gguf_hf *hf; /* NULL: the tensors keep their names */
    const char *arch;
    /* Keys of the table whose field was changed since they came from GGUF: the field is written. */
    const coffer_mcf_kv *stale[16];
    size_t stale_count;
} gguf_export;

/* ---- The table ---- */

/* The table key for a GGUF key, with or without its type; NULL when the table has no such key. */
static const coffer_mcf_kv *find_kept(const gguf_export *export, const char *prefix, const char *name)
{
    size_t prefix_len = strlen(prefix), name_len = strlen(name), skip = strlen(COFFER__GGUF_KEY);
    for (size_t i = 0; i < export->info->kv_count; i++) {
        const char *key = export->info->kvs[i].key;
        if (strncmp(key, COFFER__GGUF_KEY, skip) != 0 || strncmp(key + skip, prefix, prefix_len) != 0 ||
            strncmp(key + skip + prefix_len, name, name_len) != 0)
            continue;
        char end = key[skip + prefix_len + name_len];
        if (end == 0 || end == '#')
            return &export->info->kvs[i];
    }
    return NULL;
}

/* ---- Keys beside a field ---- */

/* The number of a key that was kept because its field does not have its type; NaN for another value. */
static double number_of(const coffer_mcf_kv *kv)
{
    char *end;
    if (kv->type == COFFER_MCF_KV_U32)
        return kv->u32;
    if (kv->type == COFFER_MCF_KV_F32)
        return (double)kv->f32;
    double number = strtod(kv->text, &end);
    return end != kv->text && *end == 0 ? number : (double)NAN;
}

/* A key that is kept beside its field holds as long as the field has the value that came with it. */
static bool is_kept_valid(gguf_export *export, const coffer_mcf_kv *kept, double field)
{
    double number = kept ? number_of(kept) : (double)NAN;
    bool valid = kept && (isnan(number) || number == field || (float)number == (float)field);
    if (kept && !valid && export->stale_count < sizeof export->stale / sizeof *export->stale)
        export->stale[export->stale_count++] = kept;
    return valid;
}

static bool is_stale(const gguf_export *export, const coffer_mcf_kv *kv)
{
    for (size_t i = 0; i < export->stale_count; i++) {
        if (export->stale[i] == kv)
            return true;
    }
    return false;
}

/* The name of the model, as JSON, is what an import filled in. */
static bool is_filled_name(const gguf_export *export, const coffer_mcf_kv *kv)
{
    coffer__buffer json = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    coffer__json_writer_init(&writer, &json, 0);
    coffer__json_string(&writer, export->info->model_name ? export->info->model_name : "");
    bool same = !json.failed && json.len == kv->text_len && memcmp(json.data, kv->text, json.len) == 0;
    coffer__buffer_free(&json);
    return same;
}

/* "KEY#none": the GGUF file did not have the key, and the value is what was filled in. */
static bool is_filled(const gguf_export *export, const coffer_mcf_kv *kv)
{
    if (kv->type != COFFER_MCF_KV_STRING)
        return false;
    if (strncmp(kv->key + strlen(COFFER__GGUF_KEY), "general.name#", strlen("general.name#")) == 0)
        return is_filled_name(export, kv);
    return number_of(kv) == export->info->vocab_size;
}

/* The value that came with a GGUF file is stale when the tensors have another type now. */
static coffer_status put_file_type(gguf_export *export, uint32_t kept, coffer_error *err)
{
    uint32_t value = kept;
    if (export->main_type && !coffer__gguf_file_type_fits(kept, export->main_type) &&
        !gguf_file_type_of(&value, export->main_type))
        return COFFER_OK;
    return coffer__gguf_keys_u32(&export->keys, "", COFFER__GGUF_FILE_TYPE, value, err);
}

static coffer_status put_kv(gguf_export *export, const char *prefix, const char *name,
                            const coffer_mcf_kv *kv, coffer_error *err)
{
    switch (kv->type) {
    case COFFER_MCF_KV_U32:
        return coffer__gguf_keys_u32(&export->keys, prefix, name, kv->u32, err);
    case COFFER_MCF_KV_F32:
        return coffer__gguf_keys_f32(&export->keys, prefix, name, kv->f32, err);
    default:
        return coffer__gguf_keys_text(&export->keys, prefix, name, kv->text, kv->text_len, err);
    }
}

/* "KEY#TYPE" with JSON. */
static coffer_status put_json(gguf_export *export, const char *name, const char *type,
                              const coffer_mcf_kv *kv, coffer_error *err)
{
    coffer__json *json = NULL;
    coffer_error failure = COFFER_ERROR_INIT;
    size_t name_len = (size_t)(type - 1 - name);
    if (kv->type != COFFER_MCF_KV_STRING)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "the key \"%s\" of ModelInfo must contain JSON, but is a number", kv->key);
    coffer_status status = coffer__gguf_keys_note(&export->keys, "", name, name_len, err);
    if (status)
        return status;
    coffer__gguf_put_string(export->keys.out, name, name_len);
    status = coffer__json_parse(&json, kv->text, kv->text_len, 0, export->limits, &failure);
    if (!status)
        status =
            coffer__gguf_from_json(export->keys.out, type, strlen(type), coffer__json_root(json), &failure);
    coffer__json_free(json);
    return status ? coffer__fail(err, status, COFFER_OFFSET_NONE, "the key \"%s\" of ModelInfo: %s", kv->key,
                                 failure.text)
                  : COFFER_OK;
}

static coffer_status put_table(gguf_export *export, coffer_error *err)
{
    size_t skip = strlen(COFFER__GGUF_KEY);
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < export->info->kv_count; i++) {
        const coffer_mcf_kv *kv = &export->info->kvs[i];
        if (strncmp(kv->key, COFFER__MCF_DTYPE_KEY, strlen(COFFER__MCF_DTYPE_KEY)) == 0)
            continue; /* the types of tensors, which are other ones in GGUF */
        if (strncmp(kv->key, COFFER__GGUF_KEY, skip) != 0) {
            status = put_kv(export, COFFER__GGUF_FROM_KV, kv->key, kv, err);
            continue;
        }
        const char *name = kv->key + skip, *type = strrchr(name, '#');
        if (strcmp(name, "general.alignment") == 0 || strcmp(name, "general.architecture") == 0)
            continue; /* layout; written first */
        if (is_stale(export, kv) ||
            (type && strcmp(type + 1, COFFER__GGUF_ABSENT) == 0 && is_filled(export, kv)))
            continue;
        if (strcmp(name, COFFER__GGUF_FILE_TYPE) == 0 && kv->type == COFFER_MCF_KV_U32)
            status = put_file_type(export, kv->u32, err);
        else
            status = type ? put_json(export, name, type + 1, kv, err) : put_kv(export, "", name, kv, err);
    }
    return status;
}

/* ---- Fields and sections ---- */

static coffer_status put_fields(gguf_export *export, coffer_error *err)
{
    const coffer_mcf_model_info *info = export->info;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < coffer__gguf_field_count; i++) {
        const coffer__gguf_field *field = &coffer__gguf_fields[i];
        uint32_t bits;
        float real;
        memcpy(&bits, (const uint8_t *)info + field->offset, sizeof bits);
        memcpy(&real, &bits, sizeof real);
        if (is_kept_valid(export, find_kept(export, export->arch, field->key),
                          field->is_float ? (double)real : bits) ||
            (field->is_float ? real == 0 : bits == 0))
            continue;
        status = field->is_float ? coffer__gguf_keys_f32(&export->keys, export->arch, field->key, real, err)
                                 : coffer__gguf_keys_u32(&export->keys, export->arch, field->key, bits, err);
    }
    /* An import keeps the key only for other types. */
    if (!status && (info->rope_type == 2 || info->rope_type == 3)) {
        const coffer_mcf_kv *kept = find_kept(export, export->arch, ".rope.scaling.type");
        if (kept && export->stale_count < sizeof export->stale / sizeof *export->stale)
            export->stale[export->stale_count++] = kept;
        const char *rope = coffer_mcf_rope_name(info->rope_type);
        status = coffer__gguf_keys_text(&export->keys, export->arch, ".rope.scaling.type", rope, strlen(rope),
                                        err);
    }
    /* An import takes a frequency base for standard rotary positions. */
    if (!status && info->rope_type < 2 && info->rope_type != (uint32_t)(info->rope_freq_base > 0))
        status = coffer__gguf_keys_u32(&export->keys, "", COFFER__GGUF_ROPE_TYPE, info->rope_type, err);
    return status;
}

static coffer_status put_names(gguf_export *export, coffer_error *err)
{
    const char *name = export->info->model_name, *base = export->info->base_model;
    coffer_status status = coffer__gguf_keys_text(&export->keys, "", "general.architecture", export->arch,
                                                  strlen(export->arch), err);
    const coffer_mcf_kv *kept = find_kept(export, "", "general.name");
    if (!status && name && *name && !(kept && is_filled(export, kept))) {
        if (kept)
            export->stale[export->stale_count++] = kept;
        status = coffer__gguf_keys_text(&export->keys, "", "general.name", name, strlen(name), err);
    }
    if (!status && base && *base && !find_kept(export, "", "general.base_model.0.name"))
        status =
            coffer__gguf_keys_text(&export->keys, "", "general.base_model.0.name", base, strlen(base), err);
    return status;
}

/* Sections with the structure of the model are rebuilt when the file is converted back. */
static bool is_kept(uint32_t type)
{
    return type != COFFER_MCF_MODEL_INFO && type != COFFER_MCF_QUANT_INFO &&
           type != COFFER_MCF_TENSOR_INDEX && type != COFFER_MCF_TENSOR_DATA &&
           type != COFFER_MCF_CHECKSUMS && type != COFFER_MCF_QUALITY && type != COFFER_MCF_DIRECTORY_COPY &&
           type != COFFER_MCF_DAMAGE && type != COFFER_MCF_FILES;
}

static coffer_status put_sections(gguf_export *export, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < coffer_mcf_section_count(export->model); i++) {
        uint32_t type = coffer_mcf_section_at(export->model, i)->type;
        uint32_t version = coffer_mcf_section_at(export->model, i)->version;
        const char *name = coffer_mcf_section_name(type);
        coffer__buffer number = COFFER__BUFFER_INIT;
        uint8_t *bytes = NULL;
        size_t len = 0;
        if (!is_kept(type))
            continue;
        coffer__buffer_printf(&number, "0x%08x", (unsigned)type);
        if (version != 1)
            coffer__buffer_printf(&number, ".%u", (unsigned)version);
        status = coffer_mcf_read_section(&bytes, &len, export->model, type, err);
        if (!status)
            status = coffer__gguf_keys_text(&export->keys, COFFER__GGUF_FROM_SECTION,
                                            name ? name : coffer__buffer_text(&number), (const char *)bytes,
                                            len, err);
        coffer_free(bytes);
        coffer__buffer_free(&number);
    }
    return status;
}

static coffer_status put_files(gguf_export *export, coffer_error *err)
{
    const coffer_mcf_file *files = NULL;
    size_t count = 0;
    coffer_status status = coffer_mcf_get_files(&files, &count, export->model, err);
    for (size_t i = 0; !status && i < count; i++) {
        bool is_head = files[i].kind == COFFER_MCF_FILE_SAFETENSORS_HEAD;
        uint8_t *bytes = NULL;
        size_t len = 0;
        status = coffer_mcf_read_file(&bytes, &len, export->model, files[i].name, err);
        if (!status)
            status = coffer__gguf_keys_text(&export->keys,
                                            is_head ? COFFER__GGUF_FROM_HEAD : COFFER__GGUF_FROM_FILE,
                                            files[i].name, (const char *)bytes, len, err);
        coffer_free(bytes);
    }
    return status;
}

/* ---- Everything ---- */

/* The architecture name for GGUF: that of llama.cpp, the original one, or that of the family. */
static const char *find_arch(const gguf_export *export)
{
    if (export->hf)
        return export->hf->arch->name;
    const coffer_mcf_kv *kept = find_kept(export, "", "general.architecture");
    return kept && kept->type == COFFER_MCF_KV_STRING && *kept->text &&
                   coffer__mcf_arch_of(kept->text) == export->info->arch
               ? kept->text
               : coffer_mcf_arch_name(export->info->arch);
}

static coffer_status put_names_kind(coffer__gguf_keys *keys, const coffer__gguf_hf *hf, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&text, COFFER__GGUF_NAMES_HF);
    if (hf->has_prefix)
        coffer__buffer_printf(&text, ":%s.", hf->arch->model_type);
    coffer_status status = text.failed ? coffer__fail_no_memory(err, text.len)
                                       : coffer__gguf_keys_text(keys, "", COFFER__GGUF_NAMES,
                                                                coffer__buffer_text(&text), text.len, err);
    coffer__buffer_free(&text);
    return status;
}

/* Keys that llama.cpp needs and the model has in its files only. */
static coffer_status put_derived(gguf_export *export, coffer__gguf_written *written, coffer_error *err)
{
    coffer__gguf_keys *keys = &export->keys;
    uint32_t file_type;
    coffer_status status = COFFER_OK;
    coffer__gguf_keys_derive(keys);
    if (export->main_type && gguf_file_type_of(&file_type, export->main_type))
        status = coffer__gguf_keys_u32(keys, "", COFFER__GGUF_FILE_TYPE, file_type, err);
    if (!status)
        status = coffer__gguf_put_config(keys, export->hf, err);
    if (!status)
        status =
            coffer__gguf_put_tokenizer(keys, written->reason, export->hf, export->model, export->limits, err);
    if (!status)
        status = put_names_kind(keys, export->hf, err);
    return status ? status : coffer__gguf_keys_finish(keys, err);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static coffer_status check_duplicates(gguf_export *export, coffer_error *err)
{
    coffer__gguf_keys *keys = &export->keys;
    if (keys->count)
        qsort(keys->names, keys->count, sizeof *keys->names, by_text);
    for (size_t i = 1; i < keys->count; i++) {
        if (strcmp(keys->names[i - 1], keys->names[i]) == 0)
            return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                                "ModelInfo has the GGUF key \"%s\" twice", keys->names[i]);
    }
    return COFFER_OK;
}

/* Whether llama.cpp knows the keys. Mistral models are "llama" to llama.cpp. */
static void describe_keys(coffer__gguf_written *written, const gguf_export *export)
{
    enum { MISTRAL = 2 };
    uint32_t arch = export->info->arch;
    written->arch = export->arch;
    written->has_arch =
        export->hf || (find_kept(export, "", "general.architecture") ? strcmp(export->arch, "unknown") != 0
                                                                     : arch != 0 && arch != MISTRAL);
    written->has_tokenizer = coffer__gguf_keys_have(&export->keys, "", "tokenizer.ggml.model");
    written->key_count = export->keys.count;
}

coffer_status coffer__gguf_put_model(coffer__buffer *out, coffer__gguf_written *written,
                                     const coffer_mcf *model, const coffer_limits *limits, coffer_error *err)
{
    static const coffer_mcf_model_info nothing = COFFER_MCF_MODEL_INFO_INIT;
    gguf_export export = {
        .keys = { .out = out, .first_derived = SIZE_MAX },
        .model = model,
        .limits = limits,
        .main_type = written->main_type,
        .hf = written->hf,
    };
    coffer_status status = coffer_mcf_get_model_info(&export.info, model, err);
    if (status == COFFER_E_MISSING) {
        export.info = &nothing;
        status = COFFER_OK;
    }
    if (status)
        return status;
    export.arch = find_arch(&export);
    status = put_names(&export, err);
    if (!status)
        status = put_fields(&export, err);
    if (!status && written->quantized && !find_kept(&export, "", "general.quantization_version"))
        status = coffer__gguf_keys_u32(&export.keys, "", "general.quantization_version", QUANTIZATION_VERSION,
                                       err);
    if (!status)
        status = put_table(&export, err);
    if (!status)
        status = put_sections(&export, err);
    if (!status)
        status = put_files(&export, err);
    if (!status && export.hf)
        status = put_derived(&export, written, err);
    if (!status && out->failed)
        status = coffer__fail_no_memory(err, out->len);
    if (!status)
        status = check_duplicates(&export, err);
    describe_keys(written, &export);
    coffer__gguf_keys_free(&export.keys);
    return status;
}
