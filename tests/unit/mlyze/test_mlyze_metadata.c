/* The tables of a trace, right, odd and wrong. */
#include "support/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static coffer_mlyze *trace;
static coffer_source *source;
static trace_builder built;

static void use(const char *json)
{
    trace_begin(&built, 0, json);
    source = trace_source(&built);
    trace = trace_open(source, NULL);
}

static void drop(void)
{
    coffer_mlyze_close(trace);
    coffer_source_close(source);
    trace_dispose(&built);
    trace = NULL;
    source = NULL;
}

static void assert_refused(const char *json, coffer_status expected, uint64_t place)
{
    coffer_error err = COFFER_ERROR_INIT;
    trace_begin(&built, 0, json);
    source = trace_source(&built);
    if (coffer_mlyze_open(&trace, source, NULL, &err) != expected)
        fail_msg("%s: %d %s", json, err.status, err.text);
    if (place != COFFER_OFFSET_NONE)
        assert_int_equal(err.offset, COFFER__MLYZE_HEADER_SIZE + place);
    assert_true(err.text[0]);
    drop();
}

/* Asserts the first finding of check: its code, or COFFER_OK without findings. */
static void assert_found(const char *json, coffer_status code, coffer_severity severity, const char *words)
{
    trace_begin(&built, 0, json);
    coffer_report *report = trace_check(&built);
    bool found = false;
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *at = coffer_report_at(report, i);
        found |= at->code == code && at->severity == severity && strstr(at->text, words);
    }
    if (!found)
        fail_msg("%s: check does not say \"%s\"", json, words);
    coffer_report_free(report);
    trace_dispose(&built);
}

static void ids_may_be_sparse_and_as_large_as_64_bits(void **state)
{
    (void)state;
    use("{\"stack_traces\": {\"18446744073709551615\": [], \"1152921504606846976\": [{\"file_id\": "
        "18446744073709551614, \"line\": 3, \"func_id\": 9000000000000000000}], \"7\": []}, "
        "\"files\": {\"18446744073709551614\": \"far\"}, \"functions\": {\"9000000000000000000\": \"f\", "
        "\"0\": \"\"}}");
    size_t index = coffer_mlyze_find_stack(trace, UINT64_C(1) << 60), depth = 0;
    assert_int_equal(index, 1);
    const coffer_mlyze_frame *frame = coffer_mlyze_frames(&depth, trace, index);
    assert_int_equal(depth, 1);
    assert_string_equal(coffer_mlyze_file_name(trace, frame->file_id), "far");
    assert_string_equal(coffer_mlyze_function_name(trace, frame->func_id), "f");
    assert_string_equal(coffer_mlyze_function_name(trace, 0), "");
    assert_int_equal(coffer_mlyze_find_stack(trace, UINT64_MAX), 0);
    assert_int_equal(coffer_mlyze_find_stack(trace, 7), 2);
    assert_int_equal(coffer_mlyze_find_stack(trace, 8), SIZE_MAX);
    drop();
}

static void the_json_may_have_any_order_any_spaces_and_other_keys(void **state)
{
    size_t len = 0, depth = 0;
    (void)state;
    use("\n{ \"threads\" : {\"3\": \"worker\"}, \"x\": [{\"stack_traces\": {}}, \"}{\\\"\"], "
        "\"functions\":{\"1\":"
        "\"caf\\u00e9 \\\"q\\\"\"} , \"stack_traces\" : { \"5\" :[ {\"func_id\":1,\"more\":{\"a\":[1,2.5e3]},"
        "\"line\" : 0 ,\"file_id\": 2 } , {\"file\\u005fid\":2,\"line\":1,\"func_id\":1}\n] }, \"files\": "
        "{\"2\": "
        "\"a\"} }  \n   ");
    assert_string_equal(coffer_mlyze_thread_name(trace, 3), "worker");
    assert_string_equal(coffer_mlyze_function_name(trace, 1), "caf\xc3\xa9 \"q\"");
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, trace, coffer_mlyze_find_stack(trace, 5));
    assert_int_equal(depth, 2);
    for (size_t i = 0; i < depth; i++) {
        assert_int_equal(frames[i].file_id, 2);
        assert_int_equal(frames[i].line, depth - 1 - i);
        assert_int_equal(frames[i].func_id, 1);
    }
    const char *text = coffer_mlyze_metadata(trace, &len);
    assert_int_equal(text[len - 1], '}');
    assert_int_equal(strlen(text), len);
    drop();
}

