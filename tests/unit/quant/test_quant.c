#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "quant/quant.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const coffer_dtype all_types[] = { COFFER_DTYPE_Q8,   COFFER_DTYPE_Q4,  COFFER_DTYPE_K6,
                                          COFFER_DTYPE_K4,   COFFER_DTYPE_K3,  COFFER_DTYPE_K2,
                                          COFFER_DTYPE_INT8, COFFER_DTYPE_INT4 };
#define TYPE_COUNT (sizeof all_types / sizeof *all_types)

static coffer__quant_layout plan(coffer_dtype dtype, uint64_t rows, uint64_t cols, bool activations)
{
    coffer__quant_layout layout;
    uint64_t dims[2] = { rows, cols };
    assert_int_equal(coffer__quant_plan(&layout, dtype, 2, dims, activations, NULL), COFFER_OK);
    return layout;
}

/* ---- The vectors ---- */

typedef struct stored_tensor {
    char name[32];
    coffer_dtype dtype;
    uint32_t rank;
    uint64_t dims[2];
    const uint8_t *payload;
    uint64_t size;
} stored_tensor;

/* The index of quantised.mcf, parsed here by hand, because this test uses src/quant only. */
static stored_tensor vector_at(const uint8_t *file, uint32_t number, uint32_t *count)
{
    static const struct {
        uint32_t code;
        coffer_dtype dtype;
    } codes[] = { { 0x10, COFFER_DTYPE_INT8 }, { 0x11, COFFER_DTYPE_INT4 }, { 0x20, COFFER_DTYPE_Q8 },
                  { 0x21, COFFER_DTYPE_Q4 },   { 0x30, COFFER_DTYPE_K6 },   { 0x31, COFFER_DTYPE_K4 },
                  { 0x32, COFFER_DTYPE_K3 },   { 0x33, COFFER_DTYPE_K2 } };
    const uint8_t *section = file + coffer__load_u64(file + 16);
    stored_tensor out = { .dtype = COFFER_DTYPE_NONE };
    while (coffer__load_u32(section) != 3)
        section += 24;
    const uint8_t *index = file + coffer__load_u64(section + 8);
    const uint8_t *entry = index + coffer__load_u64(index + 16) + (size_t)40 * number;
    const uint8_t *dims = index + coffer__load_u64(index + 24) + (size_t)8 * coffer__load_u32(entry + 16);
    *count = coffer__load_u32(index + 8);
    memcpy(out.name, index + coffer__load_u64(index + 32) + coffer__load_u32(entry),
           coffer__load_u32(entry + 4));
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i].code == coffer__load_u32(entry + 8))
            out.dtype = codes[i].dtype;
    }
    out.rank = coffer__load_u32(entry + 12);
    for (uint32_t i = 0; i < out.rank; i++)
        out.dims[i] = coffer__load_u64(dims + (size_t)8 * i);
    out.payload = file + coffer__load_u64(entry + 24);
    out.size = coffer__load_u64(entry + 32);
    return out;
}

static coffer_status read_from_memory(void *context, void *out, uint64_t offset, size_t len,
                                      coffer_error *err)
{
    (void)err;
    memcpy(out, (const uint8_t *)context + offset, len);
    return COFFER_OK;
}

static void assert_rows_decode(const stored_tensor *vector, const uint8_t *expected, size_t expected_len)
{
    coffer__quant_layout layout;
    float *rows = malloc(expected_len);
    assert_int_equal(coffer__quant_plan(&layout, vector->dtype, vector->rank, vector->dims,
                                        strcmp(vector->name, "int8.act") == 0, NULL),
                     COFFER_OK);
    assert_int_equal(layout.size, vector->size);
    assert_int_equal(layout.rows * layout.cols * sizeof(float), expected_len);
    coffer__quant_decode_rows(rows, &layout, vector->payload, 0, layout.rows);
    assert_memory_equal(rows, expected, expected_len);
    for (uint64_t first = 0; first < layout.rows; first++) {
        for (uint64_t count = 1; count <= layout.rows - first; count++) {
            size_t skip = (size_t)(first * layout.cols), len = (size_t)(count * layout.cols);
            memset(rows, 0xEE, expected_len);
            coffer__quant_decode_rows(rows, &layout, vector->payload, first, count);
            assert_memory_equal(rows, expected + 4 * skip, 4 * len);
            memset(rows, 0xEE, expected_len);
            assert_int_equal(coffer__quant_read_rows(rows, &layout, first, count, read_from_memory,
                                                     (void *)(uintptr_t)vector->payload, NULL),
                             COFFER_OK);
            assert_memory_equal(rows, expected + 4 * skip, 4 * len);
        }
    }
    free(rows);
}

