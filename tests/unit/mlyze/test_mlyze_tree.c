/* The tree of stacks, suppressions, and the amounts of rows. */
#include "support/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Stack 0: leaf called by main on line 5; stack 1: on line 6; stack 2: by "a;b" of no file; 3: no frames. */
static const char tables[] =
    "{\"stack_traces\": {\"0\": [{\"file_id\": 0, \"line\": 5, \"func_id\": 1}, {\"file_id\": 1, "
    "\"line\": 9, \"func_id\": 2}], \"1\": [{\"file_id\": 0, \"line\": 6, \"func_id\": 1}, "
    "{\"file_id\": 1, \"line\": 9, \"func_id\": 2}], \"2\": [{\"file_id\": 7, \"line\": 0, "
    "\"func_id\": 3}, {\"file_id\": 1, \"line\": 9, \"func_id\": 2}], \"3\": []}, \"files\": {\"0\": "
    "\"main.c\", \"1\": \"lib/leaf.c\"}, \"functions\": {\"1\": \"main\", \"2\": \"leaf\", \"3\": "
    "\"a;b\"}, \"command\": \"run it\", \"pid\": 5}";

typedef struct fixture {
    trace_builder built;
    coffer_source *src;
    coffer_mlyze *trace;
    coffer_mlyze_stats *stats;
} fixture;

static int open_fixture(void **state)
{
    static fixture made;
    trace_begin(&made.built, 0, tables);
    for (uint64_t stack = 0; stack < 4; stack++)
        trace_alloc(&made.built, 1, 16 * (stack + 1), UINT64_C(1000) >> stack, stack, 1);
    trace_alloc(&made.built, 1, 0x100, 7, 99, 1); /* of a stack that is not listed */
    trace_free(&made.built, 1, 16);
    trace_finish(&made.built);
    made.src = trace_source(&made.built);
    made.trace = trace_open(made.src, NULL);
    made.stats = NULL;
    assert_int_equal(coffer_mlyze_stats_new(&made.stats, made.trace, NULL, NULL), COFFER_OK);
    *state = &made;
    return 0;
}

static int close_fixture(void **state)
{
    fixture *made = *state;
    coffer_mlyze_stats_free(made->stats);
    coffer_mlyze_close(made->trace);
    coffer_source_close(made->src);
    trace_dispose(&made->built);
    return 0;
}

static coffer_mlyze_tree *grow(const fixture *made, const coffer_mlyze_tree_opts *opts)
{
    coffer_mlyze_tree *tree = NULL;
    assert_int_equal(coffer_mlyze_tree_new(&tree, made->trace, made->stats, opts, NULL), COFFER_OK);
    return tree;
}

static coffer_mlyze_tree_opts total(void)
{
    coffer_mlyze_tree_opts opts;
    coffer_mlyze_tree_opts_init(&opts, sizeof opts);
    assert_int_equal(opts.max_depth, 512);
    opts.measure = COFFER_MLYZE_MEASURE_TOTAL;
    return opts;
}

/* Nodes in depth-first order as "name:bytes", with a ">" for each level. */
static void expect(const fixture *made, const coffer_mlyze_tree_opts *opts, const char *expected)
{
    coffer_mlyze_tree *tree = grow(made, opts);
    coffer__buffer out = COFFER__BUFFER_INIT;
    size_t seen = 0;
    for (size_t i = 0; i != COFFER_INDEX_NONE; i = coffer_mlyze_tree_next(tree, i), seen++) {
        const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(tree, i);
        for (uint32_t level = 0; level < node->depth; level++)
            coffer__buffer_printf(&out, ">");
        coffer__buffer_printf(&out, "%s:%d+%d ", node->name, (int)node->bytes, (int)node->own_bytes);
    }
    assert_string_equal(coffer__buffer_text(&out), expected);
    assert_int_equal(seen, coffer_mlyze_tree_count(tree));
    assert_null(coffer_mlyze_tree_at(tree, seen));
    assert_int_equal(coffer_mlyze_tree_next(tree, seen), COFFER_INDEX_NONE);
    coffer__buffer_free(&out);
    coffer_mlyze_tree_free(tree);
}

