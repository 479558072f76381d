/* A moving window over the text of a source, for CSV and JSON lines. It has one row at a time,
 * whatever the size of the file. */
#ifndef COFFER_CONVERT_TEXT_WINDOW_H
#define COFFER_CONVERT_TEXT_WINDOW_H

#include "coffer/source.h"

/* Gives the next bytes of a stream, at most len; *got is 0 at its end. */
typedef coffer_status (*coffer__text_read)(void *context, void *out, size_t len, size_t *got,
                                           coffer_error *err);

typedef struct coffer__text_window {
    coffer_source *src; /* NULL: a stream */
    coffer__text_read read;
    void *context;
    char *memory;
    size_t capacity, max_capacity;
    size_t at, end; /* the window is memory[at, end) */
    uint64_t next;  /* file offset of the byte after them */
} coffer__text_window;

/* max_row : a row longer than this is COFFER_E_LIMIT. A UTF-8 byte order mark is skipped. */
coffer_status coffer__text_window_open(coffer__text_window *window, coffer_source *src, uint64_t max_row,
                                       coffer_error *err);
/* The same over a stream of any kind. */
coffer_status coffer__text_window_open_stream(coffer__text_window *window, coffer__text_read read,
                                              void *context, uint64_t max_row, coffer_error *err);
void coffer__text_window_close(coffer__text_window *window);
/* Reads more bytes after the window, which may move in memory. *grew is false at the end of the text. */
coffer_status coffer__text_window_grow(bool *grew, coffer__text_window *window, coffer_error *err);
/* File offset of the first byte of the window. */
uint64_t coffer__text_window_offset(const coffer__text_window *window);

/* The next line without its LF or CR LF, as bytes that may be changed and live until the next call; *line is
 * NULL at the end of the text. */
coffer_status coffer__text_window_line(char **line, size_t *len, coffer__text_window *window,
                                       coffer_error *err);

#endif
