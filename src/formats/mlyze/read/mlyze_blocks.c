
#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "formats/mlyze/mlyze_private.h"
#include "formats/mlyze/read/mlyze_decode.h"

#include <inttypes.h>
#include <lz4.h>
#include <pthread.h>

struct coffer__mlyze_blocks {
    pthread_mutex_t lock; /* held while a map is made */
    _Atomic(coffer__mlyze_map *) map;
    /* Damaged blocks that were met, one bit for each block of `lost_of`. */
    pthread_mutex_t lost_lock;
    uint8_t *lost;
    const coffer__mlyze_map *lost_of;
    uint64_t lost_blocks, lost_events;
};

/* ---- The map ---- */

coffer_status coffer__mlyze_blocks_new(coffer__mlyze_blocks **out, coffer_error *err)
{
    coffer__mlyze_blocks *blocks = coffer__calloc(1, sizeof *blocks);
    if (!blocks)
        return coffer__fail_no_memory(err, sizeof *blocks);
    pthread_mutex_init(&blocks->lock, NULL);
    pthread_mutex_init(&blocks->lost_lock, NULL);
    atomic_init(&blocks->map, NULL);
    *out = blocks;
    return COFFER_OK;
}

void coffer__mlyze_map_free(coffer__mlyze_map *map)
{
    while (map) {
        coffer__mlyze_map *older = map->older;
        coffer__free(map->items);
        coffer__free(map->entries);
        coffer__free(map);
        map = older;
    }
}

void coffer__mlyze_blocks_free(coffer__mlyze_blocks *blocks)
{
    if (!blocks)
        return;
    coffer__mlyze_map_free(atomic_load(&blocks->map));
    pthread_mutex_destroy(&blocks->lock);
    pthread_mutex_destroy(&blocks->lost_lock);
    coffer__free(blocks->lost);
    coffer__free(blocks);
}

/* Without memory for the bits a block may count more than once. */
void coffer__mlyze_note_lost(const coffer_mlyze *trace, size_t index)
{
    coffer__mlyze_blocks *blocks = trace->blocks;
    const coffer__mlyze_map *map = blocks ? atomic_load(&blocks->map) : NULL;
    if (!map || index >= map->count)
        return;
    pthread_mutex_lock(&blocks->lost_lock);
    if (blocks->lost_of != map) {
        coffer__free(blocks->lost);
        blocks->lost = coffer__calloc(map->count / 8 + 1, 1);
        blocks->lost_of = map;
        blocks->lost_blocks = blocks->lost_events = 0;
    }
    uint8_t *bits = blocks->lost ? &blocks->lost[index / 8] : NULL, bit = (uint8_t)(1u << index % 8);
    if (!bits || !(*bits & bit)) {
        blocks->lost_blocks++;
        blocks->lost_events += map->items[index].event_count;
    }
    if (bits)
        *bits |= bit;
    pthread_mutex_unlock(&blocks->lost_lock);
}

void coffer_mlyze_lost(uint64_t *lost_blocks, uint64_t *lost_events, const coffer_mlyze *trace)
{
    pthread_mutex_lock(&trace->blocks->lost_lock);
    *lost_blocks = trace->blocks->lost_blocks;
    *lost_events = trace->blocks->lost_events;
    pthread_mutex_unlock(&trace->blocks->lost_lock);
}

/* Call with the lock held. */
static coffer_status make_map(const coffer_mlyze *trace, bool with_index, coffer_error *err)
{
    coffer__mlyze_map *map = coffer__calloc(1, sizeof *map);
    if (!map)
        return coffer__fail_no_memory(err, sizeof *map);
    coffer_status status = with_index ? coffer__mlyze_map_from_index(map, trace, err) : COFFER_OK;
    if (!status)
        status = coffer__mlyze_walk(map, trace, err);
    if (status) {
        coffer__mlyze_map_free(map);
        return status;
    }
    map->older = atomic_load(&trace->blocks->map);
    atomic_store(&trace->blocks->map, map);
    return COFFER_OK;
}

coffer_status coffer__mlyze_get_map(const coffer__mlyze_map **out, const coffer_mlyze *trace,
                                    coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!atomic_load(&trace->blocks->map)) {
        pthread_mutex_lock(&trace->blocks->lock);
        if (!atomic_load(&trace->blocks->map))
            status = make_map(trace, trace->index_path && coffer__mlyze_has_blocks(&trace->header), err);
        pthread_mutex_unlock(&trace->blocks->lock);
    }
    if (!status)
        *out = atomic_load(&trace->blocks->map);
    return status;
}

