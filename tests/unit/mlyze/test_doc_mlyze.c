/* The two worked examples of docs/formats/mlyze.md: every number that the page gives must be true. */
#include "coffer/coffer.h"
#include "support/doc_page.h"
#include "support/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE COFFER_SOURCE_ROOT "/docs/formats/mlyze.md"
#define ARCHIVE_HEADING "## An archive, byte by byte"

typedef struct doc_example {
    char path[512]; /* the part of the page that has this example */
    size_t least_rows;
    doc_dump dump;
    coffer_source *source;
    coffer_mlyze *trace;
    coffer_mlyze_events events;
    size_t blocks;
} doc_example;

/* Writes the part of the page before or after the heading of the second example to a file. */
static void split_page(doc_example *example, bool archive)
{
    size_t len;
    char *page = (char *)temp_read(PAGE, &len);
    assert_non_null(page);
    page = realloc(page, len + 1);
    assert_non_null(page);
    page[len] = '\0';
    char *second = strstr(page, ARCHIVE_HEADING);
    assert_non_null(second);
    snprintf(example->path, sizeof example->path, "%s",
             temp_path(temp_folder, archive ? "archive.md" : "blocks.md"));
    if (archive)
        temp_write(example->path, second, strlen(second));
    else
        temp_write(example->path, page, (size_t)(second - page));
    free(page);
    example->least_rows = archive ? 40 : 29;
}

static int set_up(void **state, bool archive)
{
    doc_example *example = calloc(1, sizeof *example);
    assert_non_null(example);
    temp_setup(state);
    split_page(example, archive);
    doc_parse_dump(&example->dump, example->path);
    assert_int_equal(coffer_source_from_memory(&example->source, example->dump.bytes, example->dump.size,
                                               NULL),
                     COFFER_OK);
    example->trace = trace_open(example->source, NULL);
    example->events = trace_read_all(example->trace);
    assert_int_equal(coffer_mlyze_load_index(&example->blocks, example->trace, NULL, NULL), COFFER_OK);
    *state = example;
    return 0;
}

static int set_up_blocks(void **state)
{
    return set_up(state, false);
}

static int set_up_archive(void **state)
{
    return set_up(state, true);
}

static int tear_down(void **state)
{
    doc_example *example = *state;
    trace_columns_free(&example->events);
    coffer_mlyze_close(example->trace);
    coffer_source_close(example->source);
    free(example);
    return temp_teardown(state);
}

static void every_row_of_the_byte_table_agrees_with_the_dump(void **state)
{
    const doc_example *example = *state;
    assert_true(doc_check_byte_table(example->path, &example->dump) >= example->least_rows);
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
    const doc_example *example = *state;
    assert_int_equal(doc_check_facts(example->path, fact, *state), 10);
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
    int failed = cmocka_run_group_tests_name("blocks", tests, set_up_blocks, tear_down);
    return failed + cmocka_run_group_tests_name("archive", tests, set_up_archive, tear_down);
}
