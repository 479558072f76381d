/* Resuming an interrupted writer from PATH.partial and PATH.partial-rows. */
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/table.h"
#include "formats/mldf/write/mldf_checkpoint.h"
#include "io/file.h"
#include "io/os.h"

#include <errno.h>

#define PIECE ((size_t)1 << 20)

typedef struct revival {
    coffer_mldf_writer *writer;
    int data; /* PATH.partial */
    uint64_t rows_size, data_size;
    uint8_t *piece;
    coffer__buffer record; /* rows and entries of one */
} revival;

typedef struct record_front {
    uint32_t rows, entries, origins, crc;
    uint64_t samples, mark, end;
    coffer__mldf_recovery recovery;
    uint64_t data_end;
    uint32_t data_crc, tail_crc;
} record_front;

static coffer_status read_rows(revival *work, void *out, size_t len, uint64_t offset, coffer_error *err)
{
    return coffer__file_read_at(work->writer->checkpoint->fd, out, len, offset,
                                work->writer->checkpoint->path, err);
}

static coffer_status check_header(revival *work, coffer_error *err)
{
    uint8_t header[CHECKPOINT_HEADER_SIZE], expected[CHECKPOINT_HEADER_SIZE];
    coffer_status status;
    if (work->rows_size < CHECKPOINT_HEADER_SIZE)
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "%s: nothing to resume",
                            work->writer->path);
    status = read_rows(work, header, sizeof header, 0, err);
    if (status)
        return status;
    coffer__mldf_checkpoint_header(expected, work->writer->checkpoint, header + CHECKPOINT_ID_AT);
    if (memcmp(header, CHECKPOINT_MAGIC, 4) != 0 || coffer__crc32(0, header, CHECKPOINT_HEADER_SUMMED) !=
                                                        coffer__load_u32(header + CHECKPOINT_HEADER_SUMMED))
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "%s: nothing to resume",
                            work->writer->path);
    if (memcmp(header, expected, CHECKPOINT_TAG_AT) != 0)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "%s: what was left was written with other fields or options", work->writer->path);
    if (memcmp(header, expected, CHECKPOINT_HEADER_SIZE) != 0)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "%s: what was left comes from another input", work->writer->path);
    /* Encrypted payloads are tied to it. */
    memcpy(work->writer->id, header + CHECKPOINT_ID_AT, sizeof work->writer->id);
    return COFFER_OK;
}

static void load_front(record_front *out, const uint8_t bytes[CHECKPOINT_RECORD_SIZE])
{
    *out = (record_front){
        .rows = coffer__load_u32(bytes + CHECKPOINT_ROWS_AT),
        .entries = coffer__load_u32(bytes + CHECKPOINT_ENTRIES_AT),
        .origins = coffer__load_u32(bytes + CHECKPOINT_ORIGINS_AT),
        .crc = coffer__load_u32(bytes + CHECKPOINT_DATA_CRC_AT),
        .samples = coffer__load_u64(bytes + CHECKPOINT_SAMPLES_AT),
        .mark = coffer__load_u64(bytes + CHECKPOINT_MARK_AT),
        .end = coffer__load_u64(bytes + CHECKPOINT_END_AT),
        .recovery = { .rows = coffer__load_u64(bytes + CHECKPOINT_BLOCK_ROWS_AT),
                      .entries = coffer__load_u64(bytes + CHECKPOINT_BLOCK_ENTRIES_AT),
                      .last = coffer__load_u64(bytes + CHECKPOINT_BLOCK_AT),
                      .last_end = coffer__load_u64(bytes + CHECKPOINT_BLOCK_END_AT) },
        .data_end = coffer__load_u64(bytes + CHECKPOINT_DATA_END_AT),
        .data_crc = coffer__load_u32(bytes + CHECKPOINT_PAYLOAD_CRC_AT),
        .tail_crc = coffer__load_u32(bytes + CHECKPOINT_TAIL_CRC_AT),
    };
}

