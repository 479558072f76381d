#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/memory.h"

static void an_array_grows_and_keeps_its_items(void **state)
{
    (void)state;
    uint64_t *items = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(coffer__array_reserve_one(&items, &capacity, i, sizeof *items, NULL), COFFER_OK);
        assert_true(capacity > i);
        items[i] = i;
    }
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    coffer__free(items);
}

static void a_size_that_overflows_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    char item, *items = &item;
    size_t capacity = SIZE_MAX / 2 + 1;
    assert_int_equal(coffer__array_reserve_one(&items, &capacity, capacity, 1, NULL), COFFER_E_NO_MEMORY);
    assert_true(capacity == SIZE_MAX / 2 + 1);
    capacity = SIZE_MAX / 8;
    assert_int_equal(coffer__array_reserve_one(&items, &capacity, capacity, 8, NULL), COFFER_E_NO_MEMORY);
    assert_true(capacity == SIZE_MAX / 8);
    assert_ptr_equal(items, &item);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_grows_and_keeps_its_items),
        cmocka_unit_test(a_size_that_overflows_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
