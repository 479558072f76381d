#include "formats/mlyze/mlyze_live.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <string.h>
#include <sys/random.h>

#define CACHE_LINE 64
#define FIRST_CAPACITY 64
#define SIZE_BITS 48
#define TIME_BITS 55
#define ORDER_BITS 40
#define ORDER_HIGH_BITS (ORDER_BITS - 32)
#define DEAD (UINT64_C(1) << ORDER_HIGH_BITS)
#define SIZE_WIDE ((UINT64_C(1) << SIZE_BITS) - 1) /* the slot's time is the place in `wide` */

coffer__mlyze_key coffer__mlyze_new_key(void)
{
    coffer__mlyze_key key = { UINT64_C(0x243F6A8885A308D3), UINT64_C(0x13198A2E03707344) };
    uint64_t random[2];
    if (getrandom(random, sizeof random, GRND_NONBLOCK) == (ssize_t)sizeof random) {
        key.add ^= random[0];
        key.multiply ^= random[1];
    }
    key.multiply |= 1 | UINT64_C(1) << 63;
    return key;
}

void coffer__mlyze_live_init(coffer__mlyze_live *live, coffer__mlyze_key key, coffer__mlyze_budget *budget)
{
    memset(live, 0, sizeof *live);
    live->key = key;
    live->budget = budget;
}

static size_t memory_of(uint32_t capacity)
{
    return capacity ? (size_t)capacity * sizeof(coffer__mlyze_slot) + CACHE_LINE : 0;
}

static void give_back(coffer__mlyze_live *live, size_t bytes)
{
    if (live->budget)
        atomic_fetch_sub(&live->budget->used, bytes);
}

void coffer__mlyze_live_free(coffer__mlyze_live *live)
{
    for (size_t i = 0; i < COFFER__MLYZE_PARTS; i++) {
        coffer__free(live->parts[i].memory);
        give_back(live, memory_of(live->parts[i].capacity));
    }
    coffer__free(live->wide);
    coffer__mlyze_live_init(live, live->key, live->budget);
}

uint64_t coffer__mlyze_live_count(const coffer__mlyze_live *live)
{
    uint64_t count = 0;
    for (size_t i = 0; i < COFFER__MLYZE_PARTS; i++)
        count += live->parts[i].live;
    return count;
}

size_t coffer__mlyze_live_bytes(const coffer__mlyze_live *live)
{
    size_t bytes = live->wide_capacity * sizeof *live->wide;
    for (size_t i = 0; i < COFFER__MLYZE_PARTS; i++)
        bytes += memory_of(live->parts[i].capacity);
    return bytes;
}

/* ---- Slots ---- */

static inline bool is_dead(const coffer__mlyze_slot *slot)
{
    return slot->timed & DEAD;
}

static inline coffer__mlyze_slot *home_of(const coffer__mlyze_part *part, uint64_t hash)
{
    return part->slots + ((uint64_t)(uint32_t)(hash >> 8) * part->capacity >> 32);
}

/* The slot of the address, or the empty one where it belongs. A quarter of the slots is empty. */
static inline coffer__mlyze_slot *find(const coffer__mlyze_part *part, uint64_t hash, uint64_t address)
{
    coffer__mlyze_slot *slot = home_of(part, hash);
    while (slot->address != address && slot->address != 0) {
        if (++slot == part->end)
            slot = part->slots;
    }
    return slot;
}

static coffer_status pack_wide(coffer__mlyze_slot *slot, coffer__mlyze_live *live,
                               const coffer__mlyze_held *block, coffer_error *err)
{
    size_t place = live->wide_free;
    if (place > 0) {
        live->wide_free = (size_t)live->wide[place - 1].size;
    } else {
        coffer_status status = coffer__array_reserve_one(&live->wide, &live->wide_capacity, live->wide_count,
                                                         sizeof *live->wide, err);
        if (status)
            return status;
        place = ++live->wide_count;
    }
    live->wide[place - 1] = *block;
    slot->sized = SIZE_WIDE;
    slot->timed = (uint64_t)place << (ORDER_HIGH_BITS + 1);
    slot->placed = 0;
    return COFFER_OK;
}

static inline coffer_status pack(coffer__mlyze_slot *slot, coffer__mlyze_live *live,
                                 const coffer__mlyze_held *block, coffer_error *err)
{
    if (block->size >= SIZE_WIDE || block->time >> TIME_BITS || block->order >> ORDER_BITS)
        return pack_wide(slot, live, block, err);
    slot->sized = (uint64_t)block->thread << SIZE_BITS | block->size;
    slot->timed = block->time << (ORDER_HIGH_BITS + 1) | block->order >> 32;
    slot->placed = block->order << 32 | block->stack;
    return COFFER_OK;
}

static inline void unpack(coffer__mlyze_held *out, const coffer__mlyze_live *live,
                          const coffer__mlyze_slot *slot)
{
    out->size = slot->sized & SIZE_WIDE;
    out->time = slot->timed >> (ORDER_HIGH_BITS + 1);
    if (out->size == SIZE_WIDE) {
        *out = live->wide[out->time - 1];
        return;
    }
    out->order = (slot->timed & (DEAD - 1)) << 32 | slot->placed >> 32;
    out->stack = (uint32_t)slot->placed;
    out->thread = (uint16_t)(slot->sized >> SIZE_BITS);
}

