#include "formats/mlyze/analyze/mlyze_diff.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Compares two traces phase by phase, by the markers they share. */

#define MOST_MARKERS 1000 /* that differ: the time is quadratic in their number */

/* Pairs of phases that begin with the same marker, in order; the first phases always match. */
typedef struct pairing {
    size_t (*pairs)[2];
    size_t count;
} pairing;

static size_t phase_count(const coffer__mlyze_comparison *cmp, unsigned side)
{
    return coffer_mlyze_stats_phase_count(cmp->side[side].stats);
}

static const coffer_mlyze_phase *phase_at(const coffer__mlyze_comparison *cmp, unsigned side, size_t index)
{
    return coffer_mlyze_stats_phase_at(cmp->side[side].stats, index);
}

static bool same_marker(const coffer__mlyze_comparison *cmp, size_t a, size_t b)
{
    return coffer__mlyze_function_number(cmp, 0, phase_at(cmp, 0, a)->id) ==
           coffer__mlyze_function_number(cmp, 1, phase_at(cmp, 1, b)->id);
}

/* The longest common subsequence of markers: lengths[i × width + j] is its length from a's marker i and b's
 * marker j on. */
static coffer_status pair_longest(pairing *out, const coffer__mlyze_comparison *cmp, size_t from,
                                  size_t a_end, size_t b_end, coffer_error *err)
{
    size_t height = a_end - from + 1, width = b_end - from + 1, a = from, b = from;
    uint16_t *lengths = coffer__calloc(height * width, sizeof *lengths);
    if (!lengths)
        return coffer__fail_no_memory(err, height * width * sizeof *lengths);
    for (size_t i = a_end - from; i-- > 0;) {
        for (size_t k = b_end - from; k-- > 0;) {
            uint16_t skip_a = lengths[(i + 1) * width + k], skip_b = lengths[i * width + k + 1];
            lengths[i * width + k] = same_marker(cmp, from + i, from + k)
                                         ? (uint16_t)(lengths[(i + 1) * width + k + 1] + 1)
                                     : skip_a > skip_b ? skip_a
                                                       : skip_b;
        }
    }
    while (a < a_end && b < b_end) {
        if (same_marker(cmp, a, b)) {
            out->pairs[out->count][0] = a++;
            out->pairs[out->count++][1] = b++;
        } else if (lengths[(a - from + 1) * width + b - from] >= lengths[(a - from) * width + b - from + 1]) {
            a++;
        } else {
            b++;
        }
    }
    coffer__free(lengths);
    return COFFER_OK;
}

static coffer_status pair_phases(pairing *out, const coffer__mlyze_comparison *cmp, coffer_error *err)
{
    size_t a_end = phase_count(cmp, 0), b_end = phase_count(cmp, 1), same = 1;
    size_t most = a_end < b_end ? a_end : b_end;
    out->pairs = coffer__alloc_array(most, sizeof *out->pairs);
    if (!out->pairs)
        return coffer__fail_no_memory(err, most * sizeof *out->pairs);
    while (same < most && same_marker(cmp, same, same))
        same++;
    for (; out->count < same; out->count++)
        out->pairs[out->count][0] = out->pairs[out->count][1] = out->count;
    if (same == most || a_end - same > MOST_MARKERS || b_end - same > MOST_MARKERS)
        return COFFER_OK;
    return pair_longest(out, cmp, same, a_end, b_end, err);
}

/* From the phase of one pair up to the phase of the next pair. */
static coffer_mlyze_phase join_phases(const coffer__mlyze_comparison *cmp, unsigned side, size_t first,
                                      size_t end)
{
    coffer_mlyze_phase sum = *phase_at(cmp, side, first);
    for (size_t i = first + 1; i < end; i++) {
        const coffer_mlyze_phase *more = phase_at(cmp, side, i);
        sum.duration_us += more->duration_us;
        sum.allocs += more->allocs;
        sum.allocated_bytes += more->allocated_bytes;
        sum.peak_bytes = more->peak_bytes > sum.peak_bytes ? more->peak_bytes : sum.peak_bytes;
        sum.live_bytes_at_end = more->live_bytes_at_end;
    }
    return sum;
}

