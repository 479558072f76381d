/* Profiles for pprof, packed with gzip: objects and bytes allocated, live at the end and live at the peak. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/traces/mlyze_export.h"
#include "outside/profiles/pprof.h"
#include "outside/profiles/profile_text.h"

#include <string.h>

/* Counts and bytes by turns; the first of a pair is a count. */
static const struct {
    const char *name;
    coffer_mlyze_measure measure;
} types[] = {
    { "alloc_objects", COFFER_MLYZE_MEASURE_TOTAL },
    { "alloc_space", COFFER_MLYZE_MEASURE_TOTAL },
    { "inuse_objects", COFFER_MLYZE_MEASURE_LIVE },
    { "inuse_space", COFFER_MLYZE_MEASURE_LIVE },
    { "temporary_objects", COFFER_MLYZE_MEASURE_TEMPORARY },
    { "temporary_space", COFFER_MLYZE_MEASURE_TEMPORARY },
    { "peak_objects", COFFER_MLYZE_MEASURE_PEAK },
    { "peak_space", COFFER_MLYZE_MEASURE_PEAK },
};
#define TYPES (sizeof types / sizeof *types)

/* Strings in the order of the file: "", the two units, the types, then names and files as they appear. */
enum {
    STRING_EMPTY,
    STRING_COUNT,
    STRING_BYTES,
    STRING_FIRST_TYPE,
    STRING_NAMES = STRING_FIRST_TYPE + TYPES
};

typedef struct pprof_export {
    coffer__mlyze_export export;
    coffer__triples strings;   /* what it is of, its id */
    coffer__triples functions; /* name and file, as strings */
    coffer__triples locations; /* function, line */
    coffer__buffer message, packed;
} pprof_export;

/* The field whose message is being written. */
static void put_message(pprof_export *writer, uint32_t number)
{
    coffer__protobuf_put_bytes(&writer->export.out, number, writer->message.data, writer->message.len);
    writer->message.len = 0;
    if (writer->message.failed)
        writer->export.out.failed = true;
}

static void put_string(pprof_export *writer, const char *text)
{
    coffer__protobuf_put_bytes(&writer->export.out, COFFER__PPROF_STRING, text, strlen(text));
}

static void put_value_type(pprof_export *writer, uint32_t number, uint64_t type, uint64_t unit)
{
    coffer__protobuf_put_u64(&writer->message, COFFER__PPROF_VALUE_TYPE, type);
    coffer__protobuf_put_u64(&writer->message, COFFER__PPROF_VALUE_UNIT, unit);
    put_message(writer, number);
}

static void put_head(pprof_export *writer)
{
    uint64_t shown = 0;
    for (size_t i = 0; i < TYPES; i++) {
        put_value_type(writer, COFFER__PPROF_SAMPLE_TYPE, STRING_FIRST_TYPE + i,
                       i % 2 ? STRING_BYTES : STRING_COUNT);
        if (types[i].measure == writer->export.what)
            shown = STRING_FIRST_TYPE + i;
    }
    coffer__protobuf_put_u64(&writer->export.out, COFFER__PPROF_TIME_NANOS,
                             coffer_mlyze_start_time(writer->export.trace) * 1000);
    put_value_type(writer, COFFER__PPROF_PERIOD_TYPE, STRING_FIRST_TYPE + 1, STRING_BYTES);
    coffer__protobuf_put_u64(&writer->export.out, COFFER__PPROF_PERIOD, 1);
    coffer__protobuf_put_u64(&writer->export.out, COFFER__PPROF_DEFAULT_TYPE, shown);
    put_string(writer, "");
    put_string(writer, "count");
    put_string(writer, "bytes");
    for (size_t i = 0; i < TYPES; i++)
        put_string(writer, types[i].name);
}

/* ---- Tables, written as they are first used ---- */

enum { OF_FUNCTION, OF_FILE, OF_NOTHING };

static coffer_status string_of(uint64_t *number, pprof_export *writer, const coffer_mlyze_frame *frame,
                               bool is_file, coffer_error *err)
{
    const char *function = coffer_mlyze_function_name(writer->export.trace, frame->func_id);
    const char *file = coffer__mlyze_export_file(&writer->export, frame);
    coffer__triple key = { OF_NOTHING, 0, 0 }; /* a function without any name */
    size_t place;
    bool is_new;
    *number = STRING_EMPTY;
    if (is_file && !*file)
        return COFFER_OK;
    if (!is_file && function && *function)
        key = (coffer__triple){ OF_FUNCTION, frame->func_id, 0 };
    else if (*file)
        key = (coffer__triple){ OF_FILE, frame->file_id, 0 };
    coffer_status status = coffer__triples_add(&place, &is_new, &writer->strings, key, err);
    if (status)
        return status;
    *number = STRING_NAMES + place;
    if (is_new)
        put_string(writer, is_file ? file : coffer__mlyze_export_function(&writer->export, frame));
    return COFFER_OK;
}

