/* Statistics of tensors, against sums done one by one. */
#include "coffer/tensors.h"

#include "base/bytes.h"
#include "base/elements.h"
#include "support/gguf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 3000000 /* several pieces, the last not whole */

static coffer_tensor_stats stats_of(const coffer_tensors *set, uint32_t threads)
{
    coffer_tensors_stats_opts opts = COFFER_TENSORS_STATS_OPTS_INIT;
    coffer_tensors_stats *stats = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.threads = threads;
    if (coffer_tensors_stats_new(&stats, set, &opts, &err))
        fail_msg("%s", err.text);
    assert_int_equal(coffer_tensors_stats_count(stats), 1);
    coffer_tensor_stats first = *coffer_tensors_stats_at(stats, 0);
    coffer_tensors_stats_free(stats);
    return first;
}

static gguf_set floats(const float *values, size_t count)
{
    made_tensor tensor = { "w", 0, 1, { count }, values, count * sizeof *values };
    return gguf_open_set(&tensor, 1, NULL, 0);
}

static float noise(uint32_t *seed)
{
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        sum += (float)(*seed >> 8) / (float)(1 << 24) - 0.5f;
    }
    return sum;
}

static void moments_outliers_and_histogram_are_those_of_the_values(void **state)
{
    float *values = malloc(COUNT * sizeof *values);
    double sum = 0, squares = 0;
    uint32_t seed = 1;
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = i % 100 == 7 ? 0.0f : noise(&seed);
        if (i % 500000 == 0)
            values[i] = 20.0f; /* far out */
        sum += (double)values[i];
    }
    double mean = sum / COUNT;
    for (size_t i = 0; i < COUNT; i++)
        squares += ((double)values[i] - mean) * ((double)values[i] - mean);
    gguf_set open = floats(values, COUNT);
    coffer_tensor_stats stats = stats_of(open.set, 2);
    uint64_t zeros = 0, bins[64] = { 0 };
    for (size_t i = 0; i < COUNT; i++) {
        double at = ((double)values[i] - stats.min) / (stats.max - stats.min) * 64;
        zeros += values[i] == 0;
        bins[at < 63 ? (size_t)at : 63]++;
    }
    assert_int_equal(stats.elements, COUNT);
    assert_int_equal(stats.zeros, zeros);
    assert_float_equal(stats.mean, mean, 1e-12);
    assert_float_equal(stats.std, sqrt(squares / COUNT), 1e-10);
    assert_float_equal(stats.max, 20, 0);
    assert_int_equal(stats.outliers, 6);
    for (size_t i = 0; i < 64; i++)
        assert_true(llabs((long long)(stats.histogram[i] - bins[i])) <= 2); /* at the borders of bins */
    gguf_close_set(&open);
    free(values);
}

static void the_number_of_threads_changes_no_bit(void **state)
{
    float *values = malloc(COUNT * sizeof *values);
    uint32_t seed = 3;
    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        values[i] = noise(&seed) * powf(10.0f, (float)(i % 9));
    gguf_set open = floats(values, COUNT);
    coffer_tensor_stats one = stats_of(open.set, 1);
    for (uint32_t threads = 2; threads < 6; threads++) {
        coffer_tensor_stats more = stats_of(open.set, threads);
        assert_memory_equal(&one, &more, sizeof one);
    }
    gguf_close_set(&open);
    free(values);
}

static void what_is_not_finite_is_counted_apart(void **state)
{
    float values[] = { 1, NAN, -INFINITY, 3, INFINITY, -0.0f };
    gguf_set open = floats(values, 6);
    coffer_tensor_stats stats = stats_of(open.set, 1);
    uint64_t in_bins = 0;
    (void)state;
    for (size_t i = 0; i < 64; i++)
        in_bins += stats.histogram[i];
    assert_int_equal(stats.nans, 1);
    assert_int_equal(stats.infinities, 2);
    assert_int_equal(stats.zeros, 1);
    assert_int_equal(in_bins, 3);
    assert_int_equal(stats.histogram[0], 1);
    assert_int_equal(stats.histogram[63], 1);
    assert_float_equal(stats.min, 0, 0);
    assert_float_equal(stats.max, 3, 0);
    gguf_close_set(&open);
}

