#include "base/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* By the tens of each number: those of one ten are equal. */
static int by_tens(const coffer_node *a, const coffer_node *b, const void *context)
{
    uint64_t x = coffer_node_get_u64(a) / 10, y = coffer_node_get_u64(b) / 10;
    (void)context;
    return (x > y) - (x < y);
}

static coffer_node *sorted(size_t count)
{
    coffer_node *root = NULL;
    uint32_t random = 1;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    coffer_node_add_u64(root, "before", 1, COFFER_UNIT_NONE);
    coffer_node *list = coffer_node_add_list(root, "list");
    for (size_t i = 0; i < count; i++) {
        random = random * 1103515245 + 12345;
        coffer_node_add_u64(list, NULL, (random >> 16) % 50 * 10 + i % 10, COFFER_UNIT_NONE);
    }
    coffer_node_sort(root, "list", by_tens, NULL);
    coffer_node_add_u64(list, NULL, 1000, COFFER_UNIT_NONE);
    return root;
}

static void lists_of_any_length_are_in_order_afterwards(void **state)
{
    (void)state;
    for (size_t count = 0; count < 70; count++) {
        coffer_node *root = sorted(count);
        const coffer_node *list = coffer_node_find(root, "list");
        size_t seen = 0;
        for (const coffer_node *item = coffer_node_first(list); item; item = coffer_node_next(item), seen++)
            if (coffer_node_next(item))
                assert_true(by_tens(item, coffer_node_next(item), NULL) <= 0);
        assert_int_equal(seen, count + 1);
        assert_int_equal(coffer_node_count(list), count + 1);
        coffer_node_free(root);
    }
}

static void equal_items_stay_in_the_order_they_had(void **state)
{
    static const uint64_t given[] = { 21, 13, 22, 11, 20, 12 }, wanted[] = { 13, 11, 12, 21, 22, 20 };
    coffer_node *root = NULL;
    (void)state;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    coffer_node *list = coffer_node_add_list(root, "list");
    for (size_t i = 0; i < 6; i++)
        coffer_node_add_u64(list, NULL, given[i], COFFER_UNIT_NONE);
    coffer_node_sort(root, "list", by_tens, NULL);
    const coffer_node *item = coffer_node_first(list);
    for (size_t i = 0; i < 6; i++, item = coffer_node_next(item))
        assert_int_equal(coffer_node_get_u64(item), wanted[i]);
    coffer_node_free(root);
}

static void sorting_a_missing_list_does_nothing(void **state)
{
    coffer_node *root = sorted(3);
    (void)state;
    coffer_node_sort(root, "nothing", by_tens, NULL);
    coffer_node_sort(root, "before", by_tens, NULL);
    assert_int_equal(coffer_node_count(root), 2);
    coffer_node_free(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_any_length_are_in_order_afterwards),
        cmocka_unit_test(equal_items_stay_in_the_order_they_had),
        cmocka_unit_test(sorting_a_missing_list_does_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
