/* A mapped file, and the handler of SIGBUS that guards it against being truncated. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/os.h"
#include "io/source_struct.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The handler reads this table without a lock while other threads change it. The version of a slot is odd
 * while it is changed, and different afterwards, so base and length are never taken from two mappings. */
struct slot {
    atomic_bool taken;
    atomic_uint version;
    atomic_uintptr_t base;
    atomic_size_t len;
    atomic_bool damaged;
};

#define SLOT_COUNT 1024

static struct slot slots[SLOT_COUNT];
static struct sigaction previous;
static uintptr_t page_size;
static pthread_once_t installed = PTHREAD_ONCE_INIT;

static void set_slot(struct slot *slot, uintptr_t base, size_t len)
{
    atomic_fetch_add(&slot->version, 1);
    atomic_store(&slot->base, base);
    atomic_store(&slot->len, len);
    atomic_store(&slot->damaged, false);
    atomic_fetch_add(&slot->version, 1);
}

/* The raw system call: mmap() may be interposed by a program that records mappings, and such code is not
 * async-signal-safe. */
static bool map_zeros(uintptr_t at, size_t len)
{
#ifdef SYS_mmap2
    long call = SYS_mmap2;
#else
    long call = SYS_mmap;
#endif
    return syscall(call, at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
           -1;
}

/* Async-signal-safe. Maps zeros at the address and returns true if it belongs to a mapping of ours. */
static bool replace_lost_pages(uintptr_t address)
{
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        struct slot *slot = &slots[i];
        unsigned version = atomic_load(&slot->version);
        uintptr_t base = atomic_load(&slot->base);
        size_t len = atomic_load(&slot->len);
        if (address < base || address - base >= len || version % 2 != 0 ||
            atomic_load(&slot->version) != version)
            continue;
        uintptr_t page = address & ~(page_size - 1);
        atomic_store(&slot->damaged, true);
        return map_zeros(page, base + len - page);
    }
    return false;
}

/* Calls the previous handler, or does the default action. */
static void pass_on(int signal_number, siginfo_t *info, void *context)
{
    bool sent = info->si_code <= 0; /* by kill() and the like, not by a fault */
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(signal_number, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(signal_number);
    } else if (previous.sa_handler == SIG_DFL || !sent) {
        /* A fault comes again when the handler returns; a signal that was sent must be sent again. */
        signal(signal_number, SIG_DFL);
        if (sent)
            raise(signal_number);
    }
}

static void handle_bus_error(int signal_number, siginfo_t *info, void *context)
{
    int saved = errno;
    if (info->si_code <= 0 || !replace_lost_pages((uintptr_t)info->si_addr))
        pass_on(signal_number, info, context);
    errno = saved;
}

static void install(void)
{
    struct sigaction action = { .sa_sigaction = handle_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigemptyset(&action.sa_mask);
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    /* The old action is read first: a signal may arrive as soon as ours is installed. */
    sigaction(SIGBUS, NULL, &previous);
    sigaction(SIGBUS, &action, NULL);
}

int coffer__guard_add(const void *base, size_t len)
{
    pthread_once(&installed, install);
    for (int i = 0; i < SLOT_COUNT; i++) {
        bool expected = false;
        if (!atomic_compare_exchange_strong(&slots[i].taken, &expected, true))
            continue;
        set_slot(&slots[i], (uintptr_t)base, len);
        return i;
    }
    return -1;
}

/* True when zeros have replaced some of its pages. */
static bool guard_damaged(int slot)
{
    return atomic_load(&slots[slot].damaged);
}

void coffer__guard_remove(int slot)
{
    set_slot(&slots[slot], 0, 0);
    atomic_store(&slots[slot].taken, false);
}

/* A file by mapping. Pages that a journal changes are private copies with the old bytes written into them.
 * Where it is only an option, the mapping is made when a view is first asked for: whoever reads a header and
 * goes is spared it. */

struct mapping {
    int guard;
    uint8_t *base;
    size_t last_page; /* where it begins */
};

struct mapped_file {
    int fd;
    size_t len;
    bool writable; /* pages that are written become private copies */
    coffer__journal *journal;
    _Atomic(struct mapping *) mapping; /* NULL for an empty file, and until it is needed */
};

/* True when the file has the bytes before `end`. The size is read each time: when a file is truncated inside
 * a page, the rest of the page becomes zeros without a signal. */
static coffer_status expect_bytes(const struct mapped_file *map, uint64_t end, coffer_error *err)
{
    uint64_t now;
    const struct mapping *mapping = atomic_load(&map->mapping);
    if (!mapping)
        return COFFER_OK;
    bool damaged = guard_damaged(mapping->guard);
    coffer_status status = coffer__file_size(&now, map->fd, NULL, err);
    if (status)
        return status;
    if (now < end || (damaged && now < map->len))
        return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                            "truncated from %zu to %" PRIu64 " bytes while it was read", map->len, now);
    if (damaged)
        return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                            "a part of its %zu bytes could not be read, or was missing for a time", map->len);
    return COFFER_OK;
}

