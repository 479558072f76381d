/* flame for traces: a flame graph as a picture, a page, or collapsed stacks. */
#include "base/fail.h"
#include "draw/picture.h"
#include "flame_page.h"
#include "mlyze_verbs.h"
#include "term.h"
#include "trace_names.h"
#include "trace_query.h"

#include <string.h>
#include <strings.h>

static const cli_option options[] = {
    { "output", 'o', "FILE", NULL, "file to write: .svg, .png, .html, .json, or .collapsed",
      "collapsed stacks on standard output" },
    CLI_FORCE_OPTION,
    { "focus", 0, "GLOB", NULL,
      "only stacks with a matching function or file; without * the text may be anywhere; repeatable" },
    { "ignore", 0, "GLOB", NULL, "leave out stacks with a matching function or file; repeatable" },
    { "what", 0, "WHAT", TRACE_WHAT_CHOICES,
      "bytes to draw (live at the peak, never freed, all allocations, freed at once)", "peak" },
    { "at", 0, "MOMENT", NULL, "draw what was live at a moment: a time (1.5s), an event number or a marker" },
    TRACE_WINDOW_OPTION,
    { "lines", 0, NULL, NULL, "draw calls from different lines as different frames" },
    { "inverted", 0, NULL, NULL, "draw the allocating function at the root and its callers on top" },
    { "width", 0, "PIXELS", NULL, "width of the picture", "1200" },
    { "title", 0, "TEXT", NULL, "heading of the picture" },
    TRACE_WORK_OPTIONS,
    { "json", 0, NULL, NULL, "print a tree of name, value (bytes), allocs, place and children" },
    { 0 },
};

static bool ends_in(const char *path, const char *extension)
{
    size_t len = strlen(path), tail = strlen(extension);
    return len > tail && strcasecmp(path + len - tail, extension) == 0;
}

static bool is_page(const char *path)
{
    return ends_in(path, ".html") || ends_in(path, ".htm");
}

/* A name of something that is not written here gets no text in disguise. */
bool flame_can_write(const cli_args *args, const char *option, const char *path)
{
    static const char *const known[] = { ".svg",  ".png", ".html",      ".htm",
                                         ".json", ".txt", ".collapsed", ".folded" };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool found = strrchr(name, '.') == NULL && strcmp(path, "-") != 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        found |= ends_in(path, known[i]);
    if (!found)
        cli_usage(args, "--%s %s: the name must end in .svg, .png, .html, .json, or .collapsed for text",
                  option, path);
    return found;
}

int flame_write(const cli_args *args, const flame_page *page, const char *path, bool json)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__buffer text = COFFER__BUFFER_INIT;
    if (path && !json && ends_in(path, ".png"))
        return flame_draw(page, path, &err) ? cli_fail(path, &err, NULL) : CLI_OK;
    if (json || (path && ends_in(path, ".json"))) {
        flame_put_json(&text, page, !path && term_is_terminal(stdout) ? 2 : 0);
        coffer__buffer_append(&text, "\n", 1);
    } else if (path && ends_in(path, ".svg"))
        flame_put_svg(&text, page);
    else if (path && is_page(path))
        flame_put_html(&text, page);
    else
        flame_put_collapsed(&text, page);
    int result = CLI_OK;
    if (text.failed) {
        coffer__fail_no_memory(&err, text.len);
        result = cli_fail(cli_operand(args, 0), &err, NULL);
    } else {
        result = cli_write_out(path, cli_overwrites(), text.data, text.len);
    }
    coffer__buffer_free(&text);
    return result;
}

static void make_title(char *out, size_t size, const cli_args *args, size_t what)
{
    static const char *const words[] = { "live at the peak", "never freed", "allocated", "temporary" };
    const char *path = cli_operand(args, 0), *slash = strrchr(path, '/'), *at = cli_value(args, "at");
    const char *given = cli_value(args, "title"), *window = cli_value(args, "window");
    if (given)
        snprintf(out, size, "%s", given);
    else if (at)
        snprintf(out, size, "%s: live at %s", slash ? slash + 1 : path, at);
    else
        snprintf(out, size, "%s: %s%s%s", slash ? slash + 1 : path, words[what], window ? " in " : "",
                 window ? window : "");
}

/* The sum of a sampled trace is an estimate: " (24.0 MiB ± 1.2 MiB)". */
static void add_error(char *title, size_t size, const coffer_mlyze *trace, const coffer_mlyze_tree *tree)
{
    const coffer_mlyze_tree_node *root = coffer_mlyze_tree_at(tree, 0);
    size_t len = strlen(title);
    term_text bytes, error;
    if (root && coffer_mlyze_sampling_bytes(trace) > 0)
        snprintf(title + len, size - len, " (%s%s, 95 %%)", term_bytes(bytes, root->bytes),
                 trace_error(error, trace, root->allocs));
}

