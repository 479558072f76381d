/* Calibrated encoding: the factor, the feedback of errors, and its results beside those of fit. */
#include "base/cpu.h"
#include "base/elements.h"
#include "quant/quant_calibrate.h"
#include "support/temp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const coffer_dtype types[] = {
    COFFER_DTYPE_Q8, COFFER_DTYPE_Q4, COFFER_DTYPE_K6,   COFFER_DTYPE_K4,
    COFFER_DTYPE_K3, COFFER_DTYPE_K2, COFFER_DTYPE_INT8, COFFER_DTYPE_INT4
};
#define TYPE_COUNT (sizeof types / sizeof *types)

static double uniform(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return ((double)(*seed >> 11) + 0.5) / 9007199254740992.0 - 0.5;
}

/* ---- A layer ---- */

typedef struct layer {
    size_t rows, cols;
    float *values;
    double *moments;
} layer;

/* Inputs that depend on each other, and columns of different size. */
static layer new_layer(size_t rows, size_t cols)
{
    enum { SAMPLES = 200, SOURCES = 12 };
    layer out = { rows, cols, malloc(rows * cols * sizeof(float)), calloc(cols * cols, sizeof(double)) };
    double *mixing = malloc(SOURCES * cols * sizeof *mixing), *input = malloc(cols * sizeof *input);
    uint64_t seed = 88172645463325252u;
    assert_true(out.values && out.moments && mixing && input);
    for (size_t i = 0; i < rows * cols; i++)
        out.values[i] = (float)(0.1 * (uniform(&seed) + uniform(&seed) + uniform(&seed)));
    for (size_t i = 0; i < SOURCES * cols; i++)
        mixing[i] = uniform(&seed) * (1.0 + (double)(i % cols % 7));
    for (size_t s = 0; s < SAMPLES; s++) {
        double sources[SOURCES];
        for (size_t k = 0; k < SOURCES; k++)
            sources[k] = uniform(&seed);
        for (size_t i = 0; i < cols; i++) {
            input[i] = 0.4 * uniform(&seed);
            for (size_t k = 0; k < SOURCES; k++)
                input[i] += sources[k] * mixing[k * cols + i];
        }
        for (size_t i = 0; i < cols; i++)
            for (size_t j = 0; j < cols; j++)
                out.moments[i * cols + j] += input[i] * input[j];
    }
    free(mixing);
    free(input);
    return out;
}

static void free_layer(layer *from)
{
    free(from->values);
    free(from->moments);
}

static coffer__quant_moments factored(const layer *from, double damping, uint32_t threads)
{
    coffer__quant_moments moments;
    coffer__work *work = NULL;
    coffer__work_opts opts = { .threads = threads };
    coffer_error err = COFFER_ERROR_INIT;
    size_t n = from->cols;
    double *diagonal = malloc(n * sizeof *diagonal);
    assert_non_null(diagonal);
    for (size_t i = 0; i < n; i++)
        diagonal[i] = from->moments[i * n + i];
    assert_int_equal(coffer__work_new(&work, &opts, &err), COFFER_OK);
    assert_int_equal(coffer__quant_moments_new(&moments, diagonal, n, &err), COFFER_OK);
    for (size_t p = 0; p < n; p++)
        for (size_t q = 0; q < n; q++)
            moments.matrix[p * n + q] = from->moments[moments.order[p] * n + moments.order[q]];
    if (coffer__quant_moments_factor(&moments, damping, work, &err))
        fail_msg("%s", err.text);
    coffer__work_free(work);
    free(diagonal);
    return moments;
}

/* ---- Encoded, and decoded again ---- */

typedef struct encoded {
    coffer__quant_layout layout;
    uint8_t *payload;
    int8_t *codes;
    float *decoded;
    coffer__quant_output_error error;
} encoded;