coffer_status coffer__mlyze_replace_map(const coffer_mlyze *trace, const coffer__mlyze_map *wrong,
                                        coffer_error *err)
{
    coffer_status status = COFFER_OK;
    pthread_mutex_lock(&trace->blocks->lock);
    if (atomic_load(&trace->blocks->map) == wrong)
        status = make_map(trace, false, err);
    pthread_mutex_unlock(&trace->blocks->lock);
    return status;
}

bool coffer__mlyze_is_current_map(const coffer_mlyze *trace, const coffer__mlyze_map *map)
{
    return atomic_load(&trace->blocks->map) == map;
}

/* ---- Walking ---- */

coffer_status coffer__mlyze_map_add(coffer__mlyze_map *map, const coffer_mlyze *trace,
                                    const coffer__mlyze_block *block, coffer_error *err)
{
    if (map->count >= trace->limits.entries)
        return coffer__fail(err, COFFER_E_LIMIT, block->offset, "more than %" PRIu64 " blocks",
                            trace->limits.entries);
    coffer_status status =
        coffer__array_reserve_one(&map->items, &map->capacity, map->count, sizeof *map->items, err);
    if (status)
        return status;
    map->items[map->count++] = *block;
    map->event_count += block->event_count;
    return COFFER_OK;
}

coffer_status coffer__mlyze_load_block_header(coffer__mlyze_block *out, uint32_t *crc,
                                              const coffer_mlyze *trace, uint64_t offset, coffer_error *err)
{
    uint8_t bytes[COFFER__MLYZE_BLOCK_HEADER];
    coffer__mlyze_block block = { .offset = offset };
    if (!coffer__range_fits(offset, sizeof bytes, trace->area_end))
        return coffer__fail(err, COFFER_E_TRUNCATED, offset, "truncated block header at offset %" PRIu64,
                            offset);
    coffer_status status = coffer_source_read_at(bytes, trace->source, offset, sizeof bytes, err);
    if (status)
        return status;
    block.raw_size = coffer__load_u32(bytes);
    block.stored_size = coffer__load_u32(bytes + COFFER__MLYZE_BLOCK_STORED_AT);
    block.event_count = coffer__load_u32(bytes + COFFER__MLYZE_BLOCK_COUNT_AT);
    block.time = coffer__load_u64(bytes + COFFER__MLYZE_BLOCK_TIME_AT);
    if (crc)
        *crc = coffer__load_u32(bytes + COFFER__MLYZE_BLOCK_CRC_AT);
    if (block.raw_size == 0 || block.raw_size > COFFER__MLYZE_BLOCK_RAW_MAX)
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset,
                            "block at offset %" PRIu64 " has a raw size of %" PRIu32
                            ", from 1 to %d are allowed",
                            offset, block.raw_size, COFFER__MLYZE_BLOCK_RAW_MAX);
    if (block.stored_size == 0 || block.stored_size > (uint32_t)LZ4_compressBound((int)block.raw_size))
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset,
                            "block at offset %" PRIu64 " has a stored size of %" PRIu32 " for %" PRIu32
                            " bytes",
                            offset, block.stored_size, block.raw_size);
    if (block.event_count == 0 || block.event_count > block.raw_size / COFFER__MLYZE_EVENT_MIN)
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset,
                            "block at offset %" PRIu64 " says it has %" PRIu32 " events in %" PRIu32 " bytes",
                            offset, block.event_count, block.raw_size);
    *out = block;
    return COFFER_OK;
}

coffer_status coffer__mlyze_read_block_header(coffer__mlyze_block *out, uint32_t *crc,
                                              const coffer_mlyze *trace, uint64_t offset, coffer_error *err)
{
    coffer__mlyze_block block;
    coffer_status status = coffer__mlyze_load_block_header(&block, crc, trace, offset, err);
    if (status)
        return status;
    if (block.stored_size > trace->area_end - offset - COFFER__MLYZE_BLOCK_HEADER)
        return coffer__fail(err, COFFER_E_TRUNCATED, offset,
                            "truncated block at offset %" PRIu64 ": it ends at %" PRIu64
                            ", the events at %" PRIu64,
                            offset, offset + COFFER__MLYZE_BLOCK_HEADER + block.stored_size, trace->area_end);
    *out = block;
    return COFFER_OK;
}

