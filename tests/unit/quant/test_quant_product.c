#include "base/bytes.h"
#include "base/dtype.h"
#include "coffer/quant.h"
#include "quant/quant_rounded.h"
#include "support/temp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const coffer_dtype all_types[] = { COFFER_DTYPE_Q8,   COFFER_DTYPE_Q4,  COFFER_DTYPE_K6,
                                          COFFER_DTYPE_K4,   COFFER_DTYPE_K3,  COFFER_DTYPE_K2,
                                          COFFER_DTYPE_INT8, COFFER_DTYPE_INT4 };
#if defined(__aarch64__)
static const char *const levels[] = { "generic", "neon", "neon-dot" };
#else
static const char *const levels[] = { "generic", "avx2", "avx512" };
#endif
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define ROWS 5
#define MOST_COLS 2100

static uint64_t seed = 0x2545F4914F6CDD1D;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static float random_number(void)
{
    return (float)((double)(next_random() >> 11) / 9007199254740992.0 - 0.5);
}

/* A payload of random codes, sub-scales and reasonable scales, of exactly its size. */
static uint8_t *random_payload(coffer__quant_layout *layout, coffer_dtype dtype, uint64_t cols)
{
    uint64_t dims[2] = { ROWS, cols };
    bool whole = coffer__quant_find_type(dtype)->family == COFFER__QUANT_WHOLE;
    assert_int_equal(coffer__quant_plan(layout, dtype, 2, dims, whole, NULL), COFFER_OK);
    uint8_t *payload = malloc((size_t)layout->size);
    assert_non_null(payload);
    for (size_t i = 0; i < layout->size; i++)
        payload[i] = (uint8_t)(next_random() >> 40);
    if (whole) {
        coffer__store_u32(payload, coffer__float_bits(0.01f));
        coffer__store_u32(payload + layout->regions[COFFER__QUANT_SUBS].offset, coffer__float_bits(3.0f));
        return payload;
    }
    for (size_t i = 0; i < layout->regions[COFFER__QUANT_SCALES].size; i += 2)
        payload[i + 1] = (uint8_t)(0x20 + payload[i + 1] % 4); /* about 2^-7 */
    for (size_t i = 0; i < layout->regions[COFFER__QUANT_SUBS].size; i++)
        payload[layout->regions[COFFER__QUANT_SUBS].offset + i] &= 63;
    return payload;
}

/* In double precision, with the sum of magnitudes that the bound is made of. */
static double true_product(double *magnitudes, const float *row, const float *x, uint64_t cols)
{
    double sum = 0.0;
    *magnitudes = 0.0;
    for (uint64_t i = 0; i < cols; i++) {
        sum += (double)row[i] * (double)x[i];
        *magnitudes += fabs((double)row[i] * (double)x[i]);
    }
    return sum;
}

static void assert_within_bound(float product, const float *row, const float *x, uint64_t cols)
{
    double magnitudes, exact = true_product(&magnitudes, row, x, cols);
    double bound = ((double)cols / 8.0 + 16.0) * 0x1p-24 * magnitudes;
    if (fabs((double)product - exact) > bound)
        fail_msg("%g instead of %g: more than %g away, %d columns", (double)product, exact, bound, (int)cols);
}

static void compare_products(coffer_dtype dtype, uint64_t cols)
{
    enum { VECTORS = 7 };
    coffer__quant_layout layout;
    uint8_t *payload = random_payload(&layout, dtype, cols);
    float *x = malloc(VECTORS * cols * sizeof *x), y[ROWS], many[ROWS * VECTORS], row[MOST_COLS],
          room[COFFER__QUANT_ROWS * MOST_COLS], *folded = malloc(cols * sizeof *folded);
    coffer__quant_vector vector = { x, NULL };
    assert_non_null(x);
    assert_non_null(folded);
    for (size_t i = 0; i < VECTORS * cols; i++)
        x[i] = random_number();
    if (coffer__quant_folds(&layout)) {
        coffer__quant_matvec(y, &layout, payload, &vector, 0, ROWS);
        for (uint64_t r = 0; r < ROWS; r++) {
            coffer__quant_decode_rows(row, &layout, payload, r, 1);
            assert_within_bound(y[r], row, x, cols);
        }
        coffer__quant_fold(folded, &layout, x);
        vector.folded = folded;
    }
    coffer__quant_matvec(y, &layout, payload, &vector, 0, ROWS);
    coffer__quant_matmul(&(coffer__quant_products){ many, VECTORS, 1 }, &layout, payload, x, VECTORS, 0, ROWS,
                         room);
    for (uint64_t r = 0; r < ROWS; r++) {
        coffer__quant_decode_rows(row, &layout, payload, r, 1);
        assert_within_bound(y[r], row, x, cols);
        for (size_t v = 0; v < VECTORS; v++)
            assert_within_bound(many[r * VECTORS + v], row, x + v * cols, cols);
    }
    coffer__quant_matvec(room, &layout, payload, &vector, 2, 2);
    assert_memory_equal(room, y + 2, 2 * sizeof *y);
    free(folded);
    free(x);
    free(payload);
}

