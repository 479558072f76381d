/* stats for traces. */
#include "mlyze_verbs.h"
#include "stats_trace.h"
#include "term.h"
#include "trace_query.h"

static const cli_option options[] = {
    { "by", 0, "WHAT", "stack|function|file", "list the largest of these", "function" },
    { "what", 0, "WHAT", TRACE_WHAT_CHOICES, "bytes to sort by", "total", trace_what_old },
    { "sort", 0, "KEY", "bytes|count", "sort by bytes or by number of blocks", "bytes" },
    { "top", 'n', "N", NULL, "number of entries, the largest first; 0 = all", "10" },
    { "depth", 'd', "N", NULL, "frames to show of each stack; 0 shows all", "8" },
    TRACE_WINDOW_OPTION,
    TRACE_WORK_OPTIONS,
    CLI_CSV_OPTION,
    { "json", 0, NULL, NULL, "print one JSON object" },
    { 0 },
};

static int show(const cli_args *args, stack_report *top)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    int result = CLI_OK;
    const char *path = cli_operand(args, 0);
    coffer_status status = coffer_node_new(&root, &err);
    if (!status)
        status = stack_report_select(top, &err);
    bool nodes = top->csv || top->json;
    if (!status && !nodes)
        status = stats_trace_print(top, path, stdout, &err);
    else if (!status)
        status = stats_trace_add(root, top, path, &err);
    if (!status)
        status = coffer_node_status(root, &err);
    if (status)
        result = cli_fail(path, &err, NULL);
    else if (nodes)
        result = stack_report_print_nodes(top, root);
    stack_report_free(top);
    coffer_node_free(root);
    return result;
}

static int run_on(const cli_args *args, const coffer_mlyze *trace)
{
    trace_query request = { 0 };
    stack_report top = { .trace = trace };
    if (!stack_report_read(&top, args) || !cli_number(&top.top, args, "top", STATS_TRACE_TOP, 0, UINT64_MAX))
        return CLI_USAGE;
    top.by = (coffer_mlyze_by)cli_choice(args, "by", COFFER_MLYZE_BY_FUNCTION);
    top.measure = (coffer_mlyze_measure)cli_choice(args, "what", COFFER_MLYZE_MEASURE_TOTAL);
    int result = trace_check_source(args, cli_operand(args, 0), trace, trace_question_of(top.measure));
    if (result == CLI_OK)
        result = trace_query_init(&request, args, trace);
    if (result == CLI_OK)
        result = trace_query_run(&request, args, trace);
    if (result == CLI_OK) {
        top.stats = request.stats;
        result = show(args, &top);
    }
    trace_query_free(&request);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mlyze_with_trace(args, src, run_on);
}

const cli_format_verb cli_mlyze_stats = {
    .format = TRACE_FORMATS,
    .verb = "stats",
    .options = options,
    .examples =
        "  coffer stats run.mlyze                          # totals, histograms, the largest functions\n"
        "  coffer stats run.mlyze --by stack --what peak --top 3\n"
        "  coffer stats run.mlyze --json | jq .peak_bytes\n"
        "  coffer stats run.mlyze --window 1s..2s          # one second of it\n",
    .run = run,
};
