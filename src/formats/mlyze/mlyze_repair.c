/* Repairs a damaged trace: keeps its whole events, and the metadata if it can be read. */
#include "formats/mlyze/mlyze_repair_blocks.h"

#include "base/crc32.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "formats/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char empty_metadata[] = "{\"stack_traces\":{},\"files\":{},\"functions\":{}}";

typedef struct rescue {
    coffer_report *report;
    coffer_source *source;
    const coffer_repair_opts *opts;
    coffer_limits limits;
    bool changed;       /* something was damaged: the file is written again instead of copied */
    coffer_mlyze trace; /* the source without the damage */
    char *metadata;
    size_t metadata_len;
    coffer__mlyze_salvage blocks; /* of a trace with blocks */
    uint64_t plain_len;           /* bytes of whole events in a plain trace */
    uint64_t event_count;
    bool extensions;
    coffer__mlyze_losses losses;
    bool innermost_first; /* only the flags of version 0.1 say it */
    bool has_plain_sum;   /* the metadata has a checksum of the file */
    uint32_t plain_crc;   /* of the events of a plain trace that are kept */
} rescue;

static void note_change(rescue *work, coffer_status code, uint64_t offset, const char *text)
{
    work->changed = true;
    coffer__report_add(work->report, code, COFFER_WARNING, offset, "%s", text);
}

/* A failure caused by the file becomes a finding; any other ends the repair. */
static coffer_status take_failure(rescue *work, const coffer_error *found, coffer_error *err)
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
static bool correct_bit(rescue *work)
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

static coffer_status load_header(rescue *work, coffer_error *err)
{
    coffer__mlyze_header *header = &work->trace.header;
    uint64_t size = coffer_source_size(work->source);
    size_t have = size < sizeof header->bytes ? (size_t)size : sizeof header->bytes;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer_source_read_at(header->bytes, work->source, 0, have, err);
    if (status)
        return status;
    if (have < sizeof header->bytes)
        note_change(work, COFFER_E_TRUNCATED, size, "the file ends in its header: nothing follows it");
    read_fields(header);
    if (coffer__mlyze_check_header_sum(header, &found) != COFFER_OK && !correct_bit(work)) {
        note_change(work, found.status, found.offset, found.text);
        work->losses.header = true;
        header->flags |= coffer__mlyze_has_full_sums(header) ? COFFER__MLYZE_FLAG_CHECKSUMS : 0;
    }
    if (header->version == 0) {
        note_change(work, COFFER_E_UNSUPPORTED_VERSION, COFFER__MLYZE_VERSION_AT, "version 0 is now 1");
        header->version = COFFER__MLYZE_VERSION;
        coffer__store_u32(header->bytes + COFFER__MLYZE_VERSION_AT, header->version);
    }
    if (header->version == COFFER__MLYZE_VERSION && header->flags & ~(uint32_t)COFFER__MLYZE_FLAGS_KNOWN) {
        note_change(work, COFFER_E_BAD_VALUE, COFFER__MLYZE_FLAGS_AT, "unknown flags were dropped");
        header->flags &= COFFER__MLYZE_FLAGS_KNOWN;
    }
    return COFFER_OK;
}

/* ---- Metadata ---- */

/* Reads up to len bytes after the header, within the file and the limits. */
static coffer_status read_text(rescue *work, size_t len, coffer_error *err)
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
static void find_end(rescue *work)
{
    size_t whole = work->metadata_len, len = coffer__json_object_length(work->metadata, whole);
    while (len > 0 && len < whole && work->metadata[len] == ' ')
        len++;
    work->trace.header.metadata_len = (uint32_t)(len ? len : whole);
    work->metadata_len = len;
}

/* The result of the reader. The text stays owned by the rescue. */
static coffer_status parse(rescue *work, size_t len, coffer_error *err)
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

static coffer_status use_empty(rescue *work, coffer_error *err)
{
    note_change(work, COFFER_E_BAD_JSON, COFFER__MLYZE_HEADER_SIZE,
                "the metadata is lost: the tables of stacks, files and functions are empty now");
    work->losses.lost_metadata = true;
    coffer__free(work->metadata);
    work->metadata_len = sizeof empty_metadata - 1;
    work->metadata = coffer__strdup(empty_metadata);
    work->trace.header.flags &= ~(uint32_t)COFFER__MLYZE_FLAG_COMPLETE;
    return work->metadata ? COFFER_OK : coffer__fail_no_memory(err, sizeof empty_metadata);
}

