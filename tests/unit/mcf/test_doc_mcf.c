/* The worked example of docs/formats/mcf.md: every number that the page gives must be true. */
#include "base/bytes.h"
#include "coffer/coffer.h"
#include "support/doc_page.h"
#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE COFFER_SOURCE_ROOT "/docs/formats/mcf.md"

enum { ROWS = 2, COLUMNS = 3 };
static const float values[ROWS * COLUMNS] = { 0.0f, 0.5f, 1.0f, 1.5f, 2.0f, -1.0f };

typedef struct doc_example {
    doc_dump dump;
    coffer_source *source;
    coffer_mcf *model;
} doc_example;

static int set_up(void **state)
{
    doc_example *example = calloc(1, sizeof *example);
    assert_non_null(example);
    doc_parse_dump(&example->dump, PAGE);
    assert_int_equal(coffer_source_from_memory(&example->source, example->dump.bytes, example->dump.size,
                                               NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mcf_open(&example->model, example->source, NULL, NULL), COFFER_OK);
    *state = example;
    return 0;
}

static int tear_down(void **state)
{
    doc_example *example = *state;
    coffer_mcf_close(example->model);
    coffer_source_close(example->source);
    free(example);
    return 0;
}

static void every_row_of_the_byte_table_agrees_with_the_dump(void **state)
{
    const doc_example *example = *state;
    assert_true(doc_check_byte_table(PAGE, &example->dump) >= 50);
}

static coffer_mcf_tensor tensor(const coffer_mcf *model, const char *name)
{
    return *coffer_mcf_tensor_at(model, coffer_mcf_find_tensor(model, name, strlen(name)));
}

static uint64_t fact(const void *context, const char *name)
{
    const doc_example *example = context;
    const coffer_mcf *model = example->model;
    const coffer_mcf_model_info *info = NULL;
    coffer_mcf_tensor embed = tensor(model, "embed");
    assert_int_equal(coffer_mcf_get_model_info(&info, model, NULL), COFFER_OK);
    assert_int_equal(info->kv_count, 1);
    assert_string_equal(info->kvs[0].key, "epoch");
    const struct {
        const char *name;
        uint64_t value;
    } facts[] = {
        { "file size", example->dump.size },
        { "sections", coffer_mcf_section_count(model) },
        { "tensors", coffer_mcf_tensor_count(model) },
        { "rows of embed", coffer_mcf_row_count(&embed) },
        { "columns of embed", coffer_mcf_row_elements(&embed) },
        { "bytes of embed", embed.size },
        { "offset of head", tensor(model, "head").offset },
        { "architecture", info->arch },
        { "value of epoch", info->kvs[0].u32 },
    };
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (strcmp(facts[i].name, name) == 0)
            return facts[i].value;
    fail_msg("the page gives a fact that the test does not know: %s", name);
    return 0;
}

static void every_fact_is_what_the_library_says(void **state)
{
    assert_int_equal(doc_check_facts(PAGE, fact, *state), 9);
}

static void both_tensors_hold_the_numbers(void **state)
{
    const doc_example *example = *state;
    float read[ROWS * COLUMNS];
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(coffer_mcf_read_rows_f32(read, example->model, i, 0, ROWS, NULL), COFFER_OK);
        assert_memory_equal(read, values, sizeof values);
    }
}

static void check_finds_no_error_and_no_warning(void **state)
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

static void add(coffer_mcf_writer *writer, const char *name)
{
    static const uint64_t dims[] = { ROWS, COLUMNS };
    const coffer_mcf_new_tensor new = {
        sizeof(coffer_mcf_new_tensor), COFFER_DTYPE_F32, name, strlen(name), 2, dims, NULL
    };
    assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &new, NULL), COFFER_OK);
    float stored[ROWS * COLUMNS];
    memcpy(stored, values, sizeof stored);
    coffer__swap_numbers(stored, sizeof stored[0], ROWS * COLUMNS);
    assert_int_equal(coffer_mcf_writer_write(writer, stored, sizeof stored, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_end_tensor(writer, NULL), COFFER_OK);
}

static void the_writer_lays_the_same_model_out_in_the_same_bytes(void **state)
{
    const doc_example *example = *state;
    const coffer_mcf_kv epoch = { sizeof(coffer_mcf_kv), COFFER_MCF_KV_U32, "epoch", 3, 0.0f, NULL, 0 };
    coffer_mcf_model_info info = COFFER_MCF_MODEL_INFO_INIT;
    coffer_mcf_writer *writer = NULL;
    char *folder = temp_make();
    const char *path = temp_path(folder, "tiny.mcf");
    info.arch = coffer_mcf_arch_by_name("llama");
    info.vocab_size = ROWS;
    info.hidden_size = COLUMNS;
    info.model_name = "tiny";
    info.kvs = &epoch;
    info.kv_count = 1;
    assert_int_equal(coffer_mcf_writer_create(&writer, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_set_model_info(writer, &info, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_add_section(writer, COFFER_MCF_CONFIG, 1, "{\"n\":1}", 7, NULL),
                     COFFER_OK);
    add(writer, "embed");
    add(writer, "head");
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    assert_true(temp_holds(path, example->dump.bytes, example->dump.size));
    temp_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_byte_table_agrees_with_the_dump),
        cmocka_unit_test(every_fact_is_what_the_library_says),
        cmocka_unit_test(both_tensors_hold_the_numbers),
        cmocka_unit_test(check_finds_no_error_and_no_warning),
        cmocka_unit_test(the_writer_lays_the_same_model_out_in_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
