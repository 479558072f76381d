#ifndef COFFER_FUZZ_MUST_H
#define COFFER_FUZZ_MUST_H

#include <stdio.h>
#include <stdlib.h>

/* Ends the run, and so tells the fuzzer, when something that must hold does not. */
#define MUST(condition)                                                                    \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

#endif