static coffer_status function_of(uint64_t *id, pprof_export *writer, const coffer_mlyze_frame *frame,
                                 coffer_error *err)
{
    uint64_t name = 0, file = 0;
    size_t place = 0;
    bool is_new = false;
    coffer_status status = string_of(&name, writer, frame, false, err);
    if (!status)
        status = string_of(&file, writer, frame, true, err);
    if (!status)
        status =
            coffer__triples_add(&place, &is_new, &writer->functions, (coffer__triple){ name, file, 0 }, err);
    *id = place + 1;
    if (status || !is_new)
        return status;
    coffer__protobuf_put_u64(&writer->message, COFFER__PPROF_ID, *id);
    coffer__protobuf_put_u64(&writer->message, COFFER__PPROF_FUNCTION_NAME, name);
    coffer__protobuf_put_u64(&writer->message, COFFER__PPROF_FUNCTION_SYSTEM_NAME, name);
    coffer__protobuf_put_u64(&writer->message, COFFER__PPROF_FUNCTION_FILE, file);
    put_message(writer, COFFER__PPROF_FUNCTION);
    return COFFER_OK;
}

static coffer_status location_of(uint64_t *id, pprof_export *writer, const coffer_mlyze_frame *frame,
                                 coffer_error *err)
{
    uint64_t function = 0;
    size_t place = 0;
    bool is_new = false;
    coffer_status status = function_of(&function, writer, frame, err);
    if (!status)
        status = coffer__triples_add(&place, &is_new, &writer->locations,
                                     (coffer__triple){ function, frame->line, 0 }, err);
    *id = place + 1;
    if (status || !is_new)
        return status;
    writer->packed.len = 0;
    coffer__protobuf_put_u64(&writer->packed, COFFER__PPROF_LINE_FUNCTION, function);
    coffer__protobuf_put_u64(&writer->packed, COFFER__PPROF_LINE_LINE, frame->line);
    coffer__protobuf_put_u64(&writer->message, COFFER__PPROF_ID, *id);
    coffer__protobuf_put_bytes(&writer->message, COFFER__PPROF_LOCATION_LINE, writer->packed.data,
                               writer->packed.len);
    put_message(writer, COFFER__PPROF_LOCATION);
    return COFFER_OK;
}

/* ---- Samples ---- */

static coffer_status put_sample(pprof_export *writer, const coffer_mlyze_stack_row *row, coffer_error *err)
{
    size_t depth;
    const coffer_mlyze_frame *frames = coffer__mlyze_export_frames(&depth, &writer->export, row->stack);
    coffer__buffer ids = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < depth; i++) {
        uint64_t id = 0;
        status = location_of(&id, writer, &frames[i], err);
        coffer__protobuf_put_varint(&ids, id);
    }
    writer->packed.len = 0;
    for (size_t i = 0; i < TYPES; i++)
        coffer__protobuf_put_varint(&writer->packed,
                                    i % 2 ? coffer_mlyze_stack_row_bytes(row, types[i].measure)
                                          : coffer_mlyze_stack_row_allocs(row, types[i].measure));
    coffer__protobuf_put_bytes(&writer->message, COFFER__PPROF_SAMPLE_LOCATIONS, ids.data, ids.len);
    coffer__protobuf_put_bytes(&writer->message, COFFER__PPROF_SAMPLE_VALUES, writer->packed.data,
                               writer->packed.len);
    put_message(writer, COFFER__PPROF_SAMPLE);
    if (!status && (ids.failed || writer->packed.failed))
        status = coffer__fail_no_memory(err, ids.len);
    coffer__buffer_free(&ids);
    return status ? status : coffer__mlyze_export_drain(&writer->export, err);
}

static coffer_status put_samples(pprof_export *writer, coffer_error *err)
{
    const coffer_mlyze_stats *stats = writer->export.stats;
    size_t count = coffer_mlyze_stats_stack_count(stats);
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < count; i++)
        status = put_sample(writer, coffer_mlyze_stats_stack_at(stats, i), err);
    return status ? status : coffer__mlyze_export_commit(&writer->export, err);
}

coffer_status coffer__mlyze_to_pprof(const coffer__convert_job *job, coffer_error *err)
{
    pprof_export writer = { .message = COFFER__BUFFER_INIT, .packed = COFFER__BUFFER_INIT };
    coffer_status status = coffer__mlyze_export_open(&writer.export, job, COFFER__MLYZE_EXPORT_PROFILE,
                                                     COFFER__PACKING_GZIP, err);
    if (!status) {
        put_head(&writer);
        status = put_samples(&writer, err);
    }
    coffer__mlyze_export_close(&writer.export);
    coffer__triples_free(&writer.strings);
    coffer__triples_free(&writer.functions);
    coffer__triples_free(&writer.locations);
    coffer__buffer_free(&writer.message);
    coffer__buffer_free(&writer.packed);
    return status;
}
