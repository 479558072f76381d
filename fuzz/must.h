#ifndef COFFER_FUZZ_MUST_H
#define COFFER_FUZZ_MUST_H

#include <stdio.h>
#include <stdlib.h>

/* Aborts, which the fuzzer reports, when the condition is false. */
#define MUST(condition)                                                                    \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

/* A call whose result does not matter here: it must only not crash. */
#define MAY_FAIL(call) \
    do {               \
        if (call) {    \
        }              \
    } while (0)

#endif
