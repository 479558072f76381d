/* Shared by the readers and writers of profiles: lines that may be compressed, numbered triples. */
#ifndef COFFER_OUTSIDE_PROFILES_PROFILE_TEXT_H
#define COFFER_OUTSIDE_PROFILES_PROFILE_TEXT_H

#include "base/fail.h"
#include "base/table.h"
#include "coffer/progress.h"
#include "outside/archives/unpack.h"
#include "outside/text/text_window.h"

/* The lines of a text that may be compressed. */
typedef struct coffer__packed_lines_opts {
    const coffer_limits *limits; /* not NULL */
    const coffer_progress *progress;
    bool partial; /* accept a compressed stream that is cut off */
} coffer__packed_lines_opts;

typedef struct coffer__packed_lines {
    coffer_source *source;
    coffer__packed_lines_opts opts;
    coffer__unpack *unpack;
    coffer__text_window window;
    char *text; /* of the current line; may be changed; not NUL-terminated */
    size_t len;
    uint64_t number; /* of the current line, from 1 */
    bool whole;      /* the current line has a line end */
    bool cut;        /* the compressed stream is cut off: an error without opts.partial */
} coffer__packed_lines;

/* source, opts->limits and opts->progress : borrowed until the lines are closed. */
coffer_status coffer__packed_lines_open(coffer__packed_lines *lines, coffer_source *source,
                                        const coffer__packed_lines_opts *opts, coffer_error *err);
void coffer__packed_lines_close(coffer__packed_lines *lines);
/* The next line; text is NULL at the end. */
coffer_status coffer__packed_lines_next(coffer__packed_lines *lines, coffer_error *err);
/* Fails with "line N: what". */
coffer_status coffer__packed_lines_fail(const coffer__packed_lines *lines, coffer_error *err,
                                        coffer_status status, const char *format, ...) COFFER_PRINTF(4, 5);
#ifdef __clang_analyzer__ /* as in base/fail.h */
#define coffer__packed_lines_fail(...) coffer__never_ok(coffer__packed_lines_fail(__VA_ARGS__))
#endif

/* A set of triples of numbers, each with an index: frames by function, file and line, calls by caller and
 * frame. */
typedef struct coffer__triple {
    uint64_t a, b, c;
} coffer__triple;

typedef struct coffer__triples {
    coffer__triple *items; /* in the order in which they were added */
    size_t count, capacity;
    coffer__table table;
} coffer__triples;

/* *place : index of the equal item, or of the new one at the end. */
coffer_status coffer__triples_add(size_t *place, bool *is_new, coffer__triples *triples, coffer__triple item,
                                  coffer_error *err);
void coffer__triples_free(coffer__triples *triples);

#endif
