/* The wire format of protocol buffers: fields one after the other, each with a number and one of four shapes.
 * Schemas are not used. */
#ifndef COFFER_CONVERT_PROTOBUF_H
#define COFFER_CONVERT_PROTOBUF_H

#include "base/buffer.h"
#include "coffer/error.h"

typedef enum coffer__protobuf_shape {
    COFFER__PROTOBUF_VARINT = 0,
    COFFER__PROTOBUF_FIXED64 = 1,
    COFFER__PROTOBUF_BYTES = 2, /* a string, a message inside, or packed numbers */
    COFFER__PROTOBUF_FIXED32 = 5
} coffer__protobuf_shape;

typedef struct coffer__protobuf_field {
    uint32_t number;
    coffer__protobuf_shape shape;
    uint64_t value; /* of all but BYTES */
    const uint8_t *bytes;
    size_t len;
} coffer__protobuf_field;

/* A message: bytes that are read field by field. base : their place in the file, for messages. */
typedef struct coffer__protobuf {
    const uint8_t *start, *at, *end;
    uint64_t base;
} coffer__protobuf;

coffer__protobuf coffer__protobuf_over(const void *bytes, size_t len, uint64_t base);
/* The message inside a field of shape BYTES. */
coffer__protobuf coffer__protobuf_inside(const coffer__protobuf *outer, const coffer__protobuf_field *field);
/* The next field; false in *more at the end. */
coffer_status coffer__protobuf_next(bool *more, coffer__protobuf_field *field, coffer__protobuf *message,
                                    coffer_error *err);
/* The numbers of a repeated field, which come packed into one or one at a time: call until *more is false.
 * *state starts at NULL. */
coffer_status coffer__protobuf_number(bool *more, uint64_t *out, const uint8_t **state,
                                      const coffer__protobuf_field *field, const coffer__protobuf *message,
                                      coffer_error *err);

/* Failures stick in the buffer. */
void coffer__protobuf_put_u64(coffer__buffer *out, uint32_t number, uint64_t value);
void coffer__protobuf_put_bytes(coffer__buffer *out, uint32_t number, const void *bytes, size_t len);
void coffer__protobuf_put_varint(coffer__buffer *out, uint64_t value); /* bare: an item of packed numbers */

#endif
