/* What the answers about traces stand on: the tree of a flame graph, and suppressions. */
#include "support/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "args.h"
#include "mlyze/flame_tree.h"
#include "mlyze/suppress.h"

/* Stack 0: leaf called by main on line 5; stack 1: on line 6; stack 2: by "a;b" of no file; 3: no frames. */
static const char tables[] =
    "{\"stack_traces\": {"
    "\"0\": [{\"file_id\": 1, \"line\": 9, \"func_id\": 2}, {\"file_id\": 0, \"line\": 5, \"func_id\": 1}],"
    "\"1\": [{\"file_id\": 1, \"line\": 9, \"func_id\": 2}, {\"file_id\": 0, \"line\": 6, \"func_id\": 1}],"
    "\"2\": [{\"file_id\": 1, \"line\": 9, \"func_id\": 2}, {\"file_id\": 7, \"line\": 0, \"func_id\": 3}],"
    "\"3\": []}, \"files\": {\"0\": \"main.c\", \"1\": \"lib/leaf.c\"},"
    "\"functions\": {\"1\": \"main\", \"2\": \"leaf\", \"3\": \"a;b\\n\"}}";

typedef struct fixture {
    trace_builder built;
    coffer_source *src;
    coffer_mlyze *trace;
    coffer_mlyze_stats *analysis;
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
    assert_int_equal(coffer_mlyze_stats_new(&made->analysis, made->trace, NULL, NULL), COFFER_OK);
}

static void close_fixture(fixture *done)
{
    coffer_mlyze_stats_free(done->analysis);
    coffer_mlyze_close(done->trace);
    coffer_source_close(done->src);
    trace_dispose(&done->built);
}

static void expect_collapsed(const fixture *of, bool lines, bool inverted, const char *expected)
{
    flame_tree *tree = NULL;
    coffer__buffer out = COFFER__BUFFER_INIT;
    flame_settings settings = { COFFER_MLYZE_MEASURE_TOTAL, lines, inverted };
    assert_int_equal(flame_tree_new(&tree, of->trace, of->analysis, &settings, NULL), COFFER_OK);
    assert_int_equal(flame_tree_at(tree, 0)->amount.bytes, 1882);
    assert_int_equal(flame_tree_at(tree, 0)->own_bytes, 0);
    flame_put_collapsed(&out, &(flame_page){ tree, of->trace, "", 1200, lines });
    assert_string_equal(coffer__buffer_text(&out), expected);
    coffer__buffer_free(&out);
    flame_tree_free(tree);
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

static const cli_option options[] = { SUPPRESS_OPTIONS, { 0 } };
static const cli_verb verb = { .name = "leaks", .usage = "FILE", .options = options, .max_operands = 1 };

static bool hides(const fixture *of, const char *pattern, size_t stack)
{
    suppressions list;
    cli_args args;
    char option[] = "--suppress", value[64];
    char *const words[] = { option, value };
    snprintf(value, sizeof value, "%s", pattern);
    assert_int_equal(cli_parse(&args, &verb, 2, words), CLI_OK);
    assert_int_equal(suppressions_read(&list, &args), CLI_OK);
    bool found = suppressions_match(&list, of->trace, stack);
    suppressions_free(&list);
    cli_args_free(&args);
    return found;
}

static void a_pattern_hides_stacks_by_function_and_file(void **state)
{
    fixture of;
    (void)state;
    open_fixture(&of);
    assert_true(hides(&of, "main", 0));
    assert_true(hides(&of, "ai", 0)); /* anywhere, without a star */
    assert_true(hides(&of, "lib/*", 2));
    assert_false(hides(&of, "ai*", 0));
    assert_false(hides(&of, "main.c", 2));
    assert_false(hides(&of, "*", 3)); /* no frames, no names */
    assert_false(hides(&of, "*", SIZE_MAX));
    close_fixture(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_stacks_are_one_branch_and_the_largest_comes_first),
        cmocka_unit_test(a_pattern_hides_stacks_by_function_and_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
