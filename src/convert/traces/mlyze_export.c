#include "convert/traces/mlyze_export.h"
#include "io/source_private.h"

#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"

#include <inttypes.h>
#include <string.h>

#define DRAIN_SIZE ((size_t)1 << 18)

#define WINDOW_OPTIONS                                                                      \
    { "window", "A..B", "only events from A to B: times (1.5s, 20ms), events or markers" }, \
    {                                                                                       \
        "partial", NULL, "convert the readable part of a damaged trace"                     \
    }

#define PROFILE_OPTIONS                                                                 \
    { "what", "WHAT", "which bytes to count", "peak|leaks|total|temporaries", "peak" }, \
        { "at", "MOMENT", "what is live at a moment: a time (1.5s), an event or a marker" }, WINDOW_OPTIONS

const coffer_convert_option coffer__mlyze_profile_options[] = {
    PROFILE_OPTIONS,
    { NULL, NULL, NULL },
};

const coffer_convert_option coffer__mlyze_collapsed_options[] = {
    PROFILE_OPTIONS,
    { "lines", NULL, "file and line after each function" },
    { NULL, NULL, NULL },
};

const coffer_convert_option coffer__mlyze_massif_options[] = {
    WINDOW_OPTIONS,
    { "snapshots", "N", "number of snapshots", NULL, "100" },
    { "threshold", "PERCENT", "combine smaller parts of a tree", NULL, "1" },
    { "depth", "N", "frames of a stack in a tree, at most", NULL, "30" },
    { NULL, NULL, NULL },
};

const coffer_convert_option coffer__mlyze_csv_options[] = {
    WINDOW_OPTIONS,
    { "stacks", NULL, "a column with all frames of the stack, outermost first" },
    { NULL, NULL, NULL },
};

const coffer_convert_option coffer__mlyze_chrome_options[] = {
    WINDOW_OPTIONS,
    { "resolution", "US", "microseconds from one point of the counters to the next" },
    { "allocations", NULL, "also every allocation, from its start to its end" },
    { NULL, NULL, NULL },
};

const coffer_convert_option coffer__mlyze_heaptrack_options[] = {
    WINDOW_OPTIONS,
    { NULL, NULL, NULL },
};

const coffer_convert_option coffer__mlyze_cut_options[] = {
    WINDOW_OPTIONS,
    { "plain", NULL, "a version-1 trace without blocks and index" },
    { "archive", NULL, "an archive, the smallest form, for traces that are kept" },
    { "level", "N", "0 = fast, 1 to 12 = smaller and slower to write; of an archive 1 to 19" },
    { "drop-extensions", NULL, "leave out extension events, which a plain trace cannot have" },
    { NULL, NULL, NULL },
};

static const char *const measure_names[] = { "peak", "leaks", "total", "temporaries" };
#define MEASURES (sizeof measure_names / sizeof *measure_names)

const char *coffer__mlyze_measure_name(coffer_mlyze_measure measure)
{
    return measure_names[measure];
}

/* ---- Settings ---- */

static coffer_status choose_measure(coffer__mlyze_export *export, coffer_error *err)
{
    const char *what = coffer__job_setting(export->job, "what");
    export->what = COFFER_MLYZE_MEASURE_PEAK;
    export->what_given = what != NULL;
    if (!what)
        return COFFER_OK;
    for (size_t i = 0; i < MEASURES; i++) {
        if (strcmp(what, measure_names[i]) == 0) {
            export->what = (coffer_mlyze_measure)i;
            return COFFER_OK;
        }
    }
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "what: expected peak, leaks, total or temporaries, not \"%s\"", what);
}

/* Parses text[0, len) as a moment; an empty text leaves *event unchanged. */
static coffer_status find_moment(uint64_t *event, const coffer__mlyze_export *export, const char *text,
                                 size_t len, coffer_error *err)
{
    if (len == 0)
        return COFFER_OK;
    char *moment = coffer__strndup(text, len);
    if (!moment)
        return coffer__fail_no_memory(err, len);
    coffer_status status = coffer_mlyze_find_moment(event, export->trace, moment, err);
    coffer__free(moment);
    return status;
}

static coffer_status choose_window(coffer__mlyze_export *export, coffer_error *err)
{
    const char *window = coffer__job_setting(export->job, "window");
    const char *at = coffer__job_setting(export->job, "at");
    const char *dots = window ? strstr(window, "..") : NULL;
    coffer_status status = COFFER_OK;
    export->begin = 0;
    export->end = UINT64_MAX;
    if (window && at)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a window and a moment: give one of the two");
    if (window && !dots)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "window: expected A..B, not \"%s\"", window);
    if (window)
        status = find_moment(&export->begin, export, window, (size_t)(dots - window), err);
    if (!status && window)
        status = find_moment(&export->end, export, dots + 2, strlen(dots + 2), err);
    if (!status && at) {
        status = find_moment(&export->end, export, at, strlen(at), err);
        export->what = COFFER_MLYZE_MEASURE_LIVE;
        export->what_given = true;
    }
    if (!status && export->begin > export->end)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "window: \"%s\" ends before it begins", window);
    return status;
}