static int draw(const cli_args *args, const coffer_mlyze *trace, const coffer_mlyze_stats *stats, size_t what)
{
    static const coffer_mlyze_measure measures[] = { COFFER_MLYZE_MEASURE_PEAK, COFFER_MLYZE_MEASURE_LIVE,
                                                     COFFER_MLYZE_MEASURE_TOTAL,
                                                     COFFER_MLYZE_MEASURE_TEMPORARY };
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze_tree *tree = NULL;
    coffer_mlyze_suppressions *focus = NULL, *ignore = NULL;
    char title[200];
    uint64_t width;
    coffer_mlyze_tree_opts opts = COFFER_MLYZE_TREE_OPTS_INIT;
    opts.measure = measures[what];
    opts.lines = cli_has(args, "lines");
    opts.inverted = cli_has(args, "inverted");
    opts.max_depth = FLAME_DEPTH_MAX;
    if (!cli_number(&width, args, "width", 1200, 320, PICTURE_MAX_SIDE))
        return CLI_USAGE;
    int result = trace_read_patterns(&focus, args, "focus", NULL);
    if (result == CLI_OK)
        result = trace_read_patterns(&ignore, args, "ignore", NULL);
    opts.focus = focus;
    opts.ignore = ignore;
    if (result == CLI_OK && coffer_mlyze_tree_new(&tree, trace, stats, &opts, &err))
        result = cli_fail(cli_operand(args, 0), &err, NULL);
    if (result == CLI_OK) {
        make_title(title, sizeof title, args, what);
        add_error(title, sizeof title, trace, tree);
        flame_page page = {
            .tree = tree, .trace = trace, .title = title, .width = (unsigned)width, .lines = opts.lines
        };
        if (coffer_mlyze_tree_count(tree) < 2 && (cli_has(args, "focus") || cli_has(args, "ignore")))
            trace_tell_note(cli_operand(args, 0), "no stack is selected: the graph is empty");
        if (coffer_mlyze_sampling_bytes(trace) > 0 && !cli_has(args, "output") && !cli_has(args, "json"))
            trace_tell_note(cli_operand(args, 0),
                            "the bytes are estimates of a sampled trace; --json has their error");
        result = flame_write(args, &page, cli_value(args, "output"), cli_has(args, "json"));
    }
    coffer_mlyze_suppressions_free(focus);
    coffer_mlyze_suppressions_free(ignore);
    coffer_mlyze_tree_free(tree);
    return result;
}

static int run_on(const cli_args *args, const coffer_mlyze *trace)
{
    trace_query request = { 0 };
    bool at = cli_has(args, "at");
    size_t what = at ? 1 : cli_choice(args, "what", 0);
    const char *output = cli_value(args, "output");
    if (output && !cli_has(args, "json") && strcmp(output, "-") != 0 &&
        !flame_can_write(args, "output", output))
        return CLI_USAGE;
    if (at && (cli_has(args, "window") || cli_has(args, "what")))
        return cli_usage(args, "--at cannot be combined with --window or --what");
    int result = trace_check_source(args, cli_operand(args, 0), trace,
                                    at ? TRACE_ASKS_COURSE : trace_question_of((coffer_mlyze_measure)what));
    if (result == CLI_OK)
        result = trace_query_init(&request, args, trace);
    if (result == CLI_OK)
        result = trace_query_moment(&request.query.end, args, "at", trace);
    if (result == CLI_OK)
        result = trace_query_run(&request, args, trace);
    if (result == CLI_OK)
        result = draw(args, trace, request.stats, what);
    trace_query_free(&request);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mlyze_with_trace(args, src, run_on);
}

const cli_format_verb cli_mlyze_flame = {
    .format = TRACE_FORMATS,
    .verb = "flame",
    .options = options,
    .examples = "  coffer flame run.mlyze -o peak.html                  # a page with zoom and search\n"
                "  coffer flame run.mlyze --what leaks -o leaks.svg\n"
                "  coffer flame run.mlyze --focus train --ignore 'numpy*' -o train.png\n"
                "  coffer flame run.mlyze --what total --window load..train -o load.svg\n"
                "  coffer flame run.mlyze --what temporaries | head     # collapsed stacks and their bytes\n",
    .run = run,
};
