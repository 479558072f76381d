/* stats, for models: a line for each tensor. */
#include "base/fail.h"
#include "base/memory.h"
#include "draw/picture.h"
#include "files.h"
#include "tensors/stats_picture.h"
#include "tensors/tensors_verbs.h"
#include "term.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *spark_draw(spark_text out, const uint64_t histogram[SPARK_BINS])
{
    static const char *const heights[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    enum { HEIGHTS = sizeof heights / sizeof heights[0], MERGED = SPARK_BINS / SPARK_COLUMNS };
    double columns[SPARK_COLUMNS] = { 0.0 }, fullest = 0.0;
    char *at = out, *end = out; /* after the last column that is not empty */
    for (int i = 0; i < SPARK_BINS; i++)
        columns[i / MERGED] += (double)histogram[i];
    for (int i = 0; i < SPARK_COLUMNS; i++)
        if (columns[i] > fullest)
            fullest = columns[i];
    for (int i = 0; i < SPARK_COLUMNS && fullest > 0.0; i++) {
        int height = (int)(columns[i] / fullest * HEIGHTS);
        const char *mark = columns[i] > 0.0 ? heights[height < HEIGHTS ? height : HEIGHTS - 1] : " ";
        at = stpcpy(at, mark);
        if (columns[i] > 0.0)
            end = at;
    }
    *end = '\0';
    return out;
}

static const cli_option options[] = {
    { "include", 0, "GLOB", NULL, "only tensors whose name matches" },
    { "exclude", 0, "GLOB", NULL, "leave out tensors whose name matches" },
    { "sort", 0, "KEY", "name|elements|min|max|mean|std|zeros|nan|inf|outliers",
      "sort key; names ascending, numbers descending", "name" },
    { "top", 'n', "N", NULL, "number of tensors to show; 0 = all", "0; 24 in a picture" },
    { "output", 'o', "FILE", NULL, "draw the histograms, .png or .svg", "a table" },
    CLI_FORCE_OPTION,
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    CLI_DAMAGED_OPTION,
    CLI_CSV_OPTION,
    { "json", 0, NULL, NULL, "one JSON object per tensor and line, with a histogram of 64 bins" },
    { 0 },
};

typedef struct stats_job {
    const cli_args *args;
    coffer_tensors *set;
    coffer_tensors_stats *stats;
    stats_row *rows;
    size_t count;
} stats_job;

/* ---- Collecting and sorting ---- */

static coffer_status make_rows(stats_job *job, coffer_error *err)
{
    job->count = coffer_tensors_stats_count(job->stats);
    job->rows = coffer__alloc_array(job->count, sizeof *job->rows);
    if (!job->rows)
        return coffer__fail_no_memory(err, job->count * sizeof *job->rows);
    for (size_t i = 0; i < job->count; i++) {
        const coffer_tensor_stats *stats = coffer_tensors_stats_at(job->stats, i);
        job->rows[i] = (stats_row){ coffer_tensors_at(job->set, stats->tensor), stats };
    }
    return COFFER_OK;
}

typedef enum sort_key {
    BY_NAME,
    BY_ELEMENTS,
    BY_MIN,
    BY_MAX,
    BY_MEAN,
    BY_STD,
    BY_ZEROS,
    BY_NAN,
    BY_INF,
    BY_OUTLIERS
} sort_key;

static double value_of(const stats_row *row, sort_key key)
{
    const coffer_tensor_stats *stats = row->stats;
    const double values[] = {
        [BY_NAME] = 0.0,
        [BY_ELEMENTS] = (double)stats->elements,
        [BY_MIN] = stats->min,
        [BY_MAX] = stats->max,
        [BY_MEAN] = stats->mean,
        [BY_STD] = stats->std,
        [BY_ZEROS] = (double)stats->zeros,
        [BY_NAN] = (double)stats->nans,
        [BY_INF] = (double)stats->infinities,
        [BY_OUTLIERS] = (double)stats->outliers,
    };
    return values[key];
}

/* Numbers from the largest to the smallest, then what is none; equal ones by name. */
static int compare_rows(const void *a, const void *b, void *context)
{
    const stats_row *left = a, *right = b;
    sort_key key = *(const sort_key *)context;
    double x = value_of(left, key), y = value_of(right, key);
    int order = isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x < y) - (x > y);
    return order ? order : strcmp(left->tensor->name, right->tensor->name);
}

static void sort_rows(stats_job *job)
{
    sort_key key = (sort_key)cli_choice(job->args, "sort", BY_NAME);
    if (job->count > 1)
        qsort_r(job->rows, job->count, sizeof *job->rows, compare_rows, &key);
}

