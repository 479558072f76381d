/* Converts massif's snapshots: at each snapshot, blocks are freed and allocated until every stack has the
 * bytes of the snapshot. */
#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "convert/traces/mlyze_import.h"
#include "outside/profiles/massif.h"

#include <stdlib.h>
#include <string.h>

#define ADDRESS_STEP 16

/* Memory without a frame of the program, or of a snapshot without a tree. */
static const char *const own_stacks[] = { "[no details in this snapshot]", "[heap administration]",
                                          "[stacks]" };
enum { UNPLACED, EXTRA, STACKS, OWN_STACKS };

typedef struct held {
    uint64_t stack, bytes, address;
} held;

typedef struct held_list {
    held *items; /* after settle: ascending stacks, each once */
    size_t count, capacity;
} held_list;

typedef struct level {
    uint64_t children_left, bytes, children_bytes;
} level;

typedef struct snapshots {
    coffer__packed_lines lines;
    coffer__massif massif;
    coffer__mlyze_import import;
    uint64_t own[OWN_STACKS];
    held_list now, wanted;
    level *levels; /* the path from the root of the tree to the current node */
    size_t depth, level_capacity;
    coffer_mlyze_frame *frames; /* of the path, without the root: innermost first */
    size_t frame_capacity;
} snapshots;

static coffer_status want(snapshots *from, uint64_t stack, uint64_t bytes, coffer_error *err)
{
    held_list *list = &from->wanted;
    if (bytes == 0)
        return COFFER_OK;
    coffer_status status =
        coffer__array_reserve_one(&list->items, &list->capacity, list->count, sizeof *list->items, err);
    if (!status)
        list->items[list->count++] = (held){ stack, bytes, 0 };
    return status;
}

/* ---- The tree of a snapshot ---- */

static coffer_status push_node(snapshots *from, const coffer__massif_node *node, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&from->levels, &from->level_capacity, from->depth,
                                                     sizeof *from->levels, err);
    if (!status && from->depth > 0)
        status = coffer__array_reserve_one(&from->frames, &from->frame_capacity, from->depth - 1,
                                           sizeof *from->frames, err);
    if (!status && from->depth > 0)
        status = coffer__mlyze_import_label(&from->frames[from->depth - 1], &from->import, node->label,
                                            node->label_len, err);
    if (!status)
        from->levels[from->depth++] = (level){ node->children, node->bytes, 0 };
    return status;
}

/* The bytes of a node beyond those of its children are its own. */
static coffer_status pop_node(snapshots *from, coffer_error *err)
{
    level last = from->levels[from->depth - 1];
    coffer_status status = COFFER_OK;
    if (from->depth > 1 && last.bytes > last.children_bytes) {
        uint64_t stack;
        status = coffer__mlyze_import_walk(&from->import, from->depth, err);
        if (!status)
            status = coffer__mlyze_import_stack(&stack, &from->import, from->frames, from->depth - 1, err);
        if (!status)
            status = want(from, stack, last.bytes - last.children_bytes, err);
    }
    if (--from->depth > 0) {
        level *parent = &from->levels[from->depth - 1];
        parent->children_left--;
        if (!coffer__add_u64(&parent->children_bytes, parent->children_bytes, last.bytes))
            parent->children_bytes = UINT64_MAX;
    }
    return status;
}

/* *placed : the bytes that the tree gives to stacks. */
static coffer_status take_tree(uint64_t *placed, snapshots *from, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    from->depth = 0;
    do {
        coffer__massif_node node;
        status = coffer__massif_node_next(&node, &from->massif, err);
        if (!status)
            status = push_node(from, &node, err);
        while (!status && from->depth > 0 && from->levels[from->depth - 1].children_left == 0) {
            *placed = from->levels[0].children_bytes;
            status = pop_node(from, err);
        }
    } while (!status && from->depth > 0);
    return status;
}

/* ---- From one snapshot to the next ---- */

static int by_stack(const void *left, const void *right)
{
    const held *a = left, *b = right;
    return (a->stack > b->stack) - (a->stack < b->stack);
}

/* Sorts the stacks and merges equal ones. */
static coffer_status settle(held_list *list, const coffer__packed_lines *lines, coffer_error *err)
{
    size_t kept = 0;
    if (list->count > 0)
        qsort(list->items, list->count, sizeof *list->items, by_stack);
    for (size_t i = 0; i < list->count; i++) {
        if (kept == 0 || list->items[kept - 1].stack != list->items[i].stack)
            list->items[kept++] = list->items[i];
        else if (!coffer__add_u64(&list->items[kept - 1].bytes, list->items[kept - 1].bytes,
                                  list->items[i].bytes))
            return coffer__packed_lines_fail(lines, err, COFFER_E_OUT_OF_BOUNDS,
                                             "a stack of the snapshot above holds more than 2^64 bytes");
    }
    list->count = kept;
    return COFFER_OK;
}

