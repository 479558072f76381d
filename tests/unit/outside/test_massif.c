#include "outside/profiles/massif.h"
#include "support/profile.h"

#include <stdlib.h>
#include <string.h>

#define HEAD "desc: --depth=30\ncmd: ./prog a b\ntime_unit: ms\n"
#define SNAPSHOT(number, time, heap, extra, tree)                                      \
    "#-----------\nsnapshot=" number "\n#-----------\ntime=" time "\nmem_heap_B=" heap \
    "\nmem_heap_extra_B=" extra "\nmem_stacks_B=0\nheap_tree=" tree "\n"
#define ROOT(children, bytes) \
    "n" children ": " bytes " (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"

static void a_tree_gives_its_leaves_as_stacks(void **state)
{
    (void)state;
    profile_write("a.massif",
                  HEAD SNAPSHOT("0", "0", "0", "0", "empty") SNAPSHOT("1", "7", "1000", "24", "peak")
                      ROOT("3",
                           "1000") " n1: 700 0x109190: grab (grow.c:9)\n"
                                   "  n0: 700 0x1091CA: main (grow.c:17)\n"
                                   " n0: 200 0x4E: ??? (in /usr/lib/libx.so)\n"
                                   " n0: 100 in 4 places, all below massif's threshold (1.00%)\n" SNAPSHOT(
                                       "2", "9", "300", "8", "empty"));
    profile_must("a.massif", "a.mlyze", NULL);
    profile_expect("a.mlyze", -1, -1, 1024, 308);
    assert_int_equal(profile_bytes("a.mlyze", "main;grab", "peak"), 700);
    assert_int_equal(profile_bytes("a.mlyze", "0x4E: ???", "peak"), 200);
    assert_int_equal(profile_bytes("a.mlyze", "[heap administration]", "peak"), 24);
    assert_int_equal(profile_bytes("a.mlyze", "[no details in this snapshot]", "leaks"), 300);
    assert_int_equal(profile_totals("a.mlyze").peak_time_us, 7000);
    assert_int_equal(profile_totals("a.mlyze").duration_us, 9000);
}

static void what_children_leave_belongs_to_their_parent(void **state)
{
    (void)state;
    profile_write("a.massif",
                  HEAD SNAPSHOT("0", "1", "1500", "0", "detailed")
                      ROOT("1", "1000") " n1: 900 0x1: grab (g.c:9)\n  n0: 200 0x2: main (g.c:17)\n");
    profile_must("a.massif", "a.mlyze", NULL);
    assert_int_equal(profile_bytes("a.mlyze", "main;grab", "leaks"), 200);
    assert_int_equal(profile_bytes("a.mlyze", "grab", "leaks"), 700);
    assert_int_equal(profile_bytes("a.mlyze", "[no details in this snapshot]", "leaks"), 600);
}

static void a_snapshot_with_a_tree_speaks_for_its_equal_before_it(void **state)
{
    (void)state;
    profile_write("a.massif", HEAD SNAPSHOT("0", "1", "50", "0", "empty")
                                  SNAPSHOT("1", "2", "50", "0", "empty") SNAPSHOT("2", "3", "50", "0", "peak")
                                      ROOT("1", "50") " n0: 50 0x1: main (g.c:1)\n" SNAPSHOT("3", "4", "0",
                                                                                             "0", "empty"));
    profile_must("a.massif", "a.mlyze", NULL);
    profile_expect("a.mlyze", 1, 50, 50, 0);
    assert_int_equal(profile_bytes("a.mlyze", "main", "peak"), 50);
}

static void seconds_may_have_a_fraction(void **state)
{
    (void)state;
    profile_write("a.massif",
                  "desc: heaptrack\ncmd: p\ntime_unit: s\n" SNAPSHOT("0", "0.005", "5", "0", "empty")
                      SNAPSHOT("1", "1.25", "9", "0", "empty"));
    profile_must("a.massif", "a.mlyze", NULL);
    assert_int_equal(profile_totals("a.mlyze").duration_us, 1250000);
}

