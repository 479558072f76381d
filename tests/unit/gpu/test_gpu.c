/* The calls for GPUs over the emulated module: the templates of the kernels against the reference decoders,
 * and loading. */
#include "base/elements.h"
#include "coffer/coffer.h"
#include "emulation.h"
#include "quant/quant.h"
#include "support/model.h"
#include "support/temp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const coffer_dtype types[COFFER__QUANT_TYPE_COUNT] = {
    COFFER_DTYPE_Q8, COFFER_DTYPE_Q4, COFFER_DTYPE_K6,   COFFER_DTYPE_K4,
    COFFER_DTYPE_K3, COFFER_DTYPE_K2, COFFER_DTYPE_INT8, COFFER_DTYPE_INT4,
};
static const coffer_dtype outputs[] = { COFFER_DTYPE_F32, COFFER_DTYPE_F16, COFFER_DTYPE_BF16 };
static const uint64_t sizes[] = { 1, 31, 32, 33, 255, 256, 257, 320, 512 };
#define SIZE_COUNT (sizeof sizes / sizeof *sizes)
#define SENTINEL 0xA5

static uint64_t seed = 88172645463325252u;

static uint32_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32);
}

/* A payload of exactly its size, `shift` bytes past an aligned address: memory is what free() gets. */
typedef struct test_payload {
    coffer_quant_tensor tensor;
    coffer__quant_layout layout;
    uint8_t *memory;
} test_payload;

static test_payload make_payload(coffer_dtype dtype, uint64_t rows, uint64_t cols, bool activations,
                                 size_t shift)
{
    test_payload made = { .tensor = COFFER_QUANT_TENSOR_INIT };
    uint64_t dims[2] = { rows, cols };
    assert_int_equal(coffer__quant_plan(&made.layout, dtype, 2, dims, activations, NULL), COFFER_OK);
    size_t size = (size_t)made.layout.size;
    made.memory = malloc(size + shift);
    assert_non_null(made.memory);
    uint8_t *payload = made.memory + shift;
    for (size_t i = 0; i < size; i++)
        payload[i] = (uint8_t)next_random();
    coffer__quant_region scales = made.layout.regions[COFFER__QUANT_SCALES];
    if (made.layout.type->family == COFFER__QUANT_WHOLE) {
        float factors[2] = { 0.0123f, 2.5f };
        memcpy(payload + scales.offset, &factors[0], sizeof factors[0]);
        if (activations)
            memcpy(payload + made.layout.regions[COFFER__QUANT_SUBS].offset, &factors[1], sizeof factors[1]);
    } else {
        for (uint64_t i = 1; i < scales.size; i += 2)
            payload[scales.offset + i] &= 0xAF; /* finite, of both signs, subnormal ones too */
    }
    made.tensor.dtype = dtype;
    made.tensor.rows = rows;
    made.tensor.cols = cols;
    made.tensor.activations = activations;
    made.tensor.payload = payload;
    made.tensor.size = size;
    return made;
}

/* ---- Decoding ---- */

static void decode_by_reference(uint8_t *out, coffer_dtype as, const test_payload *from, uint64_t first,
                                uint64_t count)
{
    float row[512];
    for (uint64_t i = 0; i < count; i++) {
        coffer__quant_run run = coffer__quant_run_of_row(&from->layout, from->tensor.payload, first + i);
        coffer__quant_reference.decode_f32[from->layout.type->index](row, &run);
        coffer__elements_convert(out + i * from->layout.cols * coffer_dtype_size(as), as, row,
                                 COFFER_DTYPE_F32, (size_t)from->layout.cols);
    }
}

