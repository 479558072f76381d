/* Going on where a writer was cut off. Payloads grow in PATH.partial; PATH.partial-rows has what a reader of
 * the finished file would find behind them, as records that are added between samples:
 *
 *   "CFMP" | u32 version 1 | 16 bytes hash of fields and options | 16 bytes hash of the tag | u32 CRC-32
 *   per record: u32 CRC-32 of the rest | u32 bytes of rows | u32 bytes of table entries | u32 CRC-32 of the
 *               data up to here | u64 samples | u64 mark | u64 end of the data | rows | entries
 *
 * Nothing is synced: a record counts when its own sum is right and the data up to its end has the sum that it
 * says, which is looked at when the work is taken up again. */
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "formats/mldf/write/mldf_write.h"
#include "io/file.h"
#include "io/os.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>

#define MAGIC "CFMP"
#define VERSION 1
#define HEADER_SIZE 44
#define HEADER_SUMMED 40
#define RECORD_SIZE 40
#define PIECE ((size_t)1 << 20)

/* ---- What must be the same ---- */

static void hash_of(uint64_t out[2], const coffer__buffer *bytes)
{
    coffer__hash_seeded(out, bytes->data ? bytes->data : (const uint8_t *)"", bytes->len, 0);
}

/* Another key would be found out too late: what only its owner can compute stands for it. */
static void append_key(coffer__buffer *bytes, const coffer_mldf_writer *writer)
{
    uint8_t hash[crypto_generichash_BYTES_MIN];
    if (!writer->has_key)
        return;
    crypto_generichash(hash, sizeof hash, (const uint8_t *)MAGIC, sizeof MAGIC, writer->key,
                       sizeof writer->key);
    coffer__buffer_append(bytes, hash, sizeof hash);
}

static coffer_status hash_settings(coffer__mldf_checkpoint *checkpoint, const coffer_mldf_writer *writer,
                                   coffer_error *err)
{
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    const coffer_mldf_writer_opts *opts = &writer->opts;
    const char *tag = opts->resume_tag ? opts->resume_tag : "";
    uint8_t field[COFFER__MLDF_STRIDE_TUTORIAL], numbers[16];
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < writer->column_count; i++) {
        coffer_mldf_field plain = writer->columns[i].field;
        plain.dictionary_offset = 0;
        plain.flags &= (uint16_t)~COFFER_MLDF_FIELD_OPTIONAL;
        coffer__mldf_compose_field(field, &plain, NULL);
        coffer__buffer_append(&bytes, field, sizeof field);
        coffer__buffer_append(&bytes, plain.dictionary, plain.dictionary_size);
    }
    coffer__store_u32(numbers, opts->page_size);
    coffer__store_u32(numbers + 4, writer->stride);
    coffer__store_u32(numbers + 8, (writer->checksums ? 1u : 0u) | (writer->dedup ? 2u : 0u));
    coffer__store_u32(numbers + 12, (uint32_t)opts->zstd_level);
    coffer__buffer_append(&bytes, numbers, sizeof numbers);
    append_key(&bytes, writer);
    if (bytes.failed)
        status = coffer__fail_no_memory(err, bytes.len);
    hash_of(checkpoint->schema, &bytes);
    bytes.len = 0;
    coffer__buffer_append(&bytes, tag, strlen(tag));
    if (bytes.failed)
        status = coffer__fail_no_memory(err, strlen(tag));
    hash_of(checkpoint->tag, &bytes);
    coffer__buffer_free(&bytes);
    return status;
}

/* ---- The file of rows ---- */

static coffer_status beside(char **out, const char *path, const char *ending, coffer_error *err)
{
    char *resolved = NULL, *made;
    coffer_status status = coffer__file_resolve(&resolved, path, err);
    if (status)
        return status;
    size_t size = strlen(resolved) + strlen(ending) + 1;
    made = coffer__malloc(size);
    if (made)
        snprintf(made, size, "%s%s", resolved, ending);
    coffer__free(resolved);
    if (!made)
        return coffer__fail_no_memory(err, size);
    *out = made;
    return COFFER_OK;
}

