/* Repair keeps the intact parts of damaged models and reports the rest. */
#include "base/bytes.h"
#include "support/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char in_path[4096], out_path[4096];

static int fresh(void **state)
{
    int result = temp_setup(state);
    snprintf(in_path, sizeof in_path, "%s", temp_path(temp_folder, "in.mcf"));
    snprintf(out_path, sizeof out_path, "%s", temp_path(temp_folder, "out.mcf"));
    return result;
}

/* Tensors "t0"…"t7" of 1000 bytes each, with the index in front of them or behind. */
static uint8_t *eight_tensors(size_t *len, bool index_in_front)
{
    const uint64_t dims[1] = { 1000 };
    uint8_t bytes[1000];
    coffer_mcf_model_info info = COFFER_MCF_MODEL_INFO_INIT;
    const coffer_mcf_kv kv = { sizeof(coffer_mcf_kv), COFFER_MCF_KV_U32, "k", 1, 0, NULL, 0 };
    coffer_mcf_writer *writer = NULL;
    info.model_name = "eight";
    info.kvs = &kv;
    info.kv_count = 1;
    assert_int_equal(coffer_mcf_writer_create(&writer, in_path, &model_overwrite, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_set_model_info(writer, &info, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_add_section(writer, COFFER_MCF_CONFIG, 1, "{}", 2, NULL), COFFER_OK);
    if (index_in_front)
        assert_int_equal(coffer_mcf_writer_reserve_index(writer, 8, 8, 16, NULL), COFFER_OK);
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        memset(bytes, 'a' + i, sizeof bytes);
        assert_int_equal(model_add(writer, name, COFFER_DTYPE_U8, 1, dims, bytes, NULL), COFFER_OK);
    }
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    return temp_read(in_path, len);
}

static coffer_report *repair(const void *bytes, size_t len)
{
    coffer_source *src = model_source_of(bytes, len);
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    opts.overwrite = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    if (coffer_repair(report, src, out_path, &opts, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    coffer_source_close(src);
    return report;
}

static void assert_tensors(size_t count)
{
    coffer_source *src = model_source(out_path);
    coffer_mcf_open_opts opts = COFFER_MCF_OPEN_OPTS_INIT;
    coffer_mcf *model = NULL;
    opts.allow_damaged = true;
    assert_int_equal(coffer_mcf_open(&model, src, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_tensor_count(model), count);
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[1000];
        assert_int_equal(coffer_mcf_read(bytes, model, i, 0, sizeof bytes, NULL), COFFER_OK);
        assert_int_equal(bytes[0], 'a' + i);
        assert_int_equal(bytes[999], 'a' + i);
    }
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static coffer_report *check_file(const char *path)
{
    coffer_source *src = model_source(path);
    coffer_report *report = model_check(src, true);
    coffer_source_close(src);
    return report;
}

/* Nothing is wrong but `count` tensors that are recorded as unverified, and those that are recorded as lost.
 * Returns how many are lost. */
static size_t assert_unverified(size_t count)
{
    coffer_report *report = check_file(out_path);
    size_t errors = (size_t)coffer_report_total(report, COFFER_ERROR), lost = 0;
    assert_int_equal(coffer_report_total(report, COFFER_WARNING), 0);
    for (size_t i = 0; i < errors; i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        bool is_lost = finding->code == COFFER_E_MISSING;
        assert_true(is_lost || finding->code == COFFER_E_BAD_CHECKSUM);
        assert_non_null(strstr(finding->text, is_lost ? "was lost in a repair" : "could not be verified"));
        lost += is_lost;
    }
    assert_int_equal(errors - lost, count);
    coffer_report_free(report);
    return lost;
}

static size_t tensors_in_output(void)
{
    coffer_source *src = model_source(out_path);
    coffer_mcf *model = model_open(src);
    size_t count = coffer_mcf_tensor_count(model);
    coffer_mcf_close(model);
    coffer_source_close(src);
    return count;
}

static void a_download_that_broke_off_keeps_the_tensors_that_are_whole(void **state)
{
    size_t len = 0;
    uint8_t *bytes = eight_tensors(&len, true);
    coffer_source *src = model_source(in_path);
    coffer_mcf *model = model_open(src);
    uint64_t third = coffer_mcf_tensor_at(model, 3)->offset;
    (void)state;
    coffer_mcf_close(model);
    coffer_source_close(src);
    coffer_report *report = repair(bytes, (size_t)third + 500);
    assert_non_null(strstr(model_text(report, COFFER_E_TRUNCATED), "tensors kept: 3 of 8"));
    coffer_report_free(report);
    assert_tensors(3);
    assert_int_equal(assert_unverified(3), 5);
    free(bytes);
}

/* The index, stored after the payloads, is cut off; the ModelInfo before them is intact. */
static void without_an_index_nothing_names_the_tensors(void **state)
{
    size_t len = 0;
    uint8_t *bytes = eight_tensors(&len, false);
    coffer_source *src;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    coffer_node *described = NULL;
    (void)state;
    src = model_source_of(bytes, 5000);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(report, src, out_path, NULL, &err), COFFER_OK);
    coffer_source_close(src);
    coffer_report_free(report);
    src = model_source(out_path);
    assert_int_equal(coffer_node_new(&described, NULL), COFFER_OK);
    assert_int_equal(coffer_describe(described, src, NULL, NULL), COFFER_OK);
    assert_string_equal(coffer_node_get_text(coffer_node_find(described, "model_name"), NULL), "eight");
    coffer_node_free(described);
    coffer_source_close(src);
    free(bytes);
}

static void a_damaged_header_is_replaced_by_its_copy(void **state)
{
    (void)state;
    for (int in_front = 0; in_front < 2; in_front++) {
        size_t len = 0;
        uint8_t *bytes = eight_tensors(&len, in_front);
        coffer__store_u64(bytes + 16, UINT64_MAX - 7);
        coffer_report *report = repair(bytes, len);
        assert_true(model_has(report, COFFER_E_INCONSISTENT, COFFER_NOTE));
        coffer_report_free(report);
        assert_tensors(8);
        model_assert_clean(out_path);
        free(bytes);
    }
}

static void a_clean_model_is_copied_as_it_is(void **state)
{
    size_t len = 0;
    uint8_t *bytes = eight_tensors(&len, false);
    coffer_report *report = repair(bytes, len);
    (void)state;
    assert_int_equal(coffer_report_count(report), 0);
    assert_true(temp_holds(out_path, bytes, len));
    coffer_report_free(report);
    free(bytes);
}

static void a_wrong_file_size_alone_loses_nothing(void **state)
{
    size_t len = 0;
    uint8_t *bytes = eight_tensors(&len, false);
    (void)state;
    coffer__store_u64(bytes + 24, len + 99);
    coffer_report_free(repair(bytes, len));
    assert_tensors(8);
    model_assert_clean(out_path);
    free(bytes);
}

static void damaged_bytes_stay_recorded(void **state)
{
    size_t len = 0;
    uint8_t *bytes = eight_tensors(&len, false);
    uint8_t *payload = memmem(bytes, len, "aaaaaaaa", 8);
    (void)state;
    assert_non_null(payload);
    payload[100] = 'x';
    coffer_report *report = repair(bytes, len);
    assert_non_null(strstr(model_text(report, COFFER_E_BAD_CHECKSUM), "recorded as damaged"));
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 1);
    coffer_report_free(report);
    report = check_file(out_path);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 1);
    assert_non_null(strstr(model_text(report, COFFER_E_BAD_CHECKSUM), "known to be damaged"));
    coffer_report_free(report);
    free(bytes);
}

static void a_model_with_nothing_to_save_is_an_error_and_leaves_no_file(void **state)
{
    size_t len = 0;
    uint8_t *bytes = eight_tensors(&len, false);
    coffer_source *src = model_source_of(bytes, 40);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    (void)state;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(report, src, out_path, NULL, &err), COFFER_E_TRUNCATED);
    assert_false(temp_exists(out_path));
    coffer_report_free(report);
    coffer_source_close(src);
    free(bytes);
}

