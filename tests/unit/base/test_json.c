#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/json.h"
#include "base/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static coffer__json *parse(const char *text)
{
    coffer__json *json = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer__json_parse(&json, text, strlen(text), 0, NULL, &err) != COFFER_OK)
        fail_msg("%s: %s", text, err.text);
    return json;
}

/* ---- Valid texts ---- */

static void every_kind_of_value_is_distinguished(void **state)
{
    (void)state;
    coffer__json *json = parse(" [null, true, false, 0, 18446744073709551615, -1, -9223372036854775808,"
                               " 1.5, 1e3, \"s\", [], {}]\r\n\t ");
    static const coffer__json_kind kinds[] = { COFFER__JSON_NULL,   COFFER__JSON_BOOL,  COFFER__JSON_BOOL,
                                               COFFER__JSON_U64,    COFFER__JSON_U64,   COFFER__JSON_I64,
                                               COFFER__JSON_I64,    COFFER__JSON_F64,   COFFER__JSON_F64,
                                               COFFER__JSON_STRING, COFFER__JSON_ARRAY, COFFER__JSON_OBJECT };
    const coffer__json_value *root = coffer__json_root(json), *v = root + 1;
    assert_int_equal(root->kind, COFFER__JSON_ARRAY);
    assert_int_equal(root->as.count, 12);
    assert_int_equal(root->span, 13);
    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(v[i].kind, kinds[i]);
        assert_null(v[i].key);
    }
    assert_true(v[1].as.boolean);
    assert_false(v[2].as.boolean);
    assert_true(v[3].as.u64 == 0);
    assert_true(v[4].as.u64 == UINT64_MAX);
    assert_true(v[5].as.i64 == -1);
    assert_true(v[6].as.i64 == INT64_MIN);
    assert_true(v[7].as.f64 == 1.5);
    assert_true(v[8].as.f64 == 1000.0);
    coffer__json_free(json);
    coffer__json_free(NULL);
}

static void a_value_alone_is_a_text(void **state)
{
    (void)state;
    static const char *const texts[] = { "7", "\"x\"", "null", "true", " -0.5 ", "{}", "[]" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        coffer__json *json = parse(texts[i]);
        assert_int_equal(coffer__json_root(json)->span, 1);
        assert_null(coffer__json_first(coffer__json_root(json)));
        coffer__json_free(json);
    }
}

static void strings_are_unescaped_and_may_hold_nuls(void **state)
{
    (void)state;
    coffer__json *json = parse("{\"k\\u0000\\n\": \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00é\"}");
    const coffer__json_value *v = coffer__json_first(coffer__json_root(json));
    assert_int_equal(v->key_len, 3);
    assert_memory_equal(v->key, "k\0\n\0", 4);
    assert_string_equal(v->as.string, "\"\\/\b\f\n\r\té😀é");
    assert_int_equal(v->string_len, strlen(v->as.string));
    coffer__json_free(json);
}

static void iteration_visits_children_and_skips_grandchildren(void **state)
{
    (void)state;
    coffer__json *json = parse("{\"a\":[1,[2,3],{\"x\":{}}],\"b\":2,\"c\":{\"a\":9}}");
    const coffer__json_value *root = coffer__json_root(json);
    const char *keys = "abc";
    for (const coffer__json_value *v = coffer__json_first(root); v; v = coffer__json_next(root, v))
        assert_int_equal(v->key[0], *keys++);
    assert_int_equal(*keys, '\0');
    const coffer__json_value *a = coffer__json_find(root, "a");
    assert_int_equal(a->as.count, 3);
    assert_int_equal(a->span, 7);
    assert_int_equal(root->span, 11);
    coffer__json_free(json);
}

static void members_are_found_by_their_whole_key(void **state)
{
    (void)state;
    coffer__json *json = parse("{\"ab\":1,\"a\":2,\"\":3}");
    const coffer__json_value *root = coffer__json_root(json);
    assert_true(coffer__json_find(root, "a")->as.u64 == 2);
    assert_true(coffer__json_find(root, "")->as.u64 == 3);
    assert_null(coffer__json_find(root, "abc"));
    assert_null(coffer__json_find(root + 1, "a"));
    coffer__json_free(json);
}

