#include "support/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The same program, with other ids and another line. */
static const char before[] =
    "{\"stack_traces\": {\"0\": [{\"file_id\": 1, \"line\": 9, \"func_id\": 1}, {\"file_id\": 0, "
    "\"line\": 5, \"func_id\": 7}], \"1\": [{\"file_id\": 1, \"line\": 9, \"func_id\": 1}], \"2\": "
    "[{\"file_id\": 1, \"line\": 9, \"func_id\": 1}, {\"file_id\": 0, \"line\": 6, \"func_id\": "
    "7}]}, \"files\": {\"0\": \"a.c\", \"1\": \"main.c\"}, \"functions\": {\"1\": \"main\", \"7\": "
    "\"load\", \"8\": \"first\", \"9\": \"second\"}}";
static const char after[] =
    "{\"stack_traces\": {\"40\": [{\"file_id\": 0, \"line\": 9, \"func_id\": 5}, {\"file_id\": 3, "
    "\"line\": 6, \"func_id\": 2}], \"41\": [{\"file_id\": 0, \"line\": 1, \"func_id\": 5}, "
    "{\"file_id\": 0, \"line\": 9, \"func_id\": 5}]}, \"files\": {\"0\": \"main.c\", \"3\": "
    "\"a.c\"}, \"functions\": {\"5\": \"main\", \"2\": \"load\", \"1\": \"second\", \"6\": "
    "\"first\", \"77\": \"between\"}}";

typedef struct pair {
    trace_builder built[2];
    coffer_source *src[2];
    coffer_mlyze *trace[2];
    coffer_node *root;
} pair;

static void pair_open(pair *made, const coffer_mlyze_diff_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    for (int side = 0; side < 2; side++) {
        trace_finish(&made->built[side]);
        made->src[side] = trace_source(&made->built[side]);
        made->trace[side] = trace_open(made->src[side], NULL);
    }
    assert_int_equal(coffer_node_new(&made->root, NULL), COFFER_OK);
    if (coffer_mlyze_diff(made->root, made->trace[0], made->trace[1], opts, &err))
        fail_msg("%s", err.text);
}

static void pair_close(pair *done)
{
    coffer_node_free(done->root);
    for (int side = 0; side < 2; side++) {
        coffer_mlyze_close(done->trace[side]);
        coffer_source_close(done->src[side]);
        trace_dispose(&done->built[side]);
    }
}

static void pair_fill(pair *made)
{
    trace_builder *a = &made->built[0], *b = &made->built[1];
    trace_begin(a, 0, before);
    trace_alloc(a, 1, 0x10, 100, 0, 1);  /* load, line 5 */
    trace_alloc(a, 1, 0x20, 50, 2, 1);   /* load, line 6 */
    trace_alloc(a, 1, 0x30, 1000, 1, 1); /* main: gone */
    trace_begin(b, COFFER__MLYZE_FLAG_BLOCKS, after);
    trace_alloc(b, 1, 0x10, 400, 40, 1); /* load, line 6 */
    trace_alloc(b, 1, 0x20, 7, 41, 1);   /* main in main: new */
    trace_alloc(b, 1, 0x30, 3, 99, 1);   /* not listed: new */
}

static const coffer_node *row_at(const pair *from, const char *list, size_t index)
{
    const coffer_node *row = coffer_node_first(coffer_node_find(from->root, list));
    while (row && index-- > 0)
        row = coffer_node_next(row);
    assert_non_null(row);
    return row;
}

static void assert_row(const coffer_node *row, int64_t change, uint64_t a, uint64_t b, const char *frame)
{
    assert_int_equal(coffer_node_get_i64(coffer_node_find(row, "change_bytes")), change);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(row, "bytes_a")), a);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(row, "bytes_b")), b);
    assert_string_equal(coffer_node_get_text(coffer_node_first(coffer_node_find(row, "frames")), NULL),
                        frame);
}

static size_t length_of(const pair *from, const char *list)
{
    return coffer_node_count(coffer_node_find(from->root, list));
}

static void stacks_are_matched_by_functions_and_files(void **state)
{
    (void)state;
    pair made;
    pair_fill(&made);
    pair_open(&made, NULL);
    assert_false(coffer_node_get_bool(coffer_node_find(made.root, "equal")));
    assert_int_equal(length_of(&made, "grew"), 1);
    assert_row(row_at(&made, "grew", 0), 250, 150, 400, "load (a.c)");
    assert_int_equal(length_of(&made, "shrank"), 0);
    assert_int_equal(length_of(&made, "gone"), 1);
    assert_row(row_at(&made, "gone", 0), -1000, 1000, 0, "main (main.c)");
    assert_int_equal(length_of(&made, "new"), 2);
    assert_row(row_at(&made, "new", 0), 7, 0, 7, "main (main.c)");
    assert_row(row_at(&made, "new", 1), 3, 0, 3, "?");
    assert_int_equal(coffer_node_get_i64(coffer_node_find(made.root, "grew_bytes")), 410 - 1150);
    assert_null(coffer_node_find(made.root, "phases"));
    pair_close(&made);
}

