/* The worked example of docs/formats/mlyze.md: every number that the page gives must be true. */
#include "coffer/coffer.h"
#include "support/doc_page.h"
#include "support/trace.h"

#include <stdlib.h>
#include <string.h>

#define PAGE COFFER_SOURCE_ROOT "/docs/formats/mlyze.md"

typedef struct doc_example {
    doc_dump dump;
    coffer_source *source;
    coffer_mlyze *trace;
    coffer_mlyze_events events;
    size_t blocks;
} doc_example;

static int set_up(void **state)
{
    doc_example *example = calloc(1, sizeof *example);
    assert_non_null(example);
    doc_parse_dump(&example->dump, PAGE);
    assert_int_equal(coffer_source_from_memory(&example->source, example->dump.bytes, example->dump.size,
                                               NULL),
                     COFFER_OK);
    example->trace = trace_open(example->source, NULL);
    example->events = trace_read_all(example->trace);
    assert_int_equal(coffer_mlyze_load_index(&example->blocks, example->trace, NULL, NULL), COFFER_OK);
    *state = example;
    return 0;
}

static int tear_down(void **state)
{
    doc_example *example = *state;
    trace_columns_free(&example->events);
    coffer_mlyze_close(example->trace);
    coffer_source_close(example->source);
    free(example);
    return 0;
}

static void every_row_of_the_byte_table_agrees_with_the_dump(void **state)
{
    const doc_example *example = *state;
    assert_true(doc_check_byte_table(PAGE, &example->dump) >= 29);
}

static uint64_t fact(const void *context, const char *name)
{
    const doc_example *example = context;
    size_t depth;
    const struct {
        const char *name;
        uint64_t value;
    } facts[] = {
        { "file size", example->dump.size },
        { "events", example->events.count },
        { "blocks", example->blocks },
        { "stacks", coffer_mlyze_stack_count(example->trace) },
        { "line of the innermost frame", coffer_mlyze_frames(&depth, example->trace, 0)->line },
        { "size of the allocation", example->events.size[0] },
        { "time of the last event", example->events.time[2] },
        { "live bytes before the block", coffer_mlyze_index_at(example->trace, 0)->live_bytes },
        { "high-water bytes in the block", coffer_mlyze_index_at(example->trace, 0)->high_bytes },
        { "most allocations live in the block", coffer_mlyze_index_at(example->trace, 0)->high_allocs },
    };
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (strcmp(facts[i].name, name) == 0)
            return facts[i].value;
    fail_msg("the page gives a fact that the test does not know: %s", name);
    return 0;
}

static void every_fact_is_what_the_library_says(void **state)
{
    assert_int_equal(doc_check_facts(PAGE, fact, *state), 10);
}

static void check_has_nothing_to_say(void **state)
{
    const doc_example *example = *state;
    coffer_report *report = NULL;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, example->source, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_report_count(report), 0);
    coffer_report_free(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_byte_table_agrees_with_the_dump),
        cmocka_unit_test(every_fact_is_what_the_library_says),
        cmocka_unit_test(check_has_nothing_to_say),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
