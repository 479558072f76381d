/* Header and metadata of a damaged trace. */
#include "formats/mlyze/mlyze_repair.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/report.h"
#include "formats/mlyze/read/mlyze_decode.h"
#include "formats/mlyze/read/mlyze_tables.h"

#include <inttypes.h>

static const char empty_metadata[] = "{\"stack_traces\":{},\"files\":{},\"functions\":{}}";

void coffer__mlyze_rescue_note(coffer__mlyze_rescue *work, coffer_status code, uint64_t offset,
                               const char *text)
{
    work->changed = true;
    coffer__report_add(work->report, code, COFFER_WARNING, offset, "%s", text);
}

/* A failure caused by the file becomes a finding; any other ends the repair. */
static coffer_status take_failure(coffer__mlyze_rescue *work, const coffer_error *found, coffer_error *err)
{
    work->changed = true;
    return coffer__report_take(work->report, COFFER_WARNING, found, err);
}

/* ---- The header ---- */

static void read_fields(coffer__mlyze_header *header)
{
    const uint8_t *bytes = header->bytes;
    header->version = coffer__load_u32(bytes + COFFER__MLYZE_VERSION_AT);
    header->start_time = coffer__load_u64(bytes + COFFER__MLYZE_START_AT);
    header->metadata_len = coffer__load_u32(bytes + COFFER__MLYZE_METADATA_LENGTH_AT);
    header->flags = coffer__load_u32(bytes + COFFER__MLYZE_FLAGS_AT);
    header->event_count = coffer__load_u64(bytes + COFFER__MLYZE_EVENT_COUNT_AT);
    header->event_length = coffer__load_u64(bytes + COFFER__MLYZE_EVENT_LENGTH_AT);
}

/* The checksum tells which bit was flipped, if it was one. */
static bool correct_bit(coffer__mlyze_rescue *work)
{
    coffer__mlyze_header *header = &work->trace.header;
    for (size_t i = 0; i < 8 * sizeof header->bytes; i++) {
        uint8_t bit = (uint8_t)(1u << i % 8);
        header->bytes[i / 8] ^= bit;
        read_fields(header);
        if (coffer__mlyze_has_sums(header) && !coffer__mlyze_check_header_sum(header, NULL)) {
            work->changed = true;
            coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_WARNING, i / 8,
                               "one bit of byte %zu of the header was flipped; its checksum restores it",
                               i / 8);
            return true;
        }
        header->bytes[i / 8] ^= bit;
    }
    read_fields(header);
    return false;
}

/* Sums in a header whose flags say that it has none mean that the flags are wrong. */
static coffer_status check_sum(const coffer__mlyze_header *header, coffer_error *err)
{
    if (!coffer__mlyze_has_sums(header) &&
        coffer__load_u64(header->bytes + COFFER__MLYZE_METADATA_CRC_AT) != 0)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER__MLYZE_FLAGS_AT,
                            "the header has checksums, but its flags say that it has none");
    return coffer__mlyze_check_header_sum(header, err);
}

static coffer_status load_header(coffer__mlyze_rescue *work, coffer_error *err)
{
    coffer__mlyze_header *header = &work->trace.header;
    uint64_t size = coffer_source_size(work->source);
    size_t have = size < sizeof header->bytes ? (size_t)size : sizeof header->bytes;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer_source_read_at(header->bytes, work->source, 0, have, err);
    if (status)
        return status;
    if (have < sizeof header->bytes)
        coffer__mlyze_rescue_note(work, COFFER_E_TRUNCATED, size,
                                  "the file ends in its header: nothing follows it");
    read_fields(header);
    if (check_sum(header, &found) && !correct_bit(work)) {
        coffer__mlyze_rescue_note(work, found.status, found.offset, found.text);
        work->losses.header = work->doubts_header = true;
        header->flags |= coffer__mlyze_has_full_sums(header) ? COFFER__MLYZE_FLAG_CHECKSUMS : 0;
    }
    if (header->version == 0 || (work->doubts_header && header->version != COFFER__MLYZE_VERSION)) {
        coffer__report_add(work->report, COFFER_E_UNSUPPORTED_VERSION, COFFER_WARNING,
                           COFFER__MLYZE_VERSION_AT, "version %" PRIu32 " is now %d", header->version,
                           COFFER__MLYZE_VERSION);
        work->changed = true;
        header->version = COFFER__MLYZE_VERSION;
        coffer__store_u32(header->bytes + COFFER__MLYZE_VERSION_AT, header->version);
    }
    if (header->version == COFFER__MLYZE_VERSION && header->flags & ~(uint32_t)COFFER__MLYZE_FLAGS_KNOWN) {
        coffer__mlyze_rescue_note(work, COFFER_E_BAD_VALUE, COFFER__MLYZE_FLAGS_AT,
                                  "unknown flags were dropped");
        header->flags &= COFFER__MLYZE_FLAGS_KNOWN;
    }
    return COFFER_OK;
}

