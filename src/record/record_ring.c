/* Attaching to the memory of `coffer record`, and the rings of threads. */
#include "record/record_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

coffer__record_memory *coffer__record_shared;

__thread coffer__record_thread coffer__record_self __attribute__((tls_model("initial-exec")));

/* A page that a forked child sees as zeros, whatever way it was forked. */
static _Atomic uint32_t *process;
static uint32_t session;

enum { PROCESS_OFF = 1, PROCESS_ON = 2 };

static pthread_key_t end_key;

static void wake_reader(void)
{
    coffer__record_control *control = &coffer__record_shared->control;
    atomic_fetch_add(&control->reader_wake, 1);
    if (atomic_load(&control->reader_sleeps))
        syscall(SYS_futex, &control->reader_wake, FUTEX_WAKE, 1, NULL, NULL, 0);
}

uint64_t coffer__record_now(void)
{
#if defined __x86_64__
    if (COFFER__RECORD_LIKELY(coffer__record_shared->control.flags & COFFER__RECORD_CLOCK_TSC)) {
        uint32_t low, high, processor;
        __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(processor)::"memory");
        return ((uint64_t)high << 32 | low) - coffer__record_shared->control.time_base;
    }
#endif
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec -
           coffer__record_shared->control.time_base;
}

coffer__record_session *coffer__record_session_here(void)
{
    return &coffer__record_shared->sessions[session];
}

static void begin_session(uint32_t kind, uint32_t parent)
{
    coffer__record_memory *shared = coffer__record_shared;
    uint32_t number = atomic_fetch_add(&shared->control.session_count, 1);
    if (number >= COFFER__RECORD_SESSIONS) {
        atomic_fetch_add(&shared->control.refused, 1);
        atomic_store(process, PROCESS_OFF);
        return;
    }
    coffer__record_session *mine = &shared->sessions[number];
    mine->pid = (uint32_t)getpid();
    mine->kind = kind;
    mine->parent = parent;
    mine->time = coffer__record_now();
    session = number;
    atomic_store_explicit(&mine->ready, 1, memory_order_release);
    atomic_store(process, PROCESS_ON);
    wake_reader();
}

/* Called when a thread ends. Other libraries release their own values in the same rounds, so the tables stay
 * until the last one; what is allocated after it has no stack. */
static void end_thread(void *argument)
{
    enum { ROUNDS = 3 };
    coffer__record_thread *thread = argument;
    if (++thread->exits < ROUNDS) {
        pthread_setspecific(end_key, thread);
        return;
    }
    thread->busy = true;
    if (thread->stacks)
        munmap(thread->stacks, (thread->stack_mask + (size_t)1) * sizeof *thread->stacks);
    if (thread->walk)
        munmap(thread->walk, sizeof *thread->walk);
    thread->stacks = NULL;
    thread->walk = NULL;
    coffer__record_python_release(thread);
    thread->busy = false;
}

/* Says that this process could not be recorded, in memory that is small enough to map. */
static void refuse(int fd)
{
    coffer__record_control *control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (control == MAP_FAILED)
        return;
    atomic_fetch_add(&control->refused, 1);
    munmap(control, sizeof *control);
}

void coffer__record_attach(void)
{
    const char *path = getenv(COFFER__RECORD_ENVIRONMENT);
    if (!path || !path[0])
        return;
    int saved = errno;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        goto out;
    void *memory =
        mmap(NULL, sizeof *coffer__record_shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (memory == MAP_FAILED)
        refuse(fd);
    close(fd);
    if (memory == MAP_FAILED)
        goto out;
    coffer__record_memory *shared = memory;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool mine = shared->control.magic == COFFER__RECORD_MAGIC &&
                (shared->control.root_pid == (uint32_t)getpid() ||
                 (shared->control.flags & COFFER__RECORD_FOLLOW_FORK));
    if (!mine || page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) != 0 ||
        pthread_key_create(&end_key, end_thread) != 0) {
        munmap(memory, sizeof *shared);
        goto out;
    }
    process = page;
    coffer__record_shared = shared;
    if (shared->control.flags & COFFER__RECORD_PYTHON)
        coffer__record_python_attach();
    begin_session(COFFER__RECORD_STARTED, 0);
out:
    errno = saved;
}

/* ---- Slots ---- */

