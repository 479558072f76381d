/* Large pages for large memory. */
#ifndef COFFER_BASE_LARGE_PAGES_H
#define COFFER_BASE_LARGE_PAGES_H

#include <stddef.h>

/* Says that memory, which is new, will be filled from end to end: the kernel then hands it out in large
 * pages, if it has them, which takes a tenth of the time. Not for tables of which only some entries are used.
 */
void coffer__expect_filled(void *memory, size_t size);

#endif
