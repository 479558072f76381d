#include "formats/mlyze/mlyze_repair.h"

#include "base/buffer.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "formats/mlyze/mlyze_private.h"
#include "formats/mlyze/read/mlyze_decode.h"

#include <inttypes.h>

#define WINDOW ((size_t)1 << 16)
/* The search for blocks reads at most this many times the size of the file. */
#define BUDGET_TIMES 4
#define BUDGET_LEAST ((uint64_t)16 << 20)

static coffer_status take(coffer__mlyze_salvage *salvage, const coffer__mlyze_block *block,
                          const coffer_mlyze_events *columns, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&salvage->blocks, &salvage->capacity, salvage->count,
                                                     sizeof *salvage->blocks, err);
    if (!status && salvage->take)
        status = salvage->take(salvage->context, columns, err);
    if (status)
        return status;
    for (size_t i = 0; i < columns->count && !salvage->extensions; i++)
        salvage->extensions = columns->type[i] > COFFER_MLYZE_MARKER;
    uint64_t end = columns->time[columns->count - 1];
    salvage->unsorted += block->time < salvage->time;
    salvage->time = end > salvage->time ? end : salvage->time;
    salvage->blocks[salvage->count++] = *block;
    salvage->event_count += block->event_count;
    salvage->whole_end = block->offset + COFFER__MLYZE_BLOCK_HEADER + block->stored_size;
    return COFFER_OK;
}

static bool budget_covers(coffer__mlyze_salvage *salvage, uint64_t bytes)
{
    bool covers = bytes <= salvage->budget;
    salvage->budget = covers ? salvage->budget - bytes : 0;
    return covers;
}

/* Whether a complete block is at the offset. */
static coffer_status try_block(bool *found, coffer__mlyze_block *block, coffer__mlyze_salvage *salvage,
                               coffer_mlyze_events *columns, uint64_t offset, coffer_error *err)
{
    coffer_error why = COFFER_ERROR_INIT;
    coffer__mlyze_decoder decoder;
    coffer_status status = coffer__mlyze_read_block_header(block, NULL, salvage->trace, offset, &why);
    block->first_event = salvage->event_count;
    if (!status && budget_covers(salvage, block->stored_size))
        status = coffer__mlyze_decode_block(columns, &decoder, salvage->trace, block, false, &why);
    *found = !status;
    if (!status || coffer__is_about_file(status))
        return COFFER_OK;
    return coffer__fail_copy(err, &why);
}

/* Sizes of a block have at most 17 bits, so hardly anything else looks like a header. */
static bool may_begin_block(const uint8_t *at, bool archive)
{
    if (archive)
        return memcmp(at + COFFER__MLYZE_BLOCK_HEADER, COFFER__MLYZE_ARCHIVE_MAGIC, 4) == 0;
    uint32_t raw = coffer__load_u32(at), stored = coffer__load_u32(at + COFFER__MLYZE_BLOCK_STORED_AT);
    return raw > 0 && raw <= COFFER__MLYZE_BLOCK_RAW_MAX && stored > 0 && stored <= raw;
}

/* The offset of the next complete block from `offset` on, or the end of the area. */
static coffer_status find_block(uint64_t *out, coffer__mlyze_salvage *salvage, coffer_mlyze_events *columns,
                                uint64_t offset, coffer_error *err)
{
    const uint64_t end = salvage->trace->area_end;
    uint8_t *window = coffer__malloc(WINDOW);
    const bool archive = coffer__mlyze_has_archive(&salvage->trace->header);
    coffer_status status = COFFER_OK;
    bool found = false;
    if (!window)
        return coffer__fail_no_memory(err, WINDOW);
    while (!status && !found && end - offset > COFFER__MLYZE_BLOCK_HEADER + 4) {
        size_t len = end - offset < WINDOW ? (size_t)(end - offset) : WINDOW;
        size_t starts = len - COFFER__MLYZE_BLOCK_HEADER - 4, i = 0;
        if (!budget_covers(salvage, starts))
            break;
        status = coffer_source_read_at(window, salvage->trace->source, offset, len, err);
        for (; !status && !found && i < starts; i++) {
            coffer__mlyze_block block;
            if (may_begin_block(window + i, archive))
                status = try_block(&found, &block, salvage, columns, offset + i, err);
        }
        offset += found ? i - 1 : i;
    }
    coffer__free(window);
    *out = found ? offset : end;
    return status;
}

static void report_gap(coffer__mlyze_salvage *salvage, uint64_t from, uint64_t to, const coffer_error *why)
{
    salvage->lost_bytes += to - from;
    coffer__report_add(salvage->report, why->status, COFFER_WARNING, from,
                       "%s; the %" PRIu64 " bytes up to the next whole block are lost", why->text,
                       (to - from));
}