static float whole_scale(const layer *from, const coffer__quant_type *type)
{
    float most = 0.0f;
    for (size_t i = 0; i < from->rows * from->cols; i++)
        most = fmaxf(most, fabsf(from->values[i]));
    return most / (float)coffer__quant_largest_code(type);
}

static encoded new_encoded(const layer *from, coffer_dtype dtype)
{
    encoded out = { .codes = calloc(from->rows, from->cols) };
    uint64_t dims[2] = { from->rows, from->cols };
    assert_int_equal(coffer__quant_plan(&out.layout, dtype, 2, dims, false, NULL), COFFER_OK);
    out.payload = calloc(1, out.layout.size);
    out.decoded = malloc(from->rows * from->cols * sizeof *out.decoded);
    assert_true(out.payload && out.codes && out.decoded);
    return out;
}

static void free_encoded(encoded *from)
{
    free(from->payload);
    free(from->codes);
    free(from->decoded);
}

static coffer__quant_output output_of(const encoded *to)
{
    coffer__quant_output out;
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++)
        out.parts[i] = to->payload + to->layout.regions[i].offset;
    return out;
}

static encoded calibrated(const layer *from, const coffer__quant_moments *moments, coffer_dtype dtype)
{
    encoded out = new_encoded(from, dtype);
    const coffer__quant_type *type = out.layout.type;
    coffer__quant_output output = output_of(&out);
    coffer__quant_rows rows = { type, from->values, NULL, from->rows, from->cols };
    coffer__quant_calibrated job = { moments, &output, out.codes, whole_scale(from, type), NULL };
    job.scratch = malloc(coffer__quant_calibrate_scratch(from->rows, from->cols));
    assert_non_null(job.scratch);
    out.error = coffer__quant_calibrate_rows(&job, &rows);
    free(job.scratch);
    if (type->family == COFFER__QUANT_WHOLE)
        for (size_t i = 0; i < from->rows * from->cols; i++)
            out.decoded[i] = job.whole_scale * (float)out.codes[i];
    else
        coffer__quant_decode_rows(out.decoded, &out.layout, out.payload, 0, from->rows);
    return out;
}

/* The same without moments. */
static encoded fitted(const layer *from, coffer_dtype dtype)
{
    encoded out = new_encoded(from, dtype);
    coffer__quant_output output = output_of(&out);
    coffer__quant_rows rows = { out.layout.type, from->values, NULL, from->rows, from->cols };
    float scale = whole_scale(from, rows.type);
    if (rows.type->family == COFFER__QUANT_WHOLE) {
        for (size_t i = 0; i < from->rows * from->cols; i++)
            out.decoded[i] = scale * rintf(from->values[i] / scale);
        return out;
    }
    coffer__quant_encode_rows(&output, &rows, COFFER__QUANT_FIT);
    coffer__quant_decode_rows(out.decoded, &out.layout, out.payload, 0, from->rows);
    return out;
}

/* Σ eHeᵀ, or Σ wHwᵀ without `decoded`, in units of the mean of H's diagonal. */
static double output_energy(const layer *from, const float *decoded)
{
    double sum = 0.0, trace = 0.0;
    size_t n = from->cols;
    for (size_t i = 0; i < n; i++)
        trace += from->moments[i * n + i];
    for (size_t row = 0; row < from->rows; row++) {
        for (size_t i = 0; i < n; i++) {
            double here = (double)from->values[row * n + i] - (decoded ? (double)decoded[row * n + i] : 0.0);
            for (size_t j = 0; j < n; j++)
                sum += here * from->moments[i * n + j] *
                       ((double)from->values[row * n + j] - (decoded ? (double)decoded[row * n + j] : 0.0));
        }
    }
    return sum / (trace / (double)n);
}

/* ---- Tests ---- */

/* H = [[4, 2], [2, 3]] with a mean diagonal of 3.5. Column 0 counts more, so it is encoded first, at the last
 * position. H/3.5 + 0.5·I = [[low, cross], [cross, high]] by position, which is L·D·Lᵀ with L₁₀ = cross/low.
 */
