/* Calls every init function with each struct_size from 0 to past the end of the struct. */
#include <coffer/coffer.h>

#include <stdio.h>
#include <string.h>

enum { FENCE = 64, FILL = 0xa5 };

typedef void (*init_function)(void *out, uint32_t struct_size);

static int check(const char *name, init_function init, size_t size)
{
    static unsigned char bytes[8192], whole[4096];
    if (size + 2 * FENCE > sizeof whole)
        return fprintf(stderr, "%s: %zu bytes\n", name, size);
    init(whole, (uint32_t)size);
    for (size_t given = 0; given <= size + FENCE; given++) {
        uint32_t set = 0;
        memset(bytes, FILL, sizeof bytes);
        init(bytes, (uint32_t)given);
        for (size_t i = given; i < given + FENCE; i++)
            if (bytes[i] != FILL)
                return fprintf(stderr, "%s: wrote byte %zu of %zu\n", name, i, given);
        if (given < sizeof set)
            continue;
        memcpy(&set, bytes, sizeof set);
        size_t common = given < size ? given : size;
        if (set != given || memcmp(bytes + sizeof set, whole + sizeof set, common - sizeof set) != 0)
            return fprintf(stderr, "%s: struct_size %zu does not get the defaults\n", name, given);
    }
    return 0;
}

int main(void)
{
    int failures = 0;
#define INIT(type) failures += check(#type, (init_function)(void (*)(void))type##_init, sizeof(type)) != 0;
#include "inits.h"
    return failures ? 1 : 0;
}
