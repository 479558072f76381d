#include "base/node_diff.h"

#include "base/json_write.h"
#include "base/memory.h"
#include "support/temp.h"

#include <math.h>
#include <string.h>

static coffer_node *new_map(void)
{
    coffer_node *root = NULL;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    return root;
}

/* Compares the result, as JSON, and frees both trees. */
static void assert_diff(coffer_node *a, coffer_node *b, uint64_t max_shown, uint64_t count, const char *json)
{
    coffer_node *out = new_map();
    coffer__node_changes changes = coffer__node_changes_new(out, max_shown);
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    assert_int_equal(coffer__node_diff(&changes, "", a, b, NULL), COFFER_OK);
    assert_int_equal(changes.count, count);
    coffer__json_writer_init(&writer, &text, 0);
    coffer__json_write_node(&writer, coffer_node_find(out, "metadata"));
    assert_string_equal(coffer__buffer_text(&text), json);
    coffer__buffer_free(&text);
    coffer_node_free(out);
    coffer_node_free(a);
    coffer_node_free(b);
}

static void members_are_added_removed_and_changed(void **state)
{
    coffer_node *a = new_map(), *b = new_map();
    (void)state;
    coffer_node_add_text(a, "gone", "x");
    coffer_node_add_u64(a, "steps", 100, COFFER_UNIT_NONE);
    coffer_node_add_bool(a, "same", true);
    coffer_node_add_bool(b, "same", true);
    coffer_node_add_u64(b, "steps", 200, COFFER_UNIT_NONE);
    coffer_node_add_null(b, "new");
    assert_diff(a, b, 20, 3,
                "[{\"path\":\"gone\",\"change\":\"removed\",\"a\":\"x\"},"
                "{\"path\":\"new\",\"change\":\"added\",\"b\":null},"
                "{\"path\":\"steps\",\"change\":\"changed\",\"a\":100,\"b\":200}]");
}

static void paths_name_members_and_indices(void **state)
{
    coffer_node *a = new_map(), *b = new_map();
    (void)state;
    coffer_node *list = coffer_node_add_list(coffer_node_add_map(a, "a.b\\c"), "list");
    coffer_node_add_u64(list, NULL, 1, COFFER_UNIT_NONE);
    coffer_node_add_u64(list, NULL, 2, COFFER_UNIT_NONE);
    list = coffer_node_add_list(coffer_node_add_map(b, "a.b\\c"), "list");
    coffer_node_add_u64(list, NULL, 1, COFFER_UNIT_NONE);
    coffer_node_add_u64(list, NULL, 3, COFFER_UNIT_NONE);
    coffer_node_add_map(list, NULL);
    assert_diff(a, b, 20, 2,
                "[{\"path\":\"a\\\\.b\\\\\\\\c.list.1\",\"change\":\"changed\",\"a\":2,\"b\":3},"
                "{\"path\":\"a\\\\.b\\\\\\\\c.list.2\",\"change\":\"added\",\"b\":{}}]");
}

static void the_order_of_members_and_the_kind_of_a_number_do_not_matter(void **state)
{
    coffer_node *a = new_map(), *b = new_map();
    (void)state;
    coffer_node_add_u64(a, "n", 5, COFFER_UNIT_NONE);
    coffer_node_add_f64(a, "f", 7.0, COFFER_UNIT_NONE);
    coffer_node_add_f64(a, "nan", NAN, COFFER_UNIT_NONE);
    coffer_node_add_text(a, "t", "text");
    coffer_node_add_text(b, "t", "text");
    coffer_node_add_f64(b, "nan", NAN, COFFER_UNIT_NONE);
    coffer_node_add_i64(b, "f", 7, COFFER_UNIT_NONE);
    coffer_node_add_i64(b, "n", 5, COFFER_UNIT_BYTES);
    assert_diff(a, b, 20, 0, "[]");
}

