/* Flame graphs and the table of stacks, reduced to what can be seen. */
#include "base/fail.h"
#include "base/memory.h"
#include "page/page_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FRAMES = 20000, MOST_DEPTH = 200, FRAME_TEXT = 1024 };

static int descending(const void *a, const void *b)
{
    uint64_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return (left < right) - (left > right);
}

/* ---- Flame graphs ---- */

/* A frame has at least the bytes of each frame below it, so a threshold keeps the callers of all it keeps. */
static coffer_status find_threshold(uint64_t *out, const coffer_mlyze_tree *tree, size_t most,
                                    coffer_error *err)
{
    size_t count = coffer_mlyze_tree_count(tree);
    *out = 0;
    if (count <= most)
        return COFFER_OK;
    uint64_t *sizes = coffer__alloc_array(count, sizeof *sizes);
    if (!sizes)
        return coffer__fail_no_memory(err, (uint64_t)count * sizeof *sizes);
    for (size_t i = 0; i < count; i++)
        sizes[i] = coffer_mlyze_tree_at(tree, i)->bytes;
    qsort(sizes, count, sizeof *sizes, descending);
    *out = sizes[most] + 1;
    coffer__free(sizes);
    return COFFER_OK;
}

typedef struct flame_columns {
    uint32_t *parent, *name, *place;
    double *bytes, *own, *allocs, *before, *after, *error;
    const coffer_mlyze *sampled; /* NULL: every block was recorded, or a comparison */
} flame_columns;

static void make_columns(flame_columns *to, coffer_chunks *chunks, const char *group, size_t count, bool both)
{
    coffer__chunk_name name;
    to->parent = coffer__chunks_u32(chunks, coffer__chunk_name_of(name, group, "parent"), count);
    to->name = coffer__chunks_u32(chunks, coffer__chunk_name_of(name, group, "name"), count);
    to->place = coffer__chunks_u32(chunks, coffer__chunk_name_of(name, group, "place"), count);
    to->bytes = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "bytes"), count);
    to->own = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "own"), count);
    to->allocs = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "allocs"), count);
    to->before = to->after = to->error = NULL;
    if (to->sampled)
        to->error = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "error"), count);
    if (both) {
        to->before = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "before"), count);
        to->after = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "after"), count);
    }
}

static void put_frame(flame_columns *to, coffer_chunks *chunks, const coffer_mlyze_tree_node *node,
                      size_t row, uint32_t parent)
{
    to->parent[row] = parent;
    to->name[row] = coffer__chunks_text(chunks, node->name);
    to->place[row] = coffer__chunks_text(chunks, node->place);
    to->bytes[row] = (double)node->bytes;
    to->own[row] = (double)node->own_bytes;
    to->allocs[row] = (double)node->allocs;
    if (to->error)
        to->error[row] = (double)coffer_mlyze_sampling_error(to->sampled, node->allocs);
    if (to->before) {
        to->before[row] = (double)node->before_bytes;
        to->after[row] = (double)node->after_bytes;
    }
}

static coffer_status add_flame(coffer_chunks *chunks, const coffer_mlyze_tree *tree, const char *measure,
                               bool both, const coffer_mlyze *sampled, uint32_t detail, coffer_error *err)
{
    char group[32];
    size_t count = coffer_mlyze_tree_count(tree), kept = 0;
    uint64_t threshold;
    coffer_status status = find_threshold(&threshold, tree, MOST_FRAMES / detail, err);
    if (status)
        return status;
    uint32_t *rows = coffer__alloc_array(count, sizeof *rows);
    if (!rows)
        return coffer__fail_no_memory(err, (uint64_t)count * sizeof *rows);
    for (size_t i = 0; i < count; i++)
        kept += i == 0 || coffer_mlyze_tree_at(tree, i)->bytes >= threshold;
    snprintf(group, sizeof group, "flame.%s", measure);
    flame_columns to = { .sampled = sampled };
    make_columns(&to, chunks, group, kept, both);
    size_t row = 0;
    for (size_t i = 0; !chunks->failed && i != COFFER_INDEX_NONE; i = coffer_mlyze_tree_next(tree, i)) {
        const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(tree, i);
        if (i > 0 && node->bytes < threshold)
            continue;
        rows[i] = (uint32_t)row;
        put_frame(&to, chunks, node, row,
                  node->parent == COFFER_INDEX_NONE ? UINT32_MAX : rows[node->parent]);
        row++;
    }
    if (kept < count)
        coffer__chunks_note(
            chunks,
            "flame graph of %s: the %zu largest of %zu frames; smaller ones have less than %" PRIu64
            " bytes each and are counted with their callers",
            measure, kept, count, threshold);
    coffer__free(rows);
    return COFFER_OK;
}

coffer_status coffer__page_add_flames(coffer_chunks *chunks, const coffer__page_trace_state *page,
                                      uint32_t detail, coffer_error *err)
{
    const coffer_mlyze *trace = page->files[0].trace;
    bool both = page->count == 2;
    const coffer_mlyze *sampled = !both && coffer_mlyze_sampling_bytes(trace) ? trace : NULL;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < COFFER__PAGE_MEASURES && !status; i++)
        status = add_flame(chunks, both ? page->both[i] : page->files[0].trees[i], coffer__page_measures[i],
                           both, sampled, detail, err);
    return status;
}

