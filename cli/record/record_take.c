/* The records of one ring become events of a session. */
#include "recorder.h"

#include "base/memory.h"

#include <linux/futex.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t us_of(const record_reader *reader, const record_session *session, uint64_t tick)
{
    uint64_t since = tick > reader->first_tick ? tick - reader->first_tick : 0;
    uint64_t us = reader->first_us + (uint64_t)((double)since * reader->us_per_tick);
    return us > session->start_us ? us - session->start_us : 0;
}

static uint64_t low_bits(unsigned count)
{
    return (UINT64_C(1) << count) - 1;
}

static uint8_t kind_of(uint64_t word)
{
    return word & COFFER__RECORD_BRIEF_FREE ? COFFER__RECORD_BRIEF_FREE : (uint8_t)word;
}

/* The time of a record that begins with the word, which has one. */
static uint64_t time_of(const record_slot *slot, uint64_t word)
{
    uint8_t kind = kind_of(word);
    if (kind == COFFER__RECORD_BRIEF_FREE)
        return (slot->units + (word >> 1 & low_bits(COFFER__RECORD_FREE_UNIT_BITS)))
               << COFFER__RECORD_UNIT_SHIFT;
    if (kind == COFFER__RECORD_BRIEF_ALLOC)
        return (slot->units + (word >> 8 & low_bits(COFFER__RECORD_ALLOC_UNIT_BITS)))
               << COFFER__RECORD_UNIT_SHIFT;
    return word >> 8;
}

static void copy_words(uint64_t *out, const coffer__record_slot *ring, uint64_t at, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        out[i] = record_word(ring, at + i);
}

void record_take_words(coffer__record_slot *ring, uint64_t tail, bool more)
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

coffer_status record_take_untimed(record_session *session, record_slot *slot, coffer__record_slot *ring)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed), start = tail;
    coffer_status status = COFFER_OK;
    slot->next_time = UINT64_MAX;
    while (tail < slot->head && !status) {
        uint64_t word = record_word(ring, tail), rest = word >> 8;
        uint8_t kind = kind_of(word);
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
            slot->next_time = time_of(slot, word);
            break;
        }
    }
    if (tail != start)
        record_take_words(ring, tail, false);
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

/* An allocation or a release, in the long form or the short one. */
typedef struct block_event {
    uint64_t address, size, stack, words;
    bool allocates;
} block_event;

static block_event block_of(record_slot *slot, const coffer__record_slot *ring, uint64_t tail)
{
    uint64_t word = record_word(ring, tail), second;
    uint8_t kind = kind_of(word);
    slot->units = time_of(slot, word) >> COFFER__RECORD_UNIT_SHIFT;
    if (kind == COFFER__RECORD_BRIEF_FREE)
        return (block_event){ .address = word >> (1 + COFFER__RECORD_FREE_UNIT_BITS)
                                                     << COFFER__RECORD_ALIGN_SHIFT,
                              .words = 1 };
    second = record_word(ring, tail + 1);
    if (kind == COFFER__RECORD_BRIEF_ALLOC)
        return (block_event){ .address = second >> COFFER__RECORD_BRIEF_STACK_BITS
                                                       << COFFER__RECORD_ALIGN_SHIFT,
                              .size = word >> (8 + COFFER__RECORD_ALLOC_UNIT_BITS),
                              .stack = second & low_bits(COFFER__RECORD_BRIEF_STACK_BITS),
                              .words = 2,
                              .allocates = true };
    if (kind == COFFER__RECORD_FREE)
        return (block_event){ .address = second, .words = 2 };
    uint64_t third = record_word(ring, tail + 2);
    return (block_event){ .address = second & COFFER__RECORD_ADDRESS_MASK,
                          .size = third & COFFER__RECORD_ADDRESS_MASK,
                          .stack = second >> COFFER__RECORD_ADDRESS_BITS |
                                   third >> COFFER__RECORD_ADDRESS_BITS << 16,
                          .words = 3,
                          .allocates = true };
}

static coffer_status take_block(record_reader *reader, record_session *session, const record_event *event)
{
    coffer_status status = session->writer ? record_session_put(session, event) : COFFER_OK;
    if (reader->options->live || reader->options->snapshot_at_peak)
        follow_live(session, event);
    if (reader->options->snapshot_at_peak)
        record_snapshot_at_peak(reader, session, session->rss_bytes);
    return status;
}

/* Takes the event at the front of a ring; returns the words it has. */
static uint64_t take_event(coffer_status *status, record_reader *reader, record_session *session,
                           record_slot *slot, const coffer__record_slot *ring, uint64_t tail)
{
    uint64_t word = record_word(ring, tail);
    uint8_t kind = kind_of(word);
    uint64_t time = us_of(reader, session, time_of(slot, word));
    uint64_t second = kind == COFFER__RECORD_BRIEF_FREE ? 0 : record_word(ring, tail + 1);
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
    block_event block = block_of(slot, ring, tail);
    record_event event = { .time = time,
                           .address = block.address,
                           .size = block.size,
                           .thread = (uint16_t)(slot->thread < UINT16_MAX ? slot->thread : UINT16_MAX),
                           .type = block.allocates ? COFFER_MLYZE_ALLOC : COFFER_MLYZE_FREE };
    if (block.allocates && reader->options->sample_bytes)
        event.size = represented(event.size, reader->options->sample_bytes);
    if (block.allocates && session->writer)
        *status = stack_of(&event.id, session, slot, block.stack);
    if (!*status)
        *status = take_block(reader, session, &event);
    return block.words;
}

coffer_status record_take_until(record_reader *reader, record_session *session, record_slot *slot,
                                coffer__record_slot *ring, uint64_t limit)
{
    enum { PORTION = COFFER__RECORD_RING_WORDS / 8 };
    coffer_status status = COFFER_OK;
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed), shown = tail;
    while (!status && tail < slot->head) {
        uint64_t word = record_word(ring, tail);
        uint8_t kind = kind_of(word);
        if (kind == COFFER__RECORD_STACK || kind == COFFER__RECORD_MODULE || kind == COFFER__RECORD_CODE ||
            kind == COFFER__RECORD_NAME) {
            record_take_words(ring, tail, true);
            shown = tail;
            status = record_take_untimed(session, slot, ring);
            tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
            continue;
        }
        if (time_of(slot, word) > limit)
            break;
        tail += take_event(&status, reader, session, slot, ring, tail);
        reader->events++;
        if (tail - shown >= PORTION) {
            record_take_words(ring, tail, true);
            shown = tail;
        }
    }
    slot->next_time = tail < slot->head ? time_of(slot, record_word(ring, tail)) : UINT64_MAX;
    record_take_words(ring, tail, false);
    return status;
}
