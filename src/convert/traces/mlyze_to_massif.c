/* Snapshots for ms_print and massif-visualizer: what was live over time, with the tree of stacks at the peak
 * and at the end. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/traces/mlyze_export.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <string.h>

#define DEFAULT_SNAPSHOTS 100
#define MAX_SNAPSHOTS 100000
#define DEFAULT_DEPTH 30
#define MAX_DEPTH 200
#define DEFAULT_THRESHOLD 1

typedef struct massif_export {
    coffer__mlyze_export export;
    coffer_mlyze_timeline *timeline;
    uint64_t snapshots, depth;
    double threshold; /* percent */
    size_t written;
} massif_export;

static coffer_status take_settings(massif_export *writer, coffer_error *err)
{
    const char *percent = coffer__job_setting(writer->export.job, "threshold");
    coffer__number number;
    writer->snapshots = DEFAULT_SNAPSHOTS;
    writer->depth = DEFAULT_DEPTH;
    writer->threshold = DEFAULT_THRESHOLD;
    if (percent) {
        bool good = coffer__number_parse(&number, percent, strlen(percent));
        writer->threshold = good ? coffer__number_as_f64(&number) : -1;
        if (!(writer->threshold >= 0 && writer->threshold <= 100))
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "threshold: expected a percentage, not \"%s\"", percent);
    }
    coffer_status status =
        coffer__job_number(&writer->snapshots, writer->export.job, "snapshots", MAX_SNAPSHOTS, err);
    if (!status)
        status = coffer__job_number(&writer->depth, writer->export.job, "depth", MAX_DEPTH, err);
    if (writer->snapshots == 0)
        writer->snapshots = 1;
    return status;
}

/* The time of an event that begins or ends the window; *time stays unchanged past the end. */
static coffer_status time_of(uint64_t *time, massif_export *writer, uint64_t event, coffer_error *err)
{
    size_t block, count;
    coffer_mlyze_events *events = &writer->export.events;
    coffer_status status = coffer_mlyze_block_count(&count, writer->export.trace, err);
    if (!status)
        status = coffer_mlyze_block_of_event(&block, writer->export.trace, event, err);
    if (status || block >= count)
        return status;
    status = coffer_mlyze_read_block(events, writer->export.trace, block, err);
    if (!status && event >= events->first && event - events->first < events->count)
        *time = events->time[event - events->first];
    return status;
}

static coffer_status draw(massif_export *writer, coffer_error *err)
{
    coffer_mlyze_timeline_opts opts = COFFER_MLYZE_TIMELINE_OPTS_INIT;
    coffer_status status = COFFER_OK;
    opts.width = (uint32_t)writer->snapshots;
    opts.exact = true;
    opts.limits = &writer->export.job->limits;
    opts.progress = writer->export.job->progress;
    if (writer->export.begin > 0)
        status = time_of(&opts.begin_us, writer, writer->export.begin, err);
    if (!status && writer->export.end != UINT64_MAX)
        status = time_of(&opts.end_us, writer, writer->export.end, err);
    return status ? status : coffer_mlyze_timeline_new(&writer->timeline, writer->export.trace, &opts, err);
}

/* ---- Snapshots ---- */

static void put_snapshot(massif_export *writer, uint64_t time, uint64_t bytes, const char *tree)
{
    coffer__buffer_printf(&writer->export.out,
                          "#-----------\nsnapshot=%zu\n#-----------\ntime=%" PRIu64 "\nmem_heap_B=%" PRIu64
                          "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
                          writer->written++, time, bytes, tree);
}

/* ---- Trees ---- */

static void put_line(massif_export *writer, uint32_t depth, size_t children, uint64_t bytes)
{
    coffer__buffer_fill(&writer->export.out, ' ', depth);
    coffer__buffer_printf(&writer->export.out, "n%zu: %" PRIu64 " ", children, bytes);
}

/* Writes the node and everything below it, at most MAX_DEPTH levels. Children are in descending order: those
 * from `threshold` bytes on get lines of their own, the others one line together. */
