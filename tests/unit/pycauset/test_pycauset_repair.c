/* Repair and compact: what is restored, what is reported as lost. */
#include "support/container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *output(void)
{
    const char *path = temp_path(temp_folder, "out.pycauset");
    unlink(path);
    return path;
}

/* Repairs into output() and gives what was said; the test fails when it cannot be done. */
static coffer_report *repair(const container *file, uint64_t to_generation)
{
    coffer_source *src = scan_source_of(file->bytes, file->len);
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.to_generation = to_generation;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    if (coffer_repair(report, src, output(), &opts, &err))
        fail_msg("%s", err.text);
    coffer_source_close(src);
    return report;
}

/* The output is sound and shows properties.v and a generation. */
static void expect_output(uint64_t v, uint64_t generation)
{
    const char *path = temp_path(temp_folder, "out.pycauset");
    uint64_t found;
    container_assert_sound(path);
    assert_int_equal(container_read(path, "properties.v", &found), v);
    assert_int_equal(found, generation);
}

static void expect_repair(const container *file, coffer_status code, uint64_t v, uint64_t generation)
{
    coffer_report *report = repair(file, 0);
    if (!scan_has(report, code, COFFER_WARNING))
        fail_msg("%s was not said", coffer_status_name(code));
    coffer_report_free(report);
    expect_output(v, generation);
}

/* v = 1 in generation 1 (slot A), v = 2 in generation 2 (slot B). */
static container two_states(void)
{
    container file = container_make("{\"properties\":{\"v\":1}}");
    uint64_t place = container_append_block(&file, "{\"properties\":{\"v\":2}}");
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_GENERATION, 2);
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_METADATA_AT, place);
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_METADATA_LEN, file.len - place);
    return file;
}

static void damage(container *file, int slot)
{
    file->bytes[container_slot(file, slot, CONTAINER_METADATA_AT) + 40] ^= 1;
}

static void a_sound_file_is_copied_as_it_is(void **state)
{
    container file = two_states();
    coffer_report *report = repair(&file, 0);
    (void)state;
    assert_int_equal(coffer_report_count(report), 0);
    assert_true(temp_holds(temp_path(temp_folder, "out.pycauset"), file.bytes, file.len));
    coffer_report_free(report);
    container_free(&file);
}

static void a_broken_slot_is_restored_from_the_other(void **state)
{
    container file = two_states();
    (void)state;
    file.bytes[CONTAINER_SLOT_A + 3] ^= 1;
    expect_repair(&file, COFFER_E_BAD_CHECKSUM, 2, 2);
    container_free(&file);
    file = two_states();
    file.bytes[CONTAINER_SLOT_B + 3] ^= 1; /* the block that it named is intact */
    expect_repair(&file, COFFER_E_BAD_CHECKSUM, 2, 2);
    container_free(&file);
    file = container_make("{\"properties\":{\"v\":1}}");
    file.bytes[CONTAINER_SLOT_A] ^= 0x80; /* leaves generation 0, which has none before it */
    expect_repair(&file, COFFER_E_BAD_CHECKSUM, 1, 1);
    container_free(&file);
}

static void damaged_metadata_goes_back_to_the_other_slot(void **state)
{
    container file = two_states();
    (void)state;
    damage(&file, CONTAINER_SLOT_B);
    expect_repair(&file, COFFER_E_BAD_CHECKSUM, 1, 1);
    container_free(&file);
    file = two_states();
    damage(&file, CONTAINER_SLOT_A); /* the state before: nothing visible changes */
    expect_repair(&file, COFFER_E_BAD_CHECKSUM, 2, 2);
    container_free(&file);
}

static void damaged_metadata_and_a_broken_slot_are_restored_from_the_file(void **state)
{
    container file = two_states();
    (void)state;
    damage(&file, CONTAINER_SLOT_B);
    file.bytes[CONTAINER_SLOT_A + 3] ^= 1;
    expect_repair(&file, COFFER_E_BAD_CHECKSUM, 1, 2);
    container_free(&file);
}

static void two_broken_slots_are_restored_from_the_newest_whole_block(void **state)
{
    container file = two_states();
    (void)state;
    file.bytes[CONTAINER_SLOT_A + 3] ^= 1;
    file.bytes[CONTAINER_SLOT_B + 3] ^= 1;
    expect_repair(&file, COFFER_E_BAD_CHECKSUM, 2, 2);
    damage(&file, CONTAINER_SLOT_B);
    file.bytes[file.len - 1] ^= 1;
    expect_repair(&file, COFFER_E_BAD_CHECKSUM, 1, 1);
    container_free(&file);
}

