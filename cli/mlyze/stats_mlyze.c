/* stats for traces. */
#include "mlyze_verbs.h"
#include "stack_report.h"
#include "term.h"
#include "trace_query.h"

#include <inttypes.h>
#include <string.h>

/* The statistics of a whole trace: as text and as JSON. */

enum { STATS_TRACE_TOP = 10 };

static void add_totals(coffer_node *root, const coffer_mlyze *trace, const coffer_mlyze_totals *totals)
{
    trace_add_sampling(root, trace);
    coffer_node_add_u64(root, "events", totals->events, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "allocs", totals->allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "frees", totals->frees, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "duration_us", totals->duration_us, COFFER_UNIT_MICROSECONDS);
    coffer_node_add_u64(root, "total_allocated_bytes", totals->total_allocated_bytes, COFFER_UNIT_BYTES);
    trace_add_error(root, "total_allocated", trace, totals->allocs);
    coffer_node_add_u64(root, "peak_bytes", totals->peak_bytes, COFFER_UNIT_BYTES);
    trace_add_error(root, "peak", trace, totals->peak_allocs);
    coffer_node_add_u64(root, "peak_allocs", totals->peak_allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "peak_event", totals->peak_event, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "peak_time_us", totals->peak_time_us, COFFER_UNIT_MICROSECONDS);
    coffer_node_add_u64(root, "live_bytes_at_end", totals->live_bytes_at_end, COFFER_UNIT_BYTES);
    trace_add_error(root, "live_at_end", trace, totals->live_allocs_at_end);
    coffer_node_add_u64(root, "live_allocs_at_end", totals->live_allocs_at_end, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "temporary_allocs", totals->temporary_allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "temporary_bytes", totals->temporary_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "reallocs", totals->reallocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "reused_addresses", totals->reused_addresses, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "unknown_frees", totals->unknown_frees, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "double_allocs", totals->double_allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "nowhere_allocs", totals->nowhere_allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "unknown_events", totals->unknown_events, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "lost_events", totals->lost_events, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "lost_blocks", totals->lost_blocks, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "collections", totals->collections, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "collected_objects", totals->collected_objects, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "collected_bytes", totals->collected_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "peak_rss_bytes", totals->peak_rss_bytes, COFFER_UNIT_BYTES);
}

static void add_completeness(coffer_node *root, const coffer_mlyze *trace)
{
    coffer_error damage = COFFER_ERROR_INIT;
    uint64_t blocks = 0, events = 0;
    coffer_mlyze_lost(&blocks, &events, trace);
    bool bad = coffer_mlyze_damage(trace, &damage) || coffer_mlyze_repaired(trace, &damage);
    coffer_node_add_bool(root, "complete", !bad && blocks == 0);
    if (bad)
        coffer_node_add_text(root, "damage", damage.text);
}

/* Buckets that are not empty; "from" is their smallest value. */
static void add_histogram(coffer_node *root, const char *name, const char *from,
                          const coffer_mlyze_histogram *histogram)
{
    coffer_node *list = coffer_node_add_list(root, name);
    for (unsigned i = 0; i < COFFER_MLYZE_BUCKETS; i++) {
        if (!histogram->count[i])
            continue;
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_u64(map, from, i ? UINT64_C(1) << (i - 1) : 0, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "allocs", histogram->count[i], COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "bytes", histogram->bytes[i], COFFER_UNIT_BYTES);
    }
}

static void add_threads(coffer_node *root, const stack_report *top)
{
    coffer_node *list = coffer_node_add_list(root, "threads");
    for (size_t i = 0; i < coffer_mlyze_stats_thread_count(top->stats); i++) {
        const coffer_mlyze_thread_row *row = coffer_mlyze_stats_thread_at(top->stats, i);
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_u64(map, "thread", row->thread, COFFER_UNIT_OFFSET);
        coffer_node_add_text(map, "name", row->name);
        coffer_node_add_u64(map, "allocs", row->allocs, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "allocated_bytes", row->allocated_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "peak_bytes", row->peak_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "live_bytes", row->live_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "live_allocs", row->live_allocs, COFFER_UNIT_NONE);
    }
}

