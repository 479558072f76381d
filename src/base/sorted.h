/* Binary search in an array of structs, or of numbers, that is sorted by a uint64_t in each item. */
#ifndef COFFER_BASE_SORTED_H
#define COFFER_BASE_SORTED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many items have a number of at most `key`; `at` is the offset of the number in an item of `size` bytes.
 */
static inline size_t coffer__count_up_to(const void *items, size_t count, size_t size, size_t at,
                                         uint64_t key)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t number;
        memcpy(&number, (const uint8_t *)items + middle * size + at, sizeof number);
        if (number <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first argument only compiles when `items` points to that type. */
#define COFFER__COUNT_UP_TO(items, count, type, member, key) \
    coffer__count_up_to(1 ? (items) : (const type *)NULL, count, sizeof(type), offsetof(type, member), key)

/* How many items have a number below `key`. */
#define COFFER__COUNT_BELOW(items, count, type, member, key) \
    ((key) == 0 ? 0 : COFFER__COUNT_UP_TO(items, count, type, member, (key)-1))

/* The last item with a number of at most `key`, or the first item. */
#define COFFER__LAST_UP_TO(items, count, type, member, key) \
    coffer__last_of(COFFER__COUNT_UP_TO(items, count, type, member, key))

static inline size_t coffer__last_of(size_t count)
{
    return count ? count - 1 : 0;
}

#endif