uint32_t coffer__mlyze_block_sum(const coffer__mlyze_block *header, const uint8_t *stored, bool full)
{
    uint8_t fields[COFFER__MLYZE_BLOCK_HEADER] = { 0 };
    uint32_t sum = 0;
    if (full) {
        coffer__store_u32(fields, header->raw_size);
        coffer__store_u32(fields + COFFER__MLYZE_BLOCK_STORED_AT, header->stored_size);
        coffer__store_u32(fields + COFFER__MLYZE_BLOCK_COUNT_AT, header->event_count);
        coffer__store_u64(fields + COFFER__MLYZE_BLOCK_TIME_AT, header->time);
        sum = coffer__crc32(sum, fields, COFFER__MLYZE_BLOCK_CRC_AT);
        sum = coffer__crc32(sum, fields + COFFER__MLYZE_BLOCK_TIME_AT,
                            COFFER__MLYZE_BLOCK_HEADER - COFFER__MLYZE_BLOCK_TIME_AT);
    }
    return coffer__crc32(sum, stored, header->stored_size);
}

static uint64_t end_of_map(const coffer__mlyze_map *map, const coffer_mlyze *trace)
{
    const coffer__mlyze_block *last;
    if (map->count == 0)
        return trace->area;
    last = &map->items[map->count - 1];
    return last->offset + COFFER__MLYZE_BLOCK_HEADER + last->stored_size;
}

/* The blocks end at the offset because of `why`. A truncated block there may have whole events. */
static coffer_status end_walk(coffer__mlyze_map *map, const coffer_mlyze *trace, uint64_t offset,
                              const coffer_error *why, coffer_error *err)
{
    coffer__mlyze_block cut = { 0 };
    coffer_status status = COFFER_OK;
    if (why->status == COFFER_E_TRUNCATED && trace->area_end - offset > COFFER__MLYZE_BLOCK_HEADER)
        status = coffer__mlyze_find_cut_block(&cut, trace, offset, err);
    if (status)
        return status;
    if (cut.event_count == 0)
        return coffer__fail(err, why->status, offset, "%s (%" PRIu64 " whole events before it)", why->text,
                            map->event_count);
    cut.first_event = map->event_count;
    status = coffer__mlyze_map_add(map, trace, &cut, err);
    if (status)
        return status;
    return coffer__fail(err, why->status, offset,
                        "%s (%" PRIu64 " whole events before the cut, the last %" PRIu32 " unverified)",
                        why->text, map->event_count, cut.event_count);
}

