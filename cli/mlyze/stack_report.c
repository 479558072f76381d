#include "stack_report.h"

#include "base/fail.h"
#include "base/memory.h"
#include "term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_ON_A_TERMINAL = 20, DEPTH_SHOWN = 8 };

bool stack_report_read(stack_report *out, const cli_args *args)
{
    if (cli_check_output(args))
        return false;
    out->csv = cli_has(args, "csv");
    out->json = cli_has(args, "json");
    out->by = (coffer_mlyze_by)cli_choice(args, "by", COFFER_MLYZE_BY_STACK);
    out->by_count = cli_choice(args, "sort", 0) == 1;
    uint64_t top = !out->csv && !out->json && term_is_terminal(stdout) ? TOP_ON_A_TERMINAL : 0;
    return cli_number(&out->top, args, "top", top, 0, UINT64_MAX) &&
           cli_number(&out->depth, args, "depth", DEPTH_SHOWN, 0, UINT64_MAX);
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Largest first; equal ones by id, so that the order is deterministic. */
static int compare_rows(const void *left, const void *right, void *context)
{
    const stack_report *report = context;
    const coffer_mlyze_stack_row *a = *(const coffer_mlyze_stack_row *const *)left;
    const coffer_mlyze_stack_row *b = *(const coffer_mlyze_stack_row *const *)right;
    if (report->growth && a->growth_bytes_per_s != b->growth_bytes_per_s)
        return a->growth_bytes_per_s < b->growth_bytes_per_s ? 1 : -1;
    trace_amount amount_a = trace_amount_of(a, report->measure);
    trace_amount amount_b = trace_amount_of(b, report->measure);
    int bytes = compare_u64(amount_b.bytes, amount_a.bytes);
    int count = compare_u64(amount_b.count, amount_a.count);
    int order = report->by_count ? (count ? count : bytes) : (bytes ? bytes : count);
    return order ? order : compare_u64(a->id, b->id);
}

static bool is_wanted(stack_report *report, const coffer_mlyze_stack_row *row)
{
    trace_amount amount = trace_amount_of(row, report->measure);
    if (amount.count == 0)
        return false;
    if (report->growth && !coffer_mlyze_stack_row_is_growing(row))
        return false;
    trace_amount *sum = &report->shown;
    bool hidden =
        report->hidden && coffer_mlyze_suppressions_match(report->hidden, report->trace, row->stack);
    if (hidden)
        sum = &report->suppressed;
    sum->bytes += amount.bytes;
    sum->count += amount.count;
    return !hidden;
}

coffer_status stack_report_select(stack_report *report, coffer_error *err)
{
    size_t count = coffer_mlyze_stats_stack_count(report->stats);
    report->rows = coffer__alloc_array(count, sizeof *report->rows);
    if (!report->rows)
        return coffer__fail_no_memory(err, count * sizeof *report->rows);
    for (size_t i = 0; i < count; i++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(report->stats, i);
        if (is_wanted(report, row))
            report->rows[report->row_count++] = row;
    }
    qsort_r(report->rows, report->row_count, sizeof *report->rows, compare_rows, report);
    return COFFER_OK;
}

void stack_report_free(stack_report *report)
{
    coffer__free(report->rows);
    report->rows = NULL;
}

/* ---- Stacks as text ---- */

static double share_of(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_frames(const stack_report *report, size_t stack, coffer__buffer *line, FILE *out)
{
    size_t depth = 0;
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, report->trace, stack);
    size_t shown = report->depth && report->depth < depth ? (size_t)report->depth : depth;
    unsigned width = term_is_terminal(out) ? term_width(out) - 6 : 0;
    for (size_t i = 0; i < shown; i++) {
        line->len = 0;
        trace_put_frame(line, report->trace, &frames[i]);
        fprintf(out, "    %s ", i ? "←" : " ");
        term_print_text(out, (const char *)line->data, line->len, width);
        fputc('\n', out);
    }
    if (shown < depth)
        fprintf(out, "    %s… %zu more%s\n", term_on(out, TERM_DIM), depth - shown, term_off(out));
    if (depth == 0)
        fprintf(out, "      %s(no frames)%s\n", term_on(out, TERM_DIM), term_off(out));
}

static bool grows_by_events(const stack_report *report)
{
    return coffer_mlyze_stats_totals(report->stats)->growth_by_events;
}

static void print_stack(const stack_report *report, const coffer_mlyze_stack_row *row, coffer__buffer *line,
                        FILE *out)
{
    trace_amount amount = trace_amount_of(row, report->measure);
    term_text bytes, count, age, newest;
    fprintf(out, "%s%10s%s%s  %5.1f %%  %s block%s", term_on(out, TERM_BOLD), term_bytes(bytes, amount.bytes),
            term_off(out), trace_error(age, report->trace, amount.count),
            share_of(amount.bytes, report->shown.bytes), term_count(count, amount.count),
            term_plural(amount.count));
    if (report->ages && row->oldest_us == row->newest_us)
        fprintf(out, "  age %s", trace_time(age, report->trace, row->oldest_us));
    else if (report->ages)
        fprintf(out, "  ages %s to %s", trace_time(newest, report->trace, row->newest_us),
                trace_time(age, report->trace, row->oldest_us));
    if (report->growth && grows_by_events(report))
        fprintf(out, "  %s+%.1f bytes per event%s (r² %.2f)", term_on(out, TERM_RED), row->growth_bytes_per_s,
                term_off(out), row->growth_fit);
    else if (report->growth)
        fprintf(out, "  %s+%s/s%s (r² %.2f)", term_on(out, TERM_RED),
                term_bytes(bytes, (uint64_t)row->growth_bytes_per_s), term_off(out), row->growth_fit);
    fputc('\n', out);
    if (row->stack == SIZE_MAX)
        fprintf(out, "      %s? (the trace does not list stack %" PRIu64 ")%s\n", term_on(out, TERM_DIM),
                row->id, term_off(out));
    else
        print_frames(report, row->stack, line, out);
}

static void print_rest(size_t shown, size_t all, const char *what, FILE *out)
{
    if (shown < all)
        fprintf(out, "%s… %zu more %s; --top 0 shows all%s\n", term_on(out, TERM_DIM), all - shown, what,
                term_off(out));
}

static size_t shown_of(const stack_report *report, size_t count)
{
    return report->top && report->top < count ? (size_t)report->top : count;
}

static coffer_status print_stacks(const stack_report *report, FILE *out, coffer_error *err)
{
    coffer__buffer line = COFFER__BUFFER_INIT;
    size_t shown = shown_of(report, report->row_count);
    for (size_t i = 0; i < shown && !line.failed; i++)
        print_stack(report, report->rows[i], &line, out);
    print_rest(shown, report->row_count, "stacks", out);
    bool failed = line.failed;
    coffer__buffer_free(&line);
    return failed ? coffer__fail_no_memory(err, 0) : COFFER_OK;
}

/* ---- Stacks as nodes ---- */

static void add_stack(coffer_node *list, const stack_report *report, const coffer_mlyze_stack_row *row)
{
    trace_amount amount = trace_amount_of(row, report->measure);
    coffer_node *map = coffer_node_add_map(list, NULL);
    coffer_node_add_u64(map, "id", row->id, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(map, "bytes", amount.bytes, COFFER_UNIT_BYTES);
    trace_add_error(map, NULL, report->trace, amount.count);
    coffer_node_add_u64(map, "allocs", amount.count, COFFER_UNIT_NONE);
    coffer_node_add_f64(map, "share", share_of(amount.bytes, report->shown.bytes) / 100, COFFER_UNIT_NONE);
    if (report->ages) {
        coffer_node_add_u64(map, "oldest_us", row->oldest_us, COFFER_UNIT_MICROSECONDS);
        coffer_node_add_u64(map, "newest_us", row->newest_us, COFFER_UNIT_MICROSECONDS);
    }
    if (report->growth) {
        coffer_node_add_f64(map, grows_by_events(report) ? "growth_bytes_per_event" : "growth_bytes_per_s",
                            row->growth_bytes_per_s, COFFER_UNIT_NONE);
        coffer_node_add_f64(map, "growth_fit", row->growth_fit, COFFER_UNIT_NONE);
    }
    trace_add_frames(map, report->trace, row->stack);
}

static void add_stacks(coffer_node *root, const stack_report *report)
{
    coffer_node *list = coffer_node_add_list(root, "stacks");
    size_t shown = shown_of(report, report->row_count);
    for (size_t i = 0; i < shown; i++)
        add_stack(list, report, report->rows[i]);
}

/* ---- Functions and files ---- */

typedef struct place {
    const char *name;
    trace_amount own;
    uint64_t inclusive_bytes;
} place;

typedef struct place_list {
    place *at;
    size_t count;
    bool by_count;
} place_list;

static place place_of(const stack_report *report, const coffer_mlyze_place_row *row)
{
    place out = { .name = report->by == COFFER_MLYZE_BY_FILE
                              ? coffer_mlyze_file_name(report->trace, row->id)
                              : coffer_mlyze_function_name(report->trace, row->id) };
    out.name = out.name && *out.name ? out.name : "?";
    switch (report->measure) {
    case COFFER_MLYZE_MEASURE_PEAK:
        out.own = (trace_amount){ row->peak_bytes, row->peak_allocs };
        out.inclusive_bytes = row->inclusive_peak_bytes;
        break;
    case COFFER_MLYZE_MEASURE_LIVE:
        out.own = (trace_amount){ row->live_bytes, row->live_allocs };
        out.inclusive_bytes = row->inclusive_live_bytes;
        break;
    case COFFER_MLYZE_MEASURE_TOTAL:
        out.own = (trace_amount){ row->allocated_bytes, row->allocs };
        out.inclusive_bytes = row->inclusive_allocated_bytes;
        break;
    case COFFER_MLYZE_MEASURE_TEMPORARY:
        out.own = (trace_amount){ row->temporary_bytes, row->temporary_allocs };
        out.inclusive_bytes = row->inclusive_temporary_bytes;
        break;
    }
    return out;
}

static int compare_places(const void *left, const void *right, void *context)
{
    const place_list *list = context;
    const place *a = left, *b = right;
    int bytes = compare_u64(b->own.bytes, a->own.bytes), count = compare_u64(b->own.count, a->own.count);
    int order = list->by_count ? (count ? count : bytes) : (bytes ? bytes : count);
    order = order ? order : compare_u64(b->inclusive_bytes, a->inclusive_bytes);
    return order ? order : strcmp(a->name, b->name);
}

static coffer_status list_places(place_list *out, const stack_report *report, coffer_error *err)
{
    coffer_mlyze_places *places = NULL;
    coffer_mlyze_places_opts opts = COFFER_MLYZE_PLACES_OPTS_INIT;
    opts.by = report->by;
    opts.ignore = report->hidden;
    opts.growing = report->growth;
    coffer_status status = coffer_mlyze_places_select(&places, report->trace, report->stats, &opts, err);
    if (status)
        return status;
    size_t count = coffer_mlyze_places_count(places);
    *out = (place_list){ .at = coffer__alloc_array(count, sizeof *out->at), .by_count = report->by_count };
    for (size_t i = 0; out->at && i < count; i++) {
        place found = place_of(report, coffer_mlyze_places_at(places, i));
        if (found.own.count || found.inclusive_bytes)
            out->at[out->count++] = found;
    }
    coffer_mlyze_places_free(places);
    if (!out->at)
        return coffer__fail_no_memory(err, count * sizeof *out->at);
    qsort_r(out->at, out->count, sizeof *out->at, compare_places, out);
    return COFFER_OK;
}

static const char *places_title(const stack_report *report)
{
    return report->by == COFFER_MLYZE_BY_FILE ? "files" : "functions";
}

static coffer_status print_places(const stack_report *report, FILE *out, coffer_error *err)
{
    place_list list;
    term_text text, error;
    coffer_status status = list_places(&list, report, err);
    if (status)
        return status;
    size_t shown = shown_of(report, list.count);
    term_table *table = term_table_new();
    term_table_column(table, "bytes", TERM_RIGHT);
    term_table_column(table, "share", TERM_RIGHT);
    term_table_column(table, "blocks", TERM_RIGHT);
    term_table_column(table, "with callees", TERM_RIGHT);
    term_table_column(table, report->by == COFFER_MLYZE_BY_FILE ? "file" : "function", TERM_LEFT);
    for (size_t i = 0; i < shown; i++) {
        term_table_cellf(table, "%s%s", term_bytes(text, list.at[i].own.bytes),
                         trace_error(error, report->trace, list.at[i].own.count));
        term_table_cellf(table, "%.1f %%", share_of(list.at[i].own.bytes, report->shown.bytes));
        term_table_cell(table, term_count(text, list.at[i].own.count));
        term_table_cell(table, term_bytes(text, list.at[i].inclusive_bytes));
        term_table_cell(table, list.at[i].name);
    }
    term_table_print(table, out);
    print_rest(shown, list.count, places_title(report), out);
    coffer__free(list.at);
    return COFFER_OK;
}

static coffer_status add_places(coffer_node *root, const stack_report *report, coffer_error *err)
{
    place_list list;
    coffer_status status = list_places(&list, report, err);
    if (status)
        return status;
    coffer_node *entries = coffer_node_add_list(root, places_title(report));
    for (size_t i = 0; i < shown_of(report, list.count); i++) {
        coffer_node *map = coffer_node_add_map(entries, NULL);
        coffer_node_add_text(map, "name", list.at[i].name);
        coffer_node_add_u64(map, "bytes", list.at[i].own.bytes, COFFER_UNIT_BYTES);
        trace_add_error(map, NULL, report->trace, list.at[i].own.count);
        coffer_node_add_u64(map, "allocs", list.at[i].own.count, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "inclusive_bytes", list.at[i].inclusive_bytes, COFFER_UNIT_BYTES);
    }
    coffer__free(list.at);
    return COFFER_OK;
}

coffer_status stack_report_add(coffer_node *root, const stack_report *report, coffer_error *err)
{
    if (report->by != COFFER_MLYZE_BY_STACK)
        return add_places(root, report, err);
    add_stacks(root, report);
    return COFFER_OK;
}

int stack_report_print_nodes(const stack_report *report, const coffer_node *root)
{
    if (report->json)
        return cli_print_json(stdout, root);
    bool stacks = report->by == COFFER_MLYZE_BY_STACK;
    return cli_print_csv(stdout, coffer_node_find(root, stacks ? "stacks" : places_title(report)));
}

coffer_status stack_report_print(const stack_report *report, FILE *out, coffer_error *err)
{
    return report->by == COFFER_MLYZE_BY_STACK ? print_stacks(report, out, err)
                                               : print_places(report, out, err);
}

/* ---- Answers ---- */

static int print_nodes(const stack_answer *answer, coffer_error *err)
{
    coffer_node *root = NULL;
    coffer_status status = coffer_node_new(&root, err);
    int result = CLI_OK;
    if (!status) {
        coffer_node_add_text(root, "file", cli_operand(answer->args, 0));
        coffer_node_add_text(root, "format", "mlyze");
        trace_add_sampling(root, answer->report.trace);
        answer->add_facts(root, answer);
        trace_add_lost(root, answer->report.trace);
        if (answer->report.hidden && coffer_mlyze_suppressions_count(answer->report.hidden) > 0) {
            coffer_node_add_u64(root, "suppressed_bytes", answer->report.suppressed.bytes, COFFER_UNIT_BYTES);
            coffer_node_add_u64(root, "suppressed_allocs", answer->report.suppressed.count, COFFER_UNIT_NONE);
        }
        status = stack_report_add(root, &answer->report, err);
    }
    if (!status)
        status = coffer_node_status(root, err);
    result = !status ? stack_report_print_nodes(&answer->report, root)
                     : cli_fail(cli_operand(answer->args, 0), err, NULL);
    coffer_node_free(root);
    return result;
}

static int print_text(const stack_answer *answer, coffer_error *err)
{
    const stack_report *report = &answer->report;
    term_text bytes, count;
    answer->print_heading(answer, stdout);
    trace_print_sampling("", report->trace, report->shown.count, stdout);
    if (report->suppressed.count)
        printf("%s%s in %s blocks are suppressed%s\n", term_on(stdout, TERM_DIM),
               term_bytes(bytes, report->suppressed.bytes), term_count(count, report->suppressed.count),
               term_off(stdout));
    if (report->row_count == 0) {
        puts(answer->nothing);
        return CLI_OK;
    }
    putchar('\n');
    coffer_status status = stack_report_print(report, stdout, err);
    return !status ? CLI_OK : cli_fail(cli_operand(answer->args, 0), err, NULL);
}

int stack_answer_show(stack_answer *answer)
{
    coffer_error err = COFFER_ERROR_INIT;
    int result;
    answer->totals = coffer_mlyze_stats_totals(answer->report.stats);
    if (stack_report_select(&answer->report, &err) != COFFER_OK)
        result = cli_fail(cli_operand(answer->args, 0), &err, NULL);
    else
        result =
            answer->report.csv || answer->report.json ? print_nodes(answer, &err) : print_text(answer, &err);
    stack_report_free(&answer->report);
    return result;
}
