/* Memory that is allocated in pieces and freed all at once. */
#ifndef COFFER_BASE_ARENA_H
#define COFFER_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

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
