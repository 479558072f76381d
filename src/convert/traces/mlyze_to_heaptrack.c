/* Recordings as heaptrack_interpret writes them (see heaptrack.h): format 1, which every heaptrack reads.
 * Strings, instructions and traces are written just before the first allocation that needs them. */
#include "base/fail.h"
#include "convert/traces/mlyze_export.h"
#include "outside/profiles/profile_text.h"

#include <inttypes.h>

#define PAGE_SIZE_WRITTEN 4096
#define US_PER_MS 1000

typedef struct heaptrack_export {
    coffer__mlyze_export export;
    coffer__triples strings; /* what it is of, its id: number from 1 */
    coffer__triples ips;     /* function, file (strings), line: number from 1 */
    coffer__triples traces;  /* ip, parent: number from 1 */
    coffer__triples kinds;   /* size, stack: number from 0; */
    coffer_mlyze_live *live;
    uint64_t now_ms;
} heaptrack_export;

static void put_hex(heaptrack_export *writer, char type, const uint64_t *numbers, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    char line[4 + 17 * 5], *at = line;
    *at++ = type;
    for (size_t i = 0; i < count; i++) {
        unsigned shift = 60;
        *at++ = ' ';
        while (shift > 0 && numbers[i] >> shift == 0)
            shift -= 4;
        for (;; shift -= 4) {
            *at++ = digits[numbers[i] >> shift & 15];
            if (shift == 0)
                break;
        }
    }
    *at++ = '\n';
    coffer__buffer_append(&writer->export.out, line, (size_t)(at - line));
}

/* ---- Names and stacks ---- */

enum { OF_FUNCTION, OF_FILE };

static coffer_status string_of(uint64_t *number, heaptrack_export *writer, unsigned what, uint64_t id,
                               const char *text, coffer_error *err)
{
    size_t place;
    bool is_new;
    *number = 0;
    if (!text || !*text)
        return COFFER_OK;
    coffer_status status =
        coffer__triples_add(&place, &is_new, &writer->strings, (coffer__triple){ what, id, 0 }, err);
    if (status)
        return status;
    *number = place + 1;
    if (is_new) {
        coffer__buffer_append(&writer->export.out, "s ", 2);
        coffer__mlyze_put_line_text(&writer->export.out, text, 0);
        coffer__buffer_append(&writer->export.out, "\n", 1);
    }
    return COFFER_OK;
}

static coffer_status ip_of(uint64_t *number, heaptrack_export *writer, const coffer_mlyze_frame *frame,
                           coffer_error *err)
{
    const coffer_mlyze *trace = writer->export.trace;
    uint64_t function = 0, file = 0;
    size_t place = 0;
    bool is_new = false;
    coffer_status status = string_of(&function, writer, OF_FUNCTION, frame->func_id,
                                     coffer_mlyze_function_name(trace, frame->func_id), err);
    if (!status)
        status = string_of(&file, writer, OF_FILE, frame->file_id,
                           coffer_mlyze_file_name(trace, frame->file_id), err);
    if (!status)
        status = coffer__triples_add(&place, &is_new, &writer->ips,
                                     (coffer__triple){ function, file, frame->line }, err);
    *number = place + 1;
    /* The address is synthetic: readers expect different ones for different instructions. */
    if (!status && is_new)
        put_hex(writer, 'i', (uint64_t[]){ *number, 0, function, file, frame->line }, 5);
    return status;
}

static coffer_status trace_of(uint64_t *number, heaptrack_export *writer, size_t stack, coffer_error *err)
{
    size_t depth;
    const coffer_mlyze_frame *frames = coffer__mlyze_export_frames(&depth, &writer->export, stack);
    coffer_status status = COFFER_OK;
    *number = 0;
    for (size_t i = depth; !status && i-- > 0;) {
        uint64_t ip;
        size_t place = 0;
        bool is_new = false;
        status = ip_of(&ip, writer, &frames[i], err);
        if (!status)
            status = coffer__triples_add(&place, &is_new, &writer->traces, (coffer__triple){ ip, *number, 0 },
                                         err);
        if (!status && is_new)
            put_hex(writer, 't', (uint64_t[]){ ip, *number }, 2);
        *number = place + 1;
    }
    return status;
}

