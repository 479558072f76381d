/* Row entries: what is in the row of a sample. */
#include "formats/mldf/mldf_private.h"
#include "io/source_private.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

#include <inttypes.h>

#define ENTRY_MAX 24       /* the largest that is decoded */
#define ROWS_AT_ONCE 65536 /* bytes of rows read at a time where they are not mapped */

coffer_status coffer__mldf_fail_value(coffer_error *err, coffer_status status, uint64_t offset,
                                      const coffer_mldf *set, uint64_t sample, size_t field,
                                      const char *format, ...)
{
    char words[sizeof err->text];
    va_list arguments;
    if (!err)
        return status;
    va_start(arguments, format);
    coffer__format_line(words, sizeof words, format, arguments);
    va_end(arguments);
    return coffer__fail(err, status, offset, "sample %" PRIu64 ", field %s: %s", sample,
                        set->schema.fields[field].name, words);
}

coffer_status coffer__mldf_fail_decoding(coffer_error *err, coffer_status status, const coffer_mldf *set,
                                         const coffer__mldf_value *value, const char *format, ...)
{
    char words[sizeof err->text];
    va_list arguments;
    if (!err)
        return status;
    va_start(arguments, format);
    coffer__format_line(words, sizeof words, format, arguments);
    va_end(arguments);
    if (value->unnamed)
        return coffer__fail(err, status, value->offset, "%s", words);
    return coffer__mldf_fail_value(err, status, value->offset, set, value->sample, value->field, "%s", words);
}

static coffer_status fail_index(const coffer_mldf *set, uint64_t sample, size_t field, coffer_error *err)
{
    if (field >= set->schema.count)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "field %zu requested, the set has %zu", field, set->schema.count);
    return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                        "sample %" PRIu64 " requested, the set has %" PRIu64, sample, set->header.samples);
}

coffer_status coffer__mldf_check_index(const coffer_mldf *set, uint64_t sample, size_t field,
                                       coffer_error *err)
{
    if (sample < set->header.samples && field < set->schema.count)
        return COFFER_OK;
    return fail_index(set, sample, field, err);
}

static void load_payload_place(coffer_mldf_entry *out, const uint8_t *at)
{
    out->offset = coffer__load_u64(at);
    out->size = coffer__load_u32(at + COFFER__MLDF_PAYLOAD_SIZE_AT);
    out->present = out->offset != 0 || out->size != 0;
}

void coffer__mldf_load_entry(coffer_mldf_entry *out, coffer_mldf_entry_kind kind, const uint8_t *at)
{
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    switch (kind) {
    case COFFER_MLDF_ENTRY_OPAQUE:
        out->present = true;
        break;
    case COFFER_MLDF_ENTRY_INT:
        out->present = true;
        out->i64 = (int64_t)coffer__load_u64(at);
        break;
    case COFFER_MLDF_ENTRY_FLOAT: {
        uint64_t bits = coffer__load_u64(at);
        out->present = true;
        memcpy(&out->f64, &bits, sizeof bits);
        break;
    }
    case COFFER_MLDF_ENTRY_BYTES:
        load_payload_place(out, at);
        break;
    case COFFER_MLDF_ENTRY_IMAGE:
        load_payload_place(out, at);
        out->height = coffer__load_u16(at + COFFER__MLDF_IMAGE_HEIGHT_AT);
        out->width = coffer__load_u16(at + COFFER__MLDF_IMAGE_WIDTH_AT);
        out->channels = at[COFFER__MLDF_IMAGE_CHANNELS_AT];
        out->mode = at[COFFER__MLDF_IMAGE_MODE_AT];
        break;
    case COFFER_MLDF_ENTRY_AUDIO:
        load_payload_place(out, at);
        out->num_samples = coffer__load_u32(at + COFFER__MLDF_AUDIO_SAMPLES_AT);
        out->sample_rate = coffer__load_u32(at + COFFER__MLDF_AUDIO_RATE_AT);
        out->channels = coffer__load_u16(at + COFFER__MLDF_AUDIO_CHANNELS_AT);
        out->bit_depth = at[COFFER__MLDF_AUDIO_BIT_DEPTH_AT];
        out->codec = at[COFFER__MLDF_AUDIO_CODEC_AT];
        break;
    case COFFER_MLDF_ENTRY_TEXT:
        load_payload_place(out, at);
        out->num_tokens = coffer__load_u16(at + COFFER__MLDF_TEXT_TOKENS_AT);
        out->encoding = at[COFFER__MLDF_TEXT_ENCODING_AT];
        break;
    }
}

