#include "formats/mlyze/mlyze_private.h"

#include "base/report.h"

#include <inttypes.h>

/* Events are counted by type in traces of at most this many blocks, which takes a fraction of a second. */
#define COUNTED_BLOCKS 4096
/* Values of the metadata are shown up to this number of entries, and so deep. */
enum { LARGE_VALUE = 100, DEPTH_SHOWN = 8 };

typedef struct census {
    uint64_t allocs, frees, collections, markers, unknown;
    uint64_t last_time;
    uint64_t allocated; /* bytes */
} census;

static void count_block(census *counts, const coffer_mlyze_events *events)
{
    uint64_t of_type[COFFER_MLYZE_RSS + 2] = { 0 };
    for (size_t i = 0; i < events->count; i++) {
        of_type[events->type[i] > COFFER_MLYZE_RSS ? COFFER_MLYZE_RSS + 1 : events->type[i]]++;
        counts->allocated += events->type[i] == COFFER_MLYZE_ALLOC ? events->size[i] : 0;
    }
    counts->allocs += of_type[COFFER_MLYZE_ALLOC];
    counts->frees += of_type[COFFER_MLYZE_FREE];
    counts->collections += of_type[COFFER_MLYZE_GC];
    counts->markers += of_type[COFFER_MLYZE_MARKER];
    counts->unknown += of_type[COFFER_MLYZE_RSS + 1];
    if (events->count > 0)
        counts->last_time = events->time[events->count - 1];
}

/* Damaged blocks are left out: check reports them. */
static coffer_status take_census(census *counts, const coffer_mlyze *trace, size_t first, size_t end,
                                 coffer_error *err)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    coffer_status status = COFFER_OK;
    for (size_t i = first; !status && i < end; i++) {
        status = coffer_mlyze_read_block(&events, trace, i, err);
        if (!status)
            count_block(counts, &events);
        else if (coffer__is_about_file(status))
            status = COFFER_OK;
    }
    coffer_mlyze_events_free(&events);
    return status;
}

/* The sum of a sampled trace is an estimate. */
static void describe_sampling(coffer_node *out, const coffer_mlyze *trace, const census *found)
{
    uint64_t interval = coffer_mlyze_sampling_bytes(trace);
    if (interval == 0)
        return;
    coffer_node_add_u64(out, "sampling_bytes", interval, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "allocated_bytes", found->allocated, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "allocated_error_bytes", coffer_mlyze_sampling_error(trace, found->allocs),
                        COFFER_UNIT_BYTES);
}

static coffer_status describe_events(coffer_node *out, const coffer_mlyze *trace, size_t blocks,
                                     coffer_error *err)
{
    census found = { 0 };
    bool all = blocks <= COUNTED_BLOCKS;
    coffer_status status = take_census(&found, trace, all ? 0 : blocks - 1, blocks, err);
    if (status)
        return status;
    coffer_node_add_u64(out, "duration_us", found.last_time, COFFER_UNIT_MICROSECONDS);
    if (!all)
        return COFFER_OK;
    coffer_node_add_u64(out, "allocs", found.allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "frees", found.frees, COFFER_UNIT_NONE);
    describe_sampling(out, trace, &found);
    coffer_node_add_u64(out, "collections", found.collections, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "markers", found.markers, COFFER_UNIT_NONE);
    if (found.unknown > 0)
        coffer_node_add_u64(out, "unknown_events", found.unknown, COFFER_UNIT_NONE);
    return COFFER_OK;
}

static bool is_table(const coffer__json_value *value)
{
    static const char *const tables[] = { "stack_traces", "files", "functions", "threads" };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (strcmp(value->key, tables[i]) == 0)
            return true;
    }
    return false;
}

static void describe_value(coffer_node *out, const coffer__json_value *value, unsigned depth);

static void describe_children(coffer_node *out, const coffer__json_value *value, unsigned depth)
{
    for (const coffer__json_value *child = coffer__json_first(value); child;
         child = coffer__json_next(value, child))
        describe_value(out, child, depth);
}

static void describe_value(coffer_node *out, const coffer__json_value *value, unsigned depth)
{
    bool is_large = value->as.count > LARGE_VALUE || depth >= DEPTH_SHOWN;
    switch (value->kind) {
    case COFFER__JSON_STRING:
    case COFFER__JSON_NUMBER:
        coffer_node_add_text_len(out, value->key, value->as.string, value->string_len);
        break;
    case COFFER__JSON_U64:
        coffer_node_add_u64(out, value->key, value->as.u64, COFFER_UNIT_NONE);
        break;
    case COFFER__JSON_I64:
        coffer_node_add_i64(out, value->key, value->as.i64, COFFER_UNIT_NONE);
        break;
    case COFFER__JSON_F64:
        coffer_node_add_f64(out, value->key, value->as.f64, COFFER_UNIT_NONE);
        break;
    case COFFER__JSON_BOOL:
        coffer_node_add_bool(out, value->key, value->as.boolean);
        break;
    case COFFER__JSON_NULL:
        coffer_node_add_null(out, value->key);
        break;
    case COFFER__JSON_ARRAY:
    case COFFER__JSON_OBJECT:
        if (is_large)
            coffer_node_add_printf(out, value->key, "%" PRIu64 " entries ('coffer get' prints them)",
                                   (uint64_t)value->as.count);
        else if (value->kind == COFFER__JSON_ARRAY)
            describe_children(coffer_node_add_list(out, value->key), value, depth + 1);
        else
            describe_children(coffer_node_add_map(out, value->key), value, depth + 1);
        break;
    }
}

