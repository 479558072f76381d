#include "formats/mlyze/analyze/mlyze_pair.h"

#define PREFETCH_AHEAD 12 /* events whose slots are on their way from memory */

static void note(uint64_t *count, uint64_t *first, uint64_t event)
{
    if ((*count)++ == 0)
        *first = event;
}

static coffer_status follow_alloc(coffer__mlyze_level *level, coffer__mlyze_live *live, uint64_t address,
                                  uint64_t size, uint64_t event, coffer_error *err)
{
    coffer__mlyze_held block = { .size = size }, old;
    coffer__mlyze_put what;
    coffer_status status = coffer__mlyze_live_put(&what, live, coffer__mlyze_hash(&live->key, address),
                                                  address, &block, &old, err);
    if (status)
        return status;
    if (what == COFFER__MLYZE_PUT_REPLACED) {
        note(&level->double_allocs, &level->first_double_alloc, event);
        level->bytes -= old.size;
        level->allocs--;
    }
    level->bytes += size;
    level->allocs++;
    if (level->bytes > level->high_bytes)
        level->high_bytes = level->bytes;
    return COFFER_OK;
}

static void follow_free(coffer__mlyze_level *level, coffer__mlyze_live *live, uint64_t address,
                        uint64_t event)
{
    coffer__mlyze_held block;
    if (coffer__mlyze_live_take(&block, live, coffer__mlyze_hash(&live->key, address), address)) {
        level->bytes -= block.size;
        level->allocs--;
    } else {
        note(&level->unknown_frees, &level->first_unknown_free, event);
    }
}

coffer_status coffer__mlyze_follow(coffer__mlyze_level *level, coffer__mlyze_live *live,
                                   const coffer_mlyze_events *events, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < events->count && !status; i++) {
        if (i + PREFETCH_AHEAD < events->count) {
            uint64_t hash = coffer__mlyze_hash(&live->key, events->address[i + PREFETCH_AHEAD]);
            coffer__mlyze_prefetch(&live->parts[hash % COFFER__MLYZE_PARTS], hash);
        }
        if (events->type[i] > COFFER_MLYZE_FREE || events->address[i] == 0)
            continue;
        if (events->type[i] == COFFER_MLYZE_ALLOC)
            status = follow_alloc(level, live, events->address[i], events->size[i], events->first + i, err);
        else
            follow_free(level, live, events->address[i], events->first + i);
    }
    return status;
}
