/* Copies a window of a trace into a new trace. Blocks that are live when the window begins become allocations
 * at its start, so that their frees are paired and what is live is right. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "convert/traces/mlyze_export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A block that is live before the window; unused slots have no address. */
typedef struct carried {
    uint64_t address, size, stack, event;
    uint16_t thread;
} carried;

typedef struct cutting {
    coffer__mlyze_export export;
    coffer_mlyze_writer *writer;
    coffer_mlyze_live *live; /* tags are slots of `blocks` */
    carried *blocks;
    size_t count, capacity;
    size_t *free_slots;
    size_t free_count, free_capacity;
    uint64_t start; /* time of the window's start */
    coffer__buffer extra;
} cutting;

/* ---- Before the window ---- */

static coffer_status release(cutting *cut, uint64_t slot, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&cut->free_slots, &cut->free_capacity, cut->free_count,
                                                     sizeof *cut->free_slots, err);
    if (status)
        return status;
    cut->blocks[slot].address = 0;
    cut->free_slots[cut->free_count++] = (size_t)slot;
    return COFFER_OK;
}

static coffer_status hold(cutting *cut, const coffer_mlyze_events *events, size_t i, coffer_error *err)
{
    coffer_mlyze_live_block old, block = { .size = events->size[i] };
    bool replaced = false;
    size_t slot = cut->count;
    coffer_status status = COFFER_OK;
    if (events->address[i] == 0) /* never freed and never live */
        return COFFER_OK;
    if (cut->free_count > 0)
        slot = cut->free_slots[--cut->free_count];
    else
        status =
            coffer__array_reserve_one(&cut->blocks, &cut->capacity, cut->count++, sizeof *cut->blocks, err);
    if (status)
        return status;
    cut->blocks[slot] =
        (carried){ events->address[i], events->size[i], events->id[i], events->first + i, events->thread[i] };
    block.tag = slot;
    status = coffer_mlyze_live_put(&replaced, &old, cut->live, events->address[i], &block, err);
    return !status && replaced ? release(cut, old.tag, err) : status;
}

static coffer_status follow(cutting *cut, const coffer_mlyze_events *events, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < events->count; i++) {
        coffer_mlyze_live_block block;
        if (events->type[i] == COFFER_MLYZE_ALLOC)
            status = hold(cut, events, i, err);
        else if (events->type[i] == COFFER_MLYZE_FREE &&
                 coffer_mlyze_live_take(&block, cut->live, events->address[i]))
            status = release(cut, block.tag, err);
    }
    return status;
}

static int by_event(const void *left, const void *right)
{
    const carried *a = left, *b = right;
    return (a->event > b->event) - (a->event < b->event);
}

static void sort_carried(cutting *cut)
{
    size_t kept = 0;
    for (size_t i = 0; i < cut->count; i++) {
        if (cut->blocks[i].address)
            cut->blocks[kept++] = cut->blocks[i];
    }
    cut->count = kept;
    if (kept > 1)
        qsort(cut->blocks, kept, sizeof *cut->blocks, by_event);
}

/* ---- The new trace ---- */

static coffer_status create(cutting *cut, coffer_error *err)
{
    const coffer__convert_job *job = cut->export.job;
    const char *window = coffer__job_setting(job, "window");
    const char *command = coffer_mlyze_metadata_text(cut->export.trace, "command");
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    coffer__json_writer json;
    uint64_t level = 0;
    coffer_status status = coffer__job_number(&level, job, "level", 12, err);
    if (status)
        return status;
    coffer__json_writer_init(&json, &cut->extra, 0);
    coffer__json_open_object(&json);
    if (command) {
        coffer__json_key(&json, "command");
        coffer__json_string(&json, command);
    }
    coffer__json_key(&json, "cut");
    coffer__json_open_object(&json);
    coffer__json_key(&json, "window");
    coffer__json_string(&json, window ? window : "..");
    coffer__json_key(&json, "carried_allocs");
    coffer__json_write_u64(&json, cut->count);
    coffer__json_close_object(&json);
    coffer__json_close_object(&json);
    opts.plain = coffer__job_has(job, "plain");
    opts.level = (int)level;
    opts.overwrite = job->overwrite;
    opts.start_time_us = coffer_mlyze_start_time(cut->export.trace) + cut->start;
    opts.limits = &job->limits;
    opts.extra_json = coffer__buffer_text(&cut->extra);
    if (cut->extra.failed)
        return coffer__fail_no_memory(err, cut->extra.len);
    return coffer_mlyze_writer_create(&cut->writer, job->out_path, &opts, err);
}

/* Under the ids that they have. Stacks that no event of the window uses are left out. */
static coffer_status add_frames(cutting *cut, const coffer_mlyze_frame *frames, size_t depth,
                                coffer_error *err)
{
    const coffer_mlyze *trace = cut->export.trace;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < depth; i++) {
        const char *function = coffer_mlyze_function_name(trace, frames[i].func_id);
        const char *file = coffer_mlyze_file_name(trace, frames[i].file_id);
        if (function)
            status = coffer_mlyze_writer_add_function_id(cut->writer, frames[i].func_id, function, err);
        if (!status && file)
            status = coffer_mlyze_writer_add_file_id(cut->writer, frames[i].file_id, file, err);
    }
    return status;
}

