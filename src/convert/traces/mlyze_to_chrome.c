/* Trace events for Perfetto and Chrome: counters of what is live, markers and collections, and, where asked
 * for, every allocation as a span from its start to its end. */
#include "base/json_write.h"
#include "convert/traces/mlyze_export.h"

#include <inttypes.h>
#include <stdio.h>

#define PID 1
/* As many points as a screen can show, and some to look closer. */
#define COUNTER_POINTS 16384

typedef struct chrome_export {
    coffer__mlyze_export export;
    coffer__json_writer json;
    coffer_mlyze_live *live;
    uint64_t begin; /* events before it are followed, not written */
    bool allocations;
    uint64_t resolution;
    uint64_t live_bytes, live_blocks;
    uint64_t point_time, point_high, point_blocks; /* of the interval in hand: its highest */
    bool point_open;
} chrome_export;

/* ---- JSON ---- */

static void open_event(chrome_export *to, const char *name, const char *phase, uint64_t time)
{
    coffer__json_open_object(&to->json);
    coffer__json_key(&to->json, "name");
    coffer__json_string(&to->json, name);
    coffer__json_key(&to->json, "ph");
    coffer__json_string(&to->json, phase);
    coffer__json_key(&to->json, "ts");
    coffer__json_write_u64(&to->json, time);
    coffer__json_key(&to->json, "pid");
    coffer__json_write_u64(&to->json, PID);
}

static void put_number(chrome_export *to, const char *key, uint64_t value)
{
    coffer__json_key(&to->json, key);
    coffer__json_write_u64(&to->json, value);
}

static void put_text(chrome_export *to, const char *key, const char *value)
{
    coffer__json_key(&to->json, key);
    coffer__json_string(&to->json, value);
}

static void open_args(chrome_export *to)
{
    coffer__json_key(&to->json, "args");
    coffer__json_open_object(&to->json);
}

static void close_event_with_args(chrome_export *to)
{
    coffer__json_close_object(&to->json);
    coffer__json_close_object(&to->json);
}

static void put_counter(chrome_export *to, const char *name, const char *unit, uint64_t time, uint64_t value)
{
    open_event(to, name, "C", time);
    open_args(to);
    put_number(to, unit, value);
    close_event_with_args(to);
}

static void put_name(chrome_export *to, const char *what, uint64_t thread, const char *name)
{
    open_event(to, what, "M", 0);
    put_number(to, "tid", thread);
    open_args(to);
    put_text(to, "name", name);
    close_event_with_args(to);
}

/* ---- Counters ---- */

static void close_point(chrome_export *to)
{
    if (to->point_open) {
        put_counter(to, "live bytes", "bytes", to->point_time, to->point_high);
        put_counter(to, "live blocks", "blocks", to->point_time, to->point_blocks);
    }
    to->point_open = false;
}

/* What is live after an event at this time. */
static void count(chrome_export *to, uint64_t time)
{
    uint64_t start = time - time % to->resolution;
    if (to->point_open && start != to->point_time)
        close_point(to);
    if (!to->point_open || to->live_bytes >= to->point_high) {
        to->point_high = to->live_bytes;
        to->point_blocks = to->live_blocks;
    }
    to->point_time = start;
    to->point_open = true;
}

/* ---- Events ---- */

static void put_span(chrome_export *to, const char *phase, const char *name, uint64_t time, uint64_t address,
                     uint16_t thread)
{
    char id[24];
    snprintf(id, sizeof id, "0x%" PRIx64, address);
    open_event(to, name, phase, time);
    put_text(to, "cat", "alloc");
    put_text(to, "id", id);
    put_number(to, "tid", thread);
}

static const char *innermost(const chrome_export *to, size_t stack)
{
    size_t depth;
    const coffer_mlyze_frame *frames = coffer__mlyze_export_frames(&depth, &to->export, stack);
    return coffer__mlyze_export_function(&to->export, &frames[0]);
}

static void open_span(chrome_export *to, uint64_t time, uint64_t address, uint64_t size, size_t stack,
                      uint16_t thread)
{
    size_t depth;
    const coffer_mlyze_frame *frames = coffer__mlyze_export_frames(&depth, &to->export, stack);
    put_span(to, "b", innermost(to, stack), time, address, thread);
    open_args(to);
    put_number(to, "bytes", size);
    coffer__json_key(&to->json, "stack");
    coffer__json_open_array(&to->json);
    for (size_t i = 0; i < depth; i++)
        coffer__json_string(&to->json, coffer__mlyze_export_function(&to->export, &frames[i]));
    coffer__json_close_array(&to->json);
    close_event_with_args(to);
}

static void close_span(chrome_export *to, uint64_t time, uint64_t address,
                       const coffer_mlyze_live_block *block)
{
    size_t stack = block->stack == UINT32_MAX ? SIZE_MAX : block->stack;
    put_span(to, "e", innermost(to, stack), time, address, block->thread);
    coffer__json_close_object(&to->json);
}