static void numbers_are_taken_only_where_they_fit(void **state)
{
    (void)state;
    coffer__json *json = parse("[1,-1,1.0,\"1\"]");
    const coffer__json_value *v = coffer__json_root(json) + 1;
    uint64_t u64 = 77;
    double f64 = 77;
    assert_true(coffer__json_u64(&u64, v) && u64 == 1);
    assert_false(coffer__json_u64(&u64, v + 1));
    assert_false(coffer__json_u64(&u64, v + 2));
    assert_false(coffer__json_u64(&u64, v + 3));
    assert_false(coffer__json_u64(&u64, NULL));
    assert_true(u64 == 1);
    assert_true(coffer__json_f64(&f64, v) && f64 == 1);
    assert_true(coffer__json_f64(&f64, v + 1) && f64 == -1);
    assert_true(coffer__json_f64(&f64, v + 2) && f64 == 1);
    assert_false(coffer__json_f64(&f64, v + 3));
    assert_false(coffer__json_f64(&f64, NULL));
    coffer__json_free(json);
}

static void the_text_may_end_at_the_last_byte_of_memory_that_is_ours(void **state)
{
    (void)state;
    for (size_t len = 1; len < 200; len++) { /* the address sanitizer watches */
        coffer__buffer buffer;
        coffer__json *json;
        coffer__buffer_init(&buffer, SIZE_MAX);
        coffer__buffer_fill(&buffer, ' ', len);
        buffer.data[len - 1] = '7';
        assert_int_equal(coffer__json_parse(&json, (char *)buffer.data, len, 0, NULL, NULL), COFFER_OK);
        coffer__json_free(json);
        coffer__buffer_free(&buffer);
    }
}

/* ---- Invalid texts ---- */

typedef struct mistake {
    const char *text;
    coffer_status status;
    size_t at;
    const char *reason;
} mistake;

