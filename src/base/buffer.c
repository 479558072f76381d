#include "base/buffer.h"

#include "base/checked.h"
#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