/* ---- Opening ---- */

/* Damaged parts are left out only with "partial", or when the caller accepts damage. */
static coffer_status check_damage(const coffer__mlyze_export *export, coffer_error *err)
{
    if (coffer__job_has(export->job, "partial"))
        return COFFER_OK;
    coffer_error damage = COFFER_ERROR_INIT;
    coffer_status status = coffer_mlyze_damage(export->trace, &damage);
    if (status == COFFER_E_BAD_CHECKSUM)
        status = coffer__source_accept_damage(export->job->in, &damage, &damage);
    if (status || !export->stats)
        return status ? coffer__fail_copy(err, &damage) : COFFER_OK;
    uint64_t lost = coffer_mlyze_stats_totals(export->stats)->lost_events;
    if (lost == 0)
        return COFFER_OK;
    coffer__fail(&damage, COFFER_E_BAD_CHECKSUM, COFFER_OFFSET_NONE,
                 "%" PRIu64 " events are in damaged blocks (\"partial\" leaves them out)", lost);
    return coffer__source_accept_damage(export->job->in, &damage, err);
}

static coffer_status analyze(coffer__mlyze_export *export, coffer_error *err)
{
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    query.begin = export->begin;
    query.end = export->end;
    query.limits = &export->job->limits;
    query.progress = export->job->progress;
    return coffer_mlyze_stats_new(&export->stats, export->trace, &query, err);
}

static coffer_status find_blocks(coffer__mlyze_export *export, coffer_error *err)
{
    coffer_status status = coffer_mlyze_block_count(&export->block_count, export->trace, err);
    if (!status && export->begin > 0)
        status = coffer_mlyze_block_of_event(&export->block, export->trace, export->begin, err);
    return status;
}

static coffer_status create_output(coffer__mlyze_export *export, coffer__packing packing, coffer_error *err)
{
    coffer__sink_opts opts = { .exclusive = !export->job->overwrite };
    coffer_status status = coffer__sink_create(&export->sink, export->job->out_path, &opts, err);
    return status ? status : coffer__pack_open(&export->pack, export->sink, packing, err);
}

coffer_status coffer__mlyze_export_begin(coffer__mlyze_export *out, const coffer__convert_job *job,
                                         coffer__mlyze_export_way way, coffer_error *err)
{
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    *out =
        (coffer__mlyze_export){ .job = job, .out = COFFER__BUFFER_INIT, .events = COFFER_MLYZE_EVENTS_INIT };
    opts.limits = &job->limits;
    coffer_status status = choose_measure(out, err);
    if (!status)
        status = coffer_mlyze_open(&out->trace, job->in, &opts, err);
    if (!status)
        status = choose_window(out, err);
    if (!status)
        status = way == COFFER__MLYZE_EXPORT_PROFILE ? analyze(out, err) : find_blocks(out, err);
    if (!status)
        status = check_damage(out, err);
    return status;
}

coffer_status coffer__mlyze_export_open(coffer__mlyze_export *out, const coffer__convert_job *job,
                                        coffer__mlyze_export_way way, coffer__packing packing,
                                        coffer_error *err)
{
    coffer_status status = coffer__mlyze_export_begin(out, job, way, err);
    return status ? status : create_output(out, packing, err);
}

void coffer__mlyze_export_close(coffer__mlyze_export *export)
{
    coffer__pack_close(export->pack);
    coffer__sink_discard(export->sink);
    coffer__buffer_free(&export->out);
    coffer_mlyze_events_free(&export->events);
    coffer_mlyze_stats_free(export->stats);
    coffer_mlyze_close(export->trace);
}

/* ---- Writing ---- */

static coffer_status write_out(coffer__mlyze_export *export, coffer_error *err)
{
    if (export->out.failed)
        return coffer__fail_no_memory(err, export->out.len);
    coffer_status status = coffer__pack_write(export->pack, export->out.data, export->out.len, err);
    export->out.len = 0;
    return status;
}

coffer_status coffer__mlyze_export_drain(coffer__mlyze_export *export, coffer_error *err)
{
    return export->out.len < DRAIN_SIZE && !export->out.failed ? COFFER_OK : write_out(export, err);
}

coffer_status coffer__mlyze_export_commit(coffer__mlyze_export *export, coffer_error *err)
{
    coffer_status status = write_out(export, err);
    if (!status)
        status = coffer__pack_finish(export->pack, err);
    if (!status)
        status = coffer_source_intact(export->job->in, err);
    if (status)
        return status;
    coffer__sink *sink = export->sink;
    export->sink = NULL;
    return coffer__sink_commit(sink, err);
}

/* ---- Events ---- */