static void a_file_is_repaired_onto_its_own_path(void **state)
{
    size_t len = 0;
    uint8_t *bytes = eight_tensors(&len, true);
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    (void)state;
    temp_write(in_path, bytes, len - 30);
    opts.overwrite = true;
    coffer_source *src = model_source(in_path);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(report, src, in_path, &opts, NULL), COFFER_OK);
    coffer_source_close(src);
    coffer_report_free(report);
    model_assert_clean(in_path);
    free(bytes);
}

/* Whatever is cut off, what is written is a valid model or nothing; it is verified while Checksums is there.
 */
static void a_cut_at_any_length_gives_an_unverified_model_or_an_error(void **state)
{
    size_t len = 0;
    uint8_t *bytes = eight_tensors(&len, true);
    coffer_source *whole = model_source_of(bytes, len);
    coffer_mcf *model = model_open(whole);
    const coffer_mcf_section *section = coffer_mcf_find_section(model, COFFER_MCF_CHECKSUMS);
    uint64_t sums = section->offset + section->size;
    (void)state;
    coffer_mcf_close(model);
    coffer_source_close(whole);
    for (size_t cut = 0; cut < len; cut += 37) {
        coffer_source *src = model_source_of(bytes, cut);
        coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
        coffer_report *report = NULL;
        opts.overwrite = true;
        assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
        if (coffer_repair(report, src, out_path, &opts, NULL) == COFFER_OK)
            (void)assert_unverified(cut < sums ? tensors_in_output() : 0);
        coffer_report_free(report);
        coffer_source_close(src);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_download_that_broke_off_keeps_the_tensors_that_are_whole, fresh,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(without_an_index_nothing_names_the_tensors, fresh, temp_teardown),
        cmocka_unit_test_setup_teardown(a_damaged_header_is_replaced_by_its_copy, fresh, temp_teardown),
        cmocka_unit_test_setup_teardown(a_clean_model_is_copied_as_it_is, fresh, temp_teardown),
        cmocka_unit_test_setup_teardown(a_wrong_file_size_alone_loses_nothing, fresh, temp_teardown),
        cmocka_unit_test_setup_teardown(damaged_bytes_stay_recorded, fresh, temp_teardown),
        cmocka_unit_test_setup_teardown(a_model_with_nothing_to_save_is_an_error_and_leaves_no_file, fresh,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(a_file_is_repaired_onto_its_own_path, fresh, temp_teardown),
        cmocka_unit_test_setup_teardown(a_cut_at_any_length_gives_an_unverified_model_or_an_error, fresh,
                                        temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