static const mistake mistakes[] = {
    { "", COFFER_E_BAD_JSON, 0, "unexpected end where a value was due" },
    { "  \n", COFFER_E_BAD_JSON, 3, "unexpected end where a value was due" },
    { "\xEF\xBB\xBF{}", COFFER_E_BAD_JSON, 0, "byte order mark" },
    { "\xEF\xBF\xBD", COFFER_E_BAD_JSON, 0, "expected a value" },
    { "nul", COFFER_E_BAD_JSON, 3, "expected true, false or null" },
    { "[true,falsy]", COFFER_E_BAD_JSON, 10, "expected true, false or null" },
    { "trUe", COFFER_E_BAD_JSON, 2, "expected true, false or null" },
    { "truex", COFFER_E_BAD_JSON, 4, "unexpected text after the value" },
    { "{} {}", COFFER_E_BAD_JSON, 3, "unexpected text after the value" },
    { "[1]]", COFFER_E_BAD_JSON, 3, "unexpected text after the value" },
    { "[", COFFER_E_BAD_JSON, 1, "unexpected end where a value was due" },
    { "[1", COFFER_E_BAD_JSON, 2, "unexpected end inside an array" },
    { "[1,", COFFER_E_BAD_JSON, 3, "unexpected end where a value was due" },
    { "[1,]", COFFER_E_BAD_JSON, 3, "expected a value" },
    { "[,1]", COFFER_E_BAD_JSON, 1, "expected a value" },
    { "[1 2]", COFFER_E_BAD_JSON, 3, "expected ',' or ']' after a value" },
    { "[1}", COFFER_E_BAD_JSON, 2, "expected ',' or ']' after a value" },
    { "[1,'a']", COFFER_E_BAD_JSON, 3, "expected a value" },
    { "{", COFFER_E_BAD_JSON, 1, "unexpected end inside an object" },
    { "{\"a\"", COFFER_E_BAD_JSON, 4, "expected ':' after a key" },
    { "{\"a\":", COFFER_E_BAD_JSON, 5, "unexpected end where a value was due" },
    { "{\"a\":1", COFFER_E_BAD_JSON, 6, "unexpected end inside an object" },
    { "{\"a\":1,", COFFER_E_BAD_JSON, 7, "unexpected end inside an object" },
    { "{\"a\":1,}", COFFER_E_BAD_JSON, 7, "expected a key after ','" },
    { "{\"a\" 1}", COFFER_E_BAD_JSON, 5, "expected ':' after a key" },
    { "{\"a\":1 \"b\":2}", COFFER_E_BAD_JSON, 7, "expected ',' or '}' after a value" },
    { "{\"a\":[1}", COFFER_E_BAD_JSON, 7, "expected ',' or ']' after a value" },
    { "{a:1}", COFFER_E_BAD_JSON, 1, "expected a key or '}'" },
    { "{1:1}", COFFER_E_BAD_JSON, 1, "expected a key or '}'" },
    { "{\"a\":1,2}", COFFER_E_BAD_JSON, 7, "expected a key after ','" },
    { "\"abc", COFFER_E_BAD_JSON, 4, "unexpected end inside a string" },
    { "\"abc\\", COFFER_E_BAD_JSON, 5, "unexpected end inside a string" },
    { "[\"a\nb\"]", COFFER_E_BAD_JSON, 3, "control character in a string" },
    { "[\"a\x1F\"]", COFFER_E_BAD_JSON, 3, "control character in a string" },
    { "{\"a\tb\":1}", COFFER_E_BAD_JSON, 3, "control character in a string" },
    { "\"\\x41\"", COFFER_E_BAD_JSON, 2, "unknown escape in a string" },
    { "\"\\'\"", COFFER_E_BAD_JSON, 2, "unknown escape in a string" },
    { "\"\\u12g4\"", COFFER_E_BAD_JSON, 5, "expected four hexadecimal digits" },
    { "\"\\u12\"", COFFER_E_BAD_JSON, 5, "expected four hexadecimal digits" },
    { "\"\\udc00\"", COFFER_E_BAD_JSON, 1, "half of a surrogate pair" },
    { "\"a\\ud800\"", COFFER_E_BAD_JSON, 2, "half of a surrogate pair" },
    { "\"\\ud800\\u0041\"", COFFER_E_BAD_JSON, 1, "half of a surrogate pair" },
    { "\"\\ud800\\ud800\"", COFFER_E_BAD_JSON, 1, "half of a surrogate pair" },
    { "\"\\ud800\\udZ00\"", COFFER_E_BAD_JSON, 10, "expected four hexadecimal digits" },
    { "-", COFFER_E_BAD_JSON, 1, "expected a digit" },
    { "[-a]", COFFER_E_BAD_JSON, 2, "expected a digit" },
    { "+1", COFFER_E_BAD_JSON, 0, "expected a value" },
    { ".5", COFFER_E_BAD_JSON, 0, "expected a value" },
    { "01", COFFER_E_BAD_JSON, 0, "leading zero" },
    { "[-012]", COFFER_E_BAD_JSON, 2, "leading zero" },
    { "1.", COFFER_E_BAD_JSON, 2, "expected a digit after the decimal point" },
    { "[1.e5]", COFFER_E_BAD_JSON, 3, "expected a digit after the decimal point" },
    { "1e", COFFER_E_BAD_JSON, 2, "expected a digit in the exponent" },
    { "1e+", COFFER_E_BAD_JSON, 3, "expected a digit in the exponent" },
    { "[1E-x]", COFFER_E_BAD_JSON, 4, "expected a digit in the exponent" },
    { "0x10", COFFER_E_BAD_JSON, 1, "unexpected text after the value" },
    { "NaN", COFFER_E_BAD_JSON, 0, "expected a value" },
    { "[Infinity]", COFFER_E_BAD_JSON, 1, "expected a value" },
    { "// note\n1", COFFER_E_BAD_JSON, 0, "expected a value" },
    { "[1,/**/2]", COFFER_E_BAD_JSON, 3, "expected a value" },
    { "[1,\f2]", COFFER_E_BAD_JSON, 3, "expected a value" },
    { "[\"\xFF\"]", COFFER_E_BAD_TEXT, 2, "not UTF-8" },
    { "{\"k\xC3\":1}", COFFER_E_BAD_TEXT, 3, "not UTF-8" },
    { "[1,\xC0\x80]", COFFER_E_BAD_TEXT, 3, "not UTF-8" },
    { "\"\xED\xA0\x80\"", COFFER_E_BAD_TEXT, 1, "not UTF-8" },
    { "{} \x80", COFFER_E_BAD_TEXT, 3, "not UTF-8" },
    { "[1,\xC3\xA9]", COFFER_E_BAD_JSON, 3, "expected a value" },
    { "{\"a\":1,\"a\":2}", COFFER_E_DUPLICATE, 7, "duplicate key \"a\"" },
    { "{\"a\":1,\"\\u0061\":2}", COFFER_E_DUPLICATE, 7, "duplicate key \"a\"" },
    { "[{\"b\":{\"a\":1},\"a\":{\"x\":[{}, {\"y\":0 , \"y\":1}]}}]", COFFER_E_DUPLICATE, 37, "key \"y\"" },
    { "{\"\":1,\"\":2}", COFFER_E_DUPLICATE, 6, "duplicate key \"\"" },
};

