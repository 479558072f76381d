/* CRC-32 with the polynomial and values of zlib, and CRC-32C: by ISA-L, or by a table with COFFER__PORTABLE.
 */
#ifndef COFFER_BASE_CRC32_H
#define COFFER_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* crc : 0 to begin, or the result so far. */
uint32_t coffer__crc32(uint32_t crc, const void *bytes, size_t len);
/* Of two pieces in a row, from the CRC of each. */
uint32_t coffer__crc32_combine(uint32_t first, uint32_t second, uint64_t second_len);
/* The polynomial of Castagnoli, for all the bytes. */
uint32_t coffer__crc32c(const void *bytes, size_t len);
const char *coffer__crc32_library(void); /* "isa-l 2.30", for --version */

#endif
