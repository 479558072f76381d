/* Sizes and durations as people write them. */
#ifndef COFFER_BASE_QUANTITY_H
#define COFFER_BASE_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/* "4096", "5GB" (powers of ten), "2MiB", "64K" (powers of two), "1.5G"; capitals do not matter. */
bool coffer__parse_size(uint64_t *bytes, const char *text);
/* "300us", "20ms", "1.5s", "2min", "1h" as microseconds: the unit must be there. */
bool coffer__parse_duration(uint64_t *microseconds, const char *text);

/* "4.2 MiB", "17 bytes". */
typedef char coffer__size_text[32];
const char *coffer__size_text_of(coffer__size_text out, uint64_t bytes);

#endif
