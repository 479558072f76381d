#include "outside/profiles/triples.h"

#include "base/array.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"

#define FIRST_SLOTS 256

static size_t slot_of(const coffer__triples *triples, const coffer__triple *item)
{
    return (size_t)coffer__hash(item, sizeof *item) & (triples->slot_count - 1);
}

static bool equal(const coffer__triple *a, const coffer__triple *b)
{
    return a->a == b->a && a->b == b->b && a->c == b->c;
}

static coffer_status grow(coffer__triples *triples, coffer_error *err)
{
    size_t slot_count = triples->slot_count ? triples->slot_count * 2 : FIRST_SLOTS;
    if (triples->count >= UINT32_MAX - 1)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %zu different items",
                            triples->count);
    uint32_t *slots = coffer__calloc(slot_count, sizeof *slots);
    if (!slots)
        return coffer__fail_no_memory(err, slot_count * sizeof *slots);
    coffer__free(triples->slots);
    triples->slots = slots;
    triples->slot_count = slot_count;
    for (size_t i = 0; i < triples->count; i++) {
        size_t slot = slot_of(triples, &triples->items[i]);
        while (slots[slot])
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = (uint32_t)i + 1;
    }
    return COFFER_OK;
}

coffer_status coffer__triples_add(size_t *place, bool *is_new, coffer__triples *triples, coffer__triple item,
                                  coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (triples->count >= triples->slot_count / 2)
        status = grow(triples, err);
    if (status)
        return status;
    size_t slot = slot_of(triples, &item);
    for (; triples->slots[slot]; slot = (slot + 1) & (triples->slot_count - 1)) {
        *place = triples->slots[slot] - 1;
        if (equal(&triples->items[*place], &item)) {
            *is_new = false;
            return COFFER_OK;
        }
    }
    status = coffer__array_reserve_one(&triples->items, &triples->capacity, triples->count,
                                       sizeof *triples->items, err);
    if (status)
        return status;
    *place = triples->count;
    *is_new = true;
    triples->items[triples->count++] = item;
    triples->slots[slot] = (uint32_t)triples->count;
    return COFFER_OK;
}

void coffer__triples_free(coffer__triples *triples)
{
    coffer__free(triples->items);
    coffer__free(triples->slots);
}