/* The other keys of the metadata; large values by their size only. */
static void describe_metadata(coffer_node *out, const coffer_mlyze *trace)
{
    const coffer__json_value *root = coffer__json_root(trace->metadata.json), *value;
    coffer_node *map = NULL;
    for (value = coffer__json_first(root); value; value = coffer__json_next(root, value)) {
        if (is_table(value))
            continue;
        if (!map)
            map = coffer_node_add_map(out, "metadata");
        describe_value(map, value, 0);
    }
}

static void describe_header(coffer_node *out, const coffer_mlyze *trace, uint64_t events)
{
    coffer_node_add_u64(out, "version", trace->header.version, COFFER_UNIT_NONE);
    coffer_node_add_bool(out, "compressed", coffer_mlyze_compressed(trace));
    if (coffer__mlyze_has_archive(&trace->header))
        coffer_node_add_text(out, "form", "archive");
    coffer_node_add_bool(out, "checksums", coffer__mlyze_has_sums(&trace->header));
    coffer_node_add_u64(out, "flags", trace->header.flags, COFFER_UNIT_FLAGS);
    coffer_node_add_u64(out, "start_time_us", trace->header.start_time, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "events", events, COFFER_UNIT_NONE);
}

static void describe_tables(coffer_node *out, const coffer_mlyze *trace)
{
    const coffer__mlyze_metadata *metadata = &trace->metadata;
    coffer_node_add_u64(out, "stacks", metadata->stacks.ids.count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "files", metadata->files.ids.count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "functions", metadata->functions.ids.count, COFFER_UNIT_NONE);
    if (coffer__mlyze_has_tables(&trace->header)) {
        coffer_node_add_text(out, "metadata_form", metadata->is_compact ? "call tree, zstd" : "JSON, zstd");
        coffer_node_add_u64(out, "metadata_bytes", trace->header.metadata_len, COFFER_UNIT_BYTES);
        return;
    }
    coffer_node_add_u64(out, "metadata_bytes", metadata->text_len, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "metadata_room", trace->header.metadata_len - metadata->text_len,
                        COFFER_UNIT_BYTES);
}

static coffer_status describe_all(coffer_node *out, const coffer_mlyze *trace, coffer_error *err)
{
    const char *profile = coffer_mlyze_profile_name(trace);
    coffer_error damage = COFFER_ERROR_INIT;
    uint64_t events = 0, raw = 0;
    size_t blocks = 0;
    coffer_status status = coffer_mlyze_event_count(&events, trace, err);
    if (!status)
        status = coffer_mlyze_block_count(&blocks, trace, err);
    if (status)
        return status;
    describe_header(out, trace, events);
    status = describe_events(out, trace, blocks, err);
    if (status)
        return status;
    describe_tables(out, trace);
    coffer_node_add_u64(out, "events_offset", trace->area, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(out, "events_bytes", trace->area_end - trace->area, COFFER_UNIT_BYTES);
    if (coffer_mlyze_compressed(trace)) {
        coffer_node_add_u64(out, "blocks", blocks, COFFER_UNIT_NONE);
        for (size_t i = 0; i < blocks && blocks <= COUNTED_BLOCKS; i++)
            raw += coffer__mlyze_block_at(trace, i).raw_size;
        if (raw > 0)
            coffer_node_add_u64(out, "raw_bytes", raw, COFFER_UNIT_BYTES);
    }
    describe_metadata(out, trace);
    if (profile)
        coffer_node_add_text(out, "profile", profile);
    if (coffer_mlyze_damage(trace, &damage))
        coffer_node_add_text(out, "damage", damage.text);
    return COFFER_OK;
}

coffer_status coffer__mlyze_describe(coffer_node *out, coffer_source *src, const coffer_describe_opts *opts,
                                     coffer_error *err)
{
    coffer_mlyze *trace = NULL;
    coffer_status status = coffer__mlyze_open_beside_index(&trace, src, opts->limits, err);
    if (status)
        return status;
    status = describe_all(out, trace, err);
    coffer_mlyze_close(trace);
    return status ? status : coffer_node_status(out, err);
}