static void put_phase(coffer_node *list, const coffer__mlyze_comparison *cmp,
                      const coffer_mlyze_phase phase[2])
{
    coffer_node *map = coffer_node_add_map(list, NULL);
    const char *name = coffer_mlyze_function_name(cmp->side[0].trace, phase[0].id);
    coffer_node_add_text(map, "phase", phase[0].id == UINT64_MAX ? "" : name ? name : "?");
    coffer_node_add_u64(map, "peak_a", phase[0].peak_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(map, "peak_b", phase[1].peak_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(map, "allocated_a", phase[0].allocated_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(map, "allocated_b", phase[1].allocated_bytes, COFFER_UNIT_BYTES);
    for (unsigned side = 0; side < 2; side++)
        coffer_node_add_i64(map, side ? "live_change_b" : "live_change_a",
                            (int64_t)(phase[side].live_bytes_at_end - phase[side].live_bytes_at_begin),
                            COFFER_UNIT_BYTES);
    coffer_node_add_u64(map, "duration_a", phase[0].duration_us, COFFER_UNIT_MICROSECONDS);
    coffer_node_add_u64(map, "duration_b", phase[1].duration_us, COFFER_UNIT_MICROSECONDS);
}

/* "phases", when the traces have markers in common. */
static coffer_status put_phases(coffer_node *out, const coffer__mlyze_comparison *cmp, coffer_error *err)
{
    pairing found = { 0 };
    if (phase_count(cmp, 0) < 2 || phase_count(cmp, 1) < 2)
        return COFFER_OK;
    coffer_status status = pair_phases(&found, cmp, err);
    if (!status && found.count > 1) {
        coffer_node *list = coffer_node_add_list(out, "phases");
        for (size_t i = 0; i < found.count; i++) {
            coffer_mlyze_phase phase[2];
            for (unsigned side = 0; side < 2; side++)
                phase[side] =
                    join_phases(cmp, side, found.pairs[i][side],
                                i + 1 < found.count ? found.pairs[i + 1][side] : phase_count(cmp, side));
            put_phase(list, cmp, phase);
        }
    }
    coffer__free(found.pairs);
    return status;
}

/* ---- Lists of stacks ---- */

enum { GREW, SHRANK, NEW, GONE, KINDS };

static int64_t change_of(const coffer__mlyze_match *match)
{
    return (int64_t)(match->bytes[1] - match->bytes[0]);
}

static int kind_of(const coffer__mlyze_match *match)
{
    if (match->allocs[0] == 0)
        return NEW;
    if (match->allocs[1] == 0)
        return GONE;
    return change_of(match) < 0 ? SHRANK : GREW;
}

static uint64_t size_of_change(const coffer__mlyze_match *match)
{
    int64_t change = change_of(match);
    return change < 0 ? 0 - (uint64_t)change : (uint64_t)change;
}

/* Largest first; equal ones by name, so that the output is deterministic. */
static int by_change(const void *a, const void *b)
{
    const coffer__mlyze_match *x = a, *y = b;
    uint64_t p = size_of_change(x), q = size_of_change(y);
    if (p != q)
        return p < q ? 1 : -1;
    if (x->named_by != y->named_by)
        return x->named_by < y->named_by ? -1 : 1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

static void put_frames(coffer_node *map, const coffer__mlyze_comparison *cmp,
                       const coffer__mlyze_match *match)
{
    const coffer_mlyze *trace = cmp->side[match->named_by].trace;
    size_t depth = 0;
    const coffer_mlyze_frame *frames = NULL;
    coffer_node *list = coffer_node_add_list(map, "frames");
    if (match->stack != SIZE_MAX)
        frames = coffer_mlyze_frames(&depth, trace, match->stack);
    if (depth == 0)
        coffer_node_add_text(list, NULL, "?");
    for (size_t i = 0; i < depth; i++) {
        const char *function = coffer_mlyze_function_name(trace, frames[i].func_id);
        const char *file = coffer_mlyze_file_name(trace, frames[i].file_id);
        if (!function || !*function)
            function = "?";
        if (!file || !*file)
            coffer_node_add_text(list, NULL, function);
        else if (cmp->opts.lines)
            coffer_node_add_printf(list, NULL, "%s (%s:%" PRIu64 ")", function, file, frames[i].line);
        else
            coffer_node_add_printf(list, NULL, "%s (%s)", function, file);
    }
}

static void put_match(coffer_node *list, const coffer__mlyze_comparison *cmp,
                      const coffer__mlyze_match *match)
{
    coffer_node *map = coffer_node_add_map(list, NULL);
    coffer_node_add_i64(map, "change_bytes", change_of(match), COFFER_UNIT_BYTES);
    coffer_node_add_u64(map, "bytes_a", match->bytes[0], COFFER_UNIT_BYTES);
    coffer_node_add_u64(map, "bytes_b", match->bytes[1], COFFER_UNIT_BYTES);
    coffer_node_add_u64(map, "allocs_a", match->allocs[0], COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "allocs_b", match->allocs[1], COFFER_UNIT_NONE);
    put_frames(map, cmp, match);
}

static bool is_same(const coffer__mlyze_match *match)
{
    return match->bytes[0] == match->bytes[1] && match->allocs[0] == match->allocs[1];
}

/* Returns whether the list is empty. */
static bool put_lists(coffer_node *out, const coffer__mlyze_comparison *cmp, coffer__mlyze_match *matches,
                      size_t count)
{
    static const char *const names[KINDS] = { "grew", "shrank", "new", "gone" };
    coffer_node *lists[KINDS], *counts = coffer_node_add_map(out, "stacks");
    uint64_t totals[KINDS] = { 0 }, same = 0;
    if (count > 1)
        qsort(matches, count, sizeof *matches, by_change);
    for (int kind = 0; kind < KINDS; kind++)
        lists[kind] = coffer_node_add_list(out, names[kind]);
    for (size_t i = 0; i < count; i++) {
        int kind = kind_of(&matches[i]);
        if (is_same(&matches[i]))
            same++;
        else if (totals[kind]++ < cmp->opts.max_shown)
            put_match(lists[kind], cmp, &matches[i]);
    }
    for (int kind = 0; kind < KINDS; kind++)
        coffer_node_add_u64(counts, names[kind], totals[kind], COFFER_UNIT_NONE);
    coffer_node_add_u64(counts, "same", same, COFFER_UNIT_NONE);
    return same == count;
}

/* ---- Totals ---- */

typedef struct total {
    const char *name;
    size_t offset;
    coffer_unit unit;
} total;

static const total totals[] = {
    { "events", offsetof(coffer_mlyze_totals, events), COFFER_UNIT_NONE },
    { "allocs", offsetof(coffer_mlyze_totals, allocs), COFFER_UNIT_NONE },
    { "frees", offsetof(coffer_mlyze_totals, frees), COFFER_UNIT_NONE },
    { "total_allocated_bytes", offsetof(coffer_mlyze_totals, total_allocated_bytes), COFFER_UNIT_BYTES },
    { "peak_bytes", offsetof(coffer_mlyze_totals, peak_bytes), COFFER_UNIT_BYTES },
    { "live_bytes_at_end", offsetof(coffer_mlyze_totals, live_bytes_at_end), COFFER_UNIT_BYTES },
    { "live_allocs_at_end", offsetof(coffer_mlyze_totals, live_allocs_at_end), COFFER_UNIT_NONE },
    { "temporary_bytes", offsetof(coffer_mlyze_totals, temporary_bytes), COFFER_UNIT_BYTES },
    { "temporary_allocs", offsetof(coffer_mlyze_totals, temporary_allocs), COFFER_UNIT_NONE },
    { "duration_us", offsetof(coffer_mlyze_totals, duration_us), COFFER_UNIT_MICROSECONDS },
    { "lost_events", offsetof(coffer_mlyze_totals, lost_events), COFFER_UNIT_NONE },
};

static uint64_t total_of(const coffer__mlyze_comparison *cmp, unsigned side, const total *which)
{
    uint64_t value;
    memcpy(&value, (const char *)coffer_mlyze_stats_totals(cmp->side[side].stats) + which->offset,
           sizeof value);
    return value;
}

/* Times and temporaries of a profile are made up, and its times may count something else. */
static bool is_comparable(const coffer__mlyze_comparison *cmp, const total *which)
{
    bool is_time = which->offset == offsetof(coffer_mlyze_totals, duration_us);
    bool is_temporary = which->offset == offsetof(coffer_mlyze_totals, temporary_bytes) ||
                        which->offset == offsetof(coffer_mlyze_totals, temporary_allocs);
    for (unsigned side = 0; side < 2; side++) {
        coffer_mlyze_source_info info = COFFER_MLYZE_SOURCE_INFO_INIT;
        if (coffer_mlyze_source_of(&info, cmp->side[side].trace, NULL) == COFFER_OK &&
            ((is_time && info.time_unit) || (is_temporary && info.synthetic)))
            return false;
    }
    return true;
}

/* Returns whether they are equal, except for the duration. */
static bool put_totals(coffer_node *out, const coffer__mlyze_comparison *cmp)
{
    coffer_node *list = coffer_node_add_list(out, "totals");
    bool equal = true;
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
        uint64_t a = total_of(cmp, 0, &totals[i]), b = total_of(cmp, 1, &totals[i]);
        if (totals[i].offset == offsetof(coffer_mlyze_totals, lost_events) && a == 0 && b == 0)
            continue;
        if (!is_comparable(cmp, &totals[i]))
            continue;
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "name", totals[i].name);
        coffer_node_add_u64(map, "a", a, totals[i].unit);
        coffer_node_add_u64(map, "b", b, totals[i].unit);
        coffer_node_add_i64(map, "change", (int64_t)(b - a), totals[i].unit);
        equal &= a == b || totals[i].unit == COFFER_UNIT_MICROSECONDS;
    }
    return equal;
}

/* ---- Public function ---- */

static coffer_status analyze_sides(coffer__mlyze_comparison *cmp, coffer_error *err)
{
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    coffer_status status = COFFER_OK;
    query.threads = cmp->opts.threads;
    query.limits = cmp->opts.limits;
    query.progress = cmp->opts.progress;
    for (unsigned side = 0; side < 2 && !status; side++)
        status = coffer_mlyze_stats_new(&cmp->side[side].stats, cmp->side[side].trace, &query, err);
    if (status && cmp->side[0].stats)
        coffer__fail_input(err, status, coffer_source_name(cmp->side[1].trace->source));
    return status;
}

static void put_result(coffer_node *out, const coffer__mlyze_comparison *cmp, coffer__mlyze_match *matches,
                       size_t count)
{
    uint64_t change = 0;
    coffer_node *equal = coffer__node_hold(out, "equal");
    static const char *const measures[] = { "peak", "live", "total", "temporary" };
    for (size_t i = 0; i < count; i++)
        change += (uint64_t)change_of(&matches[i]);
    coffer_node_add_text(out, "measure", measures[cmp->opts.measure]);
    coffer_node_add_i64(out, "grew_bytes", (int64_t)change, COFFER_UNIT_BYTES);
    bool same = put_totals(out, cmp);
    same &= put_lists(out, cmp, matches, count);
    coffer__node_set_bool(equal, same);
}

coffer_status coffer_mlyze_diff(coffer_node *out, const coffer_mlyze *a, const coffer_mlyze *b,
                                const coffer_mlyze_diff_opts *opts, coffer_error *err)
{
    coffer__mlyze_comparison cmp = { .opts = COFFER_MLYZE_DIFF_OPTS_INIT,
                                     .side = { { a, NULL }, { b, NULL } } };
    coffer__mlyze_match *matches = NULL;
    size_t count = 0;
    coffer_status status = coffer__take_options(&cmp.opts, sizeof cmp.opts, opts, err);
    if (!status && (unsigned)cmp.opts.measure > COFFER_MLYZE_MEASURE_TEMPORARY)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "unknown measure %u",
                              (unsigned)cmp.opts.measure);
    if (!status)
        status = analyze_sides(&cmp, err);
    if (!status)
        status = coffer__mlyze_number_names(&cmp, err);
    if (!status)
        status = coffer__mlyze_match_stacks(&matches, &count, &cmp, err);
    if (status)
        goto out;
    put_result(out, &cmp, matches, count);
    if (!cmp.opts.no_markers)
        status = put_phases(out, &cmp, err);
    if (!status)
        status = coffer_node_status(out, err);
out:
    coffer__free(matches);
    coffer__mlyze_free_names(&cmp);
    coffer_mlyze_stats_free(cmp.side[0].stats);
    coffer_mlyze_stats_free(cmp.side[1].stats);
    return status;
}

coffer_status coffer__mlyze_diff(coffer_node *out, coffer_source *a, coffer_source *b,
                                 const coffer_diff_opts *opts, coffer_error *err)
{
    coffer_diff_opts options = COFFER_DIFF_OPTS_INIT;
    coffer_mlyze_open_opts open_opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    coffer_mlyze_diff_opts diff_opts = COFFER_MLYZE_DIFF_OPTS_INIT;
    coffer_mlyze *trace_a = NULL, *trace_b = NULL;
    coffer__copy_options(&options, sizeof options, opts);
    open_opts.limits = diff_opts.limits = options.limits;
    diff_opts.max_shown = options.max_shown;
    diff_opts.threads = options.threads;
    diff_opts.progress = options.progress;
    coffer_status status = coffer_mlyze_open(&trace_a, a, &open_opts, err);
    if (!status)
        status =
            coffer__fail_input(err, coffer_mlyze_open(&trace_b, b, &open_opts, err), coffer_source_name(b));
    if (!status)
        status = coffer_mlyze_diff(out, trace_a, trace_b, &diff_opts, err);
    coffer_mlyze_close(trace_a);
    coffer_mlyze_close(trace_b);
    return status;
}

COFFER__INIT_FUNCTION(coffer_mlyze_diff_opts, COFFER_MLYZE_DIFF_OPTS_INIT)