/* Compact tables say themselves how long they are. */
static coffer_status measure_tables(coffer__mlyze_rescue *work, coffer_error *err)
{
    coffer__mlyze_header *header = &work->trace.header;
    uint8_t bytes[COFFER__MLYZE_TABLES_DIRECTORY];
    uint64_t size = coffer_source_size(work->source), len = sizeof bytes;
    if (size < COFFER__MLYZE_HEADER_SIZE + sizeof bytes)
        return COFFER_OK;
    coffer_status status =
        coffer_source_read_at(bytes, work->source, COFFER__MLYZE_HEADER_SIZE, sizeof bytes, err);
    if (status)
        return status;
    if (memcmp(bytes, COFFER__MLYZE_TABLES_MAGIC, 4) != 0) {
        header->flags &= bytes[0] == '{' ? ~(uint32_t)COFFER__MLYZE_FLAG_TABLES : UINT32_MAX;
        return COFFER_OK;
    }
    header->flags |= COFFER__MLYZE_FLAG_TABLES;
    for (int i = 0; i < COFFER__MLYZE_TABLE_STREAMS; i++)
        len += coffer__load_u32(bytes + COFFER__MLYZE_TABLES_SIZES_AT + 8 * i + 4);
    if (len <= size - COFFER__MLYZE_HEADER_SIZE && len <= UINT32_MAX)
        header->metadata_len = (uint32_t)len;
    return COFFER_OK;
}

/* ---- Metadata ---- */

/* Reads up to len bytes after the header, within the file and the limits. */
static coffer_status read_text(coffer__mlyze_rescue *work, size_t len, coffer_error *err)
{
    uint64_t size = coffer_source_size(work->source);
    uint64_t left = size > COFFER__MLYZE_HEADER_SIZE ? size - COFFER__MLYZE_HEADER_SIZE : 0;
    len = len < left ? len : (size_t)left;
    len = len < work->limits.json_bytes ? len : (size_t)work->limits.json_bytes;
    coffer__free(work->metadata);
    work->metadata = coffer__malloc(len + 1);
    work->metadata_len = len;
    if (!work->metadata)
        return coffer__fail_no_memory(err, len + 1);
    return len == 0
               ? COFFER_OK
               : coffer_source_read_at(work->metadata, work->source, COFFER__MLYZE_HEADER_SIZE, len, err);
}

/* When the length in the header is wrong, the metadata ends where its JSON ends, or is lost. */
static void find_end(coffer__mlyze_rescue *work)
{
    size_t whole = work->metadata_len, len = coffer__json_object_length(work->metadata, whole);
    while (len > 0 && len < whole && work->metadata[len] == ' ')
        len++;
    work->trace.header.metadata_len = (uint32_t)(len ? len : whole);
    work->metadata_len = len;
}

/* The result of the reader. The text stays owned by the rescue. */
static coffer_status parse(coffer__mlyze_rescue *work, size_t len, coffer_error *err)
{
    coffer__mlyze_metadata parsed = { 0 };
    char *text = coffer__malloc(len + 1);
    if (!text)
        return coffer__fail_no_memory(err, len + 1);
    memcpy(text, work->metadata, len);
    coffer_status status = coffer__mlyze_metadata_load(&parsed, text, len, &work->limits, NULL, err);
    if (status)
        return status;
    coffer__mlyze_settle_order(&parsed, work->trace.header.flags, COFFER_MLYZE_ORDER_AUTO, NULL);
    work->innermost_first = parsed.order == COFFER_MLYZE_ORDER_INNERMOST_FIRST &&
                            !coffer__json_find(coffer__json_root(parsed.json), COFFER__MLYZE_ORDER_KEY);
    work->has_plain_sum =
        coffer__json_find(coffer__json_root(parsed.json), COFFER__MLYZE_PLAIN_SUM_KIND_KEY) ||
        coffer__json_find(coffer__json_root(parsed.json), COFFER__MLYZE_PLAIN_SUM_KEY);
    coffer__mlyze_losses_read(&work->losses, coffer__json_root(parsed.json));
    coffer__mlyze_metadata_free(&parsed);
    return COFFER_OK;
}

