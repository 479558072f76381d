/* Dividing a set: the new files appear together, or none of them does. */
#include "coffer/dataset.h"

#include "support/dataset_write.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t front[] = { 4, 0 }, back[] = { 1, 2, 3 };

static coffer_status split(size_t *failed, const char *second, bool overwrite, coffer_error *err)
{
    coffer_mldf_extract_opts opts = COFFER_MLDF_EXTRACT_OPTS_INIT;
    coffer_mldf_writer_opts write = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_source *src = NULL;
    char *first = strdup(temp_path(temp_folder, "a.mldf")), *other = strdup(temp_path(temp_folder, second));
    const coffer_mldf_split_part parts[] = {
        { sizeof parts[0], first, front, 2 },
        { sizeof parts[0], other, back, 3 },
    };
    write.overwrite = overwrite;
    opts.write = &write;
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "all.mldf"), NULL, NULL), COFFER_OK);
    coffer_mldf *set = dataset_open(src);
    coffer_status status = coffer_mldf_split(failed, set, parts, 2, &opts, err);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(first);
    free(other);
    return status;
}

static uint64_t samples_of(const char *name)
{
    coffer_mldf *set = NULL;
    assert_int_equal(coffer_mldf_open_path(&set, temp_path(temp_folder, name), NULL, NULL), COFFER_OK);
    uint64_t samples = coffer_mldf_sample_count(set);
    coffer_mldf_close(set);
    return samples;
}

static void every_part_has_its_samples(void **state)
{
    (void)state;
    assert_int_equal(dataset_create(temp_path(temp_folder, "all.mldf"), 5, 0, NULL, NULL), COFFER_OK);
    assert_int_equal(split(NULL, "b.mldf", false, NULL), COFFER_OK);
    assert_int_equal(samples_of("a.mldf"), 2);
    assert_int_equal(samples_of("b.mldf"), 3);
}

static void a_file_that_exists_stops_it_before_anything_is_written(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    size_t failed = 9;
    temp_empty(temp_folder);
    assert_int_equal(dataset_create(temp_path(temp_folder, "all.mldf"), 5, 0, NULL, NULL), COFFER_OK);
    assert_int_equal(split(&failed, "all.mldf", false, &err), COFFER_E_EXISTS);
    assert_int_equal(failed, 1);
    assert_int_equal(err.subject, COFFER_SUBJECT_OUTPUT);
    assert_false(temp_exists(temp_path(temp_folder, "a.mldf")));
}

static void a_part_that_cannot_be_made_leaves_none(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    size_t failed = 9;
    assert_int_equal(split(&failed, "missing/b.mldf", false, &err), COFFER_E_IO);
    assert_int_equal(failed, 1);
    assert_false(temp_exists(temp_path(temp_folder, "a.mldf")));
    assert_int_equal(samples_of("all.mldf"), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_has_its_samples),
        cmocka_unit_test(a_file_that_exists_stops_it_before_anything_is_written),
        cmocka_unit_test(a_part_that_cannot_be_made_leaves_none),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
