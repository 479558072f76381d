/* The worked example of docs/formats/mldf.md: every number that the page gives must be true. */
#include "coffer/coffer.h"
#include "support/doc_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE COFFER_SOURCE_ROOT "/docs/formats/mldf.md"

typedef struct doc_example {
    doc_dump dump;
    coffer_source *source;
    coffer_mldf *set;
} doc_example;

static int set_up(void **state)
{
    doc_example *example = calloc(1, sizeof *example);
    assert_non_null(example);
    doc_parse_dump(&example->dump, PAGE);
    assert_int_equal(coffer_source_from_memory(&example->source, example->dump.bytes, example->dump.size,
                                               NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mldf_open(&example->set, example->source, NULL, NULL), COFFER_OK);
    *state = example;
    return 0;
}

static int tear_down(void **state)
{
    doc_example *example = *state;
    coffer_mldf_close(example->set);
    coffer_source_close(example->source);
    free(example);
    return 0;
}

static void every_row_of_the_byte_table_agrees_with_the_dump(void **state)
{
    const doc_example *example = *state;
    assert_true(doc_check_byte_table(PAGE, &example->dump) >= 34);
}

static uint64_t absent_texts(const coffer_mldf *set)
{
    uint64_t absent = 0;
    for (uint64_t i = 0; i < coffer_mldf_sample_count(set); i++) {
        coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
        assert_int_equal(coffer_mldf_entry_at(&entry, set, i, coffer_mldf_find_field(set, "text"), NULL),
                         COFFER_OK);
        absent += !entry.present;
    }
    return absent;
}

static uint64_t fact(const void *context, const char *name)
{
    const doc_example *example = context;
    const coffer_mldf *set = example->set;
    coffer_bytes text = COFFER_BYTES_INIT;
    int64_t label;
    assert_int_equal(coffer_mldf_get_int(&label, set, 0, coffer_mldf_find_field(set, "label"), NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mldf_get_text(&text, set, 0, coffer_mldf_find_field(set, "text"), NULL),
                     COFFER_OK);
    const struct {
        const char *name;
        uint64_t value;
    } facts[] = {
        { "file size", example->dump.size },
        { "samples", coffer_mldf_sample_count(set) },
        { "fields", coffer_mldf_field_count(set) },
        { "descriptor stride", coffer_mldf_descriptor_stride(set) },
        { "row size", coffer_mldf_row_size(set) },
        { "label of sample 0", (uint64_t)label },
        { "bytes of text in sample 0", text.size },
        { "texts that are absent", absent_texts(set) },
    };
    coffer_free(text.data);
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

static void a_full_check_has_nothing_to_say(void **state)
{
    const doc_example *example = *state;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    opts.full = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, example->source, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_report_count(report), 0);
    coffer_report_free(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_byte_table_agrees_with_the_dump),
        cmocka_unit_test(every_fact_is_what_the_library_says),
        cmocka_unit_test(a_full_check_has_nothing_to_say),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
