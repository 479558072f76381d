/* The worked example of docs/formats/pycauset.md: every number that the page gives must be true. */
#include "coffer/coffer.h"
#include "support/doc_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE COFFER_SOURCE_ROOT "/docs/formats/pycauset.md"

typedef struct doc_example {
    doc_dump dump;
    coffer_source *source;
    coffer_pycauset *matrix;
    coffer_pycauset_history *history;
} doc_example;

static int set_up(void **state)
{
    doc_example *example = calloc(1, sizeof *example);
    assert_non_null(example);
    doc_parse_dump(&example->dump, PAGE);
    assert_int_equal(coffer_source_from_memory(&example->source, example->dump.bytes, example->dump.size,
                                               NULL),
                     COFFER_OK);
    assert_int_equal(coffer_pycauset_open(&example->matrix, example->source, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_pycauset_history_open(&example->history, example->source, NULL, NULL), COFFER_OK);
    *state = example;
    return 0;
}

static int tear_down(void **state)
{
    doc_example *example = *state;
    coffer_pycauset_history_close(example->history);
    coffer_pycauset_close(example->matrix);
    coffer_source_close(example->source);
    free(example);
    return 0;
}

static void every_row_of_the_byte_table_agrees_with_the_dump(void **state)
{
    const doc_example *example = *state;
    assert_true(doc_check_byte_table(PAGE, &example->dump) >= 20);
}

static uint64_t element(const coffer_pycauset *matrix, uint64_t row, uint64_t col)
{
    double real, imag;
    assert_int_equal(coffer_pycauset_get(&real, &imag, matrix, row, col, NULL), COFFER_OK);
    return (uint64_t)real;
}

static uint64_t fact(const void *context, const char *name)
{
    const doc_example *example = context;
    const coffer_pycauset_info *info = coffer_pycauset_get_info(example->matrix);
    const struct {
        const char *name;
        uint64_t value;
    } facts[] = {
        { "file size", example->dump.size },
        { "rows", info->rows },
        { "columns", info->cols },
        { "bytes the payload needs", info->payload_needed },
        { "active generation", info->generation },
        { "metadata blocks", coffer_pycauset_history_count(example->history) },
        { "element 1, 2", element(example->matrix, 1, 2) },
    };
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (strcmp(facts[i].name, name) == 0)
            return facts[i].value;
    fail_msg("the page gives a fact that the test does not know: %s", name);
    return 0;
}

static void every_fact_is_what_the_library_says(void **state)
{
    assert_int_equal(doc_check_facts(PAGE, fact, *state), 7);
}

static void the_label_is_that_of_the_active_generation(void **state)
{
    const doc_example *example = *state;
    const coffer_pycauset_value *label =
        coffer_pycauset_value_find(coffer_pycauset_metadata(example->matrix), "properties.label");
    assert_string_equal(coffer_pycauset_value_text(label, NULL), "hi");
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
        cmocka_unit_test(the_label_is_that_of_the_active_generation),
        cmocka_unit_test(check_finds_no_error_and_no_warning),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
