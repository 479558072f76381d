/* Creates a trace and adds events. mlyze_write_end.c finishes it. */
#include "formats/mlyze/write/mlyze_write.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/file.h"
#include "io/os.h"

#include <inttypes.h>
#include <string.h>

#define LEVEL_MAX 12

/* ---- Creating ---- */

coffer_status coffer__mlyze_take_opts(coffer_mlyze_writer_opts *out, const coffer_mlyze_writer_opts *given,
                                      coffer_error *err)
{
    coffer_status status = coffer__take_options(out, sizeof *out, given, err);
    if (status)
        return status;
    if (out->level < 0 || out->level > LEVEL_MAX)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "level %d is out of range: 0 (fast) to %d", out->level, LEVEL_MAX);
    return COFFER_OK;
}

static coffer_status take_extra(coffer_mlyze_writer *writer, const char *text, coffer_error *err)
{
    const coffer__json_value *root;
    coffer_status status = coffer__json_parse(&writer->extra, text, strlen(text), 0, &writer->limits, err);
    if (status)
        return status;
    root = coffer__json_root(writer->extra);
    if (root->kind != COFFER__JSON_OBJECT)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "extra_json must be an object");
    for (const coffer__json_value *v = coffer__json_first(root); v; v = coffer__json_next(root, v)) {
        if (coffer__mlyze_is_own_key(v->key, v->key_len))
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "extra_json cannot have \"%s\": it is written from what is added", v->key);
    }
    return COFFER_OK;
}

void coffer__mlyze_writer_free(coffer_mlyze_writer *writer)
{
    coffer__sink_discard(writer->sink);
    coffer__mlyze_parts_close(&writer->parts);
    coffer__mlyze_area_free(&writer->area);
    coffer__mlyze_sealer_free(&writer->sealer);
    coffer__mlyze_marks_free(&writer->marks);
    coffer__mlyze_pools_free(&writer->pools);
    coffer__json_free(writer->extra);
    coffer__free(writer->raw);
    coffer__free(writer->path);
    coffer__free(writer);
}

static coffer_status new_writer(coffer_mlyze_writer **out, const char *path,
                                const coffer_mlyze_writer_opts *opts, coffer_error *err)
{
    coffer_mlyze_writer *writer = coffer__calloc(1, sizeof *writer);
    coffer_status status = COFFER_OK;
    if (!writer)
        return coffer__fail_no_memory(err, sizeof *writer);
    writer->parts = (coffer__mlyze_parts)COFFER__MLYZE_PARTS_INIT;
    writer->opts = *opts;
    writer->opts.extra_json = NULL;
    writer->limits = coffer__limits(opts->limits);
    writer->opts.limits = &writer->limits;
    writer->path = coffer__strdup(path);
    writer->raw = coffer__malloc(sizeof *writer->raw);
    if (!writer->path || !writer->raw)
        status = coffer__fail_no_memory(err, sizeof *writer->raw);
    else
        writer->raw->time = 0;
    if (!status && opts->extra_json)
        status = take_extra(writer, opts->extra_json, err);
    if (!status && !(opts->plain && !opts->recording))
        status = coffer__mlyze_sealer_init(&writer->sealer, opts->plain ? 0 : opts->level, err);
    if (status) {
        coffer__mlyze_writer_free(writer);
        return status;
    }
    coffer__mlyze_raw_clear(writer->raw);
    *out = writer;
    return COFFER_OK;
}

/* Checks now that the file may be created, not after hours of recording. */
static coffer_status begin_recording(coffer_mlyze_writer *writer, const char *extra_json, coffer_error *err)
{
    coffer__buffer chunk = COFFER__BUFFER_INIT;
    struct stat st;
    coffer_status status;
    if (strcmp(writer->path, "-") == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a recording must be a file, not standard output");
    if (!writer->opts.overwrite && coffer__os_stat(writer->path, &st) == 0)
        return coffer__fail_output(err,
                                   coffer__fail(err, COFFER_E_EXISTS, COFFER_OFFSET_NONE, "already exists"));
    status = coffer__mlyze_parts_create(&writer->parts, writer->path, writer->opts.start_time_us, err);
    if (status || !extra_json)
        return status;
    coffer__mlyze_strings_put_extra(&chunk, extra_json, strlen(extra_json));
    status = chunk.failed ? coffer__fail_no_memory(err, strlen(extra_json))
                          : coffer__mlyze_parts_add_strings(&writer->parts, &chunk, err);
    coffer__buffer_free(&chunk);
    if (status)
        coffer__mlyze_parts_remove(&writer->parts, NULL);
    return status;
}

static coffer_status begin_file(coffer_mlyze_writer *writer, coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !writer->opts.overwrite };
    coffer_status status = coffer__sink_create(&writer->sink, writer->path, &options, err);
    if (status)
        return status;
    return coffer__mlyze_area_init(&writer->area, writer->sink, err);
}