/* Removes the events before `begin` and from `end` on. */
static void cut_events(coffer_mlyze_events *events, uint64_t begin, uint64_t end)
{
    size_t skipped = begin > events->first ? (size_t)(begin - events->first) : 0;
    if (skipped > events->count)
        skipped = events->count;
    size_t kept = events->count - skipped;
    uint64_t first = events->first + skipped;
    if (end < first + kept)
        kept = end > first ? (size_t)(end - first) : 0;
    if (skipped > 0) {
        memmove(events->time, events->time + skipped, kept * sizeof *events->time);
        memmove(events->address, events->address + skipped, kept * sizeof *events->address);
        memmove(events->size, events->size + skipped, kept * sizeof *events->size);
        memmove(events->id, events->id + skipped, kept * sizeof *events->id);
        memmove(events->thread, events->thread + skipped, kept * sizeof *events->thread);
        memmove(events->type, events->type + skipped, kept * sizeof *events->type);
    }
    events->first = first;
    events->count = kept;
}

coffer_status coffer__mlyze_export_next(const coffer_mlyze_events **events, coffer__mlyze_export *export,
                                        coffer_error *err)
{
    *events = NULL;
    while (export->block < export->block_count) {
        size_t block = export->block++;
        coffer_mlyze_block found = COFFER_MLYZE_BLOCK_INIT;
        coffer_status status = coffer_mlyze_get_block(&found, export->trace, block, err);
        if (!status && found.first_event >= export->end)
            break;
        if (!status)
            status = coffer__job_progress(export->job, block, export->block_count, err);
        if (status)
            return status;
        status = coffer_mlyze_read_block(&export->events, export->trace, block, err);
        if (status && !coffer__job_has(export->job, "partial"))
            return status;
        if (status)
            continue;
        cut_events(&export->events, export->begin, export->end);
        *events = &export->events;
        break;
    }
    return COFFER_OK;
}

/* ---- Rows, frames and names ---- */

const coffer_mlyze_frame *coffer__mlyze_export_frames(size_t *depth, const coffer__mlyze_export *export,
                                                      size_t stack)
{
    /* Ids that no table lists. */
    static const coffer_mlyze_frame unknown = { UINT64_MAX, 0, UINT64_MAX };
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(depth, export->trace, stack);
    if (*depth > 0)
        return frames;
    *depth = 1;
    return &unknown;
}

static const char *file_of(const coffer_mlyze *trace, const coffer_mlyze_frame *frame)
{
    const char *file = coffer_mlyze_file_name(trace, frame->file_id);
    return file ? file : "";
}

static const char *function_of(const coffer_mlyze *trace, const coffer_mlyze_frame *frame)
{
    const char *name = coffer_mlyze_function_name(trace, frame->func_id);
    if (name && *name)
        return name;
    const char *file = file_of(trace, frame);
    return *file ? file : "?";
}

const char *coffer__mlyze_export_function(const coffer__mlyze_export *export, const coffer_mlyze_frame *frame)
{
    return function_of(export->trace, frame);
}

const char *coffer__mlyze_export_file(const coffer__mlyze_export *export, const coffer_mlyze_frame *frame)
{
    return file_of(export->trace, frame);
}

void coffer__mlyze_put_line_text(coffer__buffer *out, const char *text, char also)
{
    size_t len = strlen(text);
    uint8_t *to = coffer__buffer_extend(out, len);
    for (size_t i = 0; to && i < len; i++) {
        uint8_t byte = (uint8_t)text[i];
        to[i] = byte < 0x20 || byte == 0x7f || (also && text[i] == also) ? ' ' : byte;
    }
}

void coffer__mlyze_put_frame(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame,
                             bool place, char also)
{
    const char *file = file_of(trace, frame);
    coffer__mlyze_put_line_text(out, function_of(trace, frame), also);
    if (!place || !*file)
        return;
    coffer__buffer_printf(out, frame->line ? " (" : " (in ");
    coffer__mlyze_put_line_text(out, file, also);
    if (frame->line)
        coffer__buffer_printf(out, ":%" PRIu64, frame->line);
    coffer__buffer_printf(out, ")");
}

void coffer__mlyze_put_label(coffer__buffer *out, const coffer__mlyze_export *export,
                             const coffer_mlyze_frame *frame)
{
    coffer__buffer_printf(out, "0x0: ");
    coffer__mlyze_put_frame(out, export->trace, frame, true, 0);
}

const char *coffer__mlyze_export_command(const coffer__mlyze_export *export)
{
    const char *command = coffer_mlyze_metadata_text(export->trace, "command");
    return command ? command : "";
}

const char *coffer__mlyze_export_title(const coffer__mlyze_export *export)
{
    const char *command = coffer__mlyze_export_command(export);
    const char *path = coffer_source_name(export->job->in);
    return *command ? command : path + coffer__file_folder_len(path);
}
