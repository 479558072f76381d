#include "support/fault.h"

#include <string.h>

static const char *const fault_names[] = {
    [SHIM_NO_FAULT] = "no fault",      [SHIM_NO_MEMORY] = "out of memory", [SHIM_EIO] = "EIO",
    [SHIM_DEAD_DISK] = "a dead disk",  [SHIM_ENOSPC] = "ENOSPC",           [SHIM_EINTR] = "EINTR",
    [SHIM_SHORT] = "a short transfer",
};

static const char *check_result(const fault_case *which)
{
    bool harmless = !which->fired || which->fault == SHIM_EINTR || which->fault == SHIM_SHORT;
    if (which->status == COFFER_OK)
        return NULL;
    if (harmless)
        return "the scenario should have succeeded";
    if (which->error.text[0] == '\0')
        return "the failure has no text";
    if (which->error.status != which->status)
        return "the status in the error is another one";
    return NULL;
}

/* False when the scenario ended before its nth call. */
static bool run_once(const fault_test *test, shim_fault fault, uint64_t nth)
{
    fault_case which = { .fault = fault, .nth = nth, .error = COFFER_ERROR_INIT };
    char *folder = temp_make();
    if (test->setup)
        test->setup(folder, test->context);
    shim_arm(fault, nth);
    which.status = test->run(folder, test->context, &which.error);
    shim_disarm();
    which.fired = shim_fired();
    which.function = shim_fired_in();
    const char *wrong = check_result(&which);
    if (!wrong && test->verify)
        wrong = test->verify(folder, test->context, &which);
    if (wrong)
        fail_msg("%s in call %llu (%s): %s; status %s, \"%s\"; left in %s", fault_names[fault],
                 (unsigned long long)nth, which.function, wrong, coffer_status_name(which.status),
                 which.error.text, folder);
    temp_remove(folder);
    return which.fired;
}

void fault_each(const fault_test *test)
{
    uint64_t runs = 0, fired = 0;
    for (shim_fault fault = SHIM_NO_MEMORY; fault <= SHIM_SHORT; fault++) {
        uint64_t nth = 1;
        while (run_once(test, fault, nth))
            nth++;
        runs += nth;
        fired += nth - 1;
    }
    if (fired == 0)
        fail_msg("no fault reached the scenario: it makes no call that the shim sees");
    print_message("             %llu faults\n", (unsigned long long)runs);
}