coffer_status coffer_mlyze_writer_create(coffer_mlyze_writer **out, const char *path,
                                         const coffer_mlyze_writer_opts *opts, coffer_error *err)
{
    coffer_mlyze_writer_opts options = COFFER_MLYZE_WRITER_OPTS_INIT;
    coffer_mlyze_writer *writer = NULL;
    coffer_status status = coffer__mlyze_take_opts(&options, opts, err);
    if (!status)
        status = new_writer(&writer, path, &options, err);
    if (status)
        return status;
    status = options.recording ? begin_recording(writer, options.extra_json, err) : begin_file(writer, err);
    if (status) {
        coffer__mlyze_writer_free(writer);
        return status;
    }
    *out = writer;
    return COFFER_OK;
}

COFFER__INIT_FUNCTION(coffer_mlyze_writer_opts, COFFER_MLYZE_WRITER_OPTS_INIT)

/* ---- Blocks ---- */

/* Names go first: a block must not be in the file before the names it refers to. */
static coffer_status log_strings(coffer_mlyze_writer *writer, coffer_error *err)
{
    coffer__buffer chunks = COFFER__BUFFER_INIT;
    coffer_status status = coffer__mlyze_strings_log(&chunks, &writer->logged, &writer->pools, err);
    if (!status && chunks.len > 0)
        status = coffer__mlyze_parts_add_strings(&writer->parts, &chunks, err);
    coffer__buffer_free(&chunks);
    return status;
}

static coffer_status add_to_area(coffer_mlyze_writer *writer, const uint8_t *bytes, size_t len,
                                 coffer_error *err)
{
    coffer__mlyze_area *area = &writer->area;
    if (coffer__mlyze_area_needs_room(area, len)) {
        coffer__mlyze_draft draft = coffer__mlyze_draft_of(writer);
        uint32_t metadata_len, crc;
        coffer_status status = coffer__mlyze_measure(&metadata_len, &crc, &draft, err);
        if (!status)
            status = coffer__mlyze_area_place(area, metadata_len, err);
        if (status)
            return status;
    }
    return coffer__mlyze_area_add(area, bytes, len, err);
}

coffer_status coffer__mlyze_close_block(coffer_mlyze_writer *writer, coffer_error *err)
{
    coffer__mlyze_raw *raw = writer->raw;
    coffer__mlyze_sealer *sealer = &writer->sealer;
    coffer_status status = COFFER_OK;
    if (writer->opts.recording)
        status = log_strings(writer, err);
    if (status || raw->count == 0)
        return status;
    if (sealer->state)
        coffer__mlyze_seal(sealer, raw->bytes, raw->len, raw->count, raw->start);
    if (writer->opts.recording)
        status = coffer__mlyze_parts_add_block(&writer->parts, sealer->block, sealer->len, err);
    else if (writer->opts.plain)
        status = add_to_area(writer, raw->bytes, raw->len, err);
    else
        status = add_to_area(writer, sealer->block, sealer->len, err);
    coffer__mlyze_raw_clear(raw);
    return status;
}

/* ---- Events ---- */

static uint8_t highest_type(const coffer_mlyze_events *events)
{
    uint8_t highest = 0;
    for (size_t i = 0; i < events->count; i++)
        highest = events->type[i] > highest ? events->type[i] : highest;
    return highest;
}

