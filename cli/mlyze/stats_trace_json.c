#include "stats_trace.h"

static void add_totals(coffer_node *root, const coffer_mlyze_totals *totals)
{
    coffer_node_add_u64(root, "events", totals->events, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "allocs", totals->allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "frees", totals->frees, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "duration_us", totals->duration_us, COFFER_UNIT_MICROSECONDS);
    coffer_node_add_u64(root, "total_allocated_bytes", totals->total_allocated_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "peak_bytes", totals->peak_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "peak_allocs", totals->peak_allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "peak_event", totals->peak_event, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "peak_time_us", totals->peak_time_us, COFFER_UNIT_MICROSECONDS);
    coffer_node_add_u64(root, "live_bytes_at_end", totals->live_bytes_at_end, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "live_allocs_at_end", totals->live_allocs_at_end, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "temporary_allocs", totals->temporary_allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "temporary_bytes", totals->temporary_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "reallocs", totals->reallocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "reused_addresses", totals->reused_addresses, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "unknown_frees", totals->unknown_frees, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "double_allocs", totals->double_allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "nowhere_allocs", totals->nowhere_allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "unknown_events", totals->unknown_events, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "lost_events", totals->lost_events, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "lost_blocks", totals->lost_blocks, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "collections", totals->collections, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "collected_objects", totals->collected_objects, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "collected_bytes", totals->collected_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "peak_rss_bytes", totals->peak_rss_bytes, COFFER_UNIT_BYTES);
}

static void add_completeness(coffer_node *root, const coffer_mlyze *trace)
{
    coffer_error damage = COFFER_ERROR_INIT;
    uint64_t blocks = 0, events = 0;
    coffer_mlyze_lost(&blocks, &events, trace);
    bool bad = coffer_mlyze_damage(trace, &damage) || coffer_mlyze_repaired(trace, &damage);
    coffer_node_add_bool(root, "complete", !bad && blocks == 0);
    if (bad)
        coffer_node_add_text(root, "damage", damage.text);
}

/* Buckets that are not empty; "from" is their smallest value. */
static void add_histogram(coffer_node *root, const char *name, const char *from,
                          const coffer_mlyze_histogram *histogram)
{
    coffer_node *list = coffer_node_add_list(root, name);
    for (unsigned i = 0; i < COFFER_MLYZE_BUCKETS; i++) {
        if (!histogram->count[i])
            continue;
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_u64(map, from, i ? UINT64_C(1) << (i - 1) : 0, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "allocs", histogram->count[i], COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "bytes", histogram->bytes[i], COFFER_UNIT_BYTES);
    }
}

static void add_threads(coffer_node *root, const stack_report *top)
{
    coffer_node *list = coffer_node_add_list(root, "threads");
    for (size_t i = 0; i < coffer_mlyze_stats_thread_count(top->stats); i++) {
        const coffer_mlyze_thread_row *row = coffer_mlyze_stats_thread_at(top->stats, i);
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_u64(map, "thread", row->thread, COFFER_UNIT_OFFSET);
        coffer_node_add_text(map, "name", row->name);
        coffer_node_add_u64(map, "allocs", row->allocs, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "allocated_bytes", row->allocated_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "peak_bytes", row->peak_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "live_bytes", row->live_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "live_allocs", row->live_allocs, COFFER_UNIT_NONE);
    }
}

static void add_markers(coffer_node *root, const stack_report *top)
{
    coffer_node *list = coffer_node_add_list(root, "markers");
    for (size_t i = 0; i < coffer_mlyze_stats_mark_count(top->stats); i++) {
        const coffer_mlyze_mark *mark = coffer_mlyze_stats_mark_at(top->stats, i);
        if (mark->type != COFFER_MLYZE_MARKER)
            continue;
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "name", coffer_mlyze_function_name(top->trace, mark->id));
        coffer_node_add_u64(map, "event", mark->event, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "time_us", mark->time_us, COFFER_UNIT_MICROSECONDS);
        coffer_node_add_u64(map, "live_bytes", mark->live_bytes, COFFER_UNIT_BYTES);
    }
}

coffer_status stats_trace_add(coffer_node *root, const stack_report *top, const char *path, coffer_error *err)
{
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "mlyze");
    add_totals(root, coffer_mlyze_stats_totals(top->stats));
    add_completeness(root, top->trace);
    add_histogram(root, "sizes", "from_bytes", coffer_mlyze_stats_sizes(top->stats));
    add_histogram(root, "lifetimes", "from_us", coffer_mlyze_stats_lifetimes(top->stats));
    add_threads(root, top);
    add_markers(root, top);
    return stack_report_add(root, top, err);
}