static void any_range_of_rows_of_the_vectors_decodes_bit_for_bit(void **state)
{
    uint8_t *file = temp_read(COFFER_TEST_DATA "/vectors/mcf/quantised.mcf", NULL);
    uint32_t count = 1;
    (void)state;
    assert_non_null(file);
    for (uint32_t i = 0; i < count; i++) {
        char path[512];
        size_t len;
        stored_tensor vector = vector_at(file, i, &count);
        snprintf(path, sizeof path, "%s/vectors/mcf/quant-expected/%s.f32", COFFER_TEST_DATA, vector.name);
        uint8_t *expected = temp_read(path, &len);
        assert_non_null(expected);
        coffer__swap_numbers(expected, sizeof(float), len / sizeof(float));
        assert_rows_decode(&vector, expected, len);
        free(expected);
    }
    assert_int_equal(count, 20);
    free(file);
}

/* ---- Layout ---- */

static void regions_begin_at_multiples_of_64_and_nothing_follows_the_last(void **state)
{
    (void)state;
    coffer__quant_layout q4 = plan(COFFER_DTYPE_Q4, 3, 300, false);
    assert_int_equal(q4.regions[COFFER__QUANT_SCALES].size, 60);
    assert_int_equal(q4.regions[COFFER__QUANT_SUBS].size, 0);
    assert_int_equal(q4.regions[COFFER__QUANT_CODES].offset, 64);
    assert_int_equal(q4.size, 64 + 480);
    coffer__quant_layout k3 = plan(COFFER_DTYPE_K3, 40, 257, false);
    assert_int_equal(k3.regions[COFFER__QUANT_SCALES].size, 160);
    assert_int_equal(k3.regions[COFFER__QUANT_SUBS].offset, 192);
    assert_int_equal(k3.regions[COFFER__QUANT_SUBS].size, 360);
    assert_int_equal(k3.regions[COFFER__QUANT_CODES].offset, 576);
    assert_int_equal(k3.size, 576 + 40 * 9 * 12);
    coffer__quant_layout act = plan(COFFER_DTYPE_INT4, 3, 3, true);
    assert_int_equal(act.regions[COFFER__QUANT_SUBS].offset, 64);
    assert_int_equal(act.regions[COFFER__QUANT_CODES].offset, 128);
    assert_int_equal(act.size, 133);
}

static void a_tensor_without_elements_has_no_payload(void **state)
{
    (void)state;
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        coffer__quant_layout layout = plan(all_types[i], 0, 512, false);
        assert_int_equal(layout.size, 0);
        layout = plan(all_types[i], UINT64_MAX, 0, false);
        assert_int_equal(layout.size, 0);
        coffer__quant_decode_rows(NULL, &layout, NULL, 0, 5);
    }
}

static void blocks_want_two_dimensions_and_weights(void **state)
{
    uint64_t dims[3] = { 2, 2, 2 };
    coffer__quant_layout layout;
    coffer_error err;
    (void)state;
    assert_int_equal(coffer__quant_plan(&layout, COFFER_DTYPE_K4, 3, dims, false, &err), COFFER_E_BAD_VALUE);
    assert_non_null(strstr(err.text, "k4 tensor has 2 dimensions, not 3"));
    assert_int_equal(coffer__quant_plan(&layout, COFFER_DTYPE_Q8, 2, dims, true, &err), COFFER_E_BAD_VALUE);
    assert_int_equal(coffer__quant_plan(&layout, COFFER_DTYPE_F32, 2, dims, false, &err), COFFER_E_BAD_VALUE);
    assert_int_equal(coffer__quant_plan(&layout, COFFER_DTYPE_INT8, 0, NULL, false, NULL), COFFER_OK);
    assert_int_equal(layout.size, 65);
    assert_int_equal(coffer__quant_plan(&layout, COFFER_DTYPE_INT4, 3, dims, false, NULL), COFFER_OK);
    assert_int_equal(layout.size, 68);
    assert_int_equal(layout.cols, 4);
}

static void shapes_that_overflow_are_refused(void **state)
{
    static const uint64_t shapes[][2] = { { UINT64_MAX, UINT64_MAX },
                                          { UINT64_C(1) << 62, 65 },
                                          { UINT64_C(1) << 32, UINT64_C(1) << 35 } };
    (void)state;
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            coffer__quant_layout layout;
            coffer_error err = COFFER_ERROR_INIT;
            assert_int_equal(coffer__quant_plan(&layout, all_types[t], 2, shapes[i], false, &err),
                             COFFER_E_SIZE_MISMATCH);
            assert_non_null(strstr(err.text, "does not fit into 64 bits"));
        }
    }
    /* The columns' rounding up must not wrap: one row of 2^64 − 1 is a size, if a large one. */
    coffer__quant_layout layout = plan(COFFER_DTYPE_K2, 1, UINT64_MAX, false);
    assert_int_equal(layout.blocks_per_row, UINT64_C(1) << 59);
    assert_true(layout.size > UINT64_C(1) << 62);
}

