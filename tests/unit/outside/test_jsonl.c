#include "outside/text/jsonl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct text {
    coffer_source *src;
    coffer__jsonl_reader *reader;
} text;

static text open_text(const char *bytes)
{
    text out;
    coffer_limits limits = COFFER_LIMITS_INIT;
    assert_int_equal(coffer_source_from_memory(&out.src, bytes, strlen(bytes), NULL), COFFER_OK);
    assert_int_equal(coffer__jsonl_open(&out.reader, out.src, &limits, NULL), COFFER_OK);
    return out;
}

static void close_text(text *done)
{
    coffer__jsonl_close(done->reader);
    coffer_source_close(done->src);
}

static uint64_t next_x(text *from)
{
    const coffer__json_value *object;
    uint64_t x;
    assert_int_equal(coffer__jsonl_next(&object, from->reader, NULL), COFFER_OK);
    assert_non_null(object);
    assert_true(coffer__json_u64(&x, coffer__json_find(object, "x")));
    return x;
}

static void assert_end(text *from)
{
    const coffer__json_value *object;
    assert_int_equal(coffer__jsonl_next(&object, from->reader, NULL), COFFER_OK);
    assert_null(object);
}

static void each_line_is_an_object_and_empty_lines_are_none(void **state)
{
    (void)state;
    text t = open_text("{\"x\": 1}\n\n  \r\n{\"x\":2}\r\n{\"x\":3}");
    assert_int_equal(next_x(&t), 1);
    assert_int_equal(coffer__jsonl_line(t.reader), 1);
    assert_int_equal(next_x(&t), 2);
    assert_int_equal(coffer__jsonl_line(t.reader), 4);
    assert_int_equal(coffer__jsonl_offset(t.reader), 14);
    assert_int_equal(next_x(&t), 3);
    assert_end(&t);
    assert_end(&t);
    close_text(&t);
}

static void an_empty_file_has_no_line(void **state)
{
    (void)state;
    text t = open_text("");
    assert_end(&t);
    close_text(&t);
}

static void a_bad_line_is_named_with_its_place(void **state)
{
    (void)state;
    static const char *const bad[] = { "{\"x\": 1", "{\"x\": 1} {}", "[1]", "7", "{\"x\": 1, \"x\": 2}" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char bytes[64] = "{\"x\": 1}\n";
        const coffer__json_value *object;
        coffer_error err = COFFER_ERROR_INIT;
        strcat(bytes, bad[i]);
        text t = open_text(bytes);
        assert_int_equal(next_x(&t), 1);
        assert_int_not_equal(coffer__jsonl_next(&object, t.reader, &err), COFFER_OK);
        assert_non_null(strstr(err.text, "line 2"));
        assert_true(err.offset >= 9 && err.offset <= strlen(bytes));
        close_text(&t);
    }
}

static void a_line_may_be_longer_than_any_buffer(void **state)
{
    (void)state;
    const size_t long_len = 1000000;
    char *bytes = malloc(long_len + 100);
    strcpy(bytes, "{\"text\": \"");
    memset(bytes + 10, 'y', long_len);
    strcpy(bytes + 10 + long_len, "\"}\n{\"x\": 5}\n");
    text t = open_text(bytes);
    const coffer__json_value *object;
    assert_int_equal(coffer__jsonl_next(&object, t.reader, NULL), COFFER_OK);
    assert_int_equal(coffer__json_find(object, "text")->string_len, long_len);
    assert_int_equal(next_x(&t), 5);
    assert_int_equal(coffer__jsonl_offset(t.reader), 10 + long_len + 3);
    assert_end(&t);
    close_text(&t);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_an_object_and_empty_lines_are_none),
        cmocka_unit_test(an_empty_file_has_no_line),
        cmocka_unit_test(a_bad_line_is_named_with_its_place),
        cmocka_unit_test(a_line_may_be_longer_than_any_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
