/* Damage is always noticed: no single bit of a file can change without a finding, and no verb that rewrites a
 * file makes damage look intact. */
#include "support/model.h"

#include "base/bytes.h"
#include "coffer/tensors.h"
#include "formats/mcf/mcf_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char in_path[4096], out_path[4096], copy_path[4096];

static void small_model(const char *path, const char *name)
{
    static const uint64_t dims[] = { 4, 5 };
    float values[20];
    coffer_mcf_writer *writer = NULL;
    coffer_mcf_model_info info = COFFER_MCF_MODEL_INFO_INIT;
    info.model_name = name;
    for (size_t i = 0; i < 20; i++)
        values[i] = (float)i * 0.5f;
    assert_int_equal(coffer_mcf_writer_create(&writer, path, &model_overwrite, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_add_section(writer, COFFER_MCF_CONFIG, 1, "{\"n\": 1}", 8, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mcf_writer_set_model_info(writer, &info, NULL), COFFER_OK);
    assert_int_equal(model_add(writer, "first", COFFER_DTYPE_F32, 2, dims, values, NULL), COFFER_OK);
    values[0] = 9;
    assert_int_equal(model_add(writer, "second", COFFER_DTYPE_F32, 2, dims, values, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
}

static int fresh(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    snprintf(in_path, sizeof in_path, "%s/in.mcf", temp_folder);
    snprintf(out_path, sizeof out_path, "%s/out.mcf", temp_folder);
    snprintf(copy_path, sizeof copy_path, "%s/copy.mcf", temp_folder);
    small_model(in_path, "small");
    return 0;
}

static uint64_t offset_of(const char *path, const char *tensor)
{
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    uint64_t offset =
        coffer_mcf_tensor_at(model, coffer_mcf_find_tensor(model, tensor, strlen(tensor)))->offset;
    coffer_mcf_close(model);
    coffer_source_close(src);
    return offset;
}

static void flip_file(const char *path, uint64_t offset)
{
    size_t len;
    uint8_t *bytes = temp_read(path, &len);
    assert_true(offset < len);
    bytes[offset] ^= 4;
    temp_write(path, bytes, len);
    free(bytes);
}

static uint64_t errors_of(const char *path)
{
    coffer_source *src = model_source(path);
    coffer_report *report = model_check(src, true);
    uint64_t errors = coffer_report_total(report, COFFER_ERROR);
    coffer_report_free(report);
    coffer_source_close(src);
    return errors;
}

static bool is_clean(coffer_source *src)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    opts.full = true;
    opts.threads = 1;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, src, &opts, NULL), COFFER_OK);
    bool clean = coffer_report_total(report, COFFER_ERROR) == 0;
    coffer_report_free(report);
    return clean;
}

/* step : 1 for all bits, another odd number for a sample with every bit of a byte. */
static void assert_flips_are_found(const char *path, size_t step)
{
    size_t len;
    uint8_t *bytes = temp_read(path, &len);
    for (size_t bit = 0; bit < 8 * len; bit += step) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        coffer_source *src = model_source_of(bytes, len);
        if (is_clean(src))
            fail_msg("bit %zu of byte %zu", bit % 8, bit / 8);
        coffer_source_close(src);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(bytes);
}

static void every_flipped_bit_of_a_new_file_is_found(void **state)
{
    (void)state;
    assert_flips_are_found(in_path, 1);
}

static void edit(const char *field, const char *text)
{
    coffer_mcf_editor *editor = NULL;
    assert_int_equal(coffer_mcf_editor_open(&editor, in_path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_set_model_info(editor, field, text, (coffer_mcf_kv_type)0, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mcf_editor_commit(editor, NULL), COFFER_OK);
    coffer_mcf_editor_close(editor);
}

static void flipped_bits_of_an_edited_file_are_found(void **state)
{
    (void)state;
    edit("model_name", "other");
    assert_int_equal(errors_of(in_path), 0);
    assert_flips_are_found(in_path, 13);
}

/* More sections than the copy near the front has room for. */
static void a_directory_that_outgrows_its_copy_stays_protected(void **state)
{
    coffer_mcf_editor *editor = NULL;
    (void)state;
    assert_int_equal(coffer_mcf_editor_open(&editor, in_path, NULL, NULL), COFFER_OK);
    for (uint32_t type = 0; type < COFFER__MCF_COPY_ROOM; type++)
        assert_int_equal(coffer_mcf_editor_set_section(editor, 0x7000 + type, "abc", 3, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_commit(editor, NULL), COFFER_OK);
    coffer_mcf_editor_close(editor);
    assert_int_equal(errors_of(in_path), 0);
    size_t len;
    uint8_t *bytes = temp_read(in_path, &len);
    coffer_source *src = model_source_of(bytes, len);
    coffer_mcf *model = model_open(src);
    const coffer_mcf_section *copy = coffer_mcf_find_section(model, COFFER_MCF_DIRECTORY_COPY);
    assert_true(copy->offset > COFFER__MCF_COPY_PLACE);
    coffer_mcf_close(model);
    coffer_source_close(src);
    free(bytes);
    coffer_compact_opts opts = COFFER_COMPACT_OPTS_INIT;
    coffer_node *node = NULL;
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    assert_int_equal(coffer_compact(node, in_path, NULL, &opts, NULL), COFFER_OK);
    coffer_node_free(node);
    assert_int_equal(errors_of(in_path), 0);
}

static void checksums_that_were_removed_can_be_computed_again(void **state)
{
    coffer_mcf_editor *editor = NULL;
    (void)state;
    assert_int_equal(coffer_mcf_editor_open(&editor, in_path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_remove_section(editor, COFFER_MCF_CHECKSUMS, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_commit(editor, NULL), COFFER_OK);
    coffer_mcf_editor_close(editor);
    assert_int_equal(errors_of(in_path), 0);
    assert_int_equal(coffer_mcf_editor_open(&editor, in_path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_set_checksums(editor, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_commit(editor, NULL), COFFER_OK);
    coffer_mcf_editor_close(editor);
    assert_int_equal(errors_of(in_path), 0);
    assert_flips_are_found(in_path, 13);
}

static void reads_of_damaged_tensors_fail_and_of_others_do_not(void **state)
{
    float row[5];
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    flip_file(in_path, offset_of(in_path, "second") + 7);
    coffer_source *src = model_source(in_path);
    coffer_mcf *model = model_open(src);
    assert_int_equal(coffer_mcf_read_rows(row, model, 0, 0, 1, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_read_rows(row, model, 1, 0, 1, &err), COFFER_E_BAD_CHECKSUM);
    assert_non_null(strstr(err.text, "second"));
    assert_null(strstr(err.text, "first"));
    assert_null(coffer_mcf_view(model, 1));
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void views_of_tensors_are_compared_with_their_checksums(void **state)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_tensors *set = NULL;
    (void)state;
    flip_file(in_path, offset_of(in_path, "second") + 7);
    assert_int_equal(coffer_tensors_open_path(&set, in_path, NULL, &err), COFFER_OK);
    size_t second = coffer_tensors_find(set, "second"), size = (size_t)coffer_tensors_at(set, second)->size;
    assert_non_null(coffer_tensors_view(set, second));
    assert_int_equal(coffer_tensors_verify(set, coffer_tensors_find(set, "first"), 0, 1, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_verify(set, second, 0, size, &err), COFFER_E_BAD_CHECKSUM);
    assert_non_null(strstr(err.text, "second"));
    assert_int_equal(coffer_tensors_verify(set, second, 1, size, NULL), COFFER_E_OUT_OF_BOUNDS);
    assert_int_equal(coffer_tensors_verify(set, 99, 0, 1, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_tensors_close(set);
}

static void assert_compact(bool allow, coffer_status expected)
{
    coffer_compact_opts opts = COFFER_COMPACT_OPTS_INIT;
    coffer_node *node = NULL;
    opts.overwrite = true;
    opts.allow_damaged = allow;
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    assert_int_equal(coffer_compact(node, in_path, out_path, &opts, NULL), expected);
    coffer_node_free(node);
}

static void compact_keeps_damage_only_with_a_record(void **state)
{
    (void)state;
    flip_file(in_path, offset_of(in_path, "second") + 7);
    assert_compact(false, COFFER_E_BAD_CHECKSUM);
    assert_compact(true, COFFER_OK);
    assert_int_equal(errors_of(out_path), 1);
}

static void new_checksums_do_not_hide_damage(void **state)
{
    coffer_mcf_editor *editor = NULL;
    coffer_mcf_work_opts opts = COFFER_MCF_WORK_OPTS_INIT;
    (void)state;
    flip_file(in_path, offset_of(in_path, "second") + 7);
    assert_int_equal(coffer_mcf_editor_open(&editor, in_path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_set_checksums(editor, NULL, NULL), COFFER_E_BAD_CHECKSUM);
    opts.allow_damaged = true;
    assert_int_equal(coffer_mcf_editor_set_checksums(editor, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_commit(editor, NULL), COFFER_OK);
    coffer_mcf_editor_close(editor);
    assert_int_equal(errors_of(in_path), 1);
}

static coffer_report *repair_with(const char *copy)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = model_source(in_path);
    opts.overwrite = true;
    opts.copy = copy ? model_source(copy) : NULL;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(report, src, out_path, &opts, NULL), COFFER_OK);
    coffer_source_close(opts.copy);
    coffer_source_close(src);
    return report;
}

static void a_copy_heals_what_repair_recorded(void **state)
{
    (void)state;
    small_model(copy_path, "copy");
    flip_file(in_path, offset_of(in_path, "second") + 7);
    coffer_report *report = repair_with(NULL);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 1);
    coffer_report_free(report);
    assert_int_equal(errors_of(out_path), 1);
    assert_int_equal(rename(out_path, in_path), 0);
    report = repair_with(copy_path);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    coffer_report_free(report);
    assert_int_equal(errors_of(out_path), 0);
}

/* Everything after the removed byte has moved; only the tensor that lost it is damaged. */
static void a_removed_byte_costs_one_tensor(void **state)
{
    size_t len;
    uint8_t *bytes = temp_read(in_path, &len);
    uint64_t place = offset_of(in_path, "first") + 7;
    (void)state;
    memmove(bytes + place, bytes + place + 1, len - place - 1);
    temp_write(in_path, bytes, len - 1);
    free(bytes);
    coffer_report_free(repair_with(NULL));
    coffer_source *src = model_source(out_path);
    coffer_mcf *model = model_open(src);
    float row[5];
    assert_int_equal(coffer_mcf_read_rows(row, model, 0, 0, 1, NULL), COFFER_E_BAD_CHECKSUM);
    assert_int_equal(coffer_mcf_read_rows(row, model, 1, 0, 1, NULL), COFFER_OK);
    assert_true(row[0] == 9.0f);
    assert_int_equal(coffer_mcf_damage_count(model), 1);
    assert_string_equal(coffer_mcf_damage_at(model, 0)->name, "first");
    coffer_mcf_close(model);
    coffer_source_close(src);
}

/* Another program copies sections that it does not know and moves the rest. */
static void checksums_of_another_layout_are_stale_and_only_noted(void **state)
{
    size_t len;
    uint8_t *bytes = temp_read(in_path, &len), *moved = calloc(1, len + 64);
    coffer_source *src = model_source(in_path);
    coffer_mcf *model = model_open(src);
    uint64_t directory = coffer__load_u64(bytes + COFFER__MCF_DIRECTORY_AT);
    (void)state;
    memcpy(moved, bytes, len);
    memcpy(moved + directory + 64, bytes + directory, len - directory);
    uint64_t sums = coffer_mcf_find_section(model, COFFER_MCF_CHECKSUMS)->offset;
    memcpy(moved + sums + 64, bytes + sums, directory - sums);
    memset(moved + sums, 0, 64);
    for (size_t i = 0; i < coffer_mcf_section_count(model); i++) {
        if (coffer_mcf_section_at(model, i)->type == COFFER_MCF_CHECKSUMS)
            coffer__store_u64(moved + directory + 64 + i * COFFER__MCF_DIRECTORY_ENTRY +
                                  COFFER__MCF_DIRECTORY_OFFSET_AT,
                              sums + 64);
    }
    coffer__store_u64(moved + COFFER__MCF_DIRECTORY_AT, directory + 64);
    coffer__store_u64(moved + COFFER__MCF_FILE_SIZE_AT, len + 64);
    coffer_mcf_close(model);
    coffer_source_close(src);
    temp_write(out_path, moved, len + 64);
    src = model_source(out_path);
    coffer_report *report = model_check(src, true);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    assert_non_null(strstr(model_text(report, COFFER_E_INCONSISTENT), "stale checksums"));
    coffer_report_free(report);
    model = model_open(src);
    float row[5];
    assert_int_equal(coffer_mcf_read_rows(row, model, 0, 0, 1, NULL), COFFER_OK);
    coffer_mcf_close(model);
    coffer_source_close(src);
    free(bytes);
    free(moved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_flipped_bit_of_a_new_file_is_found, fresh),
        cmocka_unit_test_setup(flipped_bits_of_an_edited_file_are_found, fresh),
        cmocka_unit_test_setup(a_directory_that_outgrows_its_copy_stays_protected, fresh),
        cmocka_unit_test_setup(checksums_that_were_removed_can_be_computed_again, fresh),
        cmocka_unit_test_setup(reads_of_damaged_tensors_fail_and_of_others_do_not, fresh),
        cmocka_unit_test_setup(views_of_tensors_are_compared_with_their_checksums, fresh),
        cmocka_unit_test_setup(compact_keeps_damage_only_with_a_record, fresh),
        cmocka_unit_test_setup(new_checksums_do_not_hide_damage, fresh),
        cmocka_unit_test_setup(a_copy_heals_what_repair_recorded, fresh),
        cmocka_unit_test_setup(a_removed_byte_costs_one_tensor, fresh),
        cmocka_unit_test_setup(checksums_of_another_layout_are_stale_and_only_noted, fresh),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
