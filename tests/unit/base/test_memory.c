#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"

#include <string.h>

static void nothing_is_still_a_pointer_that_can_be_freed(void **state)
{
    (void)state;
    void *blocks[] = { coffer__malloc(0), coffer__calloc(0, 8), coffer__calloc(8, 0),
                       coffer__realloc(NULL, 0), coffer__alloc_array(0, 16) };
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        assert_non_null(blocks[i]);
        coffer__free(blocks[i]);
    }
}

static void calloc_gives_zeros(void **state)
{
    (void)state;
    uint8_t *bytes = coffer__calloc(100, 3), zeros[300] = { 0 };
    assert_non_null(bytes);
    assert_memory_equal(bytes, zeros, sizeof zeros);
    coffer__free(bytes);
}

static void a_product_that_overflows_gives_no_memory(void **state)
{
    (void)state;
    assert_null(coffer__alloc_array(SIZE_MAX / 2, 3));
    assert_null(coffer__alloc_array(2, SIZE_MAX));
}

static void realloc_keeps_what_was_there(void **state)
{
    (void)state;
    char *text = coffer__strdup("coffer");
    text = coffer__realloc(text, 4096);
    assert_non_null(text);
    assert_string_equal(text, "coffer");
    coffer__free(text);
}

static void strndup_takes_len_bytes_and_adds_a_nul(void **state)
{
    (void)state;
    char *part = coffer__strndup("a\0bcdef", 4);
    assert_memory_equal(part, "a\0bc\0", 5);
    coffer__free(part);
    char *empty = coffer__strndup(NULL, 0);
    assert_string_equal(empty, "");
    coffer__free(empty);
    assert_null(coffer__strndup("", SIZE_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_still_a_pointer_that_can_be_freed),
        cmocka_unit_test(calloc_gives_zeros),
        cmocka_unit_test(a_product_that_overflows_gives_no_memory),
        cmocka_unit_test(realloc_keeps_what_was_there),
        cmocka_unit_test(strndup_takes_len_bytes_and_adds_a_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
