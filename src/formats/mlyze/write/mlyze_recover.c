/* Builds the trace of a recording that was killed, or whose last step failed. */
#include "formats/mlyze/mlyze_repair.h"

#include "base/fail.h"
#include "base/options.h"
#include "base/report.h"
#include "io/os.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <string.h>

typedef struct recovery {
    coffer_report *report;
    coffer_mlyze_writer_opts opts;
    coffer_limits limits;
    coffer__mlyze_parts parts;
    coffer__mlyze_strings strings;
    coffer__json *extra;
    coffer_source *source; /* of PATH.part; NULL when it is empty */
    coffer_mlyze part;
    coffer__mlyze_salvage blocks;
    uint64_t start_time;
    coffer__mlyze_marks marks;
    coffer__mlyze_losses losses;
} recovery;

/* ---- PATH.strings ---- */

static coffer_status parse_extra(recovery *work, coffer_error *err)
{
    const coffer__buffer *text = &work->strings.extra;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status;
    if (text->len == 0)
        return COFFER_OK;
    status = coffer__json_parse(&work->extra, (const char *)text->data, text->len, 0, &work->limits, &found);
    if (!status && coffer__json_root(work->extra)->kind != COFFER__JSON_OBJECT)
        status = coffer__fail(&found, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                              "the additional metadata is not an object");
    if (!status)
        return COFFER_OK;
    coffer__json_free(work->extra);
    work->extra = NULL;
    return coffer__report_take(work->report, COFFER_WARNING, &found, err);
}

static coffer_status load_strings(recovery *work, coffer_error *err)
{
    const coffer__mlyze_parts *parts = &work->parts;
    coffer__mlyze_strings *strings = &work->strings;
    coffer_status status =
        coffer__mlyze_strings_load(strings, parts->strings, parts->strings_size, parts->strings_path, err);
    if (status)
        return status;
    if (!strings->has_header)
        coffer__report_add(work->report, COFFER_E_MISSING, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "names and stacks are missing: %s is %s", parts->strings_path,
                           parts->strings < 0 ? "absent" : "empty");
    else if (strings->good_size < parts->strings_size)
        coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING, strings->good_size,
                           "the last %" PRIu64 " bytes of %s are incomplete: their names and stacks are lost",
                           (parts->strings_size - strings->good_size), parts->strings_path);
    if (strings->bad_entries)
        coffer__report_add(work->report, COFFER_E_BAD_VALUE, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "invalid entries of %s, skipped: %" PRIu64, parts->strings_path,
                           strings->bad_entries);
    if (strings->unknown_entries)
        coffer__report_add(work->report, COFFER_E_BAD_VALUE, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "entries of %s of unknown kinds, skipped: %" PRIu64, parts->strings_path,
                           strings->unknown_entries);
    work->start_time = strings->start_time;
    return parse_extra(work, err);
}

/* ---- PATH.part ---- */

/* A file of another kind must not be taken for an empty recording. */
static coffer_status open_part(recovery *work, coffer_error *err)
{
    const coffer__mlyze_parts *parts = &work->parts;
    uint8_t header[COFFER__MLYZE_PARTS_HEADER] = { 0 }, zero[COFFER__MLYZE_PARTS_HEADER] = { 0 };
    uint64_t size = parts->part_size;
    coffer_status status;
    if (parts->part < 0 || size == 0)
        return COFFER_OK;
    status = coffer__source_over_fd(&work->source, parts->part, false, size, parts->part_path, NULL, err);
    if (status)
        return status;
    status = coffer_source_read_at(header, work->source, 0,
                                   size < sizeof header ? (size_t)size : sizeof header, err);
    if (status)
        return status;
    /* A crash of the machine leaves zeros where bytes were never synced. */
    uint32_t version = coffer__mlyze_parts_header(&work->start_time, header, COFFER__MLYZE_PART_MAGIC);
    if (size >= sizeof header && memcmp(header, zero, sizeof header) != 0 && version == 0)
        return coffer__fail(err, COFFER_E_BAD_MAGIC, 0, "%s: not the events of a recording",
                            parts->part_path);
    coffer__mlyze_part_as_trace(&work->part, work->source, version != 1, &work->limits);
    return COFFER_OK;
}

/* The events of a block tell which stacks to list and where the markers are. */
static coffer_status take_events(void *context, const coffer_mlyze_events *columns, coffer_error *err)
{
    recovery *work = context;
    coffer__mlyze_stack_pool *stacks = &work->strings.pools.stacks;
    for (size_t i = 0; i < columns->count && stacks->unlisted > 0; i++) {
        if (columns->type[i] == COFFER_MLYZE_ALLOC)
            coffer__mlyze_stack_pool_use(stacks, columns->id[i]);
    }
    return coffer__mlyze_marks_add(&work->marks, columns, work->blocks.event_count, 0, err);
}

/* An incomplete last block is what an interruption leaves; anything before it is damage. */
static void report_missing(recovery *work)
{
    const coffer__mlyze_strings *strings = &work->strings;
    uint64_t whole = work->blocks.whole_end, rest = work->parts.part_size - whole;
    work->losses.blocks = work->blocks.lost_blocks;
    work->losses.events = work->blocks.lost_events;
    work->losses.bytes = work->blocks.lost_bytes + (strings->has_end ? rest : 0);
    work->losses.lost_metadata = !strings->has_header && work->blocks.event_count > 0;
    work->losses.interrupted = !strings->has_end;
    if (rest > 0)
        coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING, whole,
                           "the last %" PRIu64 " bytes of %s are not a whole block, now dropped", rest,
                           work->parts.part_path);
    if (!strings->has_end)
        coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "the recording was interrupted: %" PRIu64
                           " events were saved; events that were not "
                           "flushed (up to 64 KiB per thread) are missing",
                           work->blocks.event_count);
    else if (strings->end_events != work->blocks.event_count)
        coffer__report_add(work->report, COFFER_E_INCONSISTENT, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "of %" PRIu64 " recorded events %" PRIu64 " were saved", strings->end_events,
                           work->blocks.event_count);
}

