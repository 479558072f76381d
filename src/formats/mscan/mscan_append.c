/* Appending: records are written after the last one, then header and metadata are changed in place, all under
 * the rollback journal. When the metadata does not fit any more, the file is rewritten. */
#include "formats/mscan/mscan_writer.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "formats/mscan/mscan_damage.h"
#include "io/os.h"

#include <inttypes.h>

/* ---- Opening ---- */

/* Appending to a damaged file would keep the damage or make it worse. */
static coffer_status fail_damaged(const coffer_report *report, coffer_error *err)
{
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        if (finding->severity == COFFER_ERROR)
            return coffer__fail(err, finding->code, finding->offset, "%s; repair the file before appending",
                                finding->text);
    }
    return COFFER_OK;
}

static coffer_status read_base(coffer_mscan_writer *writer, const coffer__mscan_header *header,
                               coffer_source *src, const coffer_limits *limits, coffer_error *err)
{
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    coffer_status status = coffer_report_new(&report, 0, err);
    if (status)
        return status;
    status = coffer__mscan_read_metadata(&writer->base, src, header, limits, report, &cause);
    if (status) {
        status = coffer__fail(err, status, cause.offset, "%s%s", cause.text,
                              coffer__is_about_file(status) && status != COFFER_E_LIMIT
                                  ? "; repair the file before appending"
                                  : "");
        goto out;
    }
    status = coffer__mscan_check_seal(&writer->base, header->record_count, report, err);
    if (!status)
        status = fail_damaged(report, err);
    if (!status)
        status = coffer__report_status(report, err);
    if (!status)
        status = coffer__mscan_names_init(&writer->names, &writer->base, err);
out:
    coffer_report_free(report);
    return status;
}

/* A file without sums gets them, after its records were compared with the checksums of its sequences. */
static coffer_status compute_sums(coffer_mscan_writer *writer, coffer_source *src, coffer_error *err)
{
    uint64_t size = writer->record_count * COFFER__MSCAN_RECORD_SIZE;
    coffer__mscan_verifier *verifier = NULL;
    coffer__chunk_sums sums = { 0 };
    coffer_status status = coffer__mscan_verifier_new(&verifier, src, writer->area, writer->record_count,
                                                      &writer->base, true, err);
    if (!status)
        status = coffer__mscan_verify_all(verifier, writer->record_count, err);
    if (!status)
        status = coffer__chunk_sums_compute(&sums, src, writer->area, size, NULL, err);
    coffer__mscan_verifier_free(verifier);
    if (status)
        return status;
    writer->sums.sums = sums.sums;
    writer->sums.count = writer->sums.capacity = sums.count;
    return COFFER_OK;
}

/* Continues the sums of the old records. An incomplete MiB is continued without reading it, so that damage in
 * it stays known. */
static coffer_status resume_sums(coffer_mscan_writer *writer, coffer_source *src, coffer_error *err)
{
    uint64_t size = writer->record_count * COFFER__MSCAN_RECORD_SIZE;
    coffer__chunk_counter *counter = &writer->sums;
    bool found = false;
    coffer_status status =
        coffer__mscan_load_sums(&found, &counter->sums, &writer->base, writer->record_count, err);
    if (!status && found)
        counter->count = counter->capacity = (size_t)coffer__chunk_count(size);
    if (!status && !found)
        status = compute_sums(writer, src, err);
    if (status || size % COFFER__CHUNK_BYTES == 0)
        return status;
    counter->in_chunk = (size_t)(size % COFFER__CHUNK_BYTES);
    counter->crc = counter->sums[--counter->count];
    return COFFER_OK;
}

static coffer_status find_end(coffer_mscan_writer *writer, const coffer__mscan_header *header,
                              coffer_source *src, coffer_error *err)
{
    const coffer__mscan_metadata *base = &writer->base;
    coffer__mscan_area area;
    coffer_status status = coffer__mscan_locate_records(&area, src, header, base, err);
    if (status)
        return status;
    if (area.lost > 0)
        return coffer__fail(err, COFFER_E_TRUNCATED, coffer_source_size(src),
                            "header says %lu records, file has %" PRIu64
                            " whole ones; repair it before appending",
                            (unsigned long)header->record_count, area.count);
    if (header->record_count > 0 && base->total_tokens == 0)
        return coffer__fail(err, COFFER_E_INCONSISTENT, header->header_len,
                            "%lu records, but no sequence has a token; repair the file before appending",
                            (unsigned long)header->record_count);
    writer->must_move = area.trailing > 0;
    writer->old_size = coffer_source_size(src);
    writer->area = header->header_len;
    writer->record_count = writer->old_record_count = header->record_count;
    writer->total_tokens = base->total_tokens;
    if (base->sequence_count > 0 &&
        !coffer__add_u64(&writer->next_sequence_id, base->sequences[base->sequence_count - 1].sequence_id, 1))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER__MSCAN_HEADER_SIZE,
                            "the last sequence_id is 2^64 - 1: none is left for another");
    return resume_sums(writer, src, err);
}

