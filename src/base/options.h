/* Option structs begin with struct_size, so that a caller built against an older header still works: copy
 * what the caller has over the defaults. */
#ifndef COFFER_BASE_OPTIONS_H
#define COFFER_BASE_OPTIONS_H

#include "base/fail.h"
#include "coffer/limits.h"

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
                            "struct_size is %u: initialize the options with their _INIT macro", size);
    coffer__copy_options(defaults, default_size, given);
    return COFFER_OK;
}

/* The other direction: fills a struct of the caller's, which may be shorter or longer than ours. Members
 * that only the caller's header knows become 0. */
static inline coffer_status coffer__give_struct(void *out, const void *value, uint32_t value_size,
                                                coffer_error *err)
{
    uint32_t size;
    memcpy(&size, out, sizeof size);
    if (size < sizeof size)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "struct_size is %u: initialize the struct with its _INIT macro", size);
    if (size > value_size)
        memset((char *)out + value_size, 0, size - value_size);
    memcpy(out, value, size < value_size ? size : value_size);
    memcpy(out, &size, sizeof size);
    return COFFER_OK;
}

/* Element `index` of an array of the caller's structs, whose size is that of the first one. */
static inline const void *coffer__stride_at(const void *array, size_t index)
{
    uint32_t size;
    memcpy(&size, array, sizeof size);
    return (const char *)array + index * size;
}

/* Copies element `index` of an array of the caller's structs over the defaults. The size of the first element
 * counts for all of them: no element is read past the beginning of the next one. */
static inline coffer_status coffer__take_element(void *defaults, uint32_t default_size, const void *array,
                                                 size_t index, coffer_error *err)
{
    uint32_t size;
    memcpy(&size, array, sizeof size);
    if (size < sizeof size)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "struct_size is %u: initialize the elements with their _INIT macro", size);
    memcpy(defaults, coffer__stride_at(array, index), size < default_size ? size : default_size);
    memcpy(defaults, &default_size, sizeof default_size);
    return COFFER_OK;
}

static inline void coffer__init_struct(void *out, uint32_t out_size, const void *defaults, uint32_t size)
{
    if (out_size < sizeof out_size)
        return;
    memset(out, 0, out_size);
    memcpy(out, defaults, out_size < size ? out_size : size);
    memcpy(out, &out_size, sizeof out_size);
}

/* Defines void TYPE_init(TYPE *, uint32_t struct_size), for callers that cannot use the _INIT macro. */
#define COFFER__INIT_FUNCTION(type, init_macro)                                                \
    void type##_init(type *out, uint32_t struct_size) /* NOLINT(bugprone-macro-parentheses) */ \
    {                                                                                          \
        static const type defaults = init_macro;                                               \
        coffer__init_struct(out, struct_size, &defaults, sizeof defaults);                     \
    }

/* Fills in the defaults for NULL and for members that an older caller's struct does not have. */
coffer_limits coffer__limits(const coffer_limits *given);

#endif