static coffer_status kind_of(uint64_t *number, heaptrack_export *writer, uint64_t size, uint64_t stack_id,
                             coffer_error *err)
{
    size_t stack = coffer_mlyze_find_stack(writer->export.trace, stack_id), place;
    bool is_new;
    uint64_t trace;
    coffer_status status =
        coffer__triples_add(&place, &is_new, &writer->kinds, (coffer__triple){ size, stack, 0 }, err);
    if (status)
        return status;
    *number = place;
    if (!is_new)
        return COFFER_OK;
    status = trace_of(&trace, writer, stack, err);
    if (!status)
        put_hex(writer, 'a', (uint64_t[]){ size, trace }, 2);
    return status;
}

/* ---- Events ---- */

static coffer_status put_alloc(heaptrack_export *writer, uint64_t address, uint64_t size, uint64_t stack,
                               coffer_error *err)
{
    coffer_mlyze_live_block block = { .size = size }, old;
    bool replaced;
    uint64_t kind;
    coffer_status status = kind_of(&kind, writer, size, stack, err);
    if (!status && address != 0) {
        block.tag = kind;
        status = coffer_mlyze_live_put(&replaced, &old, writer->live, address, &block, err);
        /* The block that was there is gone, although nothing freed it. */
        if (!status && replaced)
            put_hex(writer, '-', &old.tag, 1);
    }
    if (!status)
        put_hex(writer, '+', &kind, 1);
    /* A block at address 0 is never freed: like the statistics, it does not count as live. */
    if (!status && address == 0)
        put_hex(writer, '-', &kind, 1);
    return status;
}

static void put_free(heaptrack_export *writer, uint64_t address)
{
    coffer_mlyze_live_block block;
    if (coffer_mlyze_live_take(&block, writer->live, address))
        put_hex(writer, '-', &block.tag, 1);
}

static coffer_status put_event(heaptrack_export *writer, const coffer_mlyze_events *events, size_t i,
                               coffer_error *err)
{
    uint64_t ms = events->time[i] / US_PER_MS, pages = events->size[i] / PAGE_SIZE_WRITTEN;
    if (ms > writer->now_ms) {
        writer->now_ms = ms;
        put_hex(writer, 'c', &ms, 1);
    }
    switch (events->type[i]) {
    case COFFER_MLYZE_ALLOC:
        return put_alloc(writer, events->address[i], events->size[i], events->id[i], err);
    case COFFER_MLYZE_FREE:
        put_free(writer, events->address[i]);
        break;
    case COFFER_MLYZE_RSS:
        put_hex(writer, 'R', &pages, 1);
        break;
    default: /* markers and objects have no record there */
        break;
    }
    return COFFER_OK;
}

static coffer_status put_all(heaptrack_export *writer, coffer_error *err)
{
    const coffer_mlyze_events *events;
    coffer__buffer_printf(&writer->export.out, "v 10400 1\nX ");
    coffer__mlyze_put_line_text(&writer->export.out, coffer__mlyze_export_command(&writer->export), 0);
    coffer__buffer_printf(&writer->export.out, "\nI %x 0\n", PAGE_SIZE_WRITTEN);
    for (;;) {
        coffer_status status = coffer__mlyze_export_next(&events, &writer->export, err);
        if (!status && !events)
            break;
        for (size_t i = 0; !status && i < events->count; i++) {
            status = put_event(writer, events, i, err);
            if (!status)
                status = coffer__mlyze_export_drain(&writer->export, err);
        }
        if (status)
            return status;
    }
    writer->now_ms++;
    put_hex(writer, 'c', &writer->now_ms, 1);
    return coffer__mlyze_export_commit(&writer->export, err);
}

coffer_status coffer__mlyze_to_heaptrack(const coffer__convert_job *job, coffer_error *err)
{
    heaptrack_export writer = { .now_ms = 0 };
    coffer_status status = coffer__mlyze_export_open(&writer.export, job, COFFER__MLYZE_EXPORT_EVENTS,
                                                     coffer__packing_by_name(job->out_path), err);
    if (!status)
        status = coffer_mlyze_live_new(&writer.live, err);
    if (!status)
        status = put_all(&writer, err);
    coffer__mlyze_export_close(&writer.export);
    coffer_mlyze_live_free(writer.live);
    coffer__triples_free(&writer.strings);
    coffer__triples_free(&writer.ips);
    coffer__triples_free(&writer.traces);
    coffer__triples_free(&writer.kinds);
    return status;
}
