/* QuantInfo and QuantQuality: how tensors were quantized, and the error of it. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "formats/mcf/mcf_quality.h"
#include "quant/quant.h"

#include <inttypes.h>
#include <math.h>

/* QuantInfo: how tensors were quantized. Payloads of q* and k* tensors can be read without it. */

COFFER__INIT_FUNCTION(coffer_mcf_quant, COFFER_MCF_QUANT_INIT)

static coffer__mcf_quant_record load_record(const uint8_t *bytes)
{
    coffer__mcf_quant_record record;
    record.tensor = coffer__load_u32(bytes + COFFER__MCF_QUANT_TENSOR_AT);
    record.method = bytes[COFFER__MCF_QUANT_METHOD_AT];
    record.domain = bytes[COFFER__MCF_QUANT_DOMAIN_AT];
    record.block_size = coffer__load_u16(bytes + COFFER__MCF_QUANT_BLOCK_AT);
    record.super_size = coffer__load_u16(bytes + COFFER__MCF_QUANT_SUPER_AT);
    memcpy(record.reserved, bytes + COFFER__MCF_QUANT_RESERVED_AT, sizeof record.reserved);
    record.min_clip = coffer__load_f32(bytes + COFFER__MCF_QUANT_MIN_AT);
    record.max_clip = coffer__load_f32(bytes + COFFER__MCF_QUANT_MAX_AT);
    return record;
}

void coffer__mcf_store_quant_record(uint8_t out[COFFER__MCF_QUANT_RECORD],
                                    const coffer__mcf_quant_record *record)
{
    coffer__store_u32(out + COFFER__MCF_QUANT_TENSOR_AT, record->tensor);
    out[COFFER__MCF_QUANT_METHOD_AT] = record->method;
    out[COFFER__MCF_QUANT_DOMAIN_AT] = record->domain;
    coffer__store_u16(out + COFFER__MCF_QUANT_BLOCK_AT, record->block_size);
    coffer__store_u16(out + COFFER__MCF_QUANT_SUPER_AT, record->super_size);
    memcpy(out + COFFER__MCF_QUANT_RESERVED_AT, record->reserved, sizeof record->reserved);
    coffer__store_f32(out + COFFER__MCF_QUANT_MIN_AT, record->min_clip);
    coffer__store_f32(out + COFFER__MCF_QUANT_MAX_AT, record->max_clip);
}

static coffer_status check_layout(size_t *count, const uint8_t *bytes, size_t len, uint64_t base,
                                  coffer_error *err)
{
    uint32_t version, records;
    if (len < COFFER__MCF_QUANT_HEADER)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base, "QuantInfo has %zu bytes, its header takes %d",
                            len, COFFER__MCF_QUANT_HEADER);
    version = coffer__load_u32(bytes + COFFER__MCF_QUANT_VERSION_AT);
    records = coffer__load_u32(bytes + COFFER__MCF_QUANT_COUNT_AT);
    if (version != COFFER__MCF_SECTION_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, base,
                            "QuantInfo has version %" PRIu32 ", this program reads %d", version,
                            COFFER__MCF_SECTION_VERSION);
    if (!coffer__range_fits(COFFER__MCF_QUANT_HEADER, (uint64_t)records * COFFER__MCF_QUANT_RECORD, len))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base + COFFER__MCF_QUANT_COUNT_AT,
                            "QuantInfo declares %" PRIu32 " records, it has %zu", records,
                            (len - COFFER__MCF_QUANT_HEADER) / COFFER__MCF_QUANT_RECORD);
    *count = records;
    return COFFER_OK;
}

coffer_status coffer__mcf_read_quant_records(coffer__mcf_quant_record **out, size_t *count,
                                             coffer_source *src, const coffer_mcf_section *section,
                                             const coffer_limits *limits, coffer_error *err)
{
    coffer__mcf_quant_record *records = NULL;
    uint8_t *bytes = NULL;
    size_t len = 0, n = 0;
    uint64_t max;
    coffer_status status;
    if (!coffer__mul_u64(&max, limits->entries, COFFER__MCF_QUANT_RECORD))
        max = UINT64_MAX;
    status = coffer__mcf_load_section(&bytes, &len, src, section, max, err);
    if (!status)
        status = check_layout(&n, bytes, len, section->offset, err);
    if (status)
        goto out;
    records = coffer__alloc_array(n, sizeof *records);
    if (!records) {
        status = coffer__fail_no_memory(err, n * sizeof *records);
        goto out;
    }
    for (size_t i = 0; i < n; i++)
        records[i] = load_record(bytes + COFFER__MCF_QUANT_HEADER + i * COFFER__MCF_QUANT_RECORD);
    *count = n;
    *out = records;
out:
    coffer__free(bytes);
    return status;
}