/* *whole is false for an unfinished record: everything after it is ignored. */
static coffer_status read_record(bool *whole, record_front *front, revival *work, coffer_error *err)
{
    const coffer_mldf_writer *writer = work->writer;
    uint64_t at = writer->checkpoint->position;
    uint8_t bytes[CHECKPOINT_RECORD_SIZE];
    coffer_status status;
    *whole = false;
    if (!coffer__range_fits(at, CHECKPOINT_RECORD_SIZE, work->rows_size))
        return COFFER_OK;
    status = read_rows(work, bytes, sizeof bytes, at, err);
    if (status)
        return status;
    load_front(front, bytes);
    uint64_t len = (uint64_t)front->rows + front->entries + front->origins;
    if (!coffer__range_fits(at + CHECKPOINT_RECORD_SIZE, len, work->rows_size))
        return COFFER_OK;
    work->record.len = 0;
    if (!coffer__buffer_extend(&work->record, (size_t)len))
        return coffer__fail_no_memory(err, len);
    if (len > 0)
        status = read_rows(work, work->record.data, (size_t)len, at + CHECKPOINT_RECORD_SIZE, err);
    if (status)
        return status;
    uint32_t crc = coffer__crc32(coffer__crc32(0, bytes + 4, CHECKPOINT_RECORD_SIZE - 4), work->record.data,
                                 (size_t)len);
    *whole = crc == coffer__load_u32(bytes) && front->rows % writer->row_size == 0 &&
             front->entries % COFFER__MLDF_TABLE_ENTRY == 0 && front->end >= writer->out.position &&
             front->end <= work->data_size && front->data_end <= front->end &&
             front->recovery.last_end <= front->end &&
             front->origins == (uint64_t)front->rows / writer->row_size * CHECKPOINT_ORIGIN_SIZE &&
             front->samples == writer->sample + front->rows / writer->row_size;
    return COFFER_OK;
}

static coffer_status sum_data(uint32_t *crc, revival *work, uint64_t end, coffer_error *err)
{
    uint32_t sum = work->writer->out.crc;
    for (uint64_t at = work->writer->out.position; at < end;) {
        size_t len = end - at < PIECE ? (size_t)(end - at) : PIECE;
        coffer_status status =
            coffer__fail_output(err, coffer__file_read_at(work->data, work->piece, len, at, NULL, err));
        if (status)
            return status;
        sum = coffer__crc32(sum, work->piece, len);
        at += len;
    }
    *crc = sum;
    return COFFER_OK;
}

/* Payloads that later ones may be equal to. */
static coffer_status remember(revival *work, const uint8_t *entries, size_t len, coffer_error *err)
{
    coffer_mldf_writer *writer = work->writer;
    coffer_status status = COFFER_OK;
    for (size_t at = 0; at < len && !status; at += COFFER__MLDF_TABLE_ENTRY) {
        coffer__mldf_allocation entry = coffer__mldf_load_allocation(entries + at);
        coffer__mldf_known known = { { 0, 0 }, entry.offset, entry.size, 0 };
        uint8_t *payload = coffer__malloc(entry.size);
        if (!payload)
            return coffer__fail_no_memory(err, entry.size);
        status = coffer__fail_output(err, coffer__file_read_at(work->data, payload, entry.size, entry.offset,
                                                               NULL, err));
        if (!status) {
            known.crc = coffer__crc32(0, payload, entry.size);
            coffer__hash_seeded(known.hash, payload, entry.size, writer->known.seed);
            if (coffer__mldf_dedup_find(&writer->known, &known) == 0)
                status = coffer__mldf_dedup_add(&writer->known, &known, err);
        }
        coffer__free(payload);
    }
    return status;
}

/* Fields with absent values have a flag that says so. */
static void find_absent(coffer_mldf_writer *writer, const uint8_t *rows, size_t len)
{
    for (size_t i = 0; i < writer->column_count; i++) {
        coffer_mldf_field *field = &writer->columns[i].field;
        if (!coffer__mldf_has_payload(field->kind))
            continue;
        for (size_t at = field->row_offset; at < len; at += writer->row_size) {
            if (coffer__load_u64(rows + at) == 0)
                field->flags |= COFFER_MLDF_FIELD_OPTIONAL;
        }
    }
}

