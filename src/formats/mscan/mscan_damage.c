#include "formats/mscan/mscan_damage.h"

#include <string.h>

#define SAMPLE 32 /* records looked at on either end to see whether an alignment makes sense */

/* ---- How much the JSON grew ---- */

/* Past the string that begins at `at`; the text is valid JSON. */
static const char *skip_string(const char *at)
{
    for (at++; *at != '"'; at++) {
        if (*at == '\\')
            at++;
    }
    return at + 1;
}

/* Past the array or object that begins at `at`. */
static const char *skip_nested(const char *at)
{
    size_t depth = 0;
    do {
        if (*at == '"') {
            at = skip_string(at);
            continue;
        }
        depth += *at == '[' || *at == '{';
        depth -= *at == ']' || *at == '}';
        at++;
    } while (depth > 0);
    return at;
}

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Bytes that the value of "sequences" takes in the text; 0 without such an array. */
static size_t sequences_span(const coffer__mscan_metadata *metadata)
{
    static const char key[] = "\"sequences\"";
    const char *at = skip_space(metadata->text) + 1, *end = metadata->text + metadata->text_len;
    while (at < end) {
        if (*at == '"') {
            const char *start = at;
            at = skip_string(at);
            if ((size_t)(at - start) != sizeof key - 1 || memcmp(start, key, sizeof key - 1) != 0)
                continue;
            start = skip_space(at);
            if (*start != ':')
                continue; /* a value, not a key */
            start = skip_space(start + 1);
            return *start == '[' ? (size_t)(skip_nested(start) - start) : 0;
        }
        at = *at == '[' || *at == '{' ? skip_nested(at) : at + 1;
    }
    return 0;
}

/* ---- Whether records make sense ---- */

static coffer_status all_plausible(bool *out, coffer_source *src, uint64_t area, uint64_t first, size_t count,
                                   const coffer__mscan_metadata *metadata, coffer_error *err)
{
    uint8_t scratch[SAMPLE * COFFER__MSCAN_RECORD_SIZE];
    const uint8_t *records = NULL;
    coffer_status status = coffer__mscan_fetch(&records, src, area, first, count, scratch, err);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
        *out = *out && coffer__mscan_load_token(record) < metadata->total_tokens &&
               coffer__mscan_find_param(metadata, coffer__mscan_load_param(record));
    }
    return COFFER_OK;
}

/* The Python MScanWriter first writes its JSON with an empty list of sequences, then at the end the full one
 * over it and over the first records. The file then lacks exactly what the list takes beyond "[]", and the
 * records end with the file. Where the JSON grew in another place too, records that make sense counted from
 * the end of the file, and none counted from the end of the metadata, tell the same. */
static coffer_status has_overwritten_head(bool *out, coffer_source *src, const coffer__mscan_header *header,
                                          const coffer__mscan_metadata *metadata, uint64_t missing,
                                          coffer_error *err)
{
    uint64_t lost = (missing + COFFER__MSCAN_RECORD_SIZE - 1) / COFFER__MSCAN_RECORD_SIZE;
    bool from_end = true, from_metadata = sequences_span(metadata) != missing + 2;
    uint64_t area, left;
    size_t sample;
    coffer_status status = COFFER_OK;

    *out = false;
    if (missing >= metadata->text_len || lost >= header->record_count)
        return COFFER_OK;
    area = header->header_len - missing;
    left = header->record_count - lost;
    sample = left < SAMPLE ? (size_t)left : SAMPLE;
    if ((status = all_plausible(&from_end, src, area, lost, sample, metadata, err)) ||
        (status = all_plausible(&from_end, src, area, header->record_count - sample, sample, metadata, err)))
        return status;
    if (from_end && from_metadata)
        status = all_plausible(&from_metadata, src, header->header_len, 0, sample, metadata, err);
    *out = from_end && !from_metadata;
    return status ? status : coffer_source_intact(src, err);
}

coffer_status coffer__mscan_locate_records(coffer__mscan_area *out, coffer_source *src,
                                           const coffer__mscan_header *header,
                                           const coffer__mscan_metadata *metadata, coffer_error *err)
{
    uint64_t present = coffer_source_size(src) - header->header_len;
    uint64_t wanted = (uint64_t)header->record_count * COFFER__MSCAN_RECORD_SIZE;
    coffer__mscan_area area = { .start = header->header_len, .count = header->record_count };

    if (present >= wanted) {
        area.trailing = present - wanted;
    } else {
        uint64_t missing = wanted - present;
        area.lost = (missing + COFFER__MSCAN_RECORD_SIZE - 1) / COFFER__MSCAN_RECORD_SIZE;
        area.count -= area.lost;
        area.trailing = present % COFFER__MSCAN_RECORD_SIZE;
        if (metadata) {
            coffer_status status =
                has_overwritten_head(&area.overwritten_head, src, header, metadata, missing, err);
            if (status)
                return status;
        }
        if (area.overwritten_head) {
            area.start = header->header_len - missing + area.lost * COFFER__MSCAN_RECORD_SIZE;
            area.trailing = 0;
        }
    }
    *out = area;
    return COFFER_OK;
}