static coffer_status open_rows(coffer_mldf_writer *writer, int flags, coffer_error *err)
{
    coffer__mldf_checkpoint *checkpoint = coffer__calloc(1, sizeof *checkpoint);
    coffer_status status;
    if (!checkpoint)
        return coffer__fail_no_memory(err, sizeof *checkpoint);
    writer->checkpoint = checkpoint;
    checkpoint->fd = -1;
    coffer__buffer_init(&checkpoint->rows, SIZE_MAX);
    coffer__buffer_init(&checkpoint->entries, SIZE_MAX);
    if ((status = hash_settings(checkpoint, writer, err)) ||
        (status = beside(&checkpoint->path, writer->path, ".partial-rows", err)))
        return status;
    writer->opts.resume_tag = NULL; /* the caller's */
    status = coffer__file_open(&checkpoint->fd, checkpoint->path, O_RDWR | flags, 0666, err);
    return coffer__fail_other(err, status, checkpoint->path);
}

void coffer__mldf_checkpoint_free(coffer__mldf_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    coffer__file_close(checkpoint->fd);
    coffer__buffer_free(&checkpoint->rows);
    coffer__buffer_free(&checkpoint->entries);
    coffer__free(checkpoint->path);
    coffer__free(checkpoint);
}

void coffer__mldf_checkpoint_remove(const coffer__mldf_checkpoint *checkpoint)
{
    (void)coffer__file_unlink(checkpoint->path, NULL);
}

static void compose_header(uint8_t out[HEADER_SIZE], const coffer__mldf_checkpoint *checkpoint)
{
    memcpy(out, MAGIC, 4);
    coffer__store_u32(out + 4, VERSION);
    for (int i = 0; i < 2; i++) {
        coffer__store_u64(out + 8 + 8 * i, checkpoint->schema[i]);
        coffer__store_u64(out + 24 + 8 * i, checkpoint->tag[i]);
    }
    coffer__store_u32(out + HEADER_SUMMED, coffer__crc32(0, out, HEADER_SUMMED));
}

coffer_status coffer__mldf_checkpoint_start(coffer_mldf_writer *writer, coffer_error *err)
{
    uint8_t header[HEADER_SIZE];
    coffer_status status;
    if ((status = open_rows(writer, O_CREAT | O_TRUNC, err)) ||
        (status = coffer__sink_cut(writer->out.sink, 0, err)))
        return status;
    compose_header(header, writer->checkpoint);
    status = coffer__file_write_at(writer->checkpoint->fd, header, sizeof header, 0, writer->checkpoint->path,
                                   err);
    writer->checkpoint->position = HEADER_SIZE;
    return status;
}

coffer_status coffer__mldf_checkpoint_add(coffer_mldf_writer *writer, const uint8_t *rows, size_t len,
                                          coffer_error *err)
{
    coffer__mldf_checkpoint *checkpoint = writer->checkpoint;
    coffer__buffer record = COFFER__BUFFER_INIT;
    uint8_t front[RECORD_SIZE] = { 0 };
    coffer_status status = COFFER_OK;
    int fd;
    if (!coffer__buffer_append(&checkpoint->rows, rows, len))
        return coffer__fail_no_memory(err, len);
    if (!coffer__mldf_between_samples(writer))
        return COFFER_OK;
    coffer__store_u32(front + 4, (uint32_t)checkpoint->rows.len);
    coffer__store_u32(front + 8, (uint32_t)checkpoint->entries.len);
    coffer__store_u32(front + 12, writer->out.crc);
    coffer__store_u64(front + 16, writer->sample);
    coffer__store_u64(front + 24, writer->mark);
    coffer__store_u64(front + 32, writer->out.position);
    coffer__buffer_append(&record, front, sizeof front);
    coffer__buffer_append(&record, checkpoint->rows.data, checkpoint->rows.len);
    coffer__buffer_append(&record, checkpoint->entries.data, checkpoint->entries.len);
    if (record.failed) {
        status = coffer__fail_no_memory(err, record.len);
        goto out;
    }
    coffer__store_u32(record.data, coffer__crc32(0, record.data + 4, record.len - 4));
    /* The payloads leave the buffer first: the death of the process alone takes nothing from them. */
    if ((status = coffer__sink_read_back(&fd, writer->out.sink, err)) ||
        (status = coffer__file_write_at(checkpoint->fd, record.data, record.len, checkpoint->position,
                                        checkpoint->path, err)))
        goto out;
    checkpoint->position += record.len;
    checkpoint->rows.len = checkpoint->entries.len = 0;
out:
    coffer__buffer_free(&record);
    return status;
}

