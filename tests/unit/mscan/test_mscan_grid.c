#include "unit/mscan/mscan_sample.h"

#include "formats/mscan/mscan_pyramid.h"
#include "support/temp.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static const char params_json[] = "{\"0\": \"a\", \"1\": \"b\", \"2\": \"c\", \"9\": \"d\"}";
static const char sequences_json[] =
    "[{\"sequence_id\": 0, \"num_tokens\": 700}, {\"sequence_id\": 1, \"num_tokens\": 333}]";
enum { TOKENS = 1033, PARAM_ROWS = 10, BLOCK_ROWS = 37 };

static void open_random(sample *out, size_t count, bool sorted)
{
    coffer_mscan_record *records = malloc((count + 1) * sizeof *records);
    uint64_t seed = 11;
    for (size_t i = 0; i < count; i++) {
        uint64_t r = sample_random(&seed);
        records[i] = (coffer_mscan_record){
            .token_idx = sorted ? (uint32_t)(i * (TOKENS + 10) / count) : (uint32_t)(r % (TOKENS + 10)),
            .param_id = (uint16_t)((r >> 16) % 12), /* ids past the last name are in no row */
            .block_idx = (uint16_t)((r >> 24) % BLOCK_ROWS),
            .activation = (uint16_t)(r >> 32),
            .grad_norm = (uint16_t)(r >> 48),
        };
    }
    if (count > 0)
        records[count / 2].block_idx = BLOCK_ROWS - 1;
    sample_open(out, params_json, sequences_json, records, count);
}