static void each_mistake_is_named_and_placed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        const mistake *m = &mistakes[i];
        coffer__json *json = NULL;
        coffer_error err = COFFER_ERROR_INIT;
        coffer_status status = coffer__json_parse(&json, m->text, strlen(m->text), 1000, NULL, &err);
        if (status != m->status || err.status != status || err.offset != 1000 + m->at ||
            !strstr(err.text, m->reason) || json)
            fail_msg("%s: %s at %llu: %s", m->text, coffer_status_name(status),
                     (unsigned long long)err.offset - 1000, err.text);
        assert_int_equal(coffer__json_parse(&json, m->text, strlen(m->text), 0, NULL, NULL), m->status);
    }
}

static void a_nul_does_not_end_the_text(void **state)
{
    (void)state;
    coffer__json *json;
    coffer_error err;
    assert_int_equal(coffer__json_parse(&json, "[1]\0", 4, 0, NULL, &err), COFFER_E_BAD_JSON);
    assert_int_equal(err.offset, 3);
    assert_int_equal(coffer__json_parse(&json, "[\"a\0b\"]", 7, 0, NULL, &err), COFFER_E_BAD_JSON);
    assert_int_equal(err.offset, 3);
    assert_int_equal(coffer__json_parse(&json, NULL, 0, 5, NULL, &err), COFFER_E_BAD_JSON);
    assert_int_equal(err.offset, 5);
}

static void parser_and_explainer_agree_on_every_small_change(void **state)
{
    (void)state;
    static const char good[] =
        "{\"k\":[1,-2.5e1,\"\\ud83d\\ude00\\n\",{\"x\":null}],\"t\":true,\"é\":[[],{}]}";
    static const char bytes[] = "{}[]\",:0-.eE\\/utn \n\x01\x80\xC3z";
    char text[sizeof good];
    for (size_t at = 0; at < sizeof good - 1; at++) {
        for (size_t b = 0; b < sizeof bytes; b++) {
            memcpy(text, good, sizeof good);
            text[at] = bytes[b];
            coffer__json *json = NULL;
            coffer_error err = COFFER_ERROR_INIT;
            coffer_status parsed = coffer__json_parse(&json, text, sizeof text - 1, 0, NULL, &err);
            coffer_status explained = coffer__json_explain(text, sizeof text - 1, 0, 256, false, NULL);
            if (parsed != explained && parsed != COFFER_E_DUPLICATE)
                fail_msg("%s: %d %s, but %d", text, parsed, err.text, explained);
            coffer__json_free(json);
        }
    }
}

static void every_cut_of_a_text_is_refused_where_it_was_cut(void **state)
{
    (void)state;
    static const char good[] = "{\"k\":[1.5e10,\"\\u0041é\",{\"x\":null}],\"t\":true}";
    for (size_t len = 0; len < sizeof good - 1; len++) {
        coffer__json *json;
        coffer_error err;
        coffer_status status = coffer__json_parse(&json, good, len, 0, NULL, &err);
        bool inside_character = len > 0 && good[len - 1] == '\xC3';
        assert_int_equal(status, inside_character ? COFFER_E_BAD_TEXT : COFFER_E_BAD_JSON);
        assert_int_equal(err.offset, inside_character ? len - 1 : len);
    }
}

