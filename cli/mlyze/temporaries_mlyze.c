/* temporaries for traces: blocks that are freed soon after they were allocated. */
#include "mlyze_verbs.h"
#include "stack_report.h"
#include "term.h"
#include "trace_query.h"

static const cli_option options[] = {
    { "within-allocs", 'k', "K", NULL, "temporary means: freed before K further allocations",
      "the next of its thread" },
    { "within", 't', "TIME", NULL, "temporary means: freed within this time, such as 300us or 2ms" },
    TRACE_WINDOW_OPTION,
    STACK_REPORT_OPTIONS("count"),
    TRACE_WORK_OPTIONS,
    { 0 },
};

static void print_heading(const stack_answer *answer, FILE *out)
{
    const coffer_mlyze_totals *totals = answer->totals;
    double share = totals->allocs ? 100.0 * (double)totals->temporary_allocs / (double)totals->allocs : 0;
    term_text bytes, count, all;
    fprintf(out, "temporary: %s%s%s of %s allocation%s (%.1f %%), %s\n", term_on(out, TERM_BOLD),
            term_count(count, totals->temporary_allocs), term_off(out), term_count(all, totals->allocs),
            term_plural(totals->allocs), share, term_bytes(bytes, totals->temporary_bytes));
}

static void add_facts(coffer_node *root, const stack_answer *answer)
{
    const coffer_mlyze_totals *totals = answer->totals;
    coffer_node_add_u64(root, "allocs", totals->allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "temporary_allocs", totals->temporary_allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "temporary_bytes", totals->temporary_bytes, COFFER_UNIT_BYTES);
}

static int run_on(const cli_args *args, const coffer_mlyze *trace)
{
    trace_query request = { 0 };
    stack_answer answer = { .args = args, .nothing = "no allocation is temporary", .report.trace = trace };
    if (!stack_report_read(&answer.report, args))
        return CLI_USAGE;
    int result = trace_check_source(args, cli_operand(args, 0), trace, TRACE_ASKS_ORDER);
    if (result == CLI_OK)
        result = trace_query_init(&request, args, trace);
    if (result == CLI_OK &&
        (!cli_number(&request.query.temporary_allocs, args, "within-allocs", 0, 1, UINT64_MAX) ||
         !cli_duration(&request.query.temporary_us, args, "within", 0)))
        result = CLI_USAGE;
    if (result == CLI_OK)
        result = trace_query_run(&request, args, trace);
    if (result == CLI_OK) {
        answer.report.stats = request.stats;
        answer.report.measure = COFFER_MLYZE_MEASURE_TEMPORARY;
        answer.report.by_count = !cli_has(args, "sort") || answer.report.by_count;
        answer.print_heading = print_heading;
        answer.add_facts = add_facts;
        result = stack_answer_show(&answer);
    }
    trace_query_free(&request);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mlyze_with_trace(args, src, run_on);
}

const cli_format_verb cli_mlyze_temporaries = {
    .format = TRACE_FORMATS,
    .verb = "temporaries",
    .options = options,
    .examples =
        "  coffer temporaries run.mlyze                   # freed before the thread's next allocation\n"
        "  coffer temporaries run.mlyze -k 10 --by function\n"
        "  coffer temporaries run.mlyze --within 100us --json\n",
    .run = run,
};