static coffer_status map_intact(void *context, coffer_error *err)
{
    const struct mapped_file *map = context;
    return expect_bytes(map, map->len, err);
}

bool coffer__source_surely_intact(const coffer_source *src, uint64_t end)
{
    const struct mapped_file *map = src->context;
    const struct mapping *mapping;
    if (src->ops.intact != map_intact)
        return src->ops.intact == NULL;
    mapping = atomic_load(&map->mapping);
    if (!mapping || end > mapping->last_page)
        return mapping == NULL;
    (void)*(const volatile uint8_t *)(mapping->base + mapping->last_page);
    return !guard_damaged(mapping->guard);
}

static coffer_status map_read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    const struct mapped_file *map = context;
    const struct mapping *mapping = atomic_load(&map->mapping);
    if (!mapping)
        return coffer__file_read_at(map->fd, out, len, offset, NULL, err);
    memcpy(out, mapping->base + offset, len);
    return expect_bytes(map, offset + len, err);
}

static void unmap(struct mapping *mapping, size_t len)
{
    if (!mapping)
        return;
    coffer__guard_remove(mapping->guard);
    coffer__os_unmap(mapping->base, len);
    coffer__free(mapping);
}

static void map_close(void *context)
{
    struct mapped_file *map = context;
    unmap(atomic_load(&map->mapping), map->len);
    coffer__file_close(map->fd);
    coffer__journal_free(map->journal);
    coffer__free(map);
}

/* Maps and guards map->len bytes of map->fd. */
static coffer_status map_file(struct mapping **out, const struct mapped_file *map, coffer_error *err)
{
    struct mapping *mapping = coffer__malloc(sizeof *mapping);
    if (!mapping)
        return coffer__fail_no_memory(err, sizeof *mapping);
    void *base = coffer__os_map(map->fd, map->len, map->writable || map->journal);
    coffer_status status;
    if (base == MAP_FAILED) {
        status = coffer__fail_errno(err, "cannot map", errno);
        goto out;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *mapping = (struct mapping){ coffer__guard_add(base, map->len), base, (map->len - 1) / page * page };
    if (mapping->guard < 0) {
        coffer__os_unmap(base, map->len);
        status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "too many files are mapped");
        goto out;
    }
    if (map->journal) {
        coffer__journal_lay_over(map->journal, base, 0, map->len);
        if (coffer__os_protect(base, map->len) != 0) {
            status = coffer__fail_errno(err, "cannot protect the mapping", errno);
            unmap(mapping, map->len);
            return status;
        }
    }
    *out = mapping;
    return COFFER_OK;
out:
    coffer__free(mapping);
    return status;
}

/* When several threads map at the same time, the first mapping is kept. NULL when the file cannot be mapped:
 * reads continue without. */
static const struct mapping *map_now(struct mapped_file *map)
{
    struct mapping *mapping = atomic_load(&map->mapping), *made, *none = NULL;
    if (mapping)
        return mapping;
    if (map_file(&made, map, NULL))
        return NULL;
    if (atomic_compare_exchange_strong(&map->mapping, &none, made))
        return made;
    unmap(made, map->len);
    return none;
}

static const uint8_t *map_view(void *context, uint64_t offset, size_t len)
{
    static const uint8_t nothing;
    struct mapped_file *map = context;
    (void)len;
    if (map->len == 0)
        return &nothing;
    const struct mapping *mapping = map_now(map);
    return mapping ? mapping->base + offset : NULL;
}

coffer_status coffer__source_over_map(coffer_source **out, int fd, uint64_t size, const char *name,
                                      coffer__journal *journal, coffer_access access, coffer_error *err)
{
    static const coffer_source_ops ops = {
        .struct_size = sizeof ops,
        .read_at = map_read_at,
        .view = map_view,
        .intact = map_intact,
        .close = map_close,
    };
    uint64_t shown = journal ? journal->old_size : size;
    struct mapped_file *map = coffer__calloc(1, sizeof *map);
    struct mapping *mapping = NULL;
    coffer_source *src = NULL;
    coffer_status status = COFFER_OK;
    if (!map)
        return coffer__fail_no_memory(err, sizeof *map);
    map->fd = fd;
    map->journal = journal;
    map->writable = access == COFFER_ACCESS_COPY;
    if (shown > size || !coffer__to_size(&map->len, shown))
        status = coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                              "cannot map %" PRIu64 " bytes, the file has %" PRIu64, shown, size);
    else if (map->len > 0 && (access == COFFER_ACCESS_MAP || journal))
        status = map_file(&mapping, map, err);
    if (!status)
        status = coffer_source_new(&src, &ops, map, shown, name, err);
    if (status) {
        unmap(mapping, map->len);
        coffer__free(map);
        return status;
    }
    atomic_init(&map->mapping, mapping);
    src->fd = fd;
    src->interrupted = journal != NULL;
    *out = src;
    return COFFER_OK;
}
