/* DHAT's JSON, for its viewer: for each stack what it allocated, and what of it was live at the peak and at
 * the end. */
#include "base/fail.h"
#include "base/json_write.h"
#include "convert/traces/mlyze_export.h"
#include "convert/traces/mlyze_import.h"
#include "outside/profiles/triples.h"

typedef struct dhat_export {
    coffer__mlyze_export export;
    coffer__json_writer json;
    coffer__triples frames; /* function, file, line: place + 1 in the table, whose first is the root */
    coffer__buffer label;
} dhat_export;

static void put_number(dhat_export *to, const char *key, uint64_t value)
{
    coffer__json_key(&to->json, key);
    coffer__json_write_u64(&to->json, value);
}

static void put_text(dhat_export *to, const char *key, const char *text)
{
    coffer__json_key(&to->json, key);
    coffer__json_string(&to->json, text);
}

static void put_head(dhat_export *to)
{
    const coffer_mlyze_totals *totals = coffer_mlyze_stats_totals(to->export.stats);
    coffer__json_writer_init(&to->json, &to->export.out, 0);
    coffer__json_open_object(&to->json);
    put_number(to, "dhatFileVersion", COFFER__DHAT_VERSION);
    put_text(to, "mode", "heap");
    put_text(to, "verb", "Allocated");
    coffer__json_key(&to->json, "bklt"); /* lifetimes of blocks are known, accesses are not */
    coffer__json_write_bool(&to->json, true);
    coffer__json_key(&to->json, "bkacc");
    coffer__json_write_bool(&to->json, false);
    put_text(to, "tu", "µs");
    put_text(to, "Mtu", "s");
    put_number(to, "tuth", 10);
    put_text(to, "cmd", coffer__mlyze_export_command(&to->export));
    put_number(to, "pid", 0);
    put_number(to, "te", totals->duration_us);
    put_number(to, "tg", totals->peak_time_us);
}

static coffer_status put_stack(dhat_export *to, const coffer_mlyze_stack_row *row, coffer_error *err)
{
    size_t depth, place;
    bool is_new;
    const coffer_mlyze_frame *frames = coffer__mlyze_export_frames(&depth, &to->export, row->stack);
    coffer_status status = COFFER_OK;
    coffer__json_key(&to->json, "fs");
    coffer__json_open_array(&to->json);
    for (size_t i = 0; !status && i < depth; i++) {
        coffer__triple key = { frames[i].func_id, frames[i].file_id, frames[i].line };
        status = coffer__triples_add(&place, &is_new, &to->frames, key, err);
        coffer__json_write_u64(&to->json, place + 1);
    }
    coffer__json_close_array(&to->json);
    return status;
}

/* The highest of one stack alone (mb) is not followed: it is at least what it holds at the two moments. */
static coffer_status put_point(dhat_export *to, const coffer_mlyze_stack_row *row, coffer_error *err)
{
    bool end_is_more = row->live_bytes > row->peak_bytes;
    coffer__json_open_object(&to->json);
    put_number(to, "tb", row->allocated_bytes);
    put_number(to, "tbk", row->allocs);
    put_number(to, "tl", row->lifetime_us);
    put_number(to, "mb", end_is_more ? row->live_bytes : row->peak_bytes);
    put_number(to, "mbk", end_is_more ? row->live_allocs : row->peak_allocs);
    put_number(to, "gb", row->peak_bytes);
    put_number(to, "gbk", row->peak_allocs);
    put_number(to, "eb", row->live_bytes);
    put_number(to, "ebk", row->live_allocs);
    coffer_status status = put_stack(to, row, err);
    coffer__json_close_object(&to->json);
    return status ? status : coffer__mlyze_export_drain(&to->export, err);
}

static coffer_status put_frame(dhat_export *to, const coffer__triple *triple, coffer_error *err)
{
    coffer_mlyze_frame frame = { .func_id = triple->a, .file_id = triple->b, .line = triple->c };
    to->label.len = 0;
    coffer__mlyze_put_label(&to->label, &to->export, &frame);
    if (to->label.failed)
        return coffer__fail_no_memory(err, to->label.len);
    coffer__json_string_len(&to->json, (const char *)to->label.data, to->label.len);
    return coffer__mlyze_export_drain(&to->export, err);
}

static coffer_status put_all(dhat_export *to, coffer_error *err)
{
    size_t count = coffer_mlyze_stats_stack_count(to->export.stats);
    coffer_status status = COFFER_OK;
    put_head(to);
    coffer__json_key(&to->json, "pps");
    coffer__json_open_array(&to->json);
    for (size_t i = 0; !status && i < count; i++)
        status = put_point(to, coffer_mlyze_stats_stack_at(to->export.stats, i), err);
    coffer__json_close_array(&to->json);
    coffer__json_key(&to->json, "ftbl");
    coffer__json_open_array(&to->json);
    coffer__json_string(&to->json, "[root]");
    for (size_t i = 0; !status && i < to->frames.count; i++)
        status = put_frame(to, &to->frames.items[i], err);
    coffer__json_close_array(&to->json);
    coffer__json_close_object(&to->json);
    return status ? status : coffer__mlyze_export_commit(&to->export, err);
}

coffer_status coffer__mlyze_to_dhat(const coffer__convert_job *job, coffer_error *err)
{
    dhat_export to = { .frames = { .items = NULL } };
    coffer__buffer_init(&to.label, SIZE_MAX);
    coffer_status status =
        coffer__mlyze_export_open(&to.export, job, COFFER__MLYZE_EXPORT_PROFILE, COFFER__PACKING_NONE, err);
    if (!status)
        status = put_all(&to, err);
    coffer__mlyze_export_close(&to.export);
    coffer__triples_free(&to.frames);
    coffer__buffer_free(&to.label);
    return status;
}
