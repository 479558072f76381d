/* A tree put together from pieces becomes one of its own, as if it had been decoded. */
#include "formats/pycauset/pycauset_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

typedef struct extent {
    uint64_t values, text_bytes;
    uint32_t depth;
} extent;

static bool has_children(const coffer_pycauset_value *value)
{
    return value->kind == COFFER_PYCAUSET_ARRAY || value->kind == COFFER_PYCAUSET_MAP;
}

static bool has_text(const coffer_pycauset_value *value)
{
    return value->kind == COFFER_PYCAUSET_STRING || value->kind == COFFER_PYCAUSET_BYTES;
}

/* Stops where the limit is passed: what is deeper does not matter any more. */
static void measure(extent *out, const coffer_pycauset_value *value, uint32_t depth)
{
    out->values++;
    if (depth > out->depth)
        out->depth = depth;
    if (has_text(value))
        out->text_bytes += (uint64_t)value->count + 1;
    if (!has_children(value) || depth > COFFER__PYCAUSET_MAX_DEPTH)
        return;
    for (uint32_t i = 0; i < value->count; i++) {
        if (value->kind == COFFER_PYCAUSET_MAP)
            out->text_bytes += (uint64_t)value->as.children[i].key_len + 1;
        measure(out, &value->as.children[i], depth + 1);
    }
}

static const char *copy_text(char **next, const char *text, size_t len)
{
    char *own = *next;
    memcpy(own, text, len);
    own[len] = '\0';
    *next += len + 1;
    return own;
}

static void copy(coffer_pycauset_value *to, coffer_pycauset_value **next, char **next_text)
{
    if (has_text(to))
        to->as.text = copy_text(next_text, to->as.text, to->count);
    if (!has_children(to) || to->count == 0)
        return;
    coffer_pycauset_value *children = *next;
    *next += to->count;
    memcpy(children, to->as.children, to->count * sizeof *children);
    to->as.children = children;
    for (uint32_t i = 0; i < to->count; i++) {
        if (to->kind == COFFER_PYCAUSET_MAP)
            children[i].key = copy_text(next_text, children[i].key, children[i].key_len);
        copy(&children[i], next, next_text);
    }
}

coffer_status coffer__pycauset_copy(coffer__pycauset_tree *out, const coffer_pycauset_value *root,
                                    const coffer_limits *limits, coffer_error *err)
{
    extent of = { .values = 0 };
    uint64_t values, total;
    size_t bytes;
    measure(&of, root, 0);
    if (of.depth > COFFER__PYCAUSET_MAX_DEPTH)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "values are nested deeper than %d",
                            COFFER__PYCAUSET_MAX_DEPTH);
    if (of.values > limits->entries)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %llu values",
                            (unsigned long long)limits->entries);
    if (!coffer__mul_u64(&values, of.values, sizeof *root) ||
        !coffer__add_u64(&total, values, of.text_bytes) || !coffer__to_size(&bytes, total))
        return coffer__fail_no_memory(err, UINT64_MAX);
    coffer_pycauset_value *own = coffer__malloc(bytes);
    if (!own)
        return coffer__fail_no_memory(err, bytes);
    coffer_pycauset_value *next = own + 1;
    char *next_text = (char *)own + values;
    *own = *root;
    copy(own, &next, &next_text);
    *out = (coffer__pycauset_tree){ own, own, bytes, false };
    return COFFER_OK;
}