/* What `wide` holds for the slot is not needed any more. */
static inline void release_wide(coffer__mlyze_live *live, const coffer__mlyze_slot *slot)
{
    if ((slot->sized & SIZE_WIDE) != SIZE_WIDE)
        return;
    size_t place = (size_t)(slot->timed >> (ORDER_HIGH_BITS + 1));
    live->wide[place - 1].size = live->wide_free;
    live->wide_free = place;
}

/* ---- Growing ---- */

static coffer_status reserve(coffer__mlyze_live *live, size_t bytes, coffer_error *err)
{
    coffer__mlyze_budget *budget = live->budget;
    if (!budget || atomic_fetch_add(&budget->used, bytes) + bytes <= budget->max)
        return COFFER_OK;
    atomic_fetch_sub(&budget->used, bytes);
    atomic_store(&budget->exceeded, true);
    return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                        "the table of live blocks needs more than the %zu bytes it may have", budget->max);
}

/* Twice as many slots as stay: half of them is used. 0 when that is more than a part can have. */
static uint32_t capacity_for(const coffer__mlyze_live *live, const coffer__mlyze_part *part)
{
    uint32_t staying = live->remember ? part->used : part->live;
    if (staying > UINT32_MAX / 2)
        return 0;
    return 2 * staying < FIRST_CAPACITY ? FIRST_CAPACITY : 2 * staying;
}

static void move_slots(coffer__mlyze_part *to, const coffer__mlyze_part *from, const coffer__mlyze_live *live)
{
    for (const coffer__mlyze_slot *slot = from->slots; slot != from->end; slot++) {
        if (slot->address == 0 || (is_dead(slot) && !live->remember))
            continue;
        *find(to, coffer__mlyze_hash(&live->key, slot->address), slot->address) = *slot;
        to->used++;
    }
}

static coffer_status rebuild(coffer__mlyze_live *live, coffer__mlyze_part *part, coffer_error *err)
{
    coffer__mlyze_part fresh = { .capacity = capacity_for(live, part), .live = part->live };
    size_t bytes = memory_of(fresh.capacity), old_bytes = memory_of(part->capacity);
    if (fresh.capacity == 0)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%u live blocks in one part of %d",
                            part->live, COFFER__MLYZE_PARTS);
    coffer_status status = reserve(live, bytes, err);
    if (status)
        return status;
    fresh.memory = coffer__calloc(1, bytes);
    if (!fresh.memory) {
        give_back(live, bytes);
        return coffer__fail_no_memory(err, bytes);
    }
    uintptr_t aligned = ((uintptr_t)fresh.memory + CACHE_LINE - 1) & ~(uintptr_t)(CACHE_LINE - 1);
    fresh.slots = (coffer__mlyze_slot *)aligned;
    fresh.end = fresh.slots + fresh.capacity;
    fresh.max_used = fresh.capacity - fresh.capacity / 4;
    if (part->slots)
        move_slots(&fresh, part, live);
    coffer__free(part->memory);
    give_back(live, old_bytes);
    *part = fresh;
    return COFFER_OK;
}

/* ---- Blocks ---- */

coffer_status coffer__mlyze_live_put(coffer__mlyze_put *what, coffer__mlyze_live *live, uint64_t hash,
                                     uint64_t address, const coffer__mlyze_held *block,
                                     coffer__mlyze_held *old, coffer_error *err)
{
    coffer__mlyze_part *part = &live->parts[hash % COFFER__MLYZE_PARTS];
    if (part->used >= part->max_used) {
        coffer_status status = rebuild(live, part, err);
        if (status)
            return status;
    }
    coffer__mlyze_slot *slot = find(part, hash, address);
    if (slot->address == 0) {
        *what = COFFER__MLYZE_PUT_NEW;
    } else if (is_dead(slot)) {
        *what = COFFER__MLYZE_PUT_AGAIN;
    } else {
        *what = COFFER__MLYZE_PUT_REPLACED;
        unpack(old, live, slot);
        release_wide(live, slot);
    }
    coffer__mlyze_slot packed = { .address = address };
    coffer_status status = pack(&packed, live, block, err);
    if (status)
        return status;
    part->used += *what == COFFER__MLYZE_PUT_NEW;
    part->live += *what != COFFER__MLYZE_PUT_REPLACED;
    *slot = packed;
    return COFFER_OK;
}

bool coffer__mlyze_live_take(coffer__mlyze_held *out, coffer__mlyze_live *live, uint64_t hash,
                             uint64_t address)
{
    coffer__mlyze_part *part = &live->parts[hash % COFFER__MLYZE_PARTS];
    if (!part->slots)
        return false;
    coffer__mlyze_slot *slot = find(part, hash, address);
    if (slot->address == 0 || is_dead(slot))
        return false;
    unpack(out, live, slot);
    release_wide(live, slot);
    slot->sized = 0; /* no longer wide */
    slot->timed |= DEAD;
    part->live--;
    return true;
}

void coffer__mlyze_live_each(const coffer__mlyze_live *live,
                             void (*visit)(void *context, const coffer__mlyze_held *block), void *context)
{
    for (size_t i = 0; i < COFFER__MLYZE_PARTS; i++) {
        for (const coffer__mlyze_slot *slot = live->parts[i].slots; slot != live->parts[i].end; slot++) {
            coffer__mlyze_held block;
            if (slot->address == 0 || is_dead(slot))
                continue;
            unpack(&block, live, slot);
            visit(context, &block);
        }
    }
}
