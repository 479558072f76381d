/* Speedscope's JSON: a table of frames, and a profile for each kind of sum, as stacks with weights. */
#include "base/json_write.h"
#include "coffer/version.h"
#include "convert/traces/mlyze_export.h"
#include "outside/profiles/profile_text.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

typedef struct speedscope {
    coffer__mlyze_export export;
    coffer__json_writer json;
    coffer__triples frames; /* function, file, line */
} speedscope;

static void put_text(coffer__json_writer *json, const char *key, const char *text)
{
    coffer__json_key(json, key);
    coffer__json_string(json, text);
}

static void put_number(coffer__json_writer *json, const char *key, uint64_t value)
{
    coffer__json_key(json, key);
    coffer__json_write_u64(json, value);
}

static coffer_status put_frame(speedscope *writer, const coffer_mlyze_frame *frame, coffer_error *err)
{
    const char *file = coffer__mlyze_export_file(&writer->export, frame);
    size_t place;
    bool is_new;
    coffer__triple key = { frame->func_id, frame->file_id, frame->line };
    coffer_status status = coffer__triples_add(&place, &is_new, &writer->frames, key, err);
    if (status || !is_new)
        return status;
    coffer__json_open_object(&writer->json);
    put_text(&writer->json, "name", coffer__mlyze_export_function(&writer->export, frame));
    if (*file)
        put_text(&writer->json, "file", file);
    if (frame->line)
        put_number(&writer->json, "line", frame->line);
    coffer__json_close_object(&writer->json);
    return coffer__mlyze_export_drain(&writer->export, err);
}

static coffer_status put_frames(speedscope *writer, coffer_error *err)
{
    size_t count = coffer_mlyze_stats_stack_count(writer->export.stats);
    coffer_status status = COFFER_OK;
    coffer__json_key(&writer->json, "frames");
    coffer__json_open_array(&writer->json);
    for (size_t i = 0; !status && i < count; i++) {
        size_t depth;
        const coffer_mlyze_frame *frames =
            coffer__mlyze_export_frames(&depth, &writer->export,
                                        coffer_mlyze_stats_stack_at(writer->export.stats, i)->stack);
        for (size_t j = 0; !status && j < depth; j++)
            status = put_frame(writer, &frames[j], err);
    }
    coffer__json_close_array(&writer->json);
    return status;
}

/* Outermost first. */
static coffer_status put_stack(speedscope *writer, const coffer_mlyze_stack_row *row, coffer_error *err)
{
    size_t depth, place;
    bool is_new;
    const coffer_mlyze_frame *frames = coffer__mlyze_export_frames(&depth, &writer->export, row->stack);
    coffer_status status = COFFER_OK;
    coffer__json_open_array(&writer->json);
    for (size_t i = depth; !status && i-- > 0;) {
        coffer__triple key = { frames[i].func_id, frames[i].file_id, frames[i].line };
        status = coffer__triples_add(&place, &is_new, &writer->frames, key, err);
        coffer__json_write_u64(&writer->json, place);
    }
    coffer__json_close_array(&writer->json);
    return status ? status : coffer__mlyze_export_drain(&writer->export, err);
}

static coffer_status put_profile(speedscope *writer, coffer_mlyze_measure measure, coffer_error *err)
{
    const coffer_mlyze_stats *stats = writer->export.stats;
    size_t count = coffer_mlyze_stats_stack_count(stats);
    coffer_status status = COFFER_OK;
    uint64_t sum = 0;
    coffer__json_open_object(&writer->json);
    put_text(&writer->json, "type", "sampled");
    put_text(&writer->json, "name", coffer__mlyze_measure_name(measure));
    put_text(&writer->json, "unit", "bytes");
    coffer__json_key(&writer->json, "samples");
    coffer__json_open_array(&writer->json);
    for (size_t i = 0; !status && i < count; i++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(stats, i);
        if (coffer_mlyze_stack_row_bytes(row, measure) > 0)
            status = put_stack(writer, row, err);
    }
    coffer__json_close_array(&writer->json);
    coffer__json_key(&writer->json, "weights");
    coffer__json_open_array(&writer->json);
    for (size_t i = 0; !status && i < count; i++) {
        uint64_t bytes = coffer_mlyze_stack_row_bytes(coffer_mlyze_stats_stack_at(stats, i), measure);
        sum += bytes;
        if (bytes > 0)
            coffer__json_write_u64(&writer->json, bytes);
    }
    coffer__json_close_array(&writer->json);
    put_number(&writer->json, "startValue", 0);
    put_number(&writer->json, "endValue", sum);
    coffer__json_close_object(&writer->json);
    return status;
}

/* All kinds of sums are there to choose from, unless one is asked for. */
static coffer_status put_all(speedscope *writer, coffer_error *err)
{
    coffer_status status;
    coffer__json_writer_init(&writer->json, &writer->export.out, 0);
    coffer__json_open_object(&writer->json);
    put_text(&writer->json, "$schema", SCHEMA);
    put_text(&writer->json, "exporter", "coffer " COFFER_VERSION_STRING);
    put_text(&writer->json, "name", coffer__mlyze_export_title(&writer->export));
    put_number(&writer->json, "activeProfileIndex", 0);
    coffer__json_key(&writer->json, "shared");
    coffer__json_open_object(&writer->json);
    status = put_frames(writer, err);
    coffer__json_close_object(&writer->json);
    coffer__json_key(&writer->json, "profiles");
    coffer__json_open_array(&writer->json);
    for (int i = COFFER_MLYZE_MEASURE_PEAK; !status && i <= COFFER_MLYZE_MEASURE_TEMPORARY; i++) {
        if (!writer->export.what_given || (int)writer->export.what == i)
            status = put_profile(writer, (coffer_mlyze_measure)i, err);
    }
    coffer__json_close_array(&writer->json);
    coffer__json_close_object(&writer->json);
    return status ? status : coffer__mlyze_export_commit(&writer->export, err);
}

coffer_status coffer__mlyze_to_speedscope(const coffer__convert_job *job, coffer_error *err)
{
    speedscope writer = { .frames = { .items = NULL } };
    coffer_status status = coffer__mlyze_export_open(&writer.export, job, COFFER__MLYZE_EXPORT_PROFILE,
                                                     COFFER__PACKING_NONE, err);
    if (!status)
        status = put_all(&writer, err);
    coffer__mlyze_export_close(&writer.export);
    coffer__triples_free(&writer.frames);
    return status;
}