/* ---- Taking it up again ---- */

typedef struct revival {
    coffer_mldf_writer *writer;
    int data; /* PATH.partial */
    uint64_t rows_size, data_size;
    uint8_t *piece;
    coffer__buffer record; /* rows and entries of one */
} revival;

typedef struct record_front {
    uint32_t rows, entries, crc;
    uint64_t samples, mark, end;
} record_front;

static coffer_status read_rows(revival *work, void *out, size_t len, uint64_t offset, coffer_error *err)
{
    return coffer__file_read_at(work->writer->checkpoint->fd, out, len, offset,
                                work->writer->checkpoint->path, err);
}

static coffer_status check_header(revival *work, coffer_error *err)
{
    uint8_t header[HEADER_SIZE], expected[HEADER_SIZE];
    coffer_status status;
    if (work->rows_size < HEADER_SIZE)
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "%s: nothing to resume",
                            work->writer->path);
    if ((status = read_rows(work, header, sizeof header, 0, err)))
        return status;
    compose_header(expected, work->writer->checkpoint);
    if (memcmp(header, MAGIC, 4) != 0 ||
        coffer__crc32(0, header, HEADER_SUMMED) != coffer__load_u32(header + HEADER_SUMMED))
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "%s: nothing to resume",
                            work->writer->path);
    if (memcmp(header, expected, 24) != 0)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "%s: what was left was written with other fields or options", work->writer->path);
    if (memcmp(header, expected, HEADER_SIZE) != 0)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "%s: what was left comes from another input", work->writer->path);
    return COFFER_OK;
}

