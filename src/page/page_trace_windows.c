/* How much each of the largest stacks allocates and frees in each part of the run, so that a page can draw a
 * flame graph of a window. */
#include "base/fail.h"
#include "base/memory.h"
#include "page/page_trace.h"

#include <inttypes.h>

enum { BUCKETS = 128 };
/* A longer trace would make the report slow: 'coffer flame --window' answers for it. */
#define MOST_EVENTS ((uint64_t)1 << 26)

typedef struct window_pass {
    coffer__page_windows *out;
    coffer_mlyze_live *live;
    uint32_t *row_of; /* from the index of a stack to its row; the last row has all others */
    size_t stacks;
} window_pass;

static size_t cell_of(const coffer__page_windows *windows, uint32_t row, uint64_t time)
{
    uint64_t bucket = time / windows->step_us;
    return (size_t)row * BUCKETS + (size_t)(bucket < BUCKETS ? bucket : BUCKETS - 1);
}

static uint32_t row_of(const window_pass *pass, const coffer_mlyze *trace, uint64_t id)
{
    size_t stack = coffer_mlyze_find_stack(trace, id);
    return stack < pass->stacks ? pass->row_of[stack] : (uint32_t)pass->out->rows - 1;
}

static void free_block(window_pass *pass, const coffer_mlyze_live_block *block, uint64_t time)
{
    pass->out->freed[cell_of(pass->out, block->stack, time)] += (double)block->size;
}

static coffer_status take_event(window_pass *pass, const coffer_mlyze *trace,
                                const coffer_mlyze_events *events, size_t i, coffer_error *err)
{
    coffer_mlyze_live_block old;
    bool replaced = false;
    if (events->type[i] == COFFER_MLYZE_FREE) {
        if (coffer_mlyze_live_take(&old, pass->live, events->address[i]))
            free_block(pass, &old, events->time[i]);
        return COFFER_OK;
    }
    pass->out->snapshots += events->type[i] == COFFER_MLYZE_SNAPSHOT && events->size[i] == 0;
    if (events->type[i] != COFFER_MLYZE_ALLOC)
        return COFFER_OK;
    const coffer_mlyze_live_block block = { .size = events->size[i],
                                            .stack = row_of(pass, trace, events->id[i]) };
    size_t cell = cell_of(pass->out, block.stack, events->time[i]);
    pass->out->allocated[cell] += (double)block.size;
    pass->out->allocs[cell]++;
    if (events->address[i] == 0) { /* not known: never live */
        free_block(pass, &block, events->time[i]);
        return COFFER_OK;
    }
    coffer_status status =
        coffer_mlyze_live_put(&replaced, &old, pass->live, events->address[i], &block, err);
    if (!status && replaced)
        free_block(pass, &old, events->time[i]);
    return status;
}

/* Damaged blocks were counted by the statistics. */
static coffer_status read_events(window_pass *pass, const coffer_mlyze *trace, coffer_error *err)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    size_t count = 0;
    coffer_status status = coffer_mlyze_block_count(&count, trace, err);
    for (size_t i = 0; !status && i < count; i++) {
        coffer_error found = COFFER_ERROR_INIT;
        coffer_status read = coffer_mlyze_read_block(&events, trace, i, &found);
        if (read && !coffer__is_about_file(read))
            status = coffer__fail_copy(err, &found);
        for (size_t j = 0; !read && !status && j < events.count; j++)
            status = take_event(pass, trace, &events, j, err);
    }
    coffer_mlyze_events_free(&events);
    return status;
}

static coffer_status allocate(window_pass *pass, coffer_error *err)
{
    size_t cells = pass->out->rows * BUCKETS;
    pass->out->allocated = coffer__calloc(cells, sizeof(double));
    pass->out->freed = coffer__calloc(cells, sizeof(double));
    pass->out->allocs = coffer__calloc(cells, sizeof(double));
    pass->row_of = coffer__alloc_array(pass->stacks + 1, sizeof *pass->row_of);
    if (!pass->out->allocated || !pass->out->freed || !pass->out->allocs || !pass->row_of)
        return coffer__fail_no_memory(err, cells * sizeof(double));
    return coffer_mlyze_live_new(&pass->live, err);
}

coffer_status coffer__page_windows_new(coffer__page_windows *out, const coffer__page_trace_file *file,
                                       coffer_error *err)
{
    const coffer_mlyze_totals *totals = coffer_mlyze_stats_totals(file->stats);
    bool has_order = !file->source.format || file->source.has_order;
    window_pass pass = { .out = out, .stacks = coffer_mlyze_stack_count(file->trace) };
    coffer__page_ranked_stack *list = NULL;
    if (!has_order || totals->allocs == 0 || totals->events > MOST_EVENTS)
        return COFFER_OK;
    size_t total = coffer_mlyze_stats_stack_count(file->stats);
    size_t count = total < COFFER__PAGE_MOST_STACKS ? total : COFFER__PAGE_MOST_STACKS;
    out->rows = count + 1;
    out->step_us = totals->duration_us / BUCKETS + 1;
    coffer_status status = allocate(&pass, err);
    if (!status)
        status = coffer__page_rank_stacks(&list, file->stats, err);
    if (!status) {
        for (size_t i = 0; i < pass.stacks; i++)
            pass.row_of[i] = (uint32_t)count;
        for (size_t i = 0; i < count; i++) {
            size_t stack = coffer_mlyze_stats_stack_at(file->stats, list[i].row)->stack;
            if (stack < pass.stacks)
                pass.row_of[stack] = (uint32_t)i;
        }
        status = read_events(&pass, file->trace, err);
    }
    coffer_mlyze_live_free(pass.live);
    coffer__free(pass.row_of);
    coffer__free(list);
    return status;
}

void coffer__page_windows_free(coffer__page_windows *windows)
{
    coffer__free(windows->allocated);
    coffer__free(windows->freed);
    coffer__free(windows->allocs);
    *windows = (coffer__page_windows){ 0 };
}

/* ---- Chunks ---- */

/* Rows past the stacks that the page lists are added to the last one. */
static void fold_rows(double *sums, const double *cells, size_t row, size_t rows, bool is_last)
{
    for (size_t i = row; i < (is_last ? rows : row + 1); i++)
        for (size_t j = 0; j < BUCKETS; j++)
            sums[j] += cells[i * BUCKETS + j];
}

void coffer__page_add_windows(coffer_chunks *chunks, const coffer__page_windows *windows, size_t stacks)
{
    size_t rows = stacks + 1 < windows->rows ? stacks + 1 : windows->rows;
    if (rows == 0)
        return;
    coffer_node *view = coffer_node_add_map(chunks->view, "windows");
    coffer_node_add_u64(view, "step_us", windows->step_us, COFFER_UNIT_MICROSECONDS);
    coffer_node_add_u64(view, "count", BUCKETS, COFFER_UNIT_NONE);
    double *allocated = coffer__chunks_f64(chunks, "windows.allocated", rows * BUCKETS);
    double *freed = coffer__chunks_f64(chunks, "windows.freed", rows * BUCKETS);
    double *allocs = coffer__chunks_f64(chunks, "windows.allocs", rows * BUCKETS);
    for (size_t i = 0; allocs && i < rows; i++) {
        bool is_last = i + 1 == rows;
        fold_rows(allocated + i * BUCKETS, windows->allocated, i, windows->rows, is_last);
        fold_rows(freed + i * BUCKETS, windows->freed, i, windows->rows, is_last);
        fold_rows(allocs + i * BUCKETS, windows->allocs, i, windows->rows, is_last);
    }
}