static void a_tail_that_was_cut_off_goes_back_to_what_is_left(void **state)
{
    container file = two_states();
    (void)state;
    file.len -= 5;
    expect_repair(&file, COFFER_E_OUT_OF_BOUNDS, 1, 1);
    container_free(&file);
}

static void without_any_whole_metadata_nothing_is_written(void **state)
{
    container file = two_states();
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    damage(&file, CONTAINER_SLOT_A);
    damage(&file, CONTAINER_SLOT_B);
    coffer_source *src = scan_source_of(file.bytes, file.len);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(report, src, output(), NULL, &err), COFFER_E_MISSING);
    assert_false(temp_exists(temp_path(temp_folder, "out.pycauset")));
    coffer_report_free(report);
    coffer_source_close(src);
    container_free(&file);
}

static void reserved_bytes_are_set_to_zero(void **state)
{
    static const size_t places[] = { 15, CONTAINER_SLOT_A + 70, CONTAINER_SLOT_B + 127, 300, 4095 };
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        container file = two_states();
        file.bytes[places[i]] = 1;
        expect_repair(&file, COFFER_E_RESERVED_NOT_ZERO, 2, 2);
        container_free(&file);
    }
    container file = two_states();
    container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_HOT_AT, 1);
    expect_repair(&file, COFFER_E_RESERVED_NOT_ZERO, 2, 2);
    container_free(&file);
}

static void a_preamble_is_put_in_order_where_a_slot_shows_what_it_was(void **state)
{
    static const struct {
        int at;
        uint8_t value;
    } wrong[] = { { 12, 2 }, { 13, 1 }, { 14, 2 } };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        container file = two_states();
        file.bytes[wrong[i].at] = wrong[i].value;
        expect_repair(&file, COFFER_E_BAD_VALUE, 2, 2);
        container_free(&file);
    }
}

static void a_slot_with_the_wrong_length_of_a_whole_block_is_corrected(void **state)
{
    static const uint64_t lengths[] = { 0, 31, 40 };
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        container file = container_make("{\"properties\":{\"v\":1}}");
        container_set_slot(&file, CONTAINER_SLOT_A, CONTAINER_METADATA_LEN, lengths[i]);
        container_set_slot(&file, CONTAINER_SLOT_B, CONTAINER_METADATA_LEN, lengths[i]);
        expect_repair(&file, COFFER_E_SIZE_MISMATCH, 1, 1);
        container_free(&file);
    }
}

static void going_back_is_a_commit_that_can_be_undone(void **state)
{
    container file = two_states();
    const char *path = temp_path(temp_folder, "out.pycauset");
    size_t len;
    (void)state;
    coffer_report *report = repair(&file, 1);
    assert_int_equal(coffer_report_total(report, COFFER_NOTE), 1);
    assert_int_equal(coffer_report_total(report, COFFER_WARNING), 0);
    expect_output(1, 3);
    container back = { temp_read(path, &len), 0 };
    back.len = len;
    coffer_report *again = repair(&back, 2);
    expect_output(2, 4);
    coffer_report_free(report);
    coffer_report_free(again);
    container_free(&back);
    container_free(&file);
}

static void an_existing_output_is_kept_without_overwrite(void **state)
{
    container file = two_states();
    coffer_source *src = scan_source_of(file.bytes, file.len);
    coffer_report *report = NULL;
    const char *path = output();
    (void)state;
    temp_write(path, "mine", 4);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(report, src, path, NULL, NULL), COFFER_E_EXISTS);
    assert_true(temp_holds(path, "mine", 4));
    coffer_report_free(report);
    coffer_source_close(src);
    container_free(&file);
}

/* ---- Compact ---- */

static uint64_t number(const coffer_node *node, const char *name)
{
    assert_non_null(coffer_node_find(node, name));
    return coffer_node_get_u64(coffer_node_find(node, name));
}