/* ---- Stacks ---- */

/* The rank of a stack is its best place in any of the rankings by kind of bytes. */
static uint64_t largest(const coffer_mlyze_stack_row *row, const coffer_mlyze_totals *totals)
{
    double best = 0;
    for (int i = 0; i < COFFER__PAGE_MEASURES; i++) {
        double all = (double)coffer_mlyze_totals_bytes(totals, (coffer_mlyze_measure)i);
        double share = all > 0 ? (double)coffer_mlyze_stack_row_bytes(row, (coffer_mlyze_measure)i) / all : 0;
        best = share > best ? share : best;
    }
    return (uint64_t)(best * 1e18);
}

coffer_status coffer__page_rank_stacks(coffer__page_ranked_stack **out, const coffer_mlyze_stats *stats,
                                       coffer_error *err)
{
    size_t count = coffer_mlyze_stats_stack_count(stats);
    coffer__page_ranked_stack *list = coffer__alloc_array(count ? count : 1, sizeof *list);
    if (!list)
        return coffer__fail_no_memory(err, (uint64_t)count * sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = (coffer__page_ranked_stack){
            largest(coffer_mlyze_stats_stack_at(stats, i), coffer_mlyze_stats_totals(stats)), i
        };
    qsort(list, count, sizeof *list, descending);
    *out = list;
    return COFFER_OK;
}

/* Frames of all stacks in one column, innermost first; "stacks.first" says where each begins. */
static void add_frames(coffer_chunks *chunks, const coffer__page_trace_file *file,
                       const coffer__page_ranked_stack *list, size_t count)
{
    char text[FRAME_TEXT];
    size_t total = 0, depth, cut = 0;
    for (size_t i = 0; i < count; i++) {
        coffer_mlyze_frames(&depth, file->trace,
                            coffer_mlyze_stats_stack_at(file->stats, list[i].row)->stack);
        total += depth < MOST_DEPTH ? depth : MOST_DEPTH;
        cut += depth > MOST_DEPTH;
    }
    uint32_t *first = coffer__chunks_u32(chunks, "stacks.first", count + 1);
    uint32_t *frames = coffer__chunks_u32(chunks, "stacks.frames", total);
    size_t next = 0;
    for (size_t i = 0; frames && i < count; i++) {
        const coffer_mlyze_frame *from =
            coffer_mlyze_frames(&depth, file->trace,
                                coffer_mlyze_stats_stack_at(file->stats, list[i].row)->stack);
        first[i] = (uint32_t)next;
        for (size_t j = 0; j < depth && j < MOST_DEPTH; j++) {
            coffer_mlyze_frame_text(text, sizeof text, file->trace, &from[j], true);
            frames[next++] = coffer__chunks_text(chunks, text);
        }
    }
    if (frames)
        first[count] = (uint32_t)next;
    if (cut)
        coffer__chunks_note(chunks, "%zu stacks are deeper than %d frames; the innermost ones are shown", cut,
                            MOST_DEPTH);
}

static void add_numbers(coffer_chunks *chunks, const coffer__page_trace_file *file,
                        const coffer__page_ranked_stack *list, size_t count)
{
    coffer__chunk_name name;
    char group[32];
    for (int i = 0; i < COFFER__PAGE_MEASURES; i++) {
        coffer_mlyze_measure measure = (coffer_mlyze_measure)i;
        snprintf(group, sizeof group, "stacks.%s", coffer__page_measures[i]);
        double *bytes = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "bytes"), count);
        double *allocs = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "allocs"), count);
        for (size_t j = 0; allocs && j < count; j++) {
            const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(file->stats, list[j].row);
            bytes[j] = (double)coffer_mlyze_stack_row_bytes(row, measure);
            allocs[j] = (double)coffer_mlyze_stack_row_allocs(row, measure);
        }
    }
    double *lifetime = coffer__chunks_f64(chunks, "stacks.lifetime_us", count);
    uint8_t *growing = coffer__chunks_u8(chunks, "stacks.growing", count);
    for (size_t j = 0; growing && j < count; j++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(file->stats, list[j].row);
        lifetime[j] = row->freed_allocs ? (double)row->lifetime_us / (double)row->freed_allocs : -1;
        growing[j] = coffer_mlyze_stack_row_is_growing(row);
    }
}

coffer_status coffer__page_add_stacks(coffer_chunks *chunks, const coffer__page_trace_file *file,
                                      uint32_t detail, coffer_error *err)
{
    coffer__page_ranked_stack *list = NULL;
    coffer_status status = coffer__page_rank_stacks(&list, file->stats, err);
    if (status)
        return status;
    size_t total = coffer_mlyze_stats_stack_count(file->stats), count = total;
    if (count > COFFER__PAGE_MOST_STACKS / detail) {
        count = COFFER__PAGE_MOST_STACKS / detail;
        coffer__chunks_note(chunks, "table of stacks: the %zu largest of %zu", count, total);
    }
    add_numbers(chunks, file, list, count);
    add_frames(chunks, file, list, count);
    coffer__page_add_windows(chunks, &file->windows, count);
    coffer__free(list);
    return COFFER_OK;
}
