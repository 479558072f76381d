#include "base/bytes.h"
#include "base/dtype.h"
#include "quant/quant_encode.h"
#include "support/temp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const coffer_dtype block_types[] = { COFFER_DTYPE_Q8, COFFER_DTYPE_Q4, COFFER_DTYPE_K6,
                                            COFFER_DTYPE_K4, COFFER_DTYPE_K3, COFFER_DTYPE_K2 };
#define TYPE_COUNT (sizeof block_types / sizeof *block_types)

/* ---- Random numbers ---- */

typedef enum shape { GAUSS, LAPLACE, STUDENT, SHAPES } shape;

static double uniform(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return ((double)(*seed >> 11) + 0.5) / 9007199254740992.0;
}

static double gauss(uint64_t *seed)
{
    double radius = sqrt(-2.0 * log(uniform(seed)));
    return radius * cos(6.283185307179586 * uniform(seed));
}

static double draw(shape from, uint64_t *seed)
{
    if (from == GAUSS)
        return gauss(seed);
    if (from == LAPLACE) {
        double u = uniform(seed) - 0.5;
        return copysign(log(1.0 - 2.0 * fabs(u)), u);
    }
    double squares = 0.0;
    for (int i = 0; i < 5; i++) {
        double g = gauss(seed);
        squares += g * g;
    }
    return gauss(seed) / sqrt(squares / 5.0);
}

static float *random_rows(uint64_t count, shape from, uint64_t seed)
{
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (uint64_t i = 0; i < count; i++)
        values[i] = (float)(0.02 * draw(from, &seed));
    return values;
}

/* ---- Encoding into a payload of its own, and what decoding makes of it ---- */

typedef struct encoded {
    coffer__quant_layout layout;
    uint8_t *payload;
} encoded;

static encoded encode(coffer_dtype dtype, const float *values, const float *weights, uint64_t rows,
                      uint64_t cols, coffer__quant_method method)
{
    encoded result;
    coffer__quant_output out;
    uint64_t dims[2] = { rows, cols };
    assert_int_equal(coffer__quant_plan(&result.layout, dtype, 2, dims, false, NULL), COFFER_OK);
    result.payload = calloc(1, (size_t)result.layout.size);
    assert_non_null(result.payload);
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++)
        out.parts[i] = result.payload + result.layout.regions[i].offset;
    coffer__quant_rows in = { result.layout.type, values, weights, rows, cols };
    coffer__quant_encode_rows(&out, &in, method);
    return result;
}

/* Σw(x − decoded)² */
static double noise_of(const encoded *from, const float *values, const float *weights)
{
    uint64_t count = from->layout.rows * from->layout.cols;
    float *decoded = malloc(count * sizeof *decoded);
    double noise = 0.0;
    assert_non_null(decoded);
    coffer__quant_decode_rows(decoded, &from->layout, from->payload, 0, from->layout.rows);
    for (uint64_t i = 0; i < count; i++) {
        double miss = (double)values[i] - (double)decoded[i];
        noise += miss * miss * (weights ? (double)weights[i % from->layout.cols] : 1.0);
    }
    free(decoded);
    return noise;
}

static double encoding_noise(coffer_dtype dtype, const float *values, const float *weights, uint64_t rows,
                             uint64_t cols, coffer__quant_method method)
{
    encoded result = encode(dtype, values, weights, rows, cols, method);
    double noise = noise_of(&result, values, weights);
    free(result.payload);
    return noise;
}

/* ---- Quality ---- */

static void fit_comes_close_to_the_exact_optimum(void **state)
{
    (void)state;
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        bool supers = coffer__quant_find_type(block_types[t])->family == COFFER__QUANT_SUPERS;
        uint64_t rows = supers ? 1 : 16, cols = 512;
        for (shape from = GAUSS; from < SHAPES; from++) {
            float *values = random_rows(rows * cols, from, 1000 + from);
            double fit = encoding_noise(block_types[t], values, NULL, rows, cols, COFFER__QUANT_FIT);
            double exact = encoding_noise(block_types[t], values, NULL, rows, cols, COFFER__QUANT_EXACT);
            double ratio = sqrt(fit / exact), allowed = supers ? 1.01 : 1.002;
            if (ratio > allowed || ratio < 0.99999)
                fail_msg("%s, shape %d: %.5f times the error of the optimum, %.3f is allowed",
                         coffer_dtype_name(block_types[t]), (int)from, ratio, allowed);
            free(values);
        }
    }
}