static void values_that_look_alike_differ(void **state)
{
    coffer_node *a = new_map(), *b = new_map();
    (void)state;
    coffer_node_add_u64(a, "big", UINT64_MAX, COFFER_UNIT_NONE);
    coffer_node_add_i64(b, "big", -1, COFFER_UNIT_NONE);
    coffer_node_add_map(a, "empty");
    coffer_node_add_list(b, "empty");
    coffer_node_add_u64(a, "number", 1, COFFER_UNIT_NONE);
    coffer_node_add_text(b, "number", "1");
    coffer_node_add_text_len(a, "zero", "x\0y", 3);
    coffer_node_add_text_len(b, "zero", "x\0z", 3);
    assert_diff(a, b, 2, 4,
                "[{\"path\":\"big\",\"change\":\"changed\",\"a\":18446744073709551615,\"b\":-1},"
                "{\"path\":\"empty\",\"change\":\"changed\",\"a\":{},\"b\":[]}]");
}

static void long_values_are_cut_between_characters(void **state)
{
    coffer_node *a = new_map(), *b = new_map(), *out = new_map();
    coffer__node_changes changes = coffer__node_changes_new(out, 20);
    char text[400];
    (void)state;
    memset(text, 'x', 159);
    strcpy(text + 159, "ü and more");
    coffer_node_add_text(a, "text", text);
    coffer_node *list = coffer_node_add_list(b, "list");
    for (int i = 0; i < 100; i++)
        coffer_node_add_u64(list, NULL, 7, COFFER_UNIT_NONE);
    assert_int_equal(coffer__node_diff(&changes, "", a, b, NULL), COFFER_OK);

    const coffer_node *entry = coffer_node_first(coffer_node_find(out, "metadata"));
    const char *shown = coffer_node_get_text(coffer_node_find(entry, "b"), NULL);
    assert_memory_equal(shown, "[7,7,7", 6);
    assert_string_equal(shown + 160, "…");
    entry = coffer_node_next(entry);
    shown = coffer_node_get_text(coffer_node_find(entry, "a"), NULL);
    assert_memory_equal(shown, text, 159);
    assert_string_equal(shown + 159, "…");
    coffer_node_free(a);
    coffer_node_free(b);
    coffer_node_free(out);
}

static void a_copy_has_all_kinds_of_values(void **state)
{
    coffer_node *a = new_map(), *b = new_map();
    coffer__node_changes changes = { NULL, 0, 0 };
    (void)state;
    coffer_node *map = coffer_node_add_map(a, "map"), *list = coffer_node_add_list(map, "list");
    coffer_node_add_null(list, NULL);
    coffer_node_add_bool(list, NULL, true);
    coffer_node_add_i64(list, NULL, -3, COFFER_UNIT_NONE);
    coffer_node_add_f64(list, NULL, 0.5, COFFER_UNIT_NONE);
    coffer_node_add_printf(list, NULL, "%d", 12);
    coffer_node_add_u64(map, "size", 9, COFFER_UNIT_BYTES);
    coffer_node_add_copy(b, "map", map);
    assert_int_equal(coffer__node_diff(&changes, "", a, b, NULL), COFFER_OK);
    assert_int_equal(changes.count, 0);
    const coffer_node *copy = coffer_node_find(b, "map");
    assert_int_equal(coffer_node_get_unit(coffer_node_find(copy, "size")), COFFER_UNIT_BYTES);
    coffer_node_add_copy(b, "none", NULL);
    assert_int_equal(coffer_node_get_kind(coffer_node_find(b, "none")), COFFER_NODE_NULL);
    coffer_node_free(a);
    coffer_node_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_added_removed_and_changed),
        cmocka_unit_test(paths_name_members_and_indices),
        cmocka_unit_test(the_order_of_members_and_the_kind_of_a_number_do_not_matter),
        cmocka_unit_test(values_that_look_alike_differ),
        cmocka_unit_test(long_values_are_cut_between_characters),
        cmocka_unit_test(a_copy_has_all_kinds_of_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
