#include "convert/traces/mlyze_tree.h"

#include "base/array.h"
#include "base/fail.h"
#include "base/memory.h"

#include <stdlib.h>

typedef struct stack_leaf {
    const coffer_mlyze_frame *frames; /* innermost first */
    size_t depth;
    uint64_t bytes;
} stack_leaf;

/* Leaves that share their first frames. */
typedef struct stack_branch {
    size_t begin, end;
    uint64_t bytes;
} stack_branch;

typedef struct stack_tree {
    stack_leaf *leaves; /* sorted by their frames */
    size_t leaf_count;
    stack_branch *branches; /* of all levels that are being visited */
    size_t branch_count, branch_capacity;
    size_t max_depth;
    double threshold;
    coffer__mlyze_tree_visit visit;
    void *context;
} stack_tree;

static int compare_frames(const coffer_mlyze_frame *a, const coffer_mlyze_frame *b)
{
    if (a->func_id != b->func_id)
        return a->func_id < b->func_id ? -1 : 1;
    if (a->file_id != b->file_id)
        return a->file_id < b->file_id ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

static int by_frames(const void *left, const void *right)
{
    const stack_leaf *a = left, *b = right;
    for (size_t i = 0; i < a->depth && i < b->depth; i++) {
        int order = compare_frames(&a->frames[i], &b->frames[i]);
        if (order)
            return order;
    }
    return (a->depth > b->depth) - (a->depth < b->depth);
}

static int largest_first(const void *left, const void *right)
{
    const stack_branch *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

static coffer_status collect_leaves(stack_tree *out, const coffer__mlyze_export *export,
                                    coffer_mlyze_measure measure, coffer_error *err)
{
    size_t count = coffer_mlyze_stats_stack_count(export->analysis);
    out->leaves = coffer__alloc_array(count + 1, sizeof *out->leaves);
    if (!out->leaves)
        return coffer__fail_no_memory(err, count * sizeof *out->leaves);
    for (size_t i = 0; i < count; i++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(export->analysis, i);
        stack_leaf *leaf = &out->leaves[out->leaf_count];
        leaf->bytes = coffer__mlyze_row_bytes(row, measure);
        if (leaf->bytes == 0)
            continue;
        leaf->frames = coffer__mlyze_export_frames(&leaf->depth, export, row->stack);
        if (leaf->depth > out->max_depth)
            leaf->depth = out->max_depth;
        out->leaf_count++;
    }
    if (out->leaf_count > 0)
        qsort(out->leaves, out->leaf_count, sizeof *out->leaves, by_frames);
    return COFFER_OK;
}

/* The branches of the leaves [begin, end), which are equal in their first `level` frames, go to the end of
 * the list. Leaves that end at this level have none. */
static coffer_status find_branches(stack_tree *tree, size_t begin, size_t end, size_t level,
                                   coffer_error *err)
{
    const stack_leaf *leaves = tree->leaves;
    while (begin < end && leaves[begin].depth == level)
        begin++;
    while (begin < end) {
        stack_branch found = { begin, begin, 0 };
        while (found.end < end &&
               compare_frames(&leaves[found.end].frames[level], &leaves[begin].frames[level]) == 0)
            found.bytes += leaves[found.end++].bytes;
        coffer_status status = coffer__array_reserve_one(&tree->branches, &tree->branch_capacity,
                                                         tree->branch_count, sizeof *tree->branches, err);
        if (status)
            return status;
        tree->branches[tree->branch_count++] = found;
        begin = found.end;
    }
    return COFFER_OK;
}

/* Goes no deeper than max_depth, at most COFFER__MLYZE_TREE_DEPTH. */
static coffer_status visit_below(stack_tree *tree, size_t begin, size_t end, size_t level, uint64_t bytes,
                                 coffer_error *err)
{
    size_t first = tree->branch_count, large = 0;
    uint64_t small_bytes = 0;
    coffer_status status = find_branches(tree, begin, end, level, err);
    if (status)
        return status;
    size_t count = tree->branch_count - first;
    if (count > 0)
        qsort(tree->branches + first, count, sizeof *tree->branches, largest_first);
    while (large < count && (double)tree->branches[first + large].bytes >= tree->threshold)
        large++;
    for (size_t i = large; i < count; i++)
        small_bytes += tree->branches[first + i].bytes;
    coffer__mlyze_tree_node node = { level, level ? &tree->leaves[begin].frames[level - 1] : NULL, bytes,
                                     large + (large < count), 0 };
    tree->visit(tree->context, &node);
    for (size_t i = 0; !status && i < large; i++) {
        stack_branch next = tree->branches[first + i]; /* the list may move */
        status = visit_below(tree, next.begin, next.end, level + 1, next.bytes, err);
    }
    if (!status && large < count) {
        coffer__mlyze_tree_node small = { level + 1, NULL, small_bytes, 0, count - large };
        tree->visit(tree->context, &small);
    }
    tree->branch_count = first;
    return status;
}

coffer_status coffer__mlyze_tree(const coffer__mlyze_export *export, coffer_mlyze_measure measure,
                                 size_t depth, double threshold, coffer__mlyze_tree_visit visit,
                                 void *context, coffer_error *err)
{
    stack_tree whole = { .max_depth = depth, .threshold = threshold, .visit = visit, .context = context };
    uint64_t bytes = 0;
    coffer_status status = collect_leaves(&whole, export, measure, err);
    for (size_t i = 0; i < whole.leaf_count; i++)
        bytes += whole.leaves[i].bytes;
    if (!status)
        status = visit_below(&whole, 0, whole.leaf_count, 0, bytes, err);
    coffer__free(whole.leaves);
    coffer__free(whole.branches);
    return status;
}
