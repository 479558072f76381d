/* As much of cmocka as the tests of the kernels use, for a processor that the real one is not installed for.
 * A test that fails ends the program. */
#ifndef AARCH64_CMOCKA_H
#define AARCH64_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

#define cmocka_unit_test(function) \
    {                              \
#function, function        \
    }

#define fail_msg(...)                                   \
    do {                                                \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
        fprintf(stderr, __VA_ARGS__);                   \
        fputc('\n', stderr);                            \
        exit(1);                                        \
    } while (0)

#define assert_true(condition)                    \
    do {                                          \
        if (!(condition))                         \
            fail_msg("not true: %s", #condition); \
    } while (0)

#define assert_non_null(pointer) assert_true((pointer) != NULL)
#define assert_int_equal(a, b) assert_true((unsigned long long)(a) == (unsigned long long)(b))
#define assert_int_not_equal(a, b) assert_true((unsigned long long)(a) != (unsigned long long)(b))
#define assert_memory_equal(a, b, len) assert_true(memcmp((a), (b), (len)) == 0)

#define cmocka_run_group_tests(tests, setup, teardown) \
    cmocka_run_group_tests_name("tests", tests, setup, teardown)
#define cmocka_run_group_tests_name(group, tests, setup, teardown) \
    run_tests((group), (tests), sizeof(tests) / sizeof *(tests))

static inline int run_tests(const char *group, const struct CMUnitTest *tests, size_t count)
{
    const char *without = getenv("WITHOUT_TEST");
    for (size_t i = 0; i < count; i++) {
        void *state = NULL;
        if (without && !strcmp(without, tests[i].name))
            continue;
        tests[i].run(&state);
        printf("%s: %s\n", group, tests[i].name);
    }
    return 0;
}

#endif
