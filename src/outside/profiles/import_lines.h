/* The lines of a text that may come packed. */
#ifndef COFFER_CONVERT_IMPORT_LINES_H
#define COFFER_CONVERT_IMPORT_LINES_H

#include "convert/convert.h"
#include "outside/archives/unpack.h"
#include "outside/text/text_window.h"

typedef struct coffer__import_lines {
    const coffer__convert_job *job;
    coffer__unpack *unpack;
    coffer__text_window window;
    char *text; /* of the line in hand, which may be changed; not NUL-terminated */
    size_t len;
    uint64_t number; /* of the line in hand, from 1 */
    bool whole;      /* the line in hand has an end */
    bool cut;        /* the packed stream broke off; only with the setting "partial", else it is an error */
} coffer__import_lines;

coffer_status coffer__import_lines_open(coffer__import_lines *lines, const coffer__convert_job *job,
                                        coffer_error *err);
void coffer__import_lines_close(coffer__import_lines *lines);
/* The next line; text is NULL at the end. Tells of progress now and then. */
coffer_status coffer__import_lines_next(coffer__import_lines *lines, coffer_error *err);
/* Fails with "NAME: line N: what". */
coffer_status coffer__import_lines_fail(const coffer__import_lines *lines, coffer_error *err,
                                        coffer_status status, const char *format, ...) COFFER_PRINTF(4, 5);

#endif
