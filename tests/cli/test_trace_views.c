/* Collapsed stacks of a trace. */
#include "support/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "mlyze/flame_page.h"

/* Stack 0: leaf called by main on line 5; stack 1: on line 6; stack 2: by "a;b" of no file; 3: no frames. */
static const char tables[] =
    "{\"stack_traces\": {\"0\": [{\"file_id\": 0, \"line\": 5, \"func_id\": 1}, {\"file_id\": 1, "
    "\"line\": 9, \"func_id\": 2}], \"1\": [{\"file_id\": 0, \"line\": 6, \"func_id\": 1}, "
    "{\"file_id\": 1, \"line\": 9, \"func_id\": 2}], \"2\": [{\"file_id\": 7, \"line\": 0, "
    "\"func_id\": 3}, {\"file_id\": 1, \"line\": 9, \"func_id\": 2}], \"3\": []}, \"files\": {\"0\": "
    "\"main.c\", \"1\": \"lib/leaf.c\"}, \"functions\": {\"1\": \"main\", \"2\": \"leaf\", \"3\": "
    "\"a;b\\n\"}}";

typedef struct fixture {
    trace_builder built;
    coffer_source *src;
    coffer_mlyze *trace;
    coffer_mlyze_stats *stats;
} fixture;

static void open_fixture(fixture *made)
{
    trace_begin(&made->built, 0, tables);
    for (uint64_t stack = 0; stack < 4; stack++)
        trace_alloc(&made->built, 1, 16 * (stack + 1), UINT64_C(1000) >> stack, stack, 1);
    trace_alloc(&made->built, 1, 0x100, 7, 99, 1); /* of a stack that is not listed */
    trace_finish(&made->built);
    made->src = trace_source(&made->built);
    made->trace = trace_open(made->src, NULL);
    assert_int_equal(coffer_mlyze_stats_new(&made->stats, made->trace, NULL, NULL), COFFER_OK);
}

static void close_fixture(fixture *done)
{
    coffer_mlyze_stats_free(done->stats);
    coffer_mlyze_close(done->trace);
    coffer_source_close(done->src);
    trace_dispose(&done->built);
}

static void expect_collapsed(const fixture *of, bool lines, bool inverted, const char *expected)
{
    coffer_mlyze_tree *tree = NULL;
    coffer__buffer out = COFFER__BUFFER_INIT;
    coffer_mlyze_tree_opts opts = COFFER_MLYZE_TREE_OPTS_INIT;
    opts.measure = COFFER_MLYZE_MEASURE_TOTAL;
    opts.lines = lines;
    opts.inverted = inverted;
    assert_int_equal(coffer_mlyze_tree_new(&tree, of->trace, of->stats, &opts, NULL), COFFER_OK);
    flame_put_collapsed(&out, &(flame_page){ tree, of->trace, "", 1200, lines });
    assert_string_equal(coffer__buffer_text(&out), expected);
    coffer__buffer_free(&out);
    coffer_mlyze_tree_free(tree);
}

static void equal_stacks_are_one_branch_and_the_largest_comes_first(void **state)
{
    fixture of;
    (void)state;
    open_fixture(&of);
    expect_collapsed(&of, false, false, "main;leaf 1500\na b ;leaf 250\n? 132\n");
    expect_collapsed(&of, true, false,
                     "main (main.c:5);leaf (lib/leaf.c:9) 1000\nmain (main.c:6);leaf (lib/leaf.c:9) 500\n"
                     "a b ;leaf (lib/leaf.c:9) 250\n? 132\n");
    expect_collapsed(&of, false, true, "leaf;main 1500\nleaf;a b  250\n? 132\n");
    close_fixture(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_stacks_are_one_branch_and_the_largest_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
