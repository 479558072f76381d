/* Files that heaptrack, massif, DHAT and Go wrote about one small program (mlyze-tools/README.md), and what
 * those tools make of ours. A tool that is not installed is passed over. */
#include "base/buffer.h"
#include "support/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define FOLDER COFFER_TEST_DATA "/compat/mlyze-tools/"
/* The C++ library takes this at its start; heaptrack sees it, valgrind's tools do not. */
#define AT_START 72704

/* ---- Files written by other tools ---- */

static void heaptrack_files_have_every_allocation_of_the_program(void **state)
{
    (void)state;
    static const char *const files[] = { FOLDER "grow.heaptrack.zst", FOLDER "grow-raw.heaptrack.zst" };
    for (size_t i = 0; i < 2; i++) {
        profile_must(files[i], "h.mlyze", NULL);
        profile_expect("h.mlyze", 118, 117400 + AT_START, 110000 + AT_START, 10700);
        coffer_mlyze_totals totals = profile_totals("h.mlyze");
        assert_int_equal(totals.live_allocs_at_end, 11);
        assert_int_equal(totals.frees, 107);
    }
    profile_must(files[0], "h.mlyze", NULL);
    const char *start = "_start;__libc_start_main_impl;__libc_start_call_main;main";
    char stack[128];
    snprintf(stack, sizeof stack, "%s;leak;grab", start);
    assert_int_equal(profile_bytes("h.mlyze", stack, "leaks"), 10000);
    snprintf(stack, sizeof stack, "%s;peak;grab", start);
    assert_int_equal(profile_bytes("h.mlyze", stack, "peak"), 100000);
    snprintf(stack, sizeof stack, "%s;churn;grab", start);
    assert_int_equal(profile_bytes("h.mlyze", stack, "temporaries"), 6400);
}

static void a_massif_file_has_its_peak_by_stack(void **state)
{
    (void)state;
    profile_must(FOLDER "grow.massif", "m.mlyze", NULL);
    profile_expect("m.mlyze", -1, -1, 110200, 10872);
    assert_int_equal(profile_bytes("m.mlyze", "main;peak;grab", "peak"), 100000);
    assert_int_equal(profile_bytes("m.mlyze", "main;leak;grab", "peak"), 10000);
}

static void a_dhat_file_has_total_peak_and_end(void **state)
{
    (void)state;
    profile_must(FOLDER "grow.dhat", "d.mlyze", NULL);
    profile_expect("d.mlyze", 117, 117400, 110000, 10700);
    coffer_mlyze_totals totals = profile_totals("d.mlyze");
    assert_int_equal(totals.peak_allocs, 15);
    assert_int_equal(totals.live_allocs_at_end, 11);
    assert_int_equal(profile_bytes("d.mlyze", "main;churn;grab", "total"), 6400);
}

static void a_heap_profile_of_go_has_what_is_in_use_and_what_was_allocated(void **state)
{
    (void)state;
    profile_must(FOLDER "grow.pb.gz", "g.mlyze", NULL);
    profile_expect("g.mlyze", 123, 19640, 11648, 11648);
    assert_int_equal(profile_bytes("g.mlyze", "runtime.main;main.main;main.leak", "leaks"), 9600);
    assert_int_equal(profile_bytes("g.mlyze", "runtime.main;main.main;main.churn", "total"), 6400);
}

/* ---- Our files, read by other tools ---- */

/* The output of a command that is given a file of the folder; NULL when the program is not installed. free().
 */
static char *ask(const char *program, const char *arguments, const char *file)
{
    char line[1024];
    coffer__buffer out = COFFER__BUFFER_INIT;
    snprintf(line, sizeof line, "command -v %s > /dev/null 2>&1", program);
    if (system(line) != 0) {
        print_message("%s is not installed\n", program);
        return NULL;
    }
    snprintf(line, sizeof line, "%s %s '%s' 2> /dev/null", program, arguments, temp_path(temp_folder, file));
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    for (size_t got = 1; got > 0;) {
        uint8_t *to = coffer__buffer_extend(&out, 4096);
        got = fread(to, 1, 4096, pipe);
        out.len -= 4096 - got;
    }
    int status = pclose(pipe);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s fails", line);
    coffer__buffer_text(&out);
    return (char *)coffer__buffer_release(&out, NULL);
}

static void expect_text(char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void heaptrack_print_reads_what_we_write(void **state)
{
    (void)state;
    static const char *const files[] = { "h.heaptrack", "h.heaptrack.gz", "h.heaptrack.zst" };
    profile_must(FOLDER "grow.heaptrack.zst", "h.mlyze", NULL);
    for (size_t i = 0; i < 3; i++) {
        profile_must("h.mlyze", files[i], NULL);
        char *text = ask("heaptrack_print", "", files[i]);
        if (!text)
            skip();
        expect_text(text, "Debuggee command was: ./grow");
        expect_text(text, "calls to allocation functions: 118 ");
        expect_text(text, "temporary memory allocations: 102 ");
        expect_text(text, "peak heap memory consumption: 182.70K");
        expect_text(text, "total memory leaked: 10.70K");
        expect_text(text, "5 calls with 100.00K peak consumption from:\n    peak\n      at ./grow.c:30");
        free(text);
    }
}

static void ms_print_reads_what_we_write(void **state)
{
    (void)state;
    profile_must(FOLDER "grow.dhat", "d.mlyze", NULL);
    profile_must("d.mlyze", "d.massif", "snapshots", "10", NULL);
    char *text = ask("ms_print", "", "d.massif");
    if (!text)
        skip();
    expect_text(text, "Command:            ./grow\n");
    expect_text(text, "(peak), ");
    expect_text(text, "100.00% (110,000B) (heap allocation functions)");
    expect_text(text, "->90.91% (100,000B) 0x0: peak (grow.c:30)");
    expect_text(text, "->93.46% (10,000B) 0x0: leak (grow.c:17)");
    free(text);
}

static void pprof_reads_what_we_write(void **state)
{
    (void)state;
    profile_must(FOLDER "grow.dhat", "d.mlyze", NULL);
    profile_must("d.mlyze", "d.pb.gz", NULL);
    /* As it comes with Go; newer ones would have to build it first. */
    char *text = ask("$(go env GOTOOLDIR)/pprof", "-raw", "d.pb.gz");
    if (!text)
        skip();
    expect_text(text,
                "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes "
                "temporary_objects/count temporary_space/bytes peak_objects/count peak_space/bytes[dflt]");
    expect_text(text, " 10      10000         10      10000 ");
    expect_text(text, "leak grow.c:17");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heaptrack_files_have_every_allocation_of_the_program),
        cmocka_unit_test(a_massif_file_has_its_peak_by_stack),
        cmocka_unit_test(a_dhat_file_has_total_peak_and_end),
        cmocka_unit_test(a_heap_profile_of_go_has_what_is_in_use_and_what_was_allocated),
        cmocka_unit_test(heaptrack_print_reads_what_we_write),
        cmocka_unit_test(ms_print_reads_what_we_write),
        cmocka_unit_test(pprof_reads_what_we_write),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
