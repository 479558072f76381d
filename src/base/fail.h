/* Filling coffer_error. */
#ifndef COFFER_BASE_FAIL_H
#define COFFER_BASE_FAIL_H

#include "coffer/error.h"

/* Fills err (may be NULL) and gives the status back, so that a failing line reads `return coffer__fail(err,
 * …)`. A text that does not fit is cut at a character boundary and ends in "…". Control characters become
 * '?'. The arguments may point into err->text. */
coffer_status coffer__fail(coffer_error *err, coffer_status status, uint64_t offset, const char *format, ...)
    COFFER_PRINTF(4, 5);
coffer_status coffer__fail_no_memory(coffer_error *err, uint64_t bytes);
/* "NAME: what: strerror(errno)" with COFFER_E_IO. */
coffer_status coffer__fail_errno(coffer_error *err, const char *what, const char *name, int error_number);

#ifdef __clang_analyzer__
/* clang-tidy looks at one file at a time: this tells it that a failure is never COFFER_OK. */
static inline coffer_status coffer__never_ok(coffer_status status)
{
    if (status >= 0)
        __builtin_unreachable();
    return status;
}
#define coffer__fail(...) coffer__never_ok(coffer__fail(__VA_ARGS__))
#define coffer__fail_no_memory(...) coffer__never_ok(coffer__fail_no_memory(__VA_ARGS__))
#define coffer__fail_errno(...) coffer__never_ok(coffer__fail_errno(__VA_ARGS__))
#endif

#endif
