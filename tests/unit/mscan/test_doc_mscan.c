/* The worked example of docs/formats/mscan.md: every number that the page gives must be true. */
#include "coffer/coffer.h"
#include "support/doc_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE COFFER_SOURCE_ROOT "/docs/formats/mscan.md"

typedef struct doc_example {
    doc_dump dump;
    coffer_source *source;
    coffer_mscan *scan;
    coffer_mscan_stats *stats;
} doc_example;

static int set_up(void **state)
{
    doc_example *example = calloc(1, sizeof *example);
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    assert_non_null(example);
    doc_parse_dump(&example->dump, PAGE);
    assert_int_equal(coffer_source_from_memory(&example->source, example->dump.bytes, example->dump.size,
                                               NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mscan_open(&example->scan, example->source, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_stats_new(&example->stats, example->scan, &query, NULL), COFFER_OK);
    *state = example;
    return 0;
}

static int tear_down(void **state)
{
    doc_example *example = *state;
    coffer_mscan_stats_free(example->stats);
    coffer_mscan_close(example->scan);
    coffer_source_close(example->source);
    free(example);
    return 0;
}

static void every_row_of_the_byte_table_agrees_with_the_dump(void **state)
{
    const doc_example *example = *state;
    assert_true(doc_check_byte_table(PAGE, &example->dump) >= 4 + 3 * 5);
}

static uint64_t fact(const void *context, const char *name)
{
    const doc_example *example = context;
    const coffer_mscan *scan = example->scan;
    const coffer_mscan_group *total = coffer_mscan_stats_total(example->stats);
    const struct {
        const char *name;
        uint64_t value;
    } facts[] = {
        { "file size", example->dump.size },
        { "records", coffer_mscan_record_count(scan) },
        { "parameters", coffer_mscan_param_count(scan) },
        { "sequences", coffer_mscan_sequence_count(scan) },
        { "total tokens", coffer_mscan_total_tokens(scan) },
        { "first token of sequence 1", coffer_mscan_sequence_at(scan, 1)->first_token },
        { "sum of activations", total->column[COFFER_MSCAN_ACTIVATION].sum },
        { "sum of gradient norms", total->column[COFFER_MSCAN_GRAD_NORM].sum },
    };
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (strcmp(facts[i].name, name) == 0)
            return facts[i].value;
    fail_msg("the page gives a fact that the test does not know: %s", name);
    return 0;
}

static void every_fact_is_what_the_library_says(void **state)
{
    assert_int_equal(doc_check_facts(PAGE, fact, *state), 8);
}

static void check_finds_no_error_and_no_warning(void **state)
{
    const doc_example *example = *state;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    opts.full = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, example->source, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    assert_int_equal(coffer_report_total(report, COFFER_WARNING), 0);
    coffer_report_free(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_byte_table_agrees_with_the_dump),
        cmocka_unit_test(every_fact_is_what_the_library_says),
        cmocka_unit_test(check_finds_no_error_and_no_warning),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
