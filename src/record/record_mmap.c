/* Mappings, with --mmap: those that the program makes itself. The C library's own are not seen here. */
#include "record/record_thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default"), noinline))
#define FRAME __builtin_frame_address(0)

static struct {
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    int (*munmap)(void *, size_t);
    void *(*mremap)(void *, size_t, size_t, int, ...);
} next;

void coffer__record_mmap_resolve(void)
{
    *(void **)&next.munmap = dlsym(RTLD_NEXT, "munmap");
    *(void **)&next.mremap = dlsym(RTLD_NEXT, "mremap");
    *(void **)&next.mmap = dlsym(RTLD_NEXT, "mmap");
}

void *coffer__record_map(size_t size)
{
    long made = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    return made == -1 ? NULL : (void *)made;
}

void coffer__record_unmap(void *memory, size_t size)
{
    if (memory)
        syscall(SYS_munmap, memory, size);
}

/* The mappings of other files of the recorder are made while it is busy. */
static bool enter(coffer__record_thread *thread)
{
    return coffer__record_shared && (coffer__record_shared->control.flags & COFFER__RECORD_WITH_MMAP) &&
           !thread->busy && coffer__record_enter(thread);
}

static void put_mapped(coffer__record_thread *thread, const void *start, size_t len, uint32_t stack)
{
    uint64_t address = (uintptr_t)start & COFFER__RECORD_ADDRESS_MASK;
    thread->time = coffer__record_now();
    coffer__record_put(thread, thread->time << 8 | COFFER__RECORD_MAPPED);
    coffer__record_put(thread, address | (uint64_t)stack << COFFER__RECORD_ADDRESS_BITS);
    coffer__record_put(thread, (len & COFFER__RECORD_ADDRESS_MASK) | (uint64_t)(stack >> 16)
                                                                         << COFFER__RECORD_ADDRESS_BITS);
}

static void put_unmapped(coffer__record_thread *thread, const void *start, size_t len, uint64_t time)
{
    thread->time = time;
    coffer__record_put(thread, time << 8 | COFFER__RECORD_UNMAPPED);
    coffer__record_put(thread, (uintptr_t)start & COFFER__RECORD_ADDRESS_MASK);
    coffer__record_put(thread, len);
}

static uint32_t stack_of(coffer__record_thread *thread, const void *frame)
{
    bool wanted = coffer__record_shared->control.flags & COFFER__RECORD_WITH_STACKS;
    return wanted ? coffer__record_stack(thread, frame) : 0;
}

static void note_mapped(const void *start, size_t len, const void *frame)
{
    coffer__record_thread *thread = &coffer__record_self;
    int saved = errno;
    if (start == MAP_FAILED || !enter(thread))
        return;
    uint32_t stack = stack_of(thread, frame);
    if (coffer__record_reserve(thread, 3)) {
        coffer__record_begin(thread);
        put_mapped(thread, start, len, stack);
        coffer__record_publish(thread);
        coffer__record_end(thread);
    }
    coffer__record_leave(thread);
    errno = saved;
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    if (!next.mmap)
        return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
    void *mapped = next.mmap(addr, len, prot, flags, fd, offset);
    note_mapped(mapped, len, FRAME);
    return mapped;
}

EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    if (!next.mmap)
        return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
    void *mapped = next.mmap(addr, len, prot, flags, fd, offset);
    note_mapped(mapped, len, FRAME);
    return mapped;
}

EXPORT int munmap(void *addr, size_t len)
{
    coffer__record_thread *thread = &coffer__record_self;
    if (!next.munmap)
        return (int)syscall(SYS_munmap, addr, len);
    if (!enter(thread))
        return next.munmap(addr, len);
    bool records = coffer__record_reserve(thread, 3);
    uint64_t before = 0;
    if (records) {
        coffer__record_begin(thread);
        before = coffer__record_now();
    }
    int result = next.munmap(addr, len);
    if (records) {
        if (result == 0)
            put_unmapped(thread, addr, len, before);
        coffer__record_publish(thread);
        coffer__record_end(thread);
    }
    coffer__record_leave(thread);
    return result;
}

EXPORT void *mremap(void *addr, size_t old_len, size_t new_len, int flags, ...)
{
    coffer__record_thread *thread = &coffer__record_self;
    va_list list;
    va_start(list, flags);
    void *wanted = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
    va_end(list);
    if (!next.mremap)
        return (void *)syscall(SYS_mremap, addr, old_len, new_len, flags, wanted);
    if (!enter(thread))
        return next.mremap(addr, old_len, new_len, flags, wanted);
    uint32_t stack = stack_of(thread, FRAME);
    bool records = coffer__record_reserve(thread, 6);
    uint64_t before = 0;
    if (records) {
        coffer__record_begin(thread);
        before = coffer__record_now();
    }
    void *moved = next.mremap(addr, old_len, new_len, flags, wanted);
    if (records) {
        if (moved != MAP_FAILED) {
            put_unmapped(thread, addr, old_len, before);
            put_mapped(thread, moved, new_len, stack);
        }
        coffer__record_publish(thread);
        coffer__record_end(thread);
    }
    coffer__record_leave(thread);
    return moved;
}
