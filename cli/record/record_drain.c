/* From the rings of threads to the traces of processes, in the order of time. */
#include "recorder.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <math.h>
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

static uint64_t us_of(const record_reader *reader, const record_session *session, uint64_t tick)
{
    uint64_t since = tick > reader->first_tick ? tick - reader->first_tick : 0;
    uint64_t us = reader->first_us + (uint64_t)((double)since * reader->us_per_tick);
    return us > session->start_us ? us - session->start_us : 0;
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

/* ---- One ring ---- */

static void copy_words(uint64_t *out, const coffer__record_slot *ring, uint64_t at, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        out[i] = record_word(ring, at + i);
}

/* more : the pass continues with this ring. A writer that waits is then woken when half of its ring is empty:
 * each time it waits costs both sides a switch of processes. */
static void take_words(coffer__record_slot *ring, uint64_t tail, bool more)
{
    uint64_t left = atomic_load_explicit(&ring->head, memory_order_relaxed) - tail;
    atomic_store_explicit(&ring->tail, tail, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    if ((!more || left <= COFFER__RECORD_RING_WORDS / 2) &&
        atomic_load_explicit(&ring->waits, memory_order_relaxed)) {
        atomic_fetch_add(&ring->room, 1);
        syscall(SYS_futex, &ring->room, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static record_session *session_of(const record_reader *reader, uint32_t number)
{
    return number < reader->session_count ? reader->sessions[number] : NULL;
}

/* A stack becomes a part of the trace when an allocation uses it: by then all its modules are known. */
static bool keep_stack(record_slot *slot, const coffer__record_slot *ring, uint64_t at, uint64_t other)
{
    uint64_t second = record_word(ring, at + 1), number = second & UINT32_MAX;
    size_t kept = (size_t)(second >> 32);
    if (!slot->last)
        slot->last = coffer__alloc_array(RECORD_FRAMES_MAX, sizeof *slot->last);
    if (!slot->last || kept > slot->last_count || other > RECORD_FRAMES_MAX - kept)
        return false;
    memmove(slot->last + other, slot->last + slot->last_count - kept, kept * sizeof slot->last[0]);
    copy_words(slot->last, ring, at + 3, other);
    size_t count = slot->last_count = (size_t)other + kept;
    size_t need = slot->raw_len + 2 + count;
    if (need > slot->raw_capacity) {
        size_t capacity = need > 2 * slot->raw_capacity ? need + 4096 : 2 * slot->raw_capacity;
        uint64_t *larger = coffer__realloc(slot->raw, capacity * sizeof *larger);
        if (!larger)
            return false;
        slot->raw = larger;
        slot->raw_capacity = capacity;
    }
    uint64_t *entry = slot->raw + slot->raw_len;
    entry[0] = record_word(ring, at + 2);
    entry[1] = count;
    memcpy(entry + 2, slot->last, count * sizeof *entry);
    record_map_remove(&slot->stacks, number);
    bool added = record_map_put(&slot->pending, number, slot->raw_len + 1);
    slot->raw_len = need;
    return added;
}

static coffer_status stack_of(uint64_t *id, record_session *session, record_slot *slot, uint64_t number)
{
    if (number == 0) /* allocations without a stack share an empty one */
        return record_session_stack(id, session, 1, NULL, 0);
    const uint64_t *known = record_map_find(&slot->stacks, number);
    if (known) {
        *id = *known;
        return COFFER_OK;
    }
    const uint64_t *pending = record_map_find(&slot->pending, number);
    if (!pending)
        return record_session_stack(id, session, 1, NULL, 0);
    const uint64_t *entry = slot->raw + *pending - 1;
    coffer_status status = record_session_stack(id, session, entry[0], entry + 2, (size_t)entry[1]);
    if (status)
        return status;
    record_map_remove(&slot->pending, number);
    if (slot->pending.count == 0)
        slot->raw_len = 0;
    record_map_put(&slot->stacks, number, *id);
    return COFFER_OK;
}

static coffer_status take_module(record_session *session, const coffer__record_slot *ring, uint64_t at,
                                 uint64_t count)
{
    uint64_t words[COFFER__RECORD_TEXT_MAX / 8 + COFFER__RECORD_BUILD_ID_MAX / 8 + 8];
    if (count > sizeof words / sizeof words[0])
        return COFFER_OK;
    copy_words(words, ring, at, count);
    return record_session_module(session, words, (size_t)count);
}

static coffer_status take_names(record_session *session, const coffer__record_slot *ring, uint64_t at,
                                uint64_t count, uint8_t kind)
{
    uint64_t words[COFFER__RECORD_TEXT_MAX / 8 + 8];
    if (count < 2 || count > sizeof words / sizeof words[0])
        return COFFER_OK;
    copy_words(words, ring, at, count);
    return kind == COFFER__RECORD_CODE ? record_session_code(session, words, (size_t)count)
                                       : record_snapshot_name(session, words, (size_t)count);
}

/* Takes the records without a time at the front of a ring. Sets slot->next_time, or UINT64_MAX when the
 * ring is empty. */
static coffer_status take_untimed(record_session *session, record_slot *slot, coffer__record_slot *ring)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed), start = tail;
    coffer_status status = COFFER_OK;
    slot->next_time = UINT64_MAX;
    while (tail < slot->head && !status) {
        uint64_t word = record_word(ring, tail), rest = word >> 8;
        uint8_t kind = (uint8_t)word;
        if (kind == COFFER__RECORD_STACK) {
            keep_stack(slot, ring, tail, rest);
            tail += 3 + rest;
        } else if (kind == COFFER__RECORD_MODULE) {
            if (session->writer)
                status = take_module(session, ring, tail + 1, rest);
            tail += 1 + rest;
        } else if (kind == COFFER__RECORD_CODE || kind == COFFER__RECORD_NAME) {
            if (session->writer)
                status = take_names(session, ring, tail + 1, rest, kind);
            tail += 1 + rest;
        } else {
            slot->next_time = rest;
            break;
        }
    }
    if (tail != start)
        take_words(ring, tail, false);
    return status;
}

static coffer_status take_marker(record_session *session, const coffer__record_slot *ring, uint64_t tail,
                                 uint64_t time)
{
    uint64_t words[COFFER__RECORD_TEXT_MAX / 8 + 1];
    uint64_t len = record_word(ring, tail + 1);
    if (len > COFFER__RECORD_TEXT_MAX)
        return COFFER_OK;
    copy_words(words, ring, tail + 2, (len + 7) / 8);
    return record_session_marker(session, time, (const char *)words, (size_t)len);
}

static void follow_live(record_session *session, const record_event *event)
{
    uint64_t *size = record_map_find(&session->live, event->address);
    if (size) {
        session->live_bytes -= *size;
        record_map_remove(&session->live, event->address);
    }
    if (event->type == COFFER_MLYZE_ALLOC && record_map_put(&session->live, event->address, event->size)) {
        session->allocs++;
        session->live_bytes += event->size;
        if (session->live_bytes > session->peak_bytes)
            session->peak_bytes = session->live_bytes;
    }
}

/* A block of the sample represents all of its size: its bytes divided by the chance that it was hit. Sums
 * of these are not biased, whatever the sizes are. */
static uint64_t represented(uint64_t size, uint64_t interval)
{
    double bytes = (double)size, chance = -expm1(-(bytes + 1) / (double)interval);
    double sum = bytes / chance;
    return sum < 1e18 ? (uint64_t)(sum + 0.5) : size;
}

static coffer_status take_mapping(record_session *session, record_slot *slot, const coffer__record_slot *ring,
                                  uint64_t tail, uint64_t time)
{
    uint64_t second = record_word(ring, tail + 1), third = record_word(ring, tail + 2);
    uint64_t address = second & COFFER__RECORD_ADDRESS_MASK;
    if ((uint8_t)record_word(ring, tail) == COFFER__RECORD_UNMAPPED)
        return record_session_unmap(session, time, address, third);
    uint64_t number = second >> COFFER__RECORD_ADDRESS_BITS | third >> COFFER__RECORD_ADDRESS_BITS << 16;
    record_mapping mapping = { .start = address,
                               .end = address + (third & COFFER__RECORD_ADDRESS_MASK),
                               .thread = (uint16_t)(slot->thread < UINT16_MAX ? slot->thread : UINT16_MAX) };
    coffer_status status = stack_of(&mapping.stack, session, slot, number);
    return status ? status : record_session_map(session, time, &mapping);
}

/* Takes the event at the front of a ring; returns the words it has. */
static uint64_t take_event(coffer_status *status, record_reader *reader, record_session *session,
                           record_slot *slot, const coffer__record_slot *ring, uint64_t tail)
{
    uint64_t word = record_word(ring, tail);
    uint8_t kind = (uint8_t)word;
    uint64_t time = us_of(reader, session, word >> 8), second = record_word(ring, tail + 1);
    if (kind == COFFER__RECORD_MARKER) {
        *status = session->writer ? take_marker(session, ring, tail, time) : COFFER_OK;
        return 2 + (second + 7) / 8;
    }
    if (kind == COFFER__RECORD_COLLECTION) {
        *status = session->writer
                      ? record_session_collection(session, time, second, record_word(ring, tail + 2))
                      : COFFER_OK;
        return 3;
    }
    if (kind == COFFER__RECORD_MAPPED || kind == COFFER__RECORD_UNMAPPED) {
        *status = session->writer ? take_mapping(session, slot, ring, tail, time) : COFFER_OK;
        return 3;
    }
    if (record_snapshot_words(kind)) {
        *status = session->writer ? record_snapshot_event(session, ring, tail, time) : COFFER_OK;
        return record_snapshot_words(kind);
    }
    uint64_t words = 2;
    record_event event = { .time = time,
                           .address = second & COFFER__RECORD_ADDRESS_MASK,
                           .thread = (uint16_t)(slot->thread < UINT16_MAX ? slot->thread : UINT16_MAX),
                           .type = COFFER_MLYZE_FREE };
    if (kind == COFFER__RECORD_ALLOC) {
        uint64_t third = record_word(ring, tail + 2);
        uint64_t number = second >> COFFER__RECORD_ADDRESS_BITS | third >> COFFER__RECORD_ADDRESS_BITS << 16;
        event.type = COFFER_MLYZE_ALLOC;
        event.size = third & COFFER__RECORD_ADDRESS_MASK;
        words = 3;
        if (reader->options->sample_bytes)
            event.size = represented(event.size, reader->options->sample_bytes);
        if (session->writer)
            *status = stack_of(&event.id, session, slot, number);
    }
    if (!*status && session->writer)
        *status = record_session_put(session, &event);
    if (reader->options->live || reader->options->snapshot_at_peak)
        follow_live(session, &event);
    if (reader->options->snapshot_at_peak)
        record_snapshot_at_peak(reader, session);
    return words;
}

/* Takes events up to a time. */
static coffer_status take_until(record_reader *reader, record_session *session, record_slot *slot,
                                coffer__record_slot *ring, uint64_t limit)
{
    enum { PORTION = COFFER__RECORD_RING_WORDS / 8 };
    coffer_status status = COFFER_OK;
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed), shown = tail;
    while (!status && tail < slot->head) {
        uint64_t word = record_word(ring, tail);
        uint8_t kind = (uint8_t)word;
        if (kind == COFFER__RECORD_STACK || kind == COFFER__RECORD_MODULE || kind == COFFER__RECORD_CODE ||
            kind == COFFER__RECORD_NAME) {
            take_words(ring, tail, true);
            shown = tail;
            status = take_untimed(session, slot, ring);
            tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
            continue;
        }
        if (word >> 8 > limit)
            break;
        tail += take_event(&status, reader, session, slot, ring, tail);
        reader->events++;
        if (tail - shown >= PORTION) {
            take_words(ring, tail, true);
            shown = tail;
        }
    }
    slot->next_time = tail < slot->head ? record_word(ring, tail) >> 8 : UINT64_MAX;
    take_words(ring, tail, false);
    return status;
}

/* ---- All rings ---- */

/* A ring whose session cannot be written any more is emptied, so that nobody waits for it. */
static void empty(record_slot *slot, coffer__record_slot *ring)
{
    take_words(ring, slot->head, false);
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
    if (take_untimed(session, slot, ring))
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
        if (take_until(reader, session, slot, ring, second < horizon ? second : horizon)) {
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
