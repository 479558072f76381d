/* Finishes a trace: one file with the metadata before the events. */
#include "formats/mlyze/write/mlyze_write_copy.h"

#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/write/mlyze_write.h"
#include "io/file.h"
#include "io/inputs.h"
#include "io/os.h"
#include "io/source_private.h"
#include "io/temporary.h"

#include <string.h>

coffer__mlyze_draft coffer__mlyze_draft_of(const coffer_mlyze_writer *writer)
{
    coffer__mlyze_draft draft = { .pools = &writer->pools,
                                  .marks = &writer->marks,
                                  .summed = writer->opts.plain && !writer->opts.no_checksums };
    if (writer->extra)
        draft.extra = coffer__json_root(writer->extra);
    return draft;
}

static coffer__mlyze_front front_of(const coffer_mlyze_writer *writer, uint64_t area_len)
{
    coffer__mlyze_front front = { .start_time = writer->opts.start_time_us,
                                  .flags = coffer__mlyze_flags_of(&writer->opts, writer->extensions, true),
                                  .event_count = writer->event_count,
                                  .area_len = area_len,
                                  .area_is_known = !writer->opts.recording,
                                  .area_crc = writer->area.crc };
    return front;
}

static coffer_status write_front(coffer__mlyze_front *front, coffer_mlyze_writer *writer, coffer_error *err)
{
    coffer__mlyze_draft draft = coffer__mlyze_draft_of(writer);
    return coffer__mlyze_write_front(writer->sink, front, &draft, err);
}

/* ---- A recording ---- */

/* The length of the events is known now. */
static coffer_status patch_header(coffer_mlyze_writer *writer, const coffer__mlyze_front *front,
                                  coffer_error *err)
{
    uint8_t header[COFFER__MLYZE_HEADER_SIZE];
    coffer__mlyze_compose_header(header, front);
    return coffer__sink_patch(writer->sink, 0, header, sizeof header, err);
}

static coffer_status copy_in_other_form(coffer_mlyze_writer *writer, coffer__mlyze_front *front,
                                        coffer_source *part, coffer_error *err)
{
    coffer__mlyze_copy copy = { 0 };
    coffer_mlyze trace;
    coffer__mlyze_part_as_trace(&trace, part, true, &writer->limits);
    coffer__sink_crc_begin(writer->sink);
    coffer_status status = coffer__mlyze_copy_init(&copy, writer->sink, &trace, &writer->opts, err);
    for (uint64_t at = trace.area, event = 0; !status && at < trace.area_end;) {
        coffer__mlyze_block block;
        status = coffer__mlyze_read_block_header(&block, NULL, &trace, at, err);
        if (status)
            break;
        block.first_event = event;
        status = coffer__mlyze_copy_block(&copy, &block, err);
        event += block.event_count;
        at += COFFER__MLYZE_BLOCK_HEADER + block.stored_size;
    }
    if (!status)
        status = coffer__mlyze_copy_end(&copy, &front->area_len, err);
    coffer__mlyze_copy_free(&copy);
    if (!status && writer->opts.archive)
        return patch_header(writer, front, err);
    if (status || writer->opts.no_checksums)
        return status;
    front->area_crc = coffer__sink_crc(writer->sink);
    return coffer__mlyze_settle_sum(writer->sink, front, err);
}

static coffer_status copy_part(coffer_mlyze_writer *writer, coffer__mlyze_front *front, coffer_error *err)
{
    const coffer__mlyze_parts *parts = &writer->parts;
    coffer_source *part = NULL;
    coffer_status status;
    if (!writer->opts.plain && !writer->opts.archive)
        return coffer__sink_copy_file(writer->sink, parts->part, COFFER__MLYZE_PARTS_HEADER,
                                      parts->part_size - COFFER__MLYZE_PARTS_HEADER, parts->part_path, err);
    status = coffer__source_over_fd(&part, parts->part, false, parts->part_size, parts->part_path, NULL, err);
    if (status)
        return status;
    status = copy_in_other_form(writer, front, part, err);
    coffer_source_close(part);
    return status;
}

