/* The summary of a recording, on stderr. */
#include "recorder.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "mlyze/trace_names.h"
#include "term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 5, FRAMES_SHOWN = 3 };

static int by_peak(const void *left, const void *right)
{
    const coffer_mlyze_stack_row *a = *(const coffer_mlyze_stack_row *const *)left;
    const coffer_mlyze_stack_row *b = *(const coffer_mlyze_stack_row *const *)right;
    if (a->peak_bytes != b->peak_bytes)
        return a->peak_bytes < b->peak_bytes ? 1 : -1;
    return (a->id > b->id) - (a->id < b->id);
}

static void print_stack(const coffer_mlyze *trace, const coffer_mlyze_stack_row *row)
{
    term_text bytes;
    size_t depth = 0;
    const coffer_mlyze_frame *frames =
        row->stack == COFFER_INDEX_NONE ? NULL : coffer_mlyze_frames(&depth, trace, row->stack);
    coffer__buffer text = COFFER__BUFFER_INIT;
    for (size_t i = 0; i < depth && i < FRAMES_SHOWN; i++) {
        coffer__buffer_printf(&text, "%s", i > 0 ? " < " : "");
        trace_put_frame(&text, trace, &frames[i]);
    }
    if (depth > FRAMES_SHOWN)
        coffer__buffer_printf(&text, " …");
    if (depth == 0)
        coffer__buffer_printf(&text, "(no stack)");
    fprintf(stderr, "  %10s  ", term_bytes(bytes, row->peak_bytes));
    term_print_text(stderr, coffer__buffer_text(&text), text.len, 0);
    fputc('\n', stderr);
    coffer__buffer_free(&text);
}

static void print_top(const coffer_mlyze *trace, const coffer_mlyze_stats *stats)
{
    size_t count = coffer_mlyze_stats_stack_count(stats);
    const coffer_mlyze_stack_row **rows = coffer__alloc_array(count, sizeof *rows);
    if (!rows)
        return;
    for (size_t i = 0; i < count; i++)
        rows[i] = coffer_mlyze_stats_stack_at(stats, i);
    qsort(rows, count, sizeof *rows, by_peak);
    if (count > 0 && rows[0]->peak_bytes > 0)
        fputs("  largest at the peak:\n", stderr);
    for (size_t i = 0; i < count && i < TOP && rows[i]->peak_bytes > 0; i++)
        print_stack(trace, rows[i]);
    coffer__free(rows);
}

static void print_sampling(const coffer_mlyze *trace, const coffer_mlyze_totals *totals)
{
    term_text every, count;
    double error = (double)coffer_mlyze_sampling_error(trace, totals->allocs);
    fprintf(
        stderr,
        "  estimated from %s sampled block%s, one for every %s on average: the total is within ±%.1f %% with "
        "95 %% probability\n",
        term_count(count, totals->allocs), term_plural(totals->allocs),
        term_bytes(every, coffer_mlyze_sampling_bytes(trace)),
        totals->total_allocated_bytes > 0 ? 100 * error / (double)totals->total_allocated_bytes : 0);
}

static void print_totals(const record_session *session, const coffer_mlyze_totals *totals)
{
    term_text peak, total, leaks, events, allocs, live, time;
    fprintf(stderr, "%scoffer:%s ", term_on(stderr, TERM_GREEN), term_off(stderr));
    term_print_text(stderr, session->path, strlen(session->path), 0);
    fprintf(stderr, ": %s events in %s\n", term_count(events, totals->events),
            term_duration(time, (double)totals->duration_us / 1e6));
    fprintf(stderr, "  peak %s, total %s in %s allocation%s, not freed %s in %s block%s\n",
            term_bytes(peak, totals->peak_bytes), term_bytes(total, totals->total_allocated_bytes),
            term_count(allocs, totals->allocs), term_plural(totals->allocs),
            term_bytes(leaks, totals->live_bytes_at_end), term_count(live, totals->live_allocs_at_end),
            term_plural(totals->live_allocs_at_end));
}

void record_summarize(const record_session *session, const record_options *options)
{
    coffer_mlyze *trace = NULL;
    coffer_mlyze_stats *stats = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (options->quiet)
        return;
    if (session->events == 0) {
        cli_warn(session->path, "the program allocated nothing that could be recorded");
        return;
    }
    coffer_status status = coffer_mlyze_open_path(&trace, session->path, NULL, &err);
    if (!status)
        status = coffer_mlyze_stats_new(&stats, trace, NULL, &err);
    if (status) {
        cli_fail(session->path, &err, NULL);
    } else {
        print_totals(session, coffer_mlyze_stats_totals(stats));
        if (options->sample_bytes)
            print_sampling(trace, coffer_mlyze_stats_totals(stats));
        print_top(trace, stats);
        fprintf(stderr, "  look further: coffer peak %s, coffer leaks %s, coffer flame %s -o flame.svg\n",
                session->path, session->path, session->path);
        if (session->snapshots > 0)
            fprintf(stderr, "  %" PRIu64 " heap snapshot%s: coffer heap %s\n", session->snapshots,
                    term_plural(session->snapshots), session->path);
    }
    coffer_mlyze_stats_free(stats);
    coffer_mlyze_close(trace);
}
