/* Changes in place: what they change, what they leave, what they refuse; and compacting afterwards. */
#include "support/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[4096];

static int fresh(void **state)
{
    int result = temp_setup(state);
    snprintf(path, sizeof path, "%s", temp_path(temp_folder, "m.mcf"));
    assert_int_equal(model_create(path, NULL, NULL), COFFER_OK);
    return result;
}

static coffer_mcf_editor *edit(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mcf_editor *editor = NULL;
    if (coffer_mcf_editor_open(&editor, path, NULL, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return editor;
}

static void commit(coffer_mcf_editor *editor)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mcf_editor_commit(editor, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    coffer_mcf_editor_close(editor);
}

static void set_field(const char *field, const char *text, coffer_mcf_kv_type type)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mcf_editor *editor = edit();
    if (coffer_mcf_editor_set_model_info(editor, field, text, type, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    commit(editor);
}

static void assert_no_errors(void)
{
    coffer_source *src = model_source(path);
    coffer_report *report = model_check(src, true);
    for (size_t i = 0; i < coffer_report_count(report); i++)
        if (coffer_report_at(report, i)->severity != COFFER_NOTE)
            fail_msg("%s", coffer_report_at(report, i)->text);
    coffer_report_free(report);
    coffer_source_close(src);
}

static void assert_config(const char *text)
{
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    uint8_t *bytes = NULL;
    size_t len = 0;
    assert_int_equal(coffer_mcf_read_section(&bytes, &len, model, COFFER_MCF_CONFIG, NULL), COFFER_OK);
    assert_string_equal((char *)bytes, text);
    coffer_free(bytes);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void a_section_is_replaced_and_payloads_stay_where_they_are(void **state)
{
    uint64_t offset;
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    (void)state;
    offset = coffer_mcf_tensor_at(model, 0)->offset;
    coffer_mcf_close(model);
    coffer_source_close(src);

    coffer_mcf_editor *editor = edit();
    assert_int_equal(coffer_mcf_editor_set_section(editor, COFFER_MCF_CONFIG, "{\"a\": 1}", 8, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mcf_editor_set_section(editor, COFFER_MCF_MERGES, "a b\n", 4, NULL), COFFER_OK);
    commit(editor);
    assert_config("{\"a\": 1}");
    assert_no_errors();

    src = model_source(path);
    model = model_open(src);
    assert_non_null(coffer_mcf_find_section(model, COFFER_MCF_MERGES));
    assert_int_equal(coffer_mcf_find_section(model, COFFER_MCF_MERGES)->size, 4);
    assert_int_equal(coffer_mcf_tensor_at(model, 0)->offset, offset);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void fields_and_keys_of_the_model_info_change(void **state)
{
    const coffer_mcf_model_info *info = NULL;
    (void)state;
    set_field("model_name", "other", 0);
    set_field("context_length", "4096", 0);
    set_field("rope_type", "yarn", 0);
    set_field("rope_freq_base", "500000.5", 0);
    set_field("kv.new", "text", 0);
    set_field("kv.real", "0.25", COFFER_MCF_KV_F32);
    set_field("kv.a.number", "9", 0); /* keeps its type */
    set_field("kv.z.text", NULL, 0);
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    assert_int_equal(coffer_mcf_get_model_info(&info, model, NULL), COFFER_OK);
    assert_string_equal(info->model_name, "other");
    assert_int_equal(info->context_length, 4096);
    assert_int_equal(info->rope_type, 3);
    assert_true(info->rope_freq_base == 500000.5f);
    assert_int_equal(info->arch, 1); /* as before */
    assert_int_equal(info->kv_count, 3);
    assert_string_equal(info->kvs[0].key, "a.number");
    assert_int_equal(info->kvs[0].u32, 9);
    assert_string_equal(info->kvs[1].text, "text");
    assert_true(info->kvs[2].f32 == 0.25f);
    coffer_mcf_close(model);
    coffer_source_close(src);
    assert_no_errors();
}

static void wrong_changes_are_refused_and_leave_the_file_as_it_was(void **state)
{
    coffer_error err = COFFER_ERROR_INIT;
    size_t len = 0;
    uint8_t *before = temp_read(path, &len);
    coffer_mcf_editor *editor = edit();
    (void)state;
    assert_int_equal(coffer_mcf_editor_set_section(editor, COFFER_MCF_CONFIG, "{", 1, &err),
                     COFFER_E_BAD_JSON);
    assert_int_equal(coffer_mcf_editor_set_section(editor, COFFER_MCF_TENSOR_INDEX, "", 0, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mcf_editor_set_section(editor, COFFER_MCF_MODEL_INFO, "x", 1, &err),
                     COFFER_E_OUT_OF_BOUNDS);
    assert_int_equal(coffer_mcf_editor_remove_section(editor, COFFER_MCF_VOCAB, &err), COFFER_E_MISSING);
    assert_int_equal(coffer_mcf_editor_set_model_info(editor, "no_field", "1", 0, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "model_name"));
    assert_int_equal(coffer_mcf_editor_set_model_info(editor, "vocab_size", "-1", 0, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mcf_editor_set_model_info(editor, "vocab_size", "4294967296", 0, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mcf_editor_set_model_info(editor, "arch", "gpt9", 0, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mcf_editor_set_model_info(editor, "kv.none", NULL, 0, &err), COFFER_E_MISSING);
    commit(editor);
    assert_true(temp_holds(path, before, len));
    free(before);
}

static void a_change_to_the_same_value_writes_nothing(void **state)
{
    size_t len = 0;
    uint8_t *before = temp_read(path, &len);
    (void)state;
    set_field("model_name", "small", 0);
    assert_true(temp_holds(path, before, len));
    free(before);
}

static void sums_can_be_removed_and_computed_again(void **state)
{
    coffer_mcf_open_opts opts = COFFER_MCF_OPEN_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mcf *model = NULL;
    coffer_mcf_editor *editor = edit();
    (void)state;
    opts.verify = true;
    assert_int_equal(coffer_mcf_editor_remove_section(editor, COFFER_MCF_CHECKSUMS, NULL), COFFER_OK);
    commit(editor);
    coffer_source *src = model_source(path);
    assert_int_equal(coffer_mcf_open(&model, src, &opts, &err), COFFER_E_MISSING);
    coffer_source_close(src);
    editor = edit();
    assert_int_equal(coffer_mcf_editor_set_checksums(
                         editor,
                         &(coffer_mcf_work_opts){ .struct_size = sizeof(coffer_mcf_work_opts), .threads = 1 },
                         NULL),
                     COFFER_OK);
    commit(editor);
    src = model_source(path);
    assert_int_equal(coffer_mcf_open(&model, src, &opts, &err), COFFER_OK);
    assert_non_null(coffer_mcf_view(model, 0));
    coffer_mcf_close(model);
    coffer_source_close(src);
    assert_no_errors();
}

static void an_editor_holds_the_write_lock(void **state)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mcf_editor *first = edit(), *second = NULL;
    (void)state;
    assert_int_equal(coffer_mcf_editor_open(&second, path, NULL, &err), COFFER_E_LOCKED);
    coffer_mcf_editor_close(first);
}

static void an_editor_commits_once(void **state)
{
    coffer_mcf_editor *editor = edit();
    (void)state;
    assert_int_equal(coffer_mcf_editor_set_section(editor, COFFER_MCF_CONFIG, "[]", 2, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_commit(editor, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_set_section(editor, COFFER_MCF_CONFIG, "{}", 2, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    coffer_mcf_editor_close(editor);
    assert_config("[]");
}

static coffer_node *compact(const char *target)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *out = NULL;
    assert_int_equal(coffer_node_new(&out, NULL), COFFER_OK);
    if (coffer_compact(out, path, target, NULL, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return out;
}

static void content_hash(uint8_t out[32], const char *of)
{
    coffer_source *src = model_source(of);
    coffer_mcf *model = model_open(src);
    assert_int_equal(coffer_mcf_content_hash(out, model, NULL, NULL), COFFER_OK);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void compacting_drops_bytes_that_edits_left_unused(void **state)
{
    uint8_t before[32], after[32];
    coffer_source *src;
    (void)state;
    content_hash(before, path);
    coffer_mcf_editor *editor = edit();
    assert_int_equal(coffer_mcf_editor_set_section(editor, 0x7777, "from the future", 15, NULL), COFFER_OK);
    commit(editor);
    set_field("model_name", "other", 0);
    src = model_source(path);
    coffer_report *report = model_check(src, false);
    assert_true(model_has(report, COFFER_E_TRAILING_BYTES, COFFER_NOTE));
    coffer_report_free(report);
    coffer_source_close(src);

    coffer_node *out = compact(NULL);
    assert_true(coffer_node_get_u64(coffer_node_find(out, "size_after")) <
                coffer_node_get_u64(coffer_node_find(out, "size_before")));
    coffer_node_free(out);
    model_assert_clean(path);
    content_hash(after, path);
    assert_memory_equal(before, after, sizeof before);

    src = model_source(path);
    coffer_mcf *model = model_open(src);
    uint8_t *bytes = NULL;
    size_t len = 0;
    assert_int_equal(coffer_mcf_read_section(&bytes, &len, model, 0x7777, NULL), COFFER_OK);
    assert_string_equal((char *)bytes, "from the future");
    assert_int_equal(coffer_mcf_tensor_at(model, 0)->offset, coffer_mcf_tensor_at(model, 2)->offset);
    coffer_free(bytes);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void compacting_into_another_file_leaves_the_old_one(void **state)
{
    const char *other = temp_path(temp_folder, "other.mcf");
    size_t len = 0;
    (void)state;
    set_field("model_name", "other", 0);
    uint8_t *before = temp_read(path, &len);
    coffer_node_free(compact(other));
    assert_true(temp_holds(path, before, len));
    model_assert_clean(other);
    free(before);
}

static void every_vector_that_opens_compacts_to_a_clean_file_of_the_same_content(void **state)
{
    static const char *const names[] = { "plain", "quantised", "directory-first", "minor-42", "only-config" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char from[512];
        uint8_t before[32], after[32];
        snprintf(from, sizeof from, "%s/vectors/mcf/%s.mcf", COFFER_TEST_DATA, names[i]);
        temp_copy(from, path);
        content_hash(before, path);
        coffer_node_free(compact(NULL));
        model_assert_clean(path);
        content_hash(after, path);
        assert_memory_equal(before, after, sizeof before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_section_is_replaced_and_payloads_stay_where_they_are, fresh,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(fields_and_keys_of_the_model_info_change, fresh, temp_teardown),
        cmocka_unit_test_setup_teardown(wrong_changes_are_refused_and_leave_the_file_as_it_was, fresh,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(a_change_to_the_same_value_writes_nothing, fresh, temp_teardown),
        cmocka_unit_test_setup_teardown(sums_can_be_removed_and_computed_again, fresh, temp_teardown),
        cmocka_unit_test_setup_teardown(an_editor_holds_the_write_lock, fresh, temp_teardown),
        cmocka_unit_test_setup_teardown(an_editor_commits_once, fresh, temp_teardown),
        cmocka_unit_test_setup_teardown(compacting_drops_bytes_that_edits_left_unused, fresh, temp_teardown),
        cmocka_unit_test_setup_teardown(compacting_into_another_file_leaves_the_old_one, fresh,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(every_vector_that_opens_compacts_to_a_clean_file_of_the_same_content,
                                        fresh, temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
