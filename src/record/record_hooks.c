/* The functions that the preloaded library replaces. Each calls the next definition of its name, so that
 * other allocators stay in use, and records what happened. A release is recorded before it happens and an
 * allocation after it: the times of two threads that pass a block to each other are then in order. */
#include "record/record_thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default"), noinline))
#define FRAME __builtin_frame_address(0)

static struct {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    int (*dlclose)(void *);
} next;

/* ---- Before the next definitions are known ---- */

/* dlsym may allocate while it looks for them. What it gets is never freed. */
static _Alignas(64) char early[64 << 10];
static size_t early_used;
enum { UNKNOWN, RESOLVING, RESOLVED };
static int resolved;

static bool is_early(const void *block)
{
    uintptr_t address = (uintptr_t)block, start = (uintptr_t)early;
    return address >= start && address < start + sizeof early;
}

static void *early_alloc(size_t align, size_t size)
{
    size_t start = (early_used + align - 1) & ~(align - 1);
    if (start > sizeof early || size > sizeof early - start)
        return NULL;
    early_used = start + size;
    return early + start;
}

static void resolve(void)
{
    resolved = RESOLVING;
#define RESOLVE(name) *(void **)&next.name = dlsym(RTLD_NEXT, #name)
    RESOLVE(malloc);
    RESOLVE(free);
    RESOLVE(calloc);
    RESOLVE(realloc);
    RESOLVE(memalign);
    RESOLVE(aligned_alloc);
    RESOLVE(posix_memalign);
    RESOLVE(valloc);
    RESOLVE(pvalloc);
    RESOLVE(dlclose);
#undef RESOLVE
    coffer__record_mmap_resolve();
    coffer__record_attach();
    resolved = RESOLVED;
}

/* False while the next definitions are being looked for. */
static inline bool is_ready(void)
{
    if (COFFER__RECORD_LIKELY(resolved == RESOLVED))
        return true;
    if (resolved == UNKNOWN)
        resolve();
    return resolved == RESOLVED;
}

__attribute__((constructor)) static void start(void)
{
    is_ready();
}

/* ---- Events ---- */

static void put_alloc(coffer__record_thread *thread, const void *block, size_t size, uint32_t stack)
{
    uint64_t address = (uintptr_t)block & COFFER__RECORD_ADDRESS_MASK;
    coffer__record_put(thread, thread->time << 8 | COFFER__RECORD_ALLOC);
    coffer__record_put(thread, address | (uint64_t)stack << COFFER__RECORD_ADDRESS_BITS);
    coffer__record_put(thread, (size & COFFER__RECORD_ADDRESS_MASK) | (uint64_t)(stack >> 16)
                                                                          << COFFER__RECORD_ADDRESS_BITS);
}

static void put_free(coffer__record_thread *thread, const void *block, uint64_t time)
{
    coffer__record_put(thread, time << 8 | COFFER__RECORD_FREE);
    coffer__record_put(thread, (uintptr_t)block & COFFER__RECORD_ADDRESS_MASK);
}

static inline uint32_t stack_of(coffer__record_thread *thread, const void *frame)
{
    if (!(coffer__record_shared->control.flags & COFFER__RECORD_WITH_STACKS))
        return 0;
    return coffer__record_stack(thread, frame);
}

static inline bool samples(void)
{
    return __builtin_expect(coffer__record_shared->control.sample_bytes != 0, 0);
}

static inline void note_alloc(const void *block, size_t size, const void *frame)
{
    coffer__record_thread *thread = &coffer__record_self;
    if (!block || !coffer__record_enter(thread))
        return;
    if (samples() && !coffer__record_sample(thread, block, size)) {
        coffer__record_leave(thread);
        return;
    }
    uint32_t stack = stack_of(thread, frame);
    if (coffer__record_reserve(thread, 3)) {
        coffer__record_begin(thread);
        thread->time = coffer__record_now();
        put_alloc(thread, block, size, stack);
        coffer__record_publish(thread);
        coffer__record_end(thread);
    }
    coffer__record_leave(thread);
}

static inline void note_free(const void *block)
{
    coffer__record_thread *thread = &coffer__record_self;
    if (!coffer__record_enter(thread))
        return;
    if ((!samples() || coffer__record_sampled(block)) && coffer__record_reserve(thread, 2)) {
        coffer__record_begin(thread);
        thread->time = coffer__record_now();
        put_free(thread, block, thread->time);
        coffer__record_publish(thread);
        coffer__record_end(thread);
    }
    coffer__record_leave(thread);
}

/* ---- malloc and its relatives ---- */

EXPORT void *malloc(size_t size)
{
    if (!is_ready())
        return early_alloc(16, size);
    void *block = next.malloc(size);
    note_alloc(block, size, FRAME);
    return block;
}

EXPORT void free(void *ptr)
{
    if (!ptr || is_early(ptr) || !is_ready())
        return;
    note_free(ptr);
    next.free(ptr);
}

EXPORT void free_sized(void *block, size_t size);
EXPORT void free_sized(void *block, size_t size)
{
    (void)size;
    free(block);
}

