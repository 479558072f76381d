#include "base/arena.h"

#include "base/checked.h"
#include "base/memory.h"

#include <stdalign.h>
#include <string.h>

#define FIRST_BLOCK 1000
#define LARGEST_BLOCK 64000

typedef struct coffer__arena_block {
    struct coffer__arena_block *previous;
    size_t used, size;
    alignas(max_align_t) char bytes[];
} block;

void *coffer__arena_take(coffer__arena *arena, size_t size)
{
    uint64_t rounded;
    if (arena->failed)
        return NULL;
    block *newest = arena->blocks;
    if (!coffer__align_up(&rounded, size, alignof(max_align_t)) || rounded > SIZE_MAX / 2) {
        arena->failed = true;
        return NULL;
    }
    if (!newest || newest->size - newest->used < rounded) {
        size_t room = newest ? 2 * newest->size : FIRST_BLOCK;
        if (room > LARGEST_BLOCK)
            room = LARGEST_BLOCK;
        if (room < rounded)
            room = (size_t)rounded;
        newest = coffer__malloc(sizeof *newest + room);
        if (!newest) {
            arena->failed = true;
            return NULL;
        }
        *newest = (block){ .previous = arena->blocks, .used = 0, .size = room };
        arena->blocks = newest;
    }
    void *memory = newest->bytes + newest->used;
    newest->used += (size_t)rounded;
    return memory;
}

char *coffer__arena_text(coffer__arena *arena, const char *text, size_t len)
{
    char *copy = len < SIZE_MAX ? coffer__arena_take(arena, len + 1) : NULL;
    if (!copy)
        return NULL;
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void coffer__arena_free(coffer__arena *arena)
{
    block *next;
    for (block *at = arena->blocks; at; at = next) {
        next = at->previous;
        coffer__free(at);
    }
    *arena = (coffer__arena)COFFER__ARENA_INIT;
}
