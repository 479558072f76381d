/* Unsigned LEB128: 7 bits a byte, least significant first, at most 10 bytes, the tenth at most 1. */
#ifndef COFFER_BASE_VARINT_H
#define COFFER_BASE_VARINT_H

#include <stddef.h>
#include <stdint.h>

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