static void numbers_at_the_edge_of_the_range_are_read(void **state)
{
    (void)state;
    static const char *const texts[] = { "1.7976931348623157e308",
                                         "-1.7976931348623158e308",
                                         "17976931348623157e292",
                                         "0.000000017976931348623157e316",
                                         "5e-324",
                                         "1e-99999",
                                         "0e99999",
                                         "0.0",
                                         "123456789012345678901234567890.0" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        coffer__json *json = parse(texts[i]);
        assert_int_equal(coffer__json_root(json)->kind, COFFER__JSON_F64);
        coffer__json_free(json);
        assert_int_equal(coffer__json_explain(texts[i], strlen(texts[i]), 0, 4, false, NULL), COFFER_OK);
    }
}

static void numbers_that_fit_no_type_are_kept_as_their_text(void **state)
{
    (void)state;
    static const char *const texts[] = { "18446744073709551616",
                                         "99999999999999999999999",
                                         "-9223372036854775809",
                                         "1000000000000000019884624838656",
                                         "1e309",
                                         "-1.8e308",
                                         "1.7976931348623159e308",
                                         "0.00017976931348623159e312",
                                         "1e99999999999999999999999" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char around[200];
        double rounded = 0;
        snprintf(around, sizeof around, "{\"a\":[1,%s ,\"x\"],\"b\":%s}", texts[i], texts[i]);
        coffer__json *json = parse(around);
        const coffer__json_value *b = coffer__json_find(coffer__json_root(json), "b");
        const coffer__json_value *in_a = coffer__json_find(coffer__json_root(json), "a") + 2;
        assert_int_equal(b->kind, COFFER__JSON_NUMBER);
        assert_string_equal(b->as.string, texts[i]);
        assert_string_equal(in_a->as.string, texts[i]);
        assert_string_equal((in_a + 1)->as.string, "x");
        bool integer = !strpbrk(texts[i], "e.");
        assert_int_equal(coffer__json_f64(&rounded, b), integer);
        assert_true(rounded == (integer ? strtod(texts[i], NULL) : 0));
        coffer__json_free(json);
    }
}

static void what_python_calls_numbers_is_read_only_where_it_is_asked_for(void **state)
{
    (void)state;
    const char text[] = "[NaN, Infinity,-Infinity, 1]";
    coffer_error err = COFFER_ERROR_INIT;
    coffer__json *json = NULL;
    assert_int_equal(coffer__json_parse(&json, text, strlen(text), 0, NULL, &err), COFFER_E_BAD_JSON);
    assert_int_equal(err.offset, 1);
    assert_int_equal(coffer__json_parse_python(&json, text, strlen(text), 0, NULL, &err), COFFER_OK);
    const coffer__json_value *first = coffer__json_first(coffer__json_root(json));
    double value;
    assert_string_equal(first[0].as.string, "NaN");
    assert_string_equal(first[2].as.string, "-Infinity");
    assert_int_equal(first[3].kind, COFFER__JSON_U64);
    assert_false(coffer__json_f64(&value, &first[1]));
    coffer__json_free(json);
    const char wrong[] = "[NaN, Infinite]";
    assert_int_equal(coffer__json_parse_python(&json, wrong, strlen(wrong), 0, NULL, &err),
                     COFFER_E_BAD_JSON);
    assert_int_equal(err.offset, 6);
}

/* ---- Limits ---- */

static void nested(coffer__buffer *out, unsigned depth, const char *inside)
{
    coffer__buffer_init(out, SIZE_MAX);
    for (unsigned i = 0; i < depth; i++)
        coffer__buffer_append(out, i % 2 ? "{\"a\":" : "[", i % 2 ? 5 : 1);
    coffer__buffer_append(out, inside, strlen(inside));
    for (unsigned i = depth; i-- > 0;)
        coffer__buffer_append(out, i % 2 ? "}" : "]", 1);
}

static coffer_status parse_nested(uint64_t *at, unsigned depth, const char *inside, uint32_t limit)
{
    coffer__buffer text;
    coffer__json *json = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_limits limits = COFFER_LIMITS_INIT;
    limits.json_depth = limit;
    nested(&text, depth, inside);
    coffer_status status = coffer__json_parse(&json, (char *)text.data, text.len, 0, &limits, &err);
    *at = err.offset;
    coffer__json_free(json);
    coffer__buffer_free(&text);
    return status;
}