/* ---- Decoding ---- */

static void the_most_negative_code_is_the_number_it_is(void **state)
{
    uint8_t payload[64 + 16] = { 0 };
    float out[32];
    (void)state;
    coffer__quant_layout layout = plan(COFFER_DTYPE_Q4, 1, 32, false);
    coffer__store_u16(payload, 0x3C00);
    payload[64] = 0x78; /* −8, then 7 */
    coffer__quant_decode_rows(out, &layout, payload, 0, 1);
    assert_float_equal(out[0], -8.0f, 0);
    assert_float_equal(out[1], 7.0f, 0);
}

typedef struct counted {
    const uint8_t *payload;
    uint64_t size;
    size_t calls, bytes;
    size_t fail_at;
} counted;

static coffer_status read_counted(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    counted *state = context;
    if (++state->calls == state->fail_at)
        return coffer__fail(err, COFFER_E_IO, offset, "the disk is gone");
    assert_true(offset + len <= state->size);
    memcpy(out, state->payload + offset, len);
    state->bytes += len;
    return COFFER_OK;
}

static void reading_in_pieces_gives_what_decoding_from_memory_gives(void **state)
{
    static const uint64_t shapes[][2] = {
        { 700, 96 }, { 3, 70001 }, { 2, 131072 }, { 300, 513 }, { 2000, 1 }
    };
    (void)state;
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            coffer__quant_layout layout = plan(all_types[t], shapes[s][0], shapes[s][1], false);
            size_t count = (size_t)(layout.rows * layout.cols);
            uint8_t *payload = malloc((size_t)layout.size);
            float *whole = malloc(4 * count), *pieces = malloc(4 * count);
            for (size_t i = 0; i < layout.size; i++)
                payload[i] = (uint8_t)(i * 131 + (i >> 8) * 7) & 0x3B; /* keeps scales finite */
            counted reader = { .payload = payload, .size = layout.size };
            coffer__quant_decode_rows(whole, &layout, payload, 0, layout.rows);
            assert_int_equal(coffer__quant_read_rows(pieces, &layout, 0, layout.rows, read_counted, &reader,
                                                     NULL),
                             COFFER_OK);
            assert_memory_equal(whole, pieces, 4 * count);
            assert_true(reader.calls < 40); /* not one for each row */
            reader = (counted){ .payload = payload, .size = layout.size };
            assert_int_equal(coffer__quant_read_rows(pieces, &layout, 1, 1, read_counted, &reader, NULL),
                             COFFER_OK);
            assert_memory_equal(whole + layout.cols, pieces, 4 * (size_t)layout.cols);
            assert_true(reader.bytes <= (size_t)layout.cols + (size_t)layout.cols / 8 + 64);
            free(payload);
            free(whole);
            free(pieces);
        }
    }
}

static void a_read_that_fails_ends_the_work(void **state)
{
    uint8_t payload[1024] = { 0 };
    float out[256];
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    coffer__quant_layout layout = plan(COFFER_DTYPE_K6, 1, 256, false);
    for (size_t nth = 1; nth <= 3; nth++) {
        counted reader = { .payload = payload, .size = sizeof payload, .fail_at = nth };
        assert_int_equal(coffer__quant_read_rows(out, &layout, 0, 1, read_counted, &reader, &err),
                         COFFER_E_IO);
        assert_int_equal(reader.calls, nth);
        assert_string_equal(err.text, "the disk is gone");
    }
}

static void the_table_has_what_quant_info_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        const coffer__quant_type *type = coffer__quant_find_type(all_types[i]);
        assert_non_null(type);
        assert_int_equal(type->dtype, all_types[i]);
        assert_int_equal(type->index, i);
        assert_non_null(coffer__quant_reference.decode_f32[i]);
        assert_int_equal(type->block_size, i < 6 ? 32 : 0);
        assert_int_equal(type->super_size, i >= 2 && i < 6 ? 256 : 0);
    }
    assert_null(coffer__quant_find_type(COFFER_DTYPE_F16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_range_of_rows_of_the_vectors_decodes_bit_for_bit),
        cmocka_unit_test(regions_begin_at_multiples_of_64_and_nothing_follows_the_last),
        cmocka_unit_test(a_tensor_without_elements_has_no_payload),
        cmocka_unit_test(blocks_want_two_dimensions_and_weights),
        cmocka_unit_test(shapes_that_overflow_are_refused),
        cmocka_unit_test(the_most_negative_code_is_the_number_it_is),
        cmocka_unit_test(reading_in_pieces_gives_what_decoding_from_memory_gives),
        cmocka_unit_test(a_read_that_fails_ends_the_work),
        cmocka_unit_test(the_table_has_what_quant_info_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