static coffer_status take_alloc(chrome_export *to, const coffer_mlyze_events *events, size_t i, bool written,
                                coffer_error *err)
{
    size_t stack = coffer_mlyze_find_stack(to->export.trace, events->id[i]);
    uint64_t address = events->address[i];
    coffer_mlyze_live_block old, block = { .size = events->size[i],
                                           .time = events->time[i],
                                           .stack = stack < UINT32_MAX ? (uint32_t)stack : UINT32_MAX,
                                           .thread = events->thread[i] };
    bool replaced;
    if (address == 0) /* never freed: like the statistics, it does not count as live */
        return COFFER_OK;
    coffer_status status = coffer_mlyze_live_put(&replaced, &old, to->live, address, &block, err);
    if (status)
        return status;
    if (replaced) {
        to->live_bytes -= old.size;
        to->live_blocks--;
        if (written && to->allocations)
            close_span(to, events->time[i], address, &old);
    }
    to->live_bytes += block.size;
    to->live_blocks++;
    if (written && to->allocations)
        open_span(to, block.time, address, block.size, stack, block.thread);
    return COFFER_OK;
}

static void take_free(chrome_export *to, uint64_t time, uint64_t address, bool written)
{
    coffer_mlyze_live_block block;
    if (!coffer_mlyze_live_take(&block, to->live, address))
        return;
    to->live_bytes -= block.size;
    to->live_blocks--;
    if (written && to->allocations)
        close_span(to, time, address, &block);
}

static void put_instant(chrome_export *to, const char *name, uint64_t time)
{
    open_event(to, name, "i", time);
    put_number(to, "tid", 0);
    put_text(to, "s", "g");
}

static void put_other(chrome_export *to, const coffer_mlyze_events *events, size_t i)
{
    const char *name = coffer_mlyze_function_name(to->export.trace, events->id[i]);
    uint64_t time = events->time[i];
    switch (events->type[i]) {
    case COFFER_MLYZE_MARKER:
        put_instant(to, name ? name : "?", time);
        coffer__json_close_object(&to->json);
        break;
    case COFFER_MLYZE_GC:
        put_instant(to, "gc", time);
        open_args(to);
        put_number(to, "objects", events->id[i]);
        put_number(to, "bytes", events->size[i]);
        close_event_with_args(to);
        break;
    case COFFER_MLYZE_THREAD:
        put_name(to, "thread_name", events->thread[i], name ? name : "?");
        break;
    case COFFER_MLYZE_RSS:
        put_counter(to, "resident bytes", "bytes", time, events->size[i]);
        break;
    default:
        break;
    }
}

static coffer_status take_event(chrome_export *to, const coffer_mlyze_events *events, size_t i,
                                coffer_error *err)
{
    bool written = events->first + i >= to->begin;
    uint8_t type = events->type[i];
    coffer_status status = COFFER_OK;
    if (type == COFFER_MLYZE_ALLOC)
        status = take_alloc(to, events, i, written, err);
    else if (type == COFFER_MLYZE_FREE)
        take_free(to, events->time[i], events->address[i], written);
    else if (written)
        put_other(to, events, i);
    if (!status && written && type <= COFFER_MLYZE_FREE)
        count(to, events->time[i]);
    return status ? status : coffer__mlyze_export_drain(&to->export, err);
}

static coffer_status take_all(chrome_export *to, coffer_error *err)
{
    const coffer_mlyze_events *events;
    for (;;) {
        coffer_status status = coffer__mlyze_export_next(&events, &to->export, err);
        if (status || !events)
            return status;
        for (size_t i = 0; !status && i < events->count; i++)
            status = take_event(to, events, i, err);
        if (status)
            return status;
    }
}

static void put_head(chrome_export *to)
{
    coffer__json_writer_init(&to->json, &to->export.out, 0);
    coffer__json_open_object(&to->json);
    put_text(to, "displayTimeUnit", "ms");
    coffer__json_key(&to->json, "traceEvents");
    coffer__json_open_array(&to->json);
    put_name(to, "process_name", 0, coffer__mlyze_export_title(&to->export));
    for (uint32_t thread = 0; thread <= UINT16_MAX; thread++) {
        const char *name = coffer_mlyze_thread_name(to->export.trace, (uint16_t)thread);
        if (name)
            put_name(to, "thread_name", thread, name);
    }
}

/* The window is what is written; what is live in it is known only from the start. */
static coffer_status prepare(chrome_export *to, coffer_error *err)
{
    size_t blocks = to->export.block_count;
    coffer_mlyze_block last = COFFER_MLYZE_BLOCK_INIT;
    coffer_status status =
        blocks ? coffer_mlyze_get_block(&last, to->export.trace, blocks - 1, err) : COFFER_OK;
    if (status)
        return status;
    to->begin = to->export.begin;
    to->export.begin = 0;
    to->export.block = 0;
    to->resolution = 1 + last.time / COUNTER_POINTS;
    to->allocations = coffer__job_has(to->export.job, "allocations");
    status = coffer__job_number(&to->resolution, to->export.job, "resolution", UINT64_MAX / 2, err);
    if (to->resolution == 0)
        to->resolution = 1;
    return status;
}

coffer_status coffer__mlyze_to_chrome(const coffer__convert_job *job, coffer_error *err)
{
    chrome_export to = { .live_bytes = 0 };
    coffer_status status =
        coffer__mlyze_export_open(&to.export, job, COFFER__MLYZE_EXPORT_EVENTS, COFFER__PACKING_NONE, err);
    if (!status)
        status = coffer_mlyze_live_new(&to.live, err);
    if (!status)
        status = prepare(&to, err);
    if (!status) {
        put_head(&to);
        status = take_all(&to, err);
    }
    if (!status) {
        close_point(&to);
        coffer__json_close_array(&to.json);
        coffer__json_close_object(&to.json);
        status = coffer__mlyze_export_commit(&to.export, err);
    }
    coffer__mlyze_export_close(&to.export);
    coffer_mlyze_live_free(to.live);
    return status;
}
