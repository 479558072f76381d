/* peak for traces: live blocks at the high-water mark or at another moment. */
#include "mlyze_verbs.h"
#include "stack_report.h"
#include "term.h"
#include "trace_query.h"

static const cli_option options[] = {
    { "at", 0, "MOMENT", NULL, "another moment: a time (1.5s, 20ms), an event number or a marker",
      "the peak" },
    TRACE_WINDOW_OPTION,
    STACK_REPORT_OPTIONS("bytes"),
    TRACE_WORK_OPTIONS,
    { 0 },
};

static void print_peak(const stack_answer *answer, FILE *out)
{
    const coffer_mlyze_totals *totals = answer->totals;
    term_text bytes, count, time, event, error;
    fprintf(out, "peak: %s%s%s%s in %s block%s, %s after the start (event %s)\n", term_on(out, TERM_BOLD),
            term_bytes(bytes, totals->peak_bytes), term_off(out),
            trace_error(error, answer->report.trace, totals->peak_allocs),
            term_count(count, totals->peak_allocs), term_plural(totals->peak_allocs),
            trace_time(time, answer->report.trace, totals->peak_time_us),
            term_count(event, totals->peak_event));
}

static void add_peak(coffer_node *root, const stack_answer *answer)
{
    const coffer_mlyze_totals *totals = answer->totals;
    coffer_node_add_u64(root, "peak_bytes", totals->peak_bytes, COFFER_UNIT_BYTES);
    trace_add_error(root, "peak", answer->report.trace, totals->peak_allocs);
    coffer_node_add_u64(root, "peak_allocs", totals->peak_allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "peak_event", totals->peak_event, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "peak_time_us", totals->peak_time_us, COFFER_UNIT_MICROSECONDS);
}

static void print_moment(const stack_answer *answer, FILE *out)
{
    const coffer_mlyze_totals *totals = answer->totals;
    term_text bytes, count, event, error;
    fprintf(out, "before event %s (%s): %s%s%s%s live in %s block%s\n", term_count(event, totals->events),
            cli_value(answer->args, "at"), term_on(out, TERM_BOLD),
            term_bytes(bytes, totals->live_bytes_at_end), term_off(out),
            trace_error(error, answer->report.trace, totals->live_allocs_at_end),
            term_count(count, totals->live_allocs_at_end), term_plural(totals->live_allocs_at_end));
}

static void add_moment(coffer_node *root, const stack_answer *answer)
{
    coffer_node_add_u64(root, "at_event", answer->totals->events, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "live_bytes", answer->totals->live_bytes_at_end, COFFER_UNIT_BYTES);
    trace_add_error(root, "live", answer->report.trace, answer->totals->live_allocs_at_end);
    coffer_node_add_u64(root, "live_allocs", answer->totals->live_allocs_at_end, COFFER_UNIT_NONE);
}

static int run_on(const cli_args *args, const coffer_mlyze *trace)
{
    trace_query request = { 0 };
    stack_answer answer = { .args = args, .nothing = "nothing was live", .report.trace = trace };
    bool at = cli_has(args, "at");
    if (at && cli_has(args, "window"))
        return cli_usage(args, "--at and --window cannot be combined");
    if (!stack_report_read(&answer.report, args))
        return CLI_USAGE;
    int result =
        trace_check_source(args, cli_operand(args, 0), trace, at ? TRACE_ASKS_COURSE : TRACE_ASKS_PEAK);
    if (result == CLI_OK)
        result = trace_query_init(&request, args, trace);
    if (result == CLI_OK)
        result = trace_query_moment(&request.query.end, args, "at", trace);
    if (result == CLI_OK)
        result = trace_query_run(&request, args, trace);
    if (result == CLI_OK) {
        answer.report.stats = request.stats;
        answer.report.measure = at ? COFFER_MLYZE_MEASURE_LIVE : COFFER_MLYZE_MEASURE_PEAK;
        answer.report.ages = at;
        answer.print_heading = at ? print_moment : print_peak;
        answer.add_facts = at ? add_moment : add_peak;
        result = stack_answer_show(&answer);
    }
    trace_query_free(&request);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mlyze_with_trace(args, src, run_on);
}

const cli_format_verb cli_mlyze_peak = {
    .format = TRACE_FORMATS,
    .verb = "peak",
    .options = options,
    .examples = "  coffer peak run.mlyze                          # what was live at the high-water mark\n"
                "  coffer peak run.mlyze --at 2.5s --by function  # after two and a half seconds\n"
                "  coffer peak run.mlyze --at epoch-2 --json      # when the marker epoch-2 was set\n"
                "  coffer peak run.mlyze --window load..train     # the highest between two markers\n",
    .run = run,
};