/* The first block is the first after the front. */
static void take_recovery(coffer_mldf_writer *writer, const coffer__mldf_recovery *state)
{
    writer->recovery.rows = state->rows;
    writer->recovery.entries = state->entries;
    writer->recovery.last = state->last;
    writer->recovery.last_end = state->last_end;
    if (state->last && writer->recovery.from == 0)
        writer->recovery.from = writer->data_at;
}

/* *same is false when a sample of the record comes from a file that has changed since. */
static coffer_status check_origins(bool *same, revival *work, const record_front *front, coffer_error *err)
{
    const coffer_mldf_writer_opts *opts = &work->writer->opts;
    const uint8_t *at = work->record.data + front->rows + front->entries;
    coffer_status status = COFFER_OK;
    *same = true;
    for (size_t done = 0; opts->resume_check && *same && !status && done < front->origins;
         done += CHECKPOINT_ORIGIN_SIZE, at += CHECKPOINT_ORIGIN_SIZE) {
        coffer_mldf_origin origin = COFFER_MLDF_ORIGIN_INIT;
        origin.size = coffer__load_u64(at);
        origin.time = (int64_t)coffer__load_u64(at + CHECKPOINT_ORIGIN_TIME_AT);
        origin.hash[0] = coffer__load_u64(at + CHECKPOINT_ORIGIN_HASH_AT);
        origin.hash[1] = coffer__load_u64(at + CHECKPOINT_ORIGIN_HASH_AT + 8);
        status = opts->resume_check(same, opts->resume_context,
                                    coffer__load_u64(at + CHECKPOINT_ORIGIN_MARK_AT), &origin, err);
    }
    return status;
}

static coffer_status take_record(revival *work, const record_front *front, coffer_error *err)
{
    coffer_mldf_writer *writer = work->writer;
    const uint8_t *rows = work->record.data, *entries = rows + front->rows;
    coffer_status status = coffer__mldf_spill_add(&writer->rows, rows, front->rows, err);
    if (!status)
        status = coffer__mldf_spill_add(&writer->table, entries, front->entries, err);
    if (!status && writer->dedup)
        status = remember(work, entries, front->entries, err);
    if (status)
        return status;
    find_absent(writer, rows, front->rows);
    writer->sample = front->samples;
    writer->mark = writer->next_mark = front->mark;
    writer->out.position = front->end;
    writer->out.crc = front->crc;
    writer->out.tail_crc = front->tail_crc;
    writer->data_crc = front->data_crc;
    writer->data_end = front->data_end;
    take_recovery(writer, &front->recovery);
    writer->checkpoint->position += CHECKPOINT_RECORD_SIZE + work->record.len;
    return COFFER_OK;
}

static coffer_status take_records(revival *work, coffer_error *err)
{
    record_front front = { 0 };
    uint32_t crc = 0;
    bool whole = true;
    coffer_status status = COFFER_OK;
    work->writer->checkpoint->position = CHECKPOINT_HEADER_SIZE;
    while (!status && whole) {
        status = read_record(&whole, &front, work, err);
        if (!status && whole)
            status = sum_data(&crc, work, front.end, err);
        if (status || !whole)
            break;
        whole = crc == front.crc;
        if (whole)
            status = check_origins(&whole, work, &front, err);
        if (!status && whole)
            status = take_record(work, &front, err);
    }
    return status;
}

/* The front of the file is as coffer__mldf_write_front left it. */
static coffer_status skip_front(coffer_mldf_writer *writer, coffer_error *err)
{
    uint64_t at;
    if (!coffer__align_up(&writer->data_at, coffer__mldf_front_size(writer), writer->opts.page_size))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "no room for %zu fields",
                            writer->column_count);
    at = writer->data_at;
    for (size_t i = 0; i < writer->column_count; i++) {
        coffer_mldf_field *field = &writer->columns[i].field;
        if (field->dictionary)
            field->dictionary_offset = at;
        at += field->dictionary_size;
    }
    writer->out.position = writer->data_end = writer->recovery.last_end = writer->data_at;
    writer->out.summed = true;
    return COFFER_OK;
}

