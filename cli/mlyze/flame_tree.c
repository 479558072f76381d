#include "flame_tree.h"

#include "base/arena.h"
#include "base/array.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct flame_tree {
    flame_node *nodes;
    size_t count, capacity;
    uint32_t *slots; /* hash of (parent, frame) to node; a power of two */
    size_t slot_count;
    uint32_t depth;
    coffer__arena names;
    const coffer_mlyze *trace;
    flame_settings settings;
};

const flame_node *flame_tree_at(const flame_tree *tree, uint32_t index)
{
    return &tree->nodes[index];
}

uint32_t flame_tree_depth(const flame_tree *tree)
{
    return tree->depth;
}

void flame_tree_free(flame_tree *tree)
{
    if (!tree)
        return;
    coffer__arena_free(&tree->names);
    coffer__free(tree->slots);
    coffer__free(tree->nodes);
    coffer__free(tree);
}

uint32_t flame_first(const flame_tree *tree)
{
    return tree->count ? 0 : FLAME_NONE;
}

uint32_t flame_next(const flame_tree *tree, uint32_t index)
{
    if (tree->nodes[index].first_child != FLAME_NONE)
        return tree->nodes[index].first_child;
    while (index != FLAME_NONE && tree->nodes[index].next_sibling == FLAME_NONE)
        index = tree->nodes[index].parent;
    return index == FLAME_NONE ? FLAME_NONE : tree->nodes[index].next_sibling;
}

/* ---- Finding a child ---- */

typedef struct frame_key {
    uint64_t parent, func_id, file_id, line;
} frame_key;

static frame_key key_of(const flame_tree *tree, uint32_t parent, const coffer_mlyze_frame *frame)
{
    return (frame_key){ parent, frame->func_id, frame->file_id, tree->settings.lines ? frame->line : 0 };
}

static uint32_t *slot_of(const flame_tree *tree, const frame_key *key)
{
    size_t mask = tree->slot_count - 1, at = (size_t)coffer__hash(key, sizeof *key) & mask;
    for (;; at = (at + 1) & mask) {
        uint32_t index = tree->slots[at];
        if (index == FLAME_NONE)
            return &tree->slots[at];
        frame_key other = key_of(tree, tree->nodes[index].parent, &tree->nodes[index].frame);
        if (memcmp(&other, key, sizeof other) == 0)
            return &tree->slots[at];
    }
}

static coffer_status grow_slots(flame_tree *tree, coffer_error *err)
{
    size_t old_count = tree->slot_count, count = old_count ? 2 * old_count : 1024;
    uint32_t *old = tree->slots, *slots = coffer__alloc_array(count, sizeof *slots);
    if (!slots)
        return coffer__fail_no_memory(err, count * sizeof *slots);
    memset(slots, 0xff, count * sizeof *slots);
    tree->slots = slots;
    tree->slot_count = count;
    for (size_t i = 1; i < tree->count; i++) {
        frame_key key = key_of(tree, tree->nodes[i].parent, &tree->nodes[i].frame);
        *slot_of(tree, &key) = (uint32_t)i;
    }
    coffer__free(old);
    return COFFER_OK;
}

static const char *name_of(flame_tree *tree, const coffer_mlyze_frame *frame)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    if (tree->settings.lines)
        trace_put_frame(&text, tree->trace, frame);
    else
        trace_put_function(&text, tree->trace, frame);
    const char *name = text.failed ? NULL : coffer__arena_text(&tree->names, (char *)text.data, text.len);
    coffer__buffer_free(&text);
    return name;
}

static coffer_status add_node(uint32_t *out, flame_tree *tree, uint32_t parent,
                              const coffer_mlyze_frame *frame, const char *name, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&tree->nodes, &tree->capacity, tree->count, sizeof *tree->nodes, err);
    if (status != COFFER_OK)
        return status;
    if (!name)
        return coffer__fail_no_memory(err, 0);
    flame_node *node = &tree->nodes[tree->count];
    *node = (flame_node){ .parent = parent, .first_child = FLAME_NONE, .next_sibling = FLAME_NONE };
    node->name = name;
    node->frame = *frame;
    if (parent != FLAME_NONE) {
        node->depth = tree->nodes[parent].depth + 1;
        node->next_sibling = tree->nodes[parent].first_child;
        tree->nodes[parent].first_child = (uint32_t)tree->count;
        tree->nodes[parent].child_count++;
    }
    tree->depth = node->depth > tree->depth ? node->depth : tree->depth;
    *out = (uint32_t)tree->count++;
    return COFFER_OK;
}

