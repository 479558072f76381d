/* Events other than allocations and frees, and the phases between markers. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_pass.h"

/* ---- Phases ---- */

static void end_phase(coffer__mlyze_pass *pass, uint64_t time, coffer__wide level)
{
    if (pass->results.phase_count == 0)
        return;
    coffer_mlyze_phase *phase = &pass->results.phases[pass->results.phase_count - 1];
    phase->duration_us = time - phase->time_us;
    phase->live_bytes_at_end = coffer__mlyze_narrow(level);
}

void coffer__mlyze_end_phase(coffer__mlyze_pass *pass)
{
    end_phase(pass, pass->state.last_time, pass->state.level);
}

coffer_status coffer__mlyze_begin_phase(coffer__mlyze_pass *pass, uint64_t name, uint64_t event,
                                        uint64_t time, coffer__wide level, coffer_error *err)
{
    const uint64_t now = coffer__mlyze_narrow(level);
    if (pass->results.phase_count >= pass->limits.entries)
        return COFFER_OK;
    coffer_status status =
        coffer__array_reserve_one(&pass->results.phases, &pass->results.phase_capacity,
                                  pass->results.phase_count, sizeof *pass->results.phases, err);
    if (status)
        return status;
    end_phase(pass, time, level);
    pass->results.phases[pass->results.phase_count++] = (coffer_mlyze_phase){ .id = name,
                                                                              .event = event,
                                                                              .time_us = time,
                                                                              .peak_bytes = now,
                                                                              .live_bytes_at_begin = now,
                                                                              .live_bytes_at_end = now };
    return COFFER_OK;
}

void coffer__mlyze_add_to_phase(coffer__mlyze_pass *pass, coffer__wide peak, uint64_t allocs,
                                uint64_t allocated)
{
    coffer_mlyze_phase *phase = &pass->results.phases[pass->results.phase_count - 1];
    phase->allocs += allocs;
    phase->allocated_bytes = coffer__mlyze_sum(phase->allocated_bytes, allocated);
    if (peak > phase->peak_bytes)
        phase->peak_bytes = coffer__mlyze_narrow(peak);
}

/* ---- Marks and rarer events ---- */

static coffer_status keep_mark(coffer__mlyze_pass *pass, const coffer_mlyze_events *events, size_t event,
                               coffer__wide level, coffer_error *err)
{
    if (pass->results.mark_count >= pass->limits.entries)
        return COFFER_OK;
    coffer_status status =
        coffer__array_reserve_one(&pass->results.marks, &pass->results.mark_capacity,
                                  pass->results.mark_count, sizeof *pass->results.marks, err);
    if (status)
        return status;
    pass->results.marks[pass->results.mark_count++] =
        (coffer_mlyze_mark){ .type = (coffer_mlyze_type)events->type[event],
                             .event = events->first + event,
                             .time_us = events->time[event],
                             .id = events->id[event],
                             .bytes = events->size[event],
                             .live_bytes = coffer__mlyze_narrow(level) };
    return COFFER_OK;
}

/* Names of threads hold for the whole trace, also when they are set before the window. */
static coffer_status note_thread(coffer__mlyze_pass *pass, const coffer_mlyze_events *events, size_t event,
                                 coffer_error *err)
{
    coffer__mlyze_results *results = &pass->results;
    if (!results->thread_names)
        results->thread_names = coffer__calloc(COFFER__MLYZE_THREADS, sizeof *results->thread_names);
    if (!results->thread_names)
        return coffer__fail_no_memory(err, COFFER__MLYZE_THREADS * sizeof *results->thread_names);
    results->thread_names[events->thread[event]] = events->id[event] + 1;
    return COFFER_OK;
}

coffer_status coffer__mlyze_note_other(coffer__mlyze_pass *pass, const coffer_mlyze_events *events,
                                       size_t event, coffer__wide level, coffer_error *err)
{
    coffer_mlyze_totals *totals = &pass->results.totals;
    uint64_t size = events->size[event];
    if (events->type[event] == COFFER_MLYZE_THREAD)
        return note_thread(pass, events, event, err);
    if (!pass->state.counting)
        return COFFER_OK;
    switch (events->type[event]) {
    case COFFER_MLYZE_GC:
        totals->collections++;
        totals->collected_objects = coffer__mlyze_sum(totals->collected_objects, events->id[event]);
        totals->collected_bytes = coffer__mlyze_sum(totals->collected_bytes, size);
        return keep_mark(pass, events, event, level, err);
    case COFFER_MLYZE_MARKER: {
        totals->markers++;
        coffer_status status = coffer__mlyze_begin_phase(pass, events->id[event], events->first + event,
                                                         events->time[event], level, err);
        return status ? status : keep_mark(pass, events, event, level, err);
    }
    case COFFER_MLYZE_RSS:
        if (size > totals->peak_rss_bytes)
            totals->peak_rss_bytes = size;
        return COFFER_OK;
    default:
        totals->unknown_events += events->type[event] > COFFER_MLYZE_RSS;
        return COFFER_OK;
    }
}