/* ---- Output ---- */

static void add_number(coffer_node *map, const char *name, double value)
{
    if (isfinite(value))
        coffer_node_add_f64(map, name, value, COFFER_UNIT_NONE);
    else
        coffer_node_add_null(map, name);
}

static void add_tensor(coffer_node *list, const stats_row *row)
{
    const coffer_tensor_stats *stats = row->stats;
    coffer_node *root = coffer_node_add_map(list, NULL);
    coffer_node_add_text(root, "name", row->tensor->name);
    coffer_node_add_text(root, "dtype", coffer_tensor_dtype_name(row->tensor));
    coffer_node *shape = coffer_node_add_list(root, "shape");
    for (uint32_t i = 0; i < row->tensor->rank; i++)
        coffer_node_add_u64(shape, NULL, row->tensor->dims[i], COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "elements", stats->elements, COFFER_UNIT_NONE);
    add_number(root, "min", stats->min);
    add_number(root, "max", stats->max);
    add_number(root, "mean", stats->mean);
    add_number(root, "std", stats->std);
    coffer_node_add_u64(root, "zeros", stats->zeros, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "nan", stats->nans, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "inf", stats->infinities, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "outliers", stats->outliers, COFFER_UNIT_NONE);
    coffer_node *histogram = coffer_node_add_list(root, "histogram");
    for (size_t i = 0; i < SPARK_BINS; i++)
        coffer_node_add_u64(histogram, NULL, stats->histogram[i], COFFER_UNIT_NONE);
}

static void add_value_cell(term_table *table, double value)
{
    if (isnan(value))
        term_table_cell(table, "–");
    else
        term_table_cellf(table, "%.4g", value);
}

static void add_count_cell(term_table *table, uint64_t count, bool alarming)
{
    term_text text;
    if (alarming && count > 0)
        term_table_style(table, TERM_RED);
    term_table_cell(table, term_count(text, count));
}

enum { ROOMY = 130 }; /* columns that leave room for names beside everything else */

typedef struct totals {
    uint64_t elements, nans, infinities;
    bool slim; /* on a narrow terminal names are worth more than counts that ls and --json give too */
} totals;

static void add_row(term_table *table, const stats_row *row, const totals *all)
{
    const coffer_tensor_stats *stats = row->stats;
    spark_text histogram;
    term_table_cell(table, row->tensor->name);
    if (!all->slim) {
        term_table_cell(table, coffer_tensor_dtype_name(row->tensor));
        add_count_cell(table, stats->elements, false);
    }
    add_value_cell(table, stats->min);
    add_value_cell(table, stats->max);
    add_value_cell(table, stats->mean);
    add_value_cell(table, stats->std);
    if (!all->slim)
        add_count_cell(table, stats->zeros, false);
    if (all->nans > 0)
        add_count_cell(table, stats->nans, true);
    if (all->infinities > 0)
        add_count_cell(table, stats->infinities, true);
    add_count_cell(table, stats->outliers, false);
    term_table_cell(table, spark_draw(histogram, stats->histogram));
}

/* Columns of NaN and infinities are there when any tensor has some. */
static void add_columns(term_table *table, const totals *all)
{
    const struct {
        const char *title;
        bool shown;
    } numbers[] = {
        { "elements", !all->slim },
        { "min", true },
        { "max", true },
        { "mean", true },
        { "std", true },
        { "zeros", !all->slim },
        { "nan", all->nans > 0 },
        { "inf", all->infinities > 0 },
        { "outliers", true },
    };
    term_table_column(table, "tensor", TERM_LEFT);
    if (!all->slim)
        term_table_column(table, "dtype", TERM_LEFT);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].shown)
            term_table_column(table, numbers[i].title, TERM_RIGHT);
    term_table_column(table, "histogram", TERM_LEFT);
}

static void print_table(const stats_job *job, size_t shown)
{
    totals all = { .slim = term_is_terminal(stdout) && term_width(stdout) < ROOMY };
    for (size_t i = 0; i < job->count; i++) {
        all.elements += job->rows[i].stats->elements;
        all.nans += job->rows[i].stats->nans;
        all.infinities += job->rows[i].stats->infinities;
    }
    term_table *table = term_table_new();
    add_columns(table, &all);
    for (size_t i = 0; i < shown; i++)
        add_row(table, &job->rows[i], &all);
    term_table_print(table, stdout);
    term_text count, elements;
    if (shown < job->count)
        printf("… and %s more (--top 0 shows all)\n", term_count(count, job->count - shown));
    printf("%stensors: %s, elements: %s%s\n", term_on(stdout, TERM_DIM), term_count(count, job->count),
           term_count(elements, all.elements), term_off(stdout));
}

