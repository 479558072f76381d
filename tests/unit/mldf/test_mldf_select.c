/* Samples by their values; fields that are dropped or renamed. */
#include "coffer/mldf_select.h"

#include "support/temp.h"

#include <stdio.h>
#include <string.h>

static const char schema[] =
    "[{\"name\": \"label\", \"type\": \"int\"}, {\"name\": \"score\", \"type\": \"float\"},"
    " {\"name\": \"text\", \"type\": \"text\", \"optional\": true}]";

/* Sample i has label i % 3, score i / 2 and the text "ti", which is absent for every fifth. */
static char *make_set(void)
{
    static char path[512];
    coffer_mldf_writer_opts opts = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_mldf_writer *writer = NULL;
    snprintf(path, sizeof path, "%s/set.mldf", temp_folder);
    opts.page_size = 4096;
    opts.overwrite = true;
    assert_int_equal(coffer_mldf_writer_create_json(&writer, path, schema, sizeof schema - 1, &opts, NULL),
                     COFFER_OK);
    for (int i = 0; i < 20; i++) {
        char text[8];
        int len = snprintf(text, sizeof text, "t%d", i);
        assert_int_equal(coffer_mldf_writer_set_int(writer, 0, i % 3, NULL), COFFER_OK);
        assert_int_equal(coffer_mldf_writer_set_float(writer, 1, i / 2.0, NULL), COFFER_OK);
        if (i % 5)
            assert_int_equal(coffer_mldf_writer_set_text(writer, 2, text, (size_t)len, NULL), COFFER_OK);
        assert_int_equal(coffer_mldf_writer_end_sample(writer, NULL), COFFER_OK);
    }
    assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
    return path;
}

static coffer_mldf *open_set(const char *path)
{
    coffer_mldf *set = NULL;
    assert_int_equal(coffer_mldf_open_path(&set, path, NULL, NULL), COFFER_OK);
    return set;
}

static void assert_selects(const coffer_mldf *set, const char *first, const char *second, uint64_t count,
                           uint64_t first_sample)
{
    const char *conditions[] = { first, second };
    uint64_t *samples = NULL, found = 0;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mldf_select(&samples, &found, set, conditions, second ? 2 : 1, NULL, &err) != COFFER_OK)
        fail_msg("%s: %s", first, err.text);
    assert_int_equal(found, count);
    if (count)
        assert_int_equal(samples[0], first_sample);
    coffer_free(samples);
}

static void conditions_compare_numbers_texts_and_patterns(void **state)
{
    (void)state;
    coffer_mldf *set = open_set(make_set());
    assert_selects(set, "label=1", NULL, 7, 1);
    assert_selects(set, "label == 1", "score>=5", 4, 10);
    assert_selects(set, "label!=1", NULL, 13, 0);
    assert_selects(set, "score<0.6", NULL, 2, 0);
    assert_selects(set, "score>9", NULL, 1, 19);
    assert_selects(set, "text=t7", NULL, 1, 7);
    assert_selects(set, "text~t1?", NULL, 8, 11);
    assert_selects(set, "text", NULL, 16, 1);
    assert_selects(set, "!text", NULL, 4, 0);
    assert_selects(set, "text!=t7", NULL, 19, 0);
    assert_selects(set, "text.size=2", NULL, 8, 1);
    assert_selects(set, "label=9", NULL, 0, 0);
    coffer_mldf_close(set);
}

static void conditions_that_cannot_be_understood_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = { "",   "nothing=1", "label=one", "label~1", "label.width",
                                         "=3", "label=" };
    coffer_mldf *set = open_set(make_set());
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t *samples = NULL, count = 0;
        coffer_error err = COFFER_ERROR_INIT;
        coffer_status status = coffer_mldf_select(&samples, &count, set, &wrong[i], 1, NULL, &err);
        if (status == COFFER_OK && strcmp(wrong[i], "label.width") == 0) { /* it is present */
            coffer_free(samples);
            continue;
        }
        assert_int_equal(status, COFFER_E_INVALID_ARGUMENT);
        assert_true(err.text[0] != 0);
        assert_null(samples);
    }
    coffer_mldf_close(set);
}

static void fields_are_dropped_and_renamed(void **state)
{
    (void)state;
    char *path = make_set();
    const size_t score = 1, all[] = { 0, 1 };
    assert_int_equal(coffer_mldf_update_rename_field(path, 2, "caption", NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_update_drop_fields(path, &score, 1, NULL, NULL), COFFER_OK);
    coffer_mldf *set = open_set(path);
    int64_t label = 0;
    coffer_bytes text = COFFER_BYTES_INIT;
    assert_int_equal(coffer_mldf_field_count(set), 2);
    assert_string_equal(coffer_mldf_field_at(set, 1)->name, "caption");
    assert_int_equal(coffer_mldf_get_int(&label, set, 8, 0, NULL), COFFER_OK);
    assert_int_equal(label, 2);
    assert_int_equal(coffer_mldf_get_text(&text, set, 8, 1, NULL), COFFER_OK);
    assert_string_equal(text.data, "t8");
    coffer_free(text.data);
    coffer_mldf_close(set);
    assert_int_equal(coffer_mldf_update_rename_field(path, 0, "caption", NULL, NULL), COFFER_E_DUPLICATE);
    assert_int_equal(coffer_mldf_update_rename_field(path, 7, "x", NULL, NULL), COFFER_E_OUT_OF_BOUNDS);
    assert_int_equal(coffer_mldf_update_drop_fields(path, all, 2, NULL, NULL), COFFER_E_INVALID_ARGUMENT);
    temp_assert_only(temp_folder, "set.mldf", NULL);
}

static void statistics_count_selected_samples_only(void **state)
{
    (void)state;
    coffer_mldf *set = open_set(make_set());
    const uint64_t samples[] = { 2, 5, 19 };
    coffer_mldf_stats_opts opts = COFFER_MLDF_STATS_OPTS_INIT;
    coffer_mldf_stats *stats = NULL;
    opts.samples = samples;
    opts.sample_count = 3;
    assert_int_equal(coffer_mldf_stats_new(&stats, set, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_stats_field_at(stats, 1)->scalars.count, 3);
    assert_true(coffer_mldf_stats_field_at(stats, 1)->scalars.max == 9.5);
    assert_int_equal(coffer_mldf_stats_field_at(stats, 2)->present, 2);
    coffer_mldf_stats_free(stats);
    coffer_mldf_close(set);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(conditions_compare_numbers_texts_and_patterns),
        TEST(conditions_that_cannot_be_understood_are_refused),
        TEST(fields_are_dropped_and_renamed),
        TEST(statistics_count_selected_samples_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