coffer_mcf_quant coffer__mcf_implied_quant(coffer_dtype dtype)
{
    const coffer__quant_type *type = coffer__quant_find_type(dtype);
    coffer_mcf_quant quant = { .struct_size = sizeof quant, .method = dtype };
    if (type) {
        quant.block_size = type->block_size;
        quant.super_size = type->super_size;
    }
    return quant;
}

bool coffer__mcf_has_activations(const coffer_mcf *model, size_t tensor)
{
    return tensor < model->index.count && model->quant_of && model->quant_of[tensor] != 0 &&
           model->quants[model->quant_of[tensor] - 1].domain == COFFER__MCF_DOMAIN_ACTIVATIONS;
}

static coffer_mcf_quant to_public(const coffer__mcf_quant_record *record)
{
    return (coffer_mcf_quant){ .struct_size = sizeof(coffer_mcf_quant),
                               .method = coffer_mcf_dtype_from_code(record->method),
                               .activations = record->domain == COFFER__MCF_DOMAIN_ACTIVATIONS,
                               .block_size = record->block_size,
                               .super_size = record->super_size,
                               .min_clip = record->min_clip,
                               .max_clip = record->max_clip };
}

/* A QuantInfo that cannot be read counts as absent: only int8 and int4 tensors need it. */
coffer_status coffer__mcf_load_quants(coffer_mcf *model, coffer_error *err)
{
    const coffer_mcf_section *section = coffer_mcf_find_section(model, COFFER_MCF_QUANT_INFO);
    if (model->index.count == 0 || !section)
        return COFFER_OK;
    coffer_status status = coffer__mcf_read_quant_records(&model->quants, &model->quant_count, model->source,
                                                          section, &model->limits, err);
    if (status)
        return coffer__is_about_file(status) ? COFFER_OK : status;
    model->quant_of = coffer__calloc(model->index.count, sizeof *model->quant_of);
    model->public_quants = coffer__alloc_array(model->quant_count, sizeof *model->public_quants);
    if (!model->quant_of || !model->public_quants)
        return coffer__fail_no_memory(err, model->index.count * sizeof *model->quant_of);
    for (size_t i = 0; i < model->quant_count; i++) {
        uint32_t tensor = model->quants[i].tensor;
        model->public_quants[i] = to_public(&model->quants[i]);
        if (tensor < model->index.count && model->quant_of[tensor] == 0)
            model->quant_of[tensor] = (uint32_t)i + 1;
    }
    return COFFER_OK;
}

const coffer_mcf_quant *coffer_mcf_quant_at(const coffer_mcf *model, size_t tensor)
{
    if (tensor >= model->index.count || !model->quant_of || model->quant_of[tensor] == 0)
        return NULL;
    return &model->public_quants[model->quant_of[tensor] - 1];
}

/* QuantQuality, an extension of Coffer: the quantization error of each tensor. It refers to tensors by
 * name, so that it stays valid when a file is rewritten. A record is ignored when the tensor has another
 * type now. */

COFFER__INIT_FUNCTION(coffer_mcf_quality, COFFER_MCF_QUALITY_INIT)

/* ---- Reading ---- */

static const uint8_t *record_at(const coffer__mcf_qualities *section, size_t index)
{
    return section->raw + COFFER__MCF_QUALITY_HEADER + index * COFFER__MCF_QUALITY_RECORD;
}

static coffer_status check_quality_layout(const uint8_t *bytes, size_t len, uint64_t base, coffer_error *err)
{
    if (len < COFFER__MCF_QUALITY_HEADER)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base,
                            "QuantQuality has %zu bytes, its header takes %d", len,
                            COFFER__MCF_QUALITY_HEADER);
    uint32_t version = coffer__load_u32(bytes + COFFER__MCF_QUALITY_VERSION_AT);
    uint64_t records = coffer__load_u32(bytes + COFFER__MCF_QUALITY_COUNT_AT);
    uint64_t strings = coffer__load_u32(bytes + COFFER__MCF_QUALITY_STRINGS_SIZE_AT);
    uint64_t needed = COFFER__MCF_QUALITY_HEADER + records * COFFER__MCF_QUALITY_RECORD + strings;
    if (version != COFFER__MCF_SECTION_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, base,
                            "QuantQuality has version %" PRIu32 ", this program reads %d", version,
                            COFFER__MCF_SECTION_VERSION);
    if (needed > len)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base + COFFER__MCF_QUALITY_COUNT_AT,
                            "QuantQuality declares %" PRIu64 " records and %" PRIu64
                            " bytes of names, %" PRIu64 " bytes, it has %zu",
                            records, strings, needed, len);
    return COFFER_OK;
}

