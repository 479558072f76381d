/* Floating-point numbers as decimal text and back: exact, without a locale, without an allocation. */
#ifndef COFFER_BASE_REAL_H
#define COFFER_BASE_REAL_H

#include "coffer/api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

COFFER_BEGIN_DECLS

#define COFFER__REAL_TEXT 40 /* bytes that must be writable; the text of a number has at most 24 */

/* The fewest digits that read back as the same number, always with a point or an exponent ("1.0", "1e+22"),
 * or "nan", "inf", "-inf". Writes no NUL and returns the end of the text. */
char *coffer__put_f64(char *to, double value);
char *coffer__put_f32(char *to, float value); /* the fewest that read back as the same float */
/* The same for the bits of several numbers, each with a separator after it; much faster than one by one. Each
 * number may take COFFER__REAL_TEXT bytes. */
char *coffer__put_f64_list(char *to, const uint64_t *bits, size_t count, char separator);
char *coffer__put_f32_list(char *to, const uint32_t *bits, size_t count, char separator);
/* The whole text must be one number, as strtod takes it in the C locale, but for hexadecimal and white space.
 */
bool coffer__parse_f64(double *out, const char *text, size_t len);

/* The double of the shortest decimal number that is at most `tolerance` away from value, so that 7 × 0.3 − 1
 * is 1.1 and not 1.0999999999999996. NaN and infinities stay what they are. */
double coffer__nearest_decimal(double value, double tolerance);

COFFER_END_DECLS

#endif
