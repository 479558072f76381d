/* A growable array of bytes with a maximum. A failure stays: a caller may append several times and check
 * `failed` once. */
#ifndef COFFER_BASE_BUFFER_H
#define COFFER_BASE_BUFFER_H

#include "coffer/api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct coffer__buffer {
    uint8_t *data;
    size_t len, capacity;
    size_t max;  /* set at init */
    bool failed; /* out of memory, or past max */
} coffer__buffer;

#define COFFER__BUFFER_INIT         \
    {                               \
        NULL, 0, 0, SIZE_MAX, false \
    }

void coffer__buffer_init(coffer__buffer *buffer, size_t max);
void coffer__buffer_free(coffer__buffer *buffer); /* leaves it empty and usable */
bool coffer__buffer_append(coffer__buffer *buffer, const void *bytes, size_t len);
bool coffer__buffer_fill(coffer__buffer *buffer, uint8_t byte, size_t count);
bool coffer__buffer_printf(coffer__buffer *buffer, const char *format, ...) COFFER_PRINTF(2, 3);
/* Adds len uninitialized bytes and returns them; NULL on failure. */
uint8_t *coffer__buffer_extend(coffer__buffer *buffer, size_t len);
/* Adds a NUL that is not counted and returns the text; "" when the buffer failed. */
const char *coffer__buffer_text(coffer__buffer *buffer);
/* Hands the memory over to the caller (coffer__free) and empties the buffer. len : may be NULL. */
uint8_t *coffer__buffer_release(coffer__buffer *buffer, size_t *len);

#endif