/* Records may share texts. When many share a long one, a small file needs any amount of memory: beyond what
 * the strings take, a record has this much on average. */
#define SHARED_TEXT 256

static coffer_status check_shares(const coffer__mcf_qualities *section, coffer_error *err)
{
    uint64_t total = 0, max = section->strings_size + (uint64_t)section->count * SHARED_TEXT;
    uint64_t last = UINT64_MAX;
    for (size_t i = 0; i < section->count; i++) {
        const uint8_t *record = record_at(section, i);
        uint32_t offset = coffer__load_u32(record + COFFER__MCF_QUALITY_IMPORTANCE_AT);
        uint32_t len = coffer__load_u32(record + COFFER__MCF_QUALITY_IMPORTANCE_LEN_AT);
        uint64_t text = (uint64_t)offset << 32 | len;
        if (text != last && coffer__range_fits(offset, len, section->strings_size))
            total += len;
        last = text;
    }
    if (total <= max)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_LIMIT, section->base,
                        "QuantQuality: the records name importances of %" PRIu64
                        " bytes in all, the limit is %" PRIu64,
                        total, max);
}

coffer_status coffer__mcf_quality_load(coffer__mcf_qualities *out, coffer_source *src,
                                       const coffer_mcf_section *section, const coffer_limits *limits,
                                       coffer_error *err)
{
    coffer__mcf_qualities read = { .base = section->offset };
    size_t len = 0;
    coffer_status status = coffer__mcf_load_section(&read.raw, &len, src, section, limits->json_bytes, err);
    if (!status)
        status = check_quality_layout(read.raw, len, section->offset, err);
    if (!status) {
        read.count = coffer__load_u32(read.raw + COFFER__MCF_QUALITY_COUNT_AT);
        read.strings_size = coffer__load_u32(read.raw + COFFER__MCF_QUALITY_STRINGS_SIZE_AT);
        read.strings =
            (const char *)read.raw + COFFER__MCF_QUALITY_HEADER + read.count * COFFER__MCF_QUALITY_RECORD;
        status = check_shares(&read, err);
    }
    if (status) {
        coffer__free(read.raw);
        return status;
    }
    *out = read;
    return COFFER_OK;
}

void coffer__mcf_quality_free(coffer__mcf_qualities *qualities)
{
    coffer__free(qualities->raw);
    *qualities = (coffer__mcf_qualities){ 0 };
}

/* NULL when it is outside. */
static const char *string_at(const coffer__mcf_qualities *qualities, uint32_t offset, uint32_t len)
{
    return coffer__range_fits(offset, len, qualities->strings_size) ? qualities->strings + offset : NULL;
}

uint64_t coffer__mcf_quality_place(const coffer__mcf_qualities *qualities, size_t index)
{
    return qualities->base + COFFER__MCF_QUALITY_HEADER + (uint64_t)index * COFFER__MCF_QUALITY_RECORD;
}

