#include "base/buffer.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FIRST_ITEMS 16

coffer_status coffer__array_reserve_one(void *items, size_t *capacity, size_t count, size_t size,
                                        coffer_error *err)
{
    size_t larger = FIRST_ITEMS, bytes;
    void *old, *grown;
    if (count < *capacity)
        return COFFER_OK;
    if ((*capacity && !coffer__mul_size(&larger, *capacity, 2)) || !coffer__mul_size(&bytes, larger, size))
        return coffer__fail_no_memory(err, UINT64_MAX);
    memcpy(&old, items, sizeof old);
    grown = coffer__realloc(old, bytes);
    if (!grown)
        return coffer__fail_no_memory(err, bytes);
    memcpy(items, &grown, sizeof grown);
    *capacity = larger;
    return COFFER_OK;
}

#define FIRST_CAPACITY 64

void coffer__buffer_init(coffer__buffer *buffer, size_t max)
{
    *buffer = (coffer__buffer)COFFER__BUFFER_INIT;
    buffer->max = max;
}

void coffer__buffer_free(coffer__buffer *buffer)
{
    coffer__free(buffer->data);
    coffer__buffer_init(buffer, buffer->max);
}

/* Room for at least `needed` bytes in all. Doubles, so that appending costs constant time on average. */
static bool grow(coffer__buffer *buffer, size_t needed)
{
    if (needed <= buffer->capacity)
        return true;
    size_t capacity = buffer->capacity < FIRST_CAPACITY ? FIRST_CAPACITY : buffer->capacity;
    while (capacity < needed) {
        if (!coffer__mul_size(&capacity, capacity, 2))
            return false;
    }
    uint8_t *data = coffer__realloc(buffer->data, capacity);
    if (!data)
        return false;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

uint8_t *coffer__buffer_extend(coffer__buffer *buffer, size_t len)
{
    size_t needed, with_nul;
    if (buffer->failed)
        return NULL;
    /* One byte more than asked for: coffer__buffer_text then never has to allocate. */
    if (!coffer__add_size(&needed, buffer->len, len) || needed > buffer->max ||
        !coffer__add_size(&with_nul, needed, 1) || !grow(buffer, with_nul)) {
        buffer->failed = true;
        return NULL;
    }
    uint8_t *room = buffer->data + buffer->len;
    buffer->len = needed;
    return room;
}

bool coffer__buffer_append(coffer__buffer *buffer, const void *bytes, size_t len)
{
    uint8_t *room = coffer__buffer_extend(buffer, len);
    if (room && len > 0)
        memcpy(room, bytes, len);
    return room != NULL;
}

bool coffer__buffer_fill(coffer__buffer *buffer, uint8_t byte, size_t count)
{
    uint8_t *room = coffer__buffer_extend(buffer, count);
    if (room)
        memset(room, byte, count);
    return room != NULL;
}

bool coffer__buffer_printf(coffer__buffer *buffer, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int len = vsnprintf(NULL, 0, format, arguments);
    uint8_t *room = len < 0 ? NULL : coffer__buffer_extend(buffer, (size_t)len);
    if (room)
        vsnprintf((char *)room, (size_t)len + 1, format, again);
    else
        buffer->failed = true;
    va_end(again);
    va_end(arguments);
    return room != NULL;
}

const char *coffer__buffer_text(coffer__buffer *buffer)
{
    if (buffer->failed || !buffer->data)
        return "";
    buffer->data[buffer->len] = '\0';
    return (const char *)buffer->data;
}

uint8_t *coffer__buffer_release(coffer__buffer *buffer, size_t *len)
{
    uint8_t *data = buffer->data;
    if (len)
        *len = buffer->len;
    coffer__buffer_init(buffer, buffer->max);
    return data;
}

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