static void with_lines_a_frame_is_matched_by_its_line_too(void **state)
{
    (void)state;
    pair made;
    coffer_mlyze_diff_opts opts = COFFER_MLYZE_DIFF_OPTS_INIT;
    opts.lines = true;
    opts.measure = COFFER_MLYZE_MEASURE_TOTAL;
    pair_fill(&made);
    pair_open(&made, &opts);
    assert_row(row_at(&made, "grew", 0), 350, 50, 400, "load (a.c:6)");
    assert_int_equal(length_of(&made, "gone"), 2);
    assert_row(row_at(&made, "gone", 1), -100, 100, 0, "load (a.c:5)");
    pair_close(&made);
}

static void only_as_many_rows_as_asked_for_are_shown(void **state)
{
    (void)state;
    pair made;
    coffer_mlyze_diff_opts opts = COFFER_MLYZE_DIFF_OPTS_INIT;
    opts.max_shown = 1;
    pair_fill(&made);
    pair_open(&made, &opts);
    assert_int_equal(length_of(&made, "new"), 1);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(coffer_node_find(made.root, "stacks"), "new")), 2);
    pair_close(&made);
}

static void a_trace_is_equal_to_its_compressed_copy(void **state)
{
    (void)state;
    pair made;
    trace_sample(&made.built[0], 0, 500, 0);
    trace_sample(&made.built[1], COFFER__MLYZE_FLAG_BLOCKS, 500, 30);
    pair_open(&made, NULL);
    assert_true(coffer_node_get_bool(coffer_node_find(made.root, "equal")));
    assert_int_equal(length_of(&made, "grew") + length_of(&made, "shrank"), 0);
    coffer_node *generic = NULL;
    assert_int_equal(coffer_node_new(&generic, NULL), COFFER_OK);
    assert_int_equal(coffer_diff(generic, made.src[0], made.src[1], NULL, NULL), COFFER_OK);
    assert_true(coffer_node_get_bool(coffer_node_find(generic, "equal")));
    coffer_node_free(generic);
    pair_close(&made);
}

static uint64_t number_in(const coffer_node *map, const char *name)
{
    return coffer_node_get_u64(coffer_node_find(map, name));
}

static void phases_are_aligned_by_the_markers_both_have(void **state)
{
    (void)state;
    pair made;
    trace_builder *a = &made.built[0], *b = &made.built[1];
    trace_begin(a, 0, before);
    trace_alloc(a, 1, 0x10, 100, 0, 1);
    trace_marker(a, 1, 8); /* first */
    trace_alloc(a, 1, 0x20, 50, 0, 1);
    trace_free(a, 1, 0x10);
    trace_marker(a, 1, 9); /* second */
    trace_alloc(a, 1, 0x30, 5, 0, 1);
    trace_begin(b, 0, after);
    trace_marker(b, 1, 6); /* first */
    trace_alloc(b, 1, 0x10, 30, 40, 1);
    trace_marker(b, 1, 77); /* between: only here */
    trace_alloc(b, 1, 0x20, 40, 40, 1);
    trace_free(b, 1, 0x20);
    trace_marker(b, 1, 1); /* second */
    pair_open(&made, NULL);
    assert_int_equal(length_of(&made, "phases"), 3);
    const coffer_node *phase = row_at(&made, "phases", 0);
    assert_string_equal(coffer_node_get_text(coffer_node_find(phase, "phase"), NULL), "");
    assert_int_equal(number_in(phase, "peak_a"), 100);
    assert_int_equal(number_in(phase, "peak_b"), 0);
    phase = row_at(&made, "phases", 1);
    assert_string_equal(coffer_node_get_text(coffer_node_find(phase, "phase"), NULL), "first");
    assert_int_equal(number_in(phase, "peak_a"), 150);
    assert_int_equal(number_in(phase, "peak_b"), 70);
    assert_int_equal(number_in(phase, "allocated_a"), 50);
    assert_int_equal(number_in(phase, "allocated_b"), 70);
    assert_int_equal(coffer_node_get_i64(coffer_node_find(phase, "live_change_a")), -50);
    assert_int_equal(coffer_node_get_i64(coffer_node_find(phase, "live_change_b")), 30);
    phase = row_at(&made, "phases", 2);
    assert_string_equal(coffer_node_get_text(coffer_node_find(phase, "phase"), NULL), "second");
    assert_int_equal(number_in(phase, "allocated_a"), 5);
    assert_int_equal(number_in(phase, "allocated_b"), 0);
    pair_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_are_matched_by_functions_and_files),
        cmocka_unit_test(with_lines_a_frame_is_matched_by_its_line_too),
        cmocka_unit_test(only_as_many_rows_as_asked_for_are_shown),
        cmocka_unit_test(a_trace_is_equal_to_its_compressed_copy),
        cmocka_unit_test(phases_are_aligned_by_the_markers_both_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