coffer_status coffer__mcf_quality_at(coffer__mcf_quality_record *out, const coffer__mcf_qualities *qualities,
                                     size_t index, coffer_error *err)
{
    const uint8_t *bytes = record_at(qualities, index);
    uint64_t place = coffer__mcf_quality_place(qualities, index);
    uint32_t name_len = coffer__load_u32(bytes + COFFER__MCF_QUALITY_NAME_LEN_AT);
    uint32_t importance_len = coffer__load_u32(bytes + COFFER__MCF_QUALITY_IMPORTANCE_LEN_AT);
    uint32_t method = coffer__load_u16(bytes + COFFER__MCF_QUALITY_METHOD_AT);
    const char *importance =
        string_at(qualities, coffer__load_u32(bytes + COFFER__MCF_QUALITY_IMPORTANCE_AT), importance_len);
    coffer__mcf_quality_record record = {
        .name = string_at(qualities, coffer__load_u32(bytes + COFFER__MCF_QUALITY_NAME_AT), name_len),
        .name_len = name_len,
        .dtype = coffer__load_u16(bytes + COFFER__MCF_QUALITY_DTYPE_AT),
    };
    record.importance = importance;
    record.importance_len = importance_len;
    record.quality = (coffer_mcf_quality){
        .struct_size = sizeof record.quality,
        .method = (coffer_quant_method)method,
        .snr_db = coffer__load_f32(bytes + COFFER__MCF_QUALITY_SNR_AT),
        .max_error = coffer__load_f32(bytes + COFFER__MCF_QUALITY_MAX_ERROR_AT),
    };
    if (!record.name || !importance)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place,
                            "record %zu of QuantQuality has a text outside of its %" PRIu32 " bytes", index,
                            qualities->strings_size);
    if (method > COFFER_QUANT_CALIBRATED)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place + COFFER__MCF_QUALITY_METHOD_AT,
                            "record %zu of QuantQuality has the unknown method %" PRIu32, index, method);
    if (isnan(record.quality.snr_db) || !(record.quality.max_error >= 0.0f))
        return coffer__fail(err, COFFER_E_BAD_VALUE, place + COFFER__MCF_QUALITY_SNR_AT,
                            "record %zu of QuantQuality says %g dB and a largest error of %g", index,
                            (double)record.quality.snr_db, (double)record.quality.max_error);
    if (!coffer__utf8_valid(importance, importance_len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, place + COFFER__MCF_QUALITY_IMPORTANCE_AT,
                            "record %zu of QuantQuality has an importance that is not UTF-8", index);
    *out = record;
    return COFFER_OK;
}

/* Neighboring records usually share their importance: it is copied once for them. */
typedef struct loading {
    coffer_mcf *model;
    const coffer__mcf_qualities *section;
    coffer__buffer texts;
    size_t *text_at; /* by record: 1 + offset in texts, 0 = none */
    const char *last;
    size_t last_len;
} loading;

static size_t keep_importance(loading *load, const coffer__mcf_quality_record *record, size_t previous)
{
    if (record->importance_len == 0)
        return 0;
    if (previous > 0 && load->last == record->importance && load->last_len == record->importance_len)
        return previous;
    load->last = record->importance;
    load->last_len = record->importance_len;
    size_t offset = load->texts.len;
    coffer__buffer_append(&load->texts, record->importance, record->importance_len);
    coffer__buffer_append(&load->texts, "", 1);
    return offset + 1;
}

static coffer_status take_records(loading *load, coffer_error *err)
{
    coffer_mcf *model = load->model;
    size_t kept = 0;
    for (size_t i = 0; i < load->section->count; i++) {
        coffer__mcf_quality_record record;
        if (coffer__mcf_quality_at(&record, load->section, i, NULL))
            continue;
        size_t tensor = coffer_mcf_find_tensor(model, record.name, record.name_len);
        if (tensor == COFFER_INDEX_NONE || model->quality_of[tensor] != 0 ||
            coffer_mcf_tensor_at(model, tensor)->dtype_code != record.dtype)
            continue;
        load->text_at[kept] = keep_importance(load, &record, kept > 0 ? load->text_at[kept - 1] : 0);
        model->qualities[kept++] = record.quality;
        model->quality_of[tensor] = (uint32_t)kept;
    }
    if (load->texts.failed)
        return coffer__fail_no_memory(err, load->texts.len);
    size_t len = 0;
    model->importances = (char *)coffer__buffer_release(&load->texts, &len);
    for (size_t i = 0; i < kept; i++)
        model->qualities[i].importance = load->text_at[i] ? model->importances + load->text_at[i] - 1 : NULL;
    return COFFER_OK;
}

static coffer_status load_records(coffer_mcf *model, const coffer__mcf_qualities *section, coffer_error *err)
{
    loading load = { .model = model, .section = section, .texts = COFFER__BUFFER_INIT };
    coffer_status status;
    load.text_at = coffer__alloc_array(section->count, sizeof *load.text_at);
    model->qualities = coffer__alloc_array(section->count, sizeof *model->qualities);
    model->quality_of = coffer__calloc(model->index.count, sizeof *model->quality_of);
    if (!load.text_at || !model->qualities || !model->quality_of)
        status = coffer__fail_no_memory(err, section->count * sizeof *model->qualities);
    else
        status = take_records(&load, err);
    coffer__free(load.text_at);
    coffer__buffer_free(&load.texts);
    return status;
}

