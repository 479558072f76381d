#include "formats/format.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DAMAGED COFFER_TEST_DATA "/compat/mscan/mscanwriter-overwritten-head.mscan"

typedef struct repair {
    coffer_source *src;
    coffer_report *done, *left;
    char *original;
    coffer_error err;
} repair;

static repair open_damaged(const char *path)
{
    repair job = { .err = COFFER_ERROR_INIT };
    assert_int_equal(coffer_source_open(&job.src, path, NULL, &job.err), COFFER_OK);
    assert_int_equal(coffer_report_new(&job.done, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_report_new(&job.left, 0, NULL), COFFER_OK);
    return job;
}

static coffer_status run(repair *job)
{
    return coffer_repair_in_place(job->done, job->left, &job->original, job->src, NULL, &job->err);
}

static void close_repair(repair *job)
{
    coffer_source_close(job->src);
    coffer_report_free(job->done);
    coffer_report_free(job->left);
    coffer_free(job->original);
}

static void a_repair_in_place_keeps_the_original_and_its_mode(void **state)
{
    const char *path = temp_path(temp_folder, "a.mscan");
    struct stat st;
    size_t len;
    (void)state;
    temp_empty(temp_folder);
    temp_copy(DAMAGED, path);
    assert_int_equal(chmod(path, 0640), 0);
    repair job = open_damaged(path);
    assert_int_equal(run(&job), COFFER_OK);
    assert_true(coffer_report_count(job.done) > 0);
    assert_int_equal(coffer_report_total(job.left, COFFER_ERROR), 0);
    assert_string_equal(job.original, temp_path(temp_folder, "a.mscan.orig"));
    uint8_t *before = temp_read(DAMAGED, &len);
    assert_true(temp_holds(job.original, before, len));
    free(before);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    temp_assert_only(temp_folder, "a.mscan", "a.mscan.orig", NULL);
    close_repair(&job);
}

static void an_earlier_original_is_not_overwritten(void **state)
{
    const char *path = temp_path(temp_folder, "a.mscan"), *kept = temp_path(temp_folder, "a.mscan.orig");
    size_t len;
    (void)state;
    temp_empty(temp_folder);
    temp_copy(DAMAGED, path);
    temp_write(kept, "mine", 4);
    repair job = open_damaged(path);
    assert_int_equal(run(&job), COFFER_E_EXISTS);
    assert_null(job.original);
    assert_true(temp_holds(kept, "mine", 4));
    uint8_t *before = temp_read(DAMAGED, &len);
    assert_true(temp_holds(path, before, len));
    free(before);
    temp_assert_only(temp_folder, "a.mscan", "a.mscan.orig", NULL);
    close_repair(&job);
}

static void a_file_that_was_replaced_since_it_was_opened_is_left_alone(void **state)
{
    const char *path = temp_path(temp_folder, "a.mscan"), *other = temp_path(temp_folder, "b");
    (void)state;
    temp_empty(temp_folder);
    temp_copy(DAMAGED, path);
    repair job = open_damaged(path);
    temp_write(other, "new", 3);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(run(&job), COFFER_E_CHANGED);
    assert_true(temp_holds(path, "new", 3));
    temp_assert_only(temp_folder, "a.mscan", NULL);
    close_repair(&job);
}

static void memory_cannot_be_repaired_in_place(void **state)
{
    repair job = { .err = COFFER_ERROR_INIT };
    (void)state;
    assert_int_equal(coffer_source_from_memory(&job.src, "MSCAN", 5, NULL), COFFER_OK);
    assert_int_equal(coffer_report_new(&job.done, 0, NULL), COFFER_OK);
    assert_int_equal(run(&job), COFFER_E_INVALID_ARGUMENT);
    close_repair(&job);
}

static void the_file_of_a_recording_is_found_from_its_parts(void **state)
{
    char *found = NULL;
    (void)state;
    temp_empty(temp_folder);
    temp_write(temp_path(temp_folder, "run.mlyze.part"), "x", 1);
    assert_int_equal(coffer_recover_path(&found, temp_path(temp_folder, "run.mlyze.part"), NULL), COFFER_OK);
    assert_string_equal(found, temp_path(temp_folder, "run.mlyze"));
    coffer_free(found);
    found = NULL;
    assert_int_equal(coffer_recover_path(&found, temp_path(temp_folder, "run.mlyze"), NULL), COFFER_OK);
    assert_string_equal(found, temp_path(temp_folder, "run.mlyze"));
    coffer_free(found);
    found = NULL;
    assert_int_equal(coffer_recover_path(&found, temp_path(temp_folder, "other.mlyze"), NULL),
                     COFFER_E_NOT_FOUND);
    assert_null(found);
}

static void what_a_format_can_do_is_known_before_it_is_tried(void **state)
{
    const coffer_format *scan = coffer_format_by_name("mscan"), *trace = coffer_format_by_name("mlyze");
    (void)state;
    assert_true(coffer_format_can(scan, COFFER_CAN_DIFF));
    assert_false(coffer_format_can(scan, COFFER_CAN_COMPRESS));
    assert_true(coffer_format_can(trace, COFFER_CAN_COMPRESS));
    assert_true(coffer_format_can(trace, COFFER_CAN_RECOVER));
    assert_false(coffer_format_can(trace, COFFER_CAN_OPEN_AS_TENSORS));
    assert_false(coffer_format_can(trace, (coffer_capability)1000));
    assert_int_equal(coffer_format_list_count(scan), 2);
    assert_string_equal(coffer_format_list_at(scan, 0), "sequences");
    assert_null(coffer_format_list_at(scan, 2));
    assert_int_equal(coffer_format_part_suffix_count(scan), 0);
    assert_string_equal(coffer_format_part_suffix_at(trace, 0), ".part");
}

/* Every name of the table is one that the format accepts: the first is the default. */
static void a_format_has_the_lists_that_it_names(void **state)
{
    const coffer_format *format = NULL;
    coffer_source *src = NULL;
    (void)state;
    assert_int_equal(coffer_identify_path(&format, DAMAGED, NULL), COFFER_OK);
    assert_ptr_equal(format, coffer_format_by_name("mscan"));
    assert_int_equal(coffer_source_open(&src, COFFER_TEST_DATA "/vectors/mscan/two-sequences.mscan", NULL,
                                        NULL),
                     COFFER_OK);
    for (size_t i = 0; i < coffer_format_list_count(format); i++) {
        coffer_list_opts opts;
        coffer_node *out = NULL;
        coffer_list_opts_init(&opts, sizeof opts);
        opts.what = coffer_format_list_at(format, i);
        assert_int_equal(coffer_node_new(&out, NULL), COFFER_OK);
        assert_int_equal(coffer_format_list(out, format, src, &opts, NULL), COFFER_OK);
        assert_true(coffer_node_count(coffer_node_find(out, "entries")) > 0);
        coffer_node_free(out);
    }
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repair_in_place_keeps_the_original_and_its_mode),
        cmocka_unit_test(an_earlier_original_is_not_overwritten),
        cmocka_unit_test(a_file_that_was_replaced_since_it_was_opened_is_left_alone),
        cmocka_unit_test(memory_cannot_be_repaired_in_place),
        cmocka_unit_test(the_file_of_a_recording_is_found_from_its_parts),
        cmocka_unit_test(what_a_format_can_do_is_known_before_it_is_tried),
        cmocka_unit_test(a_format_has_the_lists_that_it_names),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