static coffer_status use_empty(coffer__mlyze_rescue *work, coffer_error *err)
{
    coffer__mlyze_rescue_note(
        work, COFFER_E_BAD_JSON, COFFER__MLYZE_HEADER_SIZE,
        "the metadata is lost: the tables of stacks, files and functions are empty now");
    work->losses.lost_metadata = true;
    work->losses.metadata = false;
    work->searches = work->doubts_header;
    coffer__free(work->metadata);
    work->metadata_len = sizeof empty_metadata - 1;
    work->metadata = coffer__strdup(empty_metadata);
    work->trace.header.flags &= ~(uint32_t)COFFER__MLYZE_FLAG_COMPLETE;
    return work->metadata ? COFFER_OK : coffer__fail_no_memory(err, sizeof empty_metadata);
}

static coffer_status check_length(coffer__mlyze_rescue *work, coffer_error *err)
{
    const coffer__mlyze_header *header = &work->trace.header;
    uint64_t end = COFFER__MLYZE_HEADER_SIZE + (uint64_t)header->metadata_len;
    coffer_error found = COFFER_ERROR_INIT;
    if (end > coffer_source_size(work->source)) {
        coffer__report_add(work->report, COFFER_E_OUT_OF_BOUNDS, COFFER_WARNING,
                           COFFER__MLYZE_METADATA_LENGTH_AT,
                           "metadata ends at %" PRIu64 ", file has %" PRIu64, end,
                           coffer_source_size(work->source));
        work->changed = true;
        if (!coffer__mlyze_has_tables(header))
            find_end(work);
        return COFFER_OK;
    }
    if (header->metadata_len > work->metadata_len)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER__MLYZE_HEADER_SIZE,
                            "metadata of %" PRIu32 " bytes, the limit is %" PRIu64, header->metadata_len,
                            work->limits.json_bytes);
    if (coffer__mlyze_check_metadata_sum(header, work->metadata, &found) != COFFER_OK) {
        coffer__mlyze_rescue_note(work, found.status, found.offset, found.text);
        work->losses.metadata = true;
    }
    return COFFER_OK;
}

/* The text is not JSON: either other bytes follow it, or the length in the header is too short. */
static coffer_status try_other_length(bool *good, coffer__mlyze_rescue *work, coffer_error *err)
{
    uint32_t said = work->trace.header.metadata_len;
    size_t len = coffer__json_object_length(work->metadata, work->metadata_len);
    if (len > 0) {
        if (work->doubts_header)
            find_end(work);
        work->metadata_len = len;
        *good = parse(work, len, NULL) == COFFER_OK;
        if (*good)
            coffer__mlyze_rescue_note(work, COFFER_E_BAD_JSON, COFFER__MLYZE_HEADER_SIZE + len,
                                      "bytes after the metadata that do not belong to it were dropped");
        return COFFER_OK;
    }
    coffer_status status = read_text(work, SIZE_MAX, err);
    if (status)
        return status;
    find_end(work);
    *good = work->metadata_len > 0 && parse(work, work->metadata_len, NULL) == COFFER_OK;
    if (*good)
        coffer__mlyze_rescue_note(work, COFFER_E_SIZE_MISMATCH, COFFER__MLYZE_METADATA_LENGTH_AT,
                                  "the metadata is longer than the header says");
    else
        work->trace.header.metadata_len = said;
    return COFFER_OK;
}

/* Replaces compact tables by their text. */
static coffer_status expand_tables(coffer__mlyze_rescue *work, coffer_error *err)
{
    coffer__mlyze_metadata metadata = { 0 };
    coffer_error found = COFFER_ERROR_INIT;
    char *stored = work->metadata;
    work->metadata = NULL;
    coffer_status status =
        coffer__mlyze_metadata_load_any(&metadata, stored, work->metadata_len, COFFER__MLYZE_FLAG_TABLES,
                                        &work->limits, NULL, &found);
    if (status) {
        status = take_failure(work, &found, err);
        return status ? status : use_empty(work, err);
    }
    coffer__mlyze_settle_order(&metadata, work->trace.header.flags, COFFER_MLYZE_ORDER_AUTO, NULL);
    status = coffer__mlyze_tables_text(&work->metadata, &work->metadata_len, &metadata, err);
    coffer__mlyze_metadata_free(&metadata);
    return status;
}