static void fit_beats_absmax_by_what_is_promised(void **state)
{
    static const double below[] = { 0.06, 0.06, 0.08, 0.06, 0.13, 0.35 };
    enum { ROWS = 64, COLS = 4096 };
    float *values = random_rows(ROWS * COLS, GAUSS, 77);
    (void)state;
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        double fit = encoding_noise(block_types[t], values, NULL, ROWS, COLS, COFFER__QUANT_FIT);
        double absmax = encoding_noise(block_types[t], values, NULL, ROWS, COLS, COFFER__QUANT_ABSMAX);
        double ratio = sqrt(fit / absmax);
        if (ratio > 1.0 - below[t])
            fail_msg("%s: %.4f of the error of absmax", coffer_dtype_name(block_types[t]), ratio);
    }
    free(values);
}

static void weights_move_the_error_to_where_it_matters_less(void **state)
{
    enum { ROWS = 4, COLS = 512 };
    float *values = random_rows(ROWS * COLS, GAUSS, 5), weights[COLS];
    (void)state;
    for (size_t i = 0; i < COLS; i++)
        weights[i] = i % 4 == 0 ? 100.0f : 1.0f;
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        double with = encoding_noise(block_types[t], values, weights, ROWS, COLS, COFFER__QUANT_FIT);
        encoded plain = encode(block_types[t], values, NULL, ROWS, COLS, COFFER__QUANT_FIT);
        double without = noise_of(&plain, values, weights);
        assert_true(with < without);
        free(plain.payload);
    }
    free(values);
}

/* ---- The same bytes everywhere ---- */

#if defined(__aarch64__)
static const char *const levels[] = { "generic", "neon" };
#else
static const char *const levels[] = { "generic", "avx2", "avx512" };
#endif

static void every_instruction_set_writes_the_same_bytes(void **state)
{
    enum { ROWS = 3, COLS = 777 };
    float *values = random_rows(ROWS * COLS, STUDENT, 9), weights[COLS];
    (void)state;
    for (size_t i = 0; i < COLS; i++)
        weights[i] = (float)(i % 7);
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        for (int weighted = 0; weighted < 2; weighted++) {
            encoded first = { .payload = NULL };
            for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
                setenv("COFFER_CPU", levels[l], 1);
                encoded here =
                    encode(block_types[t], values, weighted ? weights : NULL, ROWS, COLS, COFFER__QUANT_FIT);
                if (first.payload)
                    assert_memory_equal(here.payload, first.payload, here.layout.size);
                else
                    first = here;
                if (here.payload != first.payload)
                    free(here.payload);
            }
            free(first.payload);
        }
    }
    unsetenv("COFFER_CPU");
    free(values);
}

/* FNV-1a */
static uint64_t add_to_hash(uint64_t hash, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001B3);
    return hash;
}

/* Numbers that no mathematical library has a part in. A change of the fitter changes the hash. */
static void every_processor_writes_and_decodes_the_same_bytes(void **state)
{
    enum { ROWS = 4, COLS = 1000 };
    float *values = malloc(sizeof(float[ROWS * COLS])), weights[COLS];
    uint64_t seed = 11, hash = UINT64_C(0xCBF29CE484222325);
    (void)state;
    assert_non_null(values);
    for (size_t i = 0; i < ROWS * COLS; i++) {
        float part = (float)(uniform(&seed) - 0.5);
        values[i] = part * part * part;
    }
    for (size_t i = 0; i < COLS; i++)
        weights[i] = (float)uniform(&seed);
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        for (coffer__quant_method method = COFFER__QUANT_FIT; method < COFFER__QUANT_EXACT; method++) {
            encoded here = encode(block_types[t], values, method == COFFER__QUANT_FIT ? weights : NULL, ROWS,
                                  COLS, method);
            float decoded[COLS];
            coffer__quant_decode_rows(decoded, &here.layout, here.payload, ROWS - 1, 1);
            hash = add_to_hash(hash, here.payload, (size_t)here.layout.size);
            for (size_t i = 0; i < COLS; i++) {
                uint8_t bytes[4]; /* in one order on every processor */
                coffer__store_u32(bytes, coffer__float_bits(decoded[i]));
                hash = add_to_hash(hash, bytes, sizeof bytes);
            }
            free(here.payload);
        }
    }
    if (hash != UINT64_C(0x72F4C2A924FB20CC))
        fail_msg("hash %016llx", (unsigned long long)hash);
    free(values);
}

