#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sorted.h"

typedef struct pair {
    char name;
    uint64_t begin;
} pair;

static const pair pairs[] = { { 'a', 0 }, { 'b', 5 }, { 'c', 5 }, { 'd', UINT64_MAX } };

static void items_up_to_a_number_are_counted(void **state)
{
    (void)state;
    assert_int_equal(COFFER__COUNT_UP_TO(pairs, 4, pair, begin, 0), 1);
    assert_int_equal(COFFER__COUNT_UP_TO(pairs, 4, pair, begin, 4), 1);
    assert_int_equal(COFFER__COUNT_UP_TO(pairs, 4, pair, begin, 5), 3);
    assert_int_equal(COFFER__COUNT_UP_TO(pairs, 4, pair, begin, UINT64_MAX), 4);
    assert_int_equal(COFFER__COUNT_UP_TO(NULL, 0, pair, begin, 5), 0);
}

static void items_below_a_number_are_counted(void **state)
{
    (void)state;
    assert_int_equal(COFFER__COUNT_BELOW(pairs, 4, pair, begin, (uint64_t)0), 0);
    assert_int_equal(COFFER__COUNT_BELOW(pairs, 4, pair, begin, (uint64_t)5), 1);
    assert_int_equal(COFFER__COUNT_BELOW(pairs, 4, pair, begin, UINT64_MAX), 3);
}

static void the_last_item_up_to_a_number_is_found(void **state)
{
    (void)state;
    assert_int_equal(COFFER__LAST_UP_TO(pairs, 4, pair, begin, 7), 2);
    assert_int_equal(COFFER__LAST_UP_TO(pairs + 1, 3, pair, begin, 4), 0);
    const uint64_t numbers[] = { 2, 4, 6 };
    assert_int_equal(coffer__last_of(coffer__count_up_to(numbers, 3, sizeof *numbers, 0, 5)), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_up_to_a_number_are_counted),
        cmocka_unit_test(items_below_a_number_are_counted),
        cmocka_unit_test(the_last_item_up_to_a_number_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