/* The mean of one cell, the obvious way. */
static double expected_mean(const sample *s, const coffer_mscan_grid *grid,
                            const coffer_mscan_grid_opts *opts, uint32_t row, uint32_t column, bool only_b)
{
    uint64_t tokens_each = (grid->token_end - grid->token_begin) / grid->width;
    uint64_t rows_each = (grid->row_end - grid->row_begin) / grid->height;
    double sum = 0, count = 0;
    for (size_t i = 0; i < s->count; i++) {
        const coffer_mscan_record *record = &s->records[i];
        uint64_t row_number = opts->rows == COFFER_MSCAN_ROWS_PARAM ? record->param_id : record->block_idx;
        if (record->token_idx >= TOKENS || (only_b && record->param_id != 1) ||
            record->token_idx < grid->token_begin || row_number < grid->row_begin ||
            (opts->rows == COFFER_MSCAN_ROWS_PARAM && row_number >= PARAM_ROWS))
            continue;
        if ((record->token_idx - grid->token_begin) / tokens_each != column ||
            (row_number - grid->row_begin) / rows_each != row)
            continue;
        sum += opts->metric == COFFER_MSCAN_ACTIVATION ? record->activation : record->grad_norm;
        count++;
    }
    return count > 0 ? sum / count : NAN;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void assert_grid_is_right(const sample *s, const coffer_mscan_grid_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan_grid *grid = NULL;
    double low = NAN, high = NAN;
    uint64_t token_end = opts->token_end < TOKENS ? opts->token_end : TOKENS;
    if (coffer_mscan_grid_new(&grid, s->scan, opts, &err))
        fail_msg("%s", err.text);
    assert_true(grid->width > 0 && grid->width <= opts->width);
    assert_true(grid->height > 0 && grid->height <= opts->height);
    assert_true(grid->token_begin <= opts->token_begin && grid->token_end >= token_end);
    assert_true(grid->row_begin <= opts->row_begin);
    assert_int_equal((grid->token_end - grid->token_begin) % grid->width, 0);
    assert_int_equal((grid->row_end - grid->row_begin) % grid->height, 0);
    for (uint32_t row = 0; row < grid->height; row++) {
        for (uint32_t column = 0; column < grid->width; column++) {
            double expected = expected_mean(s, grid, opts, row, column, opts->param_glob != NULL);
            if (!same(grid->mean[(size_t)row * grid->width + column], expected))
                fail_msg("row %u, column %u: %.17g is not %.17g", row, column,
                         grid->mean[(size_t)row * grid->width + column], expected);
            low = fmin(low, expected);
            high = fmax(high, expected);
        }
    }
    assert_true(same(grid->low, low) && same(grid->high, high));
    coffer_mscan_grid_free(grid);
}

static void assert_grids_are_right(const sample *s, const char *cache_path)
{
    static const uint32_t sizes[][2] = { { 64, 16 }, { 2000, 64 }, { 10, 3 }, { 1, 1 } };
    static const uint64_t ranges[][2] = { { 0, UINT64_MAX }, { 100, 900 }, { 511, 514 } };
    for (unsigned i = 0; i < 4 * 3 * 2; i++) {
        coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
        opts.width = sizes[i % 4][0];
        opts.height = sizes[i % 4][1];
        opts.token_begin = ranges[i / 4 % 3][0];
        opts.token_end = ranges[i / 4 % 3][1];
        opts.rows = i / 12 ? COFFER_MSCAN_ROWS_PARAM : COFFER_MSCAN_ROWS_BLOCK;
        opts.metric = i % 2 ? COFFER_MSCAN_GRAD_NORM : COFFER_MSCAN_ACTIVATION;
        opts.cache_path = cache_path;
        assert_grid_is_right(s, &opts);
    }
}

static void grids_of_every_size_and_range_have_the_right_means(void **state)
{
    (void)state;
    for (int sorted = 0; sorted < 2; sorted++) {
        sample s;
        open_random(&s, 800, sorted);
        assert_grids_are_right(&s, NULL);
        sample_close(&s);
    }
}

static void the_pyramid_gives_the_same_grids_when_it_is_built_and_when_it_is_read(void **state)
{
    (void)state;
    for (int sorted = 0; sorted < 2; sorted++) {
        char *folder = temp_make();
        const char *cache = temp_path(folder, "x.pyramid");
        sample s;
        open_random(&s, 800, sorted);
        assert_grids_are_right(&s, cache);
        temp_assert_only(folder, "x.pyramid", NULL);
        sample_close(&s);
        temp_remove(folder);
    }
}

static ino_t inode_of(const char *path)
{
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    return found.st_ino;
}

/* Each save renames a new file over the old one. */
static void a_kept_pyramid_is_used_again_and_a_stale_one_replaced(void **state)
{
    char *folder = temp_make();
    const char *cache = temp_path(folder, "x.pyramid");
    coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
    sample s, other;
    ino_t kept;
    (void)state;
    opts.cache_path = cache;
    opts.width = 16;
    open_random(&s, 3000, true);
    open_random(&other, 3001, true);
    assert_grid_is_right(&s, &opts);
    int held_open = open(cache, O_RDONLY); /* so that its inode number cannot come up again */
    kept = inode_of(cache);
    assert_grid_is_right(&s, &opts);
    assert_true(inode_of(cache) == kept);
    assert_grid_is_right(&other, &opts);
    assert_true(inode_of(cache) != kept);
    close(held_open);
    sample_close(&s);
    sample_close(&other);
    temp_remove(folder);
}

static void assert_same_grid(const coffer_mscan_grid *a, const coffer_mscan_grid *b)
{
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->height, b->height);
    assert_int_equal(a->token_begin, b->token_begin);
    assert_int_equal(a->row_begin, b->row_begin);
    assert_memory_equal(a->mean, b->mean, sizeof *a->mean * a->width * a->height);
}

