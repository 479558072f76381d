#include "base/table.h"

#include "support/temp.h"

#include <stdio.h>
#include <string.h>

enum { WORDS = 5000 };

static uint32_t find(const coffer__table *table, char words[][8], const char *word)
{
    coffer__table_probe probe = coffer__table_begin(table, coffer__table_hash(table, word, strlen(word)));
    uint32_t found;
    while ((found = coffer__table_next(&probe)) != COFFER__TABLE_NONE && strcmp(words[found], word) != 0)
        ;
    return found;
}

static void fill(coffer__table *table, char words[][8])
{
    for (size_t i = 0; i < WORDS; i++) {
        snprintf(words[i], 8, "w%zu", i);
        assert_int_equal(coffer__table_add(table, coffer__table_hash(table, words[i], strlen(words[i])), i,
                                           NULL),
                         COFFER_OK);
    }
}

static void every_item_is_found_under_its_hash_and_no_other(void **state)
{
    static char words[WORDS][8];
    coffer__table tables[2] = { COFFER__TABLE_INIT, COFFER__TABLE_INIT };
    (void)state;
    coffer__table_init_keyed(&tables[1]);
    assert_true(tables[1].seed != 0);
    for (size_t t = 0; t < 2; t++) {
        assert_int_equal(find(&tables[t], words, "w0"), COFFER__TABLE_NONE);
        fill(&tables[t], words);
        for (size_t i = 0; i < WORDS; i++)
            assert_int_equal(find(&tables[t], words, words[i]), i);
        assert_int_equal(find(&tables[t], words, "none"), COFFER__TABLE_NONE);
        coffer__table_clear(&tables[t]);
        assert_int_equal(find(&tables[t], words, "w0"), COFFER__TABLE_NONE);
        assert_int_equal(tables[t].count, 0);
        coffer__table_free(&tables[t]);
    }
}

/* With a hash near the end of the array, the run wraps around it while the table grows. */
static void items_of_one_hash_come_in_the_order_they_were_added(void **state)
{
    static const uint64_t hashes[] = { 0, 63, UINT64_C(0xFFFFFFFF), UINT64_C(0x123456789) };
    (void)state;
    for (size_t h = 0; h < sizeof hashes / sizeof hashes[0]; h++) {
        coffer__table table = COFFER__TABLE_INIT;
        for (size_t i = 0; i < 300; i++) {
            assert_int_equal(coffer__table_add(&table, hashes[h], 2 * i, NULL), COFFER_OK);
            assert_int_equal(coffer__table_add(&table, hashes[h] + 1, 2 * i + 1, NULL), COFFER_OK);
        }
        coffer__table_probe probe = coffer__table_begin(&table, hashes[h]);
        for (size_t i = 0; i < 300; i++)
            assert_int_equal(coffer__table_next(&probe), 2 * i);
        assert_int_equal(coffer__table_next(&probe), COFFER__TABLE_NONE);
        assert_int_equal(coffer__table_next(&probe), COFFER__TABLE_NONE);
        coffer__table_free(&table);
    }
}

static void reserved_room_is_not_grown_again(void **state)
{
    coffer__table table = COFFER__TABLE_INIT;
    (void)state;
    assert_int_equal(coffer__table_reserve(&table, 1000, NULL), COFFER_OK);
    const coffer__table_slot *slots = table.slots;
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(coffer__table_add(&table, i * 7919, i, NULL), COFFER_OK);
    assert_ptr_equal(table.slots, slots);
    coffer__table_free(&table);
    assert_int_equal(table.capacity, 0);
}

static void an_index_that_does_not_fit_is_refused(void **state)
{
    coffer__table table = COFFER__TABLE_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    assert_int_equal(coffer__table_add(&table, 1, COFFER__TABLE_NONE, &err), COFFER_E_LIMIT);
    assert_int_equal(table.count, 0);
    coffer__table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_found_under_its_hash_and_no_other),
        cmocka_unit_test(items_of_one_hash_come_in_the_order_they_were_added),
        cmocka_unit_test(reserved_room_is_not_grown_again),
        cmocka_unit_test(an_index_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
