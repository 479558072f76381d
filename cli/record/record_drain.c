/* From the rings of threads to the traces of processes, in the order of time. */
#include "recorder.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* An event may be a moment older than the time at which its ring shows it. */
#define MARGIN_US 50

uint64_t record_clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t record_tick(const record_reader *reader)
{
#if defined __x86_64__
    if (reader->memory->control.flags & COFFER__RECORD_CLOCK_TSC) {
        uint32_t low, high, processor;
        __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(processor)::"memory");
        return ((uint64_t)high << 32 | low) - reader->memory->control.time_base;
    }
#endif
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - reader->memory->control.time_base;
}

/* The rate is that since the beginning: it becomes more exact the longer the program runs. */
static uint64_t take_time(record_reader *reader)
{
    uint64_t tick = record_tick(reader), us = record_clock_us();
    if (tick > reader->first_tick && us > reader->first_us + 1000)
        reader->us_per_tick = (double)(us - reader->first_us) / (double)(tick - reader->first_tick);
    return tick;
}

void record_stop(record_reader *reader, const record_session *session, const coffer_error *err)
{
    if (reader->stopped)
        return;
    reader->stopped = true;
    atomic_store(&reader->memory->control.state, COFFER__RECORD_ENDED);
    cli_warn(session->path,
             "recording stopped: %s; the program continues, and 'coffer repair' saves what was recorded",
             err->text);
}

static record_session *session_of(const record_reader *reader, uint32_t number)
{
    return number < reader->session_count ? reader->sessions[number] : NULL;
}

/* ---- All rings ---- */

/* A ring whose session cannot be written any more is emptied, so that nobody waits for it. */
static void empty(record_slot *slot, coffer__record_slot *ring)
{
    record_take_words(ring, slot->head, false);
    slot->next_time = UINT64_MAX;
}

static bool look(record_reader *reader, uint32_t number, uint32_t only, uint64_t *horizon)
{
    coffer__record_slot *ring = &reader->memory->slots[number];
    record_slot *slot = &reader->slots[number];
    if (atomic_load_explicit(&ring->state, memory_order_acquire) != COFFER__RECORD_SLOT_USED)
        return false;
    record_session *session = session_of(reader, ring->session);
    if (!session || (only != UINT32_MAX && only != ring->session))
        return false; /* of a process that appears in the next pass, or that is not asked for */
    uint64_t since = atomic_load_explicit(&ring->since, memory_order_acquire);
    slot->used = true;
    slot->session = ring->session;
    slot->thread = ring->thread;
    slot->head = atomic_load_explicit(&ring->head, memory_order_acquire);
    slot->next_time = UINT64_MAX;
    if (since && !session->over && since < *horizon)
        *horizon = since;
    return slot->head != atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

static void prepare(record_reader *reader, uint32_t number)
{
    record_slot *slot = &reader->slots[number];
    record_session *session = reader->sessions[slot->session];
    coffer__record_slot *ring = &reader->memory->slots[number];
    if (!session->writer) {
        empty(slot, ring);
        return;
    }
    if (record_take_untimed(session, slot, ring))
        record_stop(reader, session, &session->err);
}

static bool drain(record_reader *reader, uint32_t only, uint64_t horizon)
{
    static uint32_t full[COFFER__RECORD_SLOTS];
    uint32_t count = atomic_load(&reader->memory->control.slot_count), found = 0;
    uint64_t before = reader->events;
    for (uint32_t i = 0; i < count; i++)
        if (look(reader, i, only, &horizon))
            full[found++] = i;
    for (uint32_t i = 0; i < found; i++)
        prepare(reader, full[i]);
    for (;;) {
        uint32_t first = UINT32_MAX;
        uint64_t time = UINT64_MAX, second = UINT64_MAX;
        for (uint32_t i = 0; i < found; i++) {
            uint64_t next = reader->slots[full[i]].next_time;
            if (next < time) {
                second = time;
                time = next;
                first = full[i];
            } else if (next < second) {
                second = next;
            }
        }
        if (first == UINT32_MAX || time > horizon)
            break;
        record_slot *slot = &reader->slots[first];
        record_session *session = reader->sessions[slot->session];
        coffer__record_slot *ring = &reader->memory->slots[first];
        if (record_take_until(reader, session, slot, ring, second < horizon ? second : horizon)) {
            record_stop(reader, session, &session->err);
            empty(slot, ring);
        }
    }
    return reader->events != before;
}

bool record_drain(record_reader *reader)
{
    uint64_t tick = take_time(reader);
    uint64_t margin = (uint64_t)(MARGIN_US / reader->us_per_tick);
    return drain(reader, UINT32_MAX, tick > margin ? tick - margin : 0);
}

void record_drain_ended(record_reader *reader, const record_session *session)
{
    take_time(reader);
    while (drain(reader, session->number, UINT64_MAX - 1)) {
    }
}

/* ---- Threads ---- */

static void learn_name(record_reader *reader, record_slot *slot, const coffer__record_slot *ring)
{
    char path[64], name[sizeof slot->name] = "";
    record_session *session = reader->sessions[slot->session];
    snprintf(path, sizeof path, "/proc/%u/task/%u/comm", ring->pid, ring->tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t len = read(fd, name, sizeof name - 1);
    close(fd);
    while (len > 0 && name[len - 1] == '\n')
        name[--len] = '\0';
    if (len <= 0 || strcmp(name, slot->name) == 0 || !session->writer)
        return;
    memcpy(slot->name, name, sizeof name);
    uint16_t thread = (uint16_t)(slot->thread < UINT16_MAX ? slot->thread : UINT16_MAX);
    if (record_session_thread(session, thread, name))
        record_stop(reader, session, &session->err);
}

void record_slot_free(record_slot *slot)
{
    record_map_free(&slot->stacks);
    record_map_free(&slot->pending);
    coffer__free(slot->raw);
    coffer__free(slot->last);
    *slot = (record_slot){ 0 };
}

static void free_slot(record_slot *slot, coffer__record_slot *ring)
{
    record_slot_free(slot);
    atomic_store(&ring->waits, 0);
    atomic_store_explicit(&ring->state, COFFER__RECORD_SLOT_FREE, memory_order_release);
}

void record_keep_house(record_reader *reader)
{
    uint32_t count = atomic_load(&reader->memory->control.slot_count);
    for (uint32_t i = 0; i < count; i++) {
        coffer__record_slot *ring = &reader->memory->slots[i];
        record_slot *slot = &reader->slots[i];
        if (!slot->used || atomic_load(&ring->state) != COFFER__RECORD_SLOT_USED)
            continue;
        const record_session *session = reader->sessions[slot->session];
        bool ended = session->over || (syscall(SYS_tgkill, ring->pid, ring->tid, 0) != 0 && errno == ESRCH);
        if (!ended)
            learn_name(reader, slot, ring);
        else if (atomic_load(&ring->head) == atomic_load(&ring->tail))
            free_slot(slot, ring);
    }
}
