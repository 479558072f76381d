/* Checking a decoded value against the type of its field. */
#include "formats/mldf/analyze/mldf_survey.h"

#include "base/checked.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/utf8.h"

#include <inttypes.h>

typedef struct content {
    const coffer_mldf_field *field;
    const coffer_mldf_entry *entry;
    const uint8_t *bytes;
    size_t size;
    const coffer_limits *limits;
} content;

static coffer_status check_utf8(const uint8_t *bytes, size_t size, coffer_error *err)
{
    size_t valid = coffer__utf8_valid_prefix(bytes, size);
    if (valid == size)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE, "byte %zu of its text is not UTF-8",
                        valid);
}

static coffer_status check_text(const content *value, coffer_error *err)
{
    size_t width = value->entry->encoding == COFFER_MLDF_ENCODING_I32 ? 4 : 2, count = value->size / width;
    uint16_t says = value->entry->num_tokens;
    if (value->entry->encoding == COFFER_MLDF_ENCODING_UTF8)
        return check_utf8(value->bytes, value->size, err);
    if (value->size % width != 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "%zu bytes are not a multiple of the id size, %zu", value->size, width);
    if (says != COFFER_MLDF_TOKENS_BY_SIZE && says != count)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "the row says %u tokens, there are %zu", says, count);
    return COFFER_OK;
}

static coffer_status check_json(const content *value, coffer_error *err)
{
    coffer__json *json = NULL;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status =
        coffer__json_parse_python(&json, (const char *)value->bytes, value->size, 0, value->limits, &found);
    coffer__json_free(json);
    if (!status || status == COFFER_E_DUPLICATE)
        return COFFER_OK;
    return coffer__fail(err, status, COFFER_OFFSET_NONE, "%s", found.text);
}

static bool begins_with(const content *value, const char *start, size_t len)
{
    return value->size >= len && memcmp(value->bytes, start, len) == 0;
}

static coffer_status check_image(const content *value, coffer_error *err)
{
    const coffer_mldf_entry *entry = value->entry;
    uint64_t pixels = (uint64_t)entry->height * entry->width * entry->channels;
    if (entry->mode == COFFER_MLDF_MODE_RAW && pixels != value->size)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "%u by %u pixels of %u channels take %" PRIu64 " bytes, there are %zu",
                            entry->width, entry->height, entry->channels, pixels, value->size);
    if (entry->mode == COFFER_MLDF_MODE_JPEG && !begins_with(value, "\xff\xd8\xff", 3))
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "the row says JPEG, its bytes do not begin like one");
    if (entry->mode == COFFER_MLDF_MODE_PNG && !begins_with(value, "\x89PNG\r\n\x1a\n", 8))
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "the row says PNG, its bytes do not begin like one");
    return COFFER_OK;
}

static coffer_status check_audio(const content *value, coffer_error *err)
{
    const coffer_mldf_entry *entry = value->entry;
    uint64_t bits = (uint64_t)entry->num_samples * entry->channels * entry->bit_depth; /* below 2^56 */
    if (entry->codec == COFFER_MLDF_CODEC_PCM && coffer__divide_up(bits, 8) != value->size)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "%lu samples of %u channels, %u bits each, take %" PRIu64 " bytes, there are %zu",
                            (unsigned long)entry->num_samples, entry->channels, entry->bit_depth,
                            coffer__divide_up(bits, 8), value->size);
    if (entry->codec == COFFER_MLDF_CODEC_FLAC && !begins_with(value, "fLaC", 4))
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "the row says FLAC, its bytes do not begin like it");
    return COFFER_OK;
}

static coffer_status check_hierarchy(const content *value, coffer_error *err)
{
    coffer__cursor cursor = coffer__cursor_over(value->bytes, value->size, 0);
    uint32_t count = coffer__cursor_u32(&cursor), last = 0;
    if (cursor.failed || count > coffer__cursor_left(&cursor) / sizeof(uint32_t))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "the ends of its %lu texts do not fit into %zu bytes", (unsigned long)count,
                            value->size);
    size_t text_len = coffer__cursor_left(&cursor) - count * sizeof(uint32_t);
    const uint8_t *text = value->bytes + (value->size - text_len);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t end = coffer__cursor_u32(&cursor);
        if (end < last || end > text_len)
            return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                                "text %lu ends at %lu, after %lu, of %zu bytes", (unsigned long)i,
                                (unsigned long)end, (unsigned long)last, text_len);
        if (end < text_len && (text[end] & 0xc0) == 0x80)
            return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE,
                                "text %lu ends at %lu, inside a character", (unsigned long)i,
                                (unsigned long)end);
        last = end;
    }
    if (last != text_len)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "its texts end at %lu, there are %zu bytes", (unsigned long)last, text_len);
    return check_utf8(text, text_len, err);
}

