#include "formats/mlyze/analyze/mlyze_live_slots.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <string.h>
#include <sys/random.h>

#define ALIGNMENT (COFFER__MLYZE_BUCKET * sizeof(coffer__mlyze_slot))
#define FIRST_CAPACITY 64
/* Slots after the last home, so that a search never wraps around. The last few stay empty, so that it ends.
 */
#define OVERHANG 64

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
    /* For parts without memory: a search ends there, and nothing is ever stored in it. */
    static const coffer__mlyze_slot empty[COFFER__MLYZE_BUCKET];
    memset(live, 0, sizeof *live);
    for (size_t i = 0; i < COFFER__MLYZE_PARTS; i++)
        live->parts[i].slots = live->parts[i].end = (coffer__mlyze_slot *)(uintptr_t)empty;
    live->key = key;
    live->budget = budget;
}

static size_t memory_of(uint32_t capacity)
{
    return capacity ? ((size_t)capacity + OVERHANG) * sizeof(coffer__mlyze_slot) + ALIGNMENT : 0;
}

static void give_back(coffer__mlyze_live *live, size_t bytes)
{
    if (live->budget)
        atomic_fetch_sub(&live->budget->used, bytes);
}

static void free_part(coffer__mlyze_live *live, coffer__mlyze_part *part)
{
    coffer__free(part->memory);
    give_back(live, memory_of(part->capacity));
}

void coffer__mlyze_live_free(coffer__mlyze_live *live)
{
    for (size_t i = 0; i < COFFER__MLYZE_PARTS; i++)
        free_part(live, &live->parts[i]);
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

/* ---- Numbers that do not fit a slot ---- */

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
    slot->sized = COFFER__MLYZE_SIZE_WIDE;
    slot->timed = (uint64_t)place << COFFER__MLYZE_TIME_SHIFT;
    slot->placed = 0;
    return COFFER_OK;
}

static coffer_status pack(coffer__mlyze_slot *slot, coffer__mlyze_live *live, const coffer__mlyze_held *block,
                          coffer_error *err)
{
    if (!coffer__mlyze_fits_slot(block))
        return pack_wide(slot, live, block, err);
    coffer__mlyze_pack(slot, block);
    return COFFER_OK;
}

static void unpack(coffer__mlyze_held *out, const coffer__mlyze_live *live, const coffer__mlyze_slot *slot)
{
    if (coffer__mlyze_is_wide(slot))
        *out = live->wide[(slot->timed >> COFFER__MLYZE_TIME_SHIFT) - 1];
    else
        coffer__mlyze_unpack(out, slot);
}

