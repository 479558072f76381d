/* Committing a new scan: metadata and header, around or in front of the records that were written. */
#include "base/fail.h"
#include "formats/mscan/mscan_writer.h"
#include "io/os.h"

#include <inttypes.h>

coffer_status coffer__mscan_writer_compose(coffer__buffer *out, coffer_mscan_writer *writer,
                                           coffer_error *err)
{
    coffer__mscan_draft draft = { .base = &writer->base,
                                  .names = &writer->names,
                                  .added = writer->sequences,
                                  .added_count = writer->sequence_count,
                                  .extent_limit = writer->extent_limit,
                                  .sums = writer->sums.sums,
                                  .sum_count = writer->sums.count,
                                  .marks = writer->base.marks,
                                  .mark_count = writer->base.mark_count };
    return coffer__mscan_compose(out, &draft, err);
}

coffer_status coffer__mscan_write_front(coffer__sink *sink, uint32_t area, uint64_t record_count,
                                        coffer__buffer *json, coffer_error *err)
{
    uint8_t header[COFFER__MSCAN_HEADER_SIZE];
    coffer__mscan_close_seal(json, area, record_count);
    coffer__mscan_write_header(header, area, (uint32_t)record_count);
    coffer_status status = coffer__sink_write(sink, header, sizeof header, err);
    if (!status)
        status = coffer__sink_write(sink, json->data, json->len, err);
    if (status)
        return status;
    return coffer__sink_fill(sink, ' ', area - sizeof header - json->len, err);
}

/* The metadata fits the room that was left: it goes there. */
static coffer_status patch_front(coffer_mscan_writer *writer, coffer__buffer *json, coffer_error *err)
{
    uint8_t header[COFFER__MSCAN_HEADER_SIZE];
    coffer__mscan_close_seal(json, writer->area, writer->record_count);
    coffer__mscan_write_header(header, writer->area, (uint32_t)writer->record_count);
    coffer_status status = coffer__sink_patch(writer->sink, 0, header, sizeof header, err);
    return status ? status : coffer__sink_patch(writer->sink, sizeof header, json->data, json->len, err);
}

/* The metadata outgrew the room: a second temporary file takes the first one's place. */
static coffer_status move_records(coffer_mscan_writer *writer, coffer__buffer *json, uint32_t area,
                                  coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !writer->overwrite, .rewrites = writer->rewrites };
    coffer__sink *larger = NULL;
    int fd = -1;
    coffer_status status = coffer__sink_create(&larger, writer->path, &options, err);
    if (!status)
        status = coffer__mscan_write_front(larger, area, writer->record_count, json, err);
    if (!status)
        status = coffer__sink_read_back(&fd, writer->sink, err);
    if (!status)
        status = coffer__sink_copy_file(larger, fd, writer->area,
                                        writer->record_count * COFFER__MSCAN_RECORD_SIZE, writer->path, err);
    if (status) {
        coffer__sink_discard(larger);
        return status;
    }
    coffer__sink_discard(writer->sink);
    writer->sink = larger;
    return COFFER_OK;
}

static coffer_status commit_new(coffer_mscan_writer *writer, coffer__buffer *json, coffer_error *err)
{
    uint64_t room = writer->reserve ? writer->reserve : coffer__mscan_default_room(json->len);
    uint64_t records_len = writer->record_count * COFFER__MSCAN_RECORD_SIZE;
    coffer__sink *sink;
    coffer_status status;
    uint32_t area;

    status = coffer__mscan_place_records(&area, json->len, room, err);
    if (status)
        return status;
    if (writer->spool >= 0) {
        status = coffer__mscan_write_front(writer->sink, area, writer->record_count, json, err);
        if (!status)
            status = coffer__sink_copy_file(writer->sink, writer->spool, 0, records_len, writer->path, err);
    } else if (writer->area == 0)
        status = coffer__mscan_write_front(writer->sink, area, 0, json, err);
    else if (json->len <= writer->area - COFFER__MSCAN_HEADER_SIZE)
        status = patch_front(writer, json, err);
    else
        status = move_records(writer, json, area, err);
    if (!status && writer->rewrites)
        status = coffer__sink_lock(writer->sink, err);
    if (status)
        return status;
    sink = writer->sink;
    writer->sink = NULL; /* commit frees it */
    if (!writer->rewrites)
        return coffer__sink_commit(sink, err);
    int fd = -1;
    status = coffer__sink_commit_open(sink, &fd, err);
    if (fd >= 0)
        coffer__os_close(fd);
    return status;
}

coffer_status coffer_mscan_writer_commit(coffer_mscan_writer *writer, coffer_error *err)
{
    coffer__buffer json = COFFER__BUFFER_INIT;
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (status)
        goto out;
    if (writer->in_sequence) {
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "sequence %" PRIu64 " was begun and not ended", writer->next_sequence_id);
        goto out;
    }
    status = coffer__chunk_counter_end(&writer->sums, err);
    if (!status)
        status = coffer__mscan_writer_compose(&json, writer, err);
    if (status)
        goto out;
    status =
        writer->update ? coffer__mscan_commit_append(writer, &json, err) : commit_new(writer, &json, err);
out:
    coffer__buffer_free(&json);
    coffer__mscan_writer_free(writer);
    return status;
}
