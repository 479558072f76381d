/* Reads one block into columns. */

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "formats/mlyze/mlyze_private.h"
#include "formats/mlyze/read/mlyze_decode.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <lz4.h>

/* No block has more events than this. */
#define ROWS (COFFER__MLYZE_BLOCK_RAW_MAX / COFFER__MLYZE_EVENT_MIN + 1)
#define STORED_MAX LZ4_COMPRESSBOUND(COFFER__MLYZE_BLOCK_RAW_MAX)

/* ---- Columns ---- */

/* One allocation: the columns, the widest first, then the scratch. */
coffer_status coffer__mlyze_events_reserve(coffer_mlyze_events *events, coffer_error *err)
{
    const size_t row = 4 * sizeof(uint64_t) + sizeof(uint16_t) + sizeof(uint8_t);
    const size_t size = ROWS * row + COFFER__MLYZE_BLOCK_RAW_MAX + STORED_MAX;
    uint8_t *memory;
    if (events->capacity >= ROWS)
        return COFFER_OK;
    memory = coffer__malloc(size);
    if (!memory)
        return coffer__fail_no_memory(err, size);
    events->time = (uint64_t *)(void *)memory;
    events->address = events->time + ROWS;
    events->size = events->address + ROWS;
    events->id = events->size + ROWS;
    events->thread = (uint16_t *)(void *)(events->id + ROWS);
    events->type = (uint8_t *)(events->thread + ROWS);
    events->capacity = ROWS;
    return COFFER_OK;
}

void coffer_mlyze_events_free(coffer_mlyze_events *events)
{
    if (events->capacity > 0)
        coffer__free(events->time);
    *events = (coffer_mlyze_events)COFFER_MLYZE_EVENTS_INIT;
}

uint8_t *coffer__mlyze_raw_scratch(const coffer_mlyze_events *events)
{
    return events->type + ROWS;
}

uint8_t *coffer__mlyze_stored_scratch(const coffer_mlyze_events *events)
{
    return coffer__mlyze_raw_scratch(events) + COFFER__MLYZE_BLOCK_RAW_MAX;
}

/* ---- Bytes ---- */

static coffer_status fail_block(coffer_error *err, coffer_status status, const coffer__mlyze_block *block,
                                const char *what)
{
    return coffer__fail(err, status, block->offset,
                        "block at offset %" PRIu64 ": %s; events %" PRIu64 " to %" PRIu64 " are lost",
                        block->offset, what, block->first_event, block->first_event + block->event_count - 1);
}

static coffer_status fail_changed(coffer_error *err, const coffer__mlyze_block *block)
{
    return coffer__fail(err, COFFER_E_CHANGED, block->offset, "changed while it was read");
}

coffer_status coffer__mlyze_cut_bytes(const uint8_t **out, size_t *len, const coffer_mlyze_events *scratch,
                                      const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                      coffer_error *err)
{
    uint8_t *raw = coffer__mlyze_raw_scratch(scratch);
    const uint8_t *stored = NULL;
    coffer__mlyze_block header;
    coffer_status status = coffer__mlyze_load_block_header(&header, NULL, trace, block->offset, err);
    if (!status)
        status = coffer__source_fetch(&stored, trace->source, block->offset + COFFER__MLYZE_BLOCK_HEADER,
                                      block->stored_size, coffer__mlyze_stored_scratch(scratch), err);
    if (status)
        return status;
    if (header.stored_size == header.raw_size) {
        *out = stored;
        *len = block->stored_size;
        return COFFER_OK;
    }
    *len = coffer__mlyze_lz4_prefix(raw, header.raw_size, stored, block->stored_size);
    *out = raw;
    return COFFER_OK;
}

static coffer_status decompress(const uint8_t **out, const coffer_mlyze_events *scratch,
                                const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                coffer_error *err)
{
    uint8_t *raw = coffer__mlyze_raw_scratch(scratch);
    const uint8_t *stored = NULL;
    coffer__mlyze_block header;
    uint32_t crc;
    coffer_status status = coffer__mlyze_read_block_header(&header, &crc, trace, block->offset, err);
    if (!status)
        status = coffer__source_fetch(&stored, trace->source, block->offset + COFFER__MLYZE_BLOCK_HEADER,
                                      header.stored_size, coffer__mlyze_stored_scratch(scratch), err);
    if (status)
        return status;
    if (header.raw_size != block->raw_size)
        return fail_changed(err, block);
    if (coffer__mlyze_has_sums(&trace->header) &&
        coffer__mlyze_block_sum(&header, stored, coffer__mlyze_has_full_sums(&trace->header)) != crc)
        return fail_block(err, COFFER_E_BAD_CHECKSUM, block, "its checksum does not match");
    if (header.stored_size == header.raw_size) {
        *out = stored;
        return COFFER_OK;
    }
    if (LZ4_decompress_safe((const char *)stored, (char *)raw, (int)header.stored_size,
                            (int)header.raw_size) != (int)header.raw_size)
        return fail_block(err, COFFER_E_BAD_VALUE, block, "it does not decompress to its size");
    *out = raw;
    return COFFER_OK;
}