static coffer_status walk_blocks(coffer__mlyze_map *map, const coffer_mlyze *trace, coffer_error *err)
{
    coffer__mlyze_block block;
    coffer_error why = COFFER_ERROR_INIT;
    coffer_status status;
    for (uint64_t offset = end_of_map(map, trace); offset < trace->area_end;
         offset = end_of_map(map, trace)) {
        status = coffer__mlyze_read_block_header(&block, NULL, trace, offset, &why);
        if (coffer__is_about_file(status))
            return end_walk(map, trace, offset, &why, err);
        if (status)
            return coffer__fail_copy(err, &why);
        block.first_event = map->event_count;
        status = coffer__mlyze_map_add(map, trace, &block, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

/* Compares the events found with the counts of the header. */
static void compare_with_header(coffer__mlyze_map *map, const coffer_mlyze *trace)
{
    const coffer__mlyze_header *header = &trace->header;
    uint64_t end;
    if (map->damage.status)
        return;
    if (!coffer__add_u64(&end, trace->area, header->event_length) || end > trace->area_end)
        coffer__fail(&map->damage, COFFER_E_TRUNCATED, trace->area_end,
                     "the header says the events take %" PRIu64 " bytes, file has %" PRIu64
                     " of them (%" PRIu64 " whole events)",
                     header->event_length, (trace->area_end - trace->area), map->event_count);
    else if (header->event_count != 0 && header->event_count != map->event_count)
        coffer__fail(&map->damage, COFFER_E_SIZE_MISMATCH, COFFER__MLYZE_EVENT_COUNT_AT,
                     "the header says %" PRIu64 " events, file has %" PRIu64, header->event_count,
                     map->event_count);
}

coffer_status coffer__mlyze_walk(coffer__mlyze_map *map, const coffer_mlyze *trace, coffer_error *err)
{
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer__mlyze_has_blocks(&trace->header) ? walk_blocks(map, trace, &found)
                                                                    : coffer__mlyze_skim(map, trace, &found);
    if (status && !coffer__is_about_file(status))
        return coffer__fail_copy(err, &found);
    if (!status)
        status = coffer__mlyze_verify_plain(trace, &found);
    if (status && !coffer__is_about_file(status))
        return coffer__fail_copy(err, &found);
    if (status)
        map->damage = found;
    compare_with_header(map, trace);
    return COFFER_OK;
}

/* ---- Accessors ---- */

coffer_status coffer_mlyze_block_count(size_t *out, const coffer_mlyze *trace, coffer_error *err)
{
    const coffer__mlyze_map *map = NULL;
    coffer_status status = coffer__mlyze_get_map(&map, trace, err);
    if (!status)
        *out = map->count;
    return status;
}

coffer_status coffer_mlyze_event_count(uint64_t *out, const coffer_mlyze *trace, coffer_error *err)
{
    const coffer__mlyze_map *map = NULL;
    coffer_status status = coffer__mlyze_get_map(&map, trace, err);
    if (!status)
        *out = map->event_count;
    return status;
}

coffer__mlyze_block coffer__mlyze_block_at(const coffer_mlyze *trace, size_t index)
{
    const coffer__mlyze_map *map = atomic_load(&trace->blocks->map);
    coffer__mlyze_block block = { 0 }, header;
    if (!map || index >= map->count)
        return block;
    block = map->items[index];
    if (block.raw_size == 0 &&
        coffer__mlyze_read_block_header(&header, NULL, trace, block.offset, NULL) == COFFER_OK) {
        block.raw_size = header.raw_size;
        block.stored_size = header.stored_size;
    }
    return block;
}

coffer_status coffer_mlyze_damage(const coffer_mlyze *trace, coffer_error *err)
{
    const coffer__mlyze_map *map = NULL;
    coffer_status status = coffer__mlyze_get_map(&map, trace, err);
    if (status || !map->damage.status)
        return status;
    if (err)
        *err = map->damage;
    return map->damage.status;
}

/* ---- Pieces of a plain trace ---- */

typedef struct skimmer {
    const coffer_mlyze *trace;
    coffer_mlyze_events columns; /* scratch */
    coffer__mlyze_decoder decoder;
    coffer__mlyze_stop stop;
} skimmer;

/* Decodes from block->offset and block->time on: as many whole events as fit into a block, or one that is
 * larger. */
static coffer_status skim_piece(coffer__mlyze_block *block, skimmer *s, coffer_error *err)
{
    uint64_t left = s->trace->area_end - block->offset;
    const uint8_t *bytes = NULL;
    size_t len = 0;
    block->raw_size = left < COFFER__MLYZE_BLOCK_RAW_MAX ? (uint32_t)left : COFFER__MLYZE_BLOCK_RAW_MAX;
    block->stored_size = block->raw_size;
    coffer_status status = coffer__mlyze_block_bytes(&bytes, &len, &s->columns, s->trace, block, err);
    if (status)
        return status;
    s->columns.count = 0;
    s->decoder = (coffer__mlyze_decoder){ .at = bytes,
                                          .end = bytes + len,
                                          .time = block->time,
                                          .extensions = coffer__mlyze_has_extensions(&s->trace->header),
                                          .out = &s->columns };
    s->stop = coffer__mlyze_decode_events(&s->decoder);
    if (s->stop == COFFER__MLYZE_STOP_TRUNCATED && s->columns.count == 0) {
        s->decoder.beyond = (left < UINT32_MAX ? left : UINT32_MAX) - len;
        s->stop = coffer__mlyze_decode_events(&s->decoder);
    }
    block->event_count = (uint32_t)s->columns.count;
    block->raw_size = (uint32_t)((uint64_t)(s->decoder.at - bytes) + s->decoder.overrun);
    block->stored_size = block->raw_size;
    return coffer_source_intact(s->trace->source, err);
}

static coffer_status skim_all(coffer__mlyze_map *map, skimmer *s, coffer_error *err)
{
    coffer__mlyze_block block = { .offset = s->trace->area };
    coffer_status status;
    while (block.offset < s->trace->area_end) {
        bool cut_by_us;
        status = skim_piece(&block, s, err);
        if (!status && block.event_count > 0)
            status = coffer__mlyze_map_add(map, s->trace, &block, err);
        if (status)
            return status;
        cut_by_us = s->stop == COFFER__MLYZE_STOP_TRUNCATED && block.event_count > 0;
        block.offset += block.raw_size;
        if (!cut_by_us && s->stop)
            return coffer__mlyze_fail_stop(err, s->stop, &s->decoder, block.offset, map->event_count);
        block.first_event = map->event_count;
        block.time = s->decoder.time;
    }
    return COFFER_OK;
}

coffer_status coffer__mlyze_skim(coffer__mlyze_map *map, const coffer_mlyze *trace, coffer_error *err)
{
    skimmer s = { .trace = trace, .columns = COFFER_MLYZE_EVENTS_INIT };
    coffer_status status = coffer__mlyze_events_reserve(&s.columns, err);
    if (!status)
        status = skim_all(map, &s, err);
    coffer_mlyze_events_free(&s.columns);
    return status;
}
