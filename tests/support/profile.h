/* Traces and the profiles of other tools: converted into each other, summed up and compared. */
#ifndef SUPPORT_PROFILE_H
#define SUPPORT_PROFILE_H

#include "coffer/convert.h"
#include "coffer/mlyze.h"
#include "support/temp.h"

/* A file of the folder of the test becomes another. A path that begins with / is taken as it is. Settings are
 * pairs of name and value (NULL for a switch), up to a NULL name. limits : NULL = defaults. */
coffer_status profile_convert(coffer_error *err, const coffer_limits *limits, const char *in, const char *out,
                              ...);
/* The same; the test fails when it does. */
#define profile_must(...)                                             \
    do {                                                              \
        coffer_error must_err = COFFER_ERROR_INIT;                    \
        if (profile_convert(&must_err, NULL, __VA_ARGS__))            \
            fail_msg("%s:%d: %s", __FILE__, __LINE__, must_err.text); \
    } while (0)
/* Writes the text as the file `name` of the folder and fails the test unless it is refused as a trace, with
 * this status and this in the message, and nothing is left. */
void profile_refuses(const char *name, const void *bytes, size_t len, coffer_status status, const char *part);
#define profile_refuses_text(name, text, status, part) profile_refuses(name, text, strlen(text), status, part)
void profile_write(const char *name, const char *text);
/* A file of the folder, whole, with a NUL after it; free(). */
char *profile_text(const char *name);

/* Writes the sample of support/trace.h to the file `name`, with this number of events, in compressed blocks.
 */
void profile_sample(const char *name, uint32_t events);
coffer_mlyze_totals profile_totals(const char *name);
/* Bytes of a stack such as "main;work;grab" in a trace of the folder; 0 when the trace does not have it. */
uint64_t profile_bytes(const char *name, const char *stack, const char *what);
/* Fails unless a trace says this in all: -1 = whatever it is. */
void profile_expect(const char *name, int64_t allocs, int64_t total, int64_t peak, int64_t live);
/* Fails unless both traces have the same stacks, with lines, and the same bytes by this measure. */
void profile_same(const char *a, const char *b, const char *what);

#endif
