/* Where and why a JSON text is wrong. Slow and thorough: it runs only after the parser has said no. */
#ifndef COFFER_BASE_JSON_ERROR_H
#define COFFER_BASE_JSON_ERROR_H

#include "coffer/error.h"

COFFER_BEGIN_DECLS

/* Fills err with the first thing wrong, as coffer__json_parse promises it; COFFER_OK, and err untouched, when
 * nothing is. max_depth : at most COFFER__JSON_MAX_DEPTH. */
coffer_status coffer__json_explain(const char *text, size_t len, uint64_t base, uint32_t max_depth,
                                   coffer_error *err);
/* The place in a valid text of the key of value number `index`, counted as they stand in the text from 0. */
size_t coffer__json_key_position(const char *text, size_t len, uint64_t index);

COFFER_END_DECLS

#endif
