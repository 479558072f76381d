/* A plain trace has no blocks: one pass cuts it into pieces that can be read like blocks. */
#include "formats/mlyze/mlyze_private.h"

#include "base/fail.h"
#include "formats/mlyze/read/mlyze_decode.h"

typedef struct skimmer {
    const coffer_mlyze *trace;
    coffer_mlyze_events columns; /* scratch */
    coffer__mlyze_decoder decoder;
    coffer__mlyze_stop stop;
} skimmer;

/* Decodes from block->offset and block->time on: as many whole events as a block holds, or one that is larger
 * than that. */
static coffer_status skim_piece(coffer__mlyze_block *block, skimmer *s, coffer_error *err)
{
    uint64_t left = s->trace->area_end - block->offset;
    const uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status;
    block->raw_size = left < COFFER__MLYZE_BLOCK_RAW_MAX ? (uint32_t)left : COFFER__MLYZE_BLOCK_RAW_MAX;
    block->stored_size = block->raw_size;
    if ((status = coffer__mlyze_block_bytes(&bytes, &len, &s->columns, s->trace, block, err)))
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
        if ((status = skim_piece(&block, s, err)) ||
            (block.event_count > 0 && (status = coffer__mlyze_map_add(map, s->trace, &block, err))))
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
    if (status == COFFER_OK)
        status = skim_all(map, &s, err);
    coffer_mlyze_events_free(&s.columns);
    return status;
}
