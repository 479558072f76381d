#include "formats/mldf/read/mldf_shuffle.h"
#include "support/dataset.h"

#include <stdlib.h>
#include <string.h>

/* ---- The permutation ---- */

static void a_shuffle_gives_every_number_once_and_back(void **state)
{
    static const uint64_t counts[] = { 0,  1,  2,   3,   4,   5,    7,    8,    9,     15,
                                       16, 17, 100, 255, 256, 1000, 1023, 4097, 10007, 65536 };
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            coffer__mldf_shuffle shuffle = coffer__mldf_shuffle_of(counts[c], 7, epoch);
            uint8_t *seen = calloc(counts[c] + 1, 1);
            for (uint64_t i = 0; i < counts[c]; i++) {
                uint64_t value = coffer_mldf_shuffle_at(counts[c], 7, epoch, i);
                assert_true(value < counts[c]);
                assert_int_equal(seen[value], 0);
                seen[value] = 1;
                assert_int_equal(coffer__mldf_shuffle_back(&shuffle, value), i);
            }
            free(seen);
        }
    }
}

static void positions_past_the_end_give_a_sample_too(void **state)
{
    coffer_mldf_order_opts opts = COFFER_MLDF_ORDER_OPTS_INIT;
    coffer_mldf_order order = COFFER_MLDF_ORDER_INIT;
    (void)state;
    assert_int_equal(coffer_mldf_shuffle_at(0, 1, 0, 5), 0);
    for (uint64_t count = 1; count < 60; count++) {
        for (uint64_t i = 0; i < count; i++)
            assert_int_equal(coffer_mldf_shuffle_at(count, count, 0, count + i),
                             coffer_mldf_shuffle_at(count, count, 0, i));
        opts.window_pages = 2;
        opts.page_samples = 3;
        opts.world = 4;
        opts.rank = (uint32_t)(count % 4);
        assert_int_equal(coffer_mldf_order_prepare(&order, count, &opts, NULL), COFFER_OK);
        for (uint64_t i = 0; i < 3 * count; i++)
            assert_true(coffer_mldf_order_at(&order, 0, i) < count);
    }
}

static void huge_counts_shuffle_too(void **state)
{
    static const uint64_t counts[] = { UINT64_C(1) << 40, (UINT64_C(1) << 53) + 1, UINT64_MAX - 3,
                                       UINT64_MAX };
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        coffer__mldf_shuffle shuffle = coffer__mldf_shuffle_of(counts[c], 1, 2);
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t at = i % 2 ? counts[c] - 1 - i : i * 77777777;
            uint64_t value = coffer__mldf_shuffle_forward(&shuffle, at);
            assert_true(value < counts[c]);
            assert_true(coffer__mldf_shuffle_back(&shuffle, value) == at);
        }
    }
}

/* How far counts are from what is expected, in standard deviations of chi-square. */
static double surprise(const uint64_t *counts, size_t cells, double expected)
{
    double chi = 0;
    for (size_t i = 0; i < cells; i++)
        chi += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    double d = (double)cells - 1, off = chi - d;
    return off * off / (2 * d); /* the square of it */
}

static void small_shuffles_are_all_equally_likely(void **state)
{
    enum { COUNT = 4, PERMUTATIONS = 24, TRIALS = 240000 };
    uint64_t counts[256] = { 0 }, dense[PERMUTATIONS] = { 0 };
    size_t n = 0;
    (void)state;
    for (uint64_t seed = 0; seed < TRIALS; seed++) {
        size_t code = 0;
        for (uint64_t i = 0; i < COUNT; i++)
            code = code * 4 + coffer_mldf_shuffle_at(COUNT, seed, 0, i);
        counts[code]++;
    }
    for (size_t i = 0; i < 256; i++) {
        if (counts[i] > 0 && n < PERMUTATIONS)
            dense[n++] = counts[i];
    }
    assert_int_equal(n, PERMUTATIONS);
    assert_true(surprise(dense, PERMUTATIONS, TRIALS / PERMUTATIONS) < 25);
}

/* Where a number goes must not tell where it was, nor where its neighbor goes. */
static void places_are_independent_of_each_other(void **state)
{
    enum { CELLS = 16 };
    static const uint64_t counts[] = { 1000, 65536, 1000003, UINT64_C(1) << 40 };
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        uint64_t from_to[CELLS * CELLS] = { 0 }, pairs[CELLS * CELLS] = { 0 };
        const uint64_t trials = 200000;
        for (uint64_t t = 0; t < trials; t++) {
            uint64_t seed = t / 500, at = t % 500 * (counts[c] / 500);
            uint64_t a = coffer_mldf_shuffle_at(counts[c], seed, 5, at);
            uint64_t b = coffer_mldf_shuffle_at(counts[c], seed, 5, at + 1);
            double unit = (double)CELLS / (double)counts[c];
            size_t ca = (size_t)((double)a * unit), cb = (size_t)((double)b * unit);
            from_to[(size_t)((double)at * unit) * CELLS + ca]++;
            pairs[ca * CELLS + cb]++;
        }
        assert_true(surprise(pairs, CELLS * CELLS, (double)trials / (CELLS * CELLS)) < 36);
        for (size_t row = 0; row < CELLS; row++) {
            uint64_t sum = 0;
            for (size_t i = 0; i < CELLS; i++)
                sum += from_to[row * CELLS + i];
            assert_true(surprise(from_to + row * CELLS, CELLS, (double)sum / CELLS) < 36);
        }
    }
}

