/* Copies a trace with other blocks, or without blocks. Metadata and events stay the same bytes. */
#include "formats/mlyze/write/mlyze_write_copy.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"
#include "formats/mlyze/read/mlyze_tables.h"
#include "formats/mlyze/write/mlyze_tables_pack.h"

typedef struct rewriting {
    const coffer_mlyze *trace;
    const coffer_mlyze_writer_opts *opts;
    coffer__sink *sink;
    coffer__mlyze_front front;
    coffer__mlyze_copied_text text;
    coffer__mlyze_map *map; /* of the file itself, not of an index */
    uint64_t dropped;       /* extension events */
} rewriting;

/* Some programs never update the metadata that they write at the start. */
static bool is_complete(const coffer_mlyze *trace)
{
    if (coffer__mlyze_has_blocks(&trace->header) || trace->header.flags)
        return (trace->header.flags & COFFER__MLYZE_FLAG_COMPLETE) != 0;
    return coffer_mlyze_profile_name(trace) == NULL;
}

/* A copy keeps the metadata, so a trace whose order of frames only its flags tell must say it now. */
static const char *members_to_add(const coffer_mlyze *trace)
{
    const coffer__json_value *root = coffer__json_root(trace->metadata.json);
    if (trace->metadata.order != COFFER_MLYZE_ORDER_INNERMOST_FIRST ||
        coffer__json_find(root, COFFER__MLYZE_ORDER_KEY))
        return "";
    return "\"" COFFER__MLYZE_ORDER_KEY "\":\"" COFFER__MLYZE_INNERMOST_FIRST "\",";
}

/* A plain trace of another program, compressed and decompressed, is the same file again: it has no checksum
 * and gets none. */
static bool is_bare(const coffer_mlyze *trace)
{
    uint32_t sum;
    if (coffer__mlyze_has_blocks(&trace->header))
        return trace->header.flags & COFFER__MLYZE_FLAG_WAS_BARE;
    return !coffer__mlyze_find_plain_sum(&sum, trace->metadata.text, trace->metadata.text_len);
}

static uint32_t flags_of(const rewriting *work, bool extensions)
{
    const coffer_mlyze *trace = work->trace;
    uint32_t flags = coffer__mlyze_flags_of(work->opts, extensions, is_complete(trace));
    flags |= work->text.tables.len > 0 ? COFFER__MLYZE_FLAG_TABLES : 0;
    return flags && is_bare(trace) ? flags | COFFER__MLYZE_FLAG_WAS_BARE : flags;
}

/* Whether the compact tables of the source are those of the copy. */
static bool keeps_tables(const rewriting *work)
{
    const coffer__mlyze_metadata *metadata = &work->trace->metadata;
    uint64_t least = metadata->text_len + metadata->stacks.frame_count * COFFER__MLYZE_FRAME_TEXT_MIN;
    return coffer__mlyze_has_tables(&work->trace->header) && !work->opts->plain &&
           *members_to_add(work->trace) == '\0' &&
           (work->opts->archive || least >= COFFER__MLYZE_TABLES_LEAST);
}

static coffer_status copy_tables(rewriting *work, coffer_error *err)
{
    const coffer_mlyze *trace = work->trace;
    char *stored = NULL;
    coffer_status status =
        coffer__mlyze_read_metadata(&stored, trace->source, &trace->header, &trace->limits, err);
    coffer__buffer_init(&work->text.tables, SIZE_MAX);
    if (!status && !coffer__buffer_append(&work->text.tables, stored, trace->header.metadata_len))
        status = coffer__fail_no_memory(err, trace->header.metadata_len);
    coffer__free(stored);
    return status;
}

static coffer_status prepare_text(rewriting *work, coffer_error *err)
{
    const coffer_mlyze *trace = work->trace;
    coffer__mlyze_text_sum sum = COFFER__MLYZE_SUM_KEEP;
    char *text = NULL;
    if (work->opts->no_checksums)
        sum = COFFER__MLYZE_SUM_STRIP;
    else if (work->opts->plain && !is_bare(trace))
        sum = COFFER__MLYZE_SUM_ADD;
    size_t len = trace->header.metadata_len;
    if (sum == COFFER__MLYZE_SUM_KEEP && keeps_tables(work))
        return copy_tables(work, err);
    coffer_status status =
        coffer__mlyze_has_tables(&trace->header)
            ? coffer__mlyze_tables_text(&text, &len, &trace->metadata, err)
            : coffer__mlyze_read_metadata(&text, trace->source, &trace->header, &trace->limits, err);
    if (!status)
        status = coffer__mlyze_copy_text(&work->text, text, len, members_to_add(trace), sum, err);
    coffer__free(text);
    if (!status)
        status = coffer__mlyze_copied_tables(&work->text, work->front.flags, &trace->limits, err);
    return status;
}