coffer_status coffer__mlyze_block_bytes(const uint8_t **out, size_t *len, const coffer_mlyze_events *scratch,
                                        const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                        coffer_error *err)
{
    size_t have = 0;
    bool cut;
    coffer_status status = coffer__mlyze_is_cut(&cut, trace, block, err);
    if (status)
        return status;
    *len = block->raw_size < COFFER__MLYZE_BLOCK_RAW_MAX ? block->raw_size : COFFER__MLYZE_BLOCK_RAW_MAX;
    if (cut) {
        status = coffer__mlyze_cut_bytes(out, &have, scratch, trace, block, err);
        return status || have >= *len ? status : fail_changed(err, block);
    }
    if (coffer__mlyze_has_blocks(&trace->header))
        return decompress(out, scratch, trace, block, err);
    return coffer__source_fetch(out, trace->source, block->offset, *len, coffer__mlyze_raw_scratch(scratch),
                                err);
}

/* ---- Reading ---- */

/* A block of the map, confirmed by its header. A map from a wrong index is replaced by one from the file. */
static coffer_status find_block(coffer__mlyze_block *out, const coffer_mlyze *trace, size_t index,
                                coffer_error *err)
{
    const coffer__mlyze_map *map = NULL;
    coffer_status status;
    while (!(status = coffer__mlyze_get_map(&map, trace, err))) {
        if (index >= map->count)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "block %zu requested, the trace has %zu", index, map->count);
        *out = map->items[index];
        if (!map->from_index)
            return COFFER_OK;
        if (coffer__mlyze_block_agrees(trace, out))
            return COFFER_OK;
        status = coffer__mlyze_replace_map(trace, map, err);
        if (status)
            return status;
    }
    return status;
}

static coffer_status check_decoded(const coffer__mlyze_decoder *decoder, coffer__mlyze_stop stop,
                                   const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                   const uint8_t *bytes, coffer_error *err)
{
    const coffer_mlyze_events *out = decoder->out;
    uint64_t place = (uint64_t)(decoder->at - bytes);
    coffer_error found = COFFER_ERROR_INIT;
    if (stop && !coffer__mlyze_has_blocks(&trace->header))
        return coffer__mlyze_fail_stop(err, stop, decoder, block->offset + place,
                                       block->first_event + out->count);
    if (stop)
        coffer__mlyze_fail_stop(&found, stop, decoder, place, out->count);
    else if (out->count != block->event_count)
        coffer__fail(&found, COFFER_E_SIZE_MISMATCH, 0, "it says %" PRIu32 " events and has %zu",
                     block->event_count, out->count);
    return found.status ? fail_block(err, found.status, block, found.text) : COFFER_OK;
}

coffer_status coffer__mlyze_decode_block(coffer_mlyze_events *out, coffer__mlyze_decoder *decoder,
                                         const coffer_mlyze *trace, const coffer__mlyze_block *block,
                                         bool with_care, coffer_error *err)
{
    const uint8_t *bytes = NULL;
    size_t len = 0;
    coffer__mlyze_stop stop;
    out->count = 0;
    out->first = block->first_event;
    coffer_status status = coffer__mlyze_events_reserve(out, err);
    if (!status)
        status = coffer__mlyze_block_bytes(&bytes, &len, out, trace, block, err);
    if (status)
        return status;
    *decoder = (coffer__mlyze_decoder){ .at = bytes,
                                        .end = bytes + len,
                                        .beyond = block->raw_size - len,
                                        .time = block->time,
                                        .extensions = coffer__mlyze_has_extensions(&trace->header),
                                        .out = out };
    stop = with_care ? coffer__mlyze_decode_with_care(decoder) : coffer__mlyze_decode_events(decoder);
    status = coffer_source_intact(trace->source, err);
    if (!status)
        status = check_decoded(decoder, stop, trace, block, bytes, err);
    if (status)
        out->count = 0;
    return status;
}

coffer_status coffer_mlyze_read_block(coffer_mlyze_events *out, const coffer_mlyze *trace, size_t index,
                                      coffer_error *err)
{
    coffer__mlyze_decoder decoder;
    coffer__mlyze_block block;
    out->count = 0;
    coffer_status status = find_block(&block, trace, index, err);
    if (status)
        return status;
    status = coffer__mlyze_decode_block(out, &decoder, trace, &block, false, err);
    if (coffer__is_about_file(status))
        coffer__mlyze_note_lost(trace, index);
    return status;
}

coffer_status coffer_mlyze_get_block(coffer_mlyze_block *out, const coffer_mlyze *trace, size_t index,
                                     coffer_error *err)
{
    coffer__mlyze_block block;
    coffer_status status = find_block(&block, trace, index, err);
    if (status)
        return status;
    coffer_mlyze_block found = { .struct_size = sizeof found,
                                 .offset = block.offset,
                                 .first_event = block.first_event,
                                 .time = block.time,
                                 .event_count = block.event_count,
                                 .raw_size = block.raw_size,
                                 .stored_size = block.stored_size };
    return coffer__give_struct(out, &found, sizeof found, err);
}

COFFER__INIT_FUNCTION(coffer_mlyze_block, COFFER_MLYZE_BLOCK_INIT)
