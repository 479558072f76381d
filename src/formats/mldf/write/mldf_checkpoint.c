/* Saving what a resumable writer needs to continue: PATH.partial-rows. */
#include "formats/mldf/write/mldf_checkpoint.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/table.h"
#include "io/file.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>

/* ---- Settings that must not change ---- */

static void hash_of(uint64_t out[2], const coffer__buffer *bytes)
{
    coffer__hash_seeded(out, bytes->data ? bytes->data : (const uint8_t *)"", bytes->len, 0);
}

/* A keyed hash identifies the key, so that resuming with another key fails at once. */
static void append_key(coffer__buffer *bytes, const coffer_mldf_writer *writer)
{
    uint8_t hash[crypto_generichash_BYTES_MIN];
    if (!writer->has_key)
        return;
    crypto_generichash(hash, sizeof hash, (const uint8_t *)CHECKPOINT_MAGIC, sizeof CHECKPOINT_MAGIC,
                       writer->key, sizeof writer->key);
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

coffer_status coffer__mldf_checkpoint_path(char **out, const char *path, const char *ending,
                                           coffer_error *err)
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

coffer_status coffer__mldf_checkpoint_open(coffer_mldf_writer *writer, int flags, coffer_error *err)
{
    coffer__mldf_checkpoint *checkpoint = coffer__calloc(1, sizeof *checkpoint);
    coffer_status status;
    if (!checkpoint)
        return coffer__fail_no_memory(err, sizeof *checkpoint);
    writer->checkpoint = checkpoint;
    checkpoint->fd = -1;
    coffer__buffer_init(&checkpoint->rows, SIZE_MAX);
    coffer__buffer_init(&checkpoint->entries, SIZE_MAX);
    coffer__buffer_init(&checkpoint->origins, SIZE_MAX);
    checkpoint->origin = (coffer_mldf_origin)COFFER_MLDF_ORIGIN_INIT;
    status = hash_settings(checkpoint, writer, err);
    if (!status)
        status = coffer__mldf_checkpoint_path(&checkpoint->path, writer->path, ".partial-rows", err);
    if (status)
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
    coffer__buffer_free(&checkpoint->origins);
    coffer__free(checkpoint->path);
    coffer__free(checkpoint);
}

void coffer__mldf_checkpoint_remove(const coffer__mldf_checkpoint *checkpoint)
{
    (void)coffer__file_unlink(checkpoint->path, NULL);
}

void coffer__mldf_checkpoint_header(uint8_t out[CHECKPOINT_HEADER_SIZE],
                                    const coffer__mldf_checkpoint *checkpoint,
                                    const uint8_t id[COFFER__MLDF_ID_SIZE])
{
    memcpy(out, CHECKPOINT_MAGIC, 4);
    coffer__store_u32(out + 4, CHECKPOINT_VERSION);
    for (int i = 0; i < 2; i++) {
        coffer__store_u64(out + CHECKPOINT_SCHEMA_AT + 8 * i, checkpoint->schema[i]);
        coffer__store_u64(out + CHECKPOINT_TAG_AT + 8 * i, checkpoint->tag[i]);
    }
    memcpy(out + CHECKPOINT_ID_AT, id, COFFER__MLDF_ID_SIZE);
    coffer__store_u32(out + CHECKPOINT_HEADER_SUMMED, coffer__crc32(0, out, CHECKPOINT_HEADER_SUMMED));
}

coffer_status coffer__mldf_checkpoint_start(coffer_mldf_writer *writer, coffer_error *err)
{
    uint8_t header[CHECKPOINT_HEADER_SIZE];
    coffer_status status = coffer__mldf_checkpoint_open(writer, O_CREAT | O_TRUNC, err);
    if (!status)
        status = coffer__sink_cut(writer->out.sink, 0, err);
    if (status)
        return status;
    coffer__mldf_checkpoint_header(header, writer->checkpoint, writer->id);
    status = coffer__file_write_at(writer->checkpoint->fd, header, sizeof header, 0, writer->checkpoint->path,
                                   err);
    writer->checkpoint->position = CHECKPOINT_HEADER_SIZE;
    return status;
}

coffer_status coffer__mldf_checkpoint_origin(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__mldf_checkpoint *checkpoint = writer->checkpoint;
    uint8_t origin[CHECKPOINT_ORIGIN_SIZE];
    coffer__store_u64(origin, checkpoint->origin.size);
    coffer__store_u64(origin + CHECKPOINT_ORIGIN_TIME_AT, (uint64_t)checkpoint->origin.time);
    coffer__store_u64(origin + CHECKPOINT_ORIGIN_HASH_AT, checkpoint->origin.hash[0]);
    coffer__store_u64(origin + CHECKPOINT_ORIGIN_HASH_AT + 8, checkpoint->origin.hash[1]);
    coffer__store_u64(origin + CHECKPOINT_ORIGIN_MARK_AT, writer->next_mark);
    checkpoint->origin = (coffer_mldf_origin)COFFER_MLDF_ORIGIN_INIT;
    return coffer__buffer_append(&checkpoint->origins, origin, sizeof origin)
               ? COFFER_OK
               : coffer__fail_no_memory(err, sizeof origin);
}

static void compose_record(uint8_t front[CHECKPOINT_RECORD_SIZE], const coffer_mldf_writer *writer)
{
    const coffer__mldf_checkpoint *checkpoint = writer->checkpoint;
    const coffer__mldf_recovery *recovery = &writer->recovery;
    memset(front, 0, CHECKPOINT_RECORD_SIZE);
    coffer__store_u32(front + CHECKPOINT_ROWS_AT, (uint32_t)checkpoint->rows.len);
    coffer__store_u32(front + CHECKPOINT_ENTRIES_AT, (uint32_t)checkpoint->entries.len);
    coffer__store_u32(front + CHECKPOINT_DATA_CRC_AT, writer->out.crc);
    coffer__store_u64(front + CHECKPOINT_SAMPLES_AT, writer->sample);
    coffer__store_u64(front + CHECKPOINT_MARK_AT, writer->mark);
    coffer__store_u64(front + CHECKPOINT_END_AT, writer->out.position);
    coffer__store_u64(front + CHECKPOINT_BLOCK_ROWS_AT, recovery->rows);
    coffer__store_u64(front + CHECKPOINT_BLOCK_ENTRIES_AT, recovery->entries);
    coffer__store_u64(front + CHECKPOINT_BLOCK_AT, recovery->last);
    coffer__store_u64(front + CHECKPOINT_BLOCK_END_AT, recovery->last_end);
    coffer__store_u64(front + CHECKPOINT_DATA_END_AT, writer->data_end);
    coffer__store_u32(front + CHECKPOINT_PAYLOAD_CRC_AT, writer->data_crc);
    coffer__store_u32(front + CHECKPOINT_TAIL_CRC_AT, writer->out.tail_crc);
    coffer__store_u32(front + CHECKPOINT_ORIGINS_AT, (uint32_t)checkpoint->origins.len);
}

coffer_status coffer__mldf_checkpoint_add(coffer_mldf_writer *writer, const uint8_t *rows, size_t len,
                                          coffer_error *err)
{
    coffer__mldf_checkpoint *checkpoint = writer->checkpoint;
    coffer__buffer record = COFFER__BUFFER_INIT;
    uint8_t front[CHECKPOINT_RECORD_SIZE];
    coffer_status status = COFFER_OK;
    int fd;
    if (!coffer__buffer_append(&checkpoint->rows, rows, len))
        return coffer__fail_no_memory(err, len);
    if (!coffer__mldf_between_samples(writer))
        return COFFER_OK;
    compose_record(front, writer);
    coffer__buffer_append(&record, front, sizeof front);
    coffer__buffer_append(&record, checkpoint->rows.data, checkpoint->rows.len);
    coffer__buffer_append(&record, checkpoint->entries.data, checkpoint->entries.len);
    coffer__buffer_append(&record, checkpoint->origins.data, checkpoint->origins.len);
    if (record.failed) {
        status = coffer__fail_no_memory(err, record.len);
        goto out;
    }
    coffer__store_u32(record.data, coffer__crc32(0, record.data + 4, record.len - 4));
    /* The payloads leave the buffer first: the death of the process alone takes nothing from them. */
    status = coffer__sink_read_back(&fd, writer->out.sink, err);
    if (!status)
        status = coffer__file_write_at(checkpoint->fd, record.data, record.len, checkpoint->position,
                                       checkpoint->path, err);
    if (status)
        goto out;
    checkpoint->position += record.len;
    checkpoint->rows.len = checkpoint->entries.len = checkpoint->origins.len = 0;
out:
    coffer__buffer_free(&record);
    return status;
}
