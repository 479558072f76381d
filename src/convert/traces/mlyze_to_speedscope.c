/* Speedscope's JSON: a table of frames, and a profile for each kind of sum, as stacks with weights. */
#include "base/json_write.h"
#include "coffer/version.h"
#include "convert/traces/mlyze_export.h"
#include "outside/profiles/triples.h"

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

static coffer_status put_frame(speedscope *to, const coffer_mlyze_frame *frame, coffer_error *err)
{
    const char *file = coffer__mlyze_export_file(&to->export, frame);
    size_t place;
    bool is_new;
    coffer__triple key = { frame->func_id, frame->file_id, frame->line };
    coffer_status status = coffer__triples_add(&place, &is_new, &to->frames, key, err);
    if (status || !is_new)
        return status;
    coffer__json_open_object(&to->json);
    put_text(&to->json, "name", coffer__mlyze_export_function(&to->export, frame));
    if (*file)
        put_text(&to->json, "file", file);
    if (frame->line)
        put_number(&to->json, "line", frame->line);
    coffer__json_close_object(&to->json);
    return coffer__mlyze_export_drain(&to->export, err);
}

static coffer_status put_frames(speedscope *to, coffer_error *err)
{
    size_t count = coffer_mlyze_stats_stack_count(to->export.stats);
    coffer_status status = COFFER_OK;
    coffer__json_key(&to->json, "frames");
    coffer__json_open_array(&to->json);
    for (size_t i = 0; !status && i < count; i++) {
        size_t depth;
        const coffer_mlyze_frame *frames =
            coffer__mlyze_export_frames(&depth, &to->export,
                                        coffer_mlyze_stats_stack_at(to->export.stats, i)->stack);
        for (size_t j = 0; !status && j < depth; j++)
            status = put_frame(to, &frames[j], err);
    }
    coffer__json_close_array(&to->json);
    return status;
}

/* Outermost first. */
static coffer_status put_stack(speedscope *to, const coffer_mlyze_stack_row *row, coffer_error *err)
{
    size_t depth, place;
    bool is_new;
    const coffer_mlyze_frame *frames = coffer__mlyze_export_frames(&depth, &to->export, row->stack);
    coffer_status status = COFFER_OK;
    coffer__json_open_array(&to->json);
    for (size_t i = depth; !status && i-- > 0;) {
        coffer__triple key = { frames[i].func_id, frames[i].file_id, frames[i].line };
        status = coffer__triples_add(&place, &is_new, &to->frames, key, err);
        coffer__json_write_u64(&to->json, place);
    }
    coffer__json_close_array(&to->json);
    return status ? status : coffer__mlyze_export_drain(&to->export, err);
}

static coffer_status put_profile(speedscope *to, coffer_mlyze_measure measure, coffer_error *err)
{
    const coffer_mlyze_stats *stats = to->export.stats;
    size_t count = coffer_mlyze_stats_stack_count(stats);
    coffer_status status = COFFER_OK;
    uint64_t sum = 0;
    coffer__json_open_object(&to->json);
    put_text(&to->json, "type", "sampled");
    put_text(&to->json, "name", coffer__mlyze_measure_name(measure));
    put_text(&to->json, "unit", "bytes");
    coffer__json_key(&to->json, "samples");
    coffer__json_open_array(&to->json);
    for (size_t i = 0; !status && i < count; i++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(stats, i);
        if (coffer_mlyze_stack_row_bytes(row, measure) > 0)
            status = put_stack(to, row, err);
    }
    coffer__json_close_array(&to->json);
    coffer__json_key(&to->json, "weights");
    coffer__json_open_array(&to->json);
    for (size_t i = 0; !status && i < count; i++) {
        uint64_t bytes = coffer_mlyze_stack_row_bytes(coffer_mlyze_stats_stack_at(stats, i), measure);
        sum += bytes;
        if (bytes > 0)
            coffer__json_write_u64(&to->json, bytes);
    }
    coffer__json_close_array(&to->json);
    put_number(&to->json, "startValue", 0);
    put_number(&to->json, "endValue", sum);
    coffer__json_close_object(&to->json);
    return status;
}

/* All kinds of sums are there to choose from, unless one is asked for. */
static coffer_status put_all(speedscope *to, coffer_error *err)
{
    coffer_status status;
    coffer__json_writer_init(&to->json, &to->export.out, 0);
    coffer__json_open_object(&to->json);
    put_text(&to->json, "$schema", SCHEMA);
    put_text(&to->json, "exporter", "coffer " COFFER_VERSION_STRING);
    put_text(&to->json, "name", coffer__mlyze_export_title(&to->export));
    put_number(&to->json, "activeProfileIndex", 0);
    coffer__json_key(&to->json, "shared");
    coffer__json_open_object(&to->json);
    status = put_frames(to, err);
    coffer__json_close_object(&to->json);
    coffer__json_key(&to->json, "profiles");
    coffer__json_open_array(&to->json);
    for (int i = COFFER_MLYZE_MEASURE_PEAK; !status && i <= COFFER_MLYZE_MEASURE_TEMPORARY; i++) {
        if (!to->export.what_given || (int)to->export.what == i)
            status = put_profile(to, (coffer_mlyze_measure)i, err);
    }
    coffer__json_close_array(&to->json);
    coffer__json_close_object(&to->json);
    return status ? status : coffer__mlyze_export_commit(&to->export, err);
}

coffer_status coffer__mlyze_to_speedscope(const coffer__convert_job *job, coffer_error *err)
{
    speedscope to = { .frames = { .items = NULL } };
    coffer_status status =
        coffer__mlyze_export_open(&to.export, job, COFFER__MLYZE_EXPORT_PROFILE, COFFER__PACKING_NONE, err);
    if (!status)
        status = put_all(&to, err);
    coffer__mlyze_export_close(&to.export);
    coffer__triples_free(&to.frames);
    return status;
}
