#include "base/elements.h"
#include "coffer/quant.h"
#include "support/temp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 130
#define COLS 300

static const coffer_dtype block_types[] = { COFFER_DTYPE_Q8, COFFER_DTYPE_Q4, COFFER_DTYPE_K6,
                                            COFFER_DTYPE_K4, COFFER_DTYPE_K3, COFFER_DTYPE_K2 };
#define TYPE_COUNT (sizeof block_types / sizeof *block_types)

static float *some_values(void)
{
    float *values = malloc(ROWS * COLS * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < ROWS * COLS; i++)
        values[i] = sinf((float)(i * i % 9973)) * 0.05f;
    return values;
}

/* A tensor that owns its payload. */
static coffer_quant_tensor encoded_tensor(coffer_dtype dtype)
{
    coffer_quant_tensor tensor = COFFER_QUANT_TENSOR_INIT;
    float *values = some_values();
    uint64_t size;
    tensor.dtype = dtype;
    tensor.rows = ROWS;
    tensor.cols = COLS;
    assert_int_equal(coffer_quant_size(&size, &tensor, NULL), COFFER_OK);
    void *payload = malloc((size_t)size);
    assert_non_null(payload);
    memset(payload, 0xEE, (size_t)size);
    assert_int_equal(coffer_quant_encode(payload, &tensor, values, NULL, NULL), COFFER_OK);
    tensor.payload = payload;
    tensor.size = (size_t)size;
    free(values);
    return tensor;
}

static void free_tensor(const coffer_quant_tensor *tensor)
{
    free((void *)(uintptr_t)tensor->payload);
}

static void narrow_types_are_the_rounded_float32(void **state)
{
    static const coffer_dtype narrow[] = { COFFER_DTYPE_F16, COFFER_DTYPE_BF16 };
    float *wide = malloc(ROWS * COLS * sizeof *wide);
    uint16_t *halves = malloc(ROWS * COLS * sizeof *halves), *rounded = malloc(ROWS * COLS * sizeof *rounded);
    (void)state;
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        coffer_quant_tensor tensor = encoded_tensor(block_types[t]);
        assert_int_equal(coffer_quant_decode(wide, COFFER_DTYPE_F32, &tensor, 1, ROWS - 1, NULL), COFFER_OK);
        for (size_t n = 0; n < 2; n++) {
            coffer__elements_convert(rounded, narrow[n], wide, COFFER_DTYPE_F32, (ROWS - 1) * COLS);
            assert_int_equal(coffer_quant_decode(halves, narrow[n], &tensor, 1, ROWS - 1, NULL), COFFER_OK);
            assert_memory_equal(halves, rounded, (ROWS - 1) * COLS * sizeof *halves);
        }
        free_tensor(&tensor);
    }
    free(wide);
    free(halves);
    free(rounded);
}

static void threads_do_not_change_a_product(void **state)
{
    enum { COLUMNS = 32 };
    coffer_quant_workers *workers = NULL;
    float *x = some_values(), alone[ROWS * COLUMNS], together[ROWS * COLUMNS];
    (void)state;
    assert_int_equal(
        coffer_quant_workers_new(&workers,
                                 &(coffer_quant_workers_opts){ sizeof(coffer_quant_workers_opts), 3 }, NULL),
        COFFER_OK);
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        coffer_quant_tensor tensor = encoded_tensor(block_types[t]);
        for (int inputs = COFFER_QUANT_INPUTS_F32; inputs <= COFFER_QUANT_INPUTS_INT8; inputs++) {
            coffer_quant_product_opts one = COFFER_QUANT_PRODUCT_OPTS_INIT, three = one;
            one.inputs = three.inputs = (coffer_quant_inputs)inputs;
            three.workers = workers;
            assert_int_equal(coffer_quant_matvec(alone, &tensor, x, &one, NULL), COFFER_OK);
            assert_int_equal(coffer_quant_matvec(together, &tensor, x, &three, NULL), COFFER_OK);
            assert_memory_equal(alone, together, ROWS * sizeof *alone);
            assert_int_equal(coffer_quant_matmul(alone, &tensor, x, COLUMNS, &one, NULL), COFFER_OK);
            assert_int_equal(coffer_quant_matmul(together, &tensor, x, COLUMNS, &three, NULL), COFFER_OK);
            assert_memory_equal(alone, together, sizeof alone);
        }
        free_tensor(&tensor);
    }
    coffer_quant_workers_free(workers);
    free(x);
}

static void what_cannot_be_done_is_refused_with_its_numbers(void **state)
{
    coffer_quant_tensor tensor = encoded_tensor(COFFER_DTYPE_K4), other = COFFER_QUANT_TENSOR_INIT;
    coffer_quant_encode_opts opts = COFFER_QUANT_ENCODE_OPTS_INIT;
    coffer_quant_product_opts product = COFFER_QUANT_PRODUCT_OPTS_INIT;
    float *values = some_values(), weights[COLS] = { 0 };
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t size;
    (void)state;
    values[7 * COLS + 9] = NAN;
    assert_int_equal(coffer_quant_encode((void *)(uintptr_t)tensor.payload, &tensor, values, NULL, &err),
                     COFFER_E_BAD_VALUE);
    assert_string_equal(err.text, "row 7, column 9 is NaN");
    values[7 * COLS + 9] = 0.0f;
    weights[3] = -1.0f;
    opts.weights = weights;
    assert_int_equal(coffer_quant_encode((void *)(uintptr_t)tensor.payload, &tensor, values, &opts, &err),
                     COFFER_E_BAD_VALUE);
    opts.method = COFFER_QUANT_CALIBRATED;
    assert_int_equal(coffer_quant_encode((void *)(uintptr_t)tensor.payload, &tensor, values, &opts, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_quant_decode(values, COFFER_DTYPE_F32, &tensor, ROWS, 1, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_quant_decode(values, COFFER_DTYPE_F64, &tensor, 0, 1, &err),
                     COFFER_E_UNSUPPORTED);
    product.inputs = (coffer_quant_inputs)2;
    assert_int_equal(coffer_quant_matvec(values, &tensor, values, &product, &err), COFFER_E_INVALID_ARGUMENT);
    assert_string_equal(err.text, "inputs is 2, not COFFER_QUANT_INPUTS_F32 or COFFER_QUANT_INPUTS_INT8");
    tensor.size--;
    assert_int_equal(coffer_quant_matvec(values, &tensor, values, NULL, &err), COFFER_E_INVALID_ARGUMENT);
    other.dtype = COFFER_DTYPE_F32;
    assert_int_equal(coffer_quant_size(&size, &other, &err), COFFER_E_BAD_VALUE);
    free_tensor(&tensor);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_types_are_the_rounded_float32),
        cmocka_unit_test(threads_do_not_change_a_product),
        cmocka_unit_test(what_cannot_be_done_is_refused_with_its_numbers),
    };
    return cmocka_run_group_tests_name("quantized tensors in memory", tests, NULL, NULL);
}