/* Frees come first, so that the peak is that of a snapshot. */
static coffer_status free_others(snapshots *from, uint64_t time, coffer_error *err)
{
    held_list *now = &from->now, *wanted = &from->wanted;
    coffer_status status = COFFER_OK;
    for (size_t i = 0, next = 0; !status && i < now->count; i++) {
        while (next < wanted->count && wanted->items[next].stack < now->items[i].stack)
            next++;
        held *same = next < wanted->count && wanted->items[next].stack == now->items[i].stack
                         ? &wanted->items[next]
                         : NULL;
        if (same && same->bytes == now->items[i].bytes)
            same->address = now->items[i].address;
        else
            status = coffer_mlyze_writer_put_free(from->import.writer, time, now->items[i].address, err);
    }
    return status;
}

static coffer_status reach(snapshots *from, uint64_t time, coffer_error *err)
{
    coffer_status status = settle(&from->wanted, &from->lines, err);
    if (!status)
        status = free_others(from, time, err);
    for (size_t i = 0; !status && i < from->wanted.count; i++) {
        held *item = &from->wanted.items[i];
        if (item->address)
            continue;
        item->address = from->import.next_address;
        from->import.next_address += ADDRESS_STEP;
        status = coffer_mlyze_writer_put_alloc(from->import.writer, time, item->address, item->bytes,
                                               item->stack, 0, err);
    }
    held_list old = from->now;
    from->now = from->wanted;
    from->wanted = old;
    from->wanted.count = 0;
    return status;
}

static coffer_status take_snapshot(snapshots *from, const coffer__massif_snapshot *snapshot,
                                   coffer_error *err)
{
    uint64_t placed = 0;
    coffer_status status = COFFER_OK;
    if (snapshot->detail != COFFER__MASSIF_EMPTY)
        status = take_tree(&placed, from, err);
    if (!status && snapshot->heap_bytes > placed)
        status = want(from, from->own[UNPLACED], snapshot->heap_bytes - placed, err);
    if (!status)
        status = want(from, from->own[EXTRA], snapshot->extra_bytes, err);
    if (!status)
        status = want(from, from->own[STACKS], snapshot->stack_bytes, err);
    return status ? status : reach(from, snapshot->time, err);
}

static coffer_status add_own_stacks(snapshots *from, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < OWN_STACKS; i++) {
        coffer_mlyze_frame frame;
        status = coffer__mlyze_import_place(&frame, &from->import, own_stacks[i], strlen(own_stacks[i]), err);
        if (!status)
            status = coffer__mlyze_import_stack(&from->own[i], &from->import, &frame, 1, err);
    }
    return status;
}

static bool same_sizes(const coffer__massif_snapshot *a, const coffer__massif_snapshot *b)
{
    return a->heap_bytes == b->heap_bytes && a->extra_bytes == b->extra_bytes &&
           a->stack_bytes == b->stack_bytes;
}

/* A snapshot without a tree is delayed: one with a tree and the same sizes, as at the peak, replaces it. */
static coffer_status take_snapshots(snapshots *from, coffer_error *err)
{
    coffer__massif_snapshot snapshot, waiting;
    bool more = true, has_waiting = false;
    while (more) {
        coffer_status status = coffer__massif_next(&more, &snapshot, &from->massif, err);
        bool replaced = has_waiting && more && same_sizes(&snapshot, &waiting);
        if (!status && replaced && snapshot.detail == COFFER__MASSIF_EMPTY)
            continue;
        if (!status && has_waiting && !replaced)
            status = take_snapshot(from, &waiting, err);
        has_waiting = !status && more && snapshot.detail == COFFER__MASSIF_EMPTY;
        if (has_waiting)
            waiting = snapshot;
        else if (!status && more)
            status = take_snapshot(from, &snapshot, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

static coffer_status take_all(snapshots *from, coffer_error *err)
{
    coffer_status status = coffer__massif_open(&from->massif, &from->lines, err);
    if (status)
        return status;
    coffer__mlyze_import_unit(&from->import, from->massif.time_unit); /* times are converted already */
    status = coffer__mlyze_import_create(&from->import, coffer__buffer_text(&from->massif.command),
                                         from->massif.command.len, 0, err);
    if (!status)
        status = add_own_stacks(from, err);
    if (!status)
        status = take_snapshots(from, err);
    return status ? status : coffer__mlyze_import_commit(&from->import, err);
}

coffer_status coffer__mlyze_from_massif(const coffer__convert_job *job, coffer_error *err)
{
    snapshots from = { .depth = 0 };
    coffer__mlyze_import_open(&from.import, job, true);
    coffer_status status = coffer__mlyze_import_lines(&from.lines, job, err);
    if (!status) {
        status = take_all(&from, err);
        coffer__massif_close(&from.massif);
        coffer__packed_lines_close(&from.lines);
    }
    coffer__mlyze_import_close(&from.import);
    coffer__free(from.now.items);
    coffer__free(from.wanted.items);
    coffer__free(from.levels);
    coffer__free(from.frames);
    return status;
}
