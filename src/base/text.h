/* Patterns on names, natural order, sizes and durations. */
#ifndef COFFER_BASE_TEXT_H
#define COFFER_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shell patterns on names: * ? [a-z] [!a-z] \x, and * crosses dots and slashes. Time is at most
 * pattern × text. ? and sets take a whole UTF-8 character. */
bool coffer__glob_match(const char *pattern, const char *text, size_t len);

/* The order in which people count: "layer.2" before "layer.10". Compares like strcmp, but runs of digits by
 * their value. Texts that differ only in leading zeros
 * are ordered like strcmp. */
int coffer__natural_compare(const char *a, const char *b);

/* Sizes and durations as people write them.
 * "4096", "5GB" (powers of ten), "2MiB", "64K" (powers of two), "1.5G"; capitals do not matter. */
bool coffer__parse_size(uint64_t *bytes, const char *text);
/* "300us", "20ms", "1.5s", "2min", "1h" as microseconds: the unit must be there. */
bool coffer__parse_duration(uint64_t *microseconds, const char *text);

/* "4.2 MiB", "17 bytes". */
typedef char coffer__size_text[32];
const char *coffer__size_text_of(coffer__size_text out, uint64_t bytes);

#endif