static coffer_status load_part(recovery *work, coffer_error *err)
{
    coffer_status status = open_part(work, err);
    if (status)
        return status;
    work->blocks.trace = &work->part;
    work->blocks.report = work->report;
    work->blocks.take = take_events;
    work->blocks.context = work;
    work->blocks.whole_end = work->parts.part_size;
    if (work->parts.part_size > COFFER__MLYZE_PARTS_HEADER)
        status = coffer__mlyze_salvage_blocks(&work->blocks, err);
    if (!status)
        report_missing(work);
    return status;
}

/* ---- The trace ---- */

static coffer_status write_events(recovery *work, coffer__sink *sink, uint64_t *area_len, coffer_error *err)
{
    coffer__mlyze_copy copy = { .keep_packed = work->opts.level == 0, .sorts = true };
    coffer_status status = coffer__mlyze_copy_init(&copy, sink, &work->part, &work->opts, err);
    for (size_t i = 0; !status && i < work->blocks.count; i++)
        status = coffer__mlyze_copy_block(&copy, &work->blocks.blocks[i], err);
    if (!status)
        status = coffer__mlyze_copy_end(&copy, area_len, err);
    coffer__mlyze_copy_free(&copy);
    return status;
}

static coffer_status write_trace(recovery *work, coffer__sink *sink, coffer_error *err)
{
    uint8_t header[COFFER__MLYZE_HEADER_SIZE];
    char losses[COFFER__MLYZE_LOSSES_TEXT];
    coffer__mlyze_draft draft = { .pools = &work->strings.pools,
                                  .marks = &work->marks,
                                  .repaired = coffer__mlyze_losses_member(losses, &work->losses),
                                  .summed = work->opts.plain && !work->opts.no_checksums &&
                                            coffer__sink_can_patch(sink) };
    coffer__mlyze_front front = { .start_time = work->start_time,
                                  .flags = coffer__mlyze_flags_of(&work->opts, work->blocks.extensions,
                                                                  work->strings.has_header),
                                  .event_count = work->blocks.event_count };
    if (work->extra)
        draft.extra = coffer__json_root(work->extra);
    coffer_status status = coffer__mlyze_write_front(sink, &front, &draft, err);
    coffer__sink_crc_begin(sink);
    if (!status && work->blocks.count > 0)
        status = write_events(work, sink, &front.area_len, err);
    front.area_crc = coffer__sink_crc(sink);
    if (status || !coffer__sink_can_patch(sink))
        return status;
    coffer__mlyze_compose_header(header, &front);
    status = coffer__sink_patch(sink, 0, header, sizeof header, err);
    return status || !draft.summed ? status : coffer__mlyze_settle_sum(sink, &front, err);
}

static coffer_status make_trace(recovery *work, const char *path, coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !work->opts.overwrite };
    coffer__sink *sink = NULL;
    coffer_status status = coffer__sink_create(&sink, path, &options, err);
    if (status)
        return status;
    status = write_trace(work, sink, err);
    if (status) {
        coffer__sink_discard(sink);
        return status;
    }
    status = coffer__sink_commit(sink, err);
    if (status)
        return status;
    return coffer__mlyze_parts_remove(&work->parts, err);
}

/* The events are removed first after a commit, so names alone are leftovers of a finished trace. */
static bool is_leftover(const recovery *work, const char *path)
{
    struct stat st;
    return work->parts.part < 0 && work->strings.has_end && coffer__os_stat(path, &st) == 0;
}

coffer_status coffer_mlyze_recover(coffer_report *out, const char *path, const coffer_mlyze_writer_opts *opts,
                                   coffer_error *err)
{
    coffer_mlyze_writer_opts options = COFFER_MLYZE_WRITER_OPTS_INIT;
    recovery work = { .report = out, .parts = COFFER__MLYZE_PARTS_INIT };
    coffer_status status = coffer__mlyze_take_opts(&options, opts, err);
    if (status)
        return status;
    work.opts = options;
    work.limits = coffer__limits(options.limits);
    status = coffer__mlyze_parts_open(&work.parts, path, err);
    if (!status)
        status = load_strings(&work, err);
    if (status)
        goto out;
    if (is_leftover(&work, path)) {
        status = coffer__mlyze_parts_remove(&work.parts, err);
        goto out;
    }
    status = load_part(&work, err);
    if (!status)
        status = coffer__report_status(out, err);
    if (!status)
        status = make_trace(&work, path, err);
    if (status)
        goto out;
    coffer__mlyze_write_index(path, &options);
out:
    coffer__mlyze_parts_close(&work.parts);
    coffer__mlyze_strings_free(&work.strings);
    coffer__mlyze_marks_free(&work.marks);
    coffer__json_free(work.extra);
    coffer_source_close(work.source);
    coffer__mlyze_salvage_free(&work.blocks);
    return status;
}

coffer_status coffer__mlyze_recover_parts(coffer_report *out, const char *path,
                                          const coffer_repair_opts *opts, coffer_error *err)
{
    coffer_mlyze_writer_opts options = COFFER_MLYZE_WRITER_OPTS_INIT;
    options.overwrite = opts->overwrite;
    options.limits = opts->limits;
    return coffer_mlyze_recover(out, path, &options, err);
}
