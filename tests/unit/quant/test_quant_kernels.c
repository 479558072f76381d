#include "base/cpu.h"
#include "base/memory.h"
#include "quant/quant.h"
#include "support/temp.h"

#include <stdlib.h>
#include <string.h>

#define MOST_COLS 1100
#define ROWS 3
#define ROOM ((MOST_COLS + 64) / 16 * 16) /* what is aligned must be of whole lines */

static const coffer_dtype all_types[] = { COFFER_DTYPE_Q8,   COFFER_DTYPE_Q4,  COFFER_DTYPE_K6,
                                          COFFER_DTYPE_K4,   COFFER_DTYPE_K3,  COFFER_DTYPE_K2,
                                          COFFER_DTYPE_INT8, COFFER_DTYPE_INT4 };
#define TYPE_COUNT (sizeof all_types / sizeof *all_types)

typedef struct kernel_set {
    const char *name;
    const coffer__quant_kernels *kernels;
} kernel_set;

/* Those that this processor can run, beside the reference. */
static size_t sets_here(kernel_set out[4])
{
    size_t count = 0;
#if defined(__x86_64__)
    if (coffer__cpu_best() == COFFER__CPU_AVX512 || coffer__cpu_best() == COFFER__CPU_AVX2)
        out[count++] = (kernel_set){ "avx2", &coffer__quant_avx2 };
    if (coffer__cpu_best() == COFFER__CPU_AVX512)
        out[count++] = (kernel_set){ "avx512", &coffer__quant_avx512 };
#elif defined(__aarch64__)
    out[count++] = (kernel_set){ "neon", &coffer__quant_neon };
#else
    (void)out;
#endif
    return count;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void fill_random(uint8_t *bytes, size_t len, uint64_t *seed)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(next_random(seed) >> 32);
}

/* A payload on the heap of exactly its size, so that a sanitizer sees what reaches past it. */
static uint8_t *random_payload(const coffer__quant_layout *layout, uint64_t *seed)
{
    uint8_t *payload = malloc((size_t)layout->size);
    assert_non_null(payload);
    fill_random(payload, (size_t)layout->size, seed);
    return payload;
}

static void assert_same_row(const kernel_set *set, const coffer__quant_layout *layout,
                            const coffer__quant_run *run, size_t misalignment)
{
    float expected[MOST_COLS], *room = aligned_alloc(64, ROOM * sizeof(float));
    assert_non_null(room);
    float *out = room + misalignment;
    memset(room, 0xEE, ROOM * sizeof(float));
    coffer__quant_reference.decode_f32[layout->type->index](expected, run);
    set->kernels->decode_f32[layout->type->index](out, run);
    if (memcmp(out, expected, run->elements * sizeof(float)) != 0)
        fail_msg("%s of %s, %zu elements: not the bits of the reference", set->name,
                 coffer_dtype_name(layout->type->dtype), run->elements);
    for (size_t i = 0; i < 4 * sizeof(float); i++)
        assert_int_equal(((uint8_t *)(out + run->elements))[i], 0xEE);
    free(room);
}

/* The parts of one row of a payload. */
static coffer__quant_run run_of_row(const coffer__quant_layout *layout, const uint8_t *payload, uint64_t row)
{
    coffer__quant_run run = { .elements = (size_t)layout->cols };
    bool supers = layout->type->family == COFFER__QUANT_SUPERS;
    uint64_t code_bytes = layout->type->bits * UINT64_C(32) / 8 * layout->blocks_per_row;
    const uint8_t *scales = payload + layout->regions[COFFER__QUANT_SCALES].offset;
    const uint8_t *subs = payload + layout->regions[COFFER__QUANT_SUBS].offset;
    const uint8_t *codes = payload + layout->regions[COFFER__QUANT_CODES].offset;
    run.parts[COFFER__QUANT_SCALES] = scales;
    run.parts[COFFER__QUANT_SUBS] = layout->regions[COFFER__QUANT_SUBS].size ? subs : NULL;
    if (layout->type->family == COFFER__QUANT_WHOLE) {
        uint64_t first = row * layout->cols;
        run.skip = layout->type->bits == 4 ? first % 2 : 0;
        run.parts[COFFER__QUANT_CODES] = codes + (layout->type->bits == 4 ? first / 2 : first);
        return run;
    }
    run.parts[COFFER__QUANT_SCALES] =
        scales + 2 * row * (supers ? layout->supers_per_row : layout->blocks_per_row);
    if (supers)
        run.parts[COFFER__QUANT_SUBS] = subs + row * layout->blocks_per_row;
    run.parts[COFFER__QUANT_CODES] = codes + row * code_bytes;
    return run;
}

