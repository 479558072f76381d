/* ModelInfo: fixed fields, two names and a table of keys and values. */
#include "formats/mcf/mcf_private.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/utf8.h"

#include <stdlib.h>

COFFER__INIT_FUNCTION(coffer_mcf_kv, COFFER_MCF_KV_INIT)
COFFER__INIT_FUNCTION(coffer_mcf_model_info, COFFER_MCF_MODEL_INFO_INIT)

const coffer_mcf_kv *coffer_mcf_model_info_kv_at(const coffer_mcf_model_info *info, size_t index)
{
    return index < info->kv_count ? coffer__stride_at(info->kvs, index) : NULL;
}

/* ---- Decoding ---- */

typedef struct decoder {
    const uint8_t *bytes;
    size_t len;
    uint64_t base;
    coffer_report *report;
    coffer_error failure; /* the first mistake, without a report */
    size_t texts_max;
    coffer__buffer texts; /* all strings, NUL-terminated; pointers are set when it no longer grows */
} decoder;

static void complain(decoder *of, coffer_status code, coffer_severity severity, uint64_t at, const char *text)
{
    if (of->report)
        coffer__report_add(of->report, code, severity, of->base + at, "ModelInfo: %s", text);
    else if (severity == COFFER_ERROR && of->failure.status == COFFER_OK)
        coffer__fail(&of->failure, code, of->base + at, "ModelInfo: %s", text);
}

/* Entries of the table may share texts; beyond what the section holds, one has this much on average. */
#define SHARED_TEXT 256

/* A string in the decoder's buffer; start : SIZE_MAX when absent. */
typedef struct text_place {
    size_t start, len;
} text_place;

static const text_place no_text = { SIZE_MAX, 0 };

static text_place take_text(decoder *of, uint64_t offset, uint64_t said_at)
{
    text_place place = no_text;
    uint32_t len;
    if (offset == 0)
        return place;
    if (!coffer__range_fits(offset, sizeof len, of->len)) {
        complain(of, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR, said_at, "a string is outside of the section");
        return place;
    }
    len = coffer__load_u32(of->bytes + offset);
    if (!coffer__range_fits(offset + sizeof len, len, of->len)) {
        complain(of, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR, offset, "a string ends outside of the section");
        return place;
    }
    if (len >= of->texts_max - of->texts.len) {
        complain(of, COFFER_E_LIMIT, COFFER_ERROR, said_at, "long strings are shared by too many entries");
        return place;
    }
    if (offset % COFFER__MCF_SECTION_ALIGNMENT != 0)
        complain(of, COFFER_E_MISALIGNED, COFFER_ERROR, said_at, "a string is not 8-aligned");
    if (!coffer__utf8_valid(of->bytes + offset + sizeof len, len))
        complain(of, COFFER_E_BAD_TEXT, COFFER_WARNING, offset, "a string is not UTF-8");
    place.start = of->texts.len;
    place.len = len;
    coffer__buffer_append(&of->texts, of->bytes + offset + sizeof len, len);
    coffer__buffer_append(&of->texts, "", 1);
    return place;
}

typedef struct kv_place {
    text_place key, text;
    uint32_t type;
    uint32_t u32;
    float f32;
} kv_place;