static coffer_status check_extensions(const coffer_mlyze_writer *writer, const coffer_mlyze_events *events,
                                      coffer_error *err)
{
    for (size_t i = 0; i < events->count; i++) {
        uint8_t type = events->type[i];
        if (type <= COFFER_MLYZE_MARKER)
            continue;
        if (writer->opts.plain)
            return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                "event %" PRIu64 " is an extension of type %u: a plain trace cannot have it",
                                (writer->event_count + i), type);
        if (type > COFFER_MLYZE_RSS)
            return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                "event %" PRIu64 " is of the unknown type %u: its body is not in the columns",
                                (writer->event_count + i), type);
        if (type == COFFER_MLYZE_SNAPSHOT && events->size[i] > 1)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "event %" PRIu64 ": a snapshot has 0 for begin and 1 for end, not %" PRIu64,
                                (writer->event_count + i), events->size[i]);
    }
    return COFFER_OK;
}

static void use_stacks(coffer__mlyze_stack_pool *stacks, const coffer_mlyze_events *events)
{
    for (size_t i = 0; i < events->count && stacks->unlisted > 0; i++) {
        if (events->type[i] == COFFER_MLYZE_ALLOC)
            coffer__mlyze_stack_pool_use(stacks, events->id[i]);
    }
}

static coffer_status add_events(coffer_mlyze_writer *writer, const coffer_mlyze_events *events,
                                uint8_t highest, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (highest > COFFER_MLYZE_FREE)
        status = coffer__mlyze_marks_add(&writer->marks, events, writer->event_count, writer->raw->time, err);
    writer->extensions |= highest > COFFER_MLYZE_MARKER;
    if (writer->pools.stacks.unlisted > 0)
        use_stacks(&writer->pools.stacks, events);
    for (size_t done = 0; !status && done < events->count;) {
        size_t added = coffer__mlyze_raw_add(writer->raw, events, done);
        done += added;
        writer->event_count += added;
        if (done < events->count)
            status = coffer__mlyze_close_block(writer, err);
    }
    return status;
}

coffer_status coffer_mlyze_writer_put_events(coffer_mlyze_writer *writer, const coffer_mlyze_events *events,
                                             coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    uint8_t highest = highest_type(events);
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (!status && highest > COFFER_MLYZE_MARKER)
        status = check_extensions(writer, events, err);
    if (status)
        return status;
    status = add_events(writer, events, highest, &failure);
    return coffer__sticky_keep(&writer->sticky, status, &failure, err);
}

static coffer_status put(coffer_mlyze_writer *writer, coffer__mlyze_event_row row, coffer_error *err)
{
    coffer_mlyze_events one = { .count = 1,
                                .time = &row.time,
                                .address = &row.address,
                                .size = &row.size,
                                .id = &row.id,
                                .thread = &row.thread,
                                .type = &row.type };
    return coffer_mlyze_writer_put_events(writer, &one, err);
}

coffer_status coffer_mlyze_writer_put_alloc(coffer_mlyze_writer *writer, uint64_t time, uint64_t address,
                                            uint64_t size, uint64_t stack, uint16_t thread, coffer_error *err)
{
    coffer__mlyze_event_row row = { time, address, size, stack, thread, COFFER_MLYZE_ALLOC };
    return put(writer, row, err);
}

coffer_status coffer_mlyze_writer_put_free(coffer_mlyze_writer *writer, uint64_t time, uint64_t address,
                                           coffer_error *err)
{
    coffer__mlyze_event_row row = { time, address, 0, 0, 0, COFFER_MLYZE_FREE };
    return put(writer, row, err);
}

coffer_status coffer_mlyze_writer_put_gc(coffer_mlyze_writer *writer, uint64_t time, uint64_t objects,
                                         uint64_t bytes, coffer_error *err)
{
    coffer__mlyze_event_row row = { time, 0, bytes, objects, 0, COFFER_MLYZE_GC };
    return put(writer, row, err);
}

coffer_status coffer_mlyze_writer_put_marker(coffer_mlyze_writer *writer, uint64_t time, uint64_t name,
                                             coffer_error *err)
{
    coffer__mlyze_event_row row = { time, 0, 0, name, 0, COFFER_MLYZE_MARKER };
    return put(writer, row, err);
}

coffer_status coffer_mlyze_writer_flush(coffer_mlyze_writer *writer, bool sync, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (status || !writer->opts.recording)
        return status; /* without a recording, nothing survives before the commit */
    status = coffer__mlyze_close_block(writer, &failure);
    if (!status && sync)
        status = coffer__mlyze_parts_sync(&writer->parts, &failure);
    return coffer__sticky_keep(&writer->sticky, status, &failure, err);
}