static void epochs_and_seeds_have_little_in_common(void **state)
{
    uint64_t same_epoch = 0, same_seed = 0;
    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t value = coffer_mldf_shuffle_at(100000, 1, 0, i);
        same_epoch += value == coffer_mldf_shuffle_at(100000, 1, 1, i);
        same_seed += value == coffer_mldf_shuffle_at(100000, 2, 0, i);
    }
    assert_true(same_epoch < 10 && same_seed < 10);
}

/* ---- The order ---- */

static coffer_mldf_order order_of(uint64_t count, const coffer_mldf_order_opts *opts)
{
    coffer_mldf_order order = COFFER_MLDF_ORDER_INIT;
    assert_int_equal(coffer_mldf_order_prepare(&order, count, opts, NULL), COFFER_OK);
    return order;
}

/* Fills counts of how often each sample comes for all ranks and workers together. */
static uint64_t count_all(uint8_t *counts, uint64_t samples, coffer_mldf_order_opts opts)
{
    uint64_t total = 0;
    memset(counts, 0, samples);
    for (opts.rank = 0; opts.rank < opts.world; opts.rank++) {
        for (opts.worker = 0; opts.worker < opts.workers; opts.worker++) {
            coffer_mldf_order order = order_of(samples, &opts);
            for (uint64_t i = 0; i < coffer_mldf_order_length(&order); i++) {
                uint64_t sample = coffer_mldf_order_at(&order, 3, i);
                assert_true(sample < samples);
                counts[sample]++;
                total++;
            }
        }
    }
    return total;
}

static void try_tails(uint64_t samples, coffer_mldf_order_opts opts)
{
    uint8_t counts[1200];
    uint64_t total, twice = 0;
    opts.tail = COFFER_MLDF_TAIL_UNEVEN;
    assert_int_equal(count_all(counts, samples, opts), samples);
    for (uint64_t i = 0; i < samples; i++)
        assert_int_equal(counts[i], 1);
    opts.tail = COFFER_MLDF_TAIL_DROP;
    assert_int_equal(count_all(counts, samples, opts), samples / opts.world * opts.world);
    for (uint64_t i = 0; i < samples; i++)
        assert_true(counts[i] <= 1);
    opts.tail = COFFER_MLDF_TAIL_PAD;
    total = count_all(counts, samples, opts);
    assert_int_equal(total, (samples + opts.world - 1) / opts.world * opts.world);
    for (uint64_t i = 0; i < samples; i++) {
        assert_true(counts[i] >= 1);
        twice += counts[i] - 1u;
    }
    assert_int_equal(twice, total - samples);
}

static void every_sample_comes_once_for_any_world_and_tail(void **state)
{
    static const uint64_t samples[] = { 0, 1, 2, 5, 31, 64, 100, 1000 };
    static const uint32_t worlds[] = { 1, 2, 3, 8, 13 }, workers[] = { 1, 2, 5 };
    coffer_mldf_order_opts opts = COFFER_MLDF_ORDER_OPTS_INIT;
    (void)state;
    opts.seed = 99;
    for (size_t n = 0; n < sizeof samples / sizeof samples[0]; n++) {
        for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
            for (size_t k = 0; k < sizeof workers / sizeof workers[0]; k++) {
                opts.world = worlds[w];
                opts.workers = workers[k];
                opts.sequential = false;
                try_tails(samples[n], opts);
                opts.sequential = true;
                try_tails(samples[n], opts);
            }
        }
    }
}

static void every_sample_comes_once_from_windows_of_pages(void **state)
{
    static const uint64_t samples[] = { 1, 2, 10, 63, 64, 65, 1000, 1111 };
    static const uint64_t pages[] = { 1, 3, 16, 100, 5000 };
    static const uint32_t windows[] = { 1, 2, 7, UINT32_MAX }, worlds[] = { 1, 2, 5, 12 };
    coffer_mldf_order_opts opts = COFFER_MLDF_ORDER_OPTS_INIT;
    (void)state;
    opts.seed = 5;
    opts.workers = 2;
    for (size_t n = 0; n < sizeof samples / sizeof samples[0]; n++) {
        for (size_t p = 0; p < sizeof pages / sizeof pages[0]; p++) {
            for (size_t v = 0; v < sizeof windows / sizeof windows[0]; v++) {
                for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
                    opts.page_samples = pages[p];
                    opts.window_pages = windows[v];
                    opts.world = worlds[w];
                    try_tails(samples[n], opts);
                }
            }
        }
    }
}