static void products_of_every_type_keep_the_bound_on_every_instruction_set(void **state)
{
    static const uint64_t cols[] = { 1,  2,   7,   8,   15,  16,   31,   32,       33,
                                     64, 255, 256, 257, 511, 1024, 1025, MOST_COLS };
    (void)state;
    for (size_t l = 0; l < COUNT(levels); l++) {
        setenv("COFFER_CPU", levels[l], 1);
        for (size_t t = 0; t < COUNT(all_types); t++) {
            for (size_t c = 0; c < COUNT(cols); c++)
                compare_products(all_types[t], cols[c]);
        }
    }
    unsetenv("COFFER_CPU");
}

static void a_tensor_without_columns_gives_zeros(void **state)
{
    uint64_t dims[2] = { ROWS, 0 };
    coffer__quant_layout layout;
    float y[ROWS] = { 1, 1, 1, 1, 1 };
    coffer__quant_vector x = { y, NULL };
    (void)state;
    assert_int_equal(coffer__quant_plan(&layout, COFFER_DTYPE_K4, 2, dims, false, NULL), COFFER_OK);
    coffer__quant_matvec(y, &layout, (const uint8_t *)"", &x, 0, ROWS);
    for (size_t i = 0; i < ROWS; i++)
        assert_true(y[i] == 0.0f);
}

/* ---- Vectors that are rounded to 8 bits ---- */

/* Kinds of vectors that are hard to round. */
enum { ANY, OUTLIERS, HALVES, SMALL, ONE_SIGN, KINDS };

static float number_of_kind(int kind, size_t index)
{
    switch (kind) {
    case OUTLIERS:
        return index % 37 == 5 ? 1e4f * random_number() : random_number();
    case HALVES: /* the largest is 127: all others lie between two whole numbers */
        return index % 32 == 3 ? -127.0f : (float)(next_random() % 254) - 126.5f;
    case SMALL:
        return 0x1p-110f * random_number();
    case ONE_SIGN:
        return 1.0f;
    default:
        return random_number();
    }
}