/* Finds the events. A truncated one is an error, since the copy would silently lack it. */
static coffer_status find_events(rewriting *work, coffer_error *err)
{
    work->map = coffer__calloc(1, sizeof *work->map);
    if (!work->map)
        return coffer__fail_no_memory(err, sizeof *work->map);
    coffer_status status = coffer__mlyze_walk(work->map, work->trace, err);
    if (!status && work->map->damage.status)
        status = coffer__fail_copy(err, &work->map->damage);
    work->front.event_count = work->map->event_count;
    return status;
}

static coffer_status copy_blocks(rewriting *work, coffer__mlyze_copy *copy, coffer_error *err)
{
    const coffer__mlyze_map *map = work->map;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < map->count; i++) {
        status = coffer__mlyze_copy_block(copy, &map->items[i], err);
        if (!status)
            status = coffer__progress_step(work->opts->progress, i + 1, map->count, err);
    }
    return status;
}

static coffer_status copy_events(rewriting *work, bool *extensions, coffer__sink *sink, coffer_error *err)
{
    coffer__mlyze_copy copy = { 0 };
    coffer_status status = coffer__mlyze_copy_init(&copy, sink, work->trace, work->opts, err);
    coffer__sink_crc_begin(sink);
    if (!status)
        status = copy_blocks(work, &copy, err);
    if (!status)
        status = coffer__mlyze_copy_end(&copy, &work->front.area_len, err);
    *extensions = copy.extensions;
    work->dropped = copy.dropped;
    work->front.event_count = work->map->event_count - copy.dropped;
    work->front.area_crc = coffer__sink_crc(sink);
    coffer__mlyze_copy_free(&copy);
    return status;
}

/* A stream gets the checksum of its events before them, so they are encoded twice. */
static coffer_status sum_events(rewriting *work, coffer_error *err)
{
    coffer__sink *nowhere = NULL;
    bool extensions;
    coffer_status status = coffer__sink_create(&nowhere, "/dev/null", NULL, err);
    if (status)
        return status;
    status = copy_events(work, &extensions, nowhere, err);
    coffer__sink_discard(nowhere);
    work->front.area_is_known = !status;
    return status;
}

/* Fills in what is known only now: the extension flag and the length of the area, or the checksum. */
static coffer_status settle(rewriting *work, bool extensions, coffer_error *err)
{
    uint8_t header[COFFER__MLYZE_HEADER_SIZE];
    if (!coffer__sink_can_patch(work->sink))
        return COFFER_OK;
    if (work->opts->plain)
        return work->text.summed ? coffer__mlyze_settle_sum(work->sink, &work->front, err) : COFFER_OK;
    work->front.flags = flags_of(work, extensions);
    coffer__mlyze_compose_header(header, &work->front);
    return coffer__sink_patch(work->sink, 0, header, sizeof header, err);
}

static coffer_status rewrite(rewriting *work, coffer_error *err)
{
    const coffer_mlyze *trace = work->trace;
    bool extensions = coffer__mlyze_has_extensions(&trace->header);
    work->front.start_time = trace->header.start_time;
    work->front.reserved = trace->header.bytes + COFFER__MLYZE_RESERVED_AT;
    work->front.flags = flags_of(work, extensions);
    coffer_status status = find_events(work, err);
    if (!status)
        status = prepare_text(work, err);
    if (work->opts->drop_extensions && !coffer__sink_can_patch(work->sink))
        work->front.event_count = 0; /* not known yet */
    if (!status && work->text.summed && !coffer__sink_can_patch(work->sink))
        status = sum_events(work, err);
    if (!status)
        status = coffer__mlyze_write_text_front(work->sink, &work->front, &work->text, err);
    if (!status)
        status = copy_events(work, &extensions, work->sink, err);
    if (!status)
        status = settle(work, extensions, err);
    coffer__mlyze_copied_text_free(&work->text);
    coffer__mlyze_map_free(work->map);
    return status;
}

coffer_status coffer_mlyze_rewrite(const coffer_mlyze *trace, const char *out_path,
                                   const coffer_mlyze_writer_opts *opts, coffer_error *err)
{
    uint64_t dropped;
    return coffer__mlyze_rewrite(&dropped, trace, out_path, opts, err);
}

coffer_status coffer__mlyze_rewrite(uint64_t *dropped, const coffer_mlyze *trace, const char *out_path,
                                    const coffer_mlyze_writer_opts *opts, coffer_error *err)
{
    coffer_mlyze_writer_opts options = COFFER_MLYZE_WRITER_OPTS_INIT;
    coffer__sink_opts sink_options = { 0 };
    rewriting work = { .trace = trace, .opts = &options };
    coffer_status status = coffer__mlyze_take_opts(&options, opts, err);
    if (status)
        return status;
    sink_options.exclusive = !options.overwrite;
    status = coffer__sink_create(&work.sink, out_path, &sink_options, err);
    if (status)
        return status;
    status = rewrite(&work, err);
    if (status) {
        coffer__sink_discard(work.sink);
        return status;
    }
    status = coffer__sink_commit(work.sink, err);
    if (status)
        return status;
    coffer__mlyze_write_index(out_path, &options);
    *dropped = work.dropped;
    return COFFER_OK;
}