/* From here on the parts are complete, which the END entry tells recovery. */
static coffer_status end_parts(coffer_mlyze_writer *writer, coffer_error *err)
{
    coffer__buffer chunk = COFFER__BUFFER_INIT;
    coffer__mlyze_strings_put_end(&chunk, writer->event_count, writer->parts.part_size);
    coffer_status status = chunk.failed ? coffer__fail_no_memory(err, COFFER__MLYZE_CHUNK_HEADER)
                                        : coffer__mlyze_parts_add_strings(&writer->parts, &chunk, err);
    coffer__buffer_free(&chunk);
    return status;
}

static coffer_status join_parts(coffer_mlyze_writer *writer, coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !writer->opts.overwrite };
    coffer__mlyze_front front = front_of(writer, writer->parts.part_size - COFFER__MLYZE_PARTS_HEADER);
    coffer_status status = end_parts(writer, err);
    if (!status)
        status = coffer__sink_create(&writer->sink, writer->path, &options, err);
    if (!status)
        status = write_front(&front, writer, err);
    if (status)
        return status;
    return copy_part(writer, &front, err);
}

/* ---- Both ---- */

/* The rest of the room for the metadata is given back when it is larger. */
#define SPACES_MAX 4096

/* The metadata takes more or much less than its room: a second file replaces the first. */
static coffer_status move_area(coffer_mlyze_writer *writer, coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !writer->opts.overwrite };
    coffer__mlyze_front front = front_of(writer, coffer__mlyze_area_size(&writer->area));
    coffer__sink *first = writer->sink;
    coffer_status status = coffer__sink_create(&writer->sink, writer->path, &options, err);
    if (!status)
        status = write_front(&front, writer, err);
    if (!status)
        status = coffer__mlyze_area_copy(writer->sink, &writer->area, err);
    if (writer->sink != first)
        coffer__sink_discard(first);
    return status;
}

static coffer_status join_area(coffer_mlyze_writer *writer, coffer_error *err)
{
    coffer__mlyze_area *area = &writer->area;
    coffer__mlyze_draft draft = coffer__mlyze_draft_of(writer);
    coffer__mlyze_front front = front_of(writer, coffer__mlyze_area_size(area));
    uint32_t len, crc;
    coffer_status status;
    if (area->room && !writer->opts.plain)
        return move_area(writer, err);
    if (area->room) {
        status = coffer__mlyze_measure(&len, &crc, &draft, err);
        if (status)
            return status;
        return len <= area->room && area->room - len <= SPACES_MAX
                   ? coffer__mlyze_patch_front(writer->sink, &front, (uint32_t)area->room, &draft, err)
                   : move_area(writer, err);
    }
    status = coffer__mlyze_write_front(writer->sink, &front, &draft, err);
    return status ? status : coffer__mlyze_area_copy(writer->sink, area, err);
}

static coffer_status finish(coffer_mlyze_writer *writer, coffer_error *err)
{
    coffer_status status = coffer__mlyze_close_block(writer, err);
    if (!status && writer->packer)
        status = coffer__mlyze_packer_end(writer->packer, err);
    if (status)
        return status;
    status = writer->opts.recording ? join_parts(writer, err) : join_area(writer, err);
    if (status)
        return status;
    coffer__sink *sink = writer->sink;
    writer->sink = NULL; /* commit frees it */
    status = coffer__sink_commit(sink, err);
    if (!status && writer->opts.recording)
        status = coffer__mlyze_parts_remove(&writer->parts, err);
    return status;
}

coffer_status coffer_mlyze_writer_commit(coffer_mlyze_writer *writer, coffer_error *err)
{
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (!status)
        status = finish(writer, err);
    if (!status)
        coffer__mlyze_write_index(writer->path, &writer->opts);
    coffer__mlyze_writer_free(writer);
    return status;
}

void coffer_mlyze_writer_discard(coffer_mlyze_writer *writer)
{
    if (!writer)
        return;
    if (writer->opts.recording)
        coffer__mlyze_parts_remove(&writer->parts, NULL);
    coffer__mlyze_writer_free(writer);
}

