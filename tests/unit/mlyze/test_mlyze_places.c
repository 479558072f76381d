#include "support/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* a calls a calls b; b alone; one that has no frames. */
static const char tables[] =
    "{\"stack_traces\": {\"0\": [{\"file_id\": 1, \"line\": 3, \"func_id\": 10}, {\"file_id\": 1, "
    "\"line\": 2, \"func_id\": 10}, {\"file_id\": 0, \"line\": 1, \"func_id\": 20}], \"1\": "
    "[{\"file_id\": 0, \"line\": 4, \"func_id\": 20}], \"2\": []}, \"files\": {\"0\": \"b.c\", "
    "\"1\": \"a.c\"}, \"functions\": {\"10\": \"a\", \"20\": \"b\", \"30\": \"never called\"}}";

typedef struct fixture {
    trace_builder built;
    coffer_source *src;
    coffer_mlyze *trace;
    coffer_mlyze_stats *stats;
} fixture;

static void fixture_open(fixture *made)
{
    trace_begin(&made->built, 0, tables);
    trace_alloc(&made->built, 1, 0x10, 100, 0, 1);
    trace_alloc(&made->built, 1, 0x20, 10, 1, 1);
    trace_free(&made->built, 1, 0x20);
    trace_alloc(&made->built, 1, 0x30, 1, 2, 1);
    trace_alloc(&made->built, 1, 0x40, 2, 555, 1);
    trace_finish(&made->built);
    made->src = trace_source(&made->built);
    made->trace = trace_open(made->src, NULL);
    assert_int_equal(coffer_mlyze_stats_new(&made->stats, made->trace, NULL, NULL), COFFER_OK);
}

static void fixture_close(fixture *done)
{
    coffer_mlyze_stats_free(done->stats);
    coffer_mlyze_close(done->trace);
    coffer_source_close(done->src);
    trace_dispose(&done->built);
}

static void functions_count_themselves_and_what_they_call_once(void **state)
{
    (void)state;
    fixture made;
    coffer_mlyze_places *places = NULL;
    fixture_open(&made);
    assert_int_equal(coffer_mlyze_places_new(&places, made.trace, made.stats, COFFER_MLYZE_BY_FUNCTION, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mlyze_places_count(places), 3);
    const coffer_mlyze_place_row *row = coffer_mlyze_places_at(places, 0);
    assert_int_equal(row->id, 10);
    assert_int_equal(row->allocs, 0);
    assert_int_equal(row->inclusive_allocs, 1);
    assert_int_equal(row->inclusive_allocated_bytes, 100);
    row = coffer_mlyze_places_at(places, 1);
    assert_int_equal(row->id, 20);
    assert_int_equal(row->allocs, 2);
    assert_int_equal(row->allocated_bytes, 110);
    assert_int_equal(row->live_bytes, 100);
    assert_int_equal(row->peak_bytes, 110);
    assert_int_equal(row->temporary_bytes, 10);
    assert_int_equal(row->inclusive_allocs, 2);
    assert_int_equal(row->inclusive_temporary_bytes, 10);
    row = coffer_mlyze_places_at(places, 2);
    assert_int_equal(row->id, UINT64_MAX);
    assert_int_equal(row->allocs, 2);
    assert_int_equal(row->inclusive_live_bytes, 3);
    coffer_mlyze_places_free(places);
    fixture_close(&made);
}

static void files_and_stacks_are_places_too(void **state)
{
    (void)state;
    fixture made;
    coffer_mlyze_places *places = NULL;
    fixture_open(&made);
    assert_int_equal(coffer_mlyze_places_new(&places, made.trace, made.stats, COFFER_MLYZE_BY_FILE, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mlyze_places_count(places), 3);
    assert_int_equal(coffer_mlyze_places_at(places, 0)->allocated_bytes, 110);
    assert_int_equal(coffer_mlyze_places_at(places, 1)->allocated_bytes, 0);
    assert_int_equal(coffer_mlyze_places_at(places, 1)->inclusive_allocs, 1);
    coffer_mlyze_places_free(places);
    assert_int_equal(coffer_mlyze_places_new(&places, made.trace, made.stats, COFFER_MLYZE_BY_STACK, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mlyze_places_count(places), 4);
    assert_int_equal(coffer_mlyze_places_at(places, 3)->id, 555);
    coffer_mlyze_places_free(places);
    places = NULL;
    assert_int_equal(coffer_mlyze_places_new(&places, made.trace, made.stats, (coffer_mlyze_by)9, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    assert_null(places);
    fixture_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_count_themselves_and_what_they_call_once),
        cmocka_unit_test(files_and_stacks_are_places_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