static coffer_status check_length(rescue *work, coffer_error *err)
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
        find_end(work);
        return COFFER_OK;
    }
    if (header->metadata_len > work->metadata_len)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER__MLYZE_HEADER_SIZE,
                            "metadata of %" PRIu32 " bytes, the limit is %" PRIu64, header->metadata_len,
                            work->limits.json_bytes);
    if (coffer__mlyze_check_metadata_sum(header, work->metadata, &found) != COFFER_OK) {
        note_change(work, found.status, found.offset, found.text);
        work->losses.metadata = true;
    }
    return COFFER_OK;
}

/* The text is not JSON: either other bytes follow it, or the length in the header is too short. */
static coffer_status try_other_length(bool *good, rescue *work, coffer_error *err)
{
    uint32_t said = work->trace.header.metadata_len;
    size_t len = coffer__json_object_length(work->metadata, work->metadata_len);
    if (len > 0) {
        work->metadata_len = len;
        *good = parse(work, len, NULL) == COFFER_OK;
        if (*good)
            note_change(work, COFFER_E_BAD_JSON, COFFER__MLYZE_HEADER_SIZE + len,
                        "bytes after the metadata that do not belong to it were dropped");
        return COFFER_OK;
    }
    coffer_status status = read_text(work, SIZE_MAX, err);
    if (status)
        return status;
    find_end(work);
    *good = work->metadata_len > 0 && parse(work, work->metadata_len, NULL) == COFFER_OK;
    if (*good)
        note_change(work, COFFER_E_SIZE_MISMATCH, COFFER__MLYZE_METADATA_LENGTH_AT,
                    "the metadata is longer than the header says");
    else
        work->trace.header.metadata_len = said;
    return COFFER_OK;
}

static coffer_status load_metadata(rescue *work, coffer_error *err)
{
    coffer_error found = COFFER_ERROR_INIT;
    bool good = false;
    coffer_status status = read_text(work, work->trace.header.metadata_len, err);
    if (!status)
        status = check_length(work, err);
    if (status)
        return status;
    status = parse(work, work->metadata_len, &found);
    if (!status)
        return COFFER_OK;
    if (status == COFFER_E_BAD_JSON) {
        status = try_other_length(&good, work, err);
        if (status)
            return status;
    }
    if (good)
        return COFFER_OK;
    status = take_failure(work, &found, err);
    return status ? status : use_empty(work, err);
}

/* ---- Events ---- */

static void place_area(rescue *work)
{
    coffer_mlyze *trace = &work->trace;
    uint64_t size = coffer_source_size(work->source), length = trace->header.event_length;
    trace->area = COFFER__MLYZE_HEADER_SIZE + trace->header.metadata_len;
    trace->area_end = size > trace->area ? size : trace->area;
    if (length == 0)
        return;
    if (length < trace->area_end - trace->area) {
        coffer__report_add(work->report, COFFER_E_TRAILING_BYTES, COFFER_WARNING, trace->area + length,
                           "bytes after the events, now dropped: %" PRIu64,
                           (trace->area_end - trace->area - length));
        work->changed = true;
        trace->area_end = trace->area + length;
    } else if (length > trace->area_end - trace->area) {
        coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING, trace->area_end,
                           "the events should end at %" PRIu64 ", file has %" PRIu64, trace->area + length,
                           size);
        work->losses.bytes += length - (trace->area_end - trace->area);
        work->changed = true;
    }
}

static coffer_status save_blocks(rescue *work, coffer_error *err)
{
    coffer__mlyze_salvage *blocks = &work->blocks;
    uint64_t end = work->trace.area_end;
    blocks->trace = &work->trace;
    blocks->report = work->report;
    blocks->takes_cut = true;
    coffer_status status = coffer__mlyze_salvage_blocks(blocks, err);
    if (status)
        return status;
    if (blocks->lost_bytes > 0 || blocks->unsorted > 0)
        work->changed = true;
    work->losses.blocks += blocks->lost_blocks;
    work->losses.events += blocks->lost_events;
    work->losses.bytes += blocks->lost_bytes + end - blocks->whole_end;
    work->losses.unverified_events += blocks->cut_events;
    if (blocks->whole_end < end) {
        coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING, blocks->whole_end,
                           "truncated block at offset %" PRIu64 " (%" PRIu64
                           " whole events before it): of its %" PRIu64 " bytes "
                           "%" PRIu64 " events are saved, which no checksum covers",
                           blocks->whole_end, (blocks->event_count - blocks->cut_events),
                           (end - blocks->whole_end), blocks->cut_events);
        work->changed = true;
    }
    work->event_count = blocks->event_count;
    work->extensions = blocks->extensions;
    return COFFER_OK;
}