void coffer__mlyze_write_index(const char *path, const coffer_mlyze_writer_opts *opts)
{
    coffer_mlyze_open_opts options = COFFER_MLYZE_OPEN_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_mlyze *trace = NULL;
    struct stat st;
    size_t len = strlen(path), count;
    if (opts->plain || opts->no_index || coffer__os_stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    char *name = coffer__malloc(len + sizeof ".idx");
    if (!name)
        return;
    memcpy(name, path, len);
    memcpy(name + len, ".idx", sizeof ".idx");
    options.index_path = name;
    coffer__inputs_allow(path); /* reading what was just written does not make it an input */
    options.limits = opts->limits;
    if (coffer_source_open(&src, path, NULL, NULL) == COFFER_OK &&
        coffer_mlyze_open(&trace, src, &options, NULL) == COFFER_OK)
        coffer__ignore(coffer_mlyze_load_index(&count, trace, NULL, NULL)); /* writes index_path */
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    coffer__free(name);
}

/* ---- The event area ---- */

#define BUFFER_SIZE ((size_t)1 << 20)
/* More names and stacks follow after the first megabyte of events: room for more than twice the current ones.
 */
#define ROOM_MIN ((uint64_t)32 << 10)
#define ROOM_MAX ((uint64_t)64 << 20)
#define SPOOL "temporary file"

coffer_status coffer__mlyze_area_init(coffer__mlyze_area *area, coffer__sink *sink, coffer_error *err)
{
    *area = (coffer__mlyze_area){ .sink = sink, .fd = -1 };
    area->buffer = coffer__malloc(BUFFER_SIZE);
    return area->buffer ? COFFER_OK : coffer__fail_no_memory(err, BUFFER_SIZE);
}

void coffer__mlyze_area_free(coffer__mlyze_area *area)
{
    if (area->buffer)
        coffer__file_close(area->fd);
    coffer__free(area->buffer);
    area->buffer = NULL;
}

bool coffer__mlyze_area_needs_room(const coffer__mlyze_area *area, size_t len)
{
    return area->room == 0 && len > BUFFER_SIZE - area->buffered && coffer__sink_can_patch(area->sink);
}

coffer_status coffer__mlyze_area_place(coffer__mlyze_area *area, uint64_t metadata_len, coffer_error *err)
{
    uint64_t room = metadata_len < ROOM_MAX ? 2 * metadata_len : metadata_len + ROOM_MAX;
    coffer_status status;
    if (room > UINT32_MAX)
        room = UINT32_MAX;
    area->room = room > ROOM_MIN ? room : ROOM_MIN;
    status = coffer__sink_fill(area->sink, ' ', COFFER__MLYZE_HEADER_SIZE + area->room, err);
    if (!status)
        status = coffer__sink_write(area->sink, area->buffer, area->buffered, err);
    area->written = area->buffered;
    area->buffered = 0;
    return status;
}

static coffer_status spool(coffer__mlyze_area *area, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (area->fd < 0)
        status = coffer__temporary_unnamed(&area->fd, err);
    if (!status)
        status = coffer__file_write_at(area->fd, area->buffer, area->buffered, area->written, SPOOL, err);
    area->written += area->buffered;
    area->buffered = 0;
    return status;
}

coffer_status coffer__mlyze_area_add(coffer__mlyze_area *area, const uint8_t *bytes, size_t len,
                                     coffer_error *err)
{
    coffer_status status = COFFER_OK;
    area->crc = coffer__crc32(area->crc, bytes, len);
    if (area->room) {
        area->written += len;
        return coffer__sink_write(area->sink, bytes, len, err);
    }
    if (len > BUFFER_SIZE - area->buffered)
        status = spool(area, err);
    if (status)
        return status;
    memcpy(area->buffer + area->buffered, bytes, len);
    area->buffered += len;
    return COFFER_OK;
}

uint64_t coffer__mlyze_area_size(const coffer__mlyze_area *area)
{
    return area->written + area->buffered;
}

coffer_status coffer__mlyze_area_copy(coffer__sink *sink, const coffer__mlyze_area *area, coffer_error *err)
{
    uint64_t from = area->room ? COFFER__MLYZE_HEADER_SIZE + area->room : 0;
    coffer_status status = COFFER_OK;
    int fd = area->fd;
    if (area->room)
        status = coffer__sink_read_back(&fd, area->sink, err);
    if (!status && area->written > 0)
        status = coffer__sink_copy_file(sink, fd, from, area->written, SPOOL, err);
    return status ? status : coffer__sink_write(sink, area->buffer, area->buffered, err);
}
