/* Copies a trace with other blocks, or without blocks. Metadata and events stay the same bytes. */
#include "formats/mlyze/write/mlyze_write_copy.h"

#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"

typedef struct rewriting {
    const coffer_mlyze *trace;
    const coffer_mlyze_writer_opts *opts;
    coffer__sink *sink;
    coffer__mlyze_front front;
    coffer__mlyze_map *map; /* of the file itself, not of an index */
} rewriting;

/* Some programs never update the metadata that they write at the start. */
static bool is_complete(const coffer_mlyze *trace)
{
    if (coffer__mlyze_has_blocks(&trace->header) || trace->header.flags)
        return (trace->header.flags & COFFER__MLYZE_FLAG_COMPLETE) != 0;
    return coffer_mlyze_profile_name(trace) == NULL;
}

static coffer_status write_front(rewriting *work, coffer_error *err)
{
    const coffer_mlyze *trace = work->trace;
    uint8_t header[COFFER__MLYZE_HEADER_SIZE];
    char *text = NULL;
    coffer_status status =
        coffer__mlyze_read_metadata(&text, trace->source, &trace->header, &trace->limits, err);
    if (status)
        return status;
    work->front.metadata_len = trace->header.metadata_len;
    work->front.metadata_crc = coffer__crc32(0, text, trace->header.metadata_len);
    coffer__mlyze_compose_header(header, &work->front);
    status = coffer__sink_write(work->sink, header, sizeof header, err);
    if (!status)
        status = coffer__sink_write(work->sink, text, trace->header.metadata_len, err);
    coffer__free(text);
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

/* Fills in the extension flag and the length of the area, which are known only now. */
static coffer_status settle_header(rewriting *work, bool extensions, coffer_error *err)
{
    uint8_t header[COFFER__MLYZE_HEADER_SIZE];
    if (work->opts->plain || !coffer__sink_can_patch(work->sink))
        return COFFER_OK;
    work->front.flags = coffer__mlyze_flags_of(work->opts, extensions, is_complete(work->trace));
    coffer__mlyze_compose_header(header, &work->front);
    return coffer__sink_patch(work->sink, 0, header, sizeof header, err);
}

static coffer_status rewrite(rewriting *work, coffer_error *err)
{
    const coffer_mlyze *trace = work->trace;
    coffer__mlyze_copy copy = { 0 };
    work->front.start_time = trace->header.start_time;
    work->front.flags =
        coffer__mlyze_flags_of(work->opts, coffer__mlyze_has_extensions(&trace->header), is_complete(trace));
    coffer_status status = find_events(work, err);
    if (!status)
        status = write_front(work, err);
    if (!status)
        status = coffer__mlyze_copy_init(&copy, work->sink, trace, work->opts, err);
    if (!status)
        status = copy_blocks(work, &copy, err);
    if (!status)
        status = coffer__mlyze_copy_end(&copy, &work->front.area_len, err);
    if (status)
        goto out;
    status = settle_header(work, copy.extensions, err);
out:
    coffer__mlyze_copy_free(&copy);
    coffer__mlyze_map_free(work->map);
    return status;
}

coffer_status coffer_mlyze_rewrite(const coffer_mlyze *trace, const char *out_path,
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
    return COFFER_OK;
}
