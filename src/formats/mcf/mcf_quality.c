/* QuantQuality, a section of ours: how far each quantized tensor is from what it was. It names tensors, so
 * that it stays right when a file is written anew; what it says of a tensor that has another type since then
 * no longer counts. */
#include "formats/mcf/mcf_quality.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>

/* ---- Reading ---- */

static coffer_status check_layout(const uint8_t *bytes, size_t len, uint64_t base, coffer_error *err)
{
    if (len < COFFER__MCF_QUALITY_HEADER)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base,
                            "QuantQuality has %zu bytes, its header takes %d", len,
                            COFFER__MCF_QUALITY_HEADER);
    uint32_t version = coffer__load_u32(bytes);
    uint64_t records = coffer__load_u32(bytes + 4), strings = coffer__load_u32(bytes + 8);
    uint64_t needed = COFFER__MCF_QUALITY_HEADER + records * COFFER__MCF_QUALITY_RECORD + strings;
    if (version != COFFER__MCF_SECTION_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, base,
                            "QuantQuality has version %" PRIu32 ", this program reads %d", version,
                            COFFER__MCF_SECTION_VERSION);
    if (needed > len)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base + 4,
                            "QuantQuality says %" PRIu64 " records and %" PRIu64 " bytes of names, %" PRIu64
                            " bytes, it has %zu",
                            records, strings, needed, len);
    return COFFER_OK;
}

coffer_status coffer__mcf_quality_load(coffer__mcf_qualities *out, coffer_source *src,
                                       const coffer_mcf_section *section, const coffer_limits *limits,
                                       coffer_error *err)
{
    coffer__mcf_qualities read = { .base = section->offset };
    size_t len = 0;
    coffer_status status = coffer__mcf_load_section(&read.raw, &len, src, section, limits->json_bytes, err);
    if (!status)
        status = check_layout(read.raw, len, section->offset, err);
    if (status) {
        coffer__free(read.raw);
        return status;
    }
    read.count = coffer__load_u32(read.raw + 4);
    read.strings_size = coffer__load_u32(read.raw + 8);
    read.strings =
        (const char *)read.raw + COFFER__MCF_QUALITY_HEADER + read.count * COFFER__MCF_QUALITY_RECORD;
    *out = read;
    return COFFER_OK;
}

void coffer__mcf_quality_free(coffer__mcf_qualities *qualities)
{
    coffer__free(qualities->raw);
    *qualities = (coffer__mcf_qualities){ 0 };
}

/* NULL when it lies outside. */
static const char *string_at(const coffer__mcf_qualities *of, uint32_t offset, uint32_t len)
{
    return coffer__range_fits(offset, len, of->strings_size) ? of->strings + offset : NULL;
}

uint64_t coffer__mcf_quality_place(const coffer__mcf_qualities *qualities, size_t index)
{
    return qualities->base + COFFER__MCF_QUALITY_HEADER + (uint64_t)index * COFFER__MCF_QUALITY_RECORD;
}

coffer_status coffer__mcf_quality_at(coffer__mcf_quality_record *out, const coffer__mcf_qualities *qualities,
                                     size_t index, coffer_error *err)
{
    const uint8_t *at = qualities->raw + COFFER__MCF_QUALITY_HEADER + index * COFFER__MCF_QUALITY_RECORD;
    uint64_t place = coffer__mcf_quality_place(qualities, index);
    coffer__mcf_quality_record record = { .name_len = coffer__load_u32(at + 4),
                                          .dtype = coffer__load_u16(at + 16) };
    uint32_t importance_len = coffer__load_u32(at + 12), method = coffer__load_u16(at + 18);
    record.name = string_at(qualities, coffer__load_u32(at), (uint32_t)record.name_len);
    const char *importance = string_at(qualities, coffer__load_u32(at + 8), importance_len);
    record.quality = (coffer_mcf_quality){
        .method = (coffer_quant_method)method,
        .snr_db = coffer__load_f32(at + 20),
        .max_error = coffer__load_f32(at + 24),
        .importance = importance_len ? importance : NULL,
        .importance_len = importance_len,
    };
    if (!record.name || !importance)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place,
                            "record %zu of QuantQuality has a text outside of its %" PRIu32 " bytes", index,
                            qualities->strings_size);
    if (method > COFFER_QUANT_EXACT)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place + 18,
                            "record %zu of QuantQuality has the unknown method %" PRIu32, index, method);
    if (isnan(record.quality.snr_db) || !(record.quality.max_error >= 0.0f))
        return coffer__fail(err, COFFER_E_BAD_VALUE, place + 20,
                            "record %zu of QuantQuality says %g dB and a largest error of %g", index,
                            (double)record.quality.snr_db, (double)record.quality.max_error);
    if (!coffer__utf8_valid(importance, importance_len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, place + 8,
                            "record %zu of QuantQuality names a source that is not UTF-8", index);
    *out = record;
    return COFFER_OK;
}