static void depth_is_limited_to_the_level(void **state)
{
    (void)state;
    static const uint32_t limits[] = { 1, 2, 7, 256, 1024 };
    uint64_t at;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint32_t limit = limits[i];
        assert_int_equal(parse_nested(&at, limit, "1", limit), COFFER_OK);
        assert_int_equal(parse_nested(&at, limit - 1, "[]", limit), COFFER_OK);
        assert_int_equal(parse_nested(&at, limit - 1, "{}", limit), COFFER_OK);
        assert_int_equal(parse_nested(&at, limit + 1, "1", limit), COFFER_E_LIMIT);
        assert_int_equal(at, limit / 2 * 5 + (limit + 1) / 2);
        assert_int_equal(parse_nested(&at, limit, "{}", limit), COFFER_E_LIMIT);
        assert_int_equal(at, limit / 2 * 5 + (limit + 1) / 2);
        assert_int_equal(parse_nested(&at, limit, "[]", limit), COFFER_E_LIMIT);
    }
    assert_int_equal(parse_nested(&at, COFFER__JSON_MAX_DEPTH + 1, "1", UINT32_MAX), COFFER_E_LIMIT);
    assert_int_equal(parse_nested(&at, 200000, "1", UINT32_MAX), COFFER_E_LIMIT);
    assert_int_equal(parse_nested(&at, 0, "1", 0), COFFER_OK);
    assert_int_equal(parse_nested(&at, 0, "[]", 0), COFFER_E_LIMIT);
}

static void size_is_limited_before_anything_is_read(void **state)
{
    (void)state;
    coffer__json *json;
    coffer_error err;
    coffer_limits limits = COFFER_LIMITS_INIT;
    limits.json_bytes = 3;
    assert_int_equal(coffer__json_parse(&json, "[1]", 3, 9, &limits, &err), COFFER_OK);
    coffer__json_free(json);
    assert_int_equal(coffer__json_parse(&json, "[1] ", 4, 9, &limits, &err), COFFER_E_LIMIT);
    assert_string_equal(err.text, "JSON of 4 bytes, the limit is 3");
    assert_int_equal(err.offset, 9);
    limits.json_bytes = UINT64_MAX;
#if SIZE_MAX > UINT32_MAX
    assert_int_equal(coffer__json_parse(&json, "[1]", UINT64_C(1) << 32, 0, &limits, &err), COFFER_E_LIMIT);
#endif
}

/* ---- Duplicate keys ---- */

static void object_of(coffer__buffer *out, unsigned count, unsigned repeated)
{
    coffer__buffer_init(out, SIZE_MAX);
    for (unsigned i = 0; i < count; i++)
        coffer__buffer_printf(out, "%s\"key-%u\":%u", i ? "," : "{", i, i);
    if (repeated < count)
        coffer__buffer_printf(out, ",\"key-%u\":[]", repeated);
    coffer__buffer_append(out, "}", 1);
}

static void a_duplicate_key_is_found_among_any_number(void **state)
{
    (void)state;
    static const unsigned counts[] = { 1, 2, 7, 8, 9, 10, 100, 5000 };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        unsigned count = counts[i], places[] = { 0, count / 2, count - 1 };
        coffer__buffer text;
        coffer__json *json;
        coffer_error err;
        for (size_t p = 0; p < 3; p++) {
            char expected[32];
            object_of(&text, count, places[p]);
            snprintf(expected, sizeof expected, ",\"key-%u\":[]}", places[p]);
            assert_int_equal(coffer__json_parse(&json, (char *)text.data, text.len, 0, NULL, &err),
                             COFFER_E_DUPLICATE);
            assert_int_equal(err.offset, text.len - strlen(expected) + 1);
            coffer__buffer_free(&text);
        }
        object_of(&text, count, count);
        assert_int_equal(coffer__json_parse(&json, (char *)text.data, text.len, 0, NULL, &err), COFFER_OK);
        assert_int_equal(coffer__json_root(json)->as.count, count);
        coffer__json_free(json);
        coffer__buffer_free(&text);
    }
}

static void the_same_key_in_two_objects_is_fine(void **state)
{
    (void)state;
    coffer__json_free(parse("[{\"a\":1},{\"a\":{\"a\":2}},{\"b\":0,\"a\":3}]"));
    static const unsigned counts[] = { 20, 400, 50, 3000, 20 };
    coffer__buffer text;
    coffer__buffer_init(&text, SIZE_MAX);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        coffer__buffer object;
        object_of(&object, counts[i], counts[i]);
        coffer__buffer_append(&text, i ? "," : "[", 1);
        coffer__buffer_append(&text, object.data, object.len);
        coffer__buffer_free(&object);
    }
    coffer__buffer_append(&text, "]", 1);
    coffer__json_free(parse(coffer__buffer_text(&text)));
    coffer__buffer_free(&text);
}

