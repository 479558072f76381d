#include "formats/mlyze/mlyze_private.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/work.h"
#include "formats/mlyze/analyze/mlyze_live.h"

#include <pthread.h>

struct coffer__mlyze_built {
    pthread_mutex_t lock;
    coffer_mlyze_index_entry *entries; /* one for each block of the map; NULL = not built */
    /* The index that coffer_mlyze_load_index found last, here or in a map. */
    const coffer_mlyze_index_entry *loaded;
    size_t loaded_count;
};

coffer_status coffer__mlyze_built_new(coffer__mlyze_built **out, coffer_error *err)
{
    coffer__mlyze_built *built = coffer__calloc(1, sizeof *built);
    if (!built)
        return coffer__fail_no_memory(err, sizeof *built);
    pthread_mutex_init(&built->lock, NULL);
    *out = built;
    return COFFER_OK;
}

void coffer__mlyze_built_free(coffer__mlyze_built *built)
{
    if (!built)
        return;
    pthread_mutex_destroy(&built->lock);
    coffer__free(built->entries);
    coffer__free(built);
}

/* ---- Building ---- */

typedef struct index_builder {
    const coffer_mlyze *trace;
    const coffer__mlyze_map *map;
    coffer_mlyze_index_entry *entries;
    coffer_mlyze_events events;
    coffer__mlyze_level level;
    coffer__mlyze_live live;
    coffer__mlyze_budget budget;
} index_builder;

/* A damaged block does not change what is live. */
static coffer_status follow_block(index_builder *builder, size_t index, coffer_error *err)
{
    const coffer__mlyze_block *block = &builder->map->items[index];
    coffer_status status = coffer_mlyze_read_block(&builder->events, builder->trace, index, err);
    builder->entries[index] =
        (coffer_mlyze_index_entry){ .offset = block->offset,
                                    .first_event = block->first_event,
                                    .time = block->time,
                                    .live_bytes = coffer__mlyze_narrow(builder->level.bytes),
                                    .live_allocs = builder->level.allocs };
    builder->level.high_bytes = builder->level.bytes;
    builder->level.high_allocs = builder->level.allocs;
    if (!status)
        status = coffer__mlyze_follow(&builder->level, &builder->live, &builder->events, err);
    else if (coffer__is_about_file(status))
        status = COFFER_OK;
    builder->entries[index].high_bytes = coffer__mlyze_narrow(builder->level.high_bytes);
    builder->entries[index].high_allocs = builder->level.high_allocs;
    return status;
}

static coffer_status follow_all(index_builder *builder, const coffer_progress *progress, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < builder->map->count; i++) {
        status = coffer__progress_step(progress, i, builder->map->count, err);
        if (!status)
            status = follow_block(builder, i, err);
    }
    return status;
}

static coffer_status build(coffer_mlyze_index_entry **out, const coffer_mlyze *trace,
                           const coffer__mlyze_map *map, const coffer_progress *progress, coffer_error *err)
{
    index_builder builder = { .trace = trace, .map = map, .events = COFFER_MLYZE_EVENTS_INIT };
    coffer_status status;
    builder.entries = coffer__alloc_array(map->count ? map->count : 1, sizeof *builder.entries);
    if (!builder.entries)
        return coffer__fail_no_memory(err, (uint64_t)map->count * sizeof *builder.entries);
    builder.budget.max =
        trace->limits.memory_bytes < SIZE_MAX ? (size_t)trace->limits.memory_bytes : SIZE_MAX;
    coffer__mlyze_live_init(&builder.live, coffer__mlyze_new_key(), &builder.budget);
    status = follow_all(&builder, progress, err);
    coffer__mlyze_live_free(&builder.live);
    coffer_mlyze_events_free(&builder.events);
    if (status)
        coffer__free(builder.entries);
    else
        *out = builder.entries;
    return status;
}

/* ---- Accessors ---- */

/* The index file, if it has exactly the blocks of the map. */
static coffer_mlyze_index_entry *load_matching(const coffer_mlyze *trace, const coffer__mlyze_map *map)
{
    coffer_mlyze_index_entry *entries = NULL;
    size_t count = 0;
    bool same;
    if (!coffer__mlyze_index_load(&entries, &count, trace))
        return NULL;
    same = count == map->count;
    for (size_t i = 0; same && i < count; i++)
        same = entries[i].offset == map->items[i].offset &&
               entries[i].first_event == map->items[i].first_event && entries[i].time == map->items[i].time;
    if (same)
        return entries;
    coffer__free(entries);
    return NULL;
}

static coffer_status get_built(const coffer_mlyze_index_entry **out, const coffer_mlyze *trace,
                               const coffer__mlyze_map *map, const coffer_progress *progress,
                               coffer_error *err)
{
    coffer__mlyze_built *built = trace->built;
    coffer_status status = COFFER_OK;
    pthread_mutex_lock(&built->lock);
    if (!built->entries)
        built->entries = load_matching(trace, map);
    if (!built->entries) {
        status = build(&built->entries, trace, map, progress, err);
        uint64_t lost_blocks = 0, lost_events = 0;
        coffer_mlyze_lost(&lost_blocks, &lost_events, trace);
        /* The index of a damaged trace would hide the damage from the next reader. */
        if (!status && lost_blocks == 0)
            coffer__mlyze_index_save(trace, built->entries, map->count);
    }
    *out = built->entries;
    pthread_mutex_unlock(&built->lock);
    return status;
}

coffer_status coffer__mlyze_get_index(const coffer_mlyze_index_entry **out, size_t *count,
                                      const coffer_mlyze *trace, const coffer_progress *progress,
                                      coffer_error *err)
{
    const coffer__mlyze_map *map = NULL;
    const coffer_mlyze_index_entry *entries;
    coffer_status status = coffer__mlyze_get_map(&map, trace, err);
    if (status)
        return status;
    entries = map->entries;
    if (!entries)
        status = get_built(&entries, trace, map, progress, err);
    if (status)
        return status;
    *out = entries;
    *count = map->count;
    return COFFER_OK;
}

coffer_status coffer_mlyze_load_index(size_t *count, const coffer_mlyze *trace,
                                      const coffer_mlyze_index_opts *opts, coffer_error *err)
{
    coffer_mlyze_index_opts options = COFFER_MLYZE_INDEX_OPTS_INIT;
    const coffer_mlyze_index_entry *entries = NULL;
    size_t found = 0;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = coffer__mlyze_get_index(&entries, &found, trace, options.progress, err);
    if (status)
        return status;
    pthread_mutex_lock(&trace->built->lock);
    trace->built->loaded = entries;
    trace->built->loaded_count = found;
    pthread_mutex_unlock(&trace->built->lock);
    *count = found;
    return COFFER_OK;
}

const coffer_mlyze_index_entry *coffer_mlyze_index_at(const coffer_mlyze *trace, size_t index)
{
    pthread_mutex_lock(&trace->built->lock);
    const coffer_mlyze_index_entry *entry =
        index < trace->built->loaded_count ? &trace->built->loaded[index] : NULL;
    pthread_mutex_unlock(&trace->built->lock);
    return entry;
}

COFFER__INIT_FUNCTION(coffer_mlyze_index_opts, COFFER_MLYZE_INDEX_OPTS_INIT)
