/* The typed metadata: bytes to values and back, paths, differences. */
#include "base/bytes.h"
#include "base/options.h"
#include "formats/pycauset/pycauset_private.h"
#include "support/container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static coffer_status decode(coffer__pycauset_tree *tree, const void *bytes, size_t len)
{
    coffer_limits limits = coffer__limits(NULL);
    coffer_error err = COFFER_ERROR_INIT;
    /* Memory of exactly that size, so that a read past its end is seen. */
    uint8_t *copy = malloc(len ? len : 1);
    if (len)
        memcpy(copy, bytes, len);
    coffer_status status = coffer__pycauset_decode(tree, copy, len, 1000, &limits, &err);
    if (status)
        assert_true(err.text[0] != '\0' && err.offset >= 1000 && err.offset <= 1000 + len);
    free(copy);
    return status;
}

#define REFUSED(code, bytes)                                                         \
    do {                                                                             \
        coffer__pycauset_tree tree_ = { .root = NULL };                              \
        assert_int_equal(decode(&tree_, bytes, sizeof(bytes) - 1), COFFER_E_##code); \
    } while (0)

static const char all_kinds[] = "\x08\x08\0\0\0"
                                "\x01\0"
                                "a\x01\x01"
                                "\x01\0"
                                "b\x02\xff\xff\xff\xff\xff\xff\xff\xff"
                                "\x01\0"
                                "c\x03\xff\xff\xff\xff\xff\xff\xff\xff"
                                "\x01\0"
                                "d\x04\0\0\0\0\0\0\xf8\x3f"
                                "\x01\0"
                                "e\x05\x02\0\0\0\xcf\x80"
                                "\x01\0"
                                "f\x06\x02\0\0\0\0\xff"
                                "\x01\0"
                                "g\x07\x02\0\0\0\x01\0\x07\0\0\0\0"
                                "\x01\0"
                                "h\x08\x01\0\0\0\0\0\x01\x01";

static void all_eight_kinds_are_read_and_written_back_byte_for_byte(void **state)
{
    coffer__pycauset_tree tree = { .root = NULL };
    coffer__buffer again = COFFER__BUFFER_INIT;
    size_t len;
    (void)state;
    assert_int_equal(decode(&tree, all_kinds, sizeof all_kinds - 1), COFFER_OK);
    const coffer_pycauset_value *root = tree.root;
    assert_true(coffer_pycauset_value_bool(coffer_pycauset_value_find(root, "a")));
    assert_int_equal(coffer_pycauset_value_i64(coffer_pycauset_value_find(root, "b")), -1);
    assert_true(coffer_pycauset_value_u64(coffer_pycauset_value_find(root, "c")) == UINT64_MAX);
    assert_true(coffer_pycauset_value_f64(coffer_pycauset_value_find(root, "d")) == 1.5);
    assert_string_equal(coffer_pycauset_value_text(coffer_pycauset_value_find(root, "e"), &len), "π");
    assert_memory_equal(coffer_pycauset_value_text(coffer_pycauset_value_find(root, "f"), &len), "\0\xff", 3);
    assert_int_equal(len, 2);
    assert_int_equal(coffer_pycauset_value_count(coffer_pycauset_value_find(root, "g")), 2);
    assert_int_equal(coffer_pycauset_value_kind(coffer_pycauset_value_find(root, "g.1")),
                     COFFER_PYCAUSET_ARRAY);
    assert_int_equal(coffer_pycauset_value_key_at(coffer_pycauset_value_find(root, "h"), 0, &len)[0], '\0');
    assert_true(coffer__pycauset_encode(&again, root));
    assert_int_equal(again.len, sizeof all_kinds - 1);
    assert_memory_equal(again.data, all_kinds, again.len);
    coffer__buffer_free(&again);
    coffer__pycauset_tree_free(&tree);
}

static void a_value_asked_for_as_another_kind_is_nothing(void **state)
{
    coffer__pycauset_tree tree = { .root = NULL };
    size_t len = 7;
    (void)state;
    assert_int_equal(decode(&tree, all_kinds, sizeof all_kinds - 1), COFFER_OK);
    assert_int_equal(coffer_pycauset_value_u64(coffer_pycauset_value_find(tree.root, "b")), 0);
    assert_int_equal(coffer_pycauset_value_i64(coffer_pycauset_value_find(tree.root, "c")), 0);
    assert_null(coffer_pycauset_value_text(coffer_pycauset_value_find(tree.root, "c"), &len));
    assert_int_equal(len, 0);
    assert_false(coffer_pycauset_value_bool(NULL));
    assert_null(coffer_pycauset_value_at(NULL, 0));
    assert_null(coffer_pycauset_value_at(tree.root, 8));
    assert_null(coffer_pycauset_value_find(tree.root, "e.x"));
    assert_null(coffer_pycauset_value_find(tree.root, "g.2"));
    assert_null(coffer_pycauset_value_find(tree.root, "g.99999999999"));
    assert_null(coffer_pycauset_value_find(tree.root, "g."));
    coffer__pycauset_tree_free(&tree);
}

static void broken_values_are_refused_with_what_is_wrong(void **state)
{
    (void)state;
    REFUSED(TRUNCATED, "");
    REFUSED(BAD_VALUE, "\x03\0\0\0\0\0\0\0\0");                                    /* no map */
    REFUSED(BAD_VALUE, "\x08\x01\0\0\0\0\0\x09\0");                                /* tag 9 */
    REFUSED(BAD_VALUE, "\x08\x01\0\0\0\0\0\0\0");                                  /* tag 0 */
    REFUSED(BAD_VALUE, "\x08\x01\0\0\0\0\0\x01\x02");                              /* a bool of 2 */
    REFUSED(TRUNCATED, "\x08\x01\0\0");                                            /* a count cut short */
    REFUSED(TRUNCATED, "\x08\x01\0\0\0\0\0\x04\0\0\0");                            /* a number cut short */
    REFUSED(OUT_OF_BOUNDS, "\x08\xff\xff\xff\xff");                                /* a bomb */
    REFUSED(OUT_OF_BOUNDS, "\x08\x01\0\0\0\0\0\x07\xff\xff\xff\xff\x01\x01");      /* one of an array */
    REFUSED(OUT_OF_BOUNDS, "\x08\x01\0\0\0\0\0\x05\x05\0\0\0abcd");                /* a long string */
    REFUSED(OUT_OF_BOUNDS, "\x08\x01\0\0\0\0\0\x06\xff\xff\xff\xff");              /* long bytes */
    REFUSED(OUT_OF_BOUNDS, "\x08\x01\0\0\0\xff\xff\x01\x01");                      /* a long key */
    REFUSED(BAD_TEXT, "\x08\x01\0\0\0\0\0\x05\x01\0\0\0\xff");                     /* no UTF-8 */
    REFUSED(BAD_TEXT, "\x08\x01\0\0\0\x02\0\xc0\x80\x01\x01");                     /* an over-long key */
    REFUSED(TRAILING_BYTES, "\x08\0\0\0\0\0");                                     /* a byte too many */
    REFUSED(DUPLICATE, "\x08\x02\0\0\0\x01\0a\x01\x01\x01\0a\x01\0");              /* side by side */
    REFUSED(DUPLICATE, "\x08\x03\0\0\0\x01\0a\x01\x01\x01\0b\x01\0\x01\0a\x01\0"); /* and not */
}

/* Every prefix of a good value is bad, and none is read past its end. */
static void a_value_cut_anywhere_is_refused(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof all_kinds - 1; len++) {
        coffer__pycauset_tree tree = { .root = NULL };
        coffer_status status = decode(&tree, all_kinds, len);
        assert_true(status == COFFER_E_TRUNCATED || status == COFFER_E_OUT_OF_BOUNDS);
    }
}

