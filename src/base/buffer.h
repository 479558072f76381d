/* Memory that grows: bytes, arrays, arenas. */
#ifndef COFFER_BASE_BUFFER_H
#define COFFER_BASE_BUFFER_H

#include "coffer/api.h"
#include "coffer/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growable array of bytes with a maximum. A failure stays: a caller may append several times and check
 * `failed` once. */
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

/* Makes room for one item after the `count` items of `size` bytes in `*items`, a pointer to any type;
 * `*capacity` doubles when it is used up. On failure the array does not change. */
coffer_status coffer__array_reserve_one(void *items, size_t *capacity, size_t count, size_t size,
                                        coffer_error *err);

/* Memory that is allocated in pieces and freed all at once. */
typedef struct coffer__arena {
    struct coffer__arena_block *blocks;
    bool failed; /* stays set: a caller may check it once, after several calls */
} coffer__arena;

#define COFFER__ARENA_INIT \
    {                      \
        NULL, false        \
    }

/* Aligned for any type, not zeroed; NULL when out of memory. */
void *coffer__arena_take(coffer__arena *arena, size_t size);
/* A copy with a NUL after it. */
char *coffer__arena_text(coffer__arena *arena, const char *text, size_t len);
void coffer__arena_free(coffer__arena *arena); /* leaves it empty and usable */

#endif