static void compact_keeps_payload_metadata_and_generation_and_drops_the_rest(void **state)
{
    const char *path = temp_path(temp_folder, "m.pycauset");
    container file = two_states();
    coffer_node *said = NULL;
    uint64_t generation;
    size_t len;
    (void)state;
    temp_write(path, file.bytes, file.len);
    for (uint64_t v = 3; v < 20; v++)
        container_commit(path, "properties.v", v);
    assert_int_equal(coffer_node_new(&said, NULL), COFFER_OK);
    assert_int_equal(coffer_compact(said, path, NULL, NULL, NULL), COFFER_OK);
    assert_int_equal(number(said, "blocks_dropped"), 18);
    uint8_t *bytes = temp_read(path, &len);
    assert_int_equal(number(said, "size_after"), len);
    assert_true(number(said, "size_before") > 10 * 300);
    container after = { bytes, len };
    container_expect_clean(&after);
    assert_memory_equal(bytes + 4096, file.bytes + 4096, 48);
    assert_int_equal(container_read(path, "properties.v", &generation), 19);
    assert_int_equal(generation, 19);
    assert_int_equal(container_commit(path, "properties.v", 20), 20);
    coffer_node_free(said);
    free(bytes);
    container_free(&file);
}

static void compact_makes_a_file_of_another_program_smaller_too(void **state)
{
    const char *path = temp_path(temp_folder, "c.pycauset");
    coffer_node *said = NULL;
    (void)state;
    unlink(path);
    assert_int_equal(coffer_node_new(&said, NULL), COFFER_OK);
    assert_int_equal(coffer_compact(said, COFFER_TEST_DATA "/compat/pycauset/vector-cached-ref.pycauset",
                                    path, NULL, NULL),
                     COFFER_OK);
    container_assert_sound(path);
    assert_int_equal(number(said, "blocks_dropped"), 3);
    assert_int_equal(number(said, "size_after"),
                     4096 + 16 + 523 + 79) /* the checksums that it did not have */;
    coffer_node_free(said);
}

static void compact_waits_for_no_writer(void **state)
{
    const char *path = temp_path(temp_folder, "l.pycauset");
    container file = two_states();
    coffer_pycauset_editor *editor = NULL;
    coffer_node *said = NULL;
    (void)state;
    temp_write(path, file.bytes, file.len);
    assert_int_equal(coffer_pycauset_editor_open(&editor, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_node_new(&said, NULL), COFFER_OK);
    assert_int_equal(coffer_compact(said, path, NULL, NULL, NULL), COFFER_E_LOCKED);
    assert_true(temp_holds(path, file.bytes, file.len));
    coffer_node_free(said);
    coffer_pycauset_editor_close(editor);
    container_free(&file);
}

static void compact_does_not_replace_a_file_without_overwrite(void **state)
{
    const char *path = temp_path(temp_folder, "x.pycauset"), *other = temp_path(temp_folder, "y.pycauset");
    container file = two_states();
    coffer_compact_opts opts = COFFER_COMPACT_OPTS_INIT;
    coffer_node *said = NULL;
    (void)state;
    temp_write(path, file.bytes, file.len);
    temp_write(other, "mine", 4);
    assert_int_equal(coffer_node_new(&said, NULL), COFFER_OK);
    assert_int_equal(coffer_compact(said, path, other, &opts, NULL), COFFER_E_EXISTS);
    assert_true(temp_holds(other, "mine", 4));
    coffer_node_free(said);
    container_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_file_is_copied_as_it_is),
        cmocka_unit_test(a_broken_slot_is_restored_from_the_other),
        cmocka_unit_test(damaged_metadata_goes_back_to_the_other_slot),
        cmocka_unit_test(damaged_metadata_and_a_broken_slot_are_restored_from_the_file),
        cmocka_unit_test(two_broken_slots_are_restored_from_the_newest_whole_block),
        cmocka_unit_test(a_tail_that_was_cut_off_goes_back_to_what_is_left),
        cmocka_unit_test(without_any_whole_metadata_nothing_is_written),
        cmocka_unit_test(reserved_bytes_are_set_to_zero),
        cmocka_unit_test(a_preamble_is_put_in_order_where_a_slot_shows_what_it_was),
        cmocka_unit_test(a_slot_with_the_wrong_length_of_a_whole_block_is_corrected),
        cmocka_unit_test(going_back_is_a_commit_that_can_be_undone),
        cmocka_unit_test(an_existing_output_is_kept_without_overwrite),
        cmocka_unit_test(compact_keeps_payload_metadata_and_generation_and_drops_the_rest),
        cmocka_unit_test(compact_makes_a_file_of_another_program_smaller_too),
        cmocka_unit_test(compact_waits_for_no_writer),
        cmocka_unit_test(compact_does_not_replace_a_file_without_overwrite),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
