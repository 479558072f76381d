#include "formats/mlyze/analyze/mlyze_survivors.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_pass.h"

static coffer_status charge(coffer__mlyze_budget *budget, size_t bytes, coffer_error *err)
{
    if (atomic_fetch_add(&budget->used, bytes) + bytes <= budget->max)
        return COFFER_OK;
    atomic_fetch_sub(&budget->used, bytes);
    atomic_store(&budget->exceeded, true);
    return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "the live blocks do not fit into %zu bytes",
                        budget->max);
}

static void drop(coffer__mlyze_survivors *survivors, coffer__mlyze_generation *from)
{
    atomic_fetch_sub(&survivors->budget->used, from->charged);
    coffer__free(from->items);
    *from = (coffer__mlyze_generation){ .last = from->last };
}

void coffer__mlyze_survivors_free(coffer__mlyze_survivors *survivors)
{
    for (size_t i = 0; i < survivors->count; i++)
        drop(survivors, &survivors->items[i]);
    coffer__free(survivors->items);
    survivors->items = NULL;
    survivors->count = 0;
}

coffer_status coffer__mlyze_survivors_add(coffer__mlyze_held **out, coffer__mlyze_survivors *survivors,
                                          size_t count, coffer_error *err)
{
    coffer__mlyze_generation made = { .count = count, .charged = count * sizeof *made.items };
    coffer_status status = coffer__array_reserve_one(&survivors->items, &survivors->capacity,
                                                     survivors->count, sizeof *survivors->items, err);
    if (!status)
        status = charge(survivors->budget, made.charged, err);
    if (status)
        return status;
    made.items = coffer__alloc_array(count, sizeof *made.items);
    if (!made.items) {
        atomic_fetch_sub(&survivors->budget->used, made.charged);
        return coffer__fail_no_memory(err, made.charged);
    }
    survivors->items[survivors->count++] = made;
    *out = made.items;
    return COFFER_OK;
}

/* Removes the dead ones when they are a quarter, so that memory stays close to what is live. */
static void compact(coffer__mlyze_survivors *survivors, coffer__mlyze_generation *from)
{
    size_t kept = 0;
    if (from->dead * 4 < from->count || from->dead == 0)
        return;
    for (size_t i = 0; i < from->count; i++) {
        from->items[kept] = from->items[i];
        kept += from->items[i].stack != COFFER__MLYZE_NO_ROW;
    }
    if (kept == 0) {
        drop(survivors, from);
        return;
    }
    coffer__mlyze_held *smaller = coffer__realloc(from->items, kept * sizeof *smaller);
    from->items = smaller ? smaller : from->items;
    atomic_fetch_sub(&survivors->budget->used, from->charged - kept * sizeof *smaller);
    from->charged = kept * sizeof *smaller;
    from->count = kept;
    from->dead = 0;
}

/* The first one from `at` on whose number is not smaller. Steps double, because the next is mostly near. */
static size_t gallop(const coffer__mlyze_generation *in, size_t at, uint64_t number)
{
    size_t step = 1, high = at;
    while (high < in->count && in->items[high].order < number) {
        at = high + 1;
        high += step;
        step *= 2;
    }
    high = high < in->count ? high : in->count;
    while (at < high) {
        size_t middle = at + (high - at) / 2;
        if (in->items[middle].order < number)
            at = middle + 1;
        else
            high = middle;
    }
    return at;
}

bool coffer__mlyze_survivors_take(coffer__mlyze_held *out, coffer__mlyze_survivors *survivors,
                                  const uint64_t *numbers, size_t count)
{
    size_t which = 0, at = 0;
    for (size_t i = 0; i < survivors->count; i++) {
        coffer__mlyze_generation *from = &survivors->items[i];
        if (from->count > 0)
            from->last = from->items[from->count - 1].order;
    }
    for (size_t i = 0; i < count; i++) {
        for (; which < survivors->count && survivors->items[which].last < numbers[i]; which++, at = 0)
            compact(survivors, &survivors->items[which]);
        if (which == survivors->count)
            return false;
        coffer__mlyze_generation *from = &survivors->items[which];
        at = gallop(from, at, numbers[i]);
        if (at == from->count || from->items[at].order != numbers[i] ||
            from->items[at].stack == COFFER__MLYZE_NO_ROW)
            return false;
        out[i] = from->items[at];
        from->items[at].stack = COFFER__MLYZE_NO_ROW;
        from->dead++;
    }
    if (which < survivors->count)
        compact(survivors, &survivors->items[which]);
    return true;
}

/* ---- Blocks of an archive ---- */

coffer_status coffer__mlyze_begin_names(coffer__mlyze_pass *pass, const coffer__mlyze_chapter *chapter,
                                        coffer_error *err)
{
    coffer__mlyze_named *named = &pass->named;
    size_t names = (size_t)chapter->import_count + chapter->alloc_count;
    if (named->capacity < names) {
        coffer__free(named->blocks);
        named->capacity = 0;
        named->blocks = coffer__alloc_array(names, sizeof *named->blocks);
        if (!named->blocks)
            return coffer__fail_no_memory(err, names * sizeof *named->blocks);
        named->capacity = names;
    }
    named->failed |= chapter->first_alloc != pass->state.alloc_count ||
                     !coffer__mlyze_survivors_take(named->blocks, &named->survivors,
                                                   chapter->unpacker->values, chapter->import_count);
    return COFFER_OK;
}

static bool is_live(const coffer__mlyze_unpacker *unpacker, uint32_t name)
{
    return unpacker->classes[name] != COFFER__MLYZE_CLASS_GONE;
}

coffer_status coffer__mlyze_end_names(coffer__mlyze_pass *pass, const coffer__mlyze_chapter *chapter,
                                      coffer_error *err)
{
    const coffer__mlyze_unpacker *unpacker = chapter->unpacker;
    coffer__mlyze_held *kept = NULL;
    size_t live = 0;
    for (uint32_t i = 0; i < unpacker->known; i++)
        live += is_live(unpacker, i);
    if (live == 0)
        return COFFER_OK;
    coffer_status status = coffer__mlyze_survivors_add(&kept, &pass->named.survivors, live, err);
    for (uint32_t i = 0; i < unpacker->known && !status; i++) {
        if (is_live(unpacker, i))
            *kept++ = pass->named.blocks[i];
    }
    return status;
}