/* False when the entry cannot be used. */
static bool take_kv(kv_place *out, decoder *of, uint64_t at)
{
    const uint8_t *entry = of->bytes + at;
    uint64_t value = coffer__load_u64(entry + COFFER__MCF_KV_VALUE_AT);
    kv_place kv = { .text = no_text, .type = coffer__load_u32(entry + COFFER__MCF_KV_TYPE_AT) };
    if (coffer__load_u64(entry + COFFER__MCF_KV_KEY_AT) == 0) {
        complain(of, COFFER_E_BAD_VALUE, COFFER_ERROR, at, "an entry of the table has no key");
        return false;
    }
    kv.key = take_text(of, coffer__load_u64(entry + COFFER__MCF_KV_KEY_AT), at);
    if (kv.key.start == SIZE_MAX)
        return false;
    if (coffer__load_u32(entry + COFFER__MCF_KV_PAD_AT) != 0)
        complain(of, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, at + COFFER__MCF_KV_PAD_AT,
                 "the pad of a table entry is not 0");
    switch (kv.type) {
    case COFFER_MCF_KV_U32:
    case COFFER_MCF_KV_F32:
        if (!coffer__range_fits(value, sizeof kv.u32, of->len)) {
            complain(of, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR, at + COFFER__MCF_KV_VALUE_AT,
                     "a value is outside of the section");
            return false;
        }
        kv.u32 = coffer__load_u32(of->bytes + value);
        kv.f32 = coffer__load_f32(of->bytes + value);
        break;
    case COFFER_MCF_KV_STRING:
        kv.text = take_text(of, value, at + COFFER__MCF_KV_VALUE_AT);
        if (kv.text.start == SIZE_MAX && value != 0)
            return false;
        break;
    default:
        complain(of, COFFER_E_BAD_VALUE, COFFER_ERROR, at + COFFER__MCF_KV_TYPE_AT,
                 "a value of the table has an unknown type");
        return false;
    }
    *out = kv;
    return true;
}

static void check_keys(decoder *of, const kv_place *kvs, size_t count, uint64_t at)
{
    for (size_t i = 1; i < count; i++) {
        const char *texts = (const char *)of->texts.data;
        int order = coffer__mcf_compare_names(texts + kvs[i - 1].key.start, kvs[i - 1].key.len,
                                              texts + kvs[i].key.start, kvs[i].key.len);
        if (order == 0)
            complain(of, COFFER_E_DUPLICATE, COFFER_WARNING, at, "a key is in the table twice");
        else if (order > 0)
            complain(of, COFFER_E_NOT_SORTED, COFFER_WARNING, at, "the keys of the table are not sorted");
        if (order >= 0)
            return;
    }
}

static coffer_status take_table(kv_place **out, size_t *count, decoder *of, coffer_error *err)
{
    uint32_t claimed = coffer__load_u32(of->bytes + COFFER__MCF_MODEL_KV_COUNT_AT);
    uint64_t table = coffer__load_u64(of->bytes + COFFER__MCF_MODEL_KVS_AT);
    kv_place *kvs;
    size_t taken = 0;
    if (!coffer__range_fits(table, (uint64_t)claimed * COFFER__MCF_KV_ENTRY, of->len) ||
        (claimed > 0 && table < COFFER__MCF_MODEL_INFO_SIZE)) {
        complain(of, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR, COFFER__MCF_MODEL_KV_COUNT_AT,
                 "the table is outside of the section");
        claimed = 0;
    }
    kvs = coffer__alloc_array(claimed, sizeof *kvs);
    if (!kvs)
        return coffer__fail_no_memory(err, claimed * sizeof *kvs);
    for (uint32_t i = 0; i < claimed; i++)
        taken += take_kv(&kvs[taken], of, table + (uint64_t)i * COFFER__MCF_KV_ENTRY);
    if (!of->texts.failed)
        check_keys(of, kvs, taken, table);
    *count = taken;
    *out = kvs;
    return COFFER_OK;
}

static void check_fixed(decoder *of)
{
    const uint8_t *bytes = of->bytes;
    if (coffer__load_u32(bytes + COFFER__MCF_MODEL_FLAGS_AT) != 0)
        complain(of, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR, COFFER__MCF_MODEL_FLAGS_AT,
                 "the flags are not 0");
    if (coffer__load_u32(bytes + COFFER__MCF_MODEL_PAD_AT) != 0 ||
        coffer__load_u32(bytes + COFFER__MCF_MODEL_KV_PAD_AT) != 0)
        complain(of, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, COFFER__MCF_MODEL_PAD_AT, "a pad is not 0");
    if (coffer__load_u32(bytes + COFFER__MCF_MODEL_ARCH_AT) > COFFER_MCF_ARCH_SMOLLM3)
        complain(of, COFFER_E_BAD_VALUE, COFFER_WARNING, COFFER__MCF_MODEL_ARCH_AT, "unknown architecture");
    if (coffer__load_u32(bytes + COFFER__MCF_MODEL_ROPE_AT) > COFFER_MCF_ROPE_YARN)
        complain(of, COFFER_E_BAD_VALUE, COFFER_WARNING, COFFER__MCF_MODEL_ROPE_AT, "unknown rope type");
}

