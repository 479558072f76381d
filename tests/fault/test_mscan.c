/* Every allocation and every file operation of writing, appending and repairing fails once. */
#include "support/fault.h"
#include "support/scan.h"

#include <stdlib.h>
#include <string.h>

typedef struct scenario {
    uint32_t room;
    bool exists; /* the file exists before */
    uint64_t old_records, new_records;
    coffer_status (*act)(const char *path, coffer_error *err);
} scenario;

static void setup(const char *folder, void *context)
{
    const scenario *setting = context;
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    opts.reserve_bytes = setting->room;
    if (setting->exists)
        assert_int_equal(scan_create(temp_path(folder, "s.mscan"), &opts, 2, 3, NULL), COFFER_OK);
}

static coffer_status run(const char *folder, void *context, coffer_error *err)
{
    const scenario *setting = context;
    return setting->act(temp_path(folder, "s.mscan"), err);
}

/* The number of records a reader sees; −1 without a file, −2 when it is damaged. */
static int64_t records_in(const char *path)
{
    coffer_source *src = NULL;
    coffer_mscan *scan = NULL;
    int64_t records = -2;
    if (!temp_exists(path))
        return -1;
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    if (coffer_mscan_open(&scan, src, NULL, NULL) == COFFER_OK) {
        coffer_report *report = scan_check(src, true);
        uint64_t marks = strstr(scan_text(report, COFFER_E_BAD_CHECKSUM), "the file was repaired") ? 1 : 0;
        if (coffer_report_total(report, COFFER_ERROR) == marks)
            records = (int64_t)coffer_mscan_record_count(scan);
        coffer_report_free(report);
    }
    coffer_mscan_close(scan);
    coffer_source_close(src);
    return records;
}

/* A temporary file may remain when the disk is dead or its removal fails. */
static bool may_litter(const fault_case *which)
{
    return which->fault == SHIM_DEAD_DISK || strcmp(which->function, "coffer__os_unlink") == 0;
}

static const char *verify(const char *folder, void *context, const fault_case *which)
{
    const scenario *setting = context;
    int64_t before = setting->exists ? (int64_t)setting->old_records : -1;
    int64_t now = records_in(temp_path(folder, "s.mscan"));
    if (now != before && now != (int64_t)setting->new_records)
        return "neither the old state nor the new one";
    if (which->status == COFFER_OK && now != (int64_t)setting->new_records)
        return "reported as done, and is not";
    if (!may_litter(which))
        temp_assert_no_litter(folder, "s.mscan", NULL);
    return NULL;
}

static coffer_status create(const char *path, coffer_error *err)
{
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    opts.model_name = "faulty";
    opts.extra_json = "{\"note\": [1, 2.5, null]}";
    return scan_create(path, &opts, 2, 3, err);
}

/* Eight sequences outgrow a room that was left for one. */
static coffer_status create_and_move(const char *path, coffer_error *err)
{
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    opts.reserve_bytes = 1;
    return scan_create(path, &opts, 8, 3, err);
}

static coffer_status append(const char *path, coffer_error *err)
{
    return scan_append(path, "appended", 4, err);
}

static void try_all(uint32_t room, bool exists, uint64_t new_records,
                    coffer_status (*act)(const char *path, coffer_error *err))
{
    scenario setting = { room, exists, 12, new_records, act };
    fault_test test = { setup, run, verify, &setting };
    fault_each(&test);
}

static void a_new_scan_survives_every_failure(void **state)
{
    (void)state;
    try_all(0, false, 12, create);
}

static void a_new_scan_that_outgrows_its_room_survives_every_failure(void **state)
{
    (void)state;
    try_all(0, false, 48, create_and_move);
}

static void an_append_in_place_survives_every_failure(void **state)
{
    (void)state;
    try_all(2000, true, 20, append);
}

static void an_append_that_moves_the_file_survives_every_failure(void **state)
{
    (void)state;
    try_all(1, true, 20, append);
}

/* ---- Repair ---- */

static void setup_damaged(const char *folder, void *context)
{
    const char *from = context;
    temp_copy(from, temp_path(folder, "damaged.mscan"));
}

static coffer_status run_repair(const char *folder, void *context, coffer_error *err)
{
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    coffer_status status;
    (void)context;
    if ((status = coffer_report_new(&report, 0, err)) ||
        (status = coffer_source_open(&src, temp_path(folder, "damaged.mscan"), NULL, err)))
        goto out;
    status = coffer_repair(report, src, temp_path(folder, "s.mscan"), NULL, err);
out:
    coffer_source_close(src);
    coffer_report_free(report);
    return status;
}

static const char *verify_repair(const char *folder, void *context, const fault_case *which)
{
    int64_t records = records_in(temp_path(folder, "s.mscan"));
    const char *from = context;
    size_t len;
    uint8_t *bytes = temp_read(from, &len);
    bool untouched = temp_holds(temp_path(folder, "damaged.mscan"), bytes, len);
    free(bytes);
    if (!untouched)
        return "the input was changed";
    if (records == -2)
        return "the output is damaged";
    if (which->status == COFFER_OK && records < 0)
        return "reported as done, and is not";
    if (!may_litter(which))
        temp_assert_no_litter(folder, "s.mscan", "damaged.mscan", NULL);
    return NULL;
}

static void repair_survives_every_failure(void **state)
{
    static char truncated[] = COFFER_TEST_DATA "/vectors/mscan/truncated-records.mscan";
    static char lost[] = COFFER_TEST_DATA "/vectors/mscan/bad-json.mscan";
    static char text[] = COFFER_TEST_DATA "/vectors/mscan/bad-utf8.mscan";
    char *const files[] = { truncated, lost, text };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        fault_test test = { setup_damaged, run_repair, verify_repair, files[i] };
        fault_each(&test);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_scan_survives_every_failure),
        cmocka_unit_test(a_new_scan_that_outgrows_its_room_survives_every_failure),
        cmocka_unit_test(an_append_in_place_survives_every_failure),
        cmocka_unit_test(an_append_that_moves_the_file_survives_every_failure),
        cmocka_unit_test(repair_survives_every_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