static void equal_stacks_are_one_branch_and_the_largest_comes_first(void **state)
{
    coffer_mlyze_tree_opts opts = total();
    expect(*state, &opts, "all:1882+0 >main:1500+0 >>leaf:1500+1500 >a;b:250+0 >>leaf:250+250 >?:132+132 ");
}

static void with_lines_one_function_has_a_node_for_each_line(void **state)
{
    coffer_mlyze_tree_opts opts = total();
    opts.lines = true;
    expect(*state, &opts,
           "all:1882+0 >main (main.c:5):1000+0 >>leaf (lib/leaf.c:9):1000+1000 >main (main.c:6):500+0 "
           ">>leaf (lib/leaf.c:9):500+500 >a;b:250+0 >>leaf (lib/leaf.c:9):250+250 >?:132+132 ");
}

static void an_inverted_tree_begins_with_the_innermost_frames(void **state)
{
    coffer_mlyze_tree_opts opts = total();
    opts.inverted = true;
    expect(*state, &opts, "all:1882+0 >leaf:1750+0 >>main:1500+1500 >>a;b:250+250 >?:132+132 ");
}

static void deeper_frames_count_with_the_last_one_kept(void **state)
{
    coffer_mlyze_tree_opts opts = total();
    opts.max_depth = 1;
    expect(*state, &opts, "all:1882+0 >main:1500+1500 >a;b:250+250 >?:132+132 ");
    opts.max_depth = 0;
    expect(*state, &opts, "all:1882+1882 ");
}

