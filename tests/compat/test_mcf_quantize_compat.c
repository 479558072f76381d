/* The method of the format's first program: the same payloads and records, byte for byte. */
#include "coffer/coffer.h"
#include "support/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER COFFER_TEST_DATA "/compat/mcf/"

static void assert_same_tensor(const coffer_mcf *a, const coffer_mcf *b, size_t index)
{
    coffer_mcf_tensor x = *coffer_mcf_tensor_at(a, index), y = *coffer_mcf_tensor_at(b, index);
    assert_int_equal(x.name_len, y.name_len);
    assert_memory_equal(x.name, y.name, x.name_len);
    assert_int_equal(x.dtype, y.dtype);
    assert_int_equal(x.size, y.size);
    uint8_t *bytes = malloc(x.size), *others = malloc(y.size);
    assert_non_null(bytes);
    assert_non_null(others);
    assert_int_equal(coffer_mcf_read(bytes, a, index, 0, x.size, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_read(others, b, index, 0, y.size, NULL), COFFER_OK);
    assert_memory_equal(bytes, others, x.size);
    const coffer_mcf_quant *p = coffer_mcf_quant_at(a, index), *q = coffer_mcf_quant_at(b, index);
    assert_int_equal(p != NULL, q != NULL);
    if (p) {
        assert_int_equal(p->block_size, q->block_size);
        assert_int_equal(p->super_size, q->super_size);
        assert_true(p->min_clip == q->min_clip && p->max_clip == q->max_clip);
    }
    free(bytes);
    free(others);
}

static void compare(const char *type)
{
    char theirs[300], ours[300];
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), coffer_dtype_by_name(type), NULL };
    coffer_error err = COFFER_ERROR_INIT;
    opts.overwrite = true;
    snprintf(theirs, sizeof theirs, FOLDER "mantle-%s.mcf", type);
    snprintf(ours, sizeof ours, "%s/ours.mcf", temp_folder);
    opts.rules = &rule;
    opts.rule_count = 1;
    opts.method = COFFER_QUANT_ABSMAX;
    if (coffer_mcf_quantize(NULL, ours, FOLDER "hf-folder", &opts, &err))
        fail_msg("%s", err.text);
    coffer_source *sources[2] = { model_source(theirs), model_source(ours) };
    coffer_mcf *models[2] = { model_open(sources[0]), model_open(sources[1]) };
    assert_int_equal(coffer_mcf_tensor_count(models[0]), coffer_mcf_tensor_count(models[1]));
    for (size_t i = 0; i < coffer_mcf_tensor_count(models[0]); i++)
        assert_same_tensor(models[0], models[1], i);
    for (size_t i = 0; i < 2; i++) {
        coffer_mcf_close(models[i]);
        coffer_source_close(sources[i]);
    }
    model_assert_clean(ours);
}

static void absmax_gives_the_payloads_and_records_of_the_first_program(void **state)
{
    static const char *const types[] = { "q8", "q4", "k6", "k4", "k3", "k2" };
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        compare(types[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absmax_gives_the_payloads_and_records_of_the_first_program),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
