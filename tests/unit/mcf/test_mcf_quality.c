/* QuantQuality: written, found by name, kept by rewriting, and checked against the original. */
#include "base/bytes.h"
#include "formats/mcf/mcf_layout.h"
#include "support/model.h"
#include "support/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char in_path[300], out_path[300], other_path[300];

static int fresh(void **state)
{
    static const coffer_mcf_quantize_rule rules[] = {
        { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL },
        { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_Q8, "wide*" }
    };
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    opts.overwrite = true;
    opts.no_checksums = true; /* the tests change bytes */
    (void)state;
    temp_empty(temp_folder);
    snprintf(in_path, sizeof in_path, "%s/in.mcf", temp_folder);
    snprintf(out_path, sizeof out_path, "%s/out.mcf", temp_folder);
    snprintf(other_path, sizeof other_path, "%s/other.mcf", temp_folder);
    weights_model(in_path);
    opts.rules = rules;
    opts.rule_count = 2;
    assert_int_equal(coffer_mcf_quantize(NULL, out_path, in_path, &opts, NULL), COFFER_OK);
    return 0;
}

static bool quality_of(coffer_mcf_quality *out, const char *path, const char *name)
{
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    const coffer_mcf_quality *quality =
        coffer_mcf_quality_at(model, coffer_mcf_find_tensor(model, name, strlen(name)));
    bool found = quality != NULL;
    if (found)
        *out = *quality;
    out->importance = NULL; /* it belongs to the handle */
    coffer_mcf_close(model);
    coffer_source_close(src);
    return found;
}

static coffer_report *against(const char *path, const char *original)
{
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    if (coffer_mcf_quantize_check(report, path, original, NULL, &err))
        fail_msg("%s", err.text);
    return report;
}

static void every_quantized_tensor_has_its_quality_and_no_other(void **state)
{
    coffer_mcf_quality quality;
    (void)state;
    model_assert_clean(out_path);
    assert_true(quality_of(&quality, out_path, "deep.weight"));
    assert_true(quality.snr_db > 19.0f && quality.snr_db < 25.0f);
    assert_int_equal(quality.method, COFFER_QUANT_FIT);
    assert_true(quality_of(&quality, out_path, "wide.weight"));
    assert_true(quality.snr_db > 40.0f);
    assert_false(quality_of(&quality, out_path, "norm.weight"));
    assert_false(quality_of(&quality, in_path, "deep.weight"));
}

static void it_is_kept_by_pack_and_compact_also_when_tensors_are_renumbered(void **state)
{
    static const char *const exclude[] = { "deep*" };
    const char *input = out_path;
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    coffer_mcf_quality before, after;
    coffer_node *node = NULL;
    opts.overwrite = true;
    (void)state;
    opts.exclude = exclude;
    opts.exclude_count = 1;
    assert_int_equal(coffer_mcf_pack(other_path, &input, 1, &opts, NULL), COFFER_OK);
    model_assert_clean(other_path);
    assert_true(quality_of(&before, out_path, "tall.weight"));
    assert_true(quality_of(&after, other_path, "tall.weight"));
    assert_true(before.snr_db == after.snr_db && before.max_error == after.max_error);
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    coffer_compact_opts compact_opts = COFFER_COMPACT_OPTS_INIT;
    compact_opts.overwrite = true;
    assert_int_equal(coffer_compact(node, out_path, other_path, &compact_opts, NULL), COFFER_OK);
    coffer_node_free(node);
    model_assert_clean(other_path);
    assert_true(quality_of(&after, other_path, "tall.weight"));
    assert_true(before.snr_db == after.snr_db);
}

static void the_original_confirms_it(void **state)
{
    coffer_report *report = against(out_path, in_path);
    (void)state;
    assert_int_equal(coffer_report_count(report), 0);
    coffer_report_free(report);
}