static void the_measure_decides_which_stacks_are_in_the_tree(void **state)
{
    coffer_mlyze_tree_opts opts = total();
    opts.measure = COFFER_MLYZE_MEASURE_LIVE;
    expect(*state, &opts, "all:882+0 >main:500+0 >>leaf:500+500 >a;b:250+0 >>leaf:250+250 >?:132+132 ");
    opts.measure = COFFER_MLYZE_MEASURE_TEMPORARY;
    expect(*state, &opts, "all:0+0 ");
    opts.struct_size = 0;
    coffer_mlyze_tree *tree = NULL;
    const fixture *made = *state;
    assert_int_equal(coffer_mlyze_tree_new(&tree, made->trace, made->stats, &opts, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    assert_null(tree);
}

static void rows_and_totals_agree_under_every_measure(void **state)
{
    const fixture *made = *state;
    const coffer_mlyze_totals *totals = coffer_mlyze_stats_totals(made->stats);
    for (int i = COFFER_MLYZE_MEASURE_PEAK; i <= COFFER_MLYZE_MEASURE_TEMPORARY; i++) {
        uint64_t bytes = 0, allocs = 0;
        for (size_t row = 0; row < coffer_mlyze_stats_stack_count(made->stats); row++) {
            bytes += coffer_mlyze_stack_row_bytes(coffer_mlyze_stats_stack_at(made->stats, row),
                                                  (coffer_mlyze_measure)i);
            allocs += coffer_mlyze_stack_row_allocs(coffer_mlyze_stats_stack_at(made->stats, row),
                                                    (coffer_mlyze_measure)i);
        }
        assert_int_equal(bytes, coffer_mlyze_totals_bytes(totals, (coffer_mlyze_measure)i));
        assert_int_equal(allocs, coffer_mlyze_totals_allocs(totals, (coffer_mlyze_measure)i));
    }
    assert_null(coffer_mlyze_stats_stack_at(made->stats, coffer_mlyze_stats_stack_count(made->stats)));
}

static void only_a_steady_rise_is_growth(void **state)
{
    (void)state;
    coffer_mlyze_stack_row row = { .growth_bytes_per_s = 10, .growth_fit = COFFER_MLYZE_GROWTH_FIT_MIN };
    assert_true(coffer_mlyze_stack_row_is_growing(&row));
    row.growth_fit = 0.49;
    assert_false(coffer_mlyze_stack_row_is_growing(&row));
    row = (coffer_mlyze_stack_row){ .growth_bytes_per_s = -1, .growth_fit = 1 };
    assert_false(coffer_mlyze_stack_row_is_growing(&row));
}

/* ---- Suppressions ---- */

static bool hides(const fixture *made, const char *pattern, size_t stack)
{
    coffer_mlyze_suppressions *list = NULL;
    assert_int_equal(coffer_mlyze_suppressions_new(&list, NULL), COFFER_OK);
    assert_false(coffer_mlyze_suppressions_match(list, made->trace, stack));
    assert_int_equal(coffer_mlyze_suppressions_add(list, pattern, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_suppressions_count(list), 1);
    bool found = coffer_mlyze_suppressions_match(list, made->trace, stack);
    coffer_mlyze_suppressions_free(list);
    return found;
}

static void a_pattern_hides_stacks_by_function_and_file(void **state)
{
    const fixture *made = *state;
    assert_true(hides(made, "main", 0));
    assert_true(hides(made, "ai", 0)); /* anywhere, without a star */
    assert_true(hides(made, "lib/*", 2));
    assert_false(hides(made, "ai*", 0));
    assert_false(hides(made, "main.c", 2));
    assert_false(hides(made, "*", 3)); /* no frames, no names */
    assert_false(hides(made, "*", COFFER_INDEX_NONE));
}

static void a_file_of_patterns_may_have_comments_and_prefixes(void **state)
{
    static const char text[] = "# known\n\n  leak:ai*  \r\nleak:# not a comment here\n\tmain.c";
    const fixture *made = *state;
    coffer_mlyze_suppressions *list = NULL;
    coffer_source *src = NULL;
    assert_int_equal(coffer_mlyze_suppressions_new(&list, NULL), COFFER_OK);
    assert_int_equal(coffer_source_from_memory(&src, text, sizeof text - 1, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_suppressions_add_file(list, src, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_suppressions_count(list), 2);
    assert_true(coffer_mlyze_suppressions_match(list, made->trace, 0));
    assert_false(coffer_mlyze_suppressions_match(list, made->trace, 2));
    coffer_source_close(src);
    coffer_mlyze_suppressions_free(list);
}

/* ---- Metadata and frames ---- */

static void text_of_the_metadata_is_found_by_key(void **state)
{
    const fixture *made = *state;
    assert_string_equal(coffer_mlyze_metadata_text(made->trace, "command"), "run it");
    assert_null(coffer_mlyze_metadata_text(made->trace, "pid"));
    assert_null(coffer_mlyze_metadata_text(made->trace, "host"));
}

static void a_frame_is_named_by_what_is_known(void **state)
{
    const fixture *made = *state;
    char text[16];
    size_t depth;
    const coffer_mlyze_frame *frame = coffer_mlyze_frames(&depth, made->trace, 0);
    assert_int_equal(coffer_mlyze_frame_text(text, sizeof text, made->trace, frame, false), 4);
    assert_string_equal(text, "leaf");
    assert_int_equal(coffer_mlyze_frame_text(text, sizeof text, made->trace, frame, true), 19);
    assert_string_equal(text, "leaf (lib/leaf."); /* cut to the room */
    coffer_mlyze_frame nameless = { 0, 3, 77 }, unknown = { 77, 3, 77 };
    coffer_mlyze_frame_text(text, sizeof text, made->trace, &nameless, false);
    assert_string_equal(text, "main.c:3");
    coffer_mlyze_frame_text(text, sizeof text, made->trace, &unknown, true);
    assert_string_equal(text, "?");
    assert_null(coffer_mlyze_frames(&depth, made->trace, 4));
    assert_int_equal(depth, 0);
    assert_int_equal(coffer_mlyze_stack_id(made->trace, 4), COFFER_MLYZE_NO_STACK);
}

static void focus_and_ignore_select_stacks(void **state)
{
    const fixture *made = *state;
    coffer_mlyze_tree_opts opts = COFFER_MLYZE_TREE_OPTS_INIT;
    coffer_mlyze_places_opts places_opts = COFFER_MLYZE_PLACES_OPTS_INIT;
    coffer_mlyze_suppressions *focus = NULL, *ignore = NULL;
    coffer_mlyze_tree *tree = NULL;
    coffer_mlyze_places *places = NULL;
    assert_int_equal(coffer_mlyze_suppressions_new(&focus, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_suppressions_new(&ignore, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_suppressions_add(focus, "leaf", NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_suppressions_add(ignore, "main", NULL), COFFER_OK);
    opts.measure = COFFER_MLYZE_MEASURE_TOTAL;
    opts.focus = focus;
    opts.ignore = ignore;
    assert_int_equal(coffer_mlyze_tree_new(&tree, made->trace, made->stats, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_tree_count(tree), 3); /* all, a;b, leaf */
    assert_int_equal(coffer_mlyze_tree_at(tree, 0)->bytes, 250);
    coffer_mlyze_tree_free(tree);
    places_opts.focus = focus;
    places_opts.ignore = ignore;
    assert_int_equal(coffer_mlyze_places_select(&places, made->trace, made->stats, &places_opts, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mlyze_places_count(places), 2);
    assert_int_equal(coffer_mlyze_places_at(places, 0)->id, 2);
    assert_int_equal(coffer_mlyze_places_at(places, 0)->allocated_bytes, 250);
    coffer_mlyze_places_free(places);
    coffer_mlyze_suppressions_free(focus);
    coffer_mlyze_suppressions_free(ignore);
}

static void two_trees_become_one_with_both_amounts(void **state)
{
    const fixture *made = *state;
    coffer_mlyze_tree_opts opts = COFFER_MLYZE_TREE_OPTS_INIT;
    coffer_mlyze_tree *total = NULL, *live = NULL, *both = NULL;
    opts.measure = COFFER_MLYZE_MEASURE_TOTAL;
    assert_int_equal(coffer_mlyze_tree_new(&total, made->trace, made->stats, &opts, NULL), COFFER_OK);
    opts.measure = COFFER_MLYZE_MEASURE_LIVE;
    assert_int_equal(coffer_mlyze_tree_new(&live, made->trace, made->stats, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_tree_diff(&both, total, live, NULL), COFFER_OK);
    const coffer_mlyze_tree_node *root = coffer_mlyze_tree_at(both, 0);
    assert_int_equal(root->before_bytes, 1882);
    assert_int_equal(root->after_bytes, 882);
    assert_int_equal(root->bytes, 1882); /* room for the larger */
    const coffer_mlyze_tree_node *first = coffer_mlyze_tree_at(both, root->first_child);
    assert_string_equal(first->name, "main");
    assert_string_equal(first->place, "main.c");
    assert_int_equal(first->before_bytes, 1500);
    assert_int_equal(first->after_bytes, 500);
    coffer_mlyze_tree_free(both);
    coffer_mlyze_tree_free(total);
    coffer_mlyze_tree_free(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_stacks_are_one_branch_and_the_largest_comes_first),
        cmocka_unit_test(with_lines_one_function_has_a_node_for_each_line),
        cmocka_unit_test(an_inverted_tree_begins_with_the_innermost_frames),
        cmocka_unit_test(focus_and_ignore_select_stacks),
        cmocka_unit_test(two_trees_become_one_with_both_amounts),
        cmocka_unit_test(deeper_frames_count_with_the_last_one_kept),
        cmocka_unit_test(the_measure_decides_which_stacks_are_in_the_tree),
        cmocka_unit_test(rows_and_totals_agree_under_every_measure),
        cmocka_unit_test(only_a_steady_rise_is_growth),
        cmocka_unit_test(a_pattern_hides_stacks_by_function_and_file),
        cmocka_unit_test(a_file_of_patterns_may_have_comments_and_prefixes),
        cmocka_unit_test(text_of_the_metadata_is_found_by_key),
        cmocka_unit_test(a_frame_is_named_by_what_is_known),
    };
    return cmocka_run_group_tests_name("mlyze_tree", tests, open_fixture, close_fixture);
}
