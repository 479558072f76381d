#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/report.h"

#include <stdio.h>
#include <string.h>

/* ---- Findings ---- */

static void findings_are_kept_in_order_with_their_place(void **state)
{
    (void)state;
    coffer_report *report;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_true(coffer__report_add(report, COFFER_E_TRUNCATED, COFFER_ERROR, 15, "%d of %d", 288, 300));
    assert_true(coffer__report_add(report, COFFER_E_BAD_VALUE, COFFER_NOTE, COFFER_OFFSET_NONE, "odd\nline"));
    assert_int_equal(coffer_report_count(report), 2);
    const coffer_finding *first = coffer_report_at(report, 0), *second = coffer_report_at(report, 1);
    assert_int_equal(first->code, COFFER_E_TRUNCATED);
    assert_int_equal(first->severity, COFFER_ERROR);
    assert_int_equal(first->offset, 15);
    assert_string_equal(first->text, "288 of 300");
    assert_string_equal(second->text, "odd?line");
    assert_true(second->offset == COFFER_OFFSET_NONE);
    assert_null(coffer_report_at(report, 2));
    assert_int_equal(coffer__report_status(report, NULL), COFFER_OK);
    coffer_report_free(report);
}

static void a_failed_call_becomes_a_finding(void **state)
{
    (void)state;
    coffer_report *report;
    coffer_error err = { .status = COFFER_E_BAD_JSON, .offset = 99, .text = "expected a value" };
    assert_int_equal(coffer_report_new(&report, 5, NULL), COFFER_OK);
    assert_true(coffer__report_add_error(report, COFFER_WARNING, &err));
    const coffer_finding *finding = coffer_report_at(report, 0);
    assert_int_equal(finding->code, COFFER_E_BAD_JSON);
    assert_int_equal(finding->severity, COFFER_WARNING);
    assert_int_equal(finding->offset, 99);
    assert_string_equal(finding->text, "expected a value");
    coffer_report_free(report);
}

static void a_full_report_continues_to_count(void **state)
{
    (void)state;
    coffer_report *report;
    assert_int_equal(coffer_report_new(&report, 3, NULL), COFFER_OK);
    assert_true(coffer__report_add(report, COFFER_E_OVERLAP, COFFER_ERROR, 0, "a"));
    assert_true(coffer__report_add(report, COFFER_E_OVERLAP, COFFER_WARNING, 0, "b"));
    assert_false(coffer__report_full(report));
    assert_false(coffer__report_add(report, COFFER_E_OVERLAP, COFFER_ERROR, 0, "c"));
    assert_true(coffer__report_full(report));
    assert_false(coffer__report_add(report, COFFER_E_OVERLAP, COFFER_ERROR, 0, "d"));
    assert_int_equal(coffer_report_count(report), 3);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 3);
    assert_int_equal(coffer_report_total(report, COFFER_WARNING), 1);
    assert_int_equal(coffer_report_total(report, COFFER_NOTE), 0);
    assert_int_equal(coffer_report_total(report, (coffer_severity)7), 0);
    coffer_report_free(report);
}

static void the_default_is_a_thousand_findings(void **state)
{
    (void)state;
    coffer_report *report;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    for (int i = 0; i < 1500; i++)
        coffer__report_add(report, COFFER_E_BAD_VALUE, COFFER_NOTE, 0, "number %d", i);
    assert_int_equal(coffer_report_count(report), 1000);
    assert_int_equal(coffer_report_total(report, COFFER_NOTE), 1500);
    assert_string_equal(coffer_report_at(report, 999)->text, "number 999");
    coffer_report_free(report);
    coffer_report_free(NULL);
}

static void severities_have_names(void **state)
{
    (void)state;
    assert_string_equal(coffer_severity_name(COFFER_NOTE), "note");
    assert_string_equal(coffer_severity_name(COFFER_WARNING), "warning");
    assert_string_equal(coffer_severity_name(COFFER_ERROR), "error");
    assert_string_equal(coffer_severity_name((coffer_severity)3), "unknown");
}

