/* Tokens of the Python literals in NumPy headers. A strict reader: nothing is ever evaluated. */
#ifndef COFFER_OUTSIDE_PYTHON_LITERAL_H
#define COFFER_OUTSIDE_PYTHON_LITERAL_H

#include "coffer/error.h"

/* Longer strings are refused. */
#define COFFER__LITERAL_MAX_STRING 1024
/* Room for the last code point and a NUL. */
#define COFFER__LITERAL_STRING_SIZE (COFFER__LITERAL_MAX_STRING + 3)

typedef struct coffer__literal {
    const char *start, *at, *end;
    uint64_t base; /* file offset of `start` */
    bool utf8;     /* version 3; Latin-1 before */
    coffer_error *err;
} coffer__literal;

/* Both fail at the current position; `what` completes the message. */
coffer_status coffer__literal_fail(coffer__literal *lit, coffer_status status, const char *what);
coffer_status coffer__literal_expected(coffer__literal *lit, const char *what);

void coffer__literal_skip_space(coffer__literal *lit);
/* Skips white space, then consumes the character or word if it is next. */
bool coffer__literal_take(coffer__literal *lit, char c);
bool coffer__literal_take_word(coffer__literal *lit, const char *word);
/* A string as NUL-terminated UTF-8. */
coffer_status coffer__literal_take_string(char out[COFFER__LITERAL_STRING_SIZE], coffer__literal *lit);
coffer_status coffer__literal_take_integer(uint64_t *out, coffer__literal *lit);

#endif
