/* stats, for training sets: sizes and numbers of each field, how often labels and sizes of pictures occur. */
#include "base/fail.h"
#include "mldf/mldf_verbs.h"
#include "mldf/sample_place.h"
#include "mldf/sample_value.h"
#include "term.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const cli_option options[] = {
    { "field", 0, "NAME", NULL, "only this field; repeatable", "all fields" },
    MLDF_WHERE_OPTION,
    { "top", 'n', "N", NULL, "number of the most frequent labels and sizes; 0 = all", "10" },
    CLI_CSV_OPTION,
    { "json", 0, NULL, NULL,
      "one JSON object: samples, fields with sizes, numbers and counts, shared_bytes" },
    CLI_DAMAGED_OPTION,
    CLI_KEY_OPTION,
    { 0 },
};

typedef struct stats_view {
    const cli_args *args;
    const coffer_mldf *set;
    const coffer_mldf_stats *stats;
    sample_reader *reader;
    size_t top;
    uint64_t samples; /* that are counted */
} stats_view;

static bool is_shown(const stats_view *view, size_t field)
{
    for (size_t i = 0; i < sample_field_count(view->reader); i++)
        if (sample_field_at(view->reader, i) == field)
            return true;
    return false;
}

static bool is_scalar(const coffer_mldf_field_stats *stats)
{
    return stats->field->kind == COFFER_MLDF_ENTRY_INT || stats->field->kind == COFFER_MLDF_ENTRY_FLOAT;
}

static size_t values_shown(const stats_view *view, const coffer_mldf_field_stats *stats)
{
    return view->top < stats->values_counted ? view->top : stats->values_counted;
}

/* index : less than values_counted. */
static coffer_mldf_value_count value_at(const stats_view *view, const coffer_mldf_field_stats *stats,
                                        size_t index)
{
    coffer_mldf_value_count value = COFFER_MLDF_VALUE_COUNT_INIT;
    size_t field = coffer_mldf_find_field(view->set, stats->field->name);
    coffer__ignore(coffer_mldf_stats_value_at(&value, view->stats, field, index, NULL));
    return value;
}

static double mean(const coffer_mldf_range *range)
{
    return range->count ? range->sum / (double)range->count : NAN;
}

/* The class that goes with a label, where the set names its classes. */
static const char *class_of(coffer__buffer *out, const stats_view *view, const coffer_mldf_field_stats *stats,
                            const coffer_mldf_value_count *count)
{
    size_t class_field = coffer_mldf_find_field(view->reader->set, "class");
    out->len = 0;
    if (strcmp(stats->field->name, "label") != 0 || class_field == COFFER_INDEX_NONE ||
        coffer_mldf_field_at(view->reader->set, class_field)->type != COFFER_MLDF_TEXT ||
        sample_put_text(out, view->reader, count->first_sample, class_field, NULL) != COFFER_OK)
        return NULL;
    return coffer__buffer_text(out);
}

/* ---- As JSON ---- */

/* Whole numbers as such. */
static void add_number(coffer_node *map, const char *name, double value)
{
    const double exact = 9007199254740992.0; /* 2^53: doubles have every whole number up to it */
    if (value == floor(value) && fabs(value) <= exact)
        coffer_node_add_i64(map, name, (int64_t)value, COFFER_UNIT_NONE);
    else
        coffer_node_add_f64(map, name, value, COFFER_UNIT_NONE);
}

static void add_span(coffer_node *parent, const char *name, const coffer_mldf_range *values)
{
    if (values->count == 0)
        return;
    coffer_node *map = coffer_node_add_map(parent, name);
    add_number(map, "min", values->min);
    coffer_node_add_f64(map, "mean", mean(values), COFFER_UNIT_NONE);
    add_number(map, "max", values->max);
    add_number(map, "sum", values->sum);
}

