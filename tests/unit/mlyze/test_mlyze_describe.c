/* The output of info and ls for traces. */
#include "support/trace.h"

#include "base/bytes.h"

#include <string.h>

static coffer_node *node;

static uint64_t number(const char *name)
{
    const coffer_node *found = coffer_node_find(node, name);
    if (!found)
        fail_msg("%s is missing", name);
    return coffer_node_get_u64(found);
}

static const char *text(const coffer_node *of, const char *name)
{
    return coffer_node_get_text(coffer_node_find(of, name), NULL);
}

static void describe(const trace_builder *t)
{
    coffer_source *src = trace_source(t);
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    assert_int_equal(coffer_describe(node, src, NULL, NULL), COFFER_OK);
    coffer_source_close(src);
}

/* The number of entries; `node` has them. */
static size_t list(const trace_builder *t, const char *what, const char *glob)
{
    coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
    coffer_source *src = trace_source(t);
    opts.what = what;
    opts.glob = glob;
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    assert_int_equal(coffer_list(node, src, &opts, NULL), COFFER_OK);
    coffer_source_close(src);
    return coffer_node_count(coffer_node_find(node, "entries"));
}

static const coffer_node *entry(size_t index)
{
    const coffer_node *at = coffer_node_first(coffer_node_find(node, "entries"));
    while (index-- > 0)
        at = coffer_node_next(at);
    return at;
}

static void drop(void)
{
    coffer_node_free(node);
    node = NULL;
}

static void info_describes_header_tables_and_events(void **state)
{
    trace_builder t;
    (void)state;
    trace_begin(&t, COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS,
                "{\"stack_traces\": {\"1\": []}, \"files\": {\"1\": \"a\"}, \"functions\": {\"0\": \"m\"}, "
                "\"command\": \"./a.out -v\", \"pid\": 77, \"modules\": [1, 2]}     ");
    trace_alloc(&t, 5, 16, 100, 1, 0);
    trace_marker(&t, 5, 0);
    trace_end_block(&t, false);
    trace_free(&t, 5, 16);
    trace_gc(&t, 5, 1, 2);
    trace_finish(&t);
    describe(&t);
    assert_int_equal(number("events"), 4);
    assert_int_equal(number("stacks"), 1);
    assert_int_equal(number("files"), 1);
    assert_int_equal(number("functions"), 1);
    assert_int_equal(number("version"), 1);
    assert_int_equal(number("start_time_us"), UINT64_C(1700000000000000));
    assert_int_equal(number("duration_us"), 20);
    assert_int_equal(number("blocks"), 2);
    assert_int_equal(number("allocs"), 1);
    assert_int_equal(number("frees"), 1);
    assert_int_equal(number("collections"), 1);
    assert_int_equal(number("markers"), 1);
    assert_int_equal(number("metadata_room"), 5);
    assert_true(coffer_node_get_bool(coffer_node_find(node, "compressed")));
    assert_true(coffer_node_get_bool(coffer_node_find(node, "checksums")));
    const coffer_node *metadata = coffer_node_find(node, "metadata");
    assert_string_equal(text(metadata, "command"), "./a.out -v");
    assert_int_equal(coffer_node_count(coffer_node_find(metadata, "modules")), 2);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(metadata, "pid")), 77);
    assert_null(coffer_node_find(node, "damage"));
    assert_null(coffer_node_find(node, "profile"));
    drop();
    t.file.len--;
    describe(&t);
    assert_int_equal(number("events"), 3);
    assert_non_null(strstr(text(node, "damage"), "(3 whole events before the cut, the last 1 unverified)"));
    drop();
    trace_dispose(&t);
}

static void stacks_are_listed_by_their_innermost_frame(void **state)
{
    trace_builder t;
    (void)state;
    trace_sample(&t, 0, 100, 0);
    assert_int_equal(list(&t, NULL, NULL), 2);
    assert_string_equal(text(entry(0), "function"), "work");
    assert_string_equal(text(entry(0), "file"), "work.c");
    assert_int_equal(coffer_node_get_u64(coffer_node_find(entry(0), "line")), 123);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(entry(0), "depth")), 2);
    drop();
    assert_int_equal(list(&t, "stacks", "w*"), 2);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(entry(1), "id")), 1);
    drop();
    assert_int_equal(list(&t, "stacks", "main"), 0);
    drop();
    trace_dispose(&t);
}

static void files_functions_threads_markers_and_blocks_are_listed(void **state)
{
    trace_builder t;
    (void)state;
    trace_begin(
        &t, COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_EXTENSIONS,
        "{\"files\": {\"5\": \"a.c\", \"6\": \"b.h\"}, \"functions\": {\"0\": \"one\", \"1\": \"two\"}, "
        "\"threads\": {\"7\": \"seven\", \"2\": \"idle\"}}");
    trace_alloc(&t, 1, 16, 100, 1, 7);
    trace_alloc(&t, 1, 32, 50, 1, 7);
    trace_alloc(&t, 1, 48, 5, 1, 9);
    trace_extension(&t, 1, COFFER_MLYZE_THREAD, "\x09\0\1", 3);
    trace_end_block(&t, true);
    trace_marker(&t, 1, 1);
    trace_marker(&t, 1, 4);
    trace_finish(&t);
    assert_int_equal(list(&t, "files", NULL), 2);
    drop();
    assert_int_equal(list(&t, "files", "*.h"), 1);
    assert_string_equal(text(entry(0), "name"), "b.h");
    drop();
    assert_int_equal(list(&t, "functions", NULL), 2);
    drop();
    assert_int_equal(list(&t, "threads", NULL), 3);
    assert_string_equal(text(entry(0), "name"), "idle");
    assert_string_equal(text(entry(1), "name"), "seven");
    assert_int_equal(coffer_node_get_u64(coffer_node_find(entry(1), "allocated_bytes")), 150);
    assert_string_equal(text(entry(2), "name"), "two");
    drop();
    assert_int_equal(list(&t, "markers", NULL), 2);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(entry(0), "event")), 4);
    assert_string_equal(text(entry(0), "name"), "two");
    assert_int_equal(coffer_node_get_kind(coffer_node_find(entry(1), "name")), COFFER_NODE_NULL);
    drop();
    assert_int_equal(list(&t, "blocks", NULL), 2);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(entry(1), "first_event")), 4);
    drop();
    coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
    coffer_source *src = trace_source(&t);
    opts.what = "shapes";
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    assert_int_equal(coffer_list(node, src, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_source_close(src);
    drop();
    trace_dispose(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_describes_header_tables_and_events),
        cmocka_unit_test(stacks_are_listed_by_their_innermost_frame),
        cmocka_unit_test(files_functions_threads_markers_and_blocks_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