static void keys_out_of_order_are_found_all_the_same(void **state)
{
    static const char bytes[] = "\x08\x03\0\0\0\x01\0z\x01\x01\x02\0ab\x01\x01\x01\0a\x01\0";
    coffer__pycauset_tree tree = { .root = NULL };
    (void)state;
    assert_int_equal(decode(&tree, bytes, sizeof bytes - 1), COFFER_OK);
    assert_true(tree.unsorted);
    assert_true(coffer_pycauset_value_bool(coffer_pycauset_value_find(tree.root, "z")));
    assert_true(coffer_pycauset_value_bool(coffer_pycauset_value_find(tree.root, "ab")));
    assert_string_equal(coffer_pycauset_value_key_at(tree.root, 0, NULL), "a");
    coffer__pycauset_tree_free(&tree);
}

/* A map with arrays in one another, the innermost empty. */
static size_t nest(uint8_t *out, size_t arrays)
{
    size_t len = 0;
    memcpy(out, "\x08\x01\0\0\0\0\0", 7);
    len = 7;
    for (size_t i = 0; i < arrays; i++, len += 5)
        memcpy(out + len, i + 1 < arrays ? "\x07\x01\0\0\0" : "\x07\0\0\0\0", 5);
    return len;
}

static void depth_is_limited_to_64(void **state)
{
    uint8_t bytes[1000];
    coffer__pycauset_tree tree = { .root = NULL };
    (void)state;
    assert_int_equal(decode(&tree, bytes, nest(bytes, 64)), COFFER_OK);
    coffer__pycauset_tree_free(&tree);
    assert_int_equal(decode(&tree, bytes, nest(bytes, 65)), COFFER_E_LIMIT);
}