static void add_markers(coffer_node *root, const stack_report *top)
{
    coffer_node *list = coffer_node_add_list(root, "markers");
    for (size_t i = 0; i < coffer_mlyze_stats_mark_count(top->stats); i++) {
        const coffer_mlyze_mark *mark = coffer_mlyze_stats_mark_at(top->stats, i);
        if (mark->type != COFFER_MLYZE_MARKER)
            continue;
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "name", coffer_mlyze_function_name(top->trace, mark->id));
        coffer_node_add_u64(map, "event", mark->event, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "time_us", mark->time_us, COFFER_UNIT_MICROSECONDS);
        coffer_node_add_u64(map, "live_bytes", mark->live_bytes, COFFER_UNIT_BYTES);
    }
}

static coffer_status stats_trace_add(coffer_node *root, const stack_report *top, const char *path,
                                     coffer_error *err)
{
    coffer_node_add_text(root, "file", path);
    coffer_node_add_text(root, "format", "mlyze");
    add_totals(root, top->trace, coffer_mlyze_stats_totals(top->stats));
    add_completeness(root, top->trace);
    add_histogram(root, "sizes", "from_bytes", coffer_mlyze_stats_sizes(top->stats));
    add_histogram(root, "lifetimes", "from_us", coffer_mlyze_stats_lifetimes(top->stats));
    add_threads(root, top);
    add_markers(root, top);
    return stack_report_add(root, top, err);
}

enum { BAR_COLUMNS = 30, BESIDE_BAR = 36, MARKERS_SHOWN = 20, THREADS_SHOWN = 16 };

static void print_title(const char *title, FILE *out)
{
    fprintf(out, "\n%s%s%s\n", term_on(out, TERM_BOLD), title, term_off(out));
}

static void print_totals(const coffer_mlyze *trace, const coffer_mlyze_totals *totals, FILE *out)
{
    term_text count, bytes, time, error;
    term_table *table = term_table_new();
    term_table_indent(table, 2);
    term_table_column(table, NULL, TERM_LEFT);
    term_table_column(table, NULL, TERM_LEFT);
    term_table_cell(table, "run");
    term_table_cellf(table, "%s, %s event%s", trace_time(time, trace, totals->duration_us),
                     term_count(count, totals->events), term_plural(totals->events));
    term_table_cell(table, "allocated");
    term_table_cellf(table, "%s%s in %s allocation%s", term_bytes(bytes, totals->total_allocated_bytes),
                     trace_error(error, trace, totals->allocs), term_count(count, totals->allocs),
                     term_plural(totals->allocs));
    term_table_cell(table, "peak");
    term_table_cellf(table, "%s%s in %s block%s", term_bytes(bytes, totals->peak_bytes),
                     trace_error(error, trace, totals->peak_allocs), term_count(count, totals->peak_allocs),
                     term_plural(totals->peak_allocs));
    term_table_cell(table, "");
    term_table_cellf(table, "%s after the start, event %s", trace_time(time, trace, totals->peak_time_us),
                     term_count(count, totals->peak_event));
    term_table_cell(table, "live at the end");
    term_table_cellf(table, "%s%s in %s block%s", term_bytes(bytes, totals->live_bytes_at_end),
                     trace_error(error, trace, totals->live_allocs_at_end),
                     term_count(count, totals->live_allocs_at_end), term_plural(totals->live_allocs_at_end));
    if (trace_has_order(trace)) {
        double share = totals->allocs ? (double)totals->temporary_allocs / (double)totals->allocs : 0;
        term_table_cell(table, "temporary");
        term_table_cellf(table, "%s allocation%s (%.1f %%)", term_count(count, totals->temporary_allocs),
                         term_plural(totals->temporary_allocs), 100.0 * share);
    }
    if (totals->collections) {
        term_table_cell(table, "collections");
        term_table_cellf(table, "%s, %s", term_count(count, totals->collections),
                         term_bytes(bytes, totals->collected_bytes));
    }
    if (totals->peak_rss_bytes) {
        term_table_cell(table, "resident, most");
        term_table_cell(table, term_bytes(bytes, totals->peak_rss_bytes));
    }
    term_table_print(table, out);
}