static coffer_status check_multimodal(const content *value, coffer_error *err)
{
    coffer__cursor cursor = coffer__cursor_over(value->bytes, value->size, 0);
    uint32_t count = coffer__cursor_u32(&cursor);
    for (uint32_t i = 0; i < count && !cursor.failed; i++) {
        coffer__cursor_skip(&cursor, sizeof(uint16_t));
        uint16_t name_len = coffer__cursor_u16(&cursor);
        uint32_t size = coffer__cursor_u32(&cursor);
        const uint8_t *name = coffer__cursor_bytes(&cursor, name_len);
        coffer__cursor_skip(&cursor, size);
        if (!cursor.failed && check_utf8(name, name_len, NULL) != COFFER_OK)
            return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE,
                                "the name of part %lu is not UTF-8", (unsigned long)i);
    }
    if (cursor.failed || coffer__cursor_left(&cursor) > 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "its %lu parts do not take just the %zu bytes there are", (unsigned long)count,
                            value->size);
    return COFFER_OK;
}

coffer_status coffer__mldf_check_content(const coffer_mldf_field *field, const coffer_mldf_entry *entry,
                                         const uint8_t *bytes, size_t size, const coffer_limits *limits,
                                         coffer_error *err)
{
    const coffer__mldf_type_info *info = coffer__mldf_type_info_of(field->type);
    content value = { field, entry, bytes, size, limits };
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    size_t head;
    if (info && info->has_array && field->dtype != COFFER_DTYPE_NONE)
        return coffer__mldf_array_shape(dims, &head, field, bytes, size, err);
    switch (field->kind) {
    case COFFER_MLDF_ENTRY_TEXT:
        return check_text(&value, err);
    case COFFER_MLDF_ENTRY_IMAGE:
        return check_image(&value, err);
    case COFFER_MLDF_ENTRY_AUDIO:
        return check_audio(&value, err);
    default:
        break;
    }
    switch (field->type) {
    case COFFER_MLDF_JSON:
        return check_json(&value, err);
    case COFFER_MLDF_TEXT_HIERARCHICAL:
        return check_hierarchy(&value, err);
    case COFFER_MLDF_MULTIMODAL:
        return check_multimodal(&value, err);
    default:
        return COFFER_OK;
    }
}

bool coffer__mldf_has_content_rule(const coffer_mldf_field *field)
{
    const coffer__mldf_type_info *info = coffer__mldf_type_info_of(field->type);
    return coffer__mldf_has_payload(field->kind) &&
           (field->kind != COFFER_MLDF_ENTRY_BYTES || info->has_array || field->type == COFFER_MLDF_JSON ||
            field->type == COFFER_MLDF_TEXT_HIERARCHICAL || field->type == COFFER_MLDF_MULTIMODAL);
}

coffer_status coffer__mldf_check_entry_values(const coffer_mldf_field *field, const coffer_mldf_entry *entry,
                                              coffer_error *err)
{
    static const struct {
        coffer_mldf_entry_kind kind;
        const char *what;
        uint8_t max;
    } rules[] = { { COFFER_MLDF_ENTRY_IMAGE, "image mode", COFFER_MLDF_MODE_PNG },
                  { COFFER_MLDF_ENTRY_AUDIO, "audio codec", COFFER_MLDF_CODEC_FILE },
                  { COFFER_MLDF_ENTRY_TEXT, "text encoding", COFFER_MLDF_ENCODING_I16 } };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        uint8_t value = rules[i].kind == COFFER_MLDF_ENTRY_IMAGE   ? entry->mode
                        : rules[i].kind == COFFER_MLDF_ENTRY_AUDIO ? entry->codec
                                                                   : entry->encoding;
        if (rules[i].kind == field->kind && value > rules[i].max)
            return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "%s %u, the highest is %u",
                                rules[i].what, value, rules[i].max);
    }
    return COFFER_OK;
}