static void two_columns_are_factored_as_by_hand(void **state)
{
    double moments[4] = { 4, 2, 2, 3 };
    layer two = { 1, 2, NULL, moments };
    double mean = 3.5, low = 3 / mean + 0.5, cross = 2 / mean, high = 4 / mean + 0.5;
    (void)state;
    coffer__quant_moments got = factored(&two, 0.5, 1);
    assert_int_equal(got.order[0], 1);
    assert_int_equal(got.order[1], 0);
    assert_float_equal(got.pivots[0], (float)low, 1e-6f);
    assert_float_equal(got.pivots[1], (float)(high - cross * cross / low), 1e-6f);
    assert_float_equal(got.factored[2], (float)(cross / low), 1e-6f); /* L */
    assert_float_equal(got.factored[0], (float)low, 1e-6f);
    assert_float_equal(got.factored[1], (float)cross, 1e-6f); /* H */
    assert_float_equal(got.factored[3], (float)high, 1e-6f);
    coffer__quant_moments_free(&got);
}

/* Two inputs that are always equal: the output depends on w₀ + w₁ alone. Rounded by themselves, 0.4 and 0.4
 * of a step become 0; the second of them makes up for the first. The other weights fix the scale. */
static void the_second_of_two_equal_inputs_makes_up_for_the_first(void **state)
{
    enum { COLS = 34 };
    double moments[COLS * COLS] = { 0 };
    float values[COLS] = { 0 };
    layer one = { 1, COLS, values, moments };
    (void)state;
    for (size_t i = 0; i < COLS; i++)
        moments[i * COLS + i] = i < 2 ? 1.0 : 0.5;
    moments[1] = moments[COLS] = 0.999;
    for (size_t i = 2; i < COLS; i++)
        values[i] = i % 2 ? 127.0f : -127.0f;
    values[0] = values[1] = 0.4f;
    coffer__quant_moments factor = factored(&one, 1e-6, 1);
    encoded got = calibrated(&one, &factor, COFFER_DTYPE_INT8);
    assert_int_equal(got.codes[0] + got.codes[1], 1);
    for (size_t i = 2; i < COLS; i++)
        assert_int_equal(got.codes[i], (int)values[i]);
    free_encoded(&got);
    coffer__quant_moments_free(&factor);
}

static void the_factor_gives_the_moments_again(void **state)
{
    layer some = new_layer(1, 151);
    size_t n = some.cols;
    (void)state;
    coffer__quant_moments got = factored(&some, 0.01, 2);
    double mean = 0.0;
    for (size_t i = 0; i < n; i++)
        mean += some.moments[i * n + i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = 0.0,
                   wanted = some.moments[got.order[i] * n + got.order[j]] / mean + (i == j ? 0.01 : 0.0);
            for (size_t k = 0; k <= j; k++)
                sum += (double)(k == i ? 1.0f : got.factored[i * n + k]) *
                       (double)(k == j ? 1.0f : got.factored[j * n + k]) * (double)got.pivots[k];
            assert_true(fabs(sum - wanted) < 1e-5 * (1.0 + fabs(wanted)));
            assert_true(fabs((double)got.factored[j * n + i] - wanted) < 1e-5 * (1.0 + fabs(wanted)));
        }
    }
    coffer__quant_moments_free(&got);
    free_layer(&some);
}

/* 19 rows and 300 columns: an incomplete group of rows, an incomplete super and an incomplete block. */
static void the_output_error_is_measured_and_at_most_0_6_of_fit(void **state)
{
    layer some = new_layer(19, 300);
    coffer__quant_moments moments = factored(&some, 0.01, 1);
    (void)state;
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        encoded got = calibrated(&some, &moments, types[t]), without = fitted(&some, types[t]);
        double error = output_energy(&some, got.decoded), before = output_energy(&some, without.decoded);
        if (!(error < 0.6 * before))
            fail_msg("%s: %g of the error of fit", coffer_dtype_name(types[t]), error / before);
        assert_true(fabs(got.error.error - error) < 1e-3 * error);
        assert_true(fabs(got.error.signal - output_energy(&some, NULL)) < 1e-3 * got.error.signal);
        free_encoded(&got);
        free_encoded(&without);
    }
    coffer__quant_moments_free(&moments);
    free_layer(&some);
}

