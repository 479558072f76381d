/* Arrays that grow by one item at a time. */
#ifndef COFFER_BASE_ARRAY_H
#define COFFER_BASE_ARRAY_H

#include "coffer/error.h"

/* Makes room for one item behind the `count` of size `size` that `*items`, a pointer to any type, points to;
 * `*capacity` doubles when it is used up. On failure the array stays as it is. */
coffer_status coffer__array_reserve_one(void *items, size_t *capacity, size_t count, size_t size,
                                        coffer_error *err);

#endif