static bool claim(coffer__record_thread *thread)
{
    coffer__record_memory *shared = coffer__record_shared;
    for (uint32_t number = 0; number < COFFER__RECORD_SLOTS; number++) {
        coffer__record_slot *slot = &shared->slots[number];
        uint32_t state = COFFER__RECORD_SLOT_FREE;
        if (!atomic_compare_exchange_strong(&slot->state, &state, COFFER__RECORD_SLOT_CLAIMED))
            continue;
        uint32_t count = atomic_load(&shared->control.slot_count);
        while (count <= number &&
               !atomic_compare_exchange_weak(&shared->control.slot_count, &count, number + 1)) {
        }
        slot->pid = (uint32_t)getpid();
        slot->tid = (uint32_t)syscall(SYS_gettid);
        slot->session = session;
        slot->thread = atomic_fetch_add(&shared->sessions[session].threads, 1);
        atomic_store(&slot->since, 0);
        thread->head = thread->tail = atomic_load(&slot->head);
        thread->time = coffer__record_now();
        thread->slot = slot;
        atomic_store_explicit(&slot->state, COFFER__RECORD_SLOT_USED, memory_order_release);
        return true;
    }
    return false;
}

/* The first thread may know more stacks than others: it does most of the work of most programs. */
static void make_tables(coffer__record_thread *thread)
{
    enum { MANY = 1 << 17, FEW = 1 << 14 };
    if (thread->stacks) /* after a fork */
        munmap(thread->stacks, (thread->stack_mask + (size_t)1) * sizeof *thread->stacks);
    uint32_t count = thread->slot->thread < 4 ? MANY : FEW;
    size_t size = count * sizeof *thread->stacks;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    thread->stacks = memory == MAP_FAILED ? NULL : memory;
    thread->stack_mask = count - 1;
    if (thread->walk) {
        thread->walk->count = thread->walk->told_count = 0;
        return;
    }
    memory = mmap(NULL, sizeof *thread->walk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    thread->walk = memory == MAP_FAILED ? NULL : memory;
}

static bool start_thread(coffer__record_thread *thread)
{
    int saved = errno;
    bool started = false;
    if (atomic_load(process) == 0) { /* forked */
        uint32_t parent = session;
        if (coffer__record_shared->control.flags & COFFER__RECORD_FOLLOW_FORK) {
            coffer__record_forget_modules(); /* the reader must hear of them in the new session */
            begin_session(COFFER__RECORD_FORKED, parent);
        } else {
            atomic_store(process, PROCESS_OFF);
        }
        thread->slot = NULL;
    }
    if (atomic_load(process) == PROCESS_ON) {
        started = claim(thread);
        if (started) {
            make_tables(thread);
            pthread_setspecific(end_key, thread);
        } else {
            thread->off = true;
        }
    }
    errno = saved;
    return started;
}

bool coffer__record_enter(coffer__record_thread *thread)
{
    coffer__record_memory *shared = coffer__record_shared;
    if (!shared || thread->off)
        return false;
    if (thread->busy) { /* a signal handler that allocates while a hook runs */
        atomic_fetch_add_explicit(&shared->sessions[session].dropped, 1, memory_order_relaxed);
        return false;
    }
    uint32_t is = atomic_load_explicit(process, memory_order_relaxed);
    if (is == PROCESS_OFF ||
        atomic_load_explicit(&shared->control.state, memory_order_relaxed) != COFFER__RECORD_RUNS)
        return false;
    thread->busy = true;
    atomic_signal_fence(memory_order_seq_cst);
    if (COFFER__RECORD_LIKELY(thread->slot && is == PROCESS_ON)) {
        coffer__record_session *mine = &shared->sessions[session];
        if (__builtin_expect(atomic_load_explicit(&mine->snapshots_wanted, memory_order_relaxed) !=
                                 atomic_load_explicit(&mine->snapshots_asked, memory_order_relaxed),
                             0))
            coffer__record_snapshot_ask(mine);
        return true;
    }
    if (start_thread(thread))
        return true;
    if (thread->off)
        atomic_fetch_add_explicit(&shared->sessions[session].dropped, 1, memory_order_relaxed);
    thread->busy = false;
    return false;
}

/* ---- Room ---- */

/* A process that has ended is still there until its parent asks for its status. */
static bool is_running(uint32_t pid)
{
    char path[32], text[512];
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        return false;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[len > 0 ? len : 0] = '\0';
    const char *name_end = strrchr(text, ')'); /* "PID (NAME) STATE …" */
    return !name_end || strlen(name_end) < 3 || (name_end[2] != 'Z' && name_end[2] != 'X');
}

/* The reader is gone when it does not exist any more and has done nothing for two seconds. */
static bool reader_is_gone(uint32_t *heartbeat, unsigned *quiet)
{
    const coffer__record_control *control = &coffer__record_shared->control;
    uint32_t now = atomic_load(&control->heartbeat);
    *quiet = now == *heartbeat ? *quiet + 1 : 0;
    *heartbeat = now;
    return *quiet >= 20 && !is_running(control->reader_pid);
}

static bool wait_for_room(coffer__record_thread *thread, uint32_t words)
{
    coffer__record_control *control = &coffer__record_shared->control;
    coffer__record_slot *slot = thread->slot;
    const struct timespec tenth = { 0, 100000000 };
    uint32_t heartbeat = atomic_load(&control->heartbeat);
    unsigned quiet = 0;
    int saved = errno;
    bool has_room;
    coffer__record_publish(thread);
    for (;;) {
        uint32_t seen = atomic_load(&slot->room);
        atomic_store(&slot->waits, 1);
        thread->tail = atomic_load(&slot->tail);
        has_room = thread->head + words - thread->tail <= COFFER__RECORD_RING_WORDS;
        if (has_room || atomic_load(&control->state) == COFFER__RECORD_ENDED)
            break;
        wake_reader();
        syscall(SYS_futex, &slot->room, FUTEX_WAIT, seen, &tenth, NULL, 0);
        if (reader_is_gone(&heartbeat, &quiet)) {
            atomic_store(&control->state, COFFER__RECORD_ENDED);
            break;
        }
    }
    atomic_store(&slot->waits, 0);
    errno = saved;
    return has_room;
}

bool coffer__record_reserve(coffer__record_thread *thread, uint32_t words)
{
    if (COFFER__RECORD_LIKELY(thread->head + words - thread->tail <= COFFER__RECORD_RING_WORDS))
        return true;
    thread->tail = atomic_load_explicit(&thread->slot->tail, memory_order_acquire);
    return thread->head + words - thread->tail <= COFFER__RECORD_RING_WORDS || wait_for_room(thread, words);
}

void coffer__record_publish(coffer__record_thread *thread)
{
    enum { WAKE_WORDS = COFFER__RECORD_RING_WORDS / 2 }; /* the other half fills while the reader wakes */
    coffer__record_slot *slot = thread->slot;
    uint64_t before = atomic_load_explicit(&slot->head, memory_order_relaxed);
    atomic_store_explicit(&slot->head, thread->head, memory_order_release);
    if (before / WAKE_WORDS != thread->head / WAKE_WORDS &&
        atomic_load_explicit(&coffer__record_shared->control.reader_sleeps, memory_order_relaxed)) {
        int saved = errno;
        wake_reader();
        errno = saved;
    }
}

void coffer__record_put_text(coffer__record_thread *thread, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, text + i, len - i < sizeof word ? len - i : sizeof word);
        coffer__record_put(thread, word);
    }
}