coffer_status coffer__mcf_load_quality(coffer_mcf *model, coffer_error *err)
{
    coffer_mcf_section section;
    coffer__mcf_quality_record record;
    if (model->index.count == 0 || !coffer_mcf_find_section(&section, model, COFFER_MCF_QUALITY))
        return COFFER_OK;
    coffer_status status =
        coffer__mcf_quality_load(&model->qualities, model->source, &section, &model->limits, err);
    if (status) /* check says what is wrong; tensors can be read all the same */
        return coffer__is_about_file(status) ? COFFER_OK : status;
    model->quality_of = coffer__calloc(model->index.count, sizeof *model->quality_of);
    if (!model->quality_of)
        return coffer__fail_no_memory(err, model->index.count * sizeof *model->quality_of);
    for (size_t i = 0; i < model->qualities.count; i++) {
        if (coffer__mcf_quality_at(&record, &model->qualities, i, NULL))
            continue;
        size_t tensor = coffer_mcf_find_tensor(model, record.name, record.name_len);
        if (tensor != SIZE_MAX && model->quality_of[tensor] == 0 &&
            coffer_mcf_tensor_at(model, tensor).dtype_code == record.dtype)
            model->quality_of[tensor] = (uint32_t)i + 1;
    }
    return COFFER_OK;
}

bool coffer_mcf_get_quality(coffer_mcf_quality *out, const coffer_mcf *model, size_t tensor)
{
    coffer__mcf_quality_record record;
    if (tensor >= model->index.count || !model->quality_of || model->quality_of[tensor] == 0 ||
        coffer__mcf_quality_at(&record, &model->qualities, model->quality_of[tensor] - 1, NULL))
        return false;
    *out = record.quality;
    return true;
}

/* ---- Writing ---- */

void coffer__mcf_quality_add(coffer__mcf_quality_writer *writer, const coffer__mcf_quality_record *record)
{
    uint8_t bytes[COFFER__MCF_QUALITY_RECORD] = { 0 };
    const coffer_mcf_quality *quality = &record->quality;
    coffer__store_u32(bytes, (uint32_t)writer->strings.len);
    coffer__store_u32(bytes + 4, (uint32_t)record->name_len);
    coffer__buffer_append(&writer->strings, record->name, record->name_len);
    /* The source is mostly the same for all: it stands there once. */
    bool same = writer->last_len == quality->importance_len && !writer->strings.failed &&
                (quality->importance_len == 0 || memcmp(writer->strings.data + writer->last_at,
                                                        quality->importance, quality->importance_len) == 0);
    if (!same) {
        writer->last_at = (uint32_t)writer->strings.len;
        writer->last_len = (uint32_t)quality->importance_len;
        coffer__buffer_append(&writer->strings, quality->importance, quality->importance_len);
    }
    coffer__store_u32(bytes + 8, writer->last_at);
    coffer__store_u32(bytes + 12, writer->last_len);
    coffer__store_u16(bytes + 16, record->dtype);
    coffer__store_u16(bytes + 18, (uint16_t)quality->method);
    coffer__store_f32(bytes + 20, quality->snr_db);
    coffer__store_f32(bytes + 24, quality->max_error);
    coffer__buffer_append(&writer->records, bytes, sizeof bytes);
    writer->count++;
}

coffer_status coffer__mcf_quality_finish(coffer__buffer *out, coffer__mcf_quality_writer *writer,
                                         coffer_error *err)
{
    uint8_t header[COFFER__MCF_QUALITY_HEADER] = { 0 };
    size_t len = writer->records.len + writer->strings.len;
    bool fits = writer->strings.len <= UINT32_MAX;
    coffer__store_u32(header, COFFER__MCF_SECTION_VERSION);
    coffer__store_u32(header + 4, writer->count);
    coffer__store_u32(header + 8, (uint32_t)writer->strings.len);
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
