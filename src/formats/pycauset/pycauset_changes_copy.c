/* A list of changes that lives on when the caller's is gone. */
#include "formats/pycauset/pycauset_changes.h"

#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

/* Depth is bounded by COFFER__PYCAUSET_MAX_DEPTH. False: no memory. */
static bool copy_value(coffer_pycauset_value *out, const coffer_pycauset_value *from, coffer__arena *memory)
{
    *out = *from;
    out->room = 0;
    if (from->key && !(out->key = coffer__arena_text(memory, from->key, from->key_len)))
        return false;
    if (from->kind == COFFER_PYCAUSET_STRING || from->kind == COFFER_PYCAUSET_BYTES)
        return (out->as.text = coffer__arena_text(memory, from->as.text, from->count)) != NULL;
    if (from->kind != COFFER_PYCAUSET_ARRAY && from->kind != COFFER_PYCAUSET_MAP)
        return true;
    coffer_pycauset_value *children = coffer__arena_take(memory, from->count * sizeof *children);
    if (!children)
        return false;
    for (uint32_t i = 0; i < from->count; i++) {
        if (!copy_value(&children[i], &from->as.children[i], memory))
            return false;
    }
    out->as.children = children;
    return true;
}

static bool copy_change(coffer__pycauset_change *out, const coffer__pycauset_change *from,
                        coffer__arena *memory)
{
    coffer__pycauset_key *path = coffer__arena_take(memory, from->steps * sizeof *path);
    if (!path)
        return false;
    for (size_t i = 0; i < from->steps; i++) {
        path[i] = from->path[i];
        path[i].text = coffer__arena_text(memory, from->path[i].text, from->path[i].len);
        if (!path[i].text)
            return false;
    }
    *out = *from;
    out->path = path;
    return copy_value(&out->value, &from->value, memory);
}

coffer_status coffer__pycauset_changes_copy(coffer_pycauset_changes **out,
                                            const coffer_pycauset_changes *changes, coffer_error *err)
{
    coffer_pycauset_changes *copy = NULL;
    coffer_status status = coffer_pycauset_changes_new(&copy, err);
    if (status)
        return status;
    copy->system = changes->system;
    copy->items = coffer__alloc_array(changes->count, sizeof *copy->items);
    bool whole = copy->items != NULL;
    for (size_t i = 0; i < changes->count && whole; i++)
        whole = copy_change(&copy->items[i], &changes->items[i], &copy->memory);
    if (!whole) {
        coffer_pycauset_changes_free(copy);
        return coffer__fail_no_memory(err, changes->count * sizeof *copy->items);
    }
    copy->count = copy->capacity = changes->count;
    *out = copy;
    return COFFER_OK;
}