/* Frees the slot's entry in `wide`. */
static void release_wide(coffer__mlyze_live *live, const coffer__mlyze_slot *slot)
{
    if (!coffer__mlyze_is_wide(slot))
        return;
    size_t place = (size_t)(slot->timed >> COFFER__MLYZE_TIME_SHIFT);
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

/* Twice as many slots as remain in use. 0 when that is more than a part can have. */
static uint32_t capacity_for(const coffer__mlyze_live *live, const coffer__mlyze_part *part)
{
    uint32_t staying = live->remember ? part->used : part->live;
    if (staying > UINT32_MAX / 2 - OVERHANG)
        return 0;
    return 2 * staying < FIRST_CAPACITY ? FIRST_CAPACITY : 2 * staying & ~(COFFER__MLYZE_BUCKET - 1U);
}

/* False when the slots after the last home are full. */
static bool move_slots(coffer__mlyze_part *fresh, const coffer__mlyze_part *part,
                       const coffer__mlyze_live *live)
{
    for (const coffer__mlyze_slot *slot = part->slots; slot != part->end; slot++) {
        if (slot->address == 0 || (coffer__mlyze_is_dead(slot) && !live->remember))
            continue;
        coffer__mlyze_slot *place =
            coffer__mlyze_find_slot(fresh, coffer__mlyze_hash(&live->key, slot->address), slot->address);
        if (place >= fresh->end)
            return false;
        *place = *slot;
        fresh->used++;
    }
    return true;
}

static coffer_status make_part(coffer__mlyze_part *out, coffer__mlyze_live *live, uint32_t capacity,
                               coffer_error *err)
{
    size_t bytes = memory_of(capacity);
    coffer_status status = reserve(live, bytes, err);
    if (status)
        return status;
    *out = (coffer__mlyze_part){ .capacity = capacity, .memory = coffer__calloc(1, bytes) };
    if (!out->memory) {
        give_back(live, bytes);
        return coffer__fail_no_memory(err, bytes);
    }
    uintptr_t aligned = ((uintptr_t)out->memory + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    out->slots = (coffer__mlyze_slot *)aligned;
    out->end = out->slots + capacity + OVERHANG - COFFER__MLYZE_BUCKET;
    out->bucket_count = capacity / COFFER__MLYZE_BUCKET;
    out->max_used = capacity - capacity / 4;
    return COFFER_OK;
}

/* least : of the capacity. */
static coffer_status rebuild(coffer__mlyze_live *live, coffer__mlyze_part *part, uint64_t least,
                             coffer_error *err)
{
    uint32_t capacity = capacity_for(live, part);
    if (capacity < least)
        capacity = least <= UINT32_MAX / 2 ? (uint32_t)least : 0;
    for (;; capacity = capacity < UINT32_MAX / 2 ? 2 * capacity : 0) {
        coffer__mlyze_part fresh;
        if (capacity == 0)
            return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%u live blocks in one part of %d",
                                part->live, COFFER__MLYZE_PARTS);
        coffer_status status = make_part(&fresh, live, capacity, err);
        if (status)
            return status;
        fresh.live = part->live;
        bool moved = move_slots(&fresh, part, live);
        free_part(live, moved ? part : &fresh);
        if (moved) {
            *part = fresh;
            return COFFER_OK;
        }
    }
}

/* ---- Blocks ---- */

coffer_status coffer__mlyze_live_put(coffer__mlyze_put *what, coffer__mlyze_live *live, uint64_t hash,
                                     uint64_t address, const coffer__mlyze_held *block,
                                     coffer__mlyze_held *old, coffer_error *err)
{
    coffer__mlyze_part *part = &live->parts[hash % COFFER__MLYZE_PARTS];
    if (part->used >= part->max_used) {
        coffer_status status = rebuild(live, part, 0, err);
        if (status)
            return status;
    }
    coffer__mlyze_slot *slot = coffer__mlyze_find_slot(part, hash, address);
    while (slot >= part->end) { /* blocks must never be at the end: a search would not stop there */
        coffer_status status = rebuild(live, part, 2 * (uint64_t)part->capacity, err);
        if (status)
            return status;
        slot = coffer__mlyze_find_slot(part, hash, address);
    }
    if (slot->address == 0) {
        *what = COFFER__MLYZE_PUT_NEW;
    } else if (coffer__mlyze_is_dead(slot)) {
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
    coffer__mlyze_slot *slot = coffer__mlyze_find_slot(part, hash, address);
    if (slot->address == 0 || coffer__mlyze_is_dead(slot))
        return false;
    unpack(out, live, slot);
    release_wide(live, slot);
    slot->sized = 0; /* no longer wide */
    slot->timed |= COFFER__MLYZE_DEAD;
    part->live--;
    return true;
}

void coffer__mlyze_live_each(const coffer__mlyze_live *live,
                             void (*visit)(void *context, const coffer__mlyze_held *block), void *context)
{
    for (size_t i = 0; i < COFFER__MLYZE_PARTS; i++) {
        for (const coffer__mlyze_slot *slot = live->parts[i].slots; slot != live->parts[i].end; slot++) {
            coffer__mlyze_held block;
            if (slot->address == 0 || coffer__mlyze_is_dead(slot))
                continue;
            unpack(&block, live, slot);
            visit(context, &block);
        }
    }
}

/* ---- How much is live ---- */

#define PREFETCH_AHEAD 12 /* events whose slots are being prefetched */

static void note(uint64_t *count, uint64_t *first, uint64_t event)
{
    if ((*count)++ == 0)
        *first = event;
}

static coffer_status follow_alloc(coffer__mlyze_level *level, coffer__mlyze_live *live, uint64_t address,
                                  uint64_t size, uint64_t event, coffer_error *err)
{
    coffer__mlyze_held block = { .size = size }, old;
    coffer__mlyze_put what;
    coffer_status status = coffer__mlyze_live_put(&what, live, coffer__mlyze_hash(&live->key, address),
                                                  address, &block, &old, err);
    if (status)
        return status;
    if (what == COFFER__MLYZE_PUT_REPLACED) {
        note(&level->double_allocs, &level->first_double_alloc, event);
        level->bytes -= old.size;
        level->allocs--;
    }
    level->bytes += size;
    level->allocs++;
    if (level->bytes > level->high_bytes)
        level->high_bytes = level->bytes;
    if (level->allocs > level->high_allocs)
        level->high_allocs = level->allocs;
    return COFFER_OK;
}

static void follow_free(coffer__mlyze_level *level, coffer__mlyze_live *live, uint64_t address,
                        uint64_t event)
{
    coffer__mlyze_held block;
    if (coffer__mlyze_live_take(&block, live, coffer__mlyze_hash(&live->key, address), address)) {
        level->bytes -= block.size;
        level->allocs--;
    } else {
        note(&level->unknown_frees, &level->first_unknown_free, event);
    }
}

coffer_status coffer__mlyze_follow(coffer__mlyze_level *level, coffer__mlyze_live *live,
                                   const coffer_mlyze_events *events, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < events->count && !status; i++) {
        if (i + PREFETCH_AHEAD < events->count) {
            uint64_t hash = coffer__mlyze_hash(&live->key, events->address[i + PREFETCH_AHEAD]);
            coffer__mlyze_prefetch(&live->parts[hash % COFFER__MLYZE_PARTS], hash);
        }
        if (events->type[i] > COFFER_MLYZE_FREE || events->address[i] == 0)
            continue;
        if (events->type[i] == COFFER_MLYZE_ALLOC)
            status = follow_alloc(level, live, events->address[i], events->size[i], events->first + i, err);
        else
            follow_free(level, live, events->address[i], events->first + i);
    }
    return status;
}

/* ---- For callers of the library ---- */

struct coffer_mlyze_live {
    coffer__mlyze_live table;
};

coffer_status coffer_mlyze_live_new(coffer_mlyze_live **out, coffer_error *err)
{
    coffer_mlyze_live *live = coffer__malloc(sizeof *live);
    if (!live)
        return coffer__fail_no_memory(err, sizeof *live);
    coffer__mlyze_live_init(&live->table, coffer__mlyze_new_key(), NULL);
    *out = live;
    return COFFER_OK;
}

void coffer_mlyze_live_free(coffer_mlyze_live *live)
{
    if (!live)
        return;
    coffer__mlyze_live_free(&live->table);
    coffer__free(live);
}

static void give_block(coffer_mlyze_live_block *out, const coffer__mlyze_held *held)
{
    *out = (coffer_mlyze_live_block){ held->size, held->time, held->order, held->stack, held->thread };
}

coffer_status coffer_mlyze_live_put(bool *replaced, coffer_mlyze_live_block *old, coffer_mlyze_live *live,
                                    uint64_t address, const coffer_mlyze_live_block *block, coffer_error *err)
{
    coffer__mlyze_held held = { block->size, block->time, block->tag, block->stack, block->thread };
    coffer__mlyze_held before;
    coffer__mlyze_put what = COFFER__MLYZE_PUT_NEW;
    if (address != 0) {
        uint64_t hash = coffer__mlyze_hash(&live->table.key, address);
        coffer_status status =
            coffer__mlyze_live_put(&what, &live->table, hash, address, &held, &before, err);
        if (status)
            return status;
    }
    *replaced = what == COFFER__MLYZE_PUT_REPLACED;
    if (*replaced)
        give_block(old, &before);
    return COFFER_OK;
}

bool coffer_mlyze_live_take(coffer_mlyze_live_block *out, coffer_mlyze_live *live, uint64_t address)
{
    coffer__mlyze_held held;
    if (address == 0 ||
        !coffer__mlyze_live_take(&held, &live->table, coffer__mlyze_hash(&live->table.key, address), address))
        return false;
    give_block(out, &held);
    return true;
}

bool coffer_mlyze_live_get(coffer_mlyze_live_block *out, const coffer_mlyze_live *live, uint64_t address)
{
    const coffer__mlyze_live *table = &live->table;
    uint64_t hash = coffer__mlyze_hash(&table->key, address);
    const coffer__mlyze_slot *slot =
        coffer__mlyze_find_slot(&table->parts[hash % COFFER__MLYZE_PARTS], hash, address);
    if (address == 0 || slot->address == 0 || coffer__mlyze_is_dead(slot))
        return false;
    coffer__mlyze_held held;
    unpack(&held, table, slot);
    give_block(out, &held);
    return true;
}

uint64_t coffer_mlyze_live_count(const coffer_mlyze_live *live)
{
    return coffer__mlyze_live_count(&live->table);
}