static void threads_and_batches_of_rows_give_the_same_bytes(void **state)
{
    layer some = new_layer(33, 330), first = some, second = some;
    coffer__quant_moments one = factored(&some, 0.01, 1), four = factored(&some, 0.01, 4);
    (void)state;
    assert_memory_equal(one.factored, four.factored, some.cols * some.cols * sizeof(float));
    first.rows = 16;
    second.rows = 17;
    second.values += 16 * some.cols;
    encoded all = calibrated(&some, &one, COFFER_DTYPE_K3), a = calibrated(&first, &four, COFFER_DTYPE_K3),
            b = calibrated(&second, &four, COFFER_DTYPE_K3);
    assert_memory_equal(all.decoded, a.decoded, 16 * some.cols * sizeof(float));
    assert_memory_equal(all.decoded + 16 * some.cols, b.decoded, 17 * some.cols * sizeof(float));
    free_encoded(&all);
    free_encoded(&a);
    free_encoded(&b);
    coffer__quant_moments_free(&one);
    coffer__quant_moments_free(&four);
    free_layer(&some);
}

static void every_processor_writes_the_same_bytes(void **state)
{
    static const char *const levels[] = { "generic", "avx2", "avx512" };
    layer some = new_layer(17, 290);
    uint8_t *expected[TYPE_COUNT] = { 0 };
    (void)state;
    for (size_t level = 0; level < sizeof levels / sizeof *levels; level++) {
        setenv("COFFER_CPU", levels[level], 1);
        coffer__quant_moments moments = factored(&some, 0.01, 1);
        for (size_t t = 0; t < TYPE_COUNT; t++) {
            encoded got = calibrated(&some, &moments, types[t]);
            size_t len = some.rows * some.cols * sizeof(float);
            if (expected[t])
                assert_memory_equal(expected[t], got.decoded, len);
            else if ((expected[t] = malloc(len)))
                memcpy(expected[t], got.decoded, len);
            free_encoded(&got);
        }
        coffer__quant_moments_free(&moments);
    }
    unsetenv("COFFER_CPU");
    for (size_t t = 0; t < TYPE_COUNT; t++)
        free(expected[t]);
    free_layer(&some);
}

static void a_matrix_that_is_not_positive_definite_is_refused(void **state)
{
    double diagonal[3] = { 1, 1, 1 };
    double bad[9] = { 1, 0.9, -0.9, 0.9, 1, 0.9, -0.9, 0.9, 1 };
    coffer__quant_moments moments;
    coffer__work *work = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    assert_int_equal(coffer__work_new(&work, NULL, &err), COFFER_OK);
    assert_int_equal(coffer__quant_moments_new(&moments, diagonal, 3, &err), COFFER_OK);
    memcpy(moments.matrix, bad, sizeof bad);
    assert_int_equal(coffer__quant_moments_factor(&moments, 0.01, work, &err), COFFER_E_BAD_VALUE);
    assert_non_null(strstr(err.text, "not positive definite"));
    coffer__quant_moments_free(&moments);
    coffer__work_free(work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_columns_are_factored_as_by_hand),
        cmocka_unit_test(the_second_of_two_equal_inputs_makes_up_for_the_first),
        cmocka_unit_test(the_factor_gives_the_moments_again),
        cmocka_unit_test(the_output_error_is_measured_and_at_most_0_6_of_fit),
        cmocka_unit_test(threads_and_batches_of_rows_give_the_same_bytes),
        cmocka_unit_test(every_processor_writes_the_same_bytes),
        cmocka_unit_test(a_matrix_that_is_not_positive_definite_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
