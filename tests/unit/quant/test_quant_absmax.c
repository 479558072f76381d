/* The method of the format's first program, against files that it wrote. */
#include "coffer/mcf.h"
#include "coffer/quant.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>

static coffer_mcf *open_model(coffer_source **src, const char *name)
{
    char path[512];
    coffer_mcf *model = NULL;
    snprintf(path, sizeof path, "%s/compat/mcf/%s.mcf", COFFER_TEST_DATA, name);
    assert_int_equal(coffer_source_open(src, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_open(&model, *src, NULL, NULL), COFFER_OK);
    return model;
}

static void compare_tensor(const coffer_mcf *plain, const coffer_mcf *quantized, size_t index)
{
    coffer_quant_encode_opts opts = COFFER_QUANT_ENCODE_OPTS_INIT;
    coffer_quant_tensor here = COFFER_QUANT_TENSOR_INIT;
    coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(quantized, index);
    size_t original = coffer_mcf_find_tensor(plain, tensor.name, tensor.name_len);
    float *values = malloc((size_t)tensor.elements * sizeof *values);
    uint8_t *stored = malloc((size_t)tensor.size), *payload = malloc((size_t)tensor.size);
    uint64_t size = 0;
    assert_true(values && stored && payload);
    assert_int_equal(coffer_mcf_read_rows_f32(values, plain, original, 0, tensor.dims[0], NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_read(stored, quantized, index, 0, (size_t)tensor.size, NULL), COFFER_OK);
    here.dtype = tensor.dtype;
    here.rows = tensor.dims[0];
    here.cols = tensor.dims[1];
    opts.method = COFFER_QUANT_ABSMAX;
    assert_int_equal(coffer_quant_size(&size, &here, NULL), COFFER_OK);
    assert_int_equal(size, tensor.size);
    assert_int_equal(coffer_quant_encode(payload, &here, values, &opts, NULL), COFFER_OK);
    assert_memory_equal(payload, stored, (size_t)tensor.size);
    free(values);
    free(stored);
    free(payload);
}

static void absmax_gives_the_bytes_of_the_first_program(void **state)
{
    static const char *const names[] = { "mantle-q8", "mantle-q4", "mantle-k6",
                                         "mantle-k4", "mantle-k3", "mantle-k2" };
    coffer_source *plain_src = NULL;
    coffer_mcf *plain = open_model(&plain_src, "mantle-pack");
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        coffer_source *src = NULL;
        coffer_mcf *model = open_model(&src, names[i]);
        size_t compared = 0;
        for (size_t t = 0; t < coffer_mcf_tensor_count(model); t++) {
            if (coffer_dtype_is_quantized(coffer_mcf_tensor_at(model, t)->dtype)) {
                compare_tensor(plain, model, t);
                compared++;
            }
        }
        assert_true(compared > 0);
        coffer_mcf_close(model);
        coffer_source_close(src);
    }
    coffer_mcf_close(plain);
    coffer_source_close(plain_src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absmax_gives_the_bytes_of_the_first_program),
    };
    return cmocka_run_group_tests_name("the first program's quantizer", tests, NULL, NULL);
}
