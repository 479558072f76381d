/* Every event as a row of CSV. */
#include "convert/traces/mlyze_export.h"
#include "outside/text/csv.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <string.h>

static const char *const type_names[] = { "alloc",     "free",     "gc",     "marker", "object",
                                          "reference", "snapshot", "thread", "rss" };
#define KNOWN_TYPES (sizeof type_names / sizeof *type_names)

typedef struct csv_export {
    coffer__mlyze_export export;
    bool stacks;
    coffer__buffer text; /* of one field */
} csv_export;

static void put_field(csv_export *writer, const char *text)
{
    coffer__csv_put_text(&writer->export.out, text, strlen(text));
}

/* The innermost function of an allocation, or the name that the event has. */
static const char *name_of(const csv_export *writer, uint8_t type, uint64_t id)
{
    size_t depth;
    if (type == COFFER_MLYZE_ALLOC) {
        const coffer_mlyze_frame *frames =
            coffer__mlyze_export_frames(&depth, &writer->export,
                                        coffer_mlyze_find_stack(writer->export.trace, id));
        return coffer__mlyze_export_function(&writer->export, &frames[0]);
    }
    bool named = type == COFFER_MLYZE_MARKER || type == COFFER_MLYZE_OBJECT ||
                 type == COFFER_MLYZE_REFERENCE || type == COFFER_MLYZE_THREAD;
    const char *name = named ? coffer_mlyze_function_name(writer->export.trace, id) : "";
    return name ? name : "?";
}

static void put_frames(csv_export *writer, uint64_t id)
{
    size_t depth;
    const coffer_mlyze_frame *frames =
        coffer__mlyze_export_frames(&depth, &writer->export,
                                    coffer_mlyze_find_stack(writer->export.trace, id));
    writer->text.len = 0;
    for (size_t i = depth; i-- > 0;) {
        coffer__mlyze_put_line_text(&writer->text, coffer__mlyze_export_function(&writer->export, &frames[i]),
                                    ';');
        coffer__buffer_append(&writer->text, ";", i > 0);
    }
    coffer__csv_put_text(&writer->export.out, coffer__buffer_text(&writer->text), writer->text.len);
    if (writer->text.failed)
        writer->export.out.failed = true;
}

static void put_event(csv_export *writer, const coffer_mlyze_events *events, size_t i)
{
    char row[5 * (COFFER__DECIMAL_U64 + 1) + 32], *at = row;
    uint8_t type = events->type[i];
    const char *type_name = type < KNOWN_TYPES ? type_names[type] : "unknown";
    const uint64_t numbers[] = { events->address[i], events->size[i], events->id[i], events->thread[i] };
    at = coffer__put_u64(at, events->first + i);
    *at++ = ',';
    at = coffer__put_u64(at, events->time[i]);
    *at++ = ',';
    memcpy(at, type_name, strlen(type_name));
    at += strlen(type_name);
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        *at++ = ',';
        at = coffer__put_u64(at, numbers[n]);
    }
    *at++ = ',';
    coffer__buffer_append(&writer->export.out, row, (size_t)(at - row));
    put_field(writer, name_of(writer, type, events->id[i]));
    if (writer->stacks) {
        coffer__buffer_append(&writer->export.out, ",", 1);
        if (type == COFFER_MLYZE_ALLOC)
            put_frames(writer, events->id[i]);
    }
    coffer__buffer_append(&writer->export.out, "\n", 1);
}

static coffer_status put_all(csv_export *writer, coffer_error *err)
{
    const coffer_mlyze_events *events;
    coffer__buffer_printf(&writer->export.out, "event,time_us,type,address,size,id,thread,name%s\n",
                          writer->stacks ? ",stack" : "");
    for (;;) {
        coffer_status status = coffer__mlyze_export_next(&events, &writer->export, err);
        if (!status && !events)
            return coffer__mlyze_export_commit(&writer->export, err);
        for (size_t i = 0; !status && i < events->count; i++) {
            put_event(writer, events, i);
            status = coffer__mlyze_export_drain(&writer->export, err);
        }
        if (status)
            return status;
    }
}

coffer_status coffer__mlyze_to_csv(const coffer__convert_job *job, coffer_error *err)
{
    csv_export writer = { .stacks = coffer__job_has(job, "stacks"), .text = COFFER__BUFFER_INIT };
    coffer_status status = coffer__mlyze_export_open(&writer.export, job, COFFER__MLYZE_EXPORT_EVENTS,
                                                     COFFER__PACKING_NONE, err);
    if (!status)
        status = put_all(&writer, err);
    coffer__mlyze_export_close(&writer.export);
    coffer__buffer_free(&writer.text);
    return status;
}
