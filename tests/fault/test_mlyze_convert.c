/* Every allocation and every file operation of a conversion from or to a trace fails once: no leak, no
 * partial output. */
#include "support/fault.h"

#include "coffer/coffer.h"
#include "support/trace.h"

#include <stdio.h>
#include <string.h>

#define TOOLS COFFER_TEST_DATA "/compat/mlyze-tools/"

typedef struct scenario {
    const char *in, *out; /* names in the folder */
} scenario;

static void setup(const char *folder, void *context)
{
    const scenario *of = context;
    char from[512];
    if (strcmp(of->in, "in.mlyze") == 0) {
        trace_builder made;
        trace_sample(&made, COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS, 60, 30);
        temp_write(temp_path(folder, of->in), made.file.data, made.file.len);
        trace_dispose(&made);
        return;
    }
    if (strcmp(of->in, "in.collapsed") == 0) {
        temp_write(temp_path(folder, of->in), "main;work 5\nmain (a.c:3) 6\n", 27);
        return;
    }
    snprintf(from, sizeof from, TOOLS "%s", of->in);
    temp_copy(from, temp_path(folder, of->in));
}

static coffer_status run(const char *folder, void *context, coffer_error *err)
{
    const scenario *of = context;
    coffer_source *src = NULL;
    coffer_status status = coffer_source_open(&src, temp_path(folder, of->in), NULL, err);
    if (status == COFFER_OK)
        status = coffer_convert(src, temp_path(folder, of->out), NULL, err);
    coffer_source_close(src);
    return status;
}

static const char *verify(const char *folder, void *context, const fault_case *which)
{
    const scenario *of = context;
    bool is_there = temp_exists(temp_path(folder, of->out));
    if (which->status == COFFER_OK && !is_there)
        return "reported as done, and is not";
    if (which->fault != SHIM_DEAD_DISK && strcmp(which->function, "coffer__os_unlink") != 0)
        temp_assert_no_litter(folder, of->in, of->out, "out.mlyze.idx", NULL);
    return NULL;
}

static void fails_cleanly(const char *in, const char *out)
{
    scenario of = { in, out };
    fault_test test = { setup, run, verify, &of };
    fault_each(&test);
}

static void a_trace_to_a_profile_fails_cleanly(void **state)
{
    (void)state;
    fails_cleanly("in.mlyze", "out.collapsed");
    fails_cleanly("in.mlyze", "out.speedscope.json");
    fails_cleanly("in.mlyze", "out.pb.gz");
    fails_cleanly("in.mlyze", "out.dhat");
    fails_cleanly("in.mlyze", "out.massif");
}

static void a_trace_to_events_fails_cleanly(void **state)
{
    (void)state;
    fails_cleanly("in.mlyze", "out.csv");
    fails_cleanly("in.mlyze", "out.trace.json");
    fails_cleanly("in.mlyze", "out.heaptrack.gz");
}

static void a_profile_to_a_trace_fails_cleanly(void **state)
{
    (void)state;
    fails_cleanly("in.collapsed", "out.mlyze");
    fails_cleanly("grow.dhat", "out.mlyze");
    fails_cleanly("grow.pb.gz", "out.mlyze");
}

static void a_recording_to_a_trace_fails_cleanly(void **state)
{
    (void)state;
    fails_cleanly("grow.massif", "out.mlyze");
    fails_cleanly("grow-raw.heaptrack.zst", "out.mlyze");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_to_a_profile_fails_cleanly),
        cmocka_unit_test(a_trace_to_events_fails_cleanly),
        cmocka_unit_test(a_profile_to_a_trace_fails_cleanly),
        cmocka_unit_test(a_recording_to_a_trace_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
