/* coffer stats, for scans. */
#include "base/memory.h"
#include "cli.h"
#include "mscan_verbs.h"
#include "stats_view.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

enum { TOP_ON_A_TERMINAL = 20, TOP_IN_SUMMARY = 8 };

typedef enum wanted { WANT_ACTIVATION, WANT_GRAD_NORM, WANT_SPS, WANT_DSC, WANT_BOTH } wanted;

typedef struct stats_request {
    const cli_args *args;
    coffer_mscan_stats_opts query;
    bool grouped; /* --by was given, or follows from the metric */
    wanted metric;
    uint64_t top; /* 0 = all */
    bool csv, json, raw;
} stats_request;

static const cli_option options[] = {
    { "by", 0, "WHAT", "param|block|token|sequence|param,block|layer",
      "one line for each; block adds up the blocks with the same number of all selected parameters",
      "param" },
    { "metric", 'm', "NAME", "activation|grad_norm|sps|dsc", "value to summarize, see above",
      "activation and grad_norm" },
    { "param", 'p', "GLOB", NULL, "only parameters whose name matches" },
    { "tokens", 't', "A..B", NULL, "only tokens A to B - 1" },
    { "sequence", 's', "ID", NULL, "only this sequence" },
    { "top", 'n', "N", NULL, "number of lines, the largest first; 0 = all" },
    { "sort", 0, "KEY",
      "key|name|count|mean|std|min|max|zeros|saturated|z_activation|z_grad_norm|sps|integral|dsc",
      "sort by this, largest first" },
    { "scope", 0, "WHAT", "global|layer", "group that z-scores are relative to", "global" },
    { "raw", 0, NULL, NULL, "quantized integers, even if the scale is known" },
    CLI_CSV_OPTION,
    { "json", 0, NULL, NULL, "one JSON object" },
    CLI_DAMAGED_OPTION,
    { 0 },
};

/* ---- Options ---- */

static int parse(stats_request *out, const cli_args *args, const coffer_mscan *scan)
{
    uint64_t sequence_id;
    *out = (stats_request){ .args = args, .query = COFFER_MSCAN_STATS_OPTS_INIT };
    out->csv = cli_has(args, "csv");
    out->json = cli_has(args, "json");
    out->raw = cli_has(args, "raw");
    if (cli_check_output(args))
        return CLI_USAGE;
    out->metric = cli_has(args, "metric") ? (wanted)cli_choice(args, "metric", WANT_ACTIVATION) : WANT_BOTH;
    bool scores = out->metric == WANT_SPS || out->metric == WANT_DSC;
    out->query.scope = (coffer_mscan_scope)cli_choice(args, "scope", COFFER_MSCAN_SCOPE_GLOBAL);
    if (cli_has(args, "scope") && !scores)
        return cli_usage(args, "--scope belongs to --metric sps or dsc");
    out->query.by = (coffer_mscan_by)(1 + cli_choice(args, "by", COFFER_MSCAN_BY_PARAM - 1));
    if (out->metric == WANT_DSC && out->query.by != COFFER_MSCAN_BY_PARAM)
        return cli_usage(args, "dsc is a mean by parameter; --metric sps goes with every --by");
    out->grouped = cli_has(args, "by") || scores || out->csv;
    out->query.param_glob = cli_value(args, "param");
    uint64_t top = !out->csv && !out->json && term_is_terminal(stdout) ? TOP_ON_A_TERMINAL : 0;
    if (!cli_range(&out->query.token_begin, &out->query.token_end, args, "tokens") ||
        !cli_number(&out->top, args, "top", top, 0, UINT64_MAX) ||
        !cli_number(&sequence_id, args, "sequence", 0, 0, UINT64_MAX))
        return CLI_USAGE;
    if (cli_has(args, "sequence")) {
        out->query.sequence = coffer_mscan_find_sequence(scan, sequence_id);
        if (out->query.sequence == COFFER_INDEX_NONE)
            return cli_usage(args, "the scan has no sequence %" PRIu64, sequence_id);
    }
    return CLI_OK;
}

static void choose_columns(stats_view *view, const stats_request *request)
{
    bool people = !request->csv && !request->json;
    if (request->metric == WANT_SPS)
        stats_view_add_scores(view);
    else if (request->metric == WANT_DSC)
        stats_view_add_dsc(view);
    else if (request->metric == WANT_GRAD_NORM)
        stats_view_add_metric(view, COFFER_MSCAN_GRAD_NORM);
    else
        stats_view_add_metric(view, COFFER_MSCAN_ACTIVATION);
    /* A table of both would be too wide. */
    if (request->metric == WANT_BOTH && !people)
        stats_view_add_metric(view, COFFER_MSCAN_GRAD_NORM);
}

/* Where only the largest are wanted, or in the summary, the order is by the metric itself. */
static const char *order_of(const stats_request *request)
{
    const char *given = cli_value(request->args, "sort");
    if (given)
        return given;
    bool largest = cli_has(request->args, "top") && request->top > 0;
    if (!largest && request->grouped)
        return "key";
    return request->metric == WANT_SPS ? "sps" : request->metric == WANT_DSC ? "dsc" : "mean";
}

static int out_of_memory(const cli_args *args)
{
    coffer_error err = { .status = COFFER_E_NO_MEMORY,
                         .offset = COFFER_OFFSET_NONE,
                         .text = "not enough memory" };
    return cli_fail(cli_operand(args, 0), &err, NULL);
}

