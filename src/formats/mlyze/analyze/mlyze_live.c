#include "formats/mlyze/analyze/mlyze_live.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define SLOT_SIZE sizeof(coffer__mlyze_slot)
#define ALIGNMENT (COFFER__MLYZE_BUCKET * SLOT_SIZE)
#define FIRST_BUCKETS 256
/* Slots after the last bucket where a search can begin, so that it never wraps around. */
#define OVERHANG 256
#define ROOMY ((size_t)1 << 21) /* live blocks */
#define HUGE_PAGE ((size_t)2 << 20)
#define LEAST_HUGE (2 * HUGE_PAGE) /* bytes; smaller tables do not get huge pages */

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
    /* For a table without memory: a search ends there, and nothing is ever stored in it. */
    static const coffer__mlyze_slot empty[COFFER__MLYZE_BUCKET];
    coffer__mlyze_slot *slots = (coffer__mlyze_slot *)(uintptr_t)empty;
    *live =
        (coffer__mlyze_live){ .slots = slots, .end = slots, .roomy = ROOMY, .key = key, .budget = budget };
}

static size_t memory_of(size_t capacity)
{
    return capacity ? capacity * SLOT_SIZE + ALIGNMENT : 0;
}

static void give_back(coffer__mlyze_live *live, size_t bytes)
{
    if (live->budget)
        atomic_fetch_sub(&live->budget->used, bytes);
}

void coffer__mlyze_live_free(coffer__mlyze_live *live)
{
    coffer__free(live->memory);
    give_back(live, memory_of(live->capacity));
    coffer__free(live->wide);
    coffer__mlyze_live_init(live, live->key, live->budget);
}

size_t coffer__mlyze_live_bytes(const coffer__mlyze_live *live)
{
    return live->wide_capacity * sizeof *live->wide + memory_of(live->capacity);
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

/* With small pages, nearly every access to a large table would miss the processor's list of pages. Mappings
 * whose size is a multiple of a huge page begin at one, and stay there when they grow. */
static size_t round_to_pages(size_t bytes)
{
    const size_t header = 64; /* of the allocator, and some more */
    return bytes < LEAST_HUGE ? bytes : ((bytes + header + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1)) - header;
}

static void prefer_huge_pages(void *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)memory & ~(page - 1);
    const uintptr_t end = ((uintptr_t)memory + bytes + page - 1) & ~(page - 1);
    if (bytes >= LEAST_HUGE)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)bytes;
#endif
}

