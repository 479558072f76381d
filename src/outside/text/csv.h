/* CSV as RFC 4180 describes it: commas, quotes doubled inside quotes, LF or CR LF. Streaming: memory for one
 * row. */
#ifndef COFFER_CONVERT_CSV_H
#define COFFER_CONVERT_CSV_H

#include "base/buffer.h"
#include "coffer/limits.h"
#include "coffer/source.h"

/* A row with more fields is refused before memory is spent on them. */
#define COFFER__CSV_MAX_FIELDS 65536

typedef struct coffer__csv_field {
    const char *text; /* not NUL-terminated */
    size_t len;
} coffer__csv_field;

typedef struct coffer__csv_row {
    const coffer__csv_field *fields;
    size_t count;
    uint64_t line;   /* of its first byte, from 1 */
    uint64_t offset; /* of its first byte in the file */
} coffer__csv_row;

typedef struct coffer__csv_reader coffer__csv_reader;

coffer_status coffer__csv_open(coffer__csv_reader **out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err);
void coffer__csv_close(coffer__csv_reader *reader);
/* *row is borrowed until the next call; NULL at the end of the file. */
coffer_status coffer__csv_next(const coffer__csv_row **row, coffer__csv_reader *reader, coffer_error *err);

/* Appends text, in quotes where it needs them. */
void coffer__csv_put_text(coffer__buffer *out, const char *text, size_t len);

#endif