/* *whole is false for a record that was never finished: nothing behind it counts. */
static coffer_status read_record(bool *whole, record_front *front, revival *work, coffer_error *err)
{
    const coffer_mldf_writer *writer = work->writer;
    uint64_t at = writer->checkpoint->position;
    uint8_t bytes[RECORD_SIZE];
    coffer_status status;
    *whole = false;
    if (!coffer__range_fits(at, RECORD_SIZE, work->rows_size))
        return COFFER_OK;
    if ((status = read_rows(work, bytes, sizeof bytes, at, err)))
        return status;
    *front = (record_front){ coffer__load_u32(bytes + 4),  coffer__load_u32(bytes + 8),
                             coffer__load_u32(bytes + 12), coffer__load_u64(bytes + 16),
                             coffer__load_u64(bytes + 24), coffer__load_u64(bytes + 32) };
    uint64_t len = (uint64_t)front->rows + front->entries;
    if (!coffer__range_fits(at + RECORD_SIZE, len, work->rows_size))
        return COFFER_OK;
    work->record.len = 0;
    if (!coffer__buffer_extend(&work->record, (size_t)len))
        return coffer__fail_no_memory(err, len);
    if (len > 0 && (status = read_rows(work, work->record.data, (size_t)len, at + RECORD_SIZE, err)))
        return status;
    uint32_t crc =
        coffer__crc32(coffer__crc32(0, bytes + 4, RECORD_SIZE - 4), work->record.data, (size_t)len);
    *whole = crc == coffer__load_u32(bytes) && front->rows % writer->row_size == 0 &&
             front->entries % COFFER__MLDF_TABLE_ENTRY == 0 && front->end >= writer->out.position &&
             front->end <= work->data_size &&
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
    for (size_t at = 0; at < len && status == COFFER_OK; at += COFFER__MLDF_TABLE_ENTRY) {
        coffer__mldf_allocation entry = coffer__mldf_load_allocation(entries + at);
        coffer__mldf_known known = { { 0, 0 }, entry.offset, entry.size, 0 };
        uint8_t *payload = coffer__malloc(entry.size);
        if (!payload)
            return coffer__fail_no_memory(err, entry.size);
        status = coffer__fail_output(
            err, coffer__file_read_at(work->data, payload, entry.size, entry.offset, NULL, err));
        if (status == COFFER_OK) {
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

static coffer_status take_record(revival *work, const record_front *front, coffer_error *err)
{
    coffer_mldf_writer *writer = work->writer;
    const uint8_t *rows = work->record.data, *entries = rows + front->rows;
    coffer_status status;
    if ((status = coffer__mldf_spill_add(&writer->rows, rows, front->rows, err)) ||
        (status = coffer__mldf_spill_add(&writer->table, entries, front->entries, err)) ||
        (writer->dedup && (status = remember(work, entries, front->entries, err))))
        return status;
    find_absent(writer, rows, front->rows);
    writer->sample = front->samples;
    writer->mark = writer->next_mark = front->mark;
    writer->out.position = front->end;
    writer->out.crc = writer->data_crc = front->crc;
    writer->checkpoint->position += RECORD_SIZE + work->record.len;
    return COFFER_OK;
}

static coffer_status take_records(revival *work, coffer_error *err)
{
    record_front front;
    uint32_t crc = 0;
    bool whole = true;
    coffer_status status = COFFER_OK;
    work->writer->checkpoint->position = HEADER_SIZE;
    while (status == COFFER_OK && whole) {
        if ((status = read_record(&whole, &front, work, err)) || !whole ||
            (status = sum_data(&crc, work, front.end, err)))
            break;
        whole = crc == front.crc;
        if (whole)
            status = take_record(work, &front, err);
    }
    return status;
}

/* The front of the file is as coffer__mldf_write_front left it. */
static coffer_status skip_front(coffer_mldf_writer *writer, coffer_error *err)
{
    uint64_t front = COFFER__MLDF_HEAD_SIZE + (uint64_t)writer->stride * writer->column_count, at;
    if (!coffer__align_up(&writer->data_at, front, writer->opts.page_size))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "no room for %zu fields",
                            writer->column_count);
    at = writer->data_at;
    for (size_t i = 0; i < writer->column_count; i++) {
        coffer_mldf_field *field = &writer->columns[i].field;
        if (field->dictionary)
            field->dictionary_offset = at;
        at += field->dictionary_size;
    }
    writer->out.position = writer->data_at;
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
    if ((status = coffer__sink_read_back(&work.data, writer->out.sink, err)) ||
        (status =
             coffer__file_size(&work.rows_size, writer->checkpoint->fd, writer->checkpoint->path, err)) ||
        (status = check_header(&work, err)) || (status = skip_front(writer, err)) ||
        (status = take_records(&work, err)))
        goto out;
    if (writer->checkpoint->position == HEADER_SIZE) {
        status =
            coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "%s: nothing to resume", writer->path);
        goto out;
    }
    if (!(status = coffer__sink_cut(writer->out.sink, writer->out.position, err)))
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
    coffer_status status = beside(&name, path, ending, err);
    if (status)
        return status;
    if (coffer__os_stat(name, &st) != 0)
        status = errno == ENOENT ? coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                                                "nothing to resume")
                                 : coffer__fail_other(err, coffer__fail_errno(err, "cannot examine", errno), name);
    coffer__free(name);
    return status;
}

coffer_status coffer_mldf_writer_resume(coffer_mldf_writer **out, const char *path,
                                        const coffer_mldf_field *fields, size_t field_count,
                                        const coffer_mldf_writer_opts *opts, coffer_error *err)
{
    coffer_mldf_writer *writer = NULL;
    coffer_status status;
    if ((status = expect(path, ".partial", err)) || (status = expect(path, ".partial-rows", err)) ||
        (status = coffer__mldf_writer_new(&writer, path, opts, err)))
        return status;
    writer->opts.resumable = true;
    if ((status = coffer__mldf_writer_columns(writer, fields, field_count, err)) ||
        (status = coffer__mldf_expect_key(writer, err)) || (status = coffer__mldf_open_sink(writer, err)) ||
        (status = open_rows(writer, 0, err)) || (status = revive(writer, err))) {
        coffer__mldf_writer_free(writer);
        return status;
    }
    *out = writer;
    return COFFER_OK;
}

coffer_status coffer_mldf_writer_drop_partial(const char *path, coffer_error *err)
{
    static const char *const endings[] = { ".partial-rows", ".partial" };
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < 2 && status == COFFER_OK; i++) {
        char *name = NULL;
        if ((status = beside(&name, path, endings[i], err)))
            return status;
        if (coffer__os_unlink(name) != 0 && errno != ENOENT)
            status = coffer__fail_other(err, coffer__fail_errno(err, "cannot remove", errno), name);
        coffer__free(name);
    }
    return status;
}
