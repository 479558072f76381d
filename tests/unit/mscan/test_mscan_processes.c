/* One process appends, another reads: every look at the file shows a whole state. */
#include "support/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { APPENDS = 300, TOKENS = 3, RECORDS = 2 * TOKENS };

static void append_all(const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    for (int i = 0; i < APPENDS; i++) {
        if (scan_append(path, "a source of some length", TOKENS, &err) == COFFER_OK)
            continue;
        fprintf(stderr, "append %d: %s\n", i, err.text);
        _exit(1);
    }
    _exit(0);
}

static coffer_status count_sequences(uint64_t *out, coffer_source *src, coffer_error *err)
{
    coffer_mscan *scan = NULL;
    coffer_report *report = NULL;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_status status = coffer_mscan_open(&scan, src, NULL, err);
    if (status)
        return status;
    *out = coffer_mscan_sequence_count(scan);
    assert_int_equal(coffer_mscan_record_count(scan), *out * RECORDS);
    coffer_mscan_close(scan);
    opts.full = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    status = coffer_check(report, src, &opts, err);
    if (status == COFFER_OK &&
        coffer_report_total(report, COFFER_ERROR) + coffer_report_total(report, COFFER_WARNING) > 0)
        fail_msg("%llu sequences: %s", (unsigned long long)*out, coffer_report_at(report, 0)->text);
    coffer_report_free(report);
    return status;
}

/* Gives false when a commit came in between, which looking again cures. */
static bool look(uint64_t *sequences, const char *path, coffer_access access)
{
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    opts.access = access;
    coffer_status status = coffer_source_open(&src, path, &opts, &err);
    if (status == COFFER_OK)
        status = count_sequences(sequences, src, &err);
    coffer_source_close(src);
    if (status != COFFER_OK && status != COFFER_E_CHANGED)
        fail_msg("%s", err.text);
    return status == COFFER_OK;
}

static void a_reader_beside_an_appending_process_sees_whole_states_only(void **state)
{
    (void)state;
    const char *path = temp_path(temp_folder, "s.mscan");
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    uint64_t before = 1, now = 1, looks = 0;
    int result = 0;
    opts.reserve_bytes = 1; /* so that some appends move the file */
    assert_int_equal(scan_create(path, &opts, 1, TOKENS, NULL), COFFER_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        append_all(path);
    bool running = true;
    while (running || now <= APPENDS) {
        running = running && waitpid(child, &result, WNOHANG) == 0;
        bool whole = look(&now, path, looks++ % 2 ? COFFER_ACCESS_READ : COFFER_ACCESS_AUTO);
        assert_true(whole || running);
        assert_true(now >= before);
        before = now;
        if (!running)
            break;
    }
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    assert_int_equal(now, APPENDS + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_beside_an_appending_process_sees_whole_states_only),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