/* One piece of memory: the info, the table, the texts. */
static coffer_status assemble(coffer_mcf_model_info **out, const decoder *of, const kv_place *kvs,
                              size_t count, text_place name, text_place base, coffer_error *err)
{
    size_t texts_at = sizeof(coffer_mcf_model_info) + count * sizeof(coffer_mcf_kv);
    uint8_t *memory = of->texts.failed ? NULL : coffer__calloc(1, texts_at + of->texts.len);
    coffer_mcf_model_info *info;
    coffer_mcf_kv *table;
    const char *texts;
    if (!memory)
        return coffer__fail_no_memory(err, texts_at + of->texts.len);
    info = (coffer_mcf_model_info *)(void *)memory;
    table = (coffer_mcf_kv *)(void *)(memory + sizeof *info);
    texts = (const char *)memory + texts_at;
    if (of->texts.len > 0)
        memcpy(memory + texts_at, of->texts.data, of->texts.len);
    for (size_t i = 0; i < count; i++)
        table[i] = (coffer_mcf_kv){ .struct_size = sizeof(coffer_mcf_kv),
                                    .key = texts + kvs[i].key.start,
                                    .type = (coffer_mcf_kv_type)kvs[i].type,
                                    .u32 = kvs[i].type == COFFER_MCF_KV_U32 ? kvs[i].u32 : 0,
                                    .f32 = kvs[i].type == COFFER_MCF_KV_F32 ? kvs[i].f32 : 0.0f,
                                    .text = kvs[i].text.start == SIZE_MAX ? "" : texts + kvs[i].text.start,
                                    .text_len = kvs[i].text.len };
    info->struct_size = sizeof *info;
    info->arch = coffer__load_u32(of->bytes + COFFER__MCF_MODEL_ARCH_AT);
    info->vocab_size = coffer__load_u32(of->bytes + COFFER__MCF_MODEL_VOCAB_AT);
    info->hidden_size = coffer__load_u32(of->bytes + COFFER__MCF_MODEL_HIDDEN_AT);
    info->layer_count = coffer__load_u32(of->bytes + COFFER__MCF_MODEL_LAYERS_AT);
    info->head_count = coffer__load_u32(of->bytes + COFFER__MCF_MODEL_HEADS_AT);
    info->head_count_kv = coffer__load_u32(of->bytes + COFFER__MCF_MODEL_HEADS_KV_AT);
    info->context_length = coffer__load_u32(of->bytes + COFFER__MCF_MODEL_CONTEXT_AT);
    info->train_context = coffer__load_u32(of->bytes + COFFER__MCF_MODEL_TRAIN_CONTEXT_AT);
    info->rope_type = coffer__load_u32(of->bytes + COFFER__MCF_MODEL_ROPE_AT);
    info->rope_freq_base = coffer__load_f32(of->bytes + COFFER__MCF_MODEL_ROPE_BASE_AT);
    info->rope_scale = coffer__load_f32(of->bytes + COFFER__MCF_MODEL_ROPE_SCALE_AT);
    info->model_name = name.start == SIZE_MAX ? NULL : texts + name.start;
    info->base_model = base.start == SIZE_MAX ? NULL : texts + base.start;
    info->kvs = table;
    info->kv_count = count;
    *out = info;
    return COFFER_OK;
}