/* ---- Nodes ---- */

static void a_new_root_is_an_empty_map(void **state)
{
    (void)state;
    coffer_node *root;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    assert_int_equal(coffer_node_get_kind(root), COFFER_NODE_MAP);
    assert_string_equal(coffer_node_get_name(root), "");
    assert_int_equal(coffer_node_count(root), 0);
    assert_null(coffer_node_first(root));
    assert_null(coffer_node_next(root));
    assert_int_equal(coffer_node_status(root, NULL), COFFER_OK);
    coffer_node_free(root);
    coffer_node_free(NULL);
}

static void every_kind_reads_back(void **state)
{
    (void)state;
    coffer_node *root;
    size_t len;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    coffer_node_add_bool(root, "bool", true);
    coffer_node_add_u64(root, "u64", UINT64_MAX, COFFER_UNIT_BYTES);
    coffer_node_add_i64(root, "i64", -5, COFFER_UNIT_MICROSECONDS);
    coffer_node_add_f64(root, "f64", 0.5, COFFER_UNIT_NONE);
    coffer_node_add_text(root, "text", "words");
    coffer_node_add_text_len(root, "nul", "a\0b", 3);
    coffer_node_add_printf(root, "printf", "%s %d", "v", 9);
    coffer_node_add_null(root, "null");
    coffer_node_add_text(root, "no text", NULL);
    assert_int_equal(coffer_node_count(root), 9);

    assert_true(coffer_node_get_bool(coffer_node_find(root, "bool")));
    const coffer_node *u64 = coffer_node_find(root, "u64"), *i64 = coffer_node_find(root, "i64");
    assert_true(coffer_node_get_u64(u64) == UINT64_MAX);
    assert_int_equal(coffer_node_get_unit(u64), COFFER_UNIT_BYTES);
    assert_true(coffer_node_get_f64(u64) == 18446744073709551616.0);
    assert_int_equal(coffer_node_get_i64(i64), -5);
    assert_true(coffer_node_get_f64(i64) == -5.0);
    assert_true(coffer_node_get_f64(coffer_node_find(root, "f64")) == 0.5);
    assert_string_equal(coffer_node_get_text(coffer_node_find(root, "text"), NULL), "words");
    assert_memory_equal(coffer_node_get_text(coffer_node_find(root, "nul"), &len), "a\0b\0", 4);
    assert_int_equal(len, 3);
    assert_string_equal(coffer_node_get_text(coffer_node_find(root, "printf"), &len), "v 9");
    assert_int_equal(len, 3);
    assert_int_equal(coffer_node_get_kind(coffer_node_find(root, "null")), COFFER_NODE_NULL);
    assert_int_equal(coffer_node_get_kind(coffer_node_find(root, "no text")), COFFER_NODE_NULL);
    assert_null(coffer_node_find(root, "nothing"));
    coffer_node_free(root);
}

static void asking_for_another_kind_gives_nothing(void **state)
{
    (void)state;
    coffer_node *root;
    size_t len = 7;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    coffer_node_add_text(root, "text", "words");
    const coffer_node *text = coffer_node_first(root);
    assert_false(coffer_node_get_bool(text));
    assert_int_equal(coffer_node_get_u64(text), 0);
    assert_int_equal(coffer_node_get_i64(text), 0);
    assert_true(coffer_node_get_f64(text) == 0);
    assert_int_equal(coffer_node_count(text), 0);
    assert_null(coffer_node_find(text, "x"));
    assert_string_equal(coffer_node_get_text(root, &len), "");
    assert_int_equal(len, 0);
    coffer_node_free(root);
}

