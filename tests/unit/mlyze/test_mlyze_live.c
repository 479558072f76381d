#include "formats/mlyze/analyze/mlyze_live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A fixed key: how blocks are spread over the table, and so every size, is the same in each run. */
static coffer__mlyze_live *new_table(coffer__mlyze_budget *budget)
{
    static const coffer__mlyze_key key = { UINT64_C(0x9E3779B97F4A7C15), UINT64_C(0xD1342543DE82EF95) };
    coffer__mlyze_live *live = malloc(sizeof *live);
    coffer__mlyze_live_init(live, key, budget);
    return live;
}

static void free_table(coffer__mlyze_live *live)
{
    coffer__mlyze_live_free(live);
    free(live);
}

static coffer__mlyze_put put(coffer__mlyze_live *live, uint64_t address, const coffer__mlyze_held *block,
                             coffer__mlyze_held *old)
{
    coffer__mlyze_put what;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer__mlyze_live_put(&what, live, coffer__mlyze_hash(&live->key, address), address, block, old,
                               &err))
        fail_msg("%s", err.text);
    return what;
}

static bool take(coffer__mlyze_held *out, coffer__mlyze_live *live, uint64_t address)
{
    return coffer__mlyze_live_take(out, live, coffer__mlyze_hash(&live->key, address), address);
}

static void assert_same(const coffer__mlyze_held *a, const coffer__mlyze_held *b)
{
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->time, b->time);
    assert_int_equal(a->order, b->order);
    assert_int_equal(a->stack, b->stack);
    assert_int_equal(a->thread, b->thread);
}

#define MODEL_ADDRESSES 5000

/* Numbers of every magnitude, those that do not fit a slot among them. */
static coffer__mlyze_held random_block(uint64_t *state)
{
    return (coffer__mlyze_held){ .size = next_random(state) >> (next_random(state) % 64),
                                 .time = next_random(state) >> (next_random(state) % 64),
                                 .order = next_random(state) >> (next_random(state) % 64),
                                 .stack = (uint32_t)next_random(state),
                                 .thread = (uint16_t)next_random(state) };
}

static void the_table_holds_what_a_plain_array_holds(void **state)
{
    (void)state;
    coffer__mlyze_held *model = calloc(MODEL_ADDRESSES, sizeof *model);
    bool *is_live = calloc(MODEL_ADDRESSES, sizeof *is_live), *was_freed = calloc(MODEL_ADDRESSES, 1);
    uint64_t random = 7, count = 0;
    coffer__mlyze_live *live = new_table(NULL);
    live->remember = true;
    for (int step = 0; step < 300000; step++) {
        size_t which = next_random(&random) % MODEL_ADDRESSES;
        uint64_t address = (which + 1) * UINT64_C(0x1000000000000010);
        coffer__mlyze_held block = random_block(&random), old;
        if (next_random(&random) % 2) {
            coffer__mlyze_put what = put(live, address, &block, &old);
            assert_int_equal(what, is_live[which]     ? COFFER__MLYZE_PUT_REPLACED
                                   : was_freed[which] ? COFFER__MLYZE_PUT_AGAIN
                                                      : COFFER__MLYZE_PUT_NEW);
            if (is_live[which])
                assert_same(&old, &model[which]);
            count += !is_live[which];
            model[which] = block;
            is_live[which] = true;
        } else {
            assert_int_equal(take(&old, live, address), is_live[which]);
            if (is_live[which]) {
                assert_same(&old, &model[which]);
                was_freed[which] = true;
                count--;
            }
            is_live[which] = false;
        }
        assert_int_equal(live->live, count);
    }
    free_table(live);
    free(model);
    free(is_live);
    free(was_freed);
}

static void a_block_of_a_large_table_costs_at_most_40_bytes(void **state)
{
    (void)state;
    coffer__mlyze_live *live = new_table(NULL);
    coffer__mlyze_held block = { .size = 1 }, old;
    live->roomy = 1000;
    for (uint64_t count = 1; count <= 300000; count++) {
        assert_int_equal(put(live, count * 16, &block, &old), COFFER__MLYZE_PUT_NEW);
        if (count >= 100000 && count % 97 == 0)
            assert_true(coffer__mlyze_live_bytes(live) <= count * 40 + 20000);
    }
    for (uint64_t count = 1; count <= 300000; count++)
        assert_true(take(&old, live, count * 16));
    free_table(live);
}

