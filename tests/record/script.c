/* A known script of allocations: check-record compares the trace with the list at its end. */
#include "coffer/mark.h"

#include <malloc.h>
#include <stdlib.h>

#if defined __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noinline, noclone))
#endif

/* The compiler must not remove or merge any of it. */
static void *volatile last;

KEEP static void *outer_leaf(size_t size)
{
    last = malloc(size);
    return last;
}

KEEP static void *outer(size_t size)
{
    void *block = outer_leaf(size);
    last = block;
    return block;
}

/* A frame of unknown size needs the frame pointer even where others do not have one. */
KEEP static void *with_array(size_t size)
{
    volatile char *room = __builtin_alloca(size);
    room[0] = 1;
    void *block = outer(size);
    last = block;
    return block;
}

KEEP static void *aligned(size_t size)
{
    _Alignas(64) volatile char room[64];
    room[0] = 1;
    void *block = outer(size + (size_t)room[0] - 1);
    last = block;
    return block;
}

KEEP static void recurse(int depth)
{
    if (depth > 0)
        recurse(depth - 1);
    else
        free(outer(41));
    last = NULL;
}

int main(void)
{
    void *a = outer(100);
    void *b = calloc(3, 50);
    b = realloc(b, 1000);
    free(a);
    coffer_mark("half");
    void *c = with_array(77);
    void *d = aligned(78);
    void *e = NULL;
    if (posix_memalign(&e, 128, 200) != 0)
        return 1;
    void *f = aligned_alloc(64, 320), *g = memalign(32, 33), *h = reallocarray(NULL, 7, 11);
    recurse(20);
    free(NULL);
    b = realloc(b, 0);
    free(c);
    free(d);
    free(e);
    free(f);
    free(g);
    last = h;
    return 3; /* h stays */
}
