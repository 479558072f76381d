#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json_write.h"
#include "base/report.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A writer with its buffer. */
typedef struct page {
    coffer__buffer buffer;
    coffer__json_writer writer;
} page;

static page *new_page(page *p, unsigned indent)
{
    coffer__buffer_init(&p->buffer, SIZE_MAX);
    coffer__json_writer_init(&p->writer, &p->buffer, indent);
    return p;
}

static void expect(page *p, const char *text)
{
    assert_string_equal(coffer__buffer_text(&p->buffer), text);
    coffer__buffer_free(&p->buffer);
}

static void write_sample(coffer__json_writer *w)
{
    coffer__json_open_object(w);
    coffer__json_key(w, "a");
    coffer__json_open_array(w);
    coffer__json_write_u64(w, 1);
    coffer__json_write_i64(w, -2);
    coffer__json_open_array(w);
    coffer__json_close_array(w);
    coffer__json_close_array(w);
    coffer__json_key_len(w, "bcd", 2);
    coffer__json_open_object(w);
    coffer__json_close_object(w);
    coffer__json_key(w, "c");
    coffer__json_write_bool(w, true);
    coffer__json_key(w, "d");
    coffer__json_write_null(w);
    coffer__json_close_object(w);
}

static void one_line_has_no_spaces(void **state)
{
    (void)state;
    page p;
    write_sample(&new_page(&p, 0)->writer);
    expect(&p, "{\"a\":[1,-2,[]],\"bc\":{},\"c\":true,\"d\":null}");
}

static void indentation_puts_each_item_on_its_line(void **state)
{
    (void)state;
    page p;
    write_sample(&new_page(&p, 2)->writer);
    expect(&p,
           "{\n  \"a\": [\n    1,\n    -2,\n    []\n  ],\n  \"bc\": {},\n  \"c\": true,\n  \"d\": null\n}");
}

static void strings_escape_what_json_needs_and_nothing_more(void **state)
{
    (void)state;
    page p;
    coffer__json_string_len(&new_page(&p, 0)->writer, "\"\\/\b\f\n\r\t\0\x1F\x7F é😀", 18);
    expect(&p, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7F é😀\"");
}

static void bytes_that_are_not_utf8_are_replaced(void **state)
{
    (void)state;
    page p;
    coffer__json_string(&new_page(&p, 0)->writer, "a\xFF\xC3z");
    expect(&p, "\"a\xEF\xBF\xBD\xEF\xBF\xBDz\"");
}

static void no_text_is_null(void **state)
{
    (void)state;
    page p;
    coffer__json_string(&new_page(&p, 0)->writer, NULL);
    expect(&p, "null");
    coffer__json_string(&new_page(&p, 0)->writer, "");
    expect(&p, "\"\"");
}

static void integers_are_exact(void **state)
{
    (void)state;
    page p;
    coffer__json_write_u64(&new_page(&p, 0)->writer, UINT64_MAX);
    expect(&p, "18446744073709551615");
    coffer__json_write_i64(&new_page(&p, 0)->writer, INT64_MIN);
    expect(&p, "-9223372036854775808");
}

static void doubles_are_short_and_still_look_like_doubles(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = { { 0.1, "0.1" },           { 1.0, "1.0" },
                  { -3.0, "-3.0" },         { 1e22, "1e+22" },
                  { 5e-324, "5e-324" },     { 0.0, "0.0" },
                  { -0.0, "-0.0" },         { 1.0 / 3, "0.3333333333333333" },
                  { 123456.0, "123456.0" }, { 0.30000000000000004, "0.30000000000000004" },
                  { NAN, "null" },          { INFINITY, "null" },
                  { -INFINITY, "null" } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        page p;
        coffer__json_write_f64(&new_page(&p, 0)->writer, cases[i].value);
        expect(&p, cases[i].text);
    }
}

static void doubles_read_back_the_same(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        page p;
        double value;
        coffer__json *json;
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        memcpy(&value, &seed, sizeof value);
        if (!isfinite(value))
            continue;
        coffer__json_write_f64(&new_page(&p, 0)->writer, value);
        assert_int_equal(coffer__json_parse(&json, (char *)p.buffer.data, p.buffer.len, 0, NULL, NULL), 0);
        assert_int_equal(coffer__json_root(json)->kind, COFFER__JSON_F64);
        assert_true(coffer__json_root(json)->as.f64 == value);
        coffer__json_free(json);
        coffer__buffer_free(&p.buffer);
    }
}

static void the_decimal_point_is_a_point_in_every_locale(void **state)
{
    (void)state;
    static const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8" };
    for (size_t i = 0; i < 3; i++) {
        if (!setlocale(LC_NUMERIC, locales[i]))
            continue; /* not installed here */
        page p;
        coffer__json_write_f64(&new_page(&p, 0)->writer, -1234.5);
        setlocale(LC_NUMERIC, "C");
        expect(&p, "-1234.5");
    }
}

