/* Files that the format's first program, mantle, wrote. */
#include "support/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER COFFER_TEST_DATA "/compat/mcf/"

static void the_pack_is_clean_and_complete(void **state)
{
    const coffer_mcf_model_info *info = NULL;
    coffer_source *src = model_source(FOLDER "mantle-pack.mcf");
    coffer_mcf *model = model_open(src);
    coffer_report *report = model_check(src, true);
    uint8_t *bytes = NULL;
    size_t len = 0;
    (void)state;
    assert_int_equal(coffer_report_count(report), 0);
    assert_int_equal(coffer_mcf_tensor_count(model), 6);
    assert_int_equal(coffer_mcf_flags(model), 1);
    size_t head = coffer_mcf_find_tensor(model, "lm_head.weight", 14);
    size_t embedding = coffer_mcf_find_tensor(model, "model.embed_tokens.weight", 25);
    assert_int_equal(coffer_mcf_tensor_at(model, head)->offset,
                     coffer_mcf_tensor_at(model, embedding)->offset);
    assert_int_equal(coffer_mcf_get_model_info(&info, model, NULL), COFFER_OK);
    assert_string_equal(coffer_mcf_arch_name(info->arch), "llama");
    assert_string_equal(info->model_name, "hf");
    assert_int_equal(info->context_length, 2048);
    assert_int_equal(coffer_mcf_read_section(&bytes, &len, model, COFFER_MCF_TOKENIZER_CONFIG, NULL),
                     COFFER_OK);
    assert_non_null(strstr((char *)bytes, "chat_template"));
    coffer_free(bytes);
    coffer_report_free(report);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void the_quantized_files_are_clean_and_close_to_the_original(void **state)
{
    static const struct {
        const char *name;
        double error; /* of the largest value: half a step of the type, and what its scales lose */
    } files[] = {
        { "q8", 0.01 }, { "q4", 0.1 }, { "k6", 0.05 }, { "k4", 0.15 }, { "k3", 0.3 }, { "k2", 0.9 }
    };
    coffer_source *packed = model_source(FOLDER "mantle-pack.mcf");
    coffer_mcf *original = model_open(packed);
    float *before = malloc(12 * 320 * sizeof *before), *after = malloc(12 * 320 * sizeof *after);
    (void)state;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        char path[512];
        snprintf(path, sizeof path, FOLDER "mantle-%s.mcf", files[f].name);
        coffer_source *src = model_source(path);
        coffer_mcf *model = model_open(src);
        coffer_report *report = model_check(src, true);
        double largest = 0;
        assert_int_equal(coffer_report_count(report), 0);
        assert_int_equal(coffer_mcf_read_rows_f32(before, original, 1, 0, 12, NULL), COFFER_OK);
        assert_int_equal(coffer_mcf_read_rows_f32(after, model, 1, 0, 12, NULL), COFFER_OK);
        for (size_t i = 0; i < 12 * 320; i++)
            largest = before[i] > largest ? before[i] : -before[i] > largest ? -before[i] : largest;
        for (size_t i = 0; i < 12 * 320; i++) {
            double error = after[i] > before[i] ? after[i] - before[i] : before[i] - after[i];
            if (error > files[f].error * largest)
                fail_msg("%s: element %zu is %g, was %g", path, i, (double)after[i], (double)before[i]);
        }
        coffer_report_free(report);
        coffer_mcf_close(model);
        coffer_source_close(src);
    }
    free(before);
    free(after);
    coffer_mcf_close(original);
    coffer_source_close(packed);
}

static void the_pack_can_be_edited_and_compacted(void **state)
{
    const char *path = temp_path(temp_folder, "edited.mcf");
    uint8_t before[32], after[32];
    coffer_mcf_editor *editor = NULL;
    coffer_node *out = NULL;
    (void)state;
    temp_copy(FOLDER "mantle-k4.mcf", path);
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    assert_int_equal(coffer_mcf_content_hash(before, model, NULL, NULL), COFFER_OK);
    coffer_mcf_close(model);
    coffer_source_close(src);
    assert_int_equal(coffer_mcf_editor_open(&editor, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_set_model_info(editor, "model_name", "edited", 0, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_editor_commit(editor, NULL), COFFER_OK);
    coffer_mcf_editor_close(editor);
    assert_int_equal(coffer_node_new(&out, NULL), COFFER_OK);
    assert_int_equal(coffer_compact(out, path, NULL, NULL, NULL), COFFER_OK);
    coffer_node_free(out);
    model_assert_clean(path);
    src = model_source(path);
    model = model_open(src);
    assert_int_equal(coffer_mcf_content_hash(after, model, NULL, NULL), COFFER_OK);
    assert_memory_equal(before, after, sizeof before);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pack_is_clean_and_complete),
        cmocka_unit_test(the_quantized_files_are_clean_and_close_to_the_original),
        cmocka_unit_test(the_pack_can_be_edited_and_compacted),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
