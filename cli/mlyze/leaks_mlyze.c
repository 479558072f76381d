/* leaks for traces: blocks that were never freed, and stacks that grow. */
#include "mlyze_verbs.h"
#include "stack_report.h"
#include "term.h"
#include "trace_query.h"

enum { GROWTH_WINDOWS = 20, MOST_WINDOWS = 1000 };

static const cli_option options[] = {
    { "min-age", 0, "TIME", NULL, "only blocks that are at least this old at the end, such as 10ms or 2s" },
    { "min-size", 0, "SIZE", NULL, "only blocks of at least this many bytes, such as 4K" },
    { "suppress", 0, "GLOB", NULL,
      "hide stacks with a matching function or file; without * the text may be anywhere in the name; "
      "repeatable" },
    { "suppressions", 0, "FILE", NULL,
      "file of such patterns, one per line; # begins a comment, \"leak:\" before a pattern is optional" },
    { "growth", 0, NULL, NULL, "list stacks whose live bytes grow over the run, the steepest first" },
    { "windows", 0, "N", NULL, "number of windows for --growth", "20" },
    { "fail-over", 0, "SIZE", NULL, "exit with status 1 when more than SIZE is leaked, for CI" },
    TRACE_WINDOW_OPTION,
    STACK_REPORT_OPTIONS("bytes"),
    TRACE_WORK_OPTIONS,
    { 0 },
};

static void print_heading(const stack_answer *answer, FILE *out)
{
    const stack_report *report = &answer->report;
    term_text bytes, count, error;
    const char *title = report->growth                     ? "growing:"
                        : trace_knows_leaks(report->trace) ? "not freed:"
                                                           : "live at the last snapshot:";
    fprintf(out, "%s %s%s%s%s in %s block%s of %zu stack%s\n", title, term_on(out, TERM_BOLD),
            term_bytes(bytes, report->shown.bytes), term_off(out),
            trace_error(error, report->trace, report->shown.count), term_count(count, report->shown.count),
            term_plural(report->shown.count), report->row_count, term_plural(report->row_count));
}

static void add_facts(coffer_node *root, const stack_answer *answer)
{
    const stack_report *report = &answer->report;
    coffer_node_add_u64(root, "live_bytes_at_end", answer->totals->live_bytes_at_end, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "live_allocs_at_end", answer->totals->live_allocs_at_end, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "leaked_bytes", report->shown.bytes, COFFER_UNIT_BYTES);
    trace_add_error(root, "leaked", report->trace, report->shown.count);
    coffer_node_add_u64(root, "leaked_allocs", report->shown.count, COFFER_UNIT_NONE);
    uint64_t fail_over;
    if (cli_has(answer->args, "fail-over") && cli_size(&fail_over, answer->args, "fail-over", UINT64_MAX)) {
        coffer_node_add_u64(root, "fail_over_bytes", fail_over, COFFER_UNIT_BYTES);
        coffer_node_add_bool(root, "failed", report->shown.bytes > fail_over);
    }
}

static int read_request(trace_query *request, const cli_args *args, const coffer_mlyze *trace)
{
    uint64_t windows;
    int result = trace_query_init(request, args, trace);
    if (result != CLI_OK)
        return result;
    if (!cli_duration(&request->query.min_age_us, args, "min-age", 0) ||
        !cli_size(&request->query.min_size, args, "min-size", 0) ||
        !cli_number(&windows, args, "windows", GROWTH_WINDOWS, 3, MOST_WINDOWS))
        return CLI_USAGE;
    if (cli_has(args, "windows") && !cli_has(args, "growth"))
        return cli_usage(args, "--windows requires --growth");
    if (cli_has(args, "growth"))
        request->query.growth_windows = (uint32_t)windows;
    return CLI_OK;
}

static int run_on(const cli_args *args, const coffer_mlyze *trace)
{
    trace_query request = { 0 };
    coffer_mlyze_suppressions *hidden = NULL;
    uint64_t fail_over;
    stack_answer answer = { .args = args, .nothing = "nothing is leaked", .report.trace = trace };
    answer.report.measure = COFFER_MLYZE_MEASURE_LIVE;
    answer.report.ages = true;
    answer.report.growth = cli_has(args, "growth");
    if (answer.report.growth)
        answer.nothing = "no stack grows";
    answer.print_heading = print_heading;
    answer.add_facts = add_facts;
    if (!stack_report_read(&answer.report, args) || !cli_size(&fail_over, args, "fail-over", UINT64_MAX))
        return CLI_USAGE;
    int result = trace_check_source(args, cli_operand(args, 0), trace,
                                    answer.report.growth ? TRACE_ASKS_ORDER : TRACE_ASKS_LEAKS);
    if (result == CLI_OK)
        result = trace_read_patterns(&hidden, args, "suppress", "suppressions");
    answer.report.hidden = hidden;
    if (result == CLI_OK)
        result = read_request(&request, args, trace);
    if (result == CLI_OK)
        result = trace_query_run(&request, args, trace);
    if (result == CLI_OK) {
        answer.report.stats = request.stats;
        if (answer.report.growth && coffer_mlyze_stats_totals(request.stats)->growth_by_events)
            trace_tell_note(cli_operand(args, 0),
                            "the events have too few different times: growth is measured "
                            "over the number of events");
        result = stack_answer_show(&answer);
    }
    if (result == CLI_OK)
        result = trace_fail_over(args, "leaked", answer.report.shown.bytes, fail_over);
    trace_query_free(&request);
    coffer_mlyze_suppressions_free(hidden);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mlyze_with_trace(args, src, run_on);
}

const cli_format_verb cli_mlyze_leaks = {
    .format = TRACE_FORMATS,
    .verb = "leaks",
    .options = options,
    .examples =
        "  coffer leaks run.mlyze --min-age 1s            # ignore what was allocated just before the end\n"
        "  coffer leaks run.mlyze --suppress 'PyInit_*' --suppressions known.txt\n"
        "  coffer leaks run.mlyze --growth                # stacks that keep growing\n"
        "  coffer leaks run.mlyze --fail-over 1MiB -q     # for CI: status 1 when more is leaked\n",
    .run = run,
};