static void add_values(coffer_node *parent, const stats_view *view, const coffer_mldf_field_stats *stats)
{
    bool pictures = stats->field->kind == COFFER_MLDF_ENTRY_IMAGE;
    bool sounds = stats->field->kind == COFFER_MLDF_ENTRY_AUDIO;
    if (stats->values_counted == 0)
        return;
    if (stats->values_overflowed) {
        coffer_node_add_null(parent, "distinct");
        return;
    }
    coffer_node_add_u64(parent, "distinct", stats->values_counted, COFFER_UNIT_NONE);
    coffer__buffer name = COFFER__BUFFER_INIT;
    coffer_node *list = coffer_node_add_list(parent, pictures ? "picture_sizes"
                                                     : sounds ? "sample_rates"
                                                              : "counts");
    for (size_t i = 0; i < values_shown(view, stats); i++) {
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_mldf_value_count value = value_at(view, stats, i);
        if (pictures) {
            coffer_node_add_u64(map, "width", value.width, COFFER_UNIT_NONE);
            coffer_node_add_u64(map, "height", value.height, COFFER_UNIT_NONE);
        } else {
            coffer_node_add_i64(map, "value", value.value, COFFER_UNIT_NONE);
        }
        coffer_node_add_u64(map, "count", value.count, COFFER_UNIT_NONE);
        const char *class_name = class_of(&name, view, stats, &value);
        if (class_name)
            coffer_node_add_text_len(map, "class", class_name, name.len);
    }
    coffer__buffer_free(&name);
}

static void add_field(coffer_node *list, const stats_view *view, const coffer_mldf_field_stats *stats)
{
    sample_type_text type;
    coffer_node *map = coffer_node_add_map(list, NULL);
    coffer_node_add_text(map, "name", stats->field->name);
    coffer_node_add_text(map, "type", sample_type_name(type, stats->field));
    coffer_node_add_u64(map, "present", stats->present, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "absent", stats->absent, COFFER_UNIT_NONE);
    if (stats->not_finite)
        coffer_node_add_u64(map, "not_finite", stats->not_finite, COFFER_UNIT_NONE);
    add_span(map, "bytes", &stats->bytes);
    add_span(map, "numbers", &stats->scalars);
    add_span(map, "width", &stats->widths);
    add_span(map, "height", &stats->heights);
    add_span(map, "seconds", &stats->seconds);
    add_span(map, "tokens", &stats->tokens);
    add_values(map, view, stats);
}

