/* Findings in files that can be opened (test_pycauset_read.c has errors that prevent opening). */
#include "support/container.h"

#include <stdlib.h>
#include <string.h>

static void expect(const char *json, coffer_status code, coffer_severity severity, bool ok)
{
    container file = container_make(json);
    container_expect(&file, code, severity, ok);
    container_free(&file);
}

static void a_fresh_file_has_no_finding(void **state)
{
    container file = container_make("{\"properties\":{},\"provenance\":{\"date\":\"today\"}}");
    (void)state;
    container_expect_clean(&file);
    container_free(&file);
}

static void the_preamble_is_checked_field_by_field(void **state)
{
    static const struct {
        int at;
        uint8_t value;
        coffer_status code;
    } wrong[] = { { 8, 2, COFFER_E_UNSUPPORTED_VERSION },
                  { 12, 2, COFFER_E_BAD_VALUE },
                  { 13, 1, COFFER_E_BAD_VALUE },
                  { 15, 1, COFFER_E_RESERVED_NOT_ZERO } };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        container file = container_make("{}");
        file.bytes[wrong[i].at] = wrong[i].value;
        container_expect(&file, wrong[i].code, COFFER_ERROR, false);
        assert_int_equal(container_open_status(&file), wrong[i].code);
        container_free(&file);
    }
}

static void a_file_shorter_than_its_header_is_truncated(void **state)
{
    container file = container_make("{}");
    static const size_t lengths[] = { 8, 15, 16, 100, 272, 4095 };
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        container cut = { file.bytes, lengths[i] };
        container_expect(&cut, COFFER_E_TRUNCATED, COFFER_ERROR, false);
    }
    container_free(&file);
}

static void a_file_cut_after_its_header_is_truncated_and_out_of_bounds(void **state)
{
    container file = container_make("{}");
    (void)state;
    for (size_t cut = 4096; cut < file.len; cut += 17) {
        container part = { file.bytes, cut };
        container_expect(&part, COFFER_E_TRUNCATED, COFFER_ERROR, false);
        container_expect(&part, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR, false);
    }
    container_free(&file);
}

static void reserved_bytes_must_be_zero(void **state)
{
    static const size_t places[] = { 16 + 60, 16 + 127, 144 + 60, 144 + 127, 272, 4095 };
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        container file = container_make("{}");
        file.bytes[places[i]] = 1;
        container_expect(&file, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR, false);
        container_free(&file);
    }
    container file = container_make("{}");
    container_set_slot(&file, CONTAINER_SLOT_A, CONTAINER_HOT_AT, 4096);
    container_expect(&file, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR, false);
    container_free(&file);
}

static void a_spill_file_of_pycauset_is_distinguished_from_a_saved_one(void **state)
{
    container file = container_make("{}");
    coffer_source *src = scan_source_of(file.bytes, file.len);
    (void)state;
    memset(file.bytes + 12, 0, 4);
    coffer_report *report = scan_check(src, false);
    assert_non_null(strstr(scan_text(report, COFFER_E_BAD_VALUE), "while it computes"));
    coffer_report_free(report);
    coffer_source_close(src);
    container_free(&file);
}

static void keys_that_other_programs_rely_on_are_checked(void **state)
{
    (void)state;
    expect("{\"payload_uuid\":null}", COFFER_E_MISSING, COFFER_ERROR, false);
    expect("{\"payload_uuid\":\"0011\"}", COFFER_E_BAD_VALUE, COFFER_ERROR, false);
    expect("{\"payload_uuid\":\"g0112233445566778899aabbccddeeff\"}", COFFER_E_BAD_VALUE, COFFER_ERROR,
           false);
    expect("{\"payload_uuid\":5}", COFFER_E_BAD_VALUE, COFFER_ERROR, false);
    expect("{\"payload_layout\":\"raw_dense\"}", COFFER_E_BAD_VALUE, COFFER_ERROR, false);
    expect("{\"properties\":[]}", COFFER_E_BAD_VALUE, COFFER_ERROR, false);
    expect("{\"cached\":\"x\"}", COFFER_E_BAD_VALUE, COFFER_ERROR, false);
    expect("{\"cached\":[{\"value\":1}]}", COFFER_E_BAD_VALUE, COFFER_ERROR, false);
    expect("{\"provenance\":1}", COFFER_E_BAD_VALUE, COFFER_ERROR, false);
    expect("{\"seed\":\"x\"}", COFFER_E_BAD_VALUE, COFFER_ERROR, false);
    expect("{\"object_type\":\"CausalSet\",\"n\":7}", COFFER_E_INCONSISTENT, COFFER_WARNING, true);
}