static void a_parsed_value_is_copied_as_it_was(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":[1,-2,3.0,true,false,null,\"x\\u0000\\n\"],\"\":{\"é\":[[],{}]},"
                               "\"n\":18446744073709551615}";
    coffer__json *json;
    page p;
    assert_int_equal(coffer__json_parse(&json, text, sizeof text - 1, 0, NULL, NULL), COFFER_OK);
    coffer__json_write_value(&new_page(&p, 0)->writer, coffer__json_root(json));
    expect(&p, text);
    coffer__json_write_value(&new_page(&p, 0)->writer, coffer__json_find(coffer__json_root(json), ""));
    expect(&p, "{\"é\":[[],{}]}");
    coffer__json_free(json);
}

static void nodes_are_written_with_their_names(void **state)
{
    (void)state;
    coffer_node *root;
    page p;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    coffer_node_add_text_len(root, "text", "a\0b", 3);
    coffer_node_add_u64(root, "u", 7, COFFER_UNIT_BYTES);
    coffer_node_add_i64(root, "i", -7, COFFER_UNIT_NONE);
    coffer_node_add_f64(root, "f", 2, COFFER_UNIT_NONE);
    coffer_node_add_bool(root, "b", false);
    coffer_node_add_null(root, "n");
    coffer_node *list = coffer_node_add_list(root, "list");
    coffer_node_add_u64(list, NULL, 1, COFFER_UNIT_NONE);
    coffer_node_add_u64(coffer_node_add_map(list, NULL), "x", 2, COFFER_UNIT_NONE);
    coffer__json_write_node(&new_page(&p, 0)->writer, root);
    expect(
        &p,
        "{\"text\":\"a\\u0000b\",\"u\":7,\"i\":-7,\"f\":2.0,\"b\":false,\"n\":null,\"list\":[1,{\"x\":2}]}");
    coffer_node_free(root);
}

static void the_deepest_text_that_parses_can_be_written(void **state)
{
    (void)state;
    coffer__buffer text;
    coffer__json *json;
    page p;
    coffer_limits limits = COFFER_LIMITS_INIT;
    limits.json_depth = COFFER__JSON_MAX_DEPTH;
    coffer__buffer_init(&text, SIZE_MAX);
    coffer__buffer_fill(&text, '[', COFFER__JSON_MAX_DEPTH);
    coffer__buffer_fill(&text, ']', COFFER__JSON_MAX_DEPTH);
    assert_int_equal(coffer__json_parse(&json, (char *)text.data, text.len, 0, &limits, NULL), COFFER_OK);
    coffer__json_write_value(&new_page(&p, 0)->writer, coffer__json_root(json));
    expect(&p, coffer__buffer_text(&text));
    coffer__buffer_free(&text);
    coffer__json_free(json);
}

static void too_deep_fails_the_buffer_and_no_more(void **state)
{
    (void)state;
    page p;
    new_page(&p, 1);
    for (int i = 0; i < COFFER__JSON_WRITE_DEPTH + 100; i++)
        coffer__json_open_array(&p.writer);
    assert_true(p.buffer.failed);
    coffer__json_write_null(&p.writer);
    for (int i = 0; i < COFFER__JSON_WRITE_DEPTH + 100; i++)
        coffer__json_close_array(&p.writer);
    assert_true(p.buffer.failed);
    assert_int_equal(p.writer.depth, 0);
    expect(&p, "");
}

static void a_full_buffer_stops_a_copy(void **state)
{
    (void)state;
    coffer__json *json;
    coffer_node *root;
    page p;
    assert_int_equal(coffer__json_parse(&json, "[1,2,[3,{\"k\":4}]]", 17, 0, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    coffer_node_add_text(coffer_node_add_map(root, "deep"), "text", "words");
    for (size_t max = 0; max < 17; max++) {
        new_page(&p, 0)->buffer.max = max;
        coffer__json_write_value(&p.writer, coffer__json_root(json));
        assert_true(p.buffer.failed);
        coffer__buffer_free(&p.buffer);
        new_page(&p, 0)->buffer.max = max;
        coffer__json_write_node(&p.writer, root);
        assert_true(p.buffer.failed);
        coffer__buffer_free(&p.buffer);
    }
    coffer_node_free(root);
    coffer__json_free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_has_no_spaces),
        cmocka_unit_test(indentation_puts_each_item_on_its_line),
        cmocka_unit_test(strings_escape_what_json_needs_and_nothing_more),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
        cmocka_unit_test(no_text_is_null),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(doubles_are_short_and_still_look_like_doubles),
        cmocka_unit_test(doubles_read_back_the_same),
        cmocka_unit_test(the_decimal_point_is_a_point_in_every_locale),
        cmocka_unit_test(a_parsed_value_is_copied_as_it_was),
        cmocka_unit_test(nodes_are_written_with_their_names),
        cmocka_unit_test(the_deepest_text_that_parses_can_be_written),
        cmocka_unit_test(too_deep_fails_the_buffer_and_no_more),
        cmocka_unit_test(a_full_buffer_stops_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
