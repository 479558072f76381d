/* Trace events for Perfetto and Chrome: counters of what is live, markers and collections, and, where asked
 * for, every allocation as a span from its start to its end. */
#include "base/json_write.h"
#include "convert/traces/mlyze_export.h"

#include <inttypes.h>
#include <stdio.h>

#define PID 1
/* Enough points for a screen, with some reserve for zooming in. */
#define COUNTER_POINTS 16384

/* A counter within an interval: its maximum, and what follows it. */
typedef struct chrome_counter {
    uint64_t high, high_time, last;
} chrome_counter;

typedef struct chrome_export {
    coffer__mlyze_export export;
    coffer__json_writer json;
    coffer_mlyze_live *live;
    uint64_t begin; /* earlier events are paired, not written */
    bool allocations;
    uint64_t resolution;
    uint64_t live_bytes, live_blocks;
    uint64_t point_start, point_end; /* the current interval, the time of its last event */
    chrome_counter bytes, blocks;
    bool point_open;
} chrome_export;

/* ---- JSON ---- */

static void open_event(chrome_export *writer, const char *name, const char *phase, uint64_t time)
{
    coffer__json_open_object(&writer->json);
    coffer__json_key(&writer->json, "name");
    coffer__json_string(&writer->json, name);
    coffer__json_key(&writer->json, "ph");
    coffer__json_string(&writer->json, phase);
    coffer__json_key(&writer->json, "ts");
    coffer__json_write_u64(&writer->json, time);
    coffer__json_key(&writer->json, "pid");
    coffer__json_write_u64(&writer->json, PID);
}

static void put_number(chrome_export *writer, const char *key, uint64_t value)
{
    coffer__json_key(&writer->json, key);
    coffer__json_write_u64(&writer->json, value);
}

static void put_text(chrome_export *writer, const char *key, const char *value)
{
    coffer__json_key(&writer->json, key);
    coffer__json_string(&writer->json, value);
}

static void open_args(chrome_export *writer)
{
    coffer__json_key(&writer->json, "args");
    coffer__json_open_object(&writer->json);
}

static void close_event_with_args(chrome_export *writer)
{
    coffer__json_close_object(&writer->json);
    coffer__json_close_object(&writer->json);
}

static void put_counter(chrome_export *writer, const char *name, const char *unit, uint64_t time,
                        uint64_t value)
{
    open_event(writer, name, "C", time);
    open_args(writer);
    put_number(writer, unit, value);
    close_event_with_args(writer);
}

static void put_name(chrome_export *writer, const char *what, uint64_t thread, const char *name)
{
    open_event(writer, what, "M", 0);
    put_number(writer, "tid", thread);
    open_args(writer);
    put_text(writer, "name", name);
    close_event_with_args(writer);
}

/* ---- Counters ---- */

static void put_point(chrome_export *writer, const char *name, const char *unit,
                      const chrome_counter *counter)
{
    put_counter(writer, name, unit, counter->high_time, counter->high);
    if (counter->last != counter->high)
        put_counter(writer, name, unit, writer->point_end, counter->last);
}

static void close_point(chrome_export *writer)
{
    if (writer->point_open) {
        put_point(writer, "live bytes", "bytes", &writer->bytes);
        put_point(writer, "live blocks", "blocks", &writer->blocks);
    }
    writer->point_open = false;
}

static void count_value(chrome_counter *counter, bool first, uint64_t value, uint64_t time)
{
    if (first || value > counter->high) {
        counter->high = value;
        counter->high_time = time;
    }
    counter->last = value;
}

/* Counts the live blocks after an event at this time. */
static void count(chrome_export *writer, uint64_t time)
{
    uint64_t start = time - time % writer->resolution;
    if (writer->point_open && start != writer->point_start)
        close_point(writer);
    count_value(&writer->bytes, !writer->point_open, writer->live_bytes, time);
    count_value(&writer->blocks, !writer->point_open, writer->live_blocks, time);
    writer->point_start = start;
    writer->point_end = time;
    writer->point_open = true;
}

