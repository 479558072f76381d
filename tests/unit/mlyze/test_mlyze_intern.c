/* Equal names and stacks are one; ids are dense, and those of the caller's choice stay. */
#include "support/trace.h"

#include <stdio.h>
#include <string.h>

static coffer_mlyze_writer *create(void)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    opts.overwrite = true;
    coffer_mlyze_writer *writer = NULL;
    opts.no_index = true;
    assert_int_equal(coffer_mlyze_writer_create(&writer, temp_path(temp_folder, "t.mlyze"), &opts, NULL),
                     COFFER_OK);
    return writer;
}

/* Commits, and compares the metadata. */
static void expect_metadata(coffer_mlyze_writer *writer, const char *expected)
{
    coffer_source *src = NULL;
    assert_int_equal(coffer_mlyze_writer_commit(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "t.mlyze"), NULL, NULL), COFFER_OK);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_string_equal(coffer_mlyze_metadata(trace, NULL), expected);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
}

static uint64_t file(coffer_mlyze_writer *writer, const char *path)
{
    uint64_t id = 999;
    assert_int_equal(coffer_mlyze_writer_add_file(&id, writer, path, NULL), COFFER_OK);
    return id;
}

static uint64_t function(coffer_mlyze_writer *writer, const char *name)
{
    uint64_t id = 999;
    assert_int_equal(coffer_mlyze_writer_add_function(&id, writer, name, NULL), COFFER_OK);
    return id;
}

static uint64_t call(coffer_mlyze_writer *writer, uint64_t caller, uint64_t line)
{
    coffer_mlyze_frame frame = { 0, line, 0 };
    uint64_t id = 999;
    assert_int_equal(coffer_mlyze_writer_add_call(&id, writer, caller, &frame, NULL), COFFER_OK);
    return id;
}

static void equal_names_get_one_id_and_files_and_functions_are_apart(void **state)
{
    coffer_mlyze_writer *writer = create();
    (void)state;
    assert_int_equal(file(writer, "a.c"), 0);
    assert_int_equal(file(writer, "b.c"), 1);
    assert_int_equal(file(writer, "a.c"), 0);
    assert_int_equal(function(writer, "a.c"), 0);
    assert_int_equal(function(writer, ""), 1);
    assert_int_equal(function(writer, "qu\"ote\n"), 2);
    expect_metadata(
        writer,
        "{\"stack_order\":\"outermost-first\",\"stack_traces\":{},\"files\":{\"0\":\"a.c\",\"1\":\"b.c\"},"
        "\"functions\":{\"0\":\"a.c\",\"1\":\"\",\"2\":\"qu\\\"ote\\n\"}}");
}

