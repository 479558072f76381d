/* Every allocation and every file operation of statistics, scores and heat maps fails once: no leak, no wrong
 * result, nothing left behind. */
#include "support/fault.h"
#include "unit/mscan/mscan_sample.h"

enum { RECORDS = 400, TOKENS = 100 };

static coffer_mscan_record record_of(size_t i)
{
    uint64_t random = i * UINT64_C(0x9e3779b97f4a7c15);
    return (coffer_mscan_record){ (uint32_t)(i * TOKENS / RECORDS), (uint16_t)(i % 3), (uint16_t)(i % 5),
                                  (uint16_t)(random >> 20), (uint16_t)(random >> 40) };
}

static void write_scan(const char *folder, void *context)
{
    coffer_mscan_record *records = malloc(RECORDS * sizeof *records);
    sample made;
    (void)context;
    for (size_t i = 0; i < RECORDS; i++)
        records[i] = record_of(i);
    sample_open(&made, "{\"0\": \"model.layers.0.a\", \"1\": \"model.layers.1.b\", \"2\": \"lm_head\"}",
                "[{\"sequence_id\": 0, \"num_tokens\": 100}]", records, RECORDS);
    temp_write(temp_path(folder, "x.mscan"), made.bytes, made.size);
    sample_close(&made);
}

static coffer_status take_stats(const coffer_mscan *scan, coffer_mscan_by by, coffer_error *err)
{
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_stats *stats = NULL;
    coffer_status status;
    query.by = by;
    query.token_end = 90; /* so that the order is looked at */
    status = coffer_mscan_stats_new(&stats, scan, &query, err);
    if (status == COFFER_OK)
        assert_int_equal(coffer_mscan_stats_total(stats)->count, RECORDS * 9 / 10);
    else
        assert_null(stats);
    coffer_mscan_stats_free(stats);
    return status;
}

static coffer_status take_scores(const coffer_mscan *scan, coffer_mscan_by by, coffer_error *err)
{
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_scores *scores = NULL;
    coffer_status status;
    query.by = by;
    query.scope = COFFER_MSCAN_SCOPE_LAYER;
    status = coffer_mscan_scores_new(&scores, scan, &query, err);
    if (status == COFFER_OK)
        assert_true(coffer_mscan_scores_count(scores) > 0);
    else
        assert_null(scores);
    coffer_mscan_scores_free(scores);
    return status;
}

/* Of block 0 in the first four tokens. */
static double first_mean(void)
{
    double sum = 0;
    for (size_t i = 0; i < 16; i += 5)
        sum += record_of(i).activation;
    return sum / 4;
}

static coffer_status draw_grid(const coffer_mscan *scan, const char *cache, coffer_error *err)
{
    coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
    coffer_mscan_grid *grid = NULL;
    coffer_status status;
    opts.width = 32;
    opts.cache_path = cache;
    status = coffer_mscan_grid_new(&grid, scan, &opts, err);
    if (status == COFFER_OK)
        assert_true(grid->width == 25 && grid->height == 5 && grid->mean[0] == first_mean());
    else
        assert_null(grid);
    coffer_mscan_grid_free(grid);
    return status;
}

static coffer_status analyze(const char *folder, void *context, coffer_error *err)
{
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *source = NULL;
    coffer_mscan *scan = NULL;
    coffer_status status;
    opts.access = COFFER_ACCESS_READ;
    (void)context;
    if ((status = coffer_source_open(&source, temp_path(folder, "x.mscan"), &opts, err)) ||
        (status = coffer_mscan_open(&scan, source, NULL, err)))
        goto out;
    if ((status = take_stats(scan, COFFER_MSCAN_BY_TOKEN, err)) ||
        (status = take_stats(scan, COFFER_MSCAN_BY_PARAM, err)) ||
        (status = take_scores(scan, COFFER_MSCAN_BY_PARAM, err)) ||
        (status = take_scores(scan, COFFER_MSCAN_BY_SEQUENCE, err)) ||
        (status = draw_grid(scan, NULL, err)) ||
        (status = draw_grid(scan, temp_path(folder, "x.pyramid"), err)))
        goto out;
    status = draw_grid(scan, temp_path(folder, "x.pyramid"), err);
out:
    coffer_mscan_close(scan);
    coffer_source_close(source);
    return status;
}

static const char *verify(const char *folder, void *context, const fault_case *which)
{
    (void)context;
    if (which->fault != SHIM_DEAD_DISK)
        temp_assert_no_litter(folder, "x.mscan", "x.pyramid", NULL);
    return NULL;
}

static void after_any_fault_an_analysis_is_right_or_refused(void **state)
{
    const fault_test test = { .setup = write_scan, .run = analyze, .verify = verify };
    (void)state;
    fault_each(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_any_fault_an_analysis_is_right_or_refused),
    };
    return cmocka_run_group_tests_name("mscan_analysis", tests, NULL, NULL);
}
