/* Opening: which slot counts, what the keys mean, which cached values are taken. */
#include "formats/pycauset/pycauset_private.h"
#include "support/container.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_open(const char *json, coffer_status status)
{
    container file = container_make(json);
    if (container_open_status(&file) != status)
        fail_msg("%s: %s", json, coffer_status_name(container_open_status(&file)));
    if (status)
        container_expect(&file, status, COFFER_ERROR, false);
    container_free(&file);
}

/* ---- Slots ---- */

static char active_of(const container *file, uint64_t *generation)
{
    coffer_source *src = scan_source_of(file->bytes, file->len);
    coffer_pycauset *matrix = container_open(src);
    char slot = coffer_pycauset_get_info(matrix)->active_slot;
    *generation = coffer_pycauset_get_info(matrix)->generation;
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    return slot;
}

static void the_higher_generation_counts_and_b_on_a_tie(void **state)
{
    container file = container_make("{}");
    uint64_t generation;
    (void)state;
    assert_int_equal(active_of(&file, &generation), 'A');
    assert_int_equal(generation, 1);
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_GENERATION, 1);
    assert_int_equal(active_of(&file, &generation), 'B');
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_GENERATION, UINT64_MAX);
    assert_int_equal(active_of(&file, &generation), 'B');
    assert_true(generation == UINT64_MAX);
    container_free(&file);
}

static void a_slot_is_valid_only_with_its_checksum_its_ranges_and_alignments(void **state)
{
    static const struct {
        int field;
        uint64_t value;
        coffer_status code;
    } wrong[] = {
        { CONTAINER_PAYLOAD_AT, 4097, COFFER_E_MISALIGNED },
        { CONTAINER_PAYLOAD_AT, 0, COFFER_E_OUT_OF_BOUNDS },
        { CONTAINER_PAYLOAD_AT, 8192, COFFER_E_OUT_OF_BOUNDS },
        { CONTAINER_PAYLOAD_AT, UINT64_MAX - 4095, COFFER_E_OUT_OF_BOUNDS },
        { CONTAINER_PAYLOAD_LEN, 5000, COFFER_E_OUT_OF_BOUNDS },
        { CONTAINER_PAYLOAD_LEN, UINT64_MAX, COFFER_E_OUT_OF_BOUNDS },
        { CONTAINER_METADATA_AT, 4152, COFFER_E_MISALIGNED },
        { CONTAINER_METADATA_AT, 16, COFFER_E_OUT_OF_BOUNDS },
        { CONTAINER_METADATA_AT, UINT64_MAX - 15, COFFER_E_OUT_OF_BOUNDS },
        { CONTAINER_METADATA_LEN, 5000, COFFER_E_OUT_OF_BOUNDS },
        { CONTAINER_METADATA_LEN, UINT64_MAX, COFFER_E_OUT_OF_BOUNDS },
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        container file = container_make("{}");
        uint64_t generation;
        /* A block that begins elsewhere is cut so that only the alignment is wrong. */
        if (wrong[i].code == COFFER_E_MISALIGNED && wrong[i].field == CONTAINER_METADATA_AT)
            container_set_slot(&file, CONTAINER_SLOT_A, CONTAINER_METADATA_LEN, 100);
        container_set_slot(&file, CONTAINER_SLOT_A, wrong[i].field, wrong[i].value);
        assert_int_equal(active_of(&file, &generation), 'B');
        container_expect(&file, wrong[i].code, COFFER_WARNING, true);
        file.bytes[CONTAINER_SLOT_B] ^= 1;
        assert_int_equal(container_open_status(&file), wrong[i].code);
        container_expect(&file, wrong[i].code, COFFER_ERROR, false);
        container_expect(&file, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, false);
        container_free(&file);
    }
}

static void without_a_valid_slot_both_reasons_are_reported(void **state)
{
    container file = container_make("{}");
    coffer_source *src = scan_source_of(file.bytes, file.len);
    coffer_pycauset *matrix = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    container_set_slot(&file, CONTAINER_SLOT_A, CONTAINER_PAYLOAD_LEN, 5000);
    file.bytes[CONTAINER_SLOT_B] ^= 1;
    assert_int_equal(coffer_pycauset_open(&matrix, src, NULL, &err), COFFER_E_OUT_OF_BOUNDS);
    assert_non_null(strstr(err.text, "no valid header slot"));
    assert_non_null(strstr(err.text, "slot A: payload ends at 9096"));
    assert_non_null(strstr(err.text, "slot B: its checksum does not match"));
    coffer_source_close(src);
    container_expect(&file, COFFER_E_TRUNCATED, COFFER_ERROR, false);
    container_free(&file);
}