/* Anomalies of the trace, one line each. */
static void print_remarks(const coffer_mlyze_totals *totals, FILE *out)
{
    const struct {
        uint64_t count;
        const char *what;
    } remarks[] = {
        { totals->unknown_frees, "frees of blocks that are not live" },
        { totals->double_allocs, "allocations at addresses that are live" },
        { totals->nowhere_allocs, "allocations at address 0, which cannot be paired" },
        { totals->unknown_events, "extension events that are not known" },
        { totals->lost_events, "events lost in damaged blocks" },
    };
    term_text count;
    for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++) {
        if (remarks[i].count)
            fprintf(out, "  %snote:%s %s %s\n", term_on(out, TERM_YELLOW), term_off(out),
                    term_count(count, remarks[i].count), remarks[i].what);
    }
}

static void print_bar(char out[3 * BAR_COLUMNS + 1], uint64_t part, uint64_t most, unsigned columns)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    unsigned length = most ? (unsigned)((double)part / (double)most * columns * 8 + 0.5) : 0;
    static const char full[] = "█";
    if (part && !length)
        length = 1;
    for (unsigned i = 0; i < length / 8; i++, out += sizeof full - 1)
        memcpy(out, full, sizeof full - 1);
    size_t rest = strlen(eighths[length % 8]);
    memcpy(out, eighths[length % 8], rest + 1);
}

/* The width of a terminal that is left next to the numbers. */
static unsigned bar_columns(FILE *out)
{
    unsigned width = term_width(out);
    if (!term_is_terminal(out) || width >= BESIDE_BAR + BAR_COLUMNS)
        return BAR_COLUMNS;
    return width > BESIDE_BAR ? width - BESIDE_BAR : 1;
}

static const char *bucket_name(term_text out, unsigned bucket, bool is_time)
{
    uint64_t from = bucket ? UINT64_C(1) << (bucket - 1) : 0;
    return is_time ? term_duration(out, (double)from / 1e6) : term_bytes(out, from);
}

/* The number of consecutive empty buckets; more than two become one line. */
static unsigned empty_buckets(const coffer_mlyze_histogram *histogram, unsigned first)
{
    unsigned end = first;
    while (end < COFFER_MLYZE_BUCKETS && !histogram->count[end])
        end++;
    return end - first;
}

static void print_histogram(const char *title, const coffer_mlyze_histogram *histogram, bool is_time,
                            FILE *out)
{
    uint64_t most = 0;
    unsigned first = COFFER_MLYZE_BUCKETS, last = 0;
    term_text text;
    for (unsigned i = 0; i < COFFER_MLYZE_BUCKETS; i++) {
        if (!histogram->count[i])
            continue;
        most = histogram->count[i] > most ? histogram->count[i] : most;
        first = first < i ? first : i;
        last = i;
    }
    if (!most)
        return;
    print_title(title, out);
    term_table *table = term_table_new();
    term_table_indent(table, 2);
    term_table_column(table, "from", TERM_RIGHT);
    term_table_column(table, "blocks", TERM_RIGHT);
    term_table_column(table, "bytes", TERM_RIGHT);
    term_table_column(table, "", TERM_LEFT);
    for (unsigned i = first; i <= last; i++) {
        char bar[3 * BAR_COLUMNS + 1];
        unsigned empty = empty_buckets(histogram, i);
        if (empty > 2) {
            for (unsigned column = 0; column < 4; column++)
                term_table_cell(table, column ? "" : "…");
            i += empty - 1;
            continue;
        }
        print_bar(bar, histogram->count[i], most, bar_columns(out));
        term_table_cell(table, bucket_name(text, i, is_time));
        term_table_cell(table, term_count(text, histogram->count[i]));
        term_table_cell(table, term_bytes(text, histogram->bytes[i]));
        term_table_cell(table, bar);
    }
    term_table_print(table, out);
}

static void print_more(size_t shown, size_t all, FILE *out)
{
    if (shown < all)
        fprintf(out, "  %s… %zu more; --json has all%s\n", term_on(out, TERM_DIM), all - shown,
                term_off(out));
}

