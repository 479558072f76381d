/* Compares two traces phase by phase, by the markers they share. */
#include "formats/mlyze/analyze/mlyze_diff.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"

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

coffer_status coffer__mlyze_put_phases(coffer_node *out, const coffer__mlyze_comparison *cmp,
                                       coffer_error *err)
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