/* As JSON; with --csv the fields alone. */
static int print_nodes(const stats_view *view)
{
    uint64_t payload_bytes = coffer_mldf_stats_payload_bytes(view->stats);
    uint64_t stored_bytes = coffer_mldf_stats_stored_bytes(view->stats);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    coffer_status status = coffer_node_new(&root, &err);
    if (!status) {
        cli_add_damaged(root);
        coffer_node_add_u64(root, "samples", view->samples, COFFER_UNIT_NONE);
        coffer_node_add_u64(root, "payload_bytes", payload_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(root, "stored_bytes", stored_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(root, "shared_bytes", payload_bytes - stored_bytes, COFFER_UNIT_BYTES);
        coffer_node *list = coffer_node_add_list(root, "fields");
        for (size_t i = 0; i < coffer_mldf_field_count(view->set); i++)
            if (is_shown(view, i))
                add_field(list, view, coffer_mldf_stats_field_at(view->stats, i));
        status = coffer_node_status(root, &err);
    }
    int result;
    if (status)
        result = cli_fail(cli_operand(view->args, 0), &err, NULL);
    else if (cli_has(view->args, "csv"))
        result = cli_print_csv(stdout, coffer_node_find(root, "fields"));
    else
        result = cli_print_json(stdout, root);
    coffer_node_free(root);
    return result;
}

/* ---- As text ---- */

static void add_bytes(term_table *table, double bytes)
{
    term_text text;
    term_table_cell(table, term_bytes(text, (uint64_t)(bytes + 0.5)));
}

/* True when a shown field has payloads, or numbers. */
static bool has_any(const stats_view *view, bool payloads)
{
    for (size_t i = 0; i < coffer_mldf_field_count(view->set); i++) {
        const coffer_mldf_field_stats *stats = coffer_mldf_stats_field_at(view->stats, i);
        bool measured =
            stats->scalars.count || stats->widths.count || stats->seconds.count || stats->tokens.count;
        if (is_shown(view, i) && (payloads ? !is_scalar(stats) : measured))
            return true;
    }
    return false;
}

static void print_payloads(const stats_view *view)
{
    static const char *const titles[] = { "field",    "type", "values",  "absent",
                                          "smallest", "mean", "largest", "total" };
    term_table *table = term_table_new();
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        term_table_column(table, titles[i], i < 2 ? TERM_LEFT : TERM_RIGHT);
    for (size_t i = 0; i < coffer_mldf_field_count(view->set); i++) {
        const coffer_mldf_field_stats *stats = coffer_mldf_stats_field_at(view->stats, i);
        sample_type_text type;
        term_text count;
        if (!is_shown(view, i) || is_scalar(stats))
            continue;
        term_table_cell(table, stats->field->name);
        term_table_cell(table, sample_type_name(type, stats->field));
        term_table_cell(table, term_count(count, stats->present));
        term_table_cell(table, term_count(count, stats->absent));
        add_bytes(table, stats->bytes.min);
        add_bytes(table, stats->bytes.count ? mean(&stats->bytes) : 0);
        add_bytes(table, stats->bytes.max);
        add_bytes(table, stats->bytes.sum);
    }
    term_table_print(table, stdout);
}

/* A line: field, what is measured, least, mean, most. */
static void add_measure(term_table *table, const coffer_mldf_field_stats *stats, const char *what,
                        const coffer_mldf_range *values)
{
    if (values->count == 0)
        return;
    term_table_cell(table, stats->field->name);
    term_table_cell(table, what);
    term_table_cellf(table, "%.10g", values->min);
    term_table_cellf(table, "%.6g", mean(values));
    term_table_cellf(table, "%.10g", values->max);
}

static void print_measures(const stats_view *view)
{
    static const char *const titles[] = { "field", "what", "min", "mean", "max" };
    term_table *table = term_table_new();
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        term_table_column(table, titles[i], i < 2 ? TERM_LEFT : TERM_RIGHT);
    for (size_t i = 0; i < coffer_mldf_field_count(view->set); i++) {
        const coffer_mldf_field_stats *stats = coffer_mldf_stats_field_at(view->stats, i);
        if (!is_shown(view, i))
            continue;
        add_measure(table, stats, "value", &stats->scalars);
        add_measure(table, stats, "width", &stats->widths);
        add_measure(table, stats, "height", &stats->heights);
        add_measure(table, stats, "seconds", &stats->seconds);
        add_measure(table, stats, "tokens", &stats->tokens);
    }
    term_table_print(table, stdout);
}

/* A bar of at most `width` columns, in eighths. */
static void add_bar(term_table *table, double share, unsigned width)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    char bar[3 * 64 + 4] = "";
    unsigned units = (unsigned)(share * width * 8 + 0.5);
    size_t len = 0;
    for (unsigned i = 0; i < units / 8; i++, len += 3)
        memcpy(bar + len, "█", 4);
    memcpy(bar + len, eighths[units % 8], strlen(eighths[units % 8]) + 1);
    term_table_style(table, TERM_BLUE);
    term_table_cell(table, bar);
}

static void print_values(const stats_view *view, const coffer_mldf_field_stats *stats)
{
    enum { BAR = 32 };
    bool pictures = stats->field->kind == COFFER_MLDF_ENTRY_IMAGE;
    size_t shown = values_shown(view, stats), counted = stats->values_counted;
    coffer_mldf_value_count first = value_at(view, stats, 0);
    coffer__buffer name = COFFER__BUFFER_INIT;
    term_table *table = term_table_new();
    term_table_column(table, NULL, TERM_RIGHT);
    term_table_column(table, NULL, TERM_RIGHT);
    term_table_column(table, NULL, TERM_RIGHT);
    bool has_class = class_of(&name, view, stats, &first) != NULL;
    if (has_class)
        term_table_column(table, NULL, TERM_LEFT);
    term_table_column(table, NULL, TERM_LEFT);
    term_table_indent(table, 2);
    const char *what = pictures                                        ? "size"
                       : stats->field->kind == COFFER_MLDF_ENTRY_AUDIO ? "sample rate"
                                                                       : "value";
    printf("\n%s", term_on(stdout, TERM_BOLD));
    term_print_text(stdout, stats->field->name, strlen(stats->field->name), 0);
    printf("%s: %zu %s%s\n", term_off(stdout), counted, what, counted == 1 ? "" : "s");
    for (size_t i = 0; i < shown; i++) {
        coffer_mldf_value_count value = value_at(view, stats, i);
        double share = stats->present ? (double)value.count / (double)stats->present : 0;
        term_text count;
        if (pictures)
            term_table_cellf(table, "%" PRIu32 " × %" PRIu32, value.width, value.height);
        else
            term_table_cellf(table, "%" PRId64, value.value);
        term_table_cell(table, term_count(count, value.count));
        term_table_cellf(table, "%.1f %%", 100 * share);
        const char *class_name = class_of(&name, view, stats, &value);
        if (has_class)
            term_table_cell(table, class_name ? class_name : "");
        add_bar(table, (double)value.count / (double)first.count, BAR);
    }
    coffer__buffer_free(&name);
    term_table_print(table, stdout);
    if (shown < counted)
        printf("%s  … and %zu more (--top 0 shows all)%s\n", term_on(stdout, TERM_DIM), counted - shown,
               term_off(stdout));
}

/* Numbers that are all different, such as ids, are not labels. */
static bool worth_counting(const coffer_mldf_field_stats *stats)
{
    return stats->values_counted > 0 && !stats->values_overflowed &&
           (stats->values_counted <= 16 || 2 * stats->values_counted <= stats->present);
}

static void print_text(const stats_view *view)
{
    uint64_t payload_bytes = coffer_mldf_stats_payload_bytes(view->stats);
    uint64_t stored_bytes = coffer_mldf_stats_stored_bytes(view->stats);
    term_text samples, saved;
    const char *path = cli_operand(view->args, 0);
    term_print_text(stdout, path, strlen(path), 0);
    printf(": %s samples", term_count(samples, view->samples));
    if (payload_bytes > stored_bytes)
        printf(", %s saved by sharing equal values", term_bytes(saved, payload_bytes - stored_bytes));
    puts("");
    if (has_any(view, true))
        print_payloads(view);
    if (has_any(view, false))
        print_measures(view);
    for (size_t i = 0; i < coffer_mldf_field_count(view->set); i++)
        if (is_shown(view, i) && worth_counting(coffer_mldf_stats_field_at(view->stats, i)))
            print_values(view, coffer_mldf_stats_field_at(view->stats, i));
}

static int show(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    coffer_error err = COFFER_ERROR_INIT;
    sample_reader reader = SAMPLE_READER_INIT(set, key->at != NULL);
    stats_view view = { .args = args, .set = set, .reader = &reader };
    coffer_mldf_stats_opts opts = COFFER_MLDF_STATS_OPTS_INIT;
    coffer_mldf_stats *stats = NULL;
    term_progress bar;
    uint64_t top;
    if (!cli_number(&top, args, "top", 10, 0, SIZE_MAX))
        return CLI_USAGE;
    view.top = top ? (size_t)top : SIZE_MAX;
    sample_list list = { NULL, 0 };
    bool selected = false;
    int result = cli_check_output(args);
    if (!result)
        result = sample_fields_read(&reader, args);
    if (!result)
        result = sample_where_read(&list, &selected, args, set);
    if (result) {
        sample_list_free(&list);
        sample_reader_free(&reader);
        return result;
    }
    static const uint64_t none = 0;
    view.samples = selected ? list.count : coffer_mldf_sample_count(set);
    opts.samples = !selected ? NULL : list.at ? list.at : &none;
    opts.sample_count = list.count;
    term_progress_start(&bar, "counting", "fields");
    opts.progress = &bar.progress;
    coffer_status status = coffer_mldf_stats_new(&stats, set, &opts, &err);
    term_progress_end(&bar);
    view.stats = stats;
    if (status)
        result = cli_fail(cli_operand(args, 0), &err, NULL);
    else if (cli_has(args, "json") || cli_has(args, "csv"))
        result = print_nodes(&view);
    else
        print_text(&view);
    coffer_mldf_stats_free(stats);
    sample_list_free(&list);
    sample_reader_free(&reader);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mldf_with_set(args, src, show);
}

const cli_format_verb cli_mldf_stats = {
    .format = "mldf",
    .verb = "stats",
    .options = options,
    .examples = "  coffer stats train.mldf                 # sizes, labels, sizes of pictures\n"
                "  coffer stats train.mldf --field label --top 0\n",
    .run = run,
};