static void damaged_metadata_never_falls_back_to_the_other_slot(void **state)
{
    container file = container_make("{}");
    uint64_t place = container_append_block(&file, "{\"properties\":{\"v\":2}}");
    (void)state;
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_GENERATION, 2);
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_METADATA_AT, place);
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_METADATA_LEN, file.len - place);
    container_expect_clean(&file);
    file.bytes[file.len - 1] ^= 1;
    assert_int_equal(container_open_status(&file), COFFER_E_BAD_CHECKSUM);
    container_expect(&file, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, false);
    container_free(&file);
}

static void the_framing_of_the_block_is_checked_field_by_field(void **state)
{
    static const struct {
        int at;
        coffer_status code;
    } wrong[] = { { 0, COFFER_E_BAD_MAGIC },           { 4, COFFER_E_UNSUPPORTED_VERSION },
                  { 8, COFFER_E_UNSUPPORTED_VERSION }, { 12, COFFER_E_RESERVED_NOT_ZERO },
                  { 16, COFFER_E_SIZE_MISMATCH },      { 24, COFFER_E_BAD_CHECKSUM },
                  { 28, COFFER_E_RESERVED_NOT_ZERO } };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        container file = container_make("{}");
        file.bytes[container_slot(&file, CONTAINER_SLOT_A, CONTAINER_METADATA_AT) + (size_t)wrong[i].at] ^=
            0x40;
        assert_int_equal(container_open_status(&file), wrong[i].code);
        container_expect(&file, wrong[i].code, COFFER_ERROR, false);
        container_free(&file);
    }
}

static void a_block_shorter_than_its_framing_is_refused(void **state)
{
    container file = container_make("{}");
    (void)state;
    for (int slot = CONTAINER_SLOT_A; slot <= CONTAINER_SLOT_B; slot += CONTAINER_SLOT_B - CONTAINER_SLOT_A)
        container_set_slot(&file, slot, CONTAINER_METADATA_LEN, 31);
    assert_int_equal(container_open_status(&file), COFFER_E_SIZE_MISMATCH);
    container_free(&file);
}

/* ---- Keys ---- */

static void keys_that_are_missing_or_wrong_are_named(void **state)
{
    (void)state;
    expect_open("{\"rows\":null}", COFFER_E_MISSING);
    expect_open("{\"cols\":null}", COFFER_E_MISSING);
    expect_open("{\"matrix_type\":null}", COFFER_E_MISSING);
    expect_open("{\"data_type\":null}", COFFER_E_MISSING);
    expect_open("{\"payload_layout\":null}", COFFER_E_MISSING);
    expect_open("{\"payload_layout\":{\"params\":{}}}", COFFER_E_MISSING);
    expect_open("{\"rows\":-2}", COFFER_E_BAD_VALUE);
    expect_open("{\"rows\":2.0}", COFFER_E_BAD_VALUE);
    expect_open("{\"cols\":\"3\"}", COFFER_E_BAD_VALUE);
    expect_open("{\"matrix_type\":7}", COFFER_E_BAD_VALUE);
    expect_open("{\"view\":[]}", COFFER_E_BAD_VALUE);
    expect_open("{\"view\":{\"is_transposed\":1}}", COFFER_E_BAD_VALUE);
    expect_open("{\"view\":{\"scalar\":\"2\"}}", COFFER_E_BAD_VALUE);
    expect_open("{\"view\":{\"scalar\":{\"real\":1.0}}}", COFFER_E_BAD_VALUE);
    expect_open("{\"payload_layout\":{\"kind\":\"raw_triangular\"}}", COFFER_E_INCONSISTENT);
    expect_open("{\"data_type\":\"MIXED\"}", COFFER_E_INCONSISTENT);
    expect_open("{\"matrix_type\":\"CAUSAL\",\"rows\":3,\"payload_layout\":{\"kind\":\"raw_triangular\"}}",
                COFFER_E_INCONSISTENT);
    expect_open("{\"matrix_type\":\"ANTISYMMETRIC\",\"data_type\":\"UINT8\",\"rows\":3,"
                "\"payload_layout\":{\"kind\":\"raw_triangular\"}}",
                COFFER_E_INCONSISTENT);
    expect_open("{\"matrix_type\":\"VECTOR\"}", COFFER_E_BAD_VALUE);
    expect_open("{\"matrix_type\":\"SYMMETRIC\",\"payload_layout\":{\"kind\":\"raw_triangular\"}}",
                COFFER_E_BAD_VALUE);
    expect_open("{\"matrix_type\":\"UNIT_VECTOR\",\"cols\":1,\"seed\":2}", COFFER_E_OUT_OF_BOUNDS);
    expect_open("{\"matrix_type\":\"UNIT_VECTOR\",\"cols\":1,\"seed\":null}", COFFER_E_MISSING);
    expect_open("{\"rows\":3}", COFFER_E_SIZE_MISMATCH);
    expect_open("{\"rows\":18446744073709551615,\"cols\":18446744073709551615}", COFFER_E_SIZE_MISMATCH);
}

