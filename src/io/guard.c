#include "io/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
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

bool coffer__guard_damaged(int slot)
{
    return atomic_load(&slots[slot].damaged);
}

void coffer__guard_remove(int slot)
{
    set_slot(&slots[slot], 0, 0);
    atomic_store(&slots[slot].taken, false);
}
