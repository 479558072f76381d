/* flame for traces: a flame graph as a picture, a page, or collapsed stacks. */
#include "base/fail.h"
#include "draw/picture.h"
#include "flame_page.h"
#include "mlyze_verbs.h"
#include "term.h"
#include "trace_query.h"

#include <string.h>
#include <strings.h>

static const cli_option options[] = {
    { "output", 'o', "FILE", NULL, "file to write: .svg, .html, or any other name for collapsed stacks" },
    CLI_FORCE_OPTION,
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

static void put(coffer__buffer *out, const flame_page *page, const cli_args *args)
{
    const char *path = cli_value(args, "output");
    if (cli_has(args, "json")) {
        flame_put_json(out, page, !path && term_is_terminal(stdout) ? 2 : 0);
        coffer__buffer_append(out, "\n", 1);
    } else if (path && ends_in(path, ".svg"))
        flame_put_svg(out, page);
    else if (path && (ends_in(path, ".html") || ends_in(path, ".htm")))
        flame_put_html(out, page);
    else
        flame_put_collapsed(out, page);
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

static int draw(const cli_args *args, const coffer_mlyze *trace, const coffer_mlyze_stats *stats, size_t what)
{
    static const coffer_mlyze_measure measures[] = { COFFER_MLYZE_MEASURE_PEAK, COFFER_MLYZE_MEASURE_LIVE,
                                                     COFFER_MLYZE_MEASURE_TOTAL,
                                                     COFFER_MLYZE_MEASURE_TEMPORARY };
    coffer_error err = COFFER_ERROR_INIT;
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer_mlyze_tree *tree = NULL;
    char title[200];
    uint64_t width;
    int result;
    coffer_mlyze_tree_opts opts = COFFER_MLYZE_TREE_OPTS_INIT;
    opts.measure = measures[what];
    opts.lines = cli_has(args, "lines");
    opts.inverted = cli_has(args, "inverted");
    opts.max_depth = FLAME_DEPTH_MAX;
    if (!cli_number(&width, args, "width", 1200, 320, PICTURE_MAX_SIDE))
        return CLI_USAGE;
    coffer_status status = coffer_mlyze_tree_new(&tree, trace, stats, &opts, &err);
    if (!status) {
        make_title(title, sizeof title, args, what);
        put(&text, &(flame_page){ tree, trace, title, (unsigned)width, opts.lines }, args);
        status = text.failed ? coffer__fail_no_memory(&err, text.len) : COFFER_OK;
    }
    result = !status ? cli_write_out(cli_value(args, "output"), cli_overwrites(), text.data, text.len)
                     : cli_fail(cli_operand(args, 0), &err, NULL);
    coffer__buffer_free(&text);
    coffer_mlyze_tree_free(tree);
    return result;
}

static int run_on(const cli_args *args, const coffer_mlyze *trace)
{
    trace_query request = { 0 };
    bool at = cli_has(args, "at");
    size_t what = at ? 1 : cli_choice(args, "what", 0);
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
                "  coffer flame run.mlyze --what total --window load..train -o load.svg\n"
                "  coffer flame run.mlyze --what temporaries | head     # collapsed stacks and their bytes\n",
    .run = run,
};