static void children_keep_their_order_at_every_level(void **state)
{
    (void)state;
    coffer_node *root;
    char name[16];
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    coffer_node *list = coffer_node_add_list(root, "entries");
    for (unsigned i = 0; i < 3000; i++) {
        coffer_node *entry = coffer_node_add_map(list, NULL);
        snprintf(name, sizeof name, "seq-%u", i);
        coffer_node_add_text(entry, "id", name);
        coffer_node_add_u64(entry, "at", i, COFFER_UNIT_OFFSET);
    }
    assert_int_equal(coffer_node_status(root, NULL), COFFER_OK);
    assert_int_equal(coffer_node_get_kind(list), COFFER_NODE_LIST);
    assert_int_equal(coffer_node_count(list), 3000);
    uint64_t i = 0;
    for (const coffer_node *at = coffer_node_first(list); at; at = coffer_node_next(at), i++) {
        snprintf(name, sizeof name, "seq-%u", (unsigned)i);
        assert_string_equal(coffer_node_get_name(at), "");
        assert_string_equal(coffer_node_get_text(coffer_node_find(at, "id"), NULL), name);
        assert_true(coffer_node_get_u64(coffer_node_find(at, "at")) == i);
    }
    assert_true(i == 3000);
    coffer_node_free(root);
}

static void names_and_texts_are_copied_however_long(void **state)
{
    (void)state;
    coffer_node *root;
    static char text[100000];
    memset(text, 'x', sizeof text - 1);
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    coffer_node_add_text(root, text, text);
    coffer_node_add_text(root, "after", "it");
    text[0] = 'y';
    const coffer_node *node = coffer_node_first(root);
    assert_int_equal(coffer_node_get_name(node)[0], 'x');
    assert_int_equal(strlen(coffer_node_get_text(node, NULL)), sizeof text - 1);
    assert_string_equal(coffer_node_get_text(coffer_node_find(root, "after"), NULL), "it");
    coffer_node_free(root);
}

static void a_missing_parent_takes_anything(void **state)
{
    (void)state;
    assert_null(coffer_node_add_map(NULL, "x"));
    assert_null(coffer_node_add_list(NULL, "x"));
    coffer_node_add_bool(NULL, "x", true);
    coffer_node_add_u64(NULL, "x", 1, COFFER_UNIT_NONE);
    coffer_node_add_i64(NULL, "x", 1, COFFER_UNIT_NONE);
    coffer_node_add_f64(NULL, "x", 1, COFFER_UNIT_NONE);
    coffer_node_add_text(NULL, "x", "x");
    coffer_node_add_printf(NULL, "x", "x");
    coffer_node_add_null(NULL, "x");
}

static void a_failure_sticks_in_the_root(void **state)
{
    (void)state;
    coffer_node *root;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    coffer_node *list = coffer_node_add_list(root, "list");
    coffer_node_add_text_len(list, NULL, "", SIZE_MAX - 1); /* more than there can be */
    assert_int_equal(coffer_node_status(root, &err), COFFER_E_NO_MEMORY);
    assert_int_equal(err.status, COFFER_E_NO_MEMORY);
    coffer_node_add_u64(list, NULL, 1, COFFER_UNIT_NONE);
    coffer_node_add_printf(list, NULL, "late");
    assert_null(coffer_node_add_map(root, "late"));
    assert_int_equal(coffer_node_count(list), 0);
    assert_int_equal(coffer_node_count(root), 1);
    coffer_node_free(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings_are_kept_in_order_with_their_place),
        cmocka_unit_test(a_failed_call_becomes_a_finding),
        cmocka_unit_test(a_full_report_continues_to_count),
        cmocka_unit_test(the_default_is_a_thousand_findings),
        cmocka_unit_test(severities_have_names),
        cmocka_unit_test(a_new_root_is_an_empty_map),
        cmocka_unit_test(every_kind_reads_back),
        cmocka_unit_test(asking_for_another_kind_gives_nothing),
        cmocka_unit_test(children_keep_their_order_at_every_level),
        cmocka_unit_test(names_and_texts_are_copied_however_long),
        cmocka_unit_test(a_missing_parent_takes_anything),
        cmocka_unit_test(a_failure_sticks_in_the_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