/* ---- The edges ---- */

static unsigned code_at(const encoded *from, uint64_t index)
{
    const uint8_t *codes = from->payload + from->layout.regions[COFFER__QUANT_CODES].offset;
    unsigned bits = from->layout.type->bits, code = 0;
    for (unsigned b = 0; b < bits; b++)
        code |= (unsigned)(codes[(index * bits + b) / 8] >> ((index * bits + b) % 8) & 1) << b;
    return code;
}

static void assert_no_forbidden_code(const encoded *from)
{
    unsigned bits = from->layout.type->bits;
    uint64_t count = from->layout.regions[COFFER__QUANT_CODES].size * 8 / bits;
    for (uint64_t i = 0; i < count; i++) {
        unsigned code = code_at(from, i);
        assert_int_not_equal(code, 1u << (bits - 1));
        if (i % (from->layout.blocks_per_row * 32) >= from->layout.cols)
            assert_int_equal(code, 0);
    }
}

static void every_method_decodes_to_finite_numbers_at_the_edges(void **state)
{
    static const float magnitudes[] = { 0.0f, 1e-45f, 1e-38f, 3e-8f, 6.2e-5f, 1.0f, 65504.0f, 1e7f, 3.4e38f };
    static const uint64_t cols[] = { 1, 31, 33, 257 };
    (void)state;
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        for (size_t m = 0; m < sizeof magnitudes / sizeof *magnitudes; m++) {
            for (size_t c = 0; c < sizeof cols / sizeof *cols; c++) {
                float values[257], decoded[257];
                for (size_t i = 0; i < cols[c]; i++)
                    values[i] = magnitudes[m] * (i % 3 == 0 ? -1.0f : 0.5f);
                for (coffer__quant_method method = COFFER__QUANT_FIT; method < COFFER__QUANT_EXACT;
                     method++) {
                    encoded here = encode(block_types[t], values, NULL, 1, cols[c], method);
                    coffer__quant_decode_rows(decoded, &here.layout, here.payload, 0, 1);
                    for (size_t i = 0; i < cols[c]; i++)
                        assert_true(isfinite(decoded[i]));
                    assert_no_forbidden_code(&here);
                    free(here.payload);
                }
            }
        }
    }
}

static void a_block_of_equal_numbers_is_held_as_well_as_f16_can(void **state)
{
    float values[64], decoded[64];
    (void)state;
    for (size_t i = 0; i < 64; i++)
        values[i] = i % 2 ? 0.1234f : -0.1234f;
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        encoded here = encode(block_types[t], values, NULL, 1, 64, COFFER__QUANT_FIT);
        coffer__quant_decode_rows(decoded, &here.layout, here.payload, 0, 1);
        for (size_t i = 0; i < 64; i++)
            assert_true(fabsf(decoded[i] - values[i]) < 0.1234f * 0x1p-10f);
        free(here.payload);
    }
}

/* ---- absmax ---- */

enum { ABSMAX_COLS = 7 * 256 + 45, ABSMAX_BLOCKS = (ABSMAX_COLS + 31) / 32 };

