#include "formats/mlyze/write/mlyze_intern.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <string.h>

/* ---- Names ---- */

static const coffer__mlyze_pool_name *name_of_id(const coffer__mlyze_name_pool *names, uint64_t id)
{
    if (id < names->count && names->items[id].id == id)
        return &names->items[id];
    coffer__table_probe probe = coffer__table_begin(&names->by_id, coffer__hash(&id, sizeof id));
    for (uint32_t found; (found = coffer__table_next(&probe)) != COFFER__TABLE_NONE;) {
        if (names->items[found].id == id)
            return &names->items[found];
    }
    return NULL;
}

static const coffer__mlyze_pool_name *name_of_text(const coffer__mlyze_name_pool *names, const char *text,
                                                   size_t len, uint64_t hash)
{
    coffer__table_probe probe = coffer__table_begin(&names->by_text, hash);
    for (uint32_t found; (found = coffer__table_next(&probe)) != COFFER__TABLE_NONE;) {
        const coffer__mlyze_pool_name *name = &names->items[found];
        if (name->len == len && memcmp(name->text, text, len) == 0)
            return name;
    }
    return NULL;
}

static coffer_status append_name(coffer__mlyze_name_pool *names, uint64_t id, const char *text, size_t len,
                                 uint64_t hash, coffer_error *err)
{
    coffer__mlyze_pool_name name = { id, NULL, len };
    coffer_status status =
        coffer__array_reserve_one(&names->items, &names->capacity, names->count, sizeof name, err);
    if (!status)
        status = coffer__table_reserve(&names->by_text, names->count + 1, err);
    if (!status)
        status = coffer__table_reserve(&names->by_id, names->by_id.count + 1, err);
    if (status)
        return status;
    name.text = coffer__arena_text(&names->texts, text, len);
    if (!name.text)
        return coffer__fail_no_memory(err, len + 1);
    status = coffer__table_add(&names->by_text, hash, names->count, err);
    if (!status && id != names->count)
        status = coffer__table_add(&names->by_id, coffer__hash(&id, sizeof id), names->count, err);
    if (!status)
        names->items[names->count++] = name;
    return status;
}

coffer_status coffer__mlyze_name_pool_add(uint64_t *id, coffer__mlyze_name_pool *names, const char *text,
                                          size_t len, coffer_error *err)
{
    uint64_t hash = coffer__hash(text, len);
    const coffer__mlyze_pool_name *found = name_of_text(names, text, len, hash);
    if (found) {
        *id = found->id;
        return COFFER_OK;
    }
    while (name_of_id(names, names->next_id))
        names->next_id++;
    coffer_status status = append_name(names, names->next_id, text, len, hash, err);
    if (!status)
        *id = names->next_id++;
    return status;
}

coffer_status coffer__mlyze_name_pool_add_id(coffer__mlyze_name_pool *names, uint64_t id, const char *text,
                                             size_t len, const char *what, coffer_error *err)
{
    const coffer__mlyze_pool_name *old = name_of_id(names, id);
    if (!old)
        return append_name(names, id, text, len, coffer__hash(text, len), err);
    if (old->len == len && memcmp(old->text, text, len) == 0)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                        "%s %" PRIu64 " is \"%.60s\" and cannot be \"%.60s\" too", what, id, old->text, text);
}

void coffer__mlyze_name_pool_free(coffer__mlyze_name_pool *names)
{
    coffer__free(names->items);
    coffer__table_free(&names->by_text);
    coffer__table_free(&names->by_id);
    coffer__arena_free(&names->texts);
    *names = (coffer__mlyze_name_pool){ 0 };
}

/* ---- Stacks ---- */

static uint64_t hash_call(uint32_t caller, const coffer_mlyze_frame *frame)
{
    uint64_t words[4] = { frame->file_id, frame->line, frame->func_id, caller };
    return coffer__hash(words, sizeof words);
}

static bool same_call(const coffer__mlyze_pool_call *call, uint32_t caller, const coffer_mlyze_frame *frame)
{
    return call->caller == caller && call->frame.line == frame->line &&
           call->frame.func_id == frame->func_id && call->frame.file_id == frame->file_id;
}

