/* Option structs begin with struct_size, so that a caller built against an older header still works: copy
 * what the caller has over the defaults. */
#ifndef COFFER_BASE_OPTIONS_H
#define COFFER_BASE_OPTIONS_H

#include <stdint.h>
#include <string.h>

static inline void coffer__take_options(void *defaults, uint32_t default_size, const void *given)
{
    uint32_t size;
    if (!given)
        return;
    memcpy(&size, given, sizeof size);
    memcpy(defaults, given, size < default_size ? size : default_size);
    memcpy(defaults, &default_size, sizeof default_size);
}

#endif
