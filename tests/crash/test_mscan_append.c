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

/* Readers see it without a writer having tidied up, and again after one has. */
static const char *look(const char *path, const scenario *setting, bool finished)
{
    coffer_source *src = NULL;
    coffer_mscan *scan = NULL;
    const char *wrong = NULL;
    if (!temp_exists(path))
        return setting->old_records == 0 && !finished ? NULL : "the file is gone";
    if (coffer_source_open(&src, path, NULL, NULL) != COFFER_OK)
        return "the file cannot be opened";
    if (coffer_mscan_open(&scan, src, NULL, NULL) != COFFER_OK) {
        coffer_source_close(src);
        return "the scan cannot be opened";
    }
    coffer_report *report = scan_check(src, true);
    size_t records = (size_t)coffer_mscan_record_count(scan);
    if (coffer_report_total(report, COFFER_ERROR) > 0 || coffer_report_total(report, COFFER_WARNING) > 0)
        wrong = "check finds something";
    else if (records != setting->new_records && (finished || records != setting->old_records))
        wrong = "neither the old state nor the new one";
    coffer_report_free(report);
    coffer_mscan_close(scan);
    coffer_source_close(src);
    return wrong;
}

static const char *verify(const char *folder, void *context, bool finished)
{
    const scenario *setting = context;
    const char *path = temp_path(folder, "s.mscan");
    const char *wrong = look(path, setting, finished);
    if (wrong || !temp_exists(path))
        return wrong;
    if (coffer_roll_back(NULL, path, NULL) != COFFER_OK)
        return "cannot be rolled back";
    return look(path, setting, finished);
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
