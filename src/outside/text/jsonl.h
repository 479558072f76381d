/* JSON lines: one object a line. Streaming: memory for one line. Empty lines are skipped. */
#ifndef COFFER_CONVERT_JSONL_H
#define COFFER_CONVERT_JSONL_H

#include "base/json.h"
#include "coffer/source.h"

typedef struct coffer__jsonl_reader coffer__jsonl_reader;

coffer_status coffer__jsonl_open(coffer__jsonl_reader **out, coffer_source *src, const coffer_limits *limits,
                                 coffer_error *err);
void coffer__jsonl_close(coffer__jsonl_reader *reader);
/* *object is borrowed until the next call; NULL at the end of the file. A line that is not an object is an
 * error that names the line. */
coffer_status coffer__jsonl_next(const coffer__json_value **object, coffer__jsonl_reader *reader,
                                 coffer_error *err);
/* Number of the line that the last call gave, from 1, and its offset in the file. */
uint64_t coffer__jsonl_line(const coffer__jsonl_reader *reader);
uint64_t coffer__jsonl_offset(const coffer__jsonl_reader *reader);

/* The members of the current line as they are written there. at : 0 for the first one; moves to the next.
 * Gives the text of the value without the white space around it; false after the last. */
bool coffer__jsonl_next_raw(const char **text, size_t *len, const coffer__jsonl_reader *reader, size_t *at);

#endif
