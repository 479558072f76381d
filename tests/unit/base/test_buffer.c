#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/memory.h"

#include <string.h>

static void appended_bytes_are_in_order(void **state)
{
    (void)state;
    coffer__buffer buffer = COFFER__BUFFER_INIT;
    assert_true(coffer__buffer_append(&buffer, "ab", 2));
    assert_true(coffer__buffer_append(&buffer, NULL, 0));
    assert_true(coffer__buffer_fill(&buffer, '-', 3));
    assert_true(coffer__buffer_printf(&buffer, "%d%s", 42, "z"));
    memcpy(coffer__buffer_extend(&buffer, 2), "!?", 2);
    assert_int_equal(buffer.len, 10);
    assert_string_equal(coffer__buffer_text(&buffer), "ab---42z!?");
    assert_int_equal(buffer.len, 10);
    coffer__buffer_free(&buffer);
    assert_int_equal(buffer.len, 0);
    assert_true(coffer__buffer_append(&buffer, "again", 5));
    assert_string_equal(coffer__buffer_text(&buffer), "again");
    coffer__buffer_free(&buffer);
}

static void it_grows_as_far_as_it_must(void **state)
{
    (void)state;
    coffer__buffer buffer = COFFER__BUFFER_INIT;
    for (unsigned i = 0; i < 10000; i++)
        assert_true(coffer__buffer_printf(&buffer, "%04u", i));
    assert_int_equal(buffer.len, 40000);
    assert_true(buffer.capacity < 4 * buffer.len);
    assert_memory_equal(buffer.data + 4 * 1234, "12341235", 8);
    coffer__buffer_free(&buffer);
}

static void the_maximum_holds_and_the_failure_sticks(void **state)
{
    (void)state;
    coffer__buffer buffer;
    coffer__buffer_init(&buffer, 8);
    assert_true(coffer__buffer_append(&buffer, "12345678", 8));
    assert_string_equal(coffer__buffer_text(&buffer), "12345678");
    assert_false(coffer__buffer_append(&buffer, "9", 1));
    assert_true(buffer.failed);
    assert_false(coffer__buffer_append(&buffer, "", 0));
    assert_false(coffer__buffer_fill(&buffer, 0, 0));
    assert_false(coffer__buffer_printf(&buffer, "x"));
    assert_null(coffer__buffer_extend(&buffer, 0));
    assert_string_equal(coffer__buffer_text(&buffer), "");
    assert_int_equal(buffer.len, 8);
    coffer__buffer_free(&buffer);
    assert_false(buffer.failed);
    assert_int_equal(buffer.max, 8);
}

static void a_length_that_cannot_be_counted_fails(void **state)
{
    (void)state;
    coffer__buffer buffer = COFFER__BUFFER_INIT;
    assert_true(coffer__buffer_append(&buffer, "x", 1));
    assert_null(coffer__buffer_extend(&buffer, SIZE_MAX));
    coffer__buffer_free(&buffer);
    assert_null(coffer__buffer_extend(&buffer, SIZE_MAX));
    coffer__buffer_free(&buffer);
    assert_null(coffer__buffer_extend(&buffer, SIZE_MAX - 1));
    assert_true(buffer.failed);
    coffer__buffer_free(&buffer);
}

static void an_empty_buffer_is_an_empty_text(void **state)
{
    (void)state;
    coffer__buffer buffer = COFFER__BUFFER_INIT;
    assert_string_equal(coffer__buffer_text(&buffer), "");
    coffer__buffer_free(&buffer);
}

static void released_memory_belongs_to_the_caller(void **state)
{
    (void)state;
    coffer__buffer buffer = COFFER__BUFFER_INIT;
    size_t len = 99;
    assert_null(coffer__buffer_release(&buffer, &len));
    assert_int_equal(len, 0);
    coffer__buffer_append(&buffer, "mine", 4);
    uint8_t *bytes = coffer__buffer_release(&buffer, &len);
    assert_int_equal(len, 4);
    assert_memory_equal(bytes, "mine", 4);
    assert_null(buffer.data);
    assert_int_equal(buffer.len, 0);
    coffer__free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_bytes_are_in_order),
        cmocka_unit_test(it_grows_as_far_as_it_must),
        cmocka_unit_test(the_maximum_holds_and_the_failure_sticks),
        cmocka_unit_test(a_length_that_cannot_be_counted_fails),
        cmocka_unit_test(an_empty_buffer_is_an_empty_text),
        cmocka_unit_test(released_memory_belongs_to_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