static float scale_of_block(const float *x, uint64_t cols, uint64_t block)
{
    float largest = 0.0f;
    for (uint64_t i = 32 * block; i < cols && i < 32 * block + 32; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    return largest / 127.0f;
}

/* The bound of quant.h. zero : what a zero point adds to the magnitude of each weight. */
static void assert_within_rounding(float product, const float *row, const float *x, uint64_t cols,
                                   double zero)
{
    double exact = 0.0, rounding = 0.0, magnitudes = 0.0, scale = 0.0;
    for (uint64_t i = 0; i < cols; i++) {
        if (i % 32 == 0)
            scale = (double)scale_of_block(x, cols, i / 32);
        double weight = fabs((double)row[i]) + zero;
        exact += (double)row[i] * (double)x[i];
        double miss = scale * 127.0 < 0x1p-119 ? fabs((double)x[i]) : scale * 0.50002;
        rounding += fabs((double)row[i]) * miss;
        magnitudes += weight * (fabs((double)x[i]) + scale);
    }
    double bound = rounding + ((double)cols / 32.0 + 8.0) * 0x1p-24 * magnitudes;
    if (!(fabs((double)product - exact) <= bound))
        fail_msg("%g instead of %g: more than %g away, %d columns", (double)product, exact, bound, (int)cols);
}

typedef struct rounded_case {
    coffer_quant_tensor tensor;
    coffer__quant_layout layout;
    float *x;
    uint32_t vectors;
} rounded_case;

/* Products by every instruction set: within the bound, and the same bits. */
static void compare_rounded(const rounded_case *test, float *first, float *y, bool by_vector)
{
    const coffer__quant_layout *layout = &test->layout;
    coffer_quant_product_opts opts = COFFER_QUANT_PRODUCT_OPTS_INIT;
    double zero = layout->type->family == COFFER__QUANT_WHOLE ? 2 * 0.01 * 3.0 : 0.0;
    float row[MOST_COLS];
    opts.inputs = COFFER_QUANT_INPUTS_INT8;
    opts.by_vector = by_vector;
    for (size_t l = 0; l < COUNT(levels); l++) {
        setenv("COFFER_CPU", levels[l], 1);
        coffer_error err = COFFER_ERROR_INIT;
        coffer_status status =
            test->vectors == 1 ? coffer_quant_matvec(y, &test->tensor, test->x, &opts, &err)
                               : coffer_quant_matmul(y, &test->tensor, test->x, test->vectors, &opts, &err);
        assert_int_equal(status, COFFER_OK);
        if (l > 0) {
            assert_memory_equal(y, first, ROWS * test->vectors * sizeof *y);
            continue;
        }
        memcpy(first, y, ROWS * test->vectors * sizeof *y);
        for (uint64_t r = 0; r < ROWS; r++) {
            coffer__quant_decode_rows(row, layout, test->tensor.payload, r, 1);
            for (size_t v = 0; v < test->vectors; v++)
                assert_within_rounding(by_vector ? y[v * ROWS + r] : y[r * test->vectors + v], row,
                                       test->x + v * layout->cols, layout->cols, zero);
        }
    }
    unsetenv("COFFER_CPU");
}

static void compare_rounded_type(coffer_dtype dtype, uint64_t cols, uint32_t vectors, int kind)
{
    rounded_case test = { .tensor = COFFER_QUANT_TENSOR_INIT, .vectors = vectors };
    uint8_t *payload = random_payload(&test.layout, dtype, cols);
    test.tensor.dtype = dtype;
    test.tensor.rows = ROWS;
    test.tensor.cols = cols;
    test.tensor.activations = test.layout.type->family == COFFER__QUANT_WHOLE;
    test.tensor.payload = payload;
    test.tensor.size = (size_t)test.layout.size;
    test.x = malloc(vectors * cols * sizeof *test.x);
    float *y = malloc(2 * ROWS * vectors * sizeof *y);
    assert_non_null(test.x);
    assert_non_null(y);
    for (size_t i = 0; i < vectors * cols; i++)
        test.x[i] = number_of_kind(kind, i);
    compare_rounded(&test, y, y + ROWS * vectors, vectors % 2 == 0);
    free(y);
    free(test.x);
    free(payload);
}

static void rounded_products_keep_the_bound_and_are_the_same_bits_everywhere(void **state)
{
    static const uint64_t cols[] = { 1, 31, 32, 33, 255, 257, 512, 1025, MOST_COLS };
    static const uint32_t vectors[] = { 1, 8, 9, 18 };
    (void)state;
    for (size_t t = 0; t < COUNT(all_types); t++) {
        for (size_t c = 0; c < COUNT(cols); c++) {
            for (size_t v = 0; v < COUNT(vectors); v++)
                compare_rounded_type(all_types[t], cols[c], vectors[v], (int)((c + v) % KINDS));
        }
    }
}

static void more_vectors_than_one_pass_takes_are_multiplied(void **state)
{
    (void)state;
    compare_rounded_type(COFFER_DTYPE_K4, 40, COFFER__QUANT_ROUNDED_VECTORS + 3, ANY);
}

/* Every code and every number at its limits: no sum of a kernel may overflow or saturate. */
static void the_largest_codes_and_numbers_are_summed_exactly(void **state)
{
    enum { COLS = 512 };
    coffer_quant_tensor tensor = COFFER_QUANT_TENSOR_INIT;
    coffer_quant_product_opts opts = COFFER_QUANT_PRODUCT_OPTS_INIT;
    enum { VECTORS = 10 };
    float x[VECTORS * COLS], y[VECTORS];
    uint8_t payload[64 + COLS] = { 0 };
    (void)state;
    coffer__store_u32(payload, coffer__float_bits(1.0f));
    memset(payload + 64, 0x80, COLS);
    for (size_t i = 0; i < COUNT(x); i++)
        x[i] = i % (2 * COLS) < COLS ? 127.0f : -127.0f;
    tensor.dtype = COFFER_DTYPE_INT8;
    tensor.rows = 1;
    tensor.cols = COLS;
    tensor.payload = payload;
    tensor.size = sizeof payload;
    opts.inputs = COFFER_QUANT_INPUTS_INT8;
    for (size_t l = 0; l < COUNT(levels); l++) {
        setenv("COFFER_CPU", levels[l], 1);
        assert_int_equal(coffer_quant_matvec(y, &tensor, x, &opts, NULL), COFFER_OK);
        assert_true(y[0] == -128.0f * 127.0f * COLS);
        assert_int_equal(coffer_quant_matmul(y, &tensor, x, VECTORS, &opts, NULL), COFFER_OK);
        for (size_t i = 0; i < VECTORS; i++)
            assert_true(y[i] == (i % 2 ? 128.0f : -128.0f) * 127.0f * COLS);
    }
    unsetenv("COFFER_CPU");
}

static void a_number_that_is_not_finite_makes_the_product_nan(void **state)
{
    enum { VECTORS = 10 };
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    coffer__quant_layout layout;
    uint8_t *payload = random_payload(&layout, COFFER_DTYPE_Q4, 600);
    coffer_quant_tensor tensor = COFFER_QUANT_TENSOR_INIT;
    coffer_quant_product_opts opts = COFFER_QUANT_PRODUCT_OPTS_INIT;
    float x[VECTORS * 600], y[ROWS * VECTORS];
    (void)state;
    tensor.dtype = COFFER_DTYPE_Q4;
    tensor.rows = ROWS;
    tensor.cols = 600;
    tensor.payload = payload;
    tensor.size = (size_t)layout.size;
    opts.inputs = COFFER_QUANT_INPUTS_INT8;
    for (size_t l = 0; l < COUNT(levels); l++) {
        setenv("COFFER_CPU", levels[l], 1);
        for (size_t b = 0; b < COUNT(bad); b++) {
            for (size_t i = 0; i < COUNT(x); i++)
                x[i] = 0x1p-120f; /* counts as zero */
            x[600 + 599] = bad[b];
            assert_int_equal(coffer_quant_matvec(y, &tensor, x + 600, &opts, NULL), COFFER_OK);
            assert_true(isnan(y[0]) && isnan(y[ROWS - 1]));
            assert_int_equal(coffer_quant_matmul(y, &tensor, x, VECTORS, &opts, NULL), COFFER_OK);
            for (size_t i = 0; i < ROWS * VECTORS; i++)
                assert_true(i % VECTORS == 1 ? isnan(y[i]) : y[i] == 0.0f);
        }
    }
    unsetenv("COFFER_CPU");
    free(payload);
}

static void products_without_rows_columns_or_vectors_are_empty_or_zero(void **state)
{
    static const float numbers[4] = { 1, 2, 3, 4 };
    (void)state;
    for (int inputs = COFFER_QUANT_INPUTS_F32; inputs <= COFFER_QUANT_INPUTS_INT8; inputs++) {
        for (size_t t = 0; t < COUNT(all_types); t++) {
            coffer_quant_tensor tensor = COFFER_QUANT_TENSOR_INIT;
            coffer_quant_product_opts opts = COFFER_QUANT_PRODUCT_OPTS_INIT;
            float y[ROWS * 10];
            opts.inputs = (coffer_quant_inputs)inputs;
            tensor.dtype = all_types[t];
            tensor.rows = ROWS;
            tensor.payload = "";
            memset(y, 0x7F, sizeof y);
            assert_int_equal(coffer_quant_matvec(y, &tensor, numbers, &opts, NULL), COFFER_OK);
            assert_int_equal(coffer_quant_matmul(y, &tensor, numbers, 10, &opts, NULL), COFFER_OK);
            for (size_t i = 0; i < COUNT(y); i++)
                assert_true(y[i] == 0.0f);
            assert_int_equal(coffer_quant_matmul(NULL, &tensor, numbers, 0, &opts, NULL), COFFER_OK);
            tensor.rows = 0;
            tensor.cols = 4;
            assert_int_equal(coffer_quant_matvec(NULL, &tensor, numbers, &opts, NULL), COFFER_OK);
            assert_int_equal(coffer_quant_matmul(NULL, &tensor, numbers, 1, &opts, NULL), COFFER_OK);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_every_type_keep_the_bound_on_every_instruction_set),
        cmocka_unit_test(a_tensor_without_columns_gives_zeros),
        cmocka_unit_test(rounded_products_keep_the_bound_and_are_the_same_bits_everywhere),
        cmocka_unit_test(more_vectors_than_one_pass_takes_are_multiplied),
        cmocka_unit_test(the_largest_codes_and_numbers_are_summed_exactly),
        cmocka_unit_test(a_number_that_is_not_finite_makes_the_product_nan),
        cmocka_unit_test(products_without_rows_columns_or_vectors_are_empty_or_zero),
    };
    return cmocka_run_group_tests_name("products with quantized rows", tests, NULL, NULL);
}