/* With --csv or --json. */
static int print_nodes(const stats_job *job, size_t shown)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    coffer_status status = coffer_node_new(&root, &err);
    coffer_node *list = status ? NULL : coffer_node_add_list(root, "tensors");
    for (size_t i = 0; i < shown && !status; i++)
        add_tensor(list, &job->rows[i]);
    if (!status)
        status = coffer_node_status(root, &err);
    int result = status ? cli_fail(cli_operand(job->args, 0), &err, NULL) : CLI_OK;
    if (!result && cli_has(job->args, "csv"))
        result = cli_print_csv(stdout, list);
    else
        for (const coffer_node *node = status ? NULL : coffer_node_first(list); node && !result;
             node = coffer_node_next(node))
            result = cli_print_json_line(stdout, node);
    coffer_node_free(root);
    return result;
}

static int draw(const stats_job *job, const char *output, uint64_t top)
{
    coffer_error err = COFFER_ERROR_INIT;
    size_t most = top > 0 && top < STATS_PICTURE_MOST    ? (size_t)top
                  : top > 0 || cli_has(job->args, "top") ? STATS_PICTURE_MOST
                                                         : STATS_PICTURE_TENSORS;
    size_t shown = most < job->count ? most : job->count;
    if (shown == 0)
        return cli_usage(job->args, "no tensors selected");
    if (stats_draw(output, cli_base_name(cli_operand(job->args, 0)), job->rows, shown, job->count, &err))
        return cli_fail(output, &err, NULL);
    if (shown < job->count)
        fprintf(stderr, "the picture has %zu of %zu tensors (--top N, at most %d)\n", shown, job->count,
                STATS_PICTURE_MOST);
    return CLI_OK;
}

static int print(const stats_job *job, uint64_t top)
{
    size_t shown = top > 0 && top < job->count ? (size_t)top : job->count;
    const char *output = cli_value(job->args, "output");
    if (output)
        return draw(job, output, top);
    if (cli_has(job->args, "json") || cli_has(job->args, "csv"))
        return print_nodes(job, shown);
    if (job->count == 0)
        puts("no tensors selected");
    else
        print_table(job, shown);
    return CLI_OK;
}

static int check_picture(const cli_args *args)
{
    const char *output = cli_value(args, "output");
    if (output && (cli_has(args, "csv") || cli_has(args, "json")))
        return cli_usage(args, "-o draws a picture; it cannot be combined with --csv or --json");
    return output && !picture_can_write(output) ? cli_usage(args, "%s: pictures end in .png or .svg", output)
                                                : CLI_OK;
}

static int run(const cli_args *args, coffer_source *src)
{
    const char *path = cli_operand(args, 0);
    stats_job job = { .args = args };
    coffer_tensors_stats_opts opts = COFFER_TENSORS_STATS_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    uint64_t top, threads;
    if (cli_check_output(args) || check_picture(args))
        return CLI_USAGE;
    if (!cli_number(&top, args, "top", 0, 0, UINT64_MAX) ||
        !cli_number(&threads, args, "threads", 0, 1, 1024))
        return CLI_USAGE;
    opts.threads = (uint32_t)threads;
    opts.include = cli_value(args, "include");
    opts.exclude = cli_value(args, "exclude");
    coffer_status status = tensors_open(&job.set, path, src, &err);
    if (!status) {
        term_progress_start(&bar, "reading", NULL);
        bar.amount = coffer_tensors_size(job.set);
        opts.progress = &bar.progress;
        status = coffer_tensors_stats_new(&job.stats, job.set, &opts, &err);
        term_progress_end(&bar);
    }
    if (!status)
        status = make_rows(&job, &err);
    if (!status)
        sort_rows(&job);
    int result = !status ? print(&job, top) : cli_fail(path, &err, NULL);
    coffer__free(job.rows);
    coffer_tensors_stats_free(job.stats);
    coffer_tensors_close(job.set);
    return result;
}

const cli_format_verb cli_tensors_stats = {
    .format = TENSORS_KINDS,
    .verb = "stats",
    .options = options,
    .examples =
        "  coffer stats model.mcf                            # every tensor: extremes, mean, histogram\n"
        "  coffer stats folder/ --include '*.q_proj.*' --sort std --top 5\n"
        "  coffer stats model.mcf -o values.png              # the histograms as a picture\n"
        "  coffer stats model.gguf --json | jq 'select(.nan > 0) | .name'\n",
    .run = run,
};
