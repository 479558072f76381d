#include "quant/quant_encode.h"
#include "quant/quant_product.h"
#include "support/temp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const coffer_dtype all_types[] = { COFFER_DTYPE_Q8,   COFFER_DTYPE_Q4,  COFFER_DTYPE_K6,
                                          COFFER_DTYPE_K4,   COFFER_DTYPE_K3,  COFFER_DTYPE_K2,
                                          COFFER_DTYPE_INT8, COFFER_DTYPE_INT4 };
#if defined(__aarch64__)
static const char *const levels[] = { "generic", "neon" };
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
        float scale_and_zero[2] = { 0.01f, 3.0f };
        memcpy(payload, &scale_and_zero[0], sizeof(float));
        memcpy(payload + layout->regions[COFFER__QUANT_SUBS].offset, &scale_and_zero[1], sizeof(float));
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
    coffer__quant_matmul(many, &layout, payload, x, VECTORS, 0, ROWS, room);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_every_type_keep_the_bound_on_every_instruction_set),
        cmocka_unit_test(a_tensor_without_columns_gives_zeros),
    };
    return cmocka_run_group_tests_name("products with quantized rows", tests, NULL, NULL);
}