/* Keys that all want the same slot of the table, as somebody might choose them who wants us to be slow. */
static void colliding_object(coffer__buffer *out, unsigned count, size_t slots)
{
    coffer__buffer_init(out, SIZE_MAX);
    coffer__buffer_append(out, "{", 1);
    for (unsigned i = 0, found = 0; found < count; i++) {
        char key[16];
        int len = snprintf(key, sizeof key, "k%u", i);
        if (coffer__hash(key, (size_t)len) % slots != 0)
            continue;
        coffer__buffer_printf(out, "%s\"%s\":0", found ? "," : "", key);
        found++;
    }
}

static void keys_made_to_collide_are_checked_too(void **state)
{
    (void)state;
    coffer__buffer text;
    coffer__json *json;
    coffer_error err;
    char first_key[16];
    colliding_object(&text, 250, 512);
    sscanf((char *)text.data, "{\"%15[^\"]", first_key);
    size_t len = text.len;
    coffer__buffer_append(&text, "}", 1);
    assert_int_equal(coffer__json_parse(&json, (char *)text.data, text.len, 0, NULL, &err), COFFER_OK);
    assert_int_equal(coffer__json_root(json)->as.count, 250);
    coffer__json_free(json);
    text.len = len;
    coffer__buffer_printf(&text, ",\"other\":1,\"%s\":2,\"other\":3}", first_key);
    assert_int_equal(coffer__json_parse(&json, (char *)text.data, text.len, 0, NULL, &err),
                     COFFER_E_DUPLICATE);
    assert_int_equal(err.offset, len + strlen(",\"other\":1,"));
    coffer__buffer_free(&text);
}

static void a_million_keys_are_checked_in_linear_time(void **state)
{
    (void)state;
    coffer__buffer text;
    coffer__json *json;
    object_of(&text, 1000000, 1000000);
    clock_t begin = clock();
    assert_int_equal(coffer__json_parse(&json, (char *)text.data, text.len, 0, NULL, NULL), COFFER_OK);
    assert_true(clock() - begin < 20 * CLOCKS_PER_SEC); /* each with each would take an hour */
    coffer__json_free(json);
    coffer__buffer_free(&text);
}

static void the_parser_names_itself(void **state)
{
    (void)state;
    unsigned major;
    assert_int_equal(sscanf(coffer__json_library(), "simdjson %u.", &major), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_distinguished),
        cmocka_unit_test(a_value_alone_is_a_text),
        cmocka_unit_test(strings_are_unescaped_and_may_hold_nuls),
        cmocka_unit_test(iteration_visits_children_and_skips_grandchildren),
        cmocka_unit_test(members_are_found_by_their_whole_key),
        cmocka_unit_test(numbers_are_taken_only_where_they_fit),
        cmocka_unit_test(the_text_may_end_at_the_last_byte_of_memory_that_is_ours),
        cmocka_unit_test(each_mistake_is_named_and_placed),
        cmocka_unit_test(a_nul_does_not_end_the_text),
        cmocka_unit_test(parser_and_explainer_agree_on_every_small_change),
        cmocka_unit_test(every_cut_of_a_text_is_refused_where_it_was_cut),
        cmocka_unit_test(numbers_at_the_edge_of_the_range_are_read),
        cmocka_unit_test(numbers_that_fit_no_type_are_kept_as_their_text),
        cmocka_unit_test(what_python_calls_numbers_is_read_only_where_it_is_asked_for),
        cmocka_unit_test(depth_is_limited_to_the_level),
        cmocka_unit_test(size_is_limited_before_anything_is_read),
        cmocka_unit_test(a_duplicate_key_is_found_among_any_number),
        cmocka_unit_test(the_same_key_in_two_objects_is_fine),
        cmocka_unit_test(keys_made_to_collide_are_checked_too),
        cmocka_unit_test(a_million_keys_are_checked_in_linear_time),
        cmocka_unit_test(the_parser_names_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