static void empty_constant_and_extreme_tensors_have_statistics(void **state)
{
    float constant[] = { 5, 5, 5 };
    double wide[] = { -1.7e308, 0, 1.7e308 };
    double narrow[] = { 0, 5e-324 };
    (void)state;
    gguf_set open = floats(constant, 0);
    coffer_tensor_stats stats = stats_of(open.set, 2);
    assert_int_equal(stats.elements, 0);
    assert_int_equal(stats.histogram[0], 0);
    assert_true(isnan(stats.min));
    gguf_close_set(&open);
    open = floats(constant, 3);
    stats = stats_of(open.set, 2);
    assert_int_equal(stats.histogram[0], 3);
    assert_int_equal(stats.outliers, 0);
    assert_float_equal(stats.std, 0, 0);
    gguf_close_set(&open);
    open = gguf_open_set(&(made_tensor){ "w", 28, 1, { 3 }, wide, sizeof wide }, 1, NULL, 0);
    stats = stats_of(open.set, 1);
    assert_int_equal(stats.histogram[0], 1);
    assert_int_equal(stats.histogram[32], 1);
    assert_int_equal(stats.histogram[63], 1);
    gguf_close_set(&open);
    open = gguf_open_set(&(made_tensor){ "w", 28, 1, { 2 }, narrow, sizeof narrow }, 1, NULL, 0);
    stats = stats_of(open.set, 1);
    assert_int_equal(stats.histogram[0] + stats.histogram[63], 2);
    gguf_close_set(&open);
}

static void quantized_tensors_are_measured_by_what_they_decode_to(void **state)
{
    enum { ROWS = 3, COLS = 70016, BLOCKS = ROWS * COLS / 32 }; /* a row is longer than a step */
    uint8_t *blocks = malloc((size_t)BLOCKS * 34);
    float *values = malloc((size_t)ROWS * COLS * sizeof *values);
    (void)state;
    for (size_t i = 0; i < BLOCKS; i++) {
        coffer__store_u16(blocks + 34 * i, 0x2C00); /* 1/16 */
        for (size_t k = 0; k < 32; k++)
            blocks[34 * i + 2 + k] = (uint8_t)(i * 7 + k * 3);
    }
    coffer__gguf_find_type(COFFER__GGUF_Q8_0)->decode(values, blocks, BLOCKS);
    gguf_set open = gguf_open_set(
        &(made_tensor){ "w", COFFER__GGUF_Q8_0, 2, { ROWS, COLS }, blocks, (size_t)BLOCKS * 34 }, 1, NULL, 0);
    gguf_set plain = floats(values, (size_t)ROWS * COLS);
    coffer_tensor_stats a = stats_of(open.set, 2), b = stats_of(plain.set, 2);
    assert_int_equal(a.zeros, b.zeros);
    assert_float_equal(a.mean, b.mean, 1e-12);
    assert_float_equal(a.std, b.std, 1e-12);
    assert_memory_equal(a.histogram, b.histogram, sizeof a.histogram);
    gguf_close_set(&open);
    gguf_close_set(&plain);
    free(values);
    free(blocks);
}

static void globs_choose_the_tensors(void **state)
{
    float values[] = { 1, 2 };
    made_tensor tensors[3] = { { "a.w", 0, 1, { 2 }, values, 8 },
                               { "b.w", 0, 1, { 2 }, values, 8 },
                               { "b.x", 0, 1, { 2 }, values, 8 } };
    gguf_set open = gguf_open_set(tensors, 3, NULL, 0);
    coffer_tensors_stats_opts opts = COFFER_TENSORS_STATS_OPTS_INIT;
    coffer_tensors_stats *stats = NULL;
    (void)state;
    opts.include = "b.*";
    assert_int_equal(coffer_tensors_stats_new(&stats, open.set, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_stats_count(stats), 2);
    assert_int_equal(coffer_tensors_stats_at(stats, 0)->tensor, 1);
    assert_int_equal(coffer_tensors_stats_at(stats, 1)->tensor, 2);
    assert_null(coffer_tensors_stats_at(stats, 2));
    coffer_tensors_stats_free(stats);
    opts.exclude = "*.x";
    assert_int_equal(coffer_tensors_stats_new(&stats, open.set, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_stats_count(stats), 1);
    coffer_tensors_stats_free(stats);
    gguf_close_set(&open);
}

static int stop(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    return done <= total;
}

static void progress_can_cancel(void **state)
{
    float values[] = { 1, 2 };
    gguf_set open = floats(values, 2);
    coffer_progress progress = { sizeof progress, stop, NULL };
    coffer_tensors_stats_opts opts = COFFER_TENSORS_STATS_OPTS_INIT;
    coffer_tensors_stats *stats = NULL;
    (void)state;
    opts.progress = &progress;
    assert_int_equal(coffer_tensors_stats_new(&stats, open.set, &opts, NULL), COFFER_E_CANCELLED);
    assert_null(stats);
    gguf_close_set(&open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_outliers_and_histogram_are_those_of_the_values),
        cmocka_unit_test(the_number_of_threads_changes_no_bit),
        cmocka_unit_test(what_is_not_finite_is_counted_apart),
        cmocka_unit_test(empty_constant_and_extreme_tensors_have_statistics),
        cmocka_unit_test(quantized_tensors_are_measured_by_what_they_decode_to),
        cmocka_unit_test(globs_choose_the_tensors),
        cmocka_unit_test(progress_can_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