static void put_node(massif_export *writer, const coffer_mlyze_tree *tree, size_t index, double threshold)
{
    const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(tree, index), *child;
    coffer__buffer *out = &writer->export.out;
    size_t large = 0, small = 0;
    uint64_t small_bytes = 0;
    for (size_t i = node->first_child; (child = coffer_mlyze_tree_at(tree, i)) && child->bytes > 0;
         i = child->next_sibling) {
        if ((double)child->bytes >= threshold) {
            large++;
        } else {
            small++;
            small_bytes += child->bytes;
        }
    }
    put_line(writer, node->depth, large + (small > 0), node->bytes);
    if (node->depth == 0)
        coffer__buffer_printf(out, "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.");
    else
        coffer__mlyze_put_label(out, &writer->export, &node->frame);
    coffer__buffer_append(out, "\n", 1);
    for (size_t i = node->first_child; large > 0; large--) {
        put_node(writer, tree, i, threshold);
        i = coffer_mlyze_tree_at(tree, i)->next_sibling;
    }
    if (small > 0) {
        put_line(writer, node->depth + 1, 0, small_bytes);
        coffer__buffer_printf(out, "in %zu place%s, all below massif's threshold (%.2f%%)\n", small,
                              small == 1 ? "" : "s", writer->threshold);
    }
}

static coffer_status put_detailed(massif_export *writer, uint64_t time, uint64_t bytes,
                                  coffer_mlyze_measure measure, coffer_error *err)
{
    coffer_mlyze_tree_opts opts = COFFER_MLYZE_TREE_OPTS_INIT;
    coffer_mlyze_tree *tree = NULL;
    opts.measure = measure;
    opts.lines = true;
    opts.inverted = true;
    opts.max_depth = (uint32_t)writer->depth;
    coffer_status status =
        coffer_mlyze_tree_new(&tree, writer->export.trace, writer->export.stats, &opts, err);
    if (status)
        return status;
    put_snapshot(writer, time, bytes, measure == COFFER_MLYZE_MEASURE_PEAK ? "peak" : "detailed");
    put_node(writer, tree, 0, (double)bytes * writer->threshold / 100);
    coffer_mlyze_tree_free(tree);
    return coffer__mlyze_export_drain(&writer->export, err);
}

static coffer_status put_snapshots(massif_export *writer, coffer_error *err)
{
    const coffer_mlyze_totals *totals = coffer_mlyze_stats_totals(writer->export.stats);
    const coffer_mlyze_timeline *timeline = writer->timeline;
    bool peak_written = totals->peak_bytes == 0;
    coffer_status status = COFFER_OK;
    uint64_t last = coffer_mlyze_timeline_begin_us(timeline);
    if (writer->export.begin == 0)
        put_snapshot(writer, 0, 0, "empty");
    for (size_t i = 0; !status && i < coffer_mlyze_timeline_count(timeline); i++) {
        bool is_last = i + 1 == coffer_mlyze_timeline_count(timeline);
        uint64_t end = is_last ? coffer_mlyze_timeline_end_us(timeline)
                               : coffer_mlyze_timeline_at(timeline, i + 1)->time_us;
        if (!peak_written && (totals->peak_time_us < end || is_last)) {
            last = totals->peak_time_us > last ? totals->peak_time_us : last;
            status = put_detailed(writer, last, totals->peak_bytes, COFFER_MLYZE_MEASURE_PEAK, err);
            peak_written = true;
        }
        last = end > last ? end : last;
        if (!status && !is_last)
            put_snapshot(writer, last, coffer_mlyze_timeline_at(timeline, i)->live_bytes, "empty");
    }
    if (!status)
        status = put_detailed(writer, last, totals->live_bytes_at_end, COFFER_MLYZE_MEASURE_LIVE, err);
    return status ? status : coffer__mlyze_export_commit(&writer->export, err);
}

coffer_status coffer__mlyze_to_massif(const coffer__convert_job *job, coffer_error *err)
{
    massif_export writer = { .timeline = NULL };
    coffer_status status = coffer__mlyze_export_open(&writer.export, job, COFFER__MLYZE_EXPORT_PROFILE,
                                                     COFFER__PACKING_NONE, err);
    if (!status)
        status = take_settings(&writer, err);
    if (!status)
        status = draw(&writer, err);
    if (!status) {
        coffer__buffer_printf(&writer.export.out, "desc: coffer\ncmd: ");
        coffer__mlyze_put_line_text(&writer.export.out, coffer__mlyze_export_command(&writer.export), 0);
        /* ms_print knows instructions, milliseconds and bytes; microseconds are written as instructions. */
        coffer__buffer_printf(&writer.export.out, "\ntime_unit: i\n");
        status = put_snapshots(&writer, err);
    }
    coffer_mlyze_timeline_free(writer.timeline);
    coffer__mlyze_export_close(&writer.export);
    return status;
}