static void addresses_that_never_come_again_do_not_grow_the_table(void **state)
{
    (void)state;
    coffer__mlyze_live *live = new_table(NULL);
    coffer__mlyze_held block = { .size = 1 }, old;
    for (uint64_t count = 1; count <= 500000; count++) {
        assert_int_equal(put(live, count * 16, &block, &old), COFFER__MLYZE_PUT_NEW);
        if (count > 1000)
            assert_true(take(&old, live, (count - 1000) * 16));
    }
    assert_int_equal(live->live, 1000);
    assert_true(coffer__mlyze_live_bytes(live) <= 3000 * sizeof(coffer__mlyze_slot));
    free_table(live);
}

/* Dead slots of full buckets are used again: a table that is nearly full does not have to be cleaned for
 * every few blocks. */
static void a_full_table_keeps_its_size_while_blocks_come_and_go(void **state)
{
    enum { BLOCKS = 100000 };
    (void)state;
    coffer__mlyze_live *live = new_table(NULL);
    coffer__mlyze_held block = { .size = 1 }, old;
    live->roomy = 1000;
    for (uint64_t i = 0; i < BLOCKS; i++)
        (void)put(live, (i + 1) * 16, &block, &old);
    const size_t bytes = coffer__mlyze_live_bytes(live);
    for (uint64_t i = 0; i < BLOCKS; i++) {
        block.order = i;
        assert_true(take(&old, live, (i + 1) * 16));
        assert_int_equal(put(live, (i + 1 + BLOCKS) * 16, &block, &old), COFFER__MLYZE_PUT_NEW);
    }
    assert_true(coffer__mlyze_live_bytes(live) <= bytes + bytes / 8);
    for (uint64_t i = 0; i < BLOCKS; i++) {
        assert_true(take(&old, live, (i + 1 + BLOCKS) * 16));
        assert_int_equal(old.order, i);
    }
    assert_int_equal(live->live, 0);
    free_table(live);
}

/* Their homes are the last ones: more of them than fit after the last home. */
static void blocks_with_neighboring_hashes_are_all_kept(void **state)
{
    enum { BLOCKS = 400 };
    (void)state;
    coffer__mlyze_live *live = new_table(NULL);
    coffer__mlyze_held block = { .size = 1 }, old;
    uint64_t addresses[BLOCKS];
    size_t count = 0;
    for (uint64_t address = 16; count < BLOCKS; address += 16) {
        uint64_t hash = coffer__mlyze_hash(&live->key, address);
        if ((uint32_t)(hash >> 8) >= UINT32_MAX - (UINT32_MAX >> 10))
            addresses[count++] = address;
    }
    for (size_t i = 0; i < BLOCKS; i++)
        assert_int_equal(put(live, addresses[i], &block, &old), COFFER__MLYZE_PUT_NEW);
    for (size_t i = 0; i < BLOCKS; i++)
        assert_true(take(&old, live, addresses[i]));
    assert_int_equal(live->live, 0);
    free_table(live);
}

/* With this key and a hash without mixing, addresses at equal distances were neighbors in the table. */
static void addresses_at_equal_distances_spread_over_the_table(void **state)
{
    static const coffer__mlyze_key key = { UINT64_C(0x726CB29218B1D2C3), UINT64_C(0xFD38D93FE9E061A7) };
    (void)state;
    coffer__mlyze_live *live = new_table(NULL);
    coffer__mlyze_held block = { .size = 1 }, old;
    live->key = key;
    for (uint64_t count = 1; count <= 60000; count++)
        assert_int_equal(put(live, count * 16, &block, &old), COFFER__MLYZE_PUT_NEW);
    assert_true(coffer__mlyze_live_bytes(live) <= 60000 * 64 + 20000);
    for (uint64_t count = 1; count <= 60000; count++)
        assert_true(take(&old, live, count * 16));
    free_table(live);
}

