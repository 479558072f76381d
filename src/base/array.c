#include "base/array.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

#define FIRST_CAPACITY 16

coffer_status coffer__array_reserve_one(void *items, size_t *capacity, size_t count, size_t size,
                                        coffer_error *err)
{
    size_t larger = FIRST_CAPACITY, bytes;
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