coffer_status coffer__mldf_read_entry(coffer_mldf_entry *out, const coffer_mldf *set, uint64_t sample,
                                      size_t field, coffer_error *err)
{
    uint8_t bytes[ENTRY_MAX];
    coffer_mldf_entry_kind kind;
    coffer_status status = coffer__mldf_check_index(set, sample, field, err);
    if (status)
        return status;
    kind = set->schema.fields[field].kind;
    uint64_t place = coffer__mldf_entry_place(set, sample, field);
    size_t size = coffer__mldf_entry_size(kind);
    const uint8_t *mapped = coffer_source_view(set->source, place, size);
    if (mapped) {
        coffer__mldf_load_entry(out, kind, mapped);
        bool intact = coffer__source_surely_intact(set->source, place + size);
        return intact ? COFFER_OK : coffer_source_intact(set->source, err);
    }
    status = coffer_source_read_at(bytes, set->source, place, size, err);
    if (!status)
        coffer__mldf_load_entry(out, kind, bytes);
    return status;
}

coffer_status coffer_mldf_entry_at(coffer_mldf_entry *out, const coffer_mldf *set, uint64_t sample,
                                   size_t field, coffer_error *err)
{
    coffer_mldf_entry entry;
    coffer_status status = coffer__mldf_read_entry(&entry, set, sample, field, err);
    return status ? status : coffer__give_struct(out, &entry, sizeof entry, err);
}

/* stride : distance between the entries of the caller, who may know a shorter or longer struct. */
static void load_entries(uint8_t *out, uint32_t stride, const coffer_mldf *set, size_t field,
                         const uint8_t *rows, size_t count)
{
    const coffer_mldf_field *described = &set->schema.fields[field];
    for (size_t i = 0; i < count; i++) {
        coffer_mldf_entry entry;
        coffer__mldf_load_entry(&entry, described->kind,
                                rows + i * set->schema.row_size + described->row_offset);
        memcpy(out + i * stride, &stride, sizeof stride);
        coffer__give_struct(out + i * stride, &entry, sizeof entry, NULL);
    }
}

coffer_status coffer_mldf_read_entries(coffer_mldf_entry *out, const coffer_mldf *set, size_t field,
                                       uint64_t first, uint64_t count, coffer_error *err)
{
    size_t row_size = set->schema.row_size, at_once;
    uint32_t stride;
    uint8_t *scratch = NULL;
    coffer_status status = COFFER_OK;
    if (field >= set->schema.count || first > set->header.samples || count > set->header.samples - first)
        return fail_index(set, first > set->header.samples ? first : set->header.samples, field, err);
    if (count == 0)
        return COFFER_OK;
    stride = out->struct_size;
    if (stride < sizeof stride)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "struct_size is %u: initialize the first entry with COFFER_MLDF_ENTRY_INIT",
                            stride);
    at_once = row_size < ROWS_AT_ONCE ? ROWS_AT_ONCE / row_size : 1;
    for (uint64_t done = 0; !status && done < count;) {
        size_t n = count - done < at_once ? (size_t)(count - done) : at_once;
        uint64_t place = set->header.metadata + (first + done) * row_size;
        const uint8_t *rows = coffer_source_view(set->source, place, n * row_size);
        if (!rows && !scratch && !(scratch = coffer__malloc(at_once * row_size)))
            status = coffer__fail_no_memory(err, at_once * row_size);
        if (!status && !rows) {
            status = coffer_source_read_at(scratch, set->source, place, n * row_size, err);
            rows = scratch;
        }
        if (!status)
            load_entries((uint8_t *)out + done * stride, stride, set, field, rows, n);
        done += n;
    }
    coffer__free(scratch);
    return status ? status : coffer_source_intact(set->source, err);
}