#define PIECE ((size_t)1 << 20)

static coffer_status sum_events(uint32_t *out, const rescue *work, uint64_t len, coffer_error *err)
{
    uint8_t *piece = coffer__malloc(PIECE);
    coffer_status status = COFFER_OK;
    uint32_t sum = 0;
    if (!piece)
        return coffer__fail_no_memory(err, PIECE);
    for (uint64_t done = 0; !status && done < len; done += PIECE) {
        size_t part = len - done < PIECE ? (size_t)(len - done) : PIECE;
        status = coffer_source_read_at(piece, work->source, work->trace.area + done, part, err);
        sum = status ? 0 : coffer__crc32(sum, piece, part);
    }
    coffer__free(piece);
    *out = sum;
    return status;
}

/* Compares the checksum of a plain trace with what is kept of it. */
static coffer_status check_plain_sum(rescue *work, coffer_error *err)
{
    const coffer__mlyze_header *header = &work->trace.header;
    coffer__mlyze_copied_text text = { 0 };
    uint32_t said;
    coffer_status status = sum_events(&work->plain_crc, work, work->plain_len, err);
    if (status || !work->has_plain_sum)
        return status;
    status =
        coffer__mlyze_copy_text(&text, work->metadata, work->metadata_len, "", COFFER__MLYZE_SUM_ADD, err);
    if (status)
        return status;
    bool found =
        text.len == work->metadata_len && coffer__mlyze_find_plain_sum(&said, work->metadata, text.json_len);
    uint32_t sum = coffer__crc32(coffer__crc32(0, header->bytes, sizeof header->bytes), text.text, text.len);
    sum = coffer__crc32_combine(sum, work->plain_crc, work->plain_len);
    coffer__free(text.text);
    if (found && sum == said)
        return COFFER_OK;
    note_change(work, COFFER_E_BAD_CHECKSUM, COFFER__MLYZE_HEADER_SIZE,
                "the checksum of the file does not match: what is kept could not be verified");
    work->losses.file = true;
    return COFFER_OK;
}

static coffer_status save_plain(rescue *work, coffer_error *err)
{
    coffer__mlyze_map *map = coffer__calloc(1, sizeof *map);
    coffer_mlyze *trace = &work->trace;
    coffer_status status;
    if (!map)
        return coffer__fail_no_memory(err, sizeof *map);
    status = coffer__mlyze_walk(map, trace, err);
    if (!status) {
        const coffer__mlyze_block *last = map->count ? &map->items[map->count - 1] : NULL;
        work->plain_len = last ? last->offset + last->raw_size - trace->area : 0;
        work->event_count = map->event_count;
        work->extensions = coffer__mlyze_has_extensions(&trace->header);
        if (work->plain_len < trace->area_end - trace->area && map->damage.status) {
            note_change(work, map->damage.status, map->damage.offset, map->damage.text);
            coffer__report_add(work->report, map->damage.status, COFFER_WARNING,
                               trace->area + work->plain_len,
                               "bytes after the last whole event, now dropped: %" PRIu64,
                               (trace->area_end - trace->area - work->plain_len));
            work->losses.bytes += trace->area_end - trace->area - work->plain_len;
        }
    }
    coffer__mlyze_map_free(map);
    return status ? status : check_plain_sum(work, err);
}

static coffer_status save_events(rescue *work, coffer_error *err)
{
    coffer__mlyze_header *header = &work->trace.header;
    uint64_t said = header->event_count;
    coffer_status status;
    place_area(work);
    header->event_count = 0;
    status = coffer__mlyze_has_blocks(header) ? save_blocks(work, err) : save_plain(work, err);
    if (status)
        return status;
    if (said != 0 && said != work->event_count) {
        coffer__report_add(work->report, COFFER_E_INCONSISTENT, COFFER_WARNING, COFFER__MLYZE_EVENT_COUNT_AT,
                           "the header counts %" PRIu64 " events, there are %" PRIu64, said,
                           work->event_count);
        if (coffer__mlyze_has_full_sums(header) && said > work->event_count + work->losses.events)
            work->losses.events = said - work->event_count;
        work->changed = true;
    }
    return COFFER_OK;
}

/* ---- Output ---- */