/* ---- Events ---- */

static void put_span(chrome_export *writer, const char *phase, const char *name, uint64_t time,
                     uint64_t address, uint16_t thread)
{
    char id[24];
    snprintf(id, sizeof id, "0x%" PRIx64, address);
    open_event(writer, name, phase, time);
    put_text(writer, "cat", "alloc");
    put_text(writer, "id", id);
    put_number(writer, "tid", thread);
}

static const char *innermost(const chrome_export *writer, size_t stack)
{
    size_t depth;
    const coffer_mlyze_frame *frames = coffer__mlyze_export_frames(&depth, &writer->export, stack);
    return coffer__mlyze_export_function(&writer->export, &frames[0]);
}

static void open_span(chrome_export *writer, uint64_t time, uint64_t address, uint64_t size, size_t stack,
                      uint16_t thread)
{
    size_t depth;
    const coffer_mlyze_frame *frames = coffer__mlyze_export_frames(&depth, &writer->export, stack);
    put_span(writer, "b", innermost(writer, stack), time, address, thread);
    open_args(writer);
    put_number(writer, "bytes", size);
    coffer__json_key(&writer->json, "stack");
    coffer__json_open_array(&writer->json);
    for (size_t i = 0; i < depth; i++)
        coffer__json_string(&writer->json, coffer__mlyze_export_function(&writer->export, &frames[i]));
    coffer__json_close_array(&writer->json);
    close_event_with_args(writer);
}

static void close_span(chrome_export *writer, uint64_t time, uint64_t address,
                       const coffer_mlyze_live_block *block)
{
    size_t stack = block->stack == UINT32_MAX ? SIZE_MAX : block->stack;
    put_span(writer, "e", innermost(writer, stack), time, address, block->thread);
    coffer__json_close_object(&writer->json);
}

static coffer_status take_alloc(chrome_export *writer, const coffer_mlyze_events *events, size_t i,
                                bool written, coffer_error *err)
{
    size_t stack = coffer_mlyze_find_stack(writer->export.trace, events->id[i]);
    uint64_t address = events->address[i];
    coffer_mlyze_live_block old, block = { .size = events->size[i],
                                           .time = events->time[i],
                                           .stack = stack < UINT32_MAX ? (uint32_t)stack : UINT32_MAX,
                                           .thread = events->thread[i] };
    bool replaced;
    if (address == 0) /* never freed: like the statistics, it does not count as live */
        return COFFER_OK;
    coffer_status status = coffer_mlyze_live_put(&replaced, &old, writer->live, address, &block, err);
    if (status)
        return status;
    if (replaced) {
        writer->live_bytes -= old.size;
        writer->live_blocks--;
        if (written && writer->allocations)
            close_span(writer, events->time[i], address, &old);
    }
    writer->live_bytes += block.size;
    writer->live_blocks++;
    if (written && writer->allocations)
        open_span(writer, block.time, address, block.size, stack, block.thread);
    return COFFER_OK;
}

static void take_free(chrome_export *writer, uint64_t time, uint64_t address, bool written)
{
    coffer_mlyze_live_block block;
    if (!coffer_mlyze_live_take(&block, writer->live, address))
        return;
    writer->live_bytes -= block.size;
    writer->live_blocks--;
    if (written && writer->allocations)
        close_span(writer, time, address, &block);
}

static void put_instant(chrome_export *writer, const char *name, uint64_t time)
{
    open_event(writer, name, "i", time);
    put_number(writer, "tid", 0);
    put_text(writer, "s", "g");
}

static void put_other(chrome_export *writer, const coffer_mlyze_events *events, size_t i)
{
    const char *name = coffer_mlyze_function_name(writer->export.trace, events->id[i]);
    uint64_t time = events->time[i];
    switch (events->type[i]) {
    case COFFER_MLYZE_MARKER:
        put_instant(writer, name ? name : "?", time);
        coffer__json_close_object(&writer->json);
        break;
    case COFFER_MLYZE_GC:
        put_instant(writer, "gc", time);
        open_args(writer);
        put_number(writer, "objects", events->id[i]);
        put_number(writer, "bytes", events->size[i]);
        close_event_with_args(writer);
        break;
    case COFFER_MLYZE_THREAD:
        put_name(writer, "thread_name", events->thread[i], name ? name : "?");
        break;
    case COFFER_MLYZE_RSS:
        put_counter(writer, "resident bytes", "bytes", time, events->size[i]);
        break;
    default:
        break;
    }
}

