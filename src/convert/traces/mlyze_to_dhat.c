/* DHAT's JSON, for its viewer: for each stack its total, peak and final allocations. */
#include "base/fail.h"
#include "base/json_write.h"
#include "convert/traces/mlyze_export.h"
#include "convert/traces/mlyze_import.h"
#include "outside/profiles/profile_text.h"

typedef struct dhat_export {
    coffer__mlyze_export export;
    coffer__json_writer json;
    coffer__triples frames; /* function, file, line: place + 1 in the table, whose first is the root */
    coffer__buffer label;
} dhat_export;

static void put_number(dhat_export *writer, const char *key, uint64_t value)
{
    coffer__json_key(&writer->json, key);
    coffer__json_write_u64(&writer->json, value);
}

static void put_text(dhat_export *writer, const char *key, const char *text)
{
    coffer__json_key(&writer->json, key);
    coffer__json_string(&writer->json, text);
}

static void put_head(dhat_export *writer)
{
    const coffer_mlyze_totals *totals = coffer_mlyze_stats_totals(writer->export.stats);
    coffer__json_writer_init(&writer->json, &writer->export.out, 0);
    coffer__json_open_object(&writer->json);
    put_number(writer, "dhatFileVersion", COFFER__DHAT_VERSION);
    put_text(writer, "mode", "heap");
    put_text(writer, "verb", "Allocated");
    coffer__json_key(&writer->json, "bklt"); /* lifetimes of blocks are known, accesses are not */
    coffer__json_write_bool(&writer->json, true);
    coffer__json_key(&writer->json, "bkacc");
    coffer__json_write_bool(&writer->json, false);
    put_text(writer, "tu", "µs");
    put_text(writer, "Mtu", "s");
    put_number(writer, "tuth", 10);
    put_text(writer, "cmd", coffer__mlyze_export_command(&writer->export));
    put_number(writer, "pid", 0);
    put_number(writer, "te", totals->duration_us);
    put_number(writer, "tg", totals->peak_time_us);
}

static coffer_status put_stack(dhat_export *writer, const coffer_mlyze_stack_row *row, coffer_error *err)
{
    size_t depth, place;
    bool is_new;
    const coffer_mlyze_frame *frames = coffer__mlyze_export_frames(&depth, &writer->export, row->stack);
    coffer_status status = COFFER_OK;
    coffer__json_key(&writer->json, "fs");
    coffer__json_open_array(&writer->json);
    for (size_t i = 0; !status && i < depth; i++) {
        coffer__triple key = { frames[i].func_id, frames[i].file_id, frames[i].line };
        status = coffer__triples_add(&place, &is_new, &writer->frames, key, err);
        coffer__json_write_u64(&writer->json, place + 1);
    }
    coffer__json_close_array(&writer->json);
    return status;
}

/* The maximum of a single stack (mb) is not tracked: it is at least its value at the peak and at the end. */
static coffer_status put_point(dhat_export *writer, const coffer_mlyze_stack_row *row, coffer_error *err)
{
    bool end_is_more = row->live_bytes > row->peak_bytes;
    coffer__json_open_object(&writer->json);
    put_number(writer, "tb", row->allocated_bytes);
    put_number(writer, "tbk", row->allocs);
    put_number(writer, "tl", row->lifetime_us);
    put_number(writer, "mb", end_is_more ? row->live_bytes : row->peak_bytes);
    put_number(writer, "mbk", end_is_more ? row->live_allocs : row->peak_allocs);
    put_number(writer, "gb", row->peak_bytes);
    put_number(writer, "gbk", row->peak_allocs);
    put_number(writer, "eb", row->live_bytes);
    put_number(writer, "ebk", row->live_allocs);
    coffer_status status = put_stack(writer, row, err);
    coffer__json_close_object(&writer->json);
    return status ? status : coffer__mlyze_export_drain(&writer->export, err);
}

static coffer_status put_frame(dhat_export *writer, const coffer__triple *triple, coffer_error *err)
{
    coffer_mlyze_frame frame = { .func_id = triple->a, .file_id = triple->b, .line = triple->c };
    writer->label.len = 0;
    coffer__mlyze_put_label(&writer->label, &writer->export, &frame);
    if (writer->label.failed)
        return coffer__fail_no_memory(err, writer->label.len);
    coffer__json_string_len(&writer->json, (const char *)writer->label.data, writer->label.len);
    return coffer__mlyze_export_drain(&writer->export, err);
}

static coffer_status put_all(dhat_export *writer, coffer_error *err)
{
    size_t count = coffer_mlyze_stats_stack_count(writer->export.stats);
    coffer_status status = COFFER_OK;
    put_head(writer);
    coffer__json_key(&writer->json, "pps");
    coffer__json_open_array(&writer->json);
    for (size_t i = 0; !status && i < count; i++)
        status = put_point(writer, coffer_mlyze_stats_stack_at(writer->export.stats, i), err);
    coffer__json_close_array(&writer->json);
    coffer__json_key(&writer->json, "ftbl");
    coffer__json_open_array(&writer->json);
    coffer__json_string(&writer->json, "[root]");
    for (size_t i = 0; !status && i < writer->frames.count; i++)
        status = put_frame(writer, &writer->frames.items[i], err);
    coffer__json_close_array(&writer->json);
    coffer__json_close_object(&writer->json);
    return status ? status : coffer__mlyze_export_commit(&writer->export, err);
}

coffer_status coffer__mlyze_to_dhat(const coffer__convert_job *job, coffer_error *err)
{
    dhat_export writer = { .frames = { .items = NULL } };
    coffer__buffer_init(&writer.label, SIZE_MAX);
    coffer_status status = coffer__mlyze_export_open(&writer.export, job, COFFER__MLYZE_EXPORT_PROFILE,
                                                     COFFER__PACKING_NONE, err);
    if (!status)
        status = put_all(&writer, err);
    coffer__mlyze_export_close(&writer.export);
    coffer__triples_free(&writer.frames);
    coffer__buffer_free(&writer.label);
    return status;
}