static coffer_status find_child(uint32_t *out, flame_tree *tree, uint32_t parent,
                                const coffer_mlyze_frame *frame, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (2 * tree->count >= tree->slot_count)
        status = grow_slots(tree, err);
    if (status != COFFER_OK)
        return status;
    frame_key key = key_of(tree, parent, frame);
    uint32_t *slot = slot_of(tree, &key);
    if (*slot == FLAME_NONE) {
        if (tree->count >= FLAME_NONE)
            return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than 2^32 frames to draw");
        status = add_node(out, tree, parent, frame, name_of(tree, frame), err);
        if (status == COFFER_OK)
            *slot = *out;
        return status;
    }
    *out = *slot;
    return COFFER_OK;
}

/* ---- Adding stacks ---- */

static void count(flame_node *node, trace_amount amount)
{
    node->amount.bytes += amount.bytes;
    node->amount.count += amount.count;
}

static coffer_status add_stack(flame_tree *tree, const coffer_mlyze_stack_row *row, coffer_error *err)
{
    static const coffer_mlyze_frame unknown = { UINT64_MAX, 0, UINT64_MAX };
    trace_amount amount = trace_amount_of(row, tree->settings.measure);
    size_t depth = 0;
    const coffer_mlyze_frame *frames = NULL;
    uint32_t at = 0;
    coffer_status status = COFFER_OK;
    if (row->stack != SIZE_MAX)
        frames = coffer_mlyze_frames(&depth, tree->trace, row->stack);
    if (depth == 0) {
        frames = &unknown;
        depth = 1;
    }
    count(&tree->nodes[0], amount);
    for (size_t i = 0; i < depth && i < FLAME_DEEPEST; i++) {
        const coffer_mlyze_frame *frame = &frames[tree->settings.inverted ? i : depth - 1 - i];
        status = find_child(&at, tree, at, frame, err);
        if (status != COFFER_OK)
            return status;
        count(&tree->nodes[at], amount);
    }
    tree->nodes[at].own_bytes += amount.bytes;
    return status;
}

/* ---- Order ---- */

static int compare_children(const void *left, const void *right, void *context)
{
    const flame_tree *tree = context;
    const flame_node *a = &tree->nodes[*(const uint32_t *)left], *b = &tree->nodes[*(const uint32_t *)right];
    if (a->amount.bytes != b->amount.bytes)
        return a->amount.bytes < b->amount.bytes ? 1 : -1;
    int order = strcmp(a->name, b->name);
    return order ? order : (*(const uint32_t *)left > *(const uint32_t *)right) ? 1 : -1;
}

static coffer_status sort_children(flame_tree *tree, coffer_error *err)
{
    uint32_t *order = coffer__alloc_array(tree->count, sizeof *order);
    if (!order)
        return coffer__fail_no_memory(err, tree->count * sizeof *order);
    for (size_t i = 0; i < tree->count; i++) {
        size_t n = 0;
        for (uint32_t child = tree->nodes[i].first_child; child != FLAME_NONE;
             child = tree->nodes[child].next_sibling)
            order[n++] = child;
        qsort_r(order, n, sizeof *order, compare_children, tree);
        uint32_t next = FLAME_NONE;
        while (n-- > 0) {
            tree->nodes[order[n]].next_sibling = next;
            next = order[n];
        }
        tree->nodes[i].first_child = next;
    }
    coffer__free(order);
    return COFFER_OK;
}

coffer_status flame_tree_new(flame_tree **out, const coffer_mlyze *trace, const coffer_mlyze_stats *analysis,
                             const flame_settings *settings, coffer_error *err)
{
    static const coffer_mlyze_frame nowhere = { UINT64_MAX, 0, UINT64_MAX };
    flame_tree *tree = coffer__calloc(1, sizeof *tree);
    uint32_t root;
    if (!tree)
        return coffer__fail_no_memory(err, sizeof *tree);
    tree->trace = trace;
    tree->settings = *settings;
    coffer_status status = add_node(&root, tree, FLAME_NONE, &nowhere, "all", err);
    for (size_t i = 0; status == COFFER_OK && i < coffer_mlyze_stats_stack_count(analysis); i++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(analysis, i);
        if (trace_amount_of(row, settings->measure).count)
            status = add_stack(tree, row, err);
    }
    if (status == COFFER_OK)
        status = sort_children(tree, err);
    if (status != COFFER_OK) {
        flame_tree_free(tree);
        return status;
    }
    *out = tree;
    return COFFER_OK;
}