coffer_status coffer__mlyze_stack_pool_call(uint32_t *out, coffer__mlyze_stack_pool *stacks, uint32_t caller,
                                            const coffer_mlyze_frame *frame, coffer_error *err)
{
    uint64_t hash = hash_call(caller, frame);
    coffer__table_probe probe = coffer__table_begin(&stacks->by_call, hash);
    for (uint32_t found; (found = coffer__table_next(&probe)) != COFFER__TABLE_NONE;) {
        if (same_call(&stacks->calls[found], caller, frame)) {
            *out = found + 1;
            return COFFER_OK;
        }
    }
    coffer_status status = coffer__array_reserve_one(&stacks->calls, &stacks->call_capacity,
                                                     stacks->call_count, sizeof *stacks->calls, err);
    if (!status)
        status = coffer__table_add(&stacks->by_call, hash, stacks->call_count, err);
    if (status)
        return status;
    uint32_t depth = caller ? stacks->calls[caller - 1].depth + 1 : 1;
    stacks->calls[stacks->call_count] =
        (coffer__mlyze_pool_call){ .frame = *frame, .caller = caller, .depth = depth };
    *out = (uint32_t)++stacks->call_count;
    return COFFER_OK;
}

coffer_status coffer__mlyze_stack_pool_path(uint32_t *out, coffer__mlyze_stack_pool *stacks,
                                            const coffer_mlyze_frame *frames, size_t depth, coffer_error *err)
{
    uint32_t call = 0;
    while (depth > 0) {
        coffer_status status = coffer__mlyze_stack_pool_call(&call, stacks, call, &frames[--depth], err);
        if (status)
            return status;
    }
    *out = call;
    return COFFER_OK;
}

coffer__mlyze_pool_stack *coffer__mlyze_stack_pool_find(const coffer__mlyze_stack_pool *stacks, uint64_t id)
{
    if (id < stacks->count && stacks->items[id].id == id)
        return &stacks->items[id];
    coffer__table_probe probe = coffer__table_begin(&stacks->by_id, coffer__hash(&id, sizeof id));
    for (uint32_t found; (found = coffer__table_next(&probe)) != COFFER__TABLE_NONE;) {
        if (stacks->items[found].id == id)
            return &stacks->items[found];
    }
    return NULL;
}

static coffer_status append_stack(coffer__mlyze_stack_pool *stacks, uint64_t id, uint32_t call, bool listed,
                                  coffer_error *err)
{
    uint32_t *first = call ? &stacks->calls[call - 1].stack : &stacks->empty;
    coffer_status status = coffer__array_reserve_one(&stacks->items, &stacks->capacity, stacks->count,
                                                     sizeof *stacks->items, err);
    if (status)
        return status;
    if (stacks->count >= UINT32_MAX - 1)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a trace cannot have more than %zu stacks", stacks->count);
    if (id != stacks->count)
        status = coffer__table_add(&stacks->by_id, coffer__hash(&id, sizeof id), stacks->count, err);
    if (status)
        return status;
    stacks->items[stacks->count++] = (coffer__mlyze_pool_stack){ id, call, listed };
    stacks->unlisted += !listed;
    if (*first == 0)
        *first = (uint32_t)stacks->count;
    return COFFER_OK;
}

static void list(coffer__mlyze_stack_pool *stacks, coffer__mlyze_pool_stack *stack, bool listed)
{
    stacks->unlisted -= listed && !stack->listed;
    stack->listed |= listed;
}

coffer_status coffer__mlyze_stack_pool_id(uint64_t *id, coffer__mlyze_stack_pool *stacks, uint32_t call,
                                          bool listed, coffer_error *err)
{
    uint32_t first = call ? stacks->calls[call - 1].stack : stacks->empty;
    if (first) {
        list(stacks, &stacks->items[first - 1], listed);
        *id = stacks->items[first - 1].id;
        return COFFER_OK;
    }
    while (coffer__mlyze_stack_pool_find(stacks, stacks->next_id))
        stacks->next_id++;
    coffer_status status = append_stack(stacks, stacks->next_id, call, listed, err);
    if (!status)
        *id = stacks->next_id++;
    return status;
}

coffer_status coffer__mlyze_stack_pool_add_id(coffer__mlyze_stack_pool *stacks, uint64_t id, uint32_t call,
                                              bool listed, coffer_error *err)
{
    coffer__mlyze_pool_stack *old = coffer__mlyze_stack_pool_find(stacks, id);
    if (!old)
        return append_stack(stacks, id, call, listed, err);
    if (old->call != call)
        return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                            "stack %" PRIu64 " already exists with other frames", id);
    list(stacks, old, listed);
    return COFFER_OK;
}

void coffer__mlyze_stack_pool_free(coffer__mlyze_stack_pool *stacks)
{
    coffer__free(stacks->calls);
    coffer__free(stacks->items);
    coffer__table_free(&stacks->by_call);
    coffer__table_free(&stacks->by_id);
    *stacks = (coffer__mlyze_stack_pool){ 0 };
}

void coffer__mlyze_pools_free(coffer__mlyze_pools *tables)
{
    coffer__mlyze_name_pool_free(&tables->files);
    coffer__mlyze_name_pool_free(&tables->functions);
    coffer__mlyze_stack_pool_free(&tables->stacks);
}