/* Each level claims as many entries as the bytes allow, which would add up to far more than there are. */
static void counts_that_fit_one_by_one_but_not_together_take_no_memory(void **state)
{
    enum { LEN = 1 << 20 };
    uint8_t *bytes = calloc(1, LEN);
    coffer__pycauset_tree tree = { .root = NULL };
    size_t at = nest(bytes, 60) - 5;
    (void)state;
    for (size_t i = 7; i <= at; i += 5) {
        uint32_t count = (uint32_t)((LEN - i - 5) / 2);
        coffer__store_u32(bytes + i + 1, count);
    }
    assert_int_equal(decode(&tree, bytes, LEN), COFFER_E_BAD_VALUE);
    free(bytes);
}

static void dots_and_backslashes_in_keys_are_escaped(void **state)
{
    container file = container_make("{\"properties\":{\"a.b\":{\"c\\\\d\":[5,{\"\":7}]}}}");
    coffer_source *src = scan_source_of(file.bytes, file.len);
    coffer_pycauset *matrix = container_open(src);
    const coffer_pycauset_value *root = coffer_pycauset_metadata(matrix);
    (void)state;
    assert_int_equal(coffer_pycauset_value_u64(coffer_pycauset_value_find(root, "properties.a\\.b.c\\\\d.0")),
                     5);
    assert_int_equal(
        coffer_pycauset_value_u64(coffer_pycauset_value_find(root, "properties.a\\.b.c\\\\d.1.")), 7);
    assert_null(coffer_pycauset_value_find(root, "properties.a.b"));
    assert_null(coffer_pycauset_value_find(root, "properties.a"));
    assert_null(coffer_pycauset_value_find(root, "properties.a\\.bb"));
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    container_free(&file);
}

static void a_diff_names_what_was_added_removed_and_changed(void **state)
{
    container before = container_make("{\"properties\":{\"a\":1,\"b.c\":[1,2],\"d\":{\"e\":true}}}");
    container after = container_make("{\"properties\":{\"a\":1,\"b.c\":[1,3,4],\"f\":\"new\"}}");
    coffer_source *x = scan_source_of(before.bytes, before.len), *y = scan_source_of(after.bytes, after.len);
    coffer_pycauset *old = container_open(x), *new = container_open(y);
    static const char *const expected[][2] = { { "properties.b\\.c.1", "changed" },
                                               { "properties.b\\.c.2", "added" },
                                               { "properties.d", "removed" },
                                               { "properties.f", "added" } };
    coffer_node *node = NULL;
    (void)state;
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_value_diff(node, coffer_pycauset_metadata(old),
                                                coffer_pycauset_metadata(new), NULL),
                     COFFER_OK);
    const coffer_node *change = coffer_node_first(coffer_node_find(node, "changes"));
    for (size_t i = 0; i < 4; i++, change = coffer_node_next(change)) {
        assert_string_equal(coffer_node_get_text(coffer_node_find(change, "path"), NULL), expected[i][0]);
        assert_string_equal(coffer_node_get_text(coffer_node_find(change, "change"), NULL), expected[i][1]);
    }
    assert_null(change);
    coffer_node_free(node);
    coffer_pycauset_close(old);
    coffer_pycauset_close(new);
    coffer_source_close(x);
    coffer_source_close(y);
    container_free(&before);
    container_free(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_eight_kinds_are_read_and_written_back_byte_for_byte),
        cmocka_unit_test(a_value_asked_for_as_another_kind_is_nothing),
        cmocka_unit_test(broken_values_are_refused_with_what_is_wrong),
        cmocka_unit_test(a_value_cut_anywhere_is_refused),
        cmocka_unit_test(keys_out_of_order_are_found_all_the_same),
        cmocka_unit_test(depth_is_limited_to_64),
        cmocka_unit_test(counts_that_fit_one_by_one_but_not_together_take_no_memory),
        cmocka_unit_test(dots_and_backslashes_in_keys_are_escaped),
        cmocka_unit_test(a_diff_names_what_was_added_removed_and_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