static void compare_type(const kernel_set *set, coffer_dtype dtype, uint64_t cols, bool activations,
                         uint64_t *seed)
{
    coffer__quant_layout layout;
    uint64_t dims[2] = { ROWS, cols };
    assert_int_equal(coffer__quant_plan(&layout, dtype, 2, dims, activations, NULL), COFFER_OK);
    uint8_t *payload = random_payload(&layout, seed);
    for (uint64_t row = 0; row < ROWS; row++) {
        coffer__quant_run run = run_of_row(&layout, payload, row);
        for (int stream = 0; stream < 2; stream++) {
            run.stream = stream;
            assert_same_row(set, &layout, &run, 0);
            assert_same_row(set, &layout, &run, 1);
        }
    }
    free(payload);
}

/* Random bytes have every code, also the forbidden one, every sub-scale, and scales that are zero, subnormal,
 * the largest, infinite and no number. */
static void every_set_gives_the_bits_of_the_reference(void **state)
{
    static const uint64_t cols[] = { 1,   2,   7,   8,   9,   15,  16,  17,  31,   32,
                                     33,  63,  64,  65,  95,  96,  127, 128, 129,  200,
                                     255, 256, 257, 300, 511, 512, 513, 777, 1024, MOST_COLS };
    kernel_set sets[4];
    size_t count = sets_here(sets);
    uint64_t seed = 0x9E3779B97F4A7C15;
    (void)state;
    for (size_t s = 0; s < count; s++) {
        for (size_t t = 0; t < TYPE_COUNT; t++) {
            for (size_t c = 0; c < sizeof cols / sizeof *cols; c++) {
                compare_type(&sets[s], all_types[t], cols[c], false, &seed);
                if (coffer__quant_find_type(all_types[t])->family == COFFER__QUANT_WHOLE)
                    compare_type(&sets[s], all_types[t], cols[c], true, &seed);
            }
        }
    }
}

static void set_half(uint8_t *bytes, uint16_t half)
{
    bytes[0] = (uint8_t)half;
    bytes[1] = (uint8_t)(half >> 8);
}

static void every_scale_and_sub_scale_gives_the_bits_of_the_reference(void **state)
{
    kernel_set sets[4];
    size_t count = sets_here(sets);
    uint64_t seed = 42;
    (void)state;
    for (size_t t = COFFER__QUANT_Q8; t <= COFFER__QUANT_K2; t++) {
        coffer__quant_layout layout;
        uint64_t dims[2] = { 1, 1024 };
        assert_int_equal(coffer__quant_plan(&layout, all_types[t], 2, dims, false, NULL), COFFER_OK);
        uint8_t *payload = random_payload(&layout, &seed);
        uint64_t scales = layout.regions[COFFER__QUANT_SCALES].size / 2;
        for (uint32_t half = 0; half < 65536; half += (uint32_t)scales) {
            for (uint32_t i = 0; i < scales; i++)
                set_half(payload + 2 * i, (uint16_t)(half + i));
            for (size_t i = 0; i < layout.regions[COFFER__QUANT_SUBS].size; i++)
                payload[layout.regions[COFFER__QUANT_SUBS].offset + i] = (uint8_t)((half / scales + i) % 64);
            coffer__quant_run run = run_of_row(&layout, payload, 0);
            for (size_t s = 0; s < count; s++)
                assert_same_row(&sets[s], &layout, &run, 0);
        }
        free(payload);
    }
}

static void a_large_tensor_streams_past_the_cache_with_the_same_bits(void **state)
{
    enum { BIG_ROWS = 1100, BIG_COLS = 4096 };
    uint64_t seed = 7, dims[2] = { BIG_ROWS, BIG_COLS };
    coffer__quant_layout layout;
    float *all = aligned_alloc(64, (size_t)BIG_ROWS * BIG_COLS * sizeof(float)), expected[BIG_COLS];
    (void)state;
    assert_non_null(all);
    assert_int_equal(coffer__quant_plan(&layout, COFFER_DTYPE_K3, 2, dims, false, NULL), COFFER_OK);
    uint8_t *payload = random_payload(&layout, &seed);
    coffer__quant_decode_rows(all, &layout, payload, 0, BIG_ROWS);
    for (uint64_t row = 0; row < BIG_ROWS; row++) {
        coffer__quant_run run = run_of_row(&layout, payload, row);
        coffer__quant_reference.decode_f32[COFFER__QUANT_K3](expected, &run);
        assert_memory_equal(all + row * BIG_COLS, expected, sizeof expected);
    }
    free(payload);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_gives_the_bits_of_the_reference),
        cmocka_unit_test(every_scale_and_sub_scale_gives_the_bits_of_the_reference),
        cmocka_unit_test(a_large_tensor_streams_past_the_cache_with_the_same_bits),
    };
    return cmocka_run_group_tests_name("the decoders of every instruction set", tests, NULL, NULL);
}