/* Whether a block begins there whose header is complete and whose content is not. */
static bool is_cut_off(const coffer_mlyze *trace, uint64_t offset, const coffer_error *why)
{
    return why->status == COFFER_E_TRUNCATED && trace->area_end - offset > COFFER__MLYZE_BLOCK_HEADER &&
           !coffer__mlyze_has_archive(&trace->header);
}

/* Keeps the whole events of a truncated last block; whole_end stays before it. */
static coffer_status take_cut(coffer__mlyze_salvage *salvage, coffer_mlyze_events *columns, uint64_t offset,
                              coffer_error *err)
{
    coffer__mlyze_decoder decoder;
    coffer__mlyze_block block = { 0 };
    uint64_t whole_end = salvage->whole_end;
    coffer_status status = coffer__mlyze_find_cut_block(&block, salvage->trace, offset, err);
    if (status || block.event_count == 0)
        return status;
    block.first_event = salvage->event_count;
    status = coffer__mlyze_decode_block(columns, &decoder, salvage->trace, &block, false, err);
    if (!status)
        status = take(salvage, &block, columns, err);
    if (status)
        return status;
    salvage->whole_end = whole_end;
    salvage->cut_events = block.event_count;
    return COFFER_OK;
}

/* The header is invalid: search for the blocks after it. */
static coffer_status pass_gap(uint64_t *offset, coffer__mlyze_salvage *salvage, coffer_mlyze_events *columns,
                              const coffer_error *why, coffer_error *err)
{
    uint64_t next = 0;
    coffer__mlyze_block cut;
    coffer_status status = find_block(&next, salvage, columns, *offset + 1, err);
    if (status)
        return status;
    if (next < salvage->trace->area_end)
        report_gap(salvage, *offset, next, why);
    else if (salvage->takes_cut && is_cut_off(salvage->trace, *offset, why))
        status = take_cut(salvage, columns, *offset, err);
    else if (coffer__mlyze_has_archive(&salvage->trace->header) &&
             !coffer__mlyze_load_block_header(&cut, NULL, salvage->trace, *offset, NULL))
        salvage->cut_lost = cut.event_count;
    *offset = next;
    return status;
}

static coffer_status drop_block(coffer__mlyze_salvage *salvage, const coffer__mlyze_block *block,
                                const coffer_error *why, coffer_error *err)
{
    if (!coffer__is_about_file(why->status))
        return coffer__fail_copy(err, why);
    salvage->lost_blocks++;
    salvage->lost_events += block->event_count;
    salvage->lost_bytes += COFFER__MLYZE_BLOCK_HEADER + block->stored_size;
    salvage->whole_end = block->offset + COFFER__MLYZE_BLOCK_HEADER + block->stored_size;
    coffer__report_add(salvage->report, why->status, COFFER_WARNING, block->offset,
                       "block at offset %" PRIu64 " with %" PRIu32 " events is dropped: %s", block->offset,
                       block->event_count, why->text);
    return COFFER_OK;
}

static coffer_status step(uint64_t *offset, coffer__mlyze_salvage *salvage, coffer_mlyze_events *columns,
                          coffer_error *err)
{
    coffer_error why = COFFER_ERROR_INIT;
    coffer__mlyze_block block;
    coffer__mlyze_decoder decoder;
    coffer_status status = coffer__mlyze_read_block_header(&block, NULL, salvage->trace, *offset, &why);
    if (coffer__is_about_file(status))
        return pass_gap(offset, salvage, columns, &why, err);
    if (status)
        return coffer__fail_copy(err, &why);
    block.first_event = salvage->event_count;
    *offset += COFFER__MLYZE_BLOCK_HEADER + block.stored_size;
    status = coffer__mlyze_decode_block(columns, &decoder, salvage->trace, &block, false, &why);
    return !status ? take(salvage, &block, columns, err) : drop_block(salvage, &block, &why, err);
}

coffer_status coffer__mlyze_salvage_blocks(coffer__mlyze_salvage *salvage, coffer_error *err)
{
    coffer_mlyze_events columns = COFFER_MLYZE_EVENTS_INIT;
    const coffer_mlyze *trace = salvage->trace;
    coffer_status status = coffer__mlyze_events_reserve(&columns, err);
    salvage->whole_end = trace->area;
    salvage->budget = (trace->area_end - trace->area) * BUDGET_TIMES + BUDGET_LEAST;
    for (uint64_t offset = trace->area; !status && offset < trace->area_end;)
        status = step(&offset, salvage, &columns, err);
    if (salvage->unsorted > 0)
        coffer__report_add(salvage->report, COFFER_E_NOT_SORTED, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "blocks that begin before the previous block ends: %" PRIu64
                           "; the times of their "
                           "events are raised to its end",
                           salvage->unsorted);
    coffer_mlyze_events_free(&columns);
    return status;
}

void coffer__mlyze_salvage_free(coffer__mlyze_salvage *salvage)
{
    coffer__free(salvage->blocks);
    salvage->blocks = NULL;
}
