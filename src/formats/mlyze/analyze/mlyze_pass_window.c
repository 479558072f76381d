/* Where the window of a query and the windows of the growth test begin and end. */
#include "formats/mlyze/analyze/mlyze_pass.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_growth.h"

#include <string.h>

#define SUMS 3

void coffer__mlyze_growth_free(coffer__mlyze_growth *growth)
{
    coffer__free(growth->sums);
    memset(growth, 0, sizeof *growth);
}

coffer_status coffer__mlyze_growth_make_rows(coffer__mlyze_growth *growth, size_t count, coffer_error *err)
{
    if (count > growth->row_capacity) {
        size_t capacity = count + count / 2, bytes;
        double *larger = NULL;
        if (coffer__mul_size(&bytes, capacity, SUMS * sizeof *larger))
            larger = coffer__realloc(growth->sums, bytes);
        if (!larger)
            return coffer__fail_no_memory(err, (uint64_t)capacity * SUMS * sizeof *larger);
        growth->sums = larger;
        growth->row_capacity = capacity;
    }
    for (; growth->row_count < count; growth->row_count++) {
        for (size_t i = 0; i < SUMS; i++)
            growth->sums[growth->row_count * SUMS + i] = 0;
    }
    return COFFER_OK;
}

static double end_of_window(const coffer__mlyze_growth *growth)
{
    return (double)(growth->sampled + 1) * growth->window_seconds;
}

void coffer__mlyze_growth_sample(coffer__mlyze_growth *growth, size_t row, uint64_t live_bytes)
{
    double *sums = &growth->sums[row * SUMS], y = (double)live_bytes;
    sums[0] += y;
    sums[1] += end_of_window(growth) * y;
    sums[2] += y * y;
}

void coffer__mlyze_growth_end_window(coffer__mlyze_growth *growth)
{
    double x = end_of_window(growth);
    growth->sum_x += x;
    growth->sum_xx += x * x;
    growth->sampled++;
}

void coffer__mlyze_growth_fit(double *slope, double *fit, const coffer__mlyze_growth *growth, size_t row)
{
    *slope = *fit = 0;
    if (row >= growth->row_count)
        return;
    double n = growth->sampled, sum_y = growth->sums[row * SUMS];
    double xx = n * growth->sum_xx - growth->sum_x * growth->sum_x;
    double xy = n * growth->sums[row * SUMS + 1] - growth->sum_x * sum_y;
    double yy = n * growth->sums[row * SUMS + 2] - sum_y * sum_y;
    /* Differences of equal numbers are rounding errors. */
    if (xx <= 0 || yy <= n * growth->sums[row * SUMS + 2] * 1e-12)
        return;
    *slope = xy / xx;
    *fit = xy * xy / (xx * yy);
    if (*fit > 1)
        *fit = 1;
}

#define MAX_GROWTH_WINDOWS 10000

/* The last block that begins at or before the event or time, or 0. */
static size_t block_before(const coffer__mlyze_map *map, uint64_t value, bool is_time)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const coffer__mlyze_block *block = &map->items[middle];
        if ((is_time ? block->time : block->first_event) <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? low - 1 : 0;
}

/* A damaged block has no events; failures of the machine show up during the pass. */
static void read_quietly(coffer_mlyze_events *events, const coffer__mlyze_pass *pass, size_t block)
{
    if (coffer_mlyze_read_block(events, pass->trace, block, NULL))
        events->count = 0;
}

uint64_t coffer__mlyze_time_of_event(const coffer__mlyze_pass *pass, uint64_t event)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    size_t block = block_before(pass->map, event, false);
    uint64_t time = pass->map->items[block].time;
    read_quietly(&events, pass, block);
    if (event >= events.first && event - events.first < events.count)
        time = events.time[event - events.first];
    coffer_mlyze_events_free(&events);
    return time;
}

uint64_t coffer__mlyze_event_after(const coffer__mlyze_pass *pass, uint64_t time)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    size_t block = block_before(pass->map, time, true), i = 0;
    const coffer__mlyze_block *where = &pass->map->items[block];
    uint64_t found = where->first_event + where->event_count;
    read_quietly(&events, pass, block);
    while (i < events.count && events.time[i] <= time)
        i++;
    if (i < events.count)
        found = events.first + i;
    coffer_mlyze_events_free(&events);
    return found;
}

/* Windows of equal numbers of events. */
static void set_event_windows(coffer__mlyze_pass *pass)
{
    uint32_t windows = pass->growth.windows;
    uint64_t begin = pass->opts.begin, count = pass->end_event - begin;
    coffer__mlyze_boundary *first = &pass->boundaries.items[pass->boundaries.count - windows];
    for (uint32_t i = 1; i <= windows; i++)
        first[i - 1].event = begin + count / windows * i + count % windows * i / windows;
    pass->growth.window_seconds = (double)count / windows;
    pass->growth.by_events = true;
}