coffer_status coffer__mcf_decode_model_info(coffer_mcf_model_info **out, const uint8_t *bytes, size_t len,
                                            uint64_t base, coffer_report *report, coffer_error *err)
{
    decoder of = { .bytes = bytes,
                   .len = len,
                   .base = base,
                   .report = report,
                   .failure = COFFER_ERROR_INIT,
                   .texts_max = len + len / COFFER__MCF_KV_ENTRY * SHARED_TEXT,
                   .texts = COFFER__BUFFER_INIT };
    text_place name, base_model;
    kv_place *kvs = NULL;
    size_t count = 0;
    coffer_status status;
    if (len < COFFER__MCF_MODEL_INFO_SIZE)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base,
                            "ModelInfo has %zu bytes, its fixed part takes %d", len,
                            COFFER__MCF_MODEL_INFO_SIZE);
    if (coffer__load_u32(bytes + COFFER__MCF_MODEL_VERSION_AT) != COFFER__MCF_SECTION_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, base,
                            "ModelInfo has version %lu, this program reads %d",
                            (unsigned long)coffer__load_u32(bytes + COFFER__MCF_MODEL_VERSION_AT),
                            COFFER__MCF_SECTION_VERSION);
    check_fixed(&of);
    name = take_text(&of, coffer__load_u64(bytes + COFFER__MCF_MODEL_NAME_AT), COFFER__MCF_MODEL_NAME_AT);
    base_model =
        take_text(&of, coffer__load_u64(bytes + COFFER__MCF_MODEL_BASE_AT), COFFER__MCF_MODEL_BASE_AT);
    status = take_table(&kvs, &count, &of, err);
    if (status == COFFER_OK && of.failure.status)
        status = coffer__fail_copy(err, &of.failure);
    if (status == COFFER_OK)
        status = assemble(out, &of, kvs, count, name, base_model, err);
    coffer__free(kvs);
    coffer__buffer_free(&of.texts);
    return status;
}

void coffer__mcf_model_info_free(coffer_mcf_model_info *info)
{
    coffer__free(info);
}

coffer_status coffer_mcf_get_model_info(const coffer_mcf_model_info **out, const coffer_mcf *model,
                                        coffer_error *err)
{
    coffer_mcf_model_info *_Atomic *place = &((coffer_mcf *)(uintptr_t)model)->model_info;
    coffer_mcf_model_info *info = atomic_load(place), *nothing = NULL;
    coffer_status status = COFFER_OK;
    uint8_t *bytes;
    size_t len;
    if (info) {
        *out = info;
        return COFFER_OK;
    }
    if ((status = coffer_mcf_read_section(&bytes, &len, model, COFFER_MCF_MODEL_INFO, err)))
        return status;
    uint64_t base = coffer_mcf_find_section(model, COFFER_MCF_MODEL_INFO)->offset;
    status = coffer__mcf_decode_model_info(&info, bytes, len, base, NULL, err);
    coffer__free(bytes);
    if (status)
        return status;
    /* When two threads decode it at the same time, one copy is dropped. */
    if (!atomic_compare_exchange_strong(place, &nothing, info)) {
        coffer__mcf_model_info_free(info);
        info = nothing;
    }
    *out = info;
    return COFFER_OK;
}

/* ---- Encoding ---- */

static void align(coffer__buffer *out)
{
    coffer__buffer_fill(out, 0, (0 - out->len) % COFFER__MCF_SECTION_ALIGNMENT);
}

static uint64_t put_text(coffer__buffer *out, const char *text, size_t len)
{
    uint8_t length[4];
    uint64_t at;
    if (!text)
        return 0;
    align(out);
    at = out->len;
    coffer__store_u32(length, (uint32_t)len);
    coffer__buffer_append(out, length, sizeof length);
    coffer__buffer_append(out, text, len);
    align(out);
    return at;
}

static uint64_t put_value(coffer__buffer *out, const coffer_mcf_kv *kv)
{
    uint8_t value[8] = { 0 };
    uint64_t at = out->len;
    if (kv->type == COFFER_MCF_KV_STRING)
        return put_text(out, kv->text ? kv->text : "", kv->text ? kv->text_len : 0);
    if (kv->type == COFFER_MCF_KV_F32)
        coffer__store_f32(value, kv->f32);
    else
        coffer__store_u32(value, kv->u32);
    coffer__buffer_append(out, value, sizeof value);
    return at;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const coffer_mcf_kv *)a)->key, ((const coffer_mcf_kv *)b)->key);
}

static coffer_status check_table(const coffer_mcf_kv *kvs, size_t count, coffer_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (kvs[i].type < COFFER_MCF_KV_U32 || kvs[i].type > COFFER_MCF_KV_STRING)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "the value of \"%s\" has the unknown type %d", kvs[i].key, (int)kvs[i].type);
        if (i > 0 && strcmp(kvs[i - 1].key, kvs[i].key) == 0)
            return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                                "the key \"%s\" is in the table of ModelInfo twice", kvs[i].key);
    }
    return COFFER_OK;
}