static void another_original_is_a_finding_for_each_tensor(void **state)
{
    static const uint64_t dims[] = { 64, 320 };
    float *values = malloc(64 * 320 * sizeof *values);
    coffer_mcf_writer *writer = NULL;
    (void)state;
    weights_fill(values, 64 * 320, 99);
    assert_int_equal(coffer_mcf_writer_create(&writer, other_path, &model_overwrite, NULL), COFFER_OK);
    assert_int_equal(model_add(writer, "deep.weight", COFFER_DTYPE_F32, 2, dims, values, NULL), COFFER_OK);
    assert_int_equal(model_add(writer, "tall.weight", COFFER_DTYPE_F32, 2, dims, values, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    coffer_report *report = against(out_path, other_path);
    assert_true(strstr(model_text(report, COFFER_E_INCONSISTENT), "\"deep.weight\": the file records"));
    assert_true(strstr(model_text(report, COFFER_E_MISSING), "\"wide.weight\" is not in the original"));
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 4);
    coffer_report_free(report);
    free(values);
}

static void a_file_that_says_nothing_cannot_be_confirmed(void **state)
{
    coffer_report *report = against(in_path, in_path);
    (void)state;
    assert_true(model_has(report, COFFER_E_MISSING, COFFER_WARNING));
    coffer_report_free(report);
}

/* ---- Hostile sections ---- */

static uint64_t section_place(void)
{
    coffer_source *src = model_source(out_path);
    coffer_mcf *model = model_open(src);
    const coffer_mcf_section *section = coffer_mcf_find_section(model, COFFER_MCF_QUALITY);
    assert_non_null(section);
    uint64_t place = section->offset;
    coffer_mcf_close(model);
    coffer_source_close(src);
    return place;
}

/* Sets four bytes of the section; check finds `code` there, and the tensors can be read all the same. */
static void broken(uint64_t at, uint32_t value, coffer_status code)
{
    size_t len;
    uint8_t *bytes = temp_read(out_path, &len);
    float row[320];
    coffer__store_u32(bytes + section_place() + at, value);
    temp_write(other_path, bytes, len);
    free(bytes);
    coffer_source *src = model_source(other_path);
    coffer_report *report = model_check(src, true);
    if (!*model_text(report, code))
        fail_msg("no %s for %u at %u", coffer_status_name(code), value, (unsigned)at);
    coffer_report_free(report);
    coffer_mcf *model = model_open(src);
    size_t tensor = coffer_mcf_find_tensor(model, "deep.weight", 11);
    assert_int_equal(coffer_mcf_read_rows_f32(row, model, tensor, 0, 1, NULL), COFFER_OK);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void every_rule_of_the_section_is_checked_and_none_keeps_tensors_from_being_read(void **state)
{
    const uint64_t record = COFFER__MCF_QUALITY_HEADER;
    (void)state;
    broken(0, 2, COFFER_E_UNSUPPORTED_VERSION);
    broken(4, UINT32_MAX, COFFER_E_OUT_OF_BOUNDS);
    broken(8, UINT32_MAX, COFFER_E_OUT_OF_BOUNDS);
    broken(record, UINT32_MAX, COFFER_E_OUT_OF_BOUNDS);
    broken(record + 4, UINT32_MAX, COFFER_E_OUT_OF_BOUNDS);
    broken(record + 12, 1000, COFFER_E_OUT_OF_BOUNDS);
    broken(record + 16, UINT32_C(0x00070031), COFFER_E_BAD_VALUE);
    broken(record + 20, UINT32_C(0x7FC00000), COFFER_E_BAD_VALUE);
    broken(record + 24, UINT32_C(0xBF800000), COFFER_E_BAD_VALUE);
    broken(record + 28, 1, COFFER_E_RESERVED_NOT_ZERO);
}

static void a_record_for_another_type_does_not_count(void **state)
{
    size_t len;
    uint8_t *bytes = temp_read(out_path, &len);
    coffer_mcf_quality quality;
    (void)state;
    coffer__store_u16(bytes + section_place() + COFFER__MCF_QUALITY_HEADER + 16, 0x30);
    temp_write(other_path, bytes, len);
    free(bytes);
    assert_false(quality_of(&quality, other_path, "deep.weight"));
    assert_true(quality_of(&quality, other_path, "tall.weight"));
}

static void only_quantized_tensors_have_a_quality(void **state)
{
    static const uint64_t dims[] = { 1 };
    const coffer_mcf_new_tensor tensor = {
        sizeof(coffer_mcf_new_tensor), COFFER_DTYPE_F32, "a", 1, 1, dims, NULL
    };
    coffer_mcf_quality quality = { sizeof quality, COFFER_QUANT_FIT, 1.0f, 1.0f, NULL };
    coffer_mcf_writer *writer = NULL;
    (void)state;
    assert_int_equal(coffer_mcf_writer_create(&writer, other_path, &model_overwrite, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &tensor, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_set_quality(writer, &quality, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_mcf_writer_discard(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_quantized_tensor_has_its_quality_and_no_other, fresh),
        cmocka_unit_test_setup(it_is_kept_by_pack_and_compact_also_when_tensors_are_renumbered, fresh),
        cmocka_unit_test_setup(the_original_confirms_it, fresh),
        cmocka_unit_test_setup(another_original_is_a_finding_for_each_tensor, fresh),
        cmocka_unit_test_setup(a_file_that_says_nothing_cannot_be_confirmed, fresh),
        cmocka_unit_test_setup(every_rule_of_the_section_is_checked_and_none_keeps_tensors_from_being_read,
                               fresh),
        cmocka_unit_test_setup(a_record_for_another_type_does_not_count, fresh),
        cmocka_unit_test_setup(only_quantized_tensors_have_a_quality, fresh),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
