/* The stacks of a trace merged into a tree, for flame graphs. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/table.h"
#include "formats/mlyze/mlyze_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct coffer_mlyze_tree {
    coffer_mlyze_tree_node *nodes;
    size_t count, capacity;
    uint32_t depth;
    coffer__arena names;
};

/* A tree while it is built. */
typedef struct tree_builder {
    coffer_mlyze_tree *tree;
    const coffer_mlyze *trace;
    coffer_mlyze_tree_opts opts;
    coffer__table children; /* nodes by parent and frame */
    coffer__buffer text;    /* scratch for names */
} tree_builder;

/* ---- Accessors ---- */

void coffer_mlyze_tree_free(coffer_mlyze_tree *tree)
{
    if (!tree)
        return;
    coffer__arena_free(&tree->names);
    coffer__free(tree->nodes);
    coffer__free(tree);
}

size_t coffer_mlyze_tree_count(const coffer_mlyze_tree *tree)
{
    return tree->count;
}

const coffer_mlyze_tree_node *coffer_mlyze_tree_at(const coffer_mlyze_tree *tree, size_t index)
{
    return index < tree->count ? &tree->nodes[index] : NULL;
}

uint32_t coffer_mlyze_tree_depth(const coffer_mlyze_tree *tree)
{
    return tree->depth;
}

size_t coffer_mlyze_tree_next(const coffer_mlyze_tree *tree, size_t index)
{
    const coffer_mlyze_tree_node *nodes = tree->nodes;
    if (index >= tree->count)
        return COFFER_INDEX_NONE;
    if (nodes[index].first_child != COFFER_INDEX_NONE)
        return nodes[index].first_child;
    while (index != COFFER_INDEX_NONE && nodes[index].next_sibling == COFFER_INDEX_NONE)
        index = nodes[index].parent;
    return index == COFFER_INDEX_NONE ? COFFER_INDEX_NONE : nodes[index].next_sibling;
}

COFFER__INIT_FUNCTION(coffer_mlyze_tree_opts, COFFER_MLYZE_TREE_OPTS_INIT)

/* ---- Nodes ---- */

typedef struct frame_key {
    uint64_t parent, func_id, file_id, line;
} frame_key;

static frame_key key_of(const tree_builder *builder, size_t parent, const coffer_mlyze_frame *frame)
{
    return (frame_key){ parent, frame->func_id, frame->file_id, builder->opts.lines ? frame->line : 0 };
}

static const char *copy_name(tree_builder *builder, const coffer_mlyze_frame *frame)
{
    size_t len = coffer_mlyze_frame_text(NULL, 0, builder->trace, frame, builder->opts.lines);
    builder->text.len = 0;
    char *text = (char *)coffer__buffer_extend(&builder->text, len + 1);
    if (!text)
        return NULL;
    coffer_mlyze_frame_text(text, len + 1, builder->trace, frame, builder->opts.lines);
    return coffer__arena_text(&builder->tree->names, text, len);
}

/* "grow.c:9". */
static const char *copy_place(tree_builder *builder, const coffer_mlyze_frame *frame)
{
    const char *file = coffer_mlyze_file_name(builder->trace, frame->file_id);
    builder->text.len = 0;
    if (file && *file && frame->line && builder->opts.lines)
        coffer__buffer_printf(&builder->text, "%s:%" PRIu64, file, frame->line);
    else if (file && *file)
        coffer__buffer_printf(&builder->text, "%s", file);
    return builder->text.failed ? NULL
                                : coffer__arena_text(&builder->tree->names,
                                                     coffer__buffer_text(&builder->text), builder->text.len);
}

static coffer_status add_node(size_t *out, coffer_mlyze_tree *tree, size_t parent,
                              const coffer_mlyze_frame *frame, const char *name, const char *place,
                              coffer_error *err)
{
    if (!name || !place)
        return coffer__fail_no_memory(err, sizeof *tree->nodes);
    coffer_status status =
        coffer__array_reserve_one(&tree->nodes, &tree->capacity, tree->count, sizeof *tree->nodes, err);
    if (status)
        return status;
    coffer_mlyze_tree_node *node = &tree->nodes[tree->count];
    *node = (coffer_mlyze_tree_node){ .parent = parent,
                                      .first_child = COFFER_INDEX_NONE,
                                      .next_sibling = COFFER_INDEX_NONE,
                                      .name = name,
                                      .place = place,
                                      .frame = *frame };
    if (parent != COFFER_INDEX_NONE) {
        node->depth = tree->nodes[parent].depth + 1;
        node->next_sibling = tree->nodes[parent].first_child;
        tree->nodes[parent].first_child = tree->count;
        tree->nodes[parent].child_count++;
    }
    tree->depth = node->depth > tree->depth ? node->depth : tree->depth;
    *out = tree->count++;
    return COFFER_OK;
}

