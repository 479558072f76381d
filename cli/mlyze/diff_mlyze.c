/* diff for traces: stacks and phases that grew or shrank. */
#include "base/memory.h"
#include "files.h"
#include "flame_page.h"
#include "mlyze_verbs.h"
#include "term.h"
#include "trace_names.h"
#include "trace_query.h"

#include <inttypes.h>
#include <string.h>

static const cli_option options[] = {
    { "what", 0, "WHAT", TRACE_WHAT_CHOICES,
      "bytes to compare (live at the peak, never freed, all allocations, freed at once)", "peak",
      trace_what_old },
    { "lines", 0, NULL, NULL, "match frames by line too, not by function and file alone" },
    { "no-markers", 0, NULL, NULL, "do not compare phases when both traces have the same markers" },
    { "fail-over", 0, "SIZE", NULL, "exit with status 1 only when more than SIZE was added, for CI" },
    { "flame", 0, "FILE", NULL,
      "also write a flame graph of both, red where it grew: .svg, .png, .html, .json, or .collapsed" },
    CLI_FORCE_OPTION,
    { "focus", 0, "GLOB", NULL, "with --flame: only stacks with a matching function or file; repeatable" },
    { "ignore", 0, "GLOB", NULL,
      "with --flame: leave out stacks with a matching function or file; repeatable" },
    TRACE_SOURCE_OPTIONS,
    { 0 },
};

static void print_change(int64_t change, FILE *out)
{
    term_text text;
    uint64_t size = change < 0 ? 0 - (uint64_t)change : (uint64_t)change;
    fprintf(out, "%s%c%s%s", term_on(out, change > 0 ? TERM_RED : TERM_GREEN), change < 0 ? '-' : '+',
            term_bytes(text, size), term_off(out));
}

static void print_stack(const coffer_node *row, FILE *out)
{
    term_text before, after;
    const coffer_node *frames = coffer_node_find(row, "frames");
    fputs("  ", out);
    print_change(coffer_node_get_i64(coffer_node_find(row, "change_bytes")), out);
    fprintf(out, "  %s%s → %s%s\n", term_on(out, TERM_DIM),
            term_bytes(before, coffer_node_get_u64(coffer_node_find(row, "bytes_a"))),
            term_bytes(after, coffer_node_get_u64(coffer_node_find(row, "bytes_b"))), term_off(out));
    for (const coffer_node *frame = coffer_node_first(frames); frame; frame = coffer_node_next(frame)) {
        size_t len;
        const char *text = coffer_node_get_text(frame, &len);
        fprintf(out, "      %s ", frame == coffer_node_first(frames) ? " " : "←");
        term_print_text(out, text, len, term_is_terminal(out) ? term_width(out) - 8 : 0);
        fputc('\n', out);
    }
}

static void print_group(const coffer_node *root, const char *name, FILE *out)
{
    const coffer_node *list = coffer_node_find(root, name);
    if (!list || coffer_node_count(list) == 0)
        return;
    fprintf(out, "\n%s%s%s\n", term_on(out, TERM_BOLD), name, term_off(out));
    for (const coffer_node *row = coffer_node_first(list); row; row = coffer_node_next(row))
        print_stack(row, out);
}

static void print_for_people(const coffer_node *root, const char *const path[2], FILE *out)
{
    static const char *const groups[] = { "new", "grew", "shrank", "gone" };
    bool equal = coffer_node_get_bool(coffer_node_find(root, "equal"));
    term_print_text(out, path[0], strlen(path[0]), 0);
    fputs(" and ", out);
    term_print_text(out, path[1], strlen(path[1]), 0);
    fprintf(out, "%s\n", equal ? " have the same content" : " differ");
    if (equal)
        return;
    const coffer_node *totals = coffer_node_find(root, "totals"), *phases = coffer_node_find(root, "phases");
    if (totals)
        cli_print_table(out, totals);
    if (phases && coffer_node_count(phases)) { /* missing when the markers differ */
        fprintf(out, "\n%sphases%s\n", term_on(out, TERM_BOLD), term_off(out));
        cli_print_table(out, phases);
    }
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        print_group(root, groups[i], out);
}

