/* timeline for traces: from the index where that is precise enough, else from the events. */
#include "base/fail.h"
#include "draw/picture.h"
#include "mlyze_verbs.h"
#include "term.h"
#include "timeline_view.h"
#include "trace_names.h"
#include "trace_query.h"

#include <string.h>
#include <strings.h>

enum { NARROWEST_TEXT = 20, BESIDE_THE_PLOT = 32, WIDEST_TEXT = 1000 };

static const cli_option options[] = {
    { "output", 'o', "FILE", NULL, "file to write: .png, .svg or .csv", "text on standard output" },
    CLI_FORCE_OPTION,
    { "from", 0, "TIME", NULL, "start of the timeline, such as 20ms or 1.5s", "0s" },
    { "to", 0, "TIME", NULL, "end of the timeline", "the end of the trace" },
    { "points", 'n', "N", NULL, "number of points", "as many as fit; 512 in CSV and JSON" },
    { "exact", 0, NULL, NULL, "read every event instead of the index: slower, with all markers" },
    { "width", 0, "PIXELS", NULL, "width of the picture", "1200" },
    { "height", 0, "PIXELS", NULL, "height of the picture", "620" },
    CLI_CSV_OPTION,
    { "json", 0, NULL, NULL, "print one JSON object" },
    TRACE_THREADS_OPTION,
    TRACE_SOURCE_OPTIONS,
    TRACE_DAMAGED_OPTION,
    { 0 },
};

typedef enum timeline_form { AS_TEXT, AS_CSV, AS_JSON, AS_PICTURE } timeline_form;

typedef struct timeline_request {
    coffer_mlyze_timeline_opts opts;
    timeline_form form;
    unsigned width, height;
    const char *output;
} timeline_request;

static bool is_csv(const char *path)
{
    size_t len = strlen(path);
    return len > 4 && strcasecmp(path + len - 4, ".csv") == 0;
}

static int choose_form(timeline_request *request, const cli_args *args)
{
    bool csv = cli_has(args, "csv"), json = cli_has(args, "json");
    request->output = cli_value(args, "output");
    if (json && (csv || request->output))
        return cli_usage(args, "--json goes to standard output, without --csv and --output");
    if (json)
        request->form = AS_JSON;
    else if (csv || (request->output && is_csv(request->output)))
        request->form = AS_CSV;
    else if (request->output && picture_can_write(request->output))
        request->form = AS_PICTURE;
    else if (request->output)
        return cli_usage(args, "%s: pictures end in .png or .svg, tables in .csv", request->output);
    return CLI_OK;
}

static uint64_t room_for_points(const timeline_request *request)
{
    if (request->form == AS_PICTURE)
        return timeline_plot_width(request->width);
    if (request->form != AS_TEXT)
        return 512;
    unsigned width = term_width(stdout);
    return width > BESIDE_THE_PLOT + NARROWEST_TEXT ? width - BESIDE_THE_PLOT : NARROWEST_TEXT;
}

static int parse(timeline_request *out, const cli_args *args)
{
    uint64_t width, height, points, threads;
    *out = (timeline_request){ .opts = COFFER_MLYZE_TIMELINE_OPTS_INIT };
    int result = choose_form(out, args);
    if (result != CLI_OK)
        return result;
    if (!cli_number(&width, args, "width", 1200, 320, PICTURE_MAX_SIDE) ||
        !cli_number(&height, args, "height", 620, 400, PICTURE_MAX_SIDE))
        return CLI_USAGE;
    out->width = (unsigned)width;
    out->height = (unsigned)height;
    if (!cli_number(&points, args, "points", room_for_points(out), 1,
                    out->form == AS_TEXT ? WIDEST_TEXT : 1000000) ||
        !cli_number(&threads, args, "threads", 0, 1, 1024) ||
        !cli_duration(&out->opts.begin_us, args, "from", 0) ||
        !cli_duration(&out->opts.end_us, args, "to", UINT64_MAX))
        return CLI_USAGE;
    if (out->opts.begin_us >= out->opts.end_us)
        return cli_usage(args, "--to must be later than --from");
    out->opts.width = (uint32_t)points;
    out->opts.threads = (uint32_t)threads;
    out->opts.exact = cli_has(args, "exact");
    return CLI_OK;
}

static int show_nodes(const timeline_view *view)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    coffer_status status = coffer_node_new(&root, &err);
    if (!status) {
        timeline_add(root, view);
        status = coffer_node_status(root, &err);
    }
    int result = !status ? cli_print_json(stdout, root) : cli_fail(view->path, &err, NULL);
    coffer_node_free(root);
    return result;
}

static int show(const timeline_view *view, const timeline_request *request)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__buffer text = COFFER__BUFFER_INIT;
    int result = CLI_OK;
    switch (request->form) {
    case AS_TEXT:
        timeline_print(view, stdout);
        break;
    case AS_JSON:
        result = show_nodes(view);
        break;
    case AS_CSV:
        timeline_put_csv(&text, view);
        if (text.failed) {
            coffer__fail_no_memory(&err, text.len);
            result = cli_fail(view->path, &err, NULL);
        } else {
            result = cli_write_out(request->output, cli_overwrites(), text.data, text.len);
        }
        break;
    case AS_PICTURE:
        if (timeline_draw(view, request->output, request->width, request->height, &err) != COFFER_OK)
            result = cli_fail(request->output, &err, NULL);
        break;
    }
    coffer__buffer_free(&text);
    return result;
}

static int run_on(const cli_args *args, const coffer_mlyze *trace)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze_timeline *timeline = NULL;
    timeline_request request;
    term_progress bar;
    int result = parse(&request, args);
    if (result == CLI_OK)
        result = trace_check_source(args, cli_operand(args, 0), trace, TRACE_ASKS_COURSE);
    if (result != CLI_OK)
        return result;
    term_progress_start(&bar, "reading", "events");
    request.opts.progress = &bar.progress;
    coffer_status status = coffer_mlyze_timeline_new(&timeline, trace, &request.opts, &err);
    term_progress_end(&bar);
    if (status)
        return cli_fail(cli_operand(args, 0), &err, NULL);
    timeline_view view = timeline_view_of(trace, timeline, cli_operand(args, 0));
    result = trace_stop_at_damage(args, cli_operand(args, 0), trace);
    if (result == CLI_OK)
        result = show(&view, &request);
    coffer_mlyze_timeline_free(timeline);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mlyze_with_trace(args, src, run_on);
}

const cli_format_verb cli_mlyze_timeline = {
    .format = TRACE_FORMATS,
    .verb = "timeline",
    .options = options,
    .examples =
        "  coffer timeline run.mlyze                         # live bytes over time, in the terminal\n"
        "  coffer timeline run.mlyze -o run.svg\n"
        "  coffer timeline run.mlyze --from 1s --to 2s --exact\n"
        "  coffer timeline run.mlyze --csv > run.csv\n",
    .run = run,
};
