/* Option structs begin with struct_size, so that a caller built against an older header still works: copy
 * what the caller has over the defaults. */
#ifndef COFFER_BASE_OPTIONS_H
#define COFFER_BASE_OPTIONS_H

#include "base/fail.h"

#include <string.h>

static inline void coffer__copy_options(void *defaults, uint32_t default_size, const void *given)
{
    uint32_t size;
    if (!given)
        return;
    memcpy(&size, given, sizeof size);
    memcpy(defaults, given, size < default_size ? size : default_size);
    memcpy(defaults, &default_size, sizeof default_size);
}

/* As above, but a struct that says it ends within its own first member is refused: the caller forgot the
 * _INIT macro, and would not notice that the settings go unread. */
static inline coffer_status coffer__take_options(void *defaults, uint32_t default_size, const void *given,
                                                 coffer_error *err)
{
    uint32_t size = default_size;
    if (given)
        memcpy(&size, given, sizeof size);
    if (size < sizeof size)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "struct_size is %u: the options have to begin as their _INIT macro says", size);
    coffer__copy_options(defaults, default_size, given);
    return COFFER_OK;
}

#endif