/* Blocks of many magnitudes, zeros, and codes that lie between two whole numbers. */
static void fill_for_absmax(float *values)
{
    static const float magnitudes[] = { 1.0f, 0.0f, 1e-45f, 1e-39f, 3e-8f, 6.2e-5f, 1e7f, 3.4e38f };
    uint64_t seed = 77;
    for (size_t i = 0; i < ABSMAX_COLS; i++) {
        float magnitude = magnitudes[i / 32 * 5 % 8];
        if (i >= 1024 && i < 1536) /* of q8: halfway between two codes */
            values[i] = i % 32 == 3 ? -127.0f : (float)(int)(uniform(&seed) * 254.0) - 126.5f;
        else
            values[i] = (float)((double)magnitude * (2.0 * uniform(&seed) - 1.0));
    }
}

/* The scales of a row's blocks as the format's description has them. */
static void absmax_scales(float scales[ABSMAX_BLOCKS], const encoded *from, const float *values)
{
    const uint8_t *subs = from->payload + from->layout.regions[COFFER__QUANT_SUBS].offset;
    bool supers = from->layout.type->family == COFFER__QUANT_SUPERS;
    float largest = (float)coffer__quant_largest_code(from->layout.type);
    for (size_t b = 0; b < ABSMAX_BLOCKS; b++) {
        scales[b] = 0.0f;
        for (size_t i = 32 * b; i < 32 * b + 32 && i < ABSMAX_COLS; i++)
            scales[b] = fmaxf(scales[b], fabsf(values[i]) / largest);
    }
    for (size_t first = 0; supers && first < ABSMAX_BLOCKS; first += 8) {
        float super = 0.0f;
        for (size_t b = first; b < first + 8 && b < ABSMAX_BLOCKS; b++)
            super = fmaxf(super, scales[b]);
        for (size_t b = first; b < first + 8 && b < ABSMAX_BLOCKS; b++) {
            float sub = scales[b] > 0.0f ? roundf(32.0f * (scales[b] / super)) : 0.0f;
            sub = scales[b] > 0.0f ? fmaxf(1.0f, fminf(63.0f, sub)) : 0.0f;
            assert_int_equal(subs[b], (int)sub);
            scales[b] = super * (sub / 32.0f);
        }
    }
}

static void absmax_rounds_quotients_to_the_nearest_code_on_every_instruction_set(void **state)
{
    float values[ABSMAX_COLS], scales[ABSMAX_BLOCKS];
    (void)state;
    fill_for_absmax(values);
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        setenv("COFFER_CPU", levels[l], 1);
        for (size_t t = 0; t < TYPE_COUNT; t++) {
            encoded here = encode(block_types[t], values, NULL, 1, ABSMAX_COLS, COFFER__QUANT_ABSMAX);
            unsigned mask = (1u << here.layout.type->bits) - 1;
            float largest = (float)coffer__quant_largest_code(here.layout.type);
            absmax_scales(scales, &here, values);
            for (size_t i = 0; i < ABSMAX_COLS; i++) {
                float inverse = scales[i / 32] > 0.0f ? 1.0f / scales[i / 32] : 0.0f;
                float code = roundf(values[i] * (isinf(inverse) ? 0.0f : inverse));
                code = fmaxf(-largest, fminf(largest, code));
                assert_int_equal(code_at(&here, i), (unsigned)(int)code & mask);
            }
            free(here.payload);
        }
    }
    unsetenv("COFFER_CPU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fit_comes_close_to_the_exact_optimum),
        cmocka_unit_test(fit_beats_absmax_by_what_is_promised),
        cmocka_unit_test(weights_move_the_error_to_where_it_matters_less),
        cmocka_unit_test(every_instruction_set_writes_the_same_bytes),
        cmocka_unit_test(every_processor_writes_and_decodes_the_same_bytes),
        cmocka_unit_test(every_method_decodes_to_finite_numbers_at_the_edges),
        cmocka_unit_test(a_block_of_equal_numbers_is_held_as_well_as_f16_can),
        cmocka_unit_test(absmax_rounds_quotients_to_the_nearest_code_on_every_instruction_set),
    };
    return cmocka_run_group_tests_name("encoding of quantized payloads", tests, NULL, NULL);
}