void coffer__record_put_marker(const char *text)
{
    coffer__record_thread *thread = &coffer__record_self;
    size_t len = strnlen(text, COFFER__RECORD_TEXT_MAX);
    if (!coffer__record_enter(thread))
        return;
    if (coffer__record_reserve(thread, (uint32_t)(2 + (len + 7) / 8))) {
        coffer__record_begin(thread);
        thread->time = coffer__record_now();
        coffer__record_put(thread, thread->time << 8 | COFFER__RECORD_MARKER);
        coffer__record_put(thread, len);
        coffer__record_put_text(thread, text, len);
        coffer__record_publish(thread);
        coffer__record_end(thread);
    }
    coffer__record_leave(thread);
}

void coffer__record_put_collection(uint64_t objects, uint64_t bytes)
{
    coffer__record_thread *thread = &coffer__record_self;
    if (!coffer__record_enter(thread))
        return;
    if (coffer__record_reserve(thread, 3)) {
        coffer__record_begin(thread);
        thread->time = coffer__record_now();
        coffer__record_put(thread, thread->time << 8 | COFFER__RECORD_COLLECTION);
        coffer__record_put(thread, objects);
        coffer__record_put(thread, bytes);
        coffer__record_publish(thread);
        coffer__record_end(thread);
    }
    coffer__record_leave(thread);
}