/* shift : of the payload in bytes, and of the output in elements. */
static void check_decode(const test_payload *from, coffer_dtype as, uint64_t first, uint64_t count,
                         size_t shift)
{
    coffer_error err = COFFER_ERROR_INIT;
    size_t width = coffer_dtype_size(as), size = (size_t)(count * from->layout.cols) * width;
    uint8_t *expected = malloc(size), *memory = malloc(size + (2 + shift) * width);
    assert_non_null(expected);
    assert_non_null(memory);
    memset(memory, SENTINEL, size + (2 + shift) * width);
    uint8_t *out = memory + shift * width;
    decode_by_reference(expected, as, from, first, count);
    if (coffer_cuda_decode(out, as, &from->tensor, first, count, NULL, &err))
        fail_msg("%s", err.text);
    assert_memory_equal(out, expected, size);
    for (size_t i = 0; i < width; i++) {
        assert_int_equal(out[size + i], SENTINEL);
        assert_true(shift == 0 || memory[i] == SENTINEL);
    }
    free(memory);
    free(expected);
}

static void decoded_bits_equal_the_reference(void **state)
{
    (void)state;
    for (size_t type = 0; type < COFFER__QUANT_TYPE_COUNT; type++) {
        for (size_t i = 0; i < SIZE_COUNT; i++) {
            bool whole = types[type] == COFFER_DTYPE_INT8 || types[type] == COFFER_DTYPE_INT4;
            test_payload plain = make_payload(types[type], 5, sizes[i], false, 0);
            test_payload shifted = make_payload(types[type], 5, sizes[i], whole, 1);
            for (size_t as = 0; as < 3; as++) {
                check_decode(&plain, outputs[as], 0, 5, 0);
                check_decode(&plain, outputs[as], 1, 3, 0);
                check_decode(&plain, outputs[as], 0, 5, 1);
                check_decode(&shifted, outputs[as], 2, 3, 0);
            }
            free(plain.memory);
            free(shifted.memory);
        }
    }
}