static void every_legal_variant_opens(void **state)
{
    (void)state;
    expect_open("{\"view\":null}", COFFER_OK);
    expect_open("{\"view\":{}}", COFFER_OK);
    expect_open("{\"seed\":null}", COFFER_OK);
    expect_open("{\"seed\":-5}", COFFER_OK);
    expect_open("{\"rows\":0}", COFFER_OK);
    expect_open("{\"rows\":0,\"cols\":18446744073709551615,\"data_type\":\"INT8\"}", COFFER_OK);
    expect_open("{\"rows\":1}", COFFER_OK);
    expect_open("{\"view\":{\"scalar\":2}}", COFFER_OK);
    expect_open("{\"view\":{\"scalar\":{\"real\":1,\"imag\":-2.5}}}", COFFER_OK);
    expect_open("{\"matrix_type\":\"IDENTITY\",\"rows\":1000000,\"cols\":1000000}", COFFER_OK);
    expect_open("{\"matrix_type\":\"IDENTITY\",\"payload_layout\":{\"kind\":\"none\"}}", COFFER_OK);
    expect_open("{\"matrix_type\":\"UNIT_VECTOR\",\"cols\":1,\"seed\":1}", COFFER_OK);
    expect_open("{\"matrix_type\":\"VECTOR\",\"rows\":6,\"cols\":1}", COFFER_OK);
    expect_open("{\"matrix_type\":\"VECTOR\",\"rows\":1,\"cols\":6,\"view\":{\"is_transposed\":true}}",
                COFFER_OK);
    expect_open("{\"matrix_type\":\"SYMMETRIC\",\"rows\":3,\"payload_layout\":{\"kind\":\"raw_triangular\"}}",
                COFFER_OK);
    expect_open("{\"anything\":[1,{\"else\":\"kept\"}]}", COFFER_OK);
    expect_open("{\"object_type\":\"CausalSet\",\"n\":2,\"spacetime\":{\"type\":\"MinkowskiDiamond\"}}",
                COFFER_OK);
}

/* Sizes of rows against a loop over all of them. */
static void the_bytes_of_a_triangle_are_those_of_its_rows(void **state)
{
    static const coffer_dtype types[] = { COFFER_DTYPE_BIT, COFFER_DTYPE_I8,  COFFER_DTYPE_F16,
                                          COFFER_DTYPE_F32, COFFER_DTYPE_F64, COFFER_DTYPE_C32,
                                          COFFER_DTYPE_C64, COFFER_DTYPE_C128 };
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        uint64_t sum = 0, row, bytes;
        for (uint64_t longest = 0; longest < 300; longest++) {
            assert_true(coffer__pycauset_triangle_row_bytes(&row, types[t], longest));
            sum += row;
            assert_true(coffer__pycauset_triangle_bytes(&bytes, types[t], longest));
            assert_int_equal(bytes, sum);
        }
        assert_false(coffer__pycauset_triangle_bytes(&bytes, types[t], UINT64_MAX));
        assert_false(coffer__pycauset_triangle_bytes(&bytes, types[t], UINT64_C(1) << 63));
    }
}

/* ---- Cached values ---- */