static coffer_status take_event(chrome_export *writer, const coffer_mlyze_events *events, size_t i,
                                coffer_error *err)
{
    bool written = events->first + i >= writer->begin;
    uint8_t type = events->type[i];
    coffer_status status = COFFER_OK;
    if (type == COFFER_MLYZE_ALLOC)
        status = take_alloc(writer, events, i, written, err);
    else if (type == COFFER_MLYZE_FREE)
        take_free(writer, events->time[i], events->address[i], written);
    else if (written)
        put_other(writer, events, i);
    if (!status && written && type <= COFFER_MLYZE_FREE)
        count(writer, events->time[i]);
    return status ? status : coffer__mlyze_export_drain(&writer->export, err);
}

static coffer_status take_all(chrome_export *writer, coffer_error *err)
{
    const coffer_mlyze_events *events;
    for (;;) {
        coffer_status status = coffer__mlyze_export_next(&events, &writer->export, err);
        if (status || !events)
            return status;
        for (size_t i = 0; !status && i < events->count; i++)
            status = take_event(writer, events, i, err);
        if (status)
            return status;
    }
}

static void put_head(chrome_export *writer)
{
    coffer__json_writer_init(&writer->json, &writer->export.out, 0);
    coffer__json_open_object(&writer->json);
    put_text(writer, "displayTimeUnit", "ms");
    coffer__json_key(&writer->json, "traceEvents");
    coffer__json_open_array(&writer->json);
    put_name(writer, "process_name", 0, coffer__mlyze_export_title(&writer->export));
    for (uint32_t thread = 0; thread <= UINT16_MAX; thread++) {
        const char *name = coffer_mlyze_thread_name(writer->export.trace, (uint16_t)thread);
        if (name)
            put_name(writer, "thread_name", thread, name);
    }
}

/* Only the window is written, but live blocks are known only by reading from the start. */
static coffer_status prepare(chrome_export *writer, coffer_error *err)
{
    size_t blocks = writer->export.block_count;
    coffer_mlyze_block last = COFFER_MLYZE_BLOCK_INIT;
    coffer_status status =
        blocks ? coffer_mlyze_get_block(&last, writer->export.trace, blocks - 1, err) : COFFER_OK;
    if (status)
        return status;
    writer->begin = writer->export.begin;
    writer->export.begin = 0;
    writer->export.block = 0;
    writer->resolution = 1 + last.time / COUNTER_POINTS;
    writer->allocations = coffer__job_has(writer->export.job, "allocations");
    status = coffer__job_number(&writer->resolution, writer->export.job, "resolution", UINT64_MAX / 2, err);
    if (writer->resolution == 0)
        writer->resolution = 1;
    return status;
}

coffer_status coffer__mlyze_to_chrome(const coffer__convert_job *job, coffer_error *err)
{
    chrome_export writer = { .live_bytes = 0 };
    coffer_status status = coffer__mlyze_export_open(&writer.export, job, COFFER__MLYZE_EXPORT_EVENTS,
                                                     COFFER__PACKING_NONE, err);
    if (!status)
        status = coffer_mlyze_live_new(&writer.live, err);
    if (!status)
        status = prepare(&writer, err);
    if (!status) {
        put_head(&writer);
        status = take_all(&writer, err);
    }
    if (!status) {
        close_point(&writer);
        coffer__json_close_array(&writer.json);
        coffer__json_close_object(&writer.json);
        status = coffer__mlyze_export_commit(&writer.export, err);
    }
    coffer__mlyze_export_close(&writer.export);
    coffer_mlyze_live_free(writer.live);
    return status;
}
