/* Strict UTF-8: no surrogates, nothing over U+10FFFF, no over-long form. */
#ifndef COFFER_BASE_UTF8_H
#define COFFER_BASE_UTF8_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the longest valid prefix; len when all is valid. */
size_t coffer__utf8_valid_prefix(const void *text, size_t len);
static inline bool coffer__utf8_valid(const void *text, size_t len)
{
    return coffer__utf8_valid_prefix(text, len) == len;
}
/* Decodes one character; gives its length in bytes, or 0 for an invalid one. */
size_t coffer__utf8_decode(uint32_t *code_point, const uint8_t *at, const uint8_t *end);
/* Columns that valid UTF-8 takes on a terminal: 0 for combining marks, 2 for East Asian wide, 1 otherwise. */
size_t coffer__utf8_width(const char *text, size_t len);

/* True for characters that do more on a terminal than show: controls, and those that change the direction. */
bool coffer__utf8_is_harmful(uint32_t code_point);
/* True for code points that are reserved and never text (U+FFFE, U+FDD0 …): XML and cairo refuse them. */
bool coffer__utf8_is_noncharacter(uint32_t code_point);
/* Appends text with harmful characters as \u009b or \x1b and bytes that are not UTF-8 as \x80; line feeds and
 * tabs stay. JSON text stays JSON. Returns how many bytes were used: all, or without is_last, all but a
 * character that the next bytes may complete. */
size_t coffer__utf8_make_safe(coffer__buffer *out, const void *text, size_t len, bool is_last);

#endif
