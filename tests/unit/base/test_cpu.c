#include "base/cpu.h"
#include "coffer/coffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_best_level_is_used_when_nothing_is_asked_for(void **state)
{
    (void)state;
    unsetenv("COFFER_CPU");
    assert_int_equal(coffer__cpu(), coffer__cpu_best());
    assert_string_equal(coffer_cpu(), coffer__cpu_name(coffer__cpu_best()));
}

static void generic_can_be_asked_for_everywhere(void **state)
{
    (void)state;
    setenv("COFFER_CPU", "generic", 1);
    assert_int_equal(coffer__cpu(), COFFER__CPU_GENERIC);
    assert_string_equal(coffer_cpu(), "generic");
    unsetenv("COFFER_CPU");
}

static void a_lower_level_of_the_same_family_can_be_asked_for(void **state)
{
    (void)state;
    setenv("COFFER_CPU", "avx2", 1);
    coffer__cpu_level best = coffer__cpu_best();
    assert_int_equal(coffer__cpu(), best == COFFER__CPU_AVX512 ? COFFER__CPU_AVX2 : best);
    unsetenv("COFFER_CPU");
}

static void an_unsupported_or_unknown_level_is_ignored(void **state)
{
    (void)state;
    const char *foreign = coffer__cpu_best() == COFFER__CPU_NEON ? "avx512" : "neon";
    setenv("COFFER_CPU", foreign, 1);
    assert_int_equal(coffer__cpu(), coffer__cpu_best());
    setenv("COFFER_CPU", "fastest", 1);
    assert_int_equal(coffer__cpu(), coffer__cpu_best());
    unsetenv("COFFER_CPU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_level_is_used_when_nothing_is_asked_for),
        cmocka_unit_test(generic_can_be_asked_for_everywhere),
        cmocka_unit_test(a_lower_level_of_the_same_family_can_be_asked_for),
        cmocka_unit_test(an_unsupported_or_unknown_level_is_ignored),
    };
    return cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
}