static void a_payload_length_that_is_too_large_is_what_pycauset_writes(void **state)
{
    container file = container_make("{}");
    (void)state;
    container_set_slot(&file, CONTAINER_SLOT_A, CONTAINER_PAYLOAD_LEN, 48 + 64);
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_PAYLOAD_LEN, 48 + 64);
    container_expect_clean(&file);
    container_free(&file);
}

static void metadata_inside_the_payload_overlaps(void **state)
{
    container file = container_make("{}");
    size_t len = (size_t)container_slot(&file, CONTAINER_SLOT_A, CONTAINER_METADATA_LEN);
    (void)state;
    memmove(file.bytes + 4096 + 32, file.bytes + 4096 + 48, len);
    container_set_slot(&file, CONTAINER_SLOT_A, CONTAINER_METADATA_AT, 4096 + 32);
    container_expect(&file, COFFER_E_OVERLAP, COFFER_ERROR, false);
    container_free(&file);
}

static void the_state_before_is_checked_too(void **state)
{
    container file = container_make("{}");
    uint64_t place = container_append_block(&file, "{}");
    (void)state;
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_GENERATION, 2);
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_METADATA_AT, place);
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_METADATA_LEN, file.len - place);
    container_expect_clean(&file);
    file.bytes[4096 + 48 + 40] ^= 1; /* in the old block */
    container_expect(&file, COFFER_E_BAD_CHECKSUM, COFFER_WARNING, true);
    container_free(&file);
}

static void slots_that_do_not_go_together_are_noted(void **state)
{
    container file = container_make("{}");
    (void)state;
    container_set_slot(&file, CONTAINER_SLOT_A, CONTAINER_GENERATION, 9);
    container_expect(&file, COFFER_E_INCONSISTENT, COFFER_NOTE, true);
    container_set_slot(&file, CONTAINER_SLOT_A, CONTAINER_GENERATION, 1);
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_PAYLOAD_LEN, 40);
    container_expect(&file, COFFER_E_INCONSISTENT, COFFER_WARNING, true);
    container_free(&file);
}

static void bytes_that_no_slot_names_are_only_noted(void **state)
{
    container file = container_make("{}");
    (void)state;
    container_append_block(&file, "{\"properties\":{\"never\":\"committed\"}}");
    container_expect(&file, COFFER_E_TRAILING_BYTES, COFFER_NOTE, true);
    container_free(&file);
}

static void keys_out_of_order_are_noted(void **state)
{
    static const char two[] = "\x08\x02\0\0\0\x01\0b\x01\x01\x01\0a\x01\x01";
    container plain = container_make("{}");
    size_t len = (size_t)container_slot(&plain, CONTAINER_SLOT_A, CONTAINER_METADATA_LEN) - 32;
    uint8_t *value = malloc(len + sizeof two - 1 - 5);
    (void)state;
    /* The keys of `two` before those of a plain file. */
    memcpy(value, plain.bytes + 4096 + 48 + 32, 5);
    value[1] = (uint8_t)(value[1] + 2);
    memcpy(value + 5, two + 5, sizeof two - 1 - 5);
    memcpy(value + sizeof two - 1, plain.bytes + 4096 + 48 + 32 + 5, len - 5);
    container file = container_of_value(value, len + sizeof two - 1 - 5);
    container_expect(&file, COFFER_E_NOT_SORTED, COFFER_NOTE, true);
    free(value);
    container_free(&plain);
    container_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_file_has_no_finding),
        cmocka_unit_test(the_preamble_is_checked_field_by_field),
        cmocka_unit_test(a_file_shorter_than_its_header_is_truncated),
        cmocka_unit_test(a_file_cut_after_its_header_is_truncated_and_out_of_bounds),
        cmocka_unit_test(reserved_bytes_must_be_zero),
        cmocka_unit_test(a_spill_file_of_pycauset_is_distinguished_from_a_saved_one),
        cmocka_unit_test(keys_that_other_programs_rely_on_are_checked),
        cmocka_unit_test(a_payload_length_that_is_too_large_is_what_pycauset_writes),
        cmocka_unit_test(metadata_inside_the_payload_overlaps),
        cmocka_unit_test(the_state_before_is_checked_too),
        cmocka_unit_test(slots_that_do_not_go_together_are_noted),
        cmocka_unit_test(bytes_that_no_slot_names_are_only_noted),
        cmocka_unit_test(keys_out_of_order_are_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
