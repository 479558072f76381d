#include "base/array.h"
#include "base/fail.h"
#include "base/memory.h"
#include "outside/profiles/heaptrack.h"

#include <string.h>

/* Insertion moves what is behind: more than any program loads would be a way to keep us busy. */
#define MAX_MODULES 4096

void coffer__heaptrack_modules_clear(coffer__heaptrack_modules *modules)
{
    modules->count = 0;
    modules->names.len = 0;
}

void coffer__heaptrack_modules_free(coffer__heaptrack_modules *modules)
{
    coffer__free(modules->items);
    coffer__buffer_free(&modules->names);
}

/* How many begin at or before an address. */
static size_t count_up_to(const coffer__heaptrack_modules *modules, uint64_t address)
{
    size_t low = 0, high = modules->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (modules->items[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

coffer_status coffer__heaptrack_modules_add(coffer__heaptrack_modules *modules, const char *name, size_t len,
                                            uint64_t base, uint64_t begin, uint64_t end, coffer_error *err)
{
    size_t name_at = modules->names.len;
    if (modules->count == MAX_MODULES)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %d modules are loaded",
                            MAX_MODULES);
    coffer_status status = coffer__array_reserve_one(&modules->items, &modules->capacity, modules->count,
                                                     sizeof *modules->items, err);
    if (status)
        return status;
    if (!coffer__buffer_append(&modules->names, name, len))
        return coffer__fail_no_memory(err, len);
    size_t at = count_up_to(modules, begin);
    memmove(modules->items + at + 1, modules->items + at, (modules->count - at) * sizeof *modules->items);
    modules->items[at] = (coffer__heaptrack_module){ begin, end, base, name_at, len };
    modules->count++;
    return COFFER_OK;
}

const coffer__heaptrack_module *coffer__heaptrack_modules_find(const coffer__heaptrack_modules *modules,
                                                               uint64_t address)
{
    size_t before = count_up_to(modules, address);
    const coffer__heaptrack_module *module = before ? &modules->items[before - 1] : NULL;
    return module && address < module->end ? module : NULL;
}