/* Whichever bit is flipped and wherever the file is cut, and at each level. */
static void a_damaged_pyramid_is_rebuilt(void **state)
{
    char *folder = temp_make();
    const char *cache = temp_path(folder, "x.pyramid");
    size_t len;
    uint8_t *good;
    sample s;
    (void)state;
    open_random(&s, 500, true);
    for (uint32_t width = 16; width <= 2048; width *= 128) {
        coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
        coffer_mscan_grid *plain = NULL, *drawn = NULL;
        opts.width = width;
        assert_int_equal(coffer_mscan_grid_new(&plain, s.scan, &opts, NULL), COFFER_OK);
        opts.cache_path = cache;
        assert_int_equal(coffer_mscan_grid_new(&drawn, s.scan, &opts, NULL), COFFER_OK);
        assert_same_grid(plain, drawn);
        coffer_mscan_grid_free(drawn);
        good = temp_read(cache, &len);
        for (size_t at = 0; at < len; at += at < 60 ? 1 : len / 50) {
            good[at] ^= 0x10;
            temp_write(cache, good, len);
            good[at] ^= 0x10;
            assert_int_equal(coffer_mscan_grid_new(&drawn, s.scan, &opts, NULL), COFFER_OK);
            assert_same_grid(plain, drawn);
            coffer_mscan_grid_free(drawn);
        }
        for (size_t cut = 0; cut < len; cut += len / 7 + 1) {
            temp_write(cache, good, cut);
            assert_int_equal(coffer_mscan_grid_new(&drawn, s.scan, &opts, NULL), COFFER_OK);
            assert_same_grid(plain, drawn);
            coffer_mscan_grid_free(drawn);
            assert_true(temp_holds(cache, good, len));
        }
        free(good);
        coffer_mscan_grid_free(plain);
    }
    sample_close(&s);
    temp_remove(folder);
}

static void a_cache_that_cannot_be_written_is_not_an_error(void **state)
{
    coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
    sample s;
    (void)state;
    open_random(&s, 500, true);
    opts.cache_path = "/nowhere/at/all.pyramid";
    opts.width = 16;
    assert_grid_is_right(&s, &opts);
    sample_close(&s);
}

static void a_glob_leaves_other_parameters_out(void **state)
{
    coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
    char *folder = temp_make();
    sample s;
    (void)state;
    open_random(&s, 3000, true);
    opts.param_glob = "b";
    opts.width = 50;
    opts.cache_path = temp_path(folder, "x.pyramid");
    assert_grid_is_right(&s, &opts);
    opts.rows = COFFER_MSCAN_ROWS_PARAM;
    assert_grid_is_right(&s, &opts);
    assert_false(temp_exists(opts.cache_path));
    sample_close(&s);
    temp_remove(folder);
}

static void a_range_of_rows_can_be_chosen(void **state)
{
    sample s;
    (void)state;
    open_random(&s, 3000, true);
    for (uint32_t height = 1; height <= 8; height *= 2) {
        coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
        opts.row_begin = 5;
        opts.row_end = 9;
        opts.height = height;
        opts.width = 8;
        assert_grid_is_right(&s, &opts);
    }
    sample_close(&s);
}

static void threads_share_a_grid_without_losing_a_record(void **state)
{
    char *folder = temp_make();
    (void)state;
    for (int cached = 0; cached < 2; cached++) {
        sample s;
        coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
        opts.threads = 3;
        opts.width = 7;
        opts.height = 2;
        opts.cache_path = cached ? temp_path(folder, "x.pyramid") : NULL;
        open_random(&s, 400000, true);
        assert_grid_is_right(&s, &opts);
        sample_close(&s);
    }
    temp_remove(folder);
}

/* 50 million tokens: a column of the pyramid is 4096 of them, a picture may want more. */
static void pictures_coarser_and_finer_than_the_pyramid_agree_with_the_records(void **state)
{
    static const uint32_t widths[] = { 100, 10000, 100000 };
    char *folder = temp_make();
    coffer_mscan_record *records = malloc(3000 * sizeof *records);
    uint64_t seed = 8;
    sample s;
    (void)state;
    for (uint32_t i = 0; i < 3000; i++) {
        uint64_t r = sample_random(&seed);
        records[i] = (coffer_mscan_record){ i * 16000, (uint16_t)(r % 10), (uint16_t)((r >> 8) % BLOCK_ROWS),
                                            (uint16_t)(r >> 32), (uint16_t)(r >> 48) };
    }
    sample_open(&s, params_json, "[{\"sequence_id\": 0, \"num_tokens\": 50000000}]", records, 3000);
    for (size_t i = 0; i < 2 * sizeof widths / sizeof widths[0]; i++) {
        coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
        coffer_mscan_grid *plain = NULL, *kept = NULL;
        opts.width = widths[i / 2];
        opts.height = 5;
        opts.rows = i % 2 ? COFFER_MSCAN_ROWS_PARAM : COFFER_MSCAN_ROWS_BLOCK;
        assert_int_equal(coffer_mscan_grid_new(&plain, s.scan, &opts, NULL), COFFER_OK);
        opts.cache_path = temp_path(folder, "x.pyramid");
        assert_int_equal(coffer_mscan_grid_new(&kept, s.scan, &opts, NULL), COFFER_OK);
        assert_same_grid(plain, kept);
        coffer_mscan_grid_free(plain);
        coffer_mscan_grid_free(kept);
    }
    sample_close(&s);
    temp_remove(folder);
}

