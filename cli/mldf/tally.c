#include "mldf/tally.h"

#include "base/memory.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

static tally_count *slot_of(tally_count *slots, size_t capacity, uint64_t value)
{
    uint64_t hash = value * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) & (capacity - 1);
    while (slots[at].count > 0 && slots[at].value != value)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static bool grow(tally *counts)
{
    size_t capacity = counts->capacity ? 2 * counts->capacity : FIRST_CAPACITY;
    tally_count *slots = coffer__calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < counts->capacity; i++)
        if (counts->slots[i].count > 0)
            *slot_of(slots, capacity, counts->slots[i].value) = counts->slots[i];
    coffer__free(counts->slots);
    counts->slots = slots;
    counts->capacity = capacity;
    return true;
}

void tally_add(tally *counts, uint64_t value, uint64_t where)
{
    if (counts->overflowed)
        return;
    if (2 * counts->used >= counts->capacity && (counts->used >= TALLY_MAX || !grow(counts))) {
        counts->overflowed = true;
        return;
    }
    tally_count *slot = slot_of(counts->slots, counts->capacity, value);
    if (slot->count == 0) {
        counts->used++;
        slot->first = where;
    }
    slot->value = value;
    slot->count++;
}

static int compare(const void *a, const void *b)
{
    const tally_count *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return ((int64_t)x->value > (int64_t)y->value) - ((int64_t)x->value < (int64_t)y->value);
}

void tally_sort(tally *counts)
{
    size_t kept = 0;
    for (size_t i = 0; i < counts->capacity; i++)
        if (counts->slots[i].count > 0)
            counts->slots[kept++] = counts->slots[i];
    if (kept > 0)
        qsort(counts->slots, kept, sizeof *counts->slots, compare);
    counts->capacity = kept;
}

void tally_free(tally *counts)
{
    coffer__free(counts->slots);
    *counts = (tally){ NULL, 0, 0, false };
}