static void signatures_are_printed_as_percent_g_does(void **state)
{
    static const double numbers[] = { 0,      1,        -1,       2.5,     100,     100000,
                                      999999, 999999.5, 1e6,      1234567, 1e-4,    0.00012345,
                                      1e-5,   1e300,    -1e-300,  1.0 / 3, 123.456, 5e-324,
                                      1e100,  -0.0,     12345.67, 0.1,     1e15,    99999.95 };
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        coffer_pycauset_info info = { .transposed = true,
                                      .scalar_real = numbers[i],
                                      .scalar_imag = -numbers[i] };
        char expected[96], found[COFFER__PYCAUSET_SIGNATURE_SIZE];
        snprintf(expected, sizeof expected, "t=1;c=0;sr=%g;si=%g", numbers[i], -numbers[i]);
        coffer__pycauset_view_signature(found, &info);
        assert_string_equal(found, expected);
    }
    coffer_pycauset_info odd = { .conjugated = true, .scalar_real = NAN, .scalar_imag = -INFINITY };
    char found[COFFER__PYCAUSET_SIGNATURE_SIZE];
    coffer__pycauset_view_signature(found, &odd);
    assert_string_equal(found, "t=0;c=1;sr=nan;si=-inf");
}

static void a_cached_value_counts_only_with_the_signature_of_payload_and_view(void **state)
{
    static const char *const names[] = { "other_payload", "other_view", "unsigned", "valueless", "absent" };
    container file = container_make(
        "{\"view\":{\"scalar\":2.5},\"cached\":{"
        "\"good\":{\"value\":[1,2],\"signature\":{\"payload_uuid\":\"00112233445566778899aabbccddeeff\","
        "\"view_signature\":\"t=0;c=0;sr=2.5;si=0\"}},"
        "\"other_payload\":{\"value\":1,\"signature\":{\"payload_uuid\":\"ff112233445566778899aabbccddeeff\","
        "\"view_signature\":\"t=0;c=0;sr=2.5;si=0\"}},"
        "\"other_view\":{\"value\":1,\"signature\":{\"payload_uuid\":\"00112233445566778899aabbccddeeff\","
        "\"view_signature\":\"t=0;c=0;sr=1;si=0\"}},"
        "\"unsigned\":{\"value\":1},"
        "\"valueless\":{\"signature\":{\"payload_uuid\":\"00112233445566778899aabbccddeeff\","
        "\"view_signature\":\"t=0;c=0;sr=2.5;si=0\"}}}}");
    coffer_source *src = scan_source_of(file.bytes, file.len);
    coffer_pycauset *matrix = container_open(src);
    bool stale = true;
    (void)state;
    assert_int_equal(coffer_pycauset_value_count(coffer_pycauset_cached(matrix, "good", &stale)), 2);
    assert_false(stale);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_null(coffer_pycauset_cached(matrix, names[i], &stale));
        assert_int_equal(stale, strcmp(names[i], "absent") != 0);
    }
    container_expect(&file, COFFER_E_INCONSISTENT, COFFER_NOTE, true);
    container_expect(&file, COFFER_E_MISSING, COFFER_WARNING, true);
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    container_free(&file);
}

/* ---- Bytes read by open ---- */

static uint64_t bytes_read, reads;

static coffer_status counting_read(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    (void)err;
    bytes_read += len;
    reads++;
    memcpy(out, (uint8_t *)context + offset, len);
    return COFFER_OK;
}

static void opening_reads_two_slots_and_one_block(void **state)
{
    container file = container_make("{}");
    coffer_source_ops ops = { .struct_size = sizeof ops, .read_at = counting_read };
    coffer_source *src = NULL;
    (void)state;
    assert_int_equal(coffer_source_new(&src, &ops, file.bytes, file.len, "counted", NULL), COFFER_OK);
    coffer_pycauset *matrix = container_open(src);
    assert_int_equal(reads, 2);
    assert_int_equal(bytes_read, 272 + container_slot(&file, CONTAINER_SLOT_A, CONTAINER_METADATA_LEN));
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    container_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_higher_generation_counts_and_b_on_a_tie),
        cmocka_unit_test(a_slot_is_valid_only_with_its_checksum_its_ranges_and_alignments),
        cmocka_unit_test(without_a_valid_slot_both_reasons_are_reported),
        cmocka_unit_test(damaged_metadata_never_falls_back_to_the_other_slot),
        cmocka_unit_test(the_framing_of_the_block_is_checked_field_by_field),
        cmocka_unit_test(a_block_shorter_than_its_framing_is_refused),
        cmocka_unit_test(keys_that_are_missing_or_wrong_are_named),
        cmocka_unit_test(every_legal_variant_opens),
        cmocka_unit_test(the_bytes_of_a_triangle_are_those_of_its_rows),
        cmocka_unit_test(signatures_are_printed_as_percent_g_does),
        cmocka_unit_test(a_cached_value_counts_only_with_the_signature_of_payload_and_view),
        cmocka_unit_test(opening_reads_two_slots_and_one_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