static void damaged_text_is_refused_with_its_line(void **state)
{
    (void)state;
    const coffer_status bad = COFFER_E_BAD_VALUE;
    profile_refuses_text("b.massif", "desc: x\ncmd: y\n", COFFER_E_MISSING, "expected \"time_unit:\"");
    profile_refuses_text("b.massif", HEAD "snapshot=1\ntime=1\n", COFFER_E_TRUNCATED,
                         "expected \"mem_heap_B=\"");
    profile_refuses_text("b.massif", HEAD "snapshot=1\ntime=1\nmem_heap_B=99999999999999999999\n", bad,
                         "line 6");
    profile_refuses_text("b.massif", HEAD "snapshot=1\ntime=-1\n", bad, "line 5");
    profile_refuses_text("b.massif", HEAD "snapshot=1\ntime=nan\n", bad, "line 5");
    profile_refuses_text("b.massif", HEAD "snapshot=1\ntime=99999999999999999999\n", bad, "line 5");
    profile_refuses_text("b.massif", HEAD SNAPSHOT("0", "1", "5", "0", "whole"), bad, "heap_tree=empty");
    profile_refuses_text("b.massif", HEAD SNAPSHOT("0", "1", "5", "0", "peak") "n0 5\n", bad,
                         "a node of the tree");
    profile_refuses_text("b.massif",
                         HEAD SNAPSHOT("0", "1", "5", "0", "peak") ROOT("2", "5") " n0: 5 0x1: f (g.c:1)\n",
                         COFFER_E_TRUNCATED, "the tree of the snapshot is truncated");
    profile_refuses_text("b.massif", HEAD SNAPSHOT("0", "1", "5", "0", "peak") "n1152921504606846976: 5 x\n",
                         COFFER_E_TRUNCATED, "is truncated");
}

static void frames_that_are_named_again_and_again_are_bounded(void **state)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    coffer__buffer_printf(&text, HEAD);
    for (int snapshot = 0; snapshot < 40; snapshot++) {
        coffer__buffer_printf(&text, SNAPSHOT("0", "1", "5", "0", "peak"));
        for (int depth = 0; depth < 100; depth++)
            coffer__buffer_printf(&text, depth ? "n2: 1000 f\n n0: 1 g\n" : "n1: 1000 f\n");
        coffer__buffer_printf(&text, "n0: 5 f\n");
    }
    temp_write(temp_path(temp_folder, "deep.massif"), text.data, text.len);
    coffer__buffer_free(&text);
    limits.entries = 10000;
    assert_int_equal(profile_convert(&err, &limits, "deep.massif", "deep.mlyze", NULL), COFFER_E_LIMIT);
    assert_non_null(strstr(err.text, "each time they are named"));
}

static void an_exported_trace_has_its_peak_and_its_end_as_trees(void **state)
{
    (void)state;
    profile_sample("s.mlyze", 4000);
    coffer_mlyze_totals totals = profile_totals("s.mlyze");
    profile_must("s.mlyze", "s.massif", "snapshots", "20", "threshold", "0", NULL);
    profile_must("s.massif", "back.mlyze", NULL);
    profile_expect("back.mlyze", -1, -1, (int64_t)totals.peak_bytes, (int64_t)totals.live_bytes_at_end);
    profile_same("s.mlyze", "back.mlyze", "peak");
    profile_same("s.mlyze", "back.mlyze", "leaks");
}

static void small_parts_of_a_tree_are_summed_up(void **state)
{
    (void)state;
    profile_write("c.collapsed", "main;a 9000\nmain;b 40\nmain;c 30\nmain;d;e 20\n");
    profile_must("c.collapsed", "c.mlyze", NULL);
    profile_must("c.mlyze", "c.massif", NULL);
    char *text = profile_text("c.massif");
    assert_non_null(strstr(text, "\nheap_tree=peak\nn2: 9090 (heap allocation functions)"));
    assert_non_null(
        strstr(text, "\n n1: 9000 0x0: a\n  n0: 9000 0x0: main\n n0: 90 in 3 places, all below massif's "
                     "threshold (1.00%)\n"));
    free(text);
    profile_must("c.mlyze", "c.massif", "depth", "1", "threshold", "0", NULL);
    text = profile_text("c.massif");
    assert_non_null(strstr(text, "\n n0: 9000 0x0: a\n n0: 40 0x0: b\n n0: 30 0x0: c\n n0: 20 0x0: e\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_gives_its_leaves_as_stacks),
        cmocka_unit_test(what_children_leave_belongs_to_their_parent),
        cmocka_unit_test(a_snapshot_with_a_tree_speaks_for_its_equal_before_it),
        cmocka_unit_test(seconds_may_have_a_fraction),
        cmocka_unit_test(damaged_text_is_refused_with_its_line),
        cmocka_unit_test(frames_that_are_named_again_and_again_are_bounded),
        cmocka_unit_test(an_exported_trace_has_its_peak_and_its_end_as_trees),
        cmocka_unit_test(small_parts_of_a_tree_are_summed_up),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
