/* Filling coffer_error. */
#ifndef COFFER_BASE_FAIL_H
#define COFFER_BASE_FAIL_H

#include "coffer/error.h"

#include <stdarg.h>
#include <stddef.h>

/* True for errors in the content of a file, which are findings; false for errors of memory, the disk or the
 * caller, such as a missing key. */
static inline bool coffer__is_about_file(coffer_status status)
{
    return status < 0 && status > COFFER_E_IO && status != COFFER_E_KEY_NEEDED;
}

/* For a call whose failure changes nothing: `coffer__ignore(coffer_mldf_writer_drop_partial(path, NULL));`.
 */
static inline void coffer__ignore(coffer_status status)
{
    (void)status;
}

/* Fills err (may be NULL) and returns the status, so that a failing line reads `return coffer__fail(err, …)`.
 * The subject is the input. A text that does not fit is cut at a character boundary and ends in "…". Control
 * characters become '?'. The arguments may point into err->text, but then coffer__fail_prefix is the better
 * call: this one forgets system_error and subject. */
coffer_status coffer__fail(coffer_error *err, coffer_status status, uint64_t offset, const char *format, ...)
    COFFER_PRINTF(4, 5);
coffer_status coffer__fail_no_memory(coffer_error *err, uint64_t bytes);
/* "what: strerror(error_number)" with COFFER_E_IO and the number as system_error. */
coffer_status coffer__fail_errno(coffer_error *err, const char *what, int error_number);

/* Copies an error that was kept; returns its status. */
coffer_status coffer__fail_copy(coffer_error *err, const coffer_error *kept);

/* The calls below change an error that was filled before. They do nothing when status is COFFER_OK, and
 * return it. */

/* Puts words and ": " before the text; system_error, offset and subject stay. */
coffer_status coffer__fail_prefix(coffer_error *err, coffer_status status, const char *format, ...)
    COFFER_PRINTF(3, 4);
/* The error is about the output, unless it already names another file. */
coffer_status coffer__fail_output(coffer_error *err, coffer_status status);
/* The error is about a file that the caller did not name: puts its name before the text, without its folder
 * and shortened in the middle where it is long. name : NULL changes nothing. */
coffer_status coffer__fail_other(coffer_error *err, coffer_status status, const char *name);
/* The same for an error of reading one of several inputs. Leaves alone what that input did not cause: errors
 * of the output, of memory, of the caller, and those that name a file already. */
coffer_status coffer__fail_input(coffer_error *err, coffer_status status, const char *name);

#ifdef __clang_analyzer__
/* clang-tidy looks at one file at a time: this tells it that a failure is never COFFER_OK. */
static inline coffer_status coffer__never_ok(coffer_status status)
{
    if (status >= 0)
        __builtin_unreachable();
    return status;
}
/* And that the calls which change an error return the status they got. */
static inline coffer_status coffer__known_output(coffer_error *err, coffer_status status)
{
    (void)coffer__fail_output(err, status);
    return status;
}
static inline coffer_status coffer__known_other(coffer_error *err, coffer_status status, const char *name)
{
    (void)coffer__fail_other(err, status, name);
    return status;
}
static inline coffer_status coffer__known_input(coffer_error *err, coffer_status status, const char *name)
{
    (void)coffer__fail_input(err, status, name);
    return status;
}
#define coffer__fail_output(err, status) coffer__known_output(err, status)
#define coffer__fail_other(err, status, name) coffer__known_other(err, status, name)
#define coffer__fail_input(err, status, name) coffer__known_input(err, status, name)
#define coffer__fail_prefix(err, status, ...) ((void)coffer__fail_prefix(err, status, __VA_ARGS__), (status))
#define coffer__fail(...) coffer__never_ok(coffer__fail(__VA_ARGS__))
#define coffer__fail_no_memory(...) coffer__never_ok(coffer__fail_no_memory(__VA_ARGS__))
#define coffer__fail_errno(...) coffer__never_ok(coffer__fail_errno(__VA_ARGS__))
#endif

/* Text that leaves the library in an error or a finding: one line, valid UTF-8, of a bounded length.
 * Formats into out. What does not fit is cut at a character boundary and ends in "…"; control characters and
 * bytes that are not UTF-8 become '?'. size : at least 4. */
void coffer__format_line(char *out, size_t size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

/* The first failure of a writer is kept, and every later call of that writer repeats it. */
typedef struct coffer__sticky {
    coffer_error failure; /* status COFFER_OK: nothing has failed */
} coffer__sticky;

#define COFFER__STICKY_INIT \
    {                       \
        COFFER_ERROR_INIT   \
    }

/* Call it first in every function of the writer. */
static inline coffer_status coffer__sticky_check(const coffer__sticky *sticky, coffer_error *err)
{
    if (sticky->failure.status && err)
        *err = sticky->failure;
    return sticky->failure.status;
}

/* Keeps a failure that leaves the writer unusable. failure : from an error of the function's own, since the
 * caller's err may be NULL. A status of COFFER_OK is passed through; a second failure repeats the first. */
static inline coffer_status coffer__sticky_keep(coffer__sticky *sticky, coffer_status status,
                                                const coffer_error *failure, coffer_error *err)
{
    if (!status)
        return COFFER_OK;
    if (!sticky->failure.status) {
        sticky->failure = *failure;
        sticky->failure.status = status;
    }
    return coffer__sticky_check(sticky, err);
}

#endif