static void tables_may_be_missing(void **state)
{
    (void)state;
    use("{}");
    assert_int_equal(coffer_mlyze_stack_count(trace), 0);
    assert_int_equal(coffer_mlyze_find_stack(trace, 0), SIZE_MAX);
    assert_null(coffer_mlyze_file_name(trace, 0));
    drop();
    assert_found("{}", COFFER_E_MISSING, COFFER_WARNING, "stack_traces");
}

static void invalid_json_is_refused_with_its_offset(void **state)
{
    (void)state;
    assert_refused("{\"files\": }", COFFER_E_BAD_JSON, 10);
    assert_refused("", COFFER_E_BAD_JSON, 0);
    assert_refused("{\"stack_traces\": {\"1\": [}, \"files\": {}}", COFFER_E_BAD_JSON, 24);
    assert_refused("{\"stack_traces\": {\"1\": [{\"file_id\": 01}]}}", COFFER_E_BAD_JSON, 36);
    assert_refused("{\"stack_traces\": {\"1\": []}", COFFER_E_BAD_JSON, 26);
    assert_refused("{\"stack_traces\": {\"1\": []} \"files\": {}}", COFFER_E_BAD_JSON, 27);
    assert_refused("{\"stack_traces\": {\"1\": [{\"a\": tru}]}}", COFFER_E_BAD_JSON, 33);
    assert_refused("{\"stack_traces\": {\"1\": [{\"a\n\": 1}]}}", COFFER_E_BAD_JSON, 27);
    assert_refused("{\"stack_traces\": {\"1\": [{\"\xff\": 1}]}}", COFFER_E_BAD_TEXT, 26);
    assert_refused("{\"files\": {\"1\": \"\xc3\"}}", COFFER_E_BAD_TEXT, 17);
    assert_refused("[]", COFFER_E_BAD_JSON, 0);
}

static void duplicate_keys_are_refused(void **state)
{
    (void)state;
    assert_refused("{\"stack_traces\": {\"1\": [], \"2\": [], \"1\": []}}", COFFER_E_DUPLICATE, 0);
    assert_refused("{\"stack_traces\": {\"1\": []}, \"stack_traces\": {}}", COFFER_E_DUPLICATE,
                   COFFER_OFFSET_NONE);
    assert_refused("{\"files\": {\"1\": \"a\", \"1\": \"b\"}}", COFFER_E_DUPLICATE, COFFER_OFFSET_NONE);
    assert_found("{\"stack_traces\": {\"1\": [], \"1\": []}}", COFFER_E_DUPLICATE, COFFER_ERROR, "stack 1");
    assert_found("{\"stack_traces\": {\"3\": [{\"line\": 1, \"line\": 2, \"file_id\": 1, \"func_id\": 1}]}}",
                 COFFER_E_DUPLICATE, COFFER_ERROR, "line");
}

static void invalid_entries_are_skipped_and_reported(void **state)
{
    const char *json =
        "{\"stack_traces\": {\"x\": [], \"-1\": [], \"01\": [], \"18446744073709551616\": [], \"1\": 5, "
        "\"2\": [7, {\"line\": -1, \"file_id\": 1.5, \"func_id\": \"a\"}, {}]}, \"files\": {\"a\": "
        "\"b\", \"1\": 2}, \"functions\": [], \"threads\": {\"65536\": \"t\"}}";
    size_t depth = 0;
    (void)state;
    use(json);
    assert_int_equal(coffer_mlyze_stack_count(trace), 2);
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, trace, coffer_mlyze_find_stack(trace, 2));
    assert_int_equal(depth, 3);
    for (size_t i = 0; i < depth; i++)
        assert_null(coffer_mlyze_file_name(trace, frames[i].file_id));
    coffer_mlyze_frames(&depth, trace, coffer_mlyze_find_stack(trace, 1));
    assert_int_equal(depth, 0);
    drop();
    assert_found(json, COFFER_E_BAD_VALUE, COFFER_ERROR, "\"x\" is not an id");
    assert_found(json, COFFER_E_BAD_VALUE, COFFER_ERROR, "stack 1 is not a list");
    assert_found(json, COFFER_E_BAD_VALUE, COFFER_ERROR, "stack 2: a frame is not an object");
    assert_found(json, COFFER_E_BAD_VALUE, COFFER_ERROR, "as its line");
    assert_found(json, COFFER_E_MISSING, COFFER_ERROR, "stack 2: a frame has no file_id");
    assert_found(json, COFFER_E_BAD_VALUE, COFFER_ERROR, "files: \"a\" is not an id");
    assert_found(json, COFFER_E_BAD_VALUE, COFFER_ERROR, "files: \"1\" is not a string");
    assert_found(json, COFFER_E_BAD_VALUE, COFFER_ERROR, "\"functions\" is not an object");
    assert_found(json, COFFER_E_BAD_VALUE, COFFER_ERROR, "threads: \"65536\"");
}