static void set_growth_windows(coffer__mlyze_pass *pass)
{
    uint32_t windows = pass->growth.windows, used = 0;
    uint64_t begin = pass->opts.begin, end = pass->end_event, before = begin;
    uint64_t from = coffer__mlyze_time_of_event(pass, begin);
    uint64_t to = coffer__mlyze_time_of_event(pass, end - 1);
    uint64_t duration = to > from ? to - from : 0;
    pass->growth.window_seconds = (double)duration / windows * 1e-6;
    for (uint32_t i = 1; i <= windows; i++) {
        uint64_t after = (uint64_t)((double)duration / windows * i);
        uint64_t event = i < windows ? coffer__mlyze_event_after(pass, from + after) : end;
        if (event < before)
            event = before;
        if (event > end)
            event = end;
        used += event > before;
        before = event;
        pass->boundaries.items[pass->boundaries.count++] =
            (coffer__mlyze_boundary){ .event = event, .ends_growth_window = true };
    }
    /* Some recorders do not note times, or note them rarely. */
    if (used < windows / 2)
        set_event_windows(pass);
}

coffer_status coffer__mlyze_set_boundaries(coffer__mlyze_pass *pass, coffer_error *err)
{
    uint32_t windows = pass->opts.growth_windows;
    if (windows > MAX_GROWTH_WINDOWS)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%u windows for the growth test; at most %d", windows, MAX_GROWTH_WINDOWS);
    pass->boundaries.items = coffer__alloc_array((size_t)windows + 1, sizeof *pass->boundaries.items);
    if (!pass->boundaries.items)
        return coffer__fail_no_memory(err, windows * sizeof *pass->boundaries.items);
    pass->boundaries.items[0] = (coffer__mlyze_boundary){ .event = pass->opts.begin, .begins_window = true };
    pass->boundaries.count = 1;
    pass->growth.windows = windows;
    if (windows > 0 && pass->opts.begin < pass->end_event && pass->map->count > 0)
        set_growth_windows(pass);
    return COFFER_OK;
}

/* ---- During a pass ---- */

uint64_t coffer__mlyze_next_stop(const coffer__mlyze_pass *pass, uint64_t end)
{
    const coffer__mlyze_boundaries *boundaries = &pass->boundaries;
    if (boundaries->next < boundaries->count && boundaries->items[boundaries->next].event < end)
        return boundaries->items[boundaries->next].event;
    return end;
}

/* Forgets the counts of the events before the window; live blocks stay. */
static void forget_counts(coffer__mlyze_pass *pass)
{
    coffer__mlyze_results *results = &pass->results;
    memset(&results->totals, 0, sizeof results->totals);
    memset(&results->sizes, 0, sizeof results->sizes);
    memset(&results->lifetimes, 0, sizeof results->lifetimes);
    pass->state.lost_block = SIZE_MAX;
    if (pass->state.alloc_count == 0)
        return;
    for (size_t i = 0; i < results->row_capacity; i++)
        coffer__mlyze_row_begin_window(&results->rows[i]);
    for (size_t i = 0; i < COFFER__MLYZE_THREADS; i++)
        coffer__mlyze_row_begin_window(&results->threads[i]);
}

static coffer_status begin_window(coffer__mlyze_pass *pass, const coffer__mlyze_boundary *boundary,
                                  coffer_error *err)
{
    coffer__mlyze_state *state = &pass->state;
    coffer_mlyze_totals *totals = &pass->results.totals;
    forget_counts(pass);
    state->counting = true;
    state->window_alloc = state->alloc_count;
    state->epoch++;
    state->high = state->level;
    state->last_type = UINT8_MAX;
    totals->peak_bytes = coffer__mlyze_narrow(state->level);
    totals->peak_event = boundary->event > 0 ? boundary->event - 1 : 0;
    totals->peak_time_us = state->last_time;
    totals->duration_us = state->last_time;
    return coffer__mlyze_begin_phase(pass, UINT64_MAX, boundary->event, state->last_time, state->level, err);
}

static coffer_status end_growth_window(coffer__mlyze_pass *pass, coffer_error *err)
{
    size_t count = coffer__mlyze_numbers_count(&pass->stacks);
    coffer_status status = coffer__mlyze_growth_make_rows(&pass->growth, count, err);
    if (status)
        return status;
    for (size_t row = 0; row < count && row < pass->results.row_capacity; row++) {
        if (pass->results.rows[row].live_bytes > 0)
            coffer__mlyze_growth_sample(&pass->growth, row, pass->results.rows[row].live_bytes);
    }
    coffer__mlyze_growth_end_window(&pass->growth);
    return COFFER_OK;
}

coffer_status coffer__mlyze_pass_boundaries(coffer__mlyze_pass *pass, uint64_t event, coffer_error *err)
{
    coffer__mlyze_boundaries *boundaries = &pass->boundaries;
    coffer_status status = COFFER_OK;
    while (!status && boundaries->next < boundaries->count &&
           boundaries->items[boundaries->next].event <= event) {
        const coffer__mlyze_boundary *boundary = &boundaries->items[boundaries->next++];
        if (boundary->begins_window)
            status = begin_window(pass, boundary, err);
        if (!status && boundary->ends_growth_window)
            status = end_growth_window(pass, err);
    }
    return status;
}