static void chosen_ids_stay_and_new_ones_go_around_them(void **state)
{
    coffer_mlyze_writer *writer = create();
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    assert_int_equal(coffer_mlyze_writer_add_file_id(writer, 1, "one", NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_file_id(writer, UINT64_MAX, "last", NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_file_id(writer, 1, "one", NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_file_id(writer, 1, "uno", &err), COFFER_E_DUPLICATE);
    assert_string_equal(err.text, "file 1 is \"one\" and cannot be \"uno\" too");
    assert_int_equal(file(writer, "one"), 1);
    assert_int_equal(file(writer, "zero"), 0);
    assert_int_equal(file(writer, "two"), 2);
    assert_true(file(writer, "last") == UINT64_MAX);
    expect_metadata(writer, "{\"stack_order\":\"outermost-first\",\"stack_traces\":{},\"files\":{\"1\":"
                            "\"one\",\"18446744073709551615\":\"last\","
                            "\"0\":\"zero\",\"2\":\"two\"},\"functions\":{}}");
}

static void names_that_are_not_text_are_refused(void **state)
{
    coffer_mlyze_writer *writer = create();
    uint64_t id;
    (void)state;
    assert_int_equal(coffer_mlyze_writer_add_file(&id, writer, "a\xff", NULL), COFFER_E_BAD_TEXT);
    assert_int_equal(coffer_mlyze_writer_add_function_id(writer, 0, "\xc3", NULL), COFFER_E_BAD_TEXT);
    expect_metadata(
        writer, "{\"stack_order\":\"outermost-first\",\"stack_traces\":{},\"files\":{},\"functions\":{}}");
}

static void stacks_are_listed_when_an_event_has_them_or_when_they_were_added_whole(void **state)
{
    coffer_mlyze_writer *writer = create();
    coffer_mlyze_frame frames[] = { { 0, 3, 0 }, { 0, 2, 0 }, { 0, 1, 0 } };
    uint64_t outer, middle, other, whole;
    (void)state;
    outer = call(writer, COFFER_MLYZE_NO_STACK, 1);
    middle = call(writer, outer, 2);
    other = call(writer, outer, 9);
    assert_int_equal(middle, 1);
    assert_int_equal(other, 2);
    assert_int_equal(call(writer, outer, 2), middle);
    assert_int_equal(coffer_mlyze_writer_add_stack(&whole, writer, frames, 3, NULL), COFFER_OK);
    assert_int_equal(whole, 3);
    assert_int_equal(call(writer, middle, 3), whole);
    assert_int_equal(coffer_mlyze_writer_put_alloc(writer, 0, 16, 1, other, 0, NULL), COFFER_OK);
    expect_metadata(writer, "{\"stack_order\":\"outermost-first\",\"stack_traces\":{\"2\":[{\"file_id\":0,"
                            "\"line\":1,\"func_id\":0},"
                            "{\"file_id\":0,\"line\":9,\"func_id\":0}],"
                            "\"3\":[{\"file_id\":0,\"line\":1,\"func_id\":0},"
                            "{\"file_id\":0,\"line\":2,\"func_id\":0},"
                            "{\"file_id\":0,\"line\":3,\"func_id\":0}]},\"files\":{},\"functions\":{}}");
}

static void stacks_of_chosen_ids_stay_and_may_be_equal_or_empty(void **state)
{
    coffer_mlyze_writer *writer = create();
    coffer_mlyze_frame frame = { 1, 2, 3 };
    uint64_t id;
    (void)state;
    assert_int_equal(coffer_mlyze_writer_add_stack_id(writer, 7, &frame, 1, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_stack_id(writer, 0, &frame, 1, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_stack_id(writer, 7, &frame, 1, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_stack_id(writer, 7, NULL, 0, NULL), COFFER_E_DUPLICATE);
    assert_int_equal(coffer_mlyze_writer_add_stack(&id, writer, &frame, 1, NULL), COFFER_OK);
    assert_int_equal(id, 7);
    assert_int_equal(coffer_mlyze_writer_add_stack(&id, writer, NULL, 0, NULL), COFFER_OK);
    assert_int_equal(id, 1);
    expect_metadata(writer, "{\"stack_order\":\"outermost-first\",\"stack_traces\":{\"7\":[{\"file_id\":1,"
                            "\"line\":2,\"func_id\":3}],"
                            "\"0\":[{\"file_id\":1,\"line\":2,\"func_id\":3}],\"1\":[]},"
                            "\"files\":{},\"functions\":{}}");
}

static void a_caller_that_was_not_added_is_refused(void **state)
{
    coffer_mlyze_writer *writer = create();
    coffer_mlyze_frame frame = { 0, 1, 0 };
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t id;
    (void)state;
    assert_int_equal(coffer_mlyze_writer_add_call(&id, writer, 5, &frame, &err), COFFER_E_DANGLING_REFERENCE);
    assert_string_equal(err.text, "the calling stack 5 was not added");
    coffer_mlyze_writer_discard(writer);
}

static void a_hundred_thousand_names_and_stacks_keep_their_ids(void **state)
{
    coffer_mlyze_writer *writer = create();
    enum { COUNT = 100000 };
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < COUNT; i++) {
            char name[32];
            snprintf(name, sizeof name, "f%llu", (unsigned long long)(i * 7));
            assert_int_equal(function(writer, name), i);
            assert_int_equal(call(writer, i == 0 ? COFFER_MLYZE_NO_STACK : i / 2, i), i);
        }
    }
    coffer_mlyze_writer_discard(writer);
}

static void stacks_too_long_for_a_header_are_refused_before_they_are_written(void **state)
{
    coffer_mlyze_writer *writer = create();
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t stack = COFFER_MLYZE_NO_STACK;
    (void)state;
    for (uint64_t depth = 0; depth < 20000; depth++) {
        stack = call(writer, stack, depth);
        assert_int_equal(coffer_mlyze_writer_put_alloc(writer, depth, depth, 1, stack, 0, NULL), COFFER_OK);
    }
    assert_int_equal(coffer_mlyze_writer_commit(writer, &err), COFFER_E_LIMIT);
    assert_string_equal(err.text, "the metadata of all stacks passes the 4 GiB that a header can say");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_names_get_one_id_and_files_and_functions_are_apart),
        cmocka_unit_test(chosen_ids_stay_and_new_ones_go_around_them),
        cmocka_unit_test(names_that_are_not_text_are_refused),
        cmocka_unit_test(stacks_are_listed_when_an_event_has_them_or_when_they_were_added_whole),
        cmocka_unit_test(stacks_of_chosen_ids_stay_and_may_be_equal_or_empty),
        cmocka_unit_test(a_caller_that_was_not_added_is_refused),
        cmocka_unit_test(a_hundred_thousand_names_and_stacks_keep_their_ids),
        cmocka_unit_test(stacks_too_long_for_a_header_are_refused_before_they_are_written),
    };
    return cmocka_run_group_tests_name("mlyze_intern", tests, temp_setup, temp_teardown);
}
