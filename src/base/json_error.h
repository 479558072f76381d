/* Where and why a JSON text is wrong, and the numbers in it that are right but too large for the parser. Slow
 * and thorough: it runs only after the parser has said no. */
#ifndef COFFER_BASE_JSON_ERROR_H
#define COFFER_BASE_JSON_ERROR_H

#include "coffer/error.h"

COFFER_BEGIN_DECLS

/* Fills err with the first thing wrong, as coffer__json_parse promises it; COFFER_OK, and err untouched, when
 * nothing is. max_depth : at most COFFER__JSON_MAX_DEPTH. python : NaN, Infinity and -Infinity are numbers.
 */
coffer_status coffer__json_explain(const char *text, size_t len, uint64_t base, uint32_t max_depth,
                                   bool python, coffer_error *err);
/* A number that the parser cannot read. */
typedef struct coffer__json_odd_number {
    uint64_t value; /* which value of the text it is, counted as they stand from 0 */
    size_t at, len;
} coffer__json_odd_number;

/* Every such number of a text that is otherwise valid.
 * The caller frees *out. COFFER_E_BAD_JSON when the text is not valid, for coffer__json_explain to say why;
 * COFFER_E_NO_MEMORY. */
coffer_status coffer__json_odd_numbers(coffer__json_odd_number **out, size_t *count, const char *text,
                                       size_t len, uint32_t max_depth, bool python);
/* The offset of the key of value number `index` in a valid text. Values are counted from 0, in text order. */
size_t coffer__json_key_position(const char *text, size_t len, uint64_t index);

COFFER_END_DECLS

#endif