static int arrange(stats_view *view, const stats_request *request)
{
    bool failed;
    const char *order = order_of(request);
    size_t rows = stats_view_rows(view);
    uint64_t top = request->top;
    if (!request->grouped && !cli_has(request->args, "top"))
        top = TOP_IN_SUMMARY;
    view->shown = top > 0 && top < rows ? (size_t)top : rows;
    if (!stats_view_sort(view, order, &failed))
        return cli_usage(request->args, "--sort %s: unknown column", order);
    if (failed)
        return out_of_memory(request->args);
    return CLI_OK;
}

/* ---- Output ---- */

static void print_remarks(const stats_view *view, const coffer_mscan_group *total, FILE *out)
{
    for (int metric = 0; metric < 2; metric++) {
        stats_remark text;
        if (total ? stats_remark_on(text, total, (coffer_mscan_metric)metric)
                  : stats_remark_on_scores(text, view->scan, (coffer_mscan_metric)metric))
            fprintf(out, "%snote:%s %s\n", term_on(out, TERM_YELLOW), term_off(out), text);
    }
    if (stats_view_mixes_blocks(view))
        fprintf(out,
                "%snote:%s a line adds up the blocks with one number of all parameters; --by param,block "
                "keeps them apart\n",
                term_on(out, TERM_YELLOW), term_off(out));
    const char *reason = total ? stats_view_raw_reason(view, view->columns[0]->metric) : NULL;
    if (reason)
        fprintf(out, "%sraw integers: %s%s\n", term_on(out, TERM_DIM), reason, term_off(out));
}

static void print_for_people(const stats_view *view, const stats_request *request, FILE *out)
{
    static const char *const titles[] = { "activation", "grad_norm", "sps", "dsc", "activation" };
    const coffer_mscan_group *total = view->stats ? coffer_mscan_stats_total(view->stats) : NULL;
    term_text number;
    if (stats_view_rows(view) == 0) {
        fputs("no record is selected\n", out);
        return;
    }
    if (total && !request->grouped) {
        stats_view whole = stats_view_of_total(view, request->raw);
        fprintf(out, "%s records\n\n", term_count(number, total->count));
        stats_view_print_totals(&whole, total, out);
        fprintf(out, "\n%sparameters by mean %s%s\n", term_on(out, TERM_BOLD), titles[request->metric],
                term_off(out));
    }
    stats_view_print_table(view, out);
    print_remarks(view, total, out);
}

static int print(const stats_view *view, const stats_request *request)
{
    bool complete = true;
    if (request->csv) {
        complete = stats_view_print_csv(view, stdout);
    } else if (request->json) {
        const coffer_mscan_group *total = view->stats ? coffer_mscan_stats_total(view->stats) : NULL;
        stats_view whole = stats_view_of_total(view, request->raw);
        complete = stats_view_print_json(view, &whole, total, cli_operand(request->args, 0), request->grouped,
                                         term_is_terminal(stdout) ? 2 : 0, stdout);
    } else {
        print_for_people(view, request, stdout);
    }
    if (!complete)
        return out_of_memory(request->args);
    return cli_finish(CLI_OK);
}

static int run_on(const stats_request *request, const coffer_mscan *scan)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan_stats *stats = NULL;
    coffer_mscan_scores *scores = NULL;
    stats_view view = { .scan = scan, .by = request->query.by, .sequence = request->query.sequence };
    view.one_param = mscan_params_matching(scan, request->query.param_glob) <= 1;
    coffer_mscan_stats_opts query = request->query;
    coffer_status status;
    term_progress bar;
    term_progress_start(&bar, "reading", "records");
    query.progress = &bar.progress;
    if (request->metric == WANT_SPS || request->metric == WANT_DSC)
        status = coffer_mscan_scores_new(&scores, scan, &query, &err);
    else
        status = coffer_mscan_stats_new(&stats, scan, &query, &err);
    term_progress_end(&bar);
    if (status)
        return cli_fail(cli_operand(request->args, 0), &err, NULL);
    view.stats = stats;
    view.scores = scores;
    choose_columns(&view, request);
    stats_view_choose_units(&view, request->raw);
    int result = arrange(&view, request);
    if (result == CLI_OK)
        result = print(&view, request);
    coffer__free(view.order);
    coffer_mscan_stats_free(stats);
    coffer_mscan_scores_free(scores);
    return result;
}

static int run_request(const cli_args *args, const coffer_mscan *scan)
{
    stats_request request;
    int result = parse(&request, args, scan);
    return result == CLI_OK ? run_on(&request, scan) : result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mscan_with_scan(args, src, run_request);
}

const cli_format_verb cli_mscan_stats = {
    .format = "mscan",
    .verb = "stats",
    .options = options,
    .examples =
        "  coffer stats scan.mscan                          # the whole scan, and the largest parameters\n"
        "  coffer stats scan.mscan --by param --top 10      # the ten with the largest mean activation\n"
        "  coffer stats scan.mscan --by layer               # one line for each layer of the model\n"
        "  coffer stats scan.mscan --by param,block --param '*.q_proj' --sort mean\n"
        "  coffer stats scan.mscan --by token -t 0..100 --csv > tokens.csv\n"
        "  coffer stats scan.mscan --metric sps --scope layer --by block\n"
        "  coffer stats scan.mscan --param '*.mlp.*' --json\n",
    .run = run,
};
