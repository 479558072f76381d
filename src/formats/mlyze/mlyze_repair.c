/* Repairs a damaged trace: keeps its whole events, and the metadata if it can be read. */
#include "formats/mlyze/mlyze_repair.h"

#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "formats/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Events ---- */

/* The bytes after the last intact block. */
static void note_cut(coffer__mlyze_rescue *work)
{
    coffer__mlyze_salvage *blocks = &work->blocks;
    uint64_t bytes = work->trace.area_end - blocks->whole_end;
    work->changed = true;
    if (coffer__mlyze_has_archive(&work->trace.header)) {
        work->losses.blocks++;
        work->losses.events += blocks->cut_lost;
        coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING, blocks->whole_end,
                           "truncated block at offset %" PRIu64 ": its %" PRIu64 " bytes with %" PRIu32
                           " events are lost, the %" PRIu64 " events before it are kept",
                           blocks->whole_end, bytes, blocks->cut_lost, blocks->event_count);
        return;
    }
    coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING, blocks->whole_end,
                       "truncated block at offset %" PRIu64 " (%" PRIu64
                       " whole events before it): of its %" PRIu64 " bytes %" PRIu64
                       " events are saved, which no checksum covers",
                       blocks->whole_end, (blocks->event_count - blocks->cut_events), bytes,
                       blocks->cut_events);
}

static coffer_status save_blocks(coffer__mlyze_rescue *work, coffer_error *err)
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
        work->changed = work->blocks_changed = true;
    work->losses.blocks += blocks->lost_blocks;
    work->losses.events += blocks->lost_events;
    work->losses.bytes += blocks->lost_bytes + end - blocks->whole_end;
    work->losses.unverified_events += blocks->cut_events;
    if (blocks->whole_end < end)
        note_cut(work);
    work->event_count = blocks->event_count;
    work->extensions = blocks->extensions;
    return COFFER_OK;
}

#define PIECE ((size_t)1 << 20)

static coffer_status sum_events(uint32_t *out, const coffer__mlyze_rescue *work, uint64_t len,
                                coffer_error *err)
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
static coffer_status check_plain_sum(coffer__mlyze_rescue *work, coffer_error *err)
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
    coffer__mlyze_rescue_note(work, COFFER_E_BAD_CHECKSUM, COFFER__MLYZE_HEADER_SIZE,
                              "the checksum of the file does not match: what is kept could not be verified");
    work->losses.file = true;
    return COFFER_OK;
}

static coffer_status save_plain(coffer__mlyze_rescue *work, coffer_error *err)
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
            coffer__mlyze_rescue_note(work, map->damage.status, map->damage.offset, map->damage.text);
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

static coffer_status save_events(coffer__mlyze_rescue *work, coffer_error *err)
{
    coffer__mlyze_header *header = &work->trace.header;
    uint64_t said = header->event_count;
    header->event_count = 0;
    coffer_status status = coffer__mlyze_has_blocks(header) ? save_blocks(work, err) : save_plain(work, err);
    if (status)
        return status;
    if (said != 0 && said != work->event_count) {
        coffer__report_add(work->report, COFFER_E_INCONSISTENT, COFFER_WARNING, COFFER__MLYZE_EVENT_COUNT_AT,
                           "the header counts %" PRIu64 " events, there are %" PRIu64, said,
                           work->event_count);
        if (coffer__mlyze_has_full_sums(header) && !work->doubts_header &&
            said > work->event_count + work->losses.events)
            work->losses.events = said - work->event_count;
        work->changed = true;
    }
    return COFFER_OK;
}

/* ---- Output ---- */

/* Blocks get checksums even if they had none. */
static uint32_t flags_of(const coffer__mlyze_rescue *work)
{
    const coffer__mlyze_header *header = &work->trace.header;
    uint32_t flags = header->flags & ~(uint32_t)(COFFER__MLYZE_FLAG_EXTENSIONS | COFFER__MLYZE_FLAG_TABLES);
    if (coffer__mlyze_has_blocks(header))
        flags |= COFFER__MLYZE_FLAG_CHECKSUMS | COFFER__MLYZE_FLAG_FULL_SUMS;
    else
        flags &= ~(uint32_t)(COFFER__MLYZE_FLAG_CHECKSUMS | COFFER__MLYZE_FLAG_FULL_SUMS);
    return work->extensions && header->version < 2 ? flags | COFFER__MLYZE_FLAG_EXTENSIONS : flags;
}

static coffer_status write_area(const coffer__mlyze_rescue *work, coffer__sink *sink, uint64_t *len,
                                coffer_error *err)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    coffer__mlyze_copy copy = { .keep_packed = true, .keep_unpacked = true, .sorts = true };
    coffer_status status;
    /* Numbers of allocations have no gaps: what is left of an archive is coded again. */
    opts.archive = coffer__mlyze_has_archive(&work->trace.header);
    if (opts.archive)
        copy.keep_packed = copy.keep_unpacked = !work->blocks_changed;
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
static coffer_status prepare_text(coffer__mlyze_copied_text *out, const coffer__mlyze_rescue *work,
                                  coffer_error *err)
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
    const coffer__mlyze_rescue *work = context;
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
        status = coffer__mlyze_copied_tables(&text, front.flags, &work->limits, err);
    if (!status)
        status = coffer__mlyze_write_text_front(sink, &front, &text, err);
    coffer__mlyze_copied_text_free(&text);
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
    coffer__mlyze_rescue work = {
        .report = out, .source = src, .opts = opts, .limits = coffer__limits(opts->limits)
    };
    work.trace.source = src;
    work.trace.limits = work.limits;
    coffer_status status = coffer__mlyze_rescue_front(&work, err);
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
