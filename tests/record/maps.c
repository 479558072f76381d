/* Maps pages, and releases and replaces them in parts. */
#include <sys/mman.h>

enum { PAGE = 4096, ANYWHERE = MAP_PRIVATE | MAP_ANONYMOUS };

int main(void)
{
    char *start = mmap(0, 10 * PAGE, PROT_READ | PROT_WRITE, ANYWHERE, -1, 0);
    if (start == MAP_FAILED)
        return 1;
    if (munmap(start + 4 * PAGE, 2 * PAGE - 1) != 0)
        return 1;
    if (mremap(start, 4 * PAGE, PAGE, 0) != start)
        return 1;
    if (mmap(start + 6 * PAGE, 2 * PAGE, PROT_READ, ANYWHERE | MAP_FIXED, -1, 0) == MAP_FAILED)
        return 1;
    return munmap((void *)1, PAGE) == 0; /* fails, and changes nothing */
}
