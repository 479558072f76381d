/* A bounded little-endian reader over bytes in memory. A read past the end returns zeros and sets `failed`,
 * which stays set: a caller may read a whole record and check it once. */
#ifndef COFFER_BASE_CURSOR_H
#define COFFER_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct coffer__cursor {
    const uint8_t *start, *at, *end;
    uint64_t base; /* file offset of `start` */
    bool failed;
} coffer__cursor;

coffer__cursor coffer__cursor_over(const void *bytes, size_t len, uint64_t base);
uint64_t coffer__cursor_offset(const coffer__cursor *cursor); /* in the file */
size_t coffer__cursor_left(const coffer__cursor *cursor);

uint8_t coffer__cursor_u8(coffer__cursor *cursor);
uint16_t coffer__cursor_u16(coffer__cursor *cursor);
uint32_t coffer__cursor_u32(coffer__cursor *cursor);
uint64_t coffer__cursor_u64(coffer__cursor *cursor);
float coffer__cursor_f32(coffer__cursor *cursor);
double coffer__cursor_f64(coffer__cursor *cursor);
/* The next len bytes, borrowed, or NULL (and failed). */
const uint8_t *coffer__cursor_bytes(coffer__cursor *cursor, size_t len);
void coffer__cursor_skip(coffer__cursor *cursor, size_t len);

#endif