static coffer_status need_stack(cutting *cut, uint64_t id, bool *seen, coffer_error *err)
{
    size_t depth = 0, index = coffer_mlyze_find_stack(cut->export.trace, id);
    if (index == COFFER_INDEX_NONE || seen[index])
        return COFFER_OK;
    seen[index] = true;
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, cut->export.trace, index);
    coffer_status status = add_frames(cut, frames, depth, err);
    return status ? status : coffer_mlyze_writer_add_stack_id(cut->writer, id, frames, depth, err);
}

static coffer_status need_name(cutting *cut, uint64_t id, coffer_error *err)
{
    const char *name = coffer_mlyze_function_name(cut->export.trace, id);
    return name ? coffer_mlyze_writer_add_function_id(cut->writer, id, name, err) : COFFER_OK;
}

static coffer_status put_carried(cutting *cut, bool *seen, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < cut->count; i++) {
        const carried *block = &cut->blocks[i];
        status = need_stack(cut, block->stack, seen, err);
        if (!status)
            status = coffer_mlyze_writer_put_alloc(cut->writer, 0, block->address, block->size, block->stack,
                                                   block->thread, err);
    }
    return status;
}

/* Leaves out extension events. */
static void drop_extensions(coffer_mlyze_events *events)
{
    size_t kept = 0;
    for (size_t i = 0; i < events->count; i++) {
        if (events->type[i] > COFFER_MLYZE_MARKER)
            continue;
        events->time[kept] = events->time[i];
        events->address[kept] = events->address[i];
        events->size[kept] = events->size[i];
        events->id[kept] = events->id[i];
        events->thread[kept] = events->thread[i];
        events->type[kept++] = events->type[i];
    }
    events->count = kept;
}

static coffer_status put_events(cutting *cut, coffer_mlyze_events *events, bool *seen, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (coffer__job_has(cut->export.job, "drop-extensions"))
        drop_extensions(events);
    for (size_t i = 0; !status && i < events->count; i++) {
        uint8_t type = events->type[i];
        events->time[i] = events->time[i] > cut->start ? events->time[i] - cut->start : 0;
        if (type == COFFER_MLYZE_ALLOC)
            status = need_stack(cut, events->id[i], seen, err);
        else if (type == COFFER_MLYZE_MARKER || type == COFFER_MLYZE_OBJECT ||
                 type == COFFER_MLYZE_REFERENCE || type == COFFER_MLYZE_THREAD)
            status = need_name(cut, events->id[i], err);
    }
    return status ? status : coffer_mlyze_writer_put_events(cut->writer, events, err);
}

/* ---- Both ---- */

static coffer_status read_before(cutting *cut, coffer_error *err)
{
    uint64_t begin = cut->export.begin, end = cut->export.end;
    coffer_status status = COFFER_OK;
    const coffer_mlyze_events *events;
    cut->export.begin = 0;
    cut->export.end = begin;
    cut->export.block = 0;
    while (begin > 0 && !(status = coffer__mlyze_export_next(&events, &cut->export, err)) && events)
        status = follow(cut, events, err);
    cut->export.begin = begin;
    cut->export.end = end;
    if (!status)
        status = coffer_mlyze_block_of_event(&cut->export.block, cut->export.trace, begin, err);
    return status;
}

static coffer_status copy_window(cutting *cut, bool *seen, coffer_error *err)
{
    const coffer_mlyze_events *events = NULL;
    coffer_status status = coffer__mlyze_export_next(&events, &cut->export, err);
    cut->start = !status && cut->export.begin > 0 && events && events->count ? events->time[0] : 0;
    if (!status)
        status = create(cut, err);
    if (!status)
        status = put_carried(cut, seen, err);
    while (!status && events) {
        status = put_events(cut, &cut->export.events, seen, err);
        if (!status)
            status = coffer__mlyze_export_next(&events, &cut->export, err);
    }
    if (status)
        return status;
    coffer_mlyze_writer *writer = cut->writer;
    cut->writer = NULL;
    return coffer_mlyze_writer_commit(writer, err);
}

coffer_status coffer__mlyze_to_mlyze(const coffer__convert_job *job, coffer_error *err)
{
    cutting cut = { .extra = COFFER__BUFFER_INIT };
    bool *seen = NULL;
    coffer_status status = coffer__mlyze_export_begin(&cut.export, job, COFFER__MLYZE_EXPORT_EVENTS, err);
    if (!status)
        status = coffer_mlyze_live_new(&cut.live, err);
    if (!status)
        status = read_before(&cut, err);
    if (!status) {
        sort_carried(&cut);
        seen = coffer__calloc(coffer_mlyze_stack_count(cut.export.trace) + 1, sizeof *seen);
        status = seen ? copy_window(&cut, seen, err)
                      : coffer__fail_no_memory(err, coffer_mlyze_stack_count(cut.export.trace));
    }
    if (cut.writer)
        coffer_mlyze_writer_discard(cut.writer);
    coffer__mlyze_export_close(&cut.export);
    coffer_mlyze_live_free(cut.live);
    coffer__buffer_free(&cut.extra);
    coffer__free(cut.blocks);
    coffer__free(cut.free_slots);
    coffer__free(seen);
    return status;
}
