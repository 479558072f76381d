/* Finds where and why a JSON text is invalid, and valid numbers that are too large for the parser. Slow: it
 * runs only after the parser has failed. */
#ifndef COFFER_BASE_JSON_ERROR_H
#define COFFER_BASE_JSON_ERROR_H

#include "coffer/error.h"

COFFER_BEGIN_DECLS

/* Fills err with the first error, as coffer__json_parse documents; COFFER_OK, with err untouched, for a valid
 * text. max_depth : at most COFFER__JSON_MAX_DEPTH. python : NaN, Infinity and -Infinity are numbers.
 */
coffer_status coffer__json_explain(const char *text, size_t len, uint64_t base, uint32_t max_depth,
                                   bool python, coffer_error *err);
/* A number that the parser cannot read. */
typedef struct coffer__json_odd_number {
    uint64_t value; /* index of the value in the text, from 0 */
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