static void a_table_stays_within_its_budget(void **state)
{
    (void)state;
    coffer__mlyze_budget budget = { .max = 1 << 20 };
    coffer__mlyze_live *live = new_table(&budget);
    coffer__mlyze_held block = { .size = 1 }, old;
    coffer__mlyze_put what;
    coffer_status status = COFFER_OK;
    for (uint64_t address = 1; !status; address++) {
        status = coffer__mlyze_live_put(&what, live, coffer__mlyze_hash(&live->key, address), address, &block,
                                        &old, NULL);
        assert_true(budget.used <= budget.max);
    }
    assert_int_equal(status, COFFER_E_LIMIT);
    assert_true(budget.exceeded);
    assert_true(live->live > 10000);
    free_table(live);
    assert_int_equal(budget.used, 0);
}

static void levels_rise_and_fall_with_the_events(void **state)
{
    (void)state;
    /* A block, a realloc of it, one at an unknown address, one over the other, a stray free. */
    uint64_t time[8] = { 0 }, id[8] = { 0 };
    uint16_t thread[8] = { 0 };
    uint8_t type[] = { 0, 1, 0, 0, 3, 0, 1, 1 };
    uint64_t address[] = { 16, 16, 32, 0, 0, 32, 64, 0 };
    uint64_t size[] = { 100, 0, 300, 1000, 0, 50, 0, 0 };
    coffer_mlyze_events events = { .first = 10,
                                   .count = 8,
                                   .time = time,
                                   .address = address,
                                   .size = size,
                                   .id = id,
                                   .thread = thread,
                                   .type = type };
    coffer__mlyze_level level = { 0 };
    coffer__mlyze_live *live = new_table(NULL);
    assert_int_equal(coffer__mlyze_follow(&level, live, &events, NULL), COFFER_OK);
    assert_int_equal(level.bytes, 50);
    assert_int_equal(level.allocs, 1);
    assert_int_equal(level.high_bytes, 300);
    assert_int_equal(level.double_allocs, 1);
    assert_int_equal(level.first_double_alloc, 15);
    assert_int_equal(level.unknown_frees, 1);
    assert_int_equal(level.first_unknown_free, 16);
    free_table(live);
}

static void a_table_of_the_library_pairs_frees_with_allocations(void **state)
{
    (void)state;
    coffer_mlyze_live *live = NULL;
    coffer_mlyze_live_block block = { .size = 5, .time = 7, .tag = 9, .stack = 3, .thread = 2 }, old;
    bool replaced = true;
    assert_int_equal(coffer_mlyze_live_new(&live, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_live_put(&replaced, &old, live, 16, &block, NULL), COFFER_OK);
    assert_false(replaced);
    block.size = 6;
    assert_int_equal(coffer_mlyze_live_put(&replaced, &old, live, 16, &block, NULL), COFFER_OK);
    assert_true(replaced);
    assert_int_equal(old.size, 5);
    assert_int_equal(old.tag, 9);
    assert_int_equal(coffer_mlyze_live_put(&replaced, &old, live, 0, &block, NULL), COFFER_OK);
    assert_false(replaced);
    assert_int_equal(coffer_mlyze_live_count(live), 1);
    assert_false(coffer_mlyze_live_take(&old, live, 0));
    assert_true(coffer_mlyze_live_get(&old, live, 16));
    assert_false(coffer_mlyze_live_get(&old, live, 17));
    assert_false(coffer_mlyze_live_get(&old, live, 0));
    assert_true(coffer_mlyze_live_take(&old, live, 16));
    assert_false(coffer_mlyze_live_get(&old, live, 16));
    assert_int_equal(old.size, 6);
    assert_int_equal(old.time, 7);
    assert_int_equal(old.stack, 3);
    assert_int_equal(old.thread, 2);
    assert_false(coffer_mlyze_live_take(&old, live, 16));
    coffer_mlyze_live_free(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_holds_what_a_plain_array_holds),
        cmocka_unit_test(a_block_of_a_large_table_costs_at_most_40_bytes),
        cmocka_unit_test(addresses_that_never_come_again_do_not_grow_the_table),
        cmocka_unit_test(a_full_table_keeps_its_size_while_blocks_come_and_go),
        cmocka_unit_test(blocks_with_neighboring_hashes_are_all_kept),
        cmocka_unit_test(addresses_at_equal_distances_spread_over_the_table),
        cmocka_unit_test(a_table_stays_within_its_budget),
        cmocka_unit_test(levels_rise_and_fall_with_the_events),
        cmocka_unit_test(a_table_of_the_library_pairs_frees_with_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
