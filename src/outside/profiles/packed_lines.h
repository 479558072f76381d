/* The lines of a text that may be compressed. */
#ifndef COFFER_OUTSIDE_PACKED_LINES_H
#define COFFER_OUTSIDE_PACKED_LINES_H

#include "coffer/progress.h"
#include "outside/archives/unpack.h"
#include "outside/text/text_window.h"

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

#endif