/* Makes the table longer; the new slots are empty. */
static coffer_status extend(coffer__mlyze_live *live, size_t capacity, coffer_error *err)
{
    const size_t before = live->capacity, bytes = memory_of(capacity);
    if (capacity <= before)
        return COFFER_OK;
    coffer_status status = reserve(live, bytes - memory_of(before), err);
    if (status)
        return status;
    const size_t offset = live->memory ? (size_t)((uint8_t *)live->slots - (uint8_t *)live->memory) : 0;
    uint8_t *memory = coffer__realloc(live->memory, round_to_pages(bytes));
    if (!memory) {
        give_back(live, bytes - memory_of(before));
        return coffer__fail_no_memory(err, bytes);
    }
    prefer_huge_pages(memory, round_to_pages(bytes));
    uint8_t *aligned = (uint8_t *)(((uintptr_t)memory + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
    if (before && aligned != memory + offset)
        memmove(aligned, memory + offset, before * SLOT_SIZE);
    memset(aligned + before * SLOT_SIZE, 0, (capacity - before) * SLOT_SIZE);
    live->memory = memory;
    live->slots = (coffer__mlyze_slot *)(void *)aligned;
    live->capacity = capacity;
    live->end = live->slots + capacity - COFFER__MLYZE_BUCKET;
    return COFFER_OK;
}

/* Puts slots where the new number of buckets wants them. */
static coffer_status put_slots(coffer__mlyze_live *live, const coffer__mlyze_slot *from, size_t count,
                               coffer_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (from[i].address == 0 || (coffer__mlyze_is_dead(&from[i]) && !live->remember))
            continue;
        const uint64_t hash = coffer__mlyze_hash(&live->key, from[i].address);
        coffer__mlyze_slot *slot = coffer__mlyze_find(live, hash, from[i].address);
        if (slot >= live->end) {
            coffer_status status = extend(live, live->capacity + OVERHANG, err);
            if (status)
                return status;
            slot = coffer__mlyze_find(live, hash, from[i].address);
        }
        *slot = from[i];
        live->used++;
    }
    return COFFER_OK;
}

#define MOVED_AT_ONCE ((size_t)4096) /* slots */

/* Moves all slots in place, from the end to the beginning: no home is before the old one. What is taken out
 * at once begins after a bucket with an empty slot, so that nothing in it belongs before it. */
static coffer_status spread(coffer__mlyze_live *live, size_t end, coffer_error *err)
{
    coffer__mlyze_slot *moved = NULL;
    size_t room = 0;
    coffer_status status = COFFER_OK;
    live->used = 0;
    while (!status && end > 0) {
        size_t begin = end > MOVED_AT_ONCE ? end - MOVED_AT_ONCE : 0;
        while (begin > 0 && coffer__mlyze_hits(&live->slots[begin - COFFER__MLYZE_BUCKET], 0) == 0)
            begin -= COFFER__MLYZE_BUCKET;
        const size_t count = end - begin;
        if (count > room) {
            coffer__free(moved);
            moved = coffer__alloc_array(count, SLOT_SIZE);
            room = count;
        }
        if (!moved) {
            status = coffer__fail_no_memory(err, count * SLOT_SIZE);
            break;
        }
        memcpy(moved, live->slots + begin, count * SLOT_SIZE);
        memset(live->slots + begin, 0, count * SLOT_SIZE);
        status = put_slots(live, moved, count, err);
        end = begin;
    }
    coffer__free(moved);
    return status;
}

/* Removes dead slots, and makes the table larger when too little room remains. */
static coffer_status grow(coffer__mlyze_live *live, coffer_error *err)
{
    const size_t staying = live->remember ? live->used : live->live, end = live->capacity;
    const size_t wanted = staying < live->roomy ? 2 * staying : staying + staying / 4;
    size_t buckets = wanted / COFFER__MLYZE_BUCKET + 1;
    if (buckets < FIRST_BUCKETS)
        buckets = FIRST_BUCKETS;
    if (buckets < live->bucket_count)
        buckets = live->bucket_count;
    if (buckets >= UINT32_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%zu live blocks in one table",
                            live->live);
    const size_t homes = buckets * COFFER__MLYZE_BUCKET;
    coffer_status status = extend(live, homes + OVERHANG, err);
    if (status)
        return status;
    live->bucket_count = buckets;
    live->max_used = homes - (staying < live->roomy ? homes / 4 : homes / 10);
    return spread(live, end, err);
}

/* ---- Blocks ---- */

coffer_status coffer__mlyze_live_put(coffer__mlyze_put *what, coffer__mlyze_live *live, uint64_t hash,
                                     uint64_t address, const coffer__mlyze_held *block,
                                     coffer__mlyze_held *old, coffer_error *err)
{
    coffer_status status = live->used >= live->max_used ? grow(live, err) : COFFER_OK;
    if (status)
        return status;
    coffer__mlyze_slot *slot = coffer__mlyze_find(live, hash, address);
    if (slot >= live->end) {
        status = extend(live, live->capacity + OVERHANG, err);
        if (status)
            return status;
        slot = coffer__mlyze_find(live, hash, address);
    }
    const bool is_empty = slot->address == 0;
    if (slot->address != address) {
        *what = COFFER__MLYZE_PUT_NEW;
    } else if (coffer__mlyze_is_dead(slot)) {
        *what = COFFER__MLYZE_PUT_AGAIN;
    } else {
        *what = COFFER__MLYZE_PUT_REPLACED;
        unpack(old, live, slot);
        release_wide(live, slot);
    }
    coffer__mlyze_slot packed = { .address = address };
    status = pack(&packed, live, block, err);
    if (status)
        return status;
    live->used += is_empty;
    live->live += *what != COFFER__MLYZE_PUT_REPLACED;
    *slot = packed;
    return COFFER_OK;
}

bool coffer__mlyze_live_take(coffer__mlyze_held *out, coffer__mlyze_live *live, uint64_t hash,
                             uint64_t address)
{
    coffer__mlyze_slot *slot = coffer__mlyze_find(live, hash, address);
    if (slot->address != address || coffer__mlyze_is_dead(slot))
        return false;
    unpack(out, live, slot);
    release_wide(live, slot);
    coffer__mlyze_empty_slot(live, slot);
    return true;
}

void coffer__mlyze_live_each(const coffer__mlyze_live *live,
                             void (*visit)(void *context, const coffer__mlyze_held *block), void *context)
{
    for (const coffer__mlyze_slot *slot = live->slots; slot != live->end; slot++) {
        coffer__mlyze_held block;
        if (slot->address == 0 || coffer__mlyze_is_dead(slot))
            continue;
        unpack(&block, live, slot);
        visit(context, &block);
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
            coffer__mlyze_prefetch(live, hash);
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
    const coffer__mlyze_slot *slot = coffer__mlyze_find(table, hash, address);
    if (address == 0 || slot->address != address || coffer__mlyze_is_dead(slot))
        return false;
    coffer__mlyze_held held;
    unpack(&held, table, slot);
    give_block(out, &held);
    return true;
}

uint64_t coffer_mlyze_live_count(const coffer_mlyze_live *live)
{
    return live->table.live;
}
