/* Arrays that grow by one item at a time. */
#ifndef COFFER_BASE_ARRAY_H
#define COFFER_BASE_ARRAY_H

#include "coffer/error.h"

/* Makes room for one item after the `count` items of `size` bytes in `*items`, a pointer to any type;
 * `*capacity` doubles when it is used up. On failure the array does not change. */
coffer_status coffer__array_reserve_one(void *items, size_t *capacity, size_t count, size_t size,
                                        coffer_error *err);

#endif
