#include "base/large_pages.h"

#include <stdint.h>
#include <sys/mman.h>

#define LARGE_PAGE ((uintptr_t)2 << 20)

void coffer__expect_filled(void *memory, size_t size)
{
    uintptr_t start = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)memory + size) & ~(LARGE_PAGE - 1);
    if (memory && end > start) /* an advice: whether the kernel follows it does not matter */
        (void)madvise((uint8_t *)memory + (start - (uintptr_t)memory), end - start, MADV_HUGEPAGE);
}