static void print_threads(const stack_report *top, FILE *out)
{
    size_t count = coffer_mlyze_stats_thread_count(top->stats);
    size_t shown = count < THREADS_SHOWN ? count : THREADS_SHOWN;
    term_text text;
    if (count < 2)
        return;
    print_title("threads", out);
    term_table *table = term_table_new();
    term_table_indent(table, 2);
    term_table_column(table, "thread", TERM_RIGHT);
    term_table_column(table, "allocations", TERM_RIGHT);
    term_table_column(table, "allocated", TERM_RIGHT);
    term_table_column(table, "peak", TERM_RIGHT);
    term_table_column(table, "left", TERM_RIGHT);
    term_table_column(table, "name", TERM_LEFT);
    for (size_t i = 0; i < shown; i++) {
        const coffer_mlyze_thread_row *row = coffer_mlyze_stats_thread_at(top->stats, i);
        const char *name = row->name;
        term_table_cellf(table, "%" PRIu16, row->thread);
        term_table_cell(table, term_count(text, row->allocs));
        term_table_cell(table, term_bytes(text, row->allocated_bytes));
        term_table_cell(table, term_bytes(text, row->peak_bytes));
        term_table_cell(table, term_bytes(text, row->live_bytes));
        term_table_cell(table, name ? name : "");
    }
    term_table_print(table, out);
    print_more(shown, count, out);
}

static size_t count_markers(const stack_report *top)
{
    size_t count = 0;
    for (size_t i = 0; i < coffer_mlyze_stats_mark_count(top->stats); i++)
        count += coffer_mlyze_stats_mark_at(top->stats, i)->type == COFFER_MLYZE_MARKER;
    return count;
}

static void print_markers(const stack_report *top, FILE *out)
{
    size_t count = count_markers(top), shown = 0;
    term_text text;
    if (count == 0)
        return;
    print_title("markers", out);
    term_table *table = term_table_new();
    term_table_indent(table, 2);
    term_table_column(table, "time", TERM_RIGHT);
    term_table_column(table, "live", TERM_RIGHT);
    term_table_column(table, "marker", TERM_LEFT);
    for (size_t i = 0; shown < count && shown < MARKERS_SHOWN; i++) {
        const coffer_mlyze_mark *mark = coffer_mlyze_stats_mark_at(top->stats, i);
        if (mark->type != COFFER_MLYZE_MARKER)
            continue;
        const char *name = coffer_mlyze_function_name(top->trace, mark->id);
        shown++;
        term_table_cell(table, trace_time(text, top->trace, mark->time_us));
        term_table_cell(table, term_bytes(text, mark->live_bytes));
        term_table_cell(table, name ? name : "?");
    }
    term_table_print(table, out);
    print_more(shown, count, out);
}

static const char *places_heading(const stack_report *top)
{
    static const char *const headings[4][3] = {
        { "stacks live at the peak", "functions live at the peak", "files live at the peak" },
        { "stacks never freed", "functions whose blocks were never freed",
          "files whose blocks were never freed" },
        { "stacks that allocate most", "functions that allocate most", "files that allocate most" },
        { "stacks of temporaries", "functions of temporaries", "files of temporaries" },
    };
    return headings[top->measure][top->by];
}

/* top : selected; the places to show, and the statistics. */
static coffer_status stats_trace_print(const stack_report *top, const char *path, FILE *out,
                                       coffer_error *err)
{
    const coffer_mlyze_totals *totals = coffer_mlyze_stats_totals(top->stats);
    fputs(term_on(out, TERM_BOLD), out);
    term_print_text(out, path, strlen(path), 0);
    fprintf(out, "%s\n", term_off(out));
    print_totals(top->trace, totals, out);
    trace_print_sampling("  ", top->trace, totals->allocs, out);
    print_remarks(totals, out);
    print_histogram("sizes", coffer_mlyze_stats_sizes(top->stats), false, out);
    if (trace_has_order(top->trace))
        print_histogram("lifetimes", coffer_mlyze_stats_lifetimes(top->stats), true, out);
    print_threads(top, out);
    print_markers(top, out);
    if (totals->allocs == 0)
        return COFFER_OK;
    print_title(places_heading(top), out);
    return stack_report_print(top, out, err);
}

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