coffer_status coffer__mcf_load_quality(coffer_mcf *model, coffer_error *err)
{
    const coffer_mcf_section *section = coffer_mcf_find_section(model, COFFER_MCF_QUALITY);
    coffer__mcf_qualities records = { 0 };
    if (model->index.count == 0 || !section)
        return COFFER_OK;
    coffer_status status = coffer__mcf_quality_load(&records, model->source, section, &model->limits, err);
    if (status) /* check reports it; the tensors are readable without the section */
        return coffer__is_about_file(status) ? COFFER_OK : status;
    status = load_records(model, &records, err);
    coffer__mcf_quality_free(&records);
    return status;
}

const coffer_mcf_quality *coffer_mcf_quality_at(const coffer_mcf *model, size_t tensor)
{
    if (tensor >= model->index.count || !model->quality_of || model->quality_of[tensor] == 0)
        return NULL;
    return &model->qualities[model->quality_of[tensor] - 1];
}

/* ---- Writing ---- */

void coffer__mcf_quality_add(coffer__mcf_quality_writer *writer, const coffer__mcf_quality_record *record)
{
    uint8_t bytes[COFFER__MCF_QUALITY_RECORD] = { 0 };
    const coffer_mcf_quality *quality = &record->quality;
    coffer__store_u32(bytes + COFFER__MCF_QUALITY_NAME_AT, (uint32_t)writer->strings.len);
    coffer__store_u32(bytes + COFFER__MCF_QUALITY_NAME_LEN_AT, (uint32_t)record->name_len);
    coffer__buffer_append(&writer->strings, record->name, record->name_len);
    /* The importance is mostly the same for all records: store it once. */
    bool same = writer->last_len == record->importance_len && !writer->strings.failed &&
                (record->importance_len == 0 || memcmp(writer->strings.data + writer->last_at,
                                                       record->importance, record->importance_len) == 0);
    if (!same) {
        writer->last_at = (uint32_t)writer->strings.len;
        writer->last_len = (uint32_t)record->importance_len;
        coffer__buffer_append(&writer->strings, record->importance, record->importance_len);
    }
    coffer__store_u32(bytes + COFFER__MCF_QUALITY_IMPORTANCE_AT, writer->last_at);
    coffer__store_u32(bytes + COFFER__MCF_QUALITY_IMPORTANCE_LEN_AT, writer->last_len);
    coffer__store_u16(bytes + COFFER__MCF_QUALITY_DTYPE_AT, record->dtype);
    coffer__store_u16(bytes + COFFER__MCF_QUALITY_METHOD_AT, (uint16_t)quality->method);
    coffer__store_f32(bytes + COFFER__MCF_QUALITY_SNR_AT, quality->snr_db);
    coffer__store_f32(bytes + COFFER__MCF_QUALITY_MAX_ERROR_AT, quality->max_error);
    coffer__buffer_append(&writer->records, bytes, sizeof bytes);
    writer->count++;
}

coffer_status coffer__mcf_quality_finish(coffer__buffer *out, coffer__mcf_quality_writer *writer,
                                         coffer_error *err)
{
    uint8_t header[COFFER__MCF_QUALITY_HEADER] = { 0 };
    size_t len = writer->records.len + writer->strings.len;
    bool fits = writer->strings.len <= UINT32_MAX;
    coffer__store_u32(header + COFFER__MCF_QUALITY_VERSION_AT, COFFER__MCF_SECTION_VERSION);
    coffer__store_u32(header + COFFER__MCF_QUALITY_COUNT_AT, writer->count);
    coffer__store_u32(header + COFFER__MCF_QUALITY_STRINGS_SIZE_AT, (uint32_t)writer->strings.len);
    coffer__buffer_append(out, header, sizeof header);
    coffer__buffer_append(out, writer->records.data, writer->records.len);
    coffer__buffer_append(out, writer->strings.data, writer->strings.len);
    bool failed = out->failed || writer->records.failed || writer->strings.failed;
    coffer__buffer_free(&writer->records);
    coffer__buffer_free(&writer->strings);
    if (!fits)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "the names of QuantQuality take %zu bytes, more than 4 GiB", len);
    return failed ? coffer__fail_no_memory(err, len) : COFFER_OK;
}