static void put_table(coffer__buffer *out, const coffer_mcf_kv *kvs, size_t count)
{
    coffer__buffer table = COFFER__BUFFER_INIT;
    for (size_t i = 0; i < count; i++) {
        uint8_t entry[COFFER__MCF_KV_ENTRY] = { 0 };
        coffer__store_u64(entry + COFFER__MCF_KV_KEY_AT, put_text(out, kvs[i].key, strlen(kvs[i].key)));
        coffer__store_u32(entry + COFFER__MCF_KV_TYPE_AT, (uint32_t)kvs[i].type);
        coffer__store_u64(entry + COFFER__MCF_KV_VALUE_AT, put_value(out, &kvs[i]));
        coffer__buffer_append(&table, entry, sizeof entry);
    }
    align(out);
    if (!out->failed && count > 0)
        coffer__store_u64(out->data + COFFER__MCF_MODEL_KVS_AT, out->len);
    coffer__buffer_append(out, table.data, table.len);
    out->failed = out->failed || table.failed;
    coffer__buffer_free(&table);
}

static void put_fixed(uint8_t *fixed, const coffer_mcf_model_info *info)
{
    const uint32_t numbers[] = { info->vocab_size,    info->hidden_size,   info->layer_count,
                                 info->head_count,    info->head_count_kv, info->context_length,
                                 info->train_context, info->rope_type };
    coffer__store_u32(fixed + COFFER__MCF_MODEL_VERSION_AT, COFFER__MCF_SECTION_VERSION);
    coffer__store_u32(fixed + COFFER__MCF_MODEL_ARCH_AT, info->arch);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        coffer__store_u32(fixed + COFFER__MCF_MODEL_VOCAB_AT + sizeof(uint32_t) * i, numbers[i]);
    coffer__store_f32(fixed + COFFER__MCF_MODEL_ROPE_BASE_AT, info->rope_freq_base);
    coffer__store_f32(fixed + COFFER__MCF_MODEL_ROPE_SCALE_AT, info->rope_scale);
    coffer__store_u32(fixed + COFFER__MCF_MODEL_KV_COUNT_AT, (uint32_t)info->kv_count);
}

static coffer_status sort_table(coffer_mcf_kv **out, const coffer_mcf_model_info *info, coffer_error *err)
{
    coffer_mcf_kv *kvs = coffer__alloc_array(info->kv_count, sizeof *kvs);
    if (!kvs)
        return coffer__fail_no_memory(err, info->kv_count * sizeof *kvs);
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < info->kv_count; i++) {
        kvs[i] = (coffer_mcf_kv)COFFER_MCF_KV_INIT;
        status = coffer__take_options(&kvs[i], sizeof kvs[i], coffer__stride_at(info->kvs, i), err);
    }
    if (status) {
        coffer__free(kvs);
        return status;
    }
    if (info->kv_count > 1)
        qsort(kvs, info->kv_count, sizeof *kvs, by_key);
    *out = kvs;
    return COFFER_OK;
}

coffer_status coffer__mcf_encode_model_info(coffer__buffer *out, const coffer_mcf_model_info *info,
                                            coffer_error *err)
{
    uint8_t fixed[COFFER__MCF_MODEL_INFO_SIZE] = { 0 };
    coffer_mcf_kv *kvs = NULL;
    uint64_t name, base;
    coffer_status status = sort_table(&kvs, info, err);
    if (!status)
        status = check_table(kvs, info->kv_count, err);
    if (status)
        goto out;
    put_fixed(fixed, info);
    coffer__buffer_append(out, fixed, sizeof fixed);
    name = put_text(out, info->model_name, info->model_name ? strlen(info->model_name) : 0);
    base = put_text(out, info->base_model, info->base_model ? strlen(info->base_model) : 0);
    if (!out->failed) {
        coffer__store_u64(out->data + COFFER__MCF_MODEL_NAME_AT, name);
        coffer__store_u64(out->data + COFFER__MCF_MODEL_BASE_AT, base);
    }
    put_table(out, kvs, info->kv_count);
    if (out->failed)
        status = coffer__fail_no_memory(err, out->len);
out:
    coffer__free(kvs);
    return status;
}
