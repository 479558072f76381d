/* A crash at any point of writing a scan leaves the old state or the new one. */
#include "support/crash.h"
#include "support/scan.h"

#include <stdlib.h>

typedef struct scenario {
    uint32_t room;      /* for metadata, in the file before */
    size_t old_records; /* 0: the file does not exist before */
    size_t new_records;
} scenario;

static void write_old(const char *folder, void *context)
{
    const scenario *setting = context;
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    opts.reserve_bytes = setting->room;
    assert_int_equal(scan_create(temp_path(folder, "s.mscan"), &opts, 2, 3, NULL), COFFER_OK);
}

static void append(const char *folder, void *context)
{
    (void)context;
    assert_int_equal(scan_append(temp_path(folder, "s.mscan"), "appended", 90, NULL), COFFER_OK);
}

static void create(const char *folder, void *context)
{
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    (void)context;
    opts.overwrite = true;
    assert_int_equal(scan_create(temp_path(folder, "s.mscan"), &opts, 1, 50, NULL), COFFER_OK);
}

static const char *look(coffer_source *src, const void *context, bool finished)
{
    const scenario *setting = context;
    coffer_mscan *scan = NULL;
    if (coffer_mscan_open(&scan, src, NULL, NULL) != COFFER_OK)
        return "the scan cannot be opened";
    size_t records = (size_t)coffer_mscan_record_count(scan);
    coffer_mscan_close(scan);
    return records == setting->new_records || (!finished && records == setting->old_records)
               ? NULL
               : "neither the old state nor the new one";
}

static const char *verify(const char *folder, void *context, bool finished)
{
    const scenario *setting = context;
    return crash_verify_file(temp_path(folder, "s.mscan"), setting->old_records == 0, finished, look,
                             context);
}

static void an_append_in_place_is_all_or_nothing(void **state)
{
    scenario setting = { 2000, 12, 192 };
    crash_test test = { write_old, append, verify, &setting };
    (void)state;
    assert_true(crash_enumerate(&test) > 20);
}

static void an_append_that_moves_the_file_is_all_or_nothing(void **state)
{
    scenario setting = { 1, 12, 192 };
    crash_test test = { write_old, append, verify, &setting };
    (void)state;
    assert_true(crash_enumerate(&test) > 20);
}

static void a_new_scan_appears_whole_or_not_at_all(void **state)
{
    scenario setting = { 0, 0, 100 };
    crash_test test = { NULL, create, verify, &setting };
    (void)state;
    assert_true(crash_enumerate(&test) > 3);
}

static void a_scan_that_is_replaced_stays_until_the_new_one_is_whole(void **state)
{
    scenario setting = { 0, 12, 100 };
    crash_test test = { write_old, create, verify, &setting };
    (void)state;
    assert_true(crash_enumerate(&test) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_append_in_place_is_all_or_nothing),
        cmocka_unit_test(an_append_that_moves_the_file_is_all_or_nothing),
        cmocka_unit_test(a_new_scan_appears_whole_or_not_at_all),
        cmocka_unit_test(a_scan_that_is_replaced_stays_until_the_new_one_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
