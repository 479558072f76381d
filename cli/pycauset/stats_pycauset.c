/* stats, for matrices: one pass over all values. */
#include "pycauset_verbs.h"
#include "term.h"

#include <string.h>

static const cli_option options[] = {
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    CLI_CSV_OPTION,
    { "json", 0, NULL, NULL,
      "one JSON object: rows, cols, elements, nonzero, density, min, max, mean, std, frobenius, nans, "
      "infinities" },
    PYCAUSET_ARRAY_OPTIONS,
    CLI_DAMAGED_OPTION,
    { 0 },
};

/* null when the matrix has no finite value. */
static void add_number(coffer_node *root, const char *name, double value, bool exists)
{
    if (exists)
        coffer_node_add_f64(root, name, value, COFFER_UNIT_NONE);
    else
        coffer_node_add_null(root, name);
}

static void add_shape(coffer_node *root, const coffer_pycauset *matrix)
{
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    coffer_node_add_u64(root, "rows", info->rows, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "cols", info->cols, COFFER_UNIT_NONE);
    coffer_node_add_text(root, "matrix_type", coffer_pycauset_type_name(info->type));
    coffer_node_add_text(root, "data_type", coffer_pycauset_dtype_name(info->dtype));
}

static void add_stats(coffer_node *root, const coffer_pycauset_summary *stats)
{
    bool any = stats->elements > stats->nans + stats->infinities;
    coffer_node_add_u64(root, "elements", stats->elements, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "nonzero", stats->nonzero, COFFER_UNIT_NONE);
    coffer_node_add_f64(root, "density", stats->density, COFFER_UNIT_NONE);
    if (stats->complex_values)
        coffer_node_add_text(root, "of", "magnitudes");
    add_number(root, "min", stats->min, any);
    add_number(root, "max", stats->max, any);
    add_number(root, "mean", stats->mean, any);
    add_number(root, "std", stats->std, any);
    coffer_node_add_f64(root, "frobenius", stats->frobenius, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "nans", stats->nans, COFFER_UNIT_NONE);
    coffer_node_add_u64(root, "infinities", stats->infinities, COFFER_UNIT_NONE);
}

static void print_text(const char *path, const coffer_pycauset *matrix, const coffer_node *root)
{
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    term_text rows, cols;
    fputs(term_on(stdout, TERM_BOLD), stdout);
    term_print_text(stdout, path, strlen(path), 0);
    printf("%s: %s × %s, %s of %s\n", term_off(stdout), term_count(rows, info->rows),
           term_count(cols, info->cols), coffer_pycauset_type_name(info->type), pycauset_element_type(info));
    cli_print_nodes(stdout, coffer_node_find(root, "elements"));
}

static int show(const cli_args *args, const coffer_pycauset *matrix, const coffer_pycauset_summary *stats)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    int result = CLI_OK;
    const char *path = cli_operand(args, 0);
    bool csv = cli_has(args, "csv");
    coffer_status status = coffer_node_new(&root, &err);
    if (!status) {
        /* A table of one row. */
        coffer_node *map = csv ? coffer_node_add_map(root, NULL) : root;
        coffer_node_add_text(map, "file", path);
        coffer_node_add_text(map, "format", "pycauset");
        add_shape(map, matrix);
        add_stats(map, stats);
        status = coffer_node_status(root, &err);
    }
    if (status)
        result = cli_fail(path, &err, NULL);
    else if (csv)
        result = cli_print_csv(stdout, root);
    else if (cli_has(args, "json"))
        result = cli_print_json(stdout, root);
    else
        print_text(path, matrix, root);
    coffer_node_free(root);
    return result;
}

static int run_on(const cli_args *args, const coffer_pycauset *matrix)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_stats_opts opts = COFFER_PYCAUSET_STATS_OPTS_INIT;
    coffer_pycauset_stats *stats = NULL;
    uint64_t threads;
    term_progress bar;
    if (cli_check_output(args))
        return CLI_USAGE;
    if (!cli_number(&threads, args, "threads", 0, 1, 1024))
        return CLI_USAGE;
    term_progress_start(&bar, "reading", NULL);
    bar.amount = coffer_pycauset_get_info(matrix)->payload_needed;
    opts.threads = (uint32_t)threads;
    opts.progress = &bar.progress;
    coffer_status status = coffer_pycauset_stats_new(&stats, matrix, &opts, &err);
    term_progress_end(&bar);
    if (status)
        return cli_fail(cli_operand(args, 0), &err, NULL);
    int result = show(args, matrix, coffer_pycauset_stats_total(stats));
    coffer_pycauset_stats_free(stats);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return pycauset_with_matrix(args, src, 0, run_on);
}

const cli_format_verb cli_pycauset_stats = {
    .format = "pycauset, hdf5, mtx",
    .verb = "stats",
    .options = options,
    .examples = "  coffer stats m.pycauset                         # density, extremes, mean, norm, NaNs\n"
                "  coffer stats m.pycauset --json | jq .frobenius\n",
    .run = run,
};