EXPORT void free_aligned_sized(void *block, size_t align, size_t size);
EXPORT void free_aligned_sized(void *block, size_t align, size_t size)
{
    (void)align;
    (void)size;
    free(block);
}

EXPORT void cfree(void *block);
EXPORT void cfree(void *block)
{
    free(block);
}

EXPORT void *calloc(size_t nmemb, size_t size)
{
    if (!is_ready()) /* the memory is zero from the start and is used once */
        return size > 0 && nmemb > sizeof early / size ? NULL : early_alloc(16, nmemb * size);
    void *block = next.calloc(nmemb, size);
    note_alloc(block, nmemb * size, FRAME);
    return block;
}

/* A block from before the next definitions were known becomes an ordinary one. */
static void *move_early(void *block, size_t size)
{
    void *moved = next.malloc(size);
    size_t held = (size_t)(early + sizeof early - (char *)block);
    if (moved)
        memcpy(moved, block, size < held ? size : held);
    return moved;
}

/* A sample has few blocks: a release that turns out to have failed is recorded again as an allocation. */
static void *resize_sampled(void *block, size_t size, const void *frame)
{
    size_t before = malloc_usable_size(block);
    note_free(block);
    void *moved = next.realloc(block, size);
    if (moved)
        note_alloc(moved, size, frame);
    else if (size > 0)
        note_alloc(block, before, frame);
    return moved;
}

/* The release counts from before the call, but only once the call is known to have succeeded. */
static void *resize(void *block, size_t size, const void *frame)
{
    coffer__record_thread *thread = &coffer__record_self;
    if (is_early(block)) {
        void *moved = move_early(block, size);
        note_alloc(moved, size, frame);
        return moved;
    }
    if (coffer__record_shared && samples())
        return resize_sampled(block, size, frame);
    if (!coffer__record_enter(thread))
        return next.realloc(block, size);
    uint32_t stack = stack_of(thread, frame);
    bool records = coffer__record_reserve(thread, 5);
    uint64_t before = 0;
    if (records) {
        coffer__record_begin(thread);
        before = coffer__record_now();
    }
    void *moved = next.realloc(block, size);
    if (records) {
        if (moved || size == 0)
            put_free(thread, block, before);
        if (moved || size == 0)
            thread->time = before;
        if (moved) {
            thread->time = coffer__record_now();
            put_alloc(thread, moved, size, stack);
        }
        coffer__record_publish(thread);
        coffer__record_end(thread);
    }
    coffer__record_leave(thread);
    return moved;
}

EXPORT void *realloc(void *ptr, size_t size)
{
    if (!is_ready())
        return NULL;
    if (ptr)
        return resize(ptr, size, FRAME);
    ptr = next.realloc(NULL, size);
    note_alloc(ptr, size, FRAME);
    return ptr;
}

EXPORT void *reallocarray(void *ptr, size_t nmemb, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(nmemb, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    if (!is_ready())
        return NULL;
    if (ptr)
        return resize(ptr, bytes, FRAME);
    ptr = next.realloc(NULL, bytes);
    note_alloc(ptr, bytes, FRAME);
    return ptr;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    if (!is_ready())
        return early_alloc(alignment, size);
    void *block = next.memalign(alignment, size);
    note_alloc(block, size, FRAME);
    return block;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (!is_ready())
        return early_alloc(alignment, size);
    void *block = next.aligned_alloc(alignment, size);
    note_alloc(block, size, FRAME);
    return block;
}

EXPORT int posix_memalign(void **memptr, size_t alignment, size_t size)
{
    if (!is_ready()) {
        *memptr = early_alloc(alignment, size);
        return *memptr ? 0 : ENOMEM;
    }
    int result = next.posix_memalign(memptr, alignment, size);
    if (result == 0)
        note_alloc(*memptr, size, FRAME);
    return result;
}

EXPORT void *valloc(size_t size)
{
    if (!is_ready())
        return early_alloc(4096, size);
    void *block = next.valloc(size);
    note_alloc(block, size, FRAME);
    return block;
}

EXPORT void *pvalloc(size_t size)
{
    if (!is_ready())
        return early_alloc(4096, size);
    void *block = next.pvalloc(size);
    note_alloc(block, size, FRAME);
    return block;
}

/* ---- Modules and markers ---- */

EXPORT int dlclose(void *handle)
{
    if (!is_ready())
        return -1;
    int result = next.dlclose(handle);
    if (coffer__record_shared)
        coffer__record_forget_modules();
    return result;
}

/* Called by coffer/mark.h. */
EXPORT void coffer_record_mark(const char *name);
EXPORT void coffer_record_mark(const char *name)
{
    if (name && is_ready())
        coffer__record_put_marker(name);
}

/* Called by coffer for Python, which holds the interpreter's lock. 1 = the snapshot was taken. */
EXPORT int coffer_record_snapshot(void);
EXPORT int coffer_record_snapshot(void)
{
    return is_ready() && coffer__record_snapshot_take();
}

/* Called by interpreters after a garbage collection; coffer for Python does. */
EXPORT void coffer_record_collection(uint64_t objects, uint64_t bytes);
EXPORT void coffer_record_collection(uint64_t objects, uint64_t bytes)
{
    if (is_ready())
        coffer__record_put_collection(objects, bytes);
}