static coffer_status find_child(size_t *out, tree_builder *builder, size_t parent,
                                const coffer_mlyze_frame *frame, coffer_error *err)
{
    const coffer_mlyze_tree *tree = builder->tree;
    frame_key key = key_of(builder, parent, frame);
    uint64_t hash = coffer__table_hash(&builder->children, &key, sizeof key);
    coffer__table_probe probe = coffer__table_begin(&builder->children, hash);
    for (uint32_t found; (found = coffer__table_next(&probe)) != COFFER__TABLE_NONE;) {
        frame_key other = key_of(builder, tree->nodes[found].parent, &tree->nodes[found].frame);
        if (memcmp(&other, &key, sizeof other) == 0) {
            *out = found;
            return COFFER_OK;
        }
    }
    coffer_status status = coffer__table_add(&builder->children, hash, tree->count, err);
    if (status)
        return status;
    const char *name = copy_name(builder, frame);
    return add_node(out, builder->tree, parent, frame, name, copy_place(builder, frame), err);
}

/* ---- Stacks ---- */

static const coffer_mlyze_frame unknown_frame = { UINT64_MAX, 0, UINT64_MAX };

static coffer_status add_stack(tree_builder *builder, const coffer_mlyze_stack_row *row, coffer_error *err)
{
    const uint64_t bytes = coffer_mlyze_stack_row_bytes(row, builder->opts.measure);
    const uint64_t allocs = coffer_mlyze_stack_row_allocs(row, builder->opts.measure);
    coffer_mlyze_tree *tree = builder->tree;
    size_t depth = 0, node = 0;
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, builder->trace, row->stack);
    if (depth == 0) {
        frames = &unknown_frame;
        depth = 1;
    }
    tree->nodes[0].bytes += bytes;
    tree->nodes[0].allocs += allocs;
    for (size_t i = 0; i < depth && i < builder->opts.max_depth; i++) {
        const coffer_mlyze_frame *frame = &frames[builder->opts.inverted ? i : depth - 1 - i];
        coffer_status status = find_child(&node, builder, node, frame, err);
        if (status)
            return status;
        tree->nodes[node].bytes += bytes;
        tree->nodes[node].allocs += allocs;
    }
    tree->nodes[node].own_bytes += bytes;
    return COFFER_OK;
}

/* ---- Order ---- */

static int compare_children(const void *left, const void *right, void *context)
{
    const coffer_mlyze_tree *tree = context;
    const size_t index_a = *(const size_t *)left, index_b = *(const size_t *)right;
    const coffer_mlyze_tree_node *a = &tree->nodes[index_a], *b = &tree->nodes[index_b];
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    int order = strcmp(a->name, b->name);
    return order ? order : (index_a > index_b) - (index_a < index_b);
}

static coffer_status sort_children(coffer_mlyze_tree *tree, coffer_error *err)
{
    size_t *order = coffer__alloc_array(tree->count, sizeof *order);
    if (!order)
        return coffer__fail_no_memory(err, tree->count * sizeof *order);
    for (size_t i = 0; i < tree->count; i++) {
        size_t count = 0, next = COFFER_INDEX_NONE;
        for (size_t child = tree->nodes[i].first_child; child != COFFER_INDEX_NONE;
             child = tree->nodes[child].next_sibling)
            order[count++] = child;
        qsort_r(order, count, sizeof *order, compare_children, tree);
        while (count-- > 0) {
            tree->nodes[order[count]].next_sibling = next;
            next = order[count];
        }
        tree->nodes[i].first_child = next;
    }
    coffer__free(order);
    return COFFER_OK;
}

coffer_status coffer_mlyze_tree_new(coffer_mlyze_tree **out, const coffer_mlyze *trace,
                                    const coffer_mlyze_stats *stats, const coffer_mlyze_tree_opts *opts,
                                    coffer_error *err)
{
    tree_builder builder = { .trace = trace,
                             .opts = COFFER_MLYZE_TREE_OPTS_INIT,
                             .text = COFFER__BUFFER_INIT };
    size_t root;
    coffer_status status = coffer__take_options(&builder.opts, sizeof builder.opts, opts, err);
    if (status)
        return status;
    coffer__table_init_keyed(&builder.children);
    builder.tree = coffer__calloc(1, sizeof *builder.tree);
    if (!builder.tree)
        return coffer__fail_no_memory(err, sizeof *builder.tree);
    status = add_node(&root, builder.tree, COFFER_INDEX_NONE, &unknown_frame, "all", "", err);
    for (size_t i = 0; !status && i < coffer_mlyze_stats_stack_count(stats); i++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(stats, i);
        if (coffer_mlyze_stack_row_allocs(row, builder.opts.measure) > 0 &&
            coffer__mlyze_is_selected(builder.opts.focus, builder.opts.ignore, trace, row->stack))
            status = add_stack(&builder, row, err);
    }
    for (size_t i = 0; i < builder.tree->count; i++)
        builder.tree->nodes[i].after_bytes = builder.tree->nodes[i].bytes;
    if (!status)
        status = sort_children(builder.tree, err);
    coffer__table_free(&builder.children);
    coffer__buffer_free(&builder.text);
    if (status) {
        coffer_mlyze_tree_free(builder.tree);
        return status;
    }
    *out = builder.tree;
    return COFFER_OK;
}

