#include "formats/mlyze/write/mlyze_intern_slots.h"

#include "base/fail.h"
#include "base/memory.h"

#define FIRST_SIZE 64

static void place(coffer__mlyze_slot *slots, size_t size, coffer__mlyze_slot slot)
{
    size_t at = slot.hash & (size - 1);
    while (slots[at].position)
        at = (at + 1) & (size - 1);
    slots[at] = slot;
}

coffer_status coffer__mlyze_slots_reserve(coffer__mlyze_slots *slots, coffer_error *err)
{
    if (slots->used < slots->size / 2)
        return COFFER_OK;
    if (slots->used >= COFFER__MLYZE_POSITIONS - 1)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a trace cannot have more than %zu names or frames", slots->used);
    size_t size = slots->size ? slots->size * 2 : FIRST_SIZE;
    coffer__mlyze_slot *larger = coffer__calloc(size, sizeof *larger);
    if (!larger)
        return coffer__fail_no_memory(err, size * sizeof *larger);
    for (size_t i = 0; i < slots->size; i++) {
        if (slots->slots[i].position)
            place(larger, size, slots->slots[i]);
    }
    coffer__free(slots->slots);
    slots->slots = larger;
    slots->size = size;
    return COFFER_OK;
}

void coffer__mlyze_slots_insert(coffer__mlyze_slots *slots, uint32_t hash, size_t position)
{
    coffer__mlyze_slot slot = { hash, (uint32_t)position + 1 };
    place(slots->slots, slots->size, slot);
    slots->used++;
}

void coffer__mlyze_slots_free(coffer__mlyze_slots *slots)
{
    coffer__free(slots->slots);
    *slots = (coffer__mlyze_slots){ 0 };
}