static coffer_status load_metadata(coffer__mlyze_rescue *work, coffer_error *err)
{
    coffer_error found = COFFER_ERROR_INIT;
    bool good = false;
    coffer_status status = read_text(work, work->trace.header.metadata_len, err);
    if (!status)
        status = check_length(work, err);
    if (!status && coffer__mlyze_has_tables(&work->trace.header))
        status = expand_tables(work, err);
    if (status)
        return status;
    status = parse(work, work->metadata_len, &found);
    if (!status)
        return COFFER_OK;
    if (status == COFFER_E_BAD_JSON && !coffer__mlyze_has_tables(&work->trace.header)) {
        status = try_other_length(&good, work, err);
        if (status)
            return status;
    }
    if (good)
        return COFFER_OK;
    status = take_failure(work, &found, err);
    return status ? status : use_empty(work, err);
}

/* ---- The form of the events ---- */

/* Whether an intact LZ4 block is at the start of the area, under these flags. */
static coffer_status try_blocks(bool *found, coffer__mlyze_rescue *work, uint32_t flags, coffer_error *err)
{
    coffer_mlyze trace = work->trace;
    coffer_mlyze_events columns = COFFER_MLYZE_EVENTS_INIT;
    coffer__mlyze_decoder decoder;
    coffer__mlyze_block block;
    coffer_status status = coffer__mlyze_events_reserve(&columns, err);
    if (status)
        return status;
    trace.header.flags = flags;
    status = coffer__mlyze_read_block_header(&block, NULL, &trace, trace.area, err);
    if (!status)
        status = coffer__mlyze_decode_block(&columns, &decoder, &trace, &block, false, err);
    coffer_mlyze_events_free(&columns);
    *found = !status;
    if (!status)
        work->trace.header.flags = flags;
    return coffer__is_about_file(status) ? COFFER_OK : status;
}

/* The flags of a header in doubt are not followed where the events show what they are. */
static coffer_status settle_form(coffer__mlyze_rescue *work, coffer_error *err)
{
    const uint32_t sums = COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS;
    coffer_mlyze *trace = &work->trace;
    uint8_t magic[4] = { 0 };
    bool found = false;
    uint64_t at = trace->area + COFFER__MLYZE_BLOCK_HEADER;
    coffer_status status = COFFER_OK;
    trace->header.flags |= COFFER__MLYZE_FLAG_EXTENSIONS;
    if (trace->area_end < at + sizeof magic)
        return COFFER_OK;
    status = coffer_source_read_at(magic, work->source, at, sizeof magic, err);
    if (!status && memcmp(magic, COFFER__MLYZE_ARCHIVE_MAGIC, sizeof magic) == 0) {
        trace->header.flags |= sums | COFFER__MLYZE_FLAG_FULL_SUMS | COFFER__MLYZE_FLAG_ARCHIVE;
        return COFFER_OK;
    }
    const uint32_t flags = (trace->header.flags & ~(uint32_t)COFFER__MLYZE_FLAG_ARCHIVE) | sums;
    if (!status)
        status = try_blocks(&found, work, flags | COFFER__MLYZE_FLAG_FULL_SUMS, err);
    if (!status && !found)
        status = try_blocks(&found, work, flags & ~(uint32_t)COFFER__MLYZE_FLAG_FULL_SUMS, err);
    return status;
}

static void place_area(coffer__mlyze_rescue *work)
{
    coffer_mlyze *trace = &work->trace;
    uint64_t size = coffer_source_size(work->source);
    trace->area = COFFER__MLYZE_HEADER_SIZE + (work->searches ? 0 : (uint64_t)trace->header.metadata_len);
    trace->area_end = size > trace->area ? size : trace->area;
}

/* Compares the end of the file with what the header says. */
static void place_end(coffer__mlyze_rescue *work)
{
    coffer_mlyze *trace = &work->trace;
    uint64_t length = trace->header.event_length, rest = trace->area_end - trace->area;
    if (length == 0 || (work->doubts_header && coffer__mlyze_has_blocks(&trace->header)))
        return;
    if (length < rest) {
        coffer__report_add(work->report, COFFER_E_TRAILING_BYTES, COFFER_WARNING, trace->area + length,
                           "bytes after the events, now dropped: %" PRIu64, rest - length);
        work->changed = true;
        trace->area_end = trace->area + length;
    } else if (length > rest) {
        coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING, trace->area_end,
                           "the events should end at %" PRIu64 ", file has %" PRIu64, trace->area + length,
                           coffer_source_size(work->source));
        work->losses.bytes += length - rest;
        work->changed = true;
    }
}

coffer_status coffer__mlyze_rescue_front(coffer__mlyze_rescue *work, coffer_error *err)
{
    coffer_status status = load_header(work, err);
    if (!status && work->doubts_header)
        status = measure_tables(work, err);
    if (!status)
        status = load_metadata(work, err);
    if (status)
        return status;
    place_area(work);
    if (work->doubts_header)
        status = settle_form(work, err);
    place_end(work);
    return status;
}