/* 1 when they differ; with --fail-over only when more was added than that. */
static int verdict(const coffer_node *root, const cli_args *args, uint64_t fail_over)
{
    bool equal = coffer_node_get_bool(coffer_node_find(root, "equal"));
    int64_t grew = coffer_node_get_i64(coffer_node_find(root, "grew_bytes"));
    if (cli_has(args, "fail-over"))
        return trace_fail_over(args, "added", grew > 0 ? (uint64_t)grew : 0, fail_over);
    return equal ? CLI_OK : CLI_FINDINGS;
}

static bool stop_at_damage(const cli_args *args, const char *const path[2], const coffer_mlyze *a,
                           const coffer_mlyze *b)
{
    return trace_stop_at_damage(args, path[0], a) != CLI_OK ||
           trace_stop_at_damage(args, path[1], b) != CLI_OK;
}

static int compare(const cli_args *args, const coffer_mlyze *a, const coffer_mlyze *b)
{
    const char *const path[2] = { cli_operand(args, 0), cli_operand(args, 1) };
    coffer_mlyze_diff_opts opts = COFFER_MLYZE_DIFF_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    term_progress bar;
    uint64_t threads, fail_over;
    if (cli_has(args, "tolerance"))
        return cli_usage(args,
                         "--tolerance does not apply to traces; --fail-over says how much may be added");
    if (!cli_number(&opts.max_shown, args, "max", 20, 0, 1000000) ||
        !cli_number(&threads, args, "threads", 0, 1, 1024) || !cli_size(&fail_over, args, "fail-over", 0))
        return CLI_USAGE;
    opts.measure = (coffer_mlyze_measure)cli_choice(args, "what", COFFER_MLYZE_MEASURE_PEAK);
    opts.lines = cli_has(args, "lines");
    opts.no_markers = cli_has(args, "no-markers");
    opts.threads = (uint32_t)threads;
    coffer_status status = coffer_node_new(&root, &err);
    term_progress_start(&bar, "comparing", "events");
    opts.progress = &bar.progress;
    if (!status) {
        coffer_node_add_text(root, "file_a", path[0]);
        coffer_node_add_text(root, "file_b", path[1]);
        status = coffer_mlyze_diff(root, a, b, &opts, &err);
    }
    if (!status)
        status = coffer_node_status(root, &err);
    term_progress_end(&bar);
    int result = CLI_OK;
    if (status)
        result =
            cli_worse(cli_fail(err.subject == COFFER_SUBJECT_OTHER ? NULL : path[0], &err, NULL), CLI_FAILED);
    else if (stop_at_damage(args, path, a, b))
        result = CLI_FINDINGS;
    else if (cli_has(args, "csv"))
        result = cli_print_csv_lists(stdout, root);
    else if (cli_has(args, "json"))
        result = cli_print_json(stdout, root);
    else
        print_for_people(root, path, stdout);
    if (result == CLI_OK)
        result = verdict(root, args, fail_over);
    coffer_node_free(root);
    return result;
}

/* ---- The differential flame graph ---- */

static coffer_status make_tree(coffer_mlyze_tree **out, const coffer_mlyze *trace,
                               const coffer_mlyze_tree_opts *opts, coffer_error *err)
{
    coffer_mlyze_stats *stats = NULL;
    coffer_status status = coffer_mlyze_stats_new(&stats, trace, NULL, err);
    if (!status)
        status = coffer_mlyze_tree_new(out, trace, stats, opts, err);
    coffer_mlyze_stats_free(stats);
    return status;
}

/* Of all nodes but the root. */
static uint64_t most_change(const coffer_mlyze_tree *tree)
{
    uint64_t most = 0;
    for (size_t i = 1; i < coffer_mlyze_tree_count(tree); i++) {
        const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(tree, i);
        uint64_t change = node->after_bytes > node->before_bytes ? node->after_bytes - node->before_bytes
                                                                 : node->before_bytes - node->after_bytes;
        most = change > most ? change : most;
    }
    return most;
}