static coffer_status revive(coffer_mldf_writer *writer, coffer_error *err)
{
    revival work = { .writer = writer, .data = -1, .record = COFFER__BUFFER_INIT };
    coffer_status status;
    work.piece = coffer__malloc(PIECE);
    if (!work.piece)
        return coffer__fail_no_memory(err, PIECE);
    work.data_size = coffer__sink_position(writer->out.sink);
    status = coffer__sink_read_back(&work.data, writer->out.sink, err);
    if (!status)
        status = coffer__file_size(&work.rows_size, writer->checkpoint->fd, writer->checkpoint->path, err);
    if (!status)
        status = check_header(&work, err);
    if (!status)
        status = skip_front(writer, err);
    if (!status)
        status = take_records(&work, err);
    if (status)
        goto out;
    if (writer->checkpoint->position == CHECKPOINT_HEADER_SIZE) {
        status =
            coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "%s: nothing to resume", writer->path);
        goto out;
    }
    status = coffer__sink_cut(writer->out.sink, writer->out.position, err);
    if (!status)
        status = coffer__file_truncate(writer->checkpoint->fd, writer->checkpoint->position,
                                       writer->checkpoint->path, err);
out:
    coffer__buffer_free(&work.record);
    coffer__free(work.piece);
    return status;
}

/* Opening would make the files. */
static coffer_status expect(const char *path, const char *ending, coffer_error *err)
{
    struct stat st;
    char *name = NULL;
    coffer_status status = coffer__mldf_checkpoint_path(&name, path, ending, err);
    if (status)
        return status;
    if (coffer__os_stat(name, &st) != 0)
        status = errno == ENOENT
                     ? coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "nothing to resume")
                     : coffer__fail_other(err, coffer__fail_errno(err, "cannot examine", errno), name);
    coffer__free(name);
    return status;
}

coffer_status coffer_mldf_writer_resume(coffer_mldf_writer **out, const char *path,
                                        const coffer_mldf_field *fields, size_t field_count,
                                        const coffer_mldf_writer_opts *opts, coffer_error *err)
{
    coffer_mldf_writer *writer = NULL;
    coffer_status status = expect(path, ".partial", err);
    if (!status)
        status = expect(path, ".partial-rows", err);
    if (!status)
        status = coffer__mldf_writer_new(&writer, path, opts, err);
    if (status)
        return status;
    writer->opts.resumable = true;
    status = coffer__mldf_writer_columns(writer, fields, field_count, err);
    if (!status)
        status = coffer__mldf_expect_key(writer, err);
    if (!status)
        status = coffer__mldf_open_sink(writer, err);
    if (!status)
        coffer__mldf_guard_begin(writer);
    if (!status)
        status = coffer__mldf_checkpoint_open(writer, 0, err);
    if (!status)
        status = revive(writer, err);
    if (status) {
        coffer__mldf_writer_free(writer);
        return status;
    }
    *out = writer;
    return COFFER_OK;
}

coffer_status coffer_mldf_writer_drop_partial(const char *path, coffer_error *err)
{
    /* The last one is the packer's list of what it left out. */
    static const char *const endings[] = { ".partial-rows", ".partial", ".partial-skipped" };
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < sizeof endings / sizeof *endings && !status; i++) {
        char *name = NULL;
        status = coffer__mldf_checkpoint_path(&name, path, endings[i], err);
        if (status)
            return status;
        if (coffer__os_unlink(name) != 0 && errno != ENOENT)
            status = coffer__fail_other(err, coffer__fail_errno(err, "cannot remove", errno), name);
        coffer__free(name);
    }
    return status;
}