static void a_decode_call_is_checked_before_anything_runs(void **state)
{
    test_payload from = make_payload(COFFER_DTYPE_Q4, 4, 64, false, 0);
    uint16_t out[4 * 64];
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    assert_int_equal(coffer_cuda_decode(out, COFFER_DTYPE_F16, &from.tensor, 3, 2, NULL, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_string_equal(err.text, "2 rows starting at 3 requested, the tensor has 4");
    assert_int_equal(coffer_cuda_decode(out, COFFER_DTYPE_I8, &from.tensor, 0, 4, NULL, &err),
                     COFFER_E_UNSUPPORTED);
    assert_int_equal(coffer_cuda_decode(NULL, COFFER_DTYPE_F16, &from.tensor, 0, 4, NULL, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_cuda_decode((uint8_t *)out + 1, COFFER_DTYPE_F16, &from.tensor, 0, 1, NULL, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_cuda_decode(NULL, COFFER_DTYPE_F16, &from.tensor, 4, 0, NULL, &err), COFFER_OK);
    from.tensor.size--;
    assert_int_equal(coffer_cuda_decode(out, COFFER_DTYPE_F16, &from.tensor, 0, 4, NULL, &err),
                     COFFER_E_INVALID_ARGUMENT);
    from.tensor.size++;
    from.tensor.payload = NULL;
    assert_int_equal(coffer_cuda_decode(out, COFFER_DTYPE_F16, &from.tensor, 0, 4, NULL, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_string_equal(err.text, "the payload is NULL");
    free(from.memory);
}

/* ---- Products ---- */

#define VECTORS 3

static void check_products(const test_payload *from)
{
    uint64_t rows = from->layout.rows, cols = from->layout.cols;
    float *x = malloc((size_t)(VECTORS * cols) * sizeof *x);
    float *weights = malloc((size_t)(rows * cols) * sizeof *weights);
    float y[5 * VECTORS], by_vector[5 * VECTORS];
    assert_non_null(x);
    assert_non_null(weights);
    for (uint64_t i = 0; i < VECTORS * cols; i++)
        x[i] = (float)(int32_t)next_random() * (i % 16 ? 0x1p-31f : 0x1p-21f);
    decode_by_reference((uint8_t *)weights, COFFER_DTYPE_F32, from, 0, rows);
    assert_int_equal(coffer_cuda_matmul(y, &from->tensor, x, VECTORS, false, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_cuda_matmul(by_vector, &from->tensor, x, VECTORS, true, NULL, NULL), COFFER_OK);
    for (uint64_t row = 0; row < rows; row++) {
        for (uint64_t vector = 0; vector < VECTORS; vector++) {
            double sum = 0, magnitude = 0;
            for (uint64_t col = 0; col < cols; col++) {
                double part = (double)weights[row * cols + col] * (double)x[vector * cols + col];
                sum += part;
                magnitude += fabs(part);
            }
            float found = y[row * VECTORS + vector];
            assert_true(fabs(sum - (double)found) <= ((double)cols / 8 + 32) * 0x1p-24 * magnitude);
            assert_true(found == by_vector[vector * rows + row]);
        }
    }
    free(x);
    free(weights);
}

static void products_are_within_the_bound(void **state)
{
    (void)state;
    for (size_t type = 0; type < COFFER__QUANT_TYPE_COUNT; type++) {
        for (size_t i = 0; i < SIZE_COUNT; i++) {
            bool whole = types[type] == COFFER_DTYPE_INT8 || types[type] == COFFER_DTYPE_INT4;
            test_payload plain = make_payload(types[type], 5, sizes[i], false, 0);
            test_payload shifted = make_payload(types[type], 5, sizes[i], whole, 1);
            check_products(&plain);
            check_products(&shifted);
            free(plain.memory);
            free(shifted.memory);
        }
    }
}

static void numbers_that_are_not_finite_stay_so(void **state)
{
    test_payload from = make_payload(COFFER_DTYPE_K4, 1, 256, false, 0);
    float x[512], y[2];
    (void)state;
    for (size_t i = 0; i < 512; i++)
        x[i] = i == 7 ? INFINITY : 1e30f;
    assert_int_equal(coffer_cuda_matmul(y, &from.tensor, x, 2, false, NULL, NULL), COFFER_OK);
    assert_true(!isfinite(y[0]));
    assert_true(isfinite(y[1]) != 0);
    memset(x, 0, sizeof x);
    assert_int_equal(coffer_cuda_matvec(y, &from.tensor, x, NULL, NULL), COFFER_OK);
    assert_true(y[0] == 0.0f);
    free(from.memory);
}

static void a_product_call_is_checked_before_anything_runs(void **state)
{
    test_payload from = make_payload(COFFER_DTYPE_Q8, 4, 64, false, 0);
    coffer_error err = COFFER_ERROR_INIT;
    float x[64] = { 0 }, y[4];
    (void)state;
    assert_int_equal(coffer_cuda_matvec(y, &from.tensor, NULL, NULL, &err), COFFER_E_INVALID_ARGUMENT);
    assert_string_equal(err.text, "x is NULL");
    assert_int_equal(coffer_cuda_matvec(NULL, &from.tensor, x, NULL, &err), COFFER_E_INVALID_ARGUMENT);
    assert_string_equal(err.text, "y is NULL");
    assert_int_equal(coffer_cuda_matmul(NULL, &from.tensor, NULL, 0, false, NULL, &err), COFFER_OK);
    from.tensor.size--;
    assert_int_equal(coffer_cuda_matvec(y, &from.tensor, x, NULL, &err), COFFER_E_INVALID_ARGUMENT);
    from.tensor.size = 0;
    from.tensor.cols = 0;
    assert_int_equal(coffer_cuda_matvec(y, &from.tensor, x, NULL, &err), COFFER_E_INVALID_ARGUMENT);
    free(from.memory);
}

/* ---- Loading ---- */

#define LOADED ((size_t)37 * 1000 * 1000 + 13)

static coffer_tensors *open_model(const char *path, uint8_t **bytes)
{
    coffer_mcf_writer *writer;
    coffer_tensors *set;
    uint64_t dims[1] = { LOADED };
    *bytes = malloc(LOADED);
    assert_non_null(*bytes);
    for (size_t i = 0; i < LOADED; i++)
        (*bytes)[i] = (uint8_t)(i * 2654435761u >> 24);
    assert_int_equal(coffer_mcf_writer_create(&writer, path, NULL, NULL), COFFER_OK);
    assert_int_equal(model_add(writer, "empty", COFFER_DTYPE_U8, 1, (uint64_t[]){ 0 }, "", NULL), COFFER_OK);
    assert_int_equal(model_add(writer, "w", COFFER_DTYPE_U8, 1, dims, *bytes, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_open_path(&set, path, NULL, NULL), COFFER_OK);
    return set;
}

static int count_steps(void *context, uint64_t done, uint64_t total)
{
    int *left = context;
    assert_true(done <= total && total == LOADED);
    return (*left)-- <= 0;
}

static void a_tensor_is_loaded_in_pieces_and_verified(void **state)
{
    const char *path = temp_path(temp_folder, "model.mcf");
    coffer_error err = COFFER_ERROR_INIT;
    uint8_t *bytes, *out = malloc(LOADED);
    coffer_tensors *set = open_model(path, &bytes);
    int steps = 100;
    coffer_progress progress = { sizeof progress, count_steps, &steps };
    coffer_cuda_load_opts opts;
    (void)state;
    coffer_cuda_load_opts_init(&opts, sizeof opts);
    opts.threads = 2;
    opts.progress = &progress;
    assert_non_null(out);
    assert_int_equal(coffer_cuda_load(NULL, 0, set, 0, NULL, &err), COFFER_OK);
    assert_int_equal(coffer_cuda_load(out, LOADED, set, 1, &opts, &err), COFFER_OK);
    assert_memory_equal(out, bytes, LOADED);
    assert_in_range(steps, 90, 98);
    steps = 1;
    assert_int_equal(coffer_cuda_load(out, LOADED, set, 1, &opts, &err), COFFER_E_CANCELLED);
    assert_int_equal(coffer_cuda_load(out, LOADED - 1, set, 1, NULL, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_cuda_load(out, LOADED, set, 2, NULL, &err), COFFER_E_INVALID_ARGUMENT);
    for (int after = 0; after < 4; after++) {
        emulation_fails_after = after;
        coffer_status status = coffer_cuda_load(out, LOADED, set, 1, NULL, &err);
        assert_int_equal(status, after < 2 ? COFFER_E_NO_MEMORY : COFFER_E_IO);
        emulation_fails_after = -1;
    }
    uint64_t offset = coffer_tensors_at(set, 1)->offset;
    coffer_tensors_close(set);
    size_t len;
    uint8_t *file = temp_read(path, &len);
    file[offset + LOADED / 2] ^= 1;
    temp_write(path, file, len);
    assert_int_equal(coffer_tensors_open_path(&set, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_cuda_load(out, LOADED, set, 1, NULL, &err), COFFER_E_BAD_CHECKSUM);
    coffer_tensors_close(set);
    free(file);
    free(bytes);
    free(out);
}

static void devices_are_counted(void **state)
{
    uint32_t count = 0;
    (void)state;
    assert_int_equal(coffer_cuda_device_count(&count, NULL), COFFER_OK);
    assert_int_equal(count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoded_bits_equal_the_reference),
        cmocka_unit_test(a_decode_call_is_checked_before_anything_runs),
        cmocka_unit_test(products_are_within_the_bound),
        cmocka_unit_test(numbers_that_are_not_finite_stay_so),
        cmocka_unit_test(a_product_call_is_checked_before_anything_runs),
        cmocka_unit_test(a_tensor_is_loaded_in_pieces_and_verified),
        cmocka_unit_test(devices_are_counted),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
