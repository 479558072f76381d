#include "base/memory.h"

#include "base/checked.h"
#include "coffer/api.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *coffer__malloc(size_t size)
{
    return malloc(size ? size : 1);
}

void *coffer__calloc(size_t count, size_t size)
{
    if (count == 0 || size == 0)
        count = size = 1;
    return calloc(count, size);
}

void *coffer__realloc(void *old, size_t size)
{
    return realloc(old, size ? size : 1);
}

void coffer__free(const void *pointer)
{
    free((void *)(uintptr_t)pointer);
}

void *coffer__alloc_array(size_t count, size_t size)
{
    size_t bytes;
    if (!coffer__mul_size(&bytes, count, size))
        return NULL;
    return coffer__malloc(bytes);
}

char *coffer__strndup(const char *text, size_t len)
{
    size_t size;
    if (!coffer__add_size(&size, len, 1))
        return NULL;
    char *copy = coffer__malloc(size);
    if (!copy)
        return NULL;
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *coffer__strdup(const char *text)
{
    return coffer__strndup(text, strlen(text));
}

void coffer_free(void *bytes)
{
    coffer__free(bytes);
}