static void nesting_without_end_is_refused(void **state)
{
    size_t depth = 1000000;
    char *json = malloc(depth + 100);
    (void)state;
    int begin = sprintf(json, "{\"stack_traces\": {\"1\": [{\"x\": ");
    memset(json + begin, '[', depth);
    json[(size_t)begin + depth] = '\0';
    trace_begin(&built, 0, json);
    source = trace_source(&built);
    assert_int_not_equal(coffer_mlyze_open(&trace, source, NULL, NULL), COFFER_OK);
    drop();
    free(json);
}

/* `each` is printed with its number `count` times into the stacks. */
static char *many_stacks(size_t count, uint64_t step)
{
    char *json = malloc(200 + count * 120), *at = json;
    at += sprintf(at, "{\"files\": {\"0\": \"f\"}, \"functions\": {\"0\": \"g\"}, \"stack_traces\": {");
    for (size_t i = 0; i < count; i++)
        at += sprintf(at, "%s\"%llu\": [{\"file_id\": 0, \"line\": %zu, \"func_id\": 0}]", i ? ", " : "",
                      (unsigned long long)(i * step), i);
    sprintf(at, "}}");
    return json;
}

static void assert_many_stacks_open(size_t count, uint64_t step)
{
    char *json = many_stacks(count, step);
    clock_t begin = clock();
    use(json);
    clock_t taken = clock() - begin;
    for (size_t i = 0; i < count; i += 1 + count / 1000) {
        size_t depth = 0, index = coffer_mlyze_find_stack(trace, i * step);
        assert_int_equal(index, i);
        assert_int_equal(coffer_mlyze_frames(&depth, trace, index)->line, i);
        if (step > 1)
            assert_int_equal(coffer_mlyze_find_stack(trace, i * step + 1), SIZE_MAX);
    }
    /* Half a second; sanitizers get their share on top. */
    assert_true(taken < 20 * CLOCKS_PER_SEC);
    drop();
    free(json);
}

static void a_million_stacks_are_read_quickly(void **state)
{
    (void)state;
    assert_many_stacks_open(1000000, 1);
    assert_many_stacks_open(1000000, UINT64_C(18446744073709));
    assert_many_stacks_open(100000, UINT64_C(1) << 44);
}

static void a_stack_may_be_a_million_frames_deep(void **state)
{
    const size_t depth = 1000000;
    char *json = malloc(200 + depth * 60), *at = json;
    size_t found = 0;
    (void)state;
    at += sprintf(at, "{\"stack_traces\": {\"1152921504606846976\": [");
    for (size_t i = 0; i < depth; i++)
        at += sprintf(at, "%s{\"file_id\":%zu,\"line\":1,\"func_id\":2}", i ? "," : "", i);
    sprintf(at, "]}}");
    use(json);
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(&found, trace, 0);
    assert_int_equal(found, depth);
    assert_int_equal(frames[0].file_id, depth - 1);
    assert_int_equal(frames[depth - 1].file_id, 0);
    drop();
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_may_be_sparse_and_as_large_as_64_bits),
        cmocka_unit_test(the_json_may_have_any_order_any_spaces_and_other_keys),
        cmocka_unit_test(tables_may_be_missing),
        cmocka_unit_test(invalid_json_is_refused_with_its_offset),
        cmocka_unit_test(duplicate_keys_are_refused),
        cmocka_unit_test(invalid_entries_are_skipped_and_reported),
        cmocka_unit_test(nesting_without_end_is_refused),
        cmocka_unit_test(a_million_stacks_are_read_quickly),
        cmocka_unit_test(a_stack_may_be_a_million_frames_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
