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

/* Unsigned LEB128: 7 bits a byte, least significant first, at most 10 bytes, the tenth at most 1. */
#define COFFER__VARINT_MAX 10

typedef enum coffer__varint_result {
    COFFER__VARINT_OK,
    COFFER__VARINT_OVERLONG,  /* the value is right, but shorter bytes say the same */
    COFFER__VARINT_TRUNCATED, /* the bytes end inside it */
    COFFER__VARINT_OVERFLOW   /* more than 64 bits, or an eleventh byte */
} coffer__varint_result;

/* Reads one at *at and moves *at past it; at and value are untouched when it is truncated or overflows. */
coffer__varint_result coffer__varint_read(uint64_t *value, const uint8_t **at, const uint8_t *end);
/* Writes 1 to 10 bytes, gives how many. */
size_t coffer__varint_write(uint8_t out[COFFER__VARINT_MAX], uint64_t value);

#endif