static void an_empty_scan_gives_an_empty_grid(void **state)
{
    coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
    char *folder = temp_make();
    (void)state;
    for (int cached = 0; cached < 2; cached++) {
        sample s;
        coffer_mscan_grid *grid = NULL;
        open_random(&s, 0, true);
        opts.cache_path = cached ? temp_path(folder, "x.pyramid") : NULL;
        assert_int_equal(coffer_mscan_grid_new(&grid, s.scan, &opts, NULL), COFFER_OK);
        assert_int_equal(grid->height, 0);
        assert_true(isnan(grid->low) && isnan(grid->high));
        coffer_mscan_grid_free(grid);
        sample_close(&s);
    }
    temp_remove(folder);
}

static void grids_that_make_no_sense_or_do_not_fit_are_refused(void **state)
{
    coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
    coffer_limits tight = COFFER_LIMITS_INIT;
    coffer_mscan_grid *grid = NULL;
    sample s;
    (void)state;
    open_random(&s, 100, true);
    opts.width = 0;
    assert_int_equal(coffer_mscan_grid_new(&grid, s.scan, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    opts.width = 10;
    opts.rows = (coffer_mscan_rows)5;
    assert_int_equal(coffer_mscan_grid_new(&grid, s.scan, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    opts.rows = COFFER_MSCAN_ROWS_PARAM;
    opts.metric = (coffer_mscan_metric)5;
    assert_int_equal(coffer_mscan_grid_new(&grid, s.scan, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    opts.metric = COFFER_MSCAN_ACTIVATION;
    opts.limits = &tight;
    tight.memory_bytes = 100;
    assert_int_equal(coffer_mscan_grid_new(&grid, s.scan, &opts, NULL), COFFER_E_LIMIT);
    assert_null(grid);
    sample_close(&s);
}

static void an_axis_is_the_finest_that_fits(void **state)
{
    coffer__mscan_axis axis = coffer__mscan_axis_over(0, 100, 100);
    (void)state;
    assert_true(axis.begin == 0 && axis.shift == 0 && axis.count == 100);
    axis = coffer__mscan_axis_over(0, 101, 100);
    assert_true(axis.begin == 0 && axis.shift == 1 && axis.count == 51);
    axis = coffer__mscan_axis_over(3, 5, 1);
    assert_true(axis.begin == 0 && axis.shift == 3 && axis.count == 1);
    axis = coffer__mscan_axis_over(7, 7, 5);
    assert_true(axis.begin == 7 && axis.count == 0);
    axis = coffer__mscan_axis_over(0, UINT64_C(1) << 32, 1);
    assert_true(axis.shift == 32 && axis.count == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grids_of_every_size_and_range_have_the_right_means),
        cmocka_unit_test(the_pyramid_gives_the_same_grids_when_it_is_built_and_when_it_is_read),
        cmocka_unit_test(a_kept_pyramid_is_used_again_and_a_stale_one_replaced),
        cmocka_unit_test(a_damaged_pyramid_is_rebuilt),
        cmocka_unit_test(a_cache_that_cannot_be_written_is_not_an_error),
        cmocka_unit_test(a_glob_leaves_other_parameters_out),
        cmocka_unit_test(a_range_of_rows_can_be_chosen),
        cmocka_unit_test(threads_share_a_grid_without_losing_a_record),
        cmocka_unit_test(pictures_coarser_and_finer_than_the_pyramid_agree_with_the_records),
        cmocka_unit_test(an_empty_scan_gives_an_empty_grid),
        cmocka_unit_test(grids_that_make_no_sense_or_do_not_fit_are_refused),
        cmocka_unit_test(an_axis_is_the_finest_that_fits),
    };
    return cmocka_run_group_tests_name("mscan_grid", tests, NULL, NULL);
}