/* ---- Comparison ---- */

/* The node of that name below a parent, or a new one. */
static coffer_status find_named(size_t *out, tree_builder *builder, size_t parent,
                                const coffer_mlyze_tree_node *like, coffer_error *err)
{
    coffer_mlyze_tree *tree = builder->tree;
    builder->text.len = 0;
    coffer__buffer_append(&builder->text, &parent, sizeof parent);
    coffer__buffer_append(&builder->text, like->name, strlen(like->name) + 1);
    coffer__buffer_append(&builder->text, like->place, strlen(like->place));
    if (builder->text.failed)
        return coffer__fail_no_memory(err, strlen(like->name));
    uint64_t hash = coffer__table_hash(&builder->children, builder->text.data, builder->text.len);
    coffer__table_probe probe = coffer__table_begin(&builder->children, hash);
    for (uint32_t found; (found = coffer__table_next(&probe)) != COFFER__TABLE_NONE;) {
        const coffer_mlyze_tree_node *node = &tree->nodes[found];
        if (node->parent == parent && strcmp(node->name, like->name) == 0 &&
            strcmp(node->place, like->place) == 0) {
            *out = found;
            return COFFER_OK;
        }
    }
    coffer_status status = coffer__table_add(&builder->children, hash, tree->count, err);
    if (status)
        return status;
    const char *name = coffer__arena_text(&tree->names, like->name, strlen(like->name));
    const char *place = coffer__arena_text(&tree->names, like->place, strlen(like->place));
    return add_node(out, tree, parent, &unknown_frame, name, place, err);
}

/* Adds the nodes of a tree, parents before children; own : bytes that end in each node of the result. */
static coffer_status add_tree(tree_builder *builder, const coffer_mlyze_tree *from, bool second,
                              coffer_error *err)
{
    size_t *places = coffer__alloc_array(from->count, sizeof *places);
    coffer_status status = places ? COFFER_OK : coffer__fail_no_memory(err, from->count * sizeof *places);
    for (size_t at = 0; !status && at != COFFER_INDEX_NONE; at = coffer_mlyze_tree_next(from, at)) {
        const coffer_mlyze_tree_node *node = &from->nodes[at];
        places[at] = 0;
        if (at > 0)
            status = find_named(&places[at], builder, places[node->parent], node, err);
        if (status)
            break;
        coffer_mlyze_tree_node *to = &builder->tree->nodes[places[at]];
        *(second ? &to->after_bytes : &to->before_bytes) += node->bytes;
        to->allocs = second ? node->allocs : to->allocs;
        if (node->own_bytes > to->own_bytes)
            to->own_bytes = node->own_bytes;
    }
    coffer__free(places);
    return status;
}

coffer_status coffer_mlyze_tree_diff(coffer_mlyze_tree **out, const coffer_mlyze_tree *a,
                                     const coffer_mlyze_tree *b, coffer_error *err)
{
    tree_builder builder = { .text = COFFER__BUFFER_INIT };
    size_t root;
    coffer__table_init_keyed(&builder.children);
    builder.tree = coffer__calloc(1, sizeof *builder.tree);
    if (!builder.tree)
        return coffer__fail_no_memory(err, sizeof *builder.tree);
    coffer_mlyze_tree *tree = builder.tree;
    coffer_status status = add_node(&root, tree, COFFER_INDEX_NONE, &unknown_frame, "all", "", err);
    if (!status)
        status = add_tree(&builder, a, false, err);
    if (!status)
        status = add_tree(&builder, b, true, err);
    /* Children have higher numbers than their parents. */
    for (size_t i = tree->count; !status && i-- > 0;) {
        tree->nodes[i].bytes += tree->nodes[i].own_bytes;
        if (i > 0)
            tree->nodes[tree->nodes[i].parent].bytes += tree->nodes[i].bytes;
    }
    if (!status)
        status = sort_children(tree, err);
    coffer__table_free(&builder.children);
    coffer__buffer_free(&builder.text);
    if (status) {
        coffer_mlyze_tree_free(tree);
        return status;
    }
    *out = tree;
    return COFFER_OK;
}