static int draw_flame(const cli_args *args, const coffer_mlyze *a, const coffer_mlyze *b)
{
    coffer_mlyze_tree *trees[3] = { NULL, NULL, NULL };
    coffer_mlyze_suppressions *focus = NULL, *ignore = NULL;
    coffer_mlyze_tree_opts opts = COFFER_MLYZE_TREE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    char title[256];
    int result = trace_read_patterns(&focus, args, "focus", NULL);
    if (result == CLI_OK)
        result = trace_read_patterns(&ignore, args, "ignore", NULL);
    opts.measure = (coffer_mlyze_measure)cli_choice(args, "what", COFFER_MLYZE_MEASURE_PEAK);
    opts.lines = cli_has(args, "lines");
    opts.focus = focus;
    opts.ignore = ignore;
    if (result == CLI_OK && (make_tree(&trees[0], a, &opts, &err) || make_tree(&trees[1], b, &opts, &err) ||
                             coffer_mlyze_tree_diff(&trees[2], trees[0], trees[1], &err)))
        result = cli_fail(cli_operand(args, 0), &err, NULL);
    if (result == CLI_OK) {
        snprintf(title, sizeof title, "%.100s → %.100s", cli_base_name(cli_operand(args, 0)),
                 cli_base_name(cli_operand(args, 1)));
        flame_page page = { .tree = trees[2],
                            .title = title,
                            .width = 1200,
                            .lines = opts.lines,
                            .most_change = most_change(trees[2]),
                            .compares = true };
        result = flame_write(args, &page, cli_value(args, "flame"), false);
    }
    for (size_t i = 0; i < 3; i++)
        coffer_mlyze_tree_free(trees[i]);
    coffer_mlyze_suppressions_free(focus);
    coffer_mlyze_suppressions_free(ignore);
    return result;
}

static int run_on(const cli_args *args, const coffer_mlyze *a)
{
    const char *flame = cli_value(args, "flame");
    if (flame && !flame_can_write(args, "flame", flame))
        return CLI_USAGE;
    if (flame && (cli_same_file(flame, cli_operand(args, 0)) || cli_same_file(flame, cli_operand(args, 1))))
        return cli_usage(args, "input and output are the same file: %s", flame);
    coffer_file *file = NULL;
    coffer_mlyze *b = NULL;
    char *index = NULL;
    const char *path = cli_operand(args, 1);
    trace_question question =
        trace_question_of((coffer_mlyze_measure)cli_choice(args, "what", COFFER_MLYZE_MEASURE_PEAK));
    int opened = cli_file_open_known(&file, path);
    if (opened == CLI_OK)
        opened = mlyze_open_trace(&b, &index, args, path, coffer_file_source(file));
    int result = opened;
    if (b) {
        result = trace_check_source(args, cli_operand(args, 0), a, question);
        if (result == CLI_OK)
            result = trace_check_source(args, path, b, question);
        if (result == CLI_OK)
            result = compare(args, a, b);
        if (result <= CLI_FINDINGS && cli_value(args, "flame") && !trace_stopped())
            result = cli_worse(result, draw_flame(args, a, b));
        if (result <= CLI_FINDINGS && !trace_stopped())
            result = cli_worse(cli_worse(result, opened), mlyze_tell_damage(path, b));
        coffer_mlyze_close(b);
    }
    coffer__free(index);
    coffer_file_close(file);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mlyze_with_trace(args, src, run_on);
}

const cli_format_verb cli_mlyze_diff = {
    .format = TRACE_FORMATS,
    .verb = "diff",
    .options = options,
    .examples = "  coffer diff monday.mlyze today.mlyze               # what grew since, stack by stack\n"
                "  coffer diff old.mlyze new.mlyze --what leaks --fail-over 64K\n"
                "  coffer diff old.mlyze new.mlyze --flame change.html  # red: grew, blue: shrank\n",
    .run = run,
};
