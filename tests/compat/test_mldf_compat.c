/* The file that the tutorial's writer made. */
#include "support/dataset.h"

static coffer_source *open_file(void)
{
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_open(&src, COFFER_TEST_DATA "/compat/mldf/tutorial-writer.mldf", NULL,
                                        NULL),
                     COFFER_OK);
    return src;
}

static void the_set_of_the_tutorials_writer_is_clean(void **state)
{
    coffer_source *src = open_file();
    coffer_report *report = dataset_check(src, true);
    (void)state;
    assert_int_equal(coffer_report_count(report), 0);
    coffer_report_free(report);
    coffer_source_close(src);
}

static void its_schema_and_labels_are_read(void **state)
{
    static const char *const names[] = { "image", "label", "caption" };
    static const uint16_t types[] = { COFFER_MLDF_IMAGE_RAW, COFFER_MLDF_INT, COFFER_MLDF_TEXT };
    coffer_source *src = open_file();
    coffer_mldf *set = dataset_open(src);
    int64_t label = 0;
    (void)state;
    assert_int_equal(coffer_mldf_sample_count(set), 9);
    assert_int_equal(coffer_mldf_descriptor_stride(set), 204);
    assert_int_equal(coffer_mldf_row_size(set), 48);
    assert_int_equal(coffer_mldf_field_count(set), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(coffer_mldf_field_at(set, i)->name, names[i]);
        assert_int_equal(coffer_mldf_field_at(set, i)->type, types[i]);
    }
    for (uint64_t i = 0; i < 9; i++) {
        assert_int_equal(coffer_mldf_get_int(&label, set, i, 1, NULL), COFFER_OK);
        assert_int_equal(label, -3 + 7 * (int64_t)i);
    }
    coffer_mldf_close(set);
    coffer_source_close(src);
}

static void the_absent_caption_is_absent_and_the_others_are_there(void **state)
{
    coffer_source *src = open_file();
    coffer_mldf *set = dataset_open(src);
    coffer_bytes text = COFFER_BYTES_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    (void)state;
    for (uint64_t i = 0; i < 9; i++) {
        assert_int_equal(coffer_mldf_get_text(&text, set, i, 2, NULL), i == 4 ? COFFER_E_MISSING : COFFER_OK);
        assert_int_equal(coffer_mldf_read(&text, &entry, set, i, 2, NULL), COFFER_OK);
        assert_int_equal(entry.present, i != 4);
        assert_int_equal(text.size, i == 4 ? 0 : 18);
    }
    coffer_free(text.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
}

static void pictures_have_the_size_that_their_rows_say(void **state)
{
    coffer_source *src = open_file();
    coffer_mldf *set = dataset_open(src);
    (void)state;
    for (uint64_t i = 0; i < 9; i++) {
        coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
        size_t size;
        assert_int_equal(coffer_mldf_entry_at(&entry, set, i, 0, NULL), COFFER_OK);
        assert_int_equal(entry.height, 4 + i);
        assert_int_equal(entry.width, 6);
        assert_int_equal(entry.channels, 3);
        assert_non_null(coffer_mldf_view(&size, set, i, 0));
        assert_int_equal(size, (4 + i) * 18);
    }
    coffer_mldf_close(set);
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_set_of_the_tutorials_writer_is_clean),
        cmocka_unit_test(its_schema_and_labels_are_read),
        cmocka_unit_test(the_absent_caption_is_absent_and_the_others_are_there),
        cmocka_unit_test(pictures_have_the_size_that_their_rows_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