/* A window of four pages of 50 lasts 200 positions; at its edges a page is cut in two. */
static void a_rank_has_few_pages_open_at_a_time(void **state)
{
    coffer_mldf_order_opts opts = COFFER_MLDF_ORDER_OPTS_INIT;
    uint8_t ever[400] = { 0 };
    uint64_t pages_seen = 0;
    (void)state;
    opts.page_samples = 50;
    opts.window_pages = 4;
    opts.world = 4;
    opts.rank = 2;
    coffer_mldf_order order = order_of(20000, &opts);
    for (uint64_t start = 0; start < 5000; start += 200) {
        uint8_t open[400] = { 0 };
        unsigned different = 0, moved = 0;
        uint64_t last = UINT64_MAX;
        for (uint64_t i = start; i < start + 200; i++) {
            uint64_t page = coffer_mldf_order_at(&order, 0, i) / 50;
            different += !open[page];
            pages_seen += !ever[page];
            open[page] = ever[page] = 1;
            moved += page != last;
            last = page;
        }
        assert_true(different <= 5);
        assert_true(moved > 100);
    }
    assert_true(pages_seen <= 102);
}

static void going_on_at_a_position_gives_the_same_samples(void **state)
{
    coffer_mldf_order_opts opts = COFFER_MLDF_ORDER_OPTS_INIT;
    (void)state;
    opts.seed = 4;
    opts.world = 3;
    opts.rank = 1;
    opts.window_pages = 2;
    opts.page_samples = 10;
    coffer_mldf_order first = order_of(1000, &opts), second = order_of(1000, &opts);
    for (uint64_t i = 0; i < 100; i++)
        coffer_mldf_order_at(&first, 1, i);
    for (uint64_t i = 100; i < coffer_mldf_order_length(&first); i++)
        assert_int_equal(coffer_mldf_order_at(&first, 1, i), coffer_mldf_order_at(&second, 1, i));
}

static void ranks_differ_by_one_at_most(void **state)
{
    coffer_mldf_order_opts opts = COFFER_MLDF_ORDER_OPTS_INIT;
    (void)state;
    opts.world = 7;
    for (opts.rank = 0; opts.rank < 7; opts.rank++) {
        coffer_mldf_order order = order_of(100, &opts);
        assert_int_equal(coffer_mldf_order_length(&order), opts.rank < 2 ? 15 : 14);
    }
}

static void what_makes_no_sense_is_refused(void **state)
{
    coffer_mldf_order_opts opts = COFFER_MLDF_ORDER_OPTS_INIT;
    coffer_mldf_order order = COFFER_MLDF_ORDER_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    opts.world = 2;
    opts.rank = 2;
    assert_int_equal(coffer_mldf_order_prepare(&order, 10, &opts, &err), COFFER_E_INVALID_ARGUMENT);
    assert_string_equal(err.text, "rank 2 of 2: the first is 0");
    opts.rank = 0;
    opts.worker = 1;
    assert_int_equal(coffer_mldf_order_prepare(&order, 10, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    opts.worker = 0;
    opts.window_pages = 1;
    assert_int_equal(coffer_mldf_order_prepare(&order, 10, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
}

static void samples_per_page_follows_from_the_payloads(void **state)
{
    dataset *made = dataset_new(100, NULL);
    uint8_t bytes[100] = { 0 };
    size_t len;
    (void)state;
    dataset_field(made, "b", COFFER_MLDF_BYTES, 0);
    for (uint64_t i = 0; i < 100; i++)
        dataset_bytes(made, i, 0, bytes, sizeof bytes, NULL);
    uint8_t *file = dataset_make(&len, NULL, made);
    coffer_source *src = dataset_source_of(file, len);
    coffer_mldf *set = dataset_open(src);
    assert_int_equal(coffer_mldf_samples_per_page(set), 40);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(file);
    dataset_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shuffle_gives_every_number_once_and_back),
        cmocka_unit_test(positions_past_the_end_give_a_sample_too),
        cmocka_unit_test(huge_counts_shuffle_too),
        cmocka_unit_test(small_shuffles_are_all_equally_likely),
        cmocka_unit_test(places_are_independent_of_each_other),
        cmocka_unit_test(epochs_and_seeds_have_little_in_common),
        cmocka_unit_test(every_sample_comes_once_for_any_world_and_tail),
        cmocka_unit_test(every_sample_comes_once_from_windows_of_pages),
        cmocka_unit_test(a_rank_has_few_pages_open_at_a_time),
        cmocka_unit_test(going_on_at_a_position_gives_the_same_samples),
        cmocka_unit_test(ranks_differ_by_one_at_most),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(samples_per_page_follows_from_the_payloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