/* Blocks get checksums even if they had none. */
static uint32_t flags_of(const rescue *work)
{
    const coffer__mlyze_header *header = &work->trace.header;
    uint32_t flags = header->flags & ~(uint32_t)COFFER__MLYZE_FLAG_EXTENSIONS;
    if (coffer__mlyze_has_blocks(header))
        flags |= COFFER__MLYZE_FLAG_CHECKSUMS | COFFER__MLYZE_FLAG_FULL_SUMS;
    else
        flags &= ~(uint32_t)(COFFER__MLYZE_FLAG_CHECKSUMS | COFFER__MLYZE_FLAG_FULL_SUMS);
    return work->extensions && header->version < 2 ? flags | COFFER__MLYZE_FLAG_EXTENSIONS : flags;
}

static coffer_status write_area(const rescue *work, coffer__sink *sink, uint64_t *len, coffer_error *err)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    coffer__mlyze_copy copy = { .keep_packed = true, .keep_unpacked = true, .sorts = true };
    coffer_status status;
    if (!coffer__mlyze_has_blocks(&work->trace.header)) {
        *len = work->plain_len;
        return coffer__sink_copy_source(sink, work->source, work->trace.area, work->plain_len,
                                        work->opts->progress, err);
    }
    status = coffer__mlyze_copy_init(&copy, sink, &work->trace, &opts, err);
    for (size_t i = 0; !status && i < work->blocks.count; i++)
        status = coffer__mlyze_copy_block(&copy, &work->blocks.blocks[i], err);
    if (!status)
        status = coffer__mlyze_copy_end(&copy, len, err);
    coffer__mlyze_copy_free(&copy);
    return status;
}

/* The metadata as it is written: with what was lost, and with the order of frames. */
static coffer_status prepare_text(coffer__mlyze_copied_text *out, const rescue *work, coffer_error *err)
{
    char losses[COFFER__MLYZE_LOSSES_TEXT], members[COFFER__MLYZE_LOSSES_TEXT + 64];
    size_t len = work->metadata_len;
    char *text = coffer__malloc(len + 1);
    if (!text)
        return coffer__fail_no_memory(err, len + 1);
    memcpy(text, work->metadata, len);
    const char *lost = coffer__mlyze_losses_member(losses, &work->losses);
    if (*lost)
        coffer__mlyze_losses_cut(text, &len);
    snprintf(members, sizeof members, "%s%s", lost,
             work->innermost_first ? "\"" COFFER__MLYZE_ORDER_KEY "\":\"" COFFER__MLYZE_INNERMOST_FIRST "\","
                                   : "");
    coffer_status status = coffer__mlyze_copy_text(
        out, text, len, members,
        coffer__mlyze_has_blocks(&work->trace.header) ? COFFER__MLYZE_SUM_KEEP : COFFER__MLYZE_SUM_ADD, err);
    coffer__free(text);
    return status;
}

static coffer_status write_repaired(coffer__sink *sink, void *context, coffer_error *err)
{
    const rescue *work = context;
    const coffer__mlyze_header *from = &work->trace.header;
    coffer__mlyze_copied_text text = { 0 };
    uint8_t header[COFFER__MLYZE_HEADER_SIZE];
    coffer__mlyze_front front = { .start_time = from->start_time,
                                  .version = from->version,
                                  .flags = flags_of(work),
                                  .reserved = from->bytes + COFFER__MLYZE_RESERVED_AT,
                                  .event_count = work->event_count };
    if (!coffer__mlyze_has_blocks(from)) {
        front.area_is_known = true;
        front.area_len = work->plain_len;
        front.area_crc = work->plain_crc;
    }
    coffer_status status = prepare_text(&text, work, err);
    if (!status)
        status = coffer__mlyze_write_text_front(sink, &front, &text, err);
    coffer__free(text.text);
    if (!status)
        status = write_area(work, sink, &front.area_len, err);
    if (status || !coffer__mlyze_has_blocks(from) || !coffer__sink_can_patch(sink))
        return status;
    coffer__mlyze_compose_header(header, &front);
    return coffer__sink_patch(sink, 0, header, sizeof header, err);
}

coffer_status coffer__mlyze_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                   const coffer_repair_opts *opts, coffer_error *err)
{
    rescue work = { .report = out, .source = src, .opts = opts, .limits = coffer__limits(opts->limits) };
    work.trace.source = src;
    work.trace.limits = work.limits;
    coffer_status status = load_header(&work, err);
    if (!status)
        status = load_metadata(&work, err);
    if (!status)
        status = save_events(&work, err);
    if (!status)
        status = coffer__report_status(out, err);
    if (status)
        goto out;
    status = coffer__rescue_write(out_path, opts->overwrite, src, opts->progress,
                                  work.changed ? write_repaired : NULL, &work, err);
out:
    coffer__mlyze_salvage_free(&work.blocks);
    coffer__free(work.metadata);
    return status;
}