coffer_status coffer_mscan_writer_append_to(coffer_mscan_writer **out, const char *path,
                                            const coffer_mscan_writer_opts *opts, coffer_error *err)
{
    coffer_mscan_writer_opts options = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer_limits limits = coffer__limits(options.limits);
    coffer_mscan_writer *writer = coffer__mscan_writer_new(path, err);
    if (!writer)
        return COFFER_E_NO_MEMORY;
    status = coffer__update_open(&writer->update, path, NULL, err);
    if (status)
        goto out;
    coffer_source *src = coffer__update_source(writer->update);
    coffer__mscan_header header;
    status = coffer__mscan_read_header(&header, src, err);
    if (!status)
        status = read_base(writer, &header, src, &limits, err);
    if (!status)
        status = find_end(writer, &header, src, err);
    if (status)
        goto out;
    *out = writer;
    return COFFER_OK;
out:
    coffer__mscan_writer_free(writer);
    return status;
}

/* ---- Writing ---- */

static coffer_status begin(coffer_mscan_writer *writer, coffer_error *err)
{
    coffer__range front = { 0, writer->area };
    coffer_status status = writer->begun ? COFFER_OK : coffer__update_begin(writer->update, &front, 1, err);
    if (!status)
        writer->begun = true;
    return status;
}

coffer_status coffer__mscan_append_records(coffer_mscan_writer *writer, const uint8_t *packed, size_t len,
                                           coffer_error *err)
{
    coffer_status status = begin(writer, err);
    return status ? status : coffer__update_append(writer->update, packed, len, err);
}

/* ---- Committing ---- */

static coffer_status commit_in_place(coffer_mscan_writer *writer, coffer__buffer *json, coffer_error *err)
{
    uint8_t *front = coffer__malloc(writer->area);
    if (!front)
        return coffer__fail_no_memory(err, writer->area);
    coffer__mscan_close_seal(json, writer->area, writer->record_count);
    coffer__mscan_write_header(front, writer->area, (uint32_t)writer->record_count);
    memcpy(front + COFFER__MSCAN_HEADER_SIZE, json->data, json->len);
    memset(front + COFFER__MSCAN_HEADER_SIZE + json->len, ' ',
           writer->area - COFFER__MSCAN_HEADER_SIZE - json->len);
    coffer_status status = begin(writer, err);
    if (!status)
        status = coffer__update_overwrite(writer->update, 0, front, writer->area, err);
    if (!status)
        status = coffer__update_commit(writer->update, err);
    coffer__free(front);
    return status;
}

static coffer_status copy_records(coffer__sink *sink, coffer_mscan_writer *writer, coffer_error *err)
{
    int fd = coffer__update_fd(writer->update);
    uint64_t old_len = writer->old_record_count * COFFER__MSCAN_RECORD_SIZE;
    uint64_t new_len = writer->record_count * COFFER__MSCAN_RECORD_SIZE - old_len;
    coffer_status status = writer->begun ? coffer__update_flush(writer->update, err) : COFFER_OK;
    if (!status)
        status = coffer__sink_copy_file(sink, fd, writer->area, old_len, writer->path, err);
    if (!status && new_len > 0)
        status = coffer__sink_copy_file(sink, fd, writer->old_size, new_len, writer->path, err);
    return status;
}

/* The journal describes the old file, so it is removed before the new file gets the name. The lock on the old
 * file is held until then, and the new file is locked before it becomes visible. */
static coffer_status commit_aside(coffer_mscan_writer *writer, coffer__buffer *json, coffer_error *err)
{
    uint64_t old_room = writer->area - COFFER__MSCAN_HEADER_SIZE;
    uint64_t room = coffer__mscan_default_room(json->len);
    const coffer__sink_opts opts = { .rewrites = true };
    coffer__sink *sink = NULL;
    uint32_t area;
    int fd = -1;

    if (2 * old_room > json->len + room)
        room = 2 * old_room - json->len;
    coffer_status status = coffer__mscan_place_records(&area, json->len, room, err);
    if (!status)
        status = coffer__sink_create(&sink, writer->path, &opts, err);
    if (!status)
        status = coffer__sink_lock(sink, err);
    if (!status)
        status = coffer__mscan_write_front(sink, area, writer->record_count, json, err);
    if (!status)
        status = copy_records(sink, writer, err);
    if (!status && writer->begun)
        status = coffer__update_roll_back(writer->update, err);
    if (status) {
        coffer__sink_discard(sink);
        return status;
    }
    writer->begun = false;
    status = coffer__sink_commit_open(sink, &fd, err);
    if (fd >= 0)
        coffer__os_close(fd);
    return status;
}

coffer_status coffer__mscan_commit_append(coffer_mscan_writer *writer, coffer__buffer *json,
                                          coffer_error *err)
{
    if (writer->sequence_count == 0 && writer->names.added == 0 && !writer->edited)
        return COFFER_OK;
    if (!writer->must_move && json->len <= writer->area - COFFER__MSCAN_HEADER_SIZE)
        return commit_in_place(writer, json, err);
    return commit_aside(writer, json, err);
}
