/* From values to stored payloads: compressed, encrypted, summed and hashed on all threads of the writer.
 * Where each one goes is decided afterwards, in order. */
#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/table.h"
#include "formats/mldf/mldf_private.h"
#include "formats/mldf/write/mldf_write.h"

#include <inttypes.h>
#include <sodium.h>
#include <zdict.h>

struct coffer__mldf_encoder {
    ZSTD_CCtx *zstd; /* made when first needed */
};

coffer_status coffer__mldf_prepare_dictionary(coffer__mldf_column *column, int level, coffer_error *err)
{
    if (!column->dictionary || column->prepared)
        return COFFER_OK;
    column->prepared = ZSTD_createCDict(column->dictionary, column->field.dictionary_size, level);
    return column->prepared ? COFFER_OK
                            : coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                           "field %s: its dictionary of %lu bytes cannot be used",
                                           column->name, (unsigned long)column->field.dictionary_size);
}

void coffer__mldf_encoders_free(coffer_mldf_writer *writer)
{
    for (uint32_t i = 0; i < writer->encoder_count; i++)
        ZSTD_freeCCtx(writer->encoders[i].zstd);
    coffer__free(writer->encoders);
    coffer__pool_free(writer->pool);
}

static coffer_status make_encoders(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    uint32_t count;
    if (!writer->pool)
        status = coffer__pool_new(&writer->pool, writer->opts.threads, err);
    if (status || writer->encoders)
        return status;
    count = coffer__pool_threads(writer->pool);
    writer->encoders = coffer__calloc(count, sizeof *writer->encoders);
    if (!writer->encoders)
        return coffer__fail_no_memory(err, count * sizeof *writer->encoders);
    writer->encoder_count = count;
    return COFFER_OK;
}

/* Room for what compression and encryption may make of the values; the pieces do not touch each other. */
static coffer_status make_room(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__mldf_batch_out *batch = &writer->batch;
    size_t needed = 0;
    for (size_t i = 0; i < batch->item_count; i++) {
        coffer__mldf_item *item = &batch->items[i];
        size_t size = item->steps & COFFER__MLDF_STEP_ZSTD ? ZSTD_compressBound(item->size) : item->size;
        if (!(item->steps & (COFFER__MLDF_STEP_ZSTD | COFFER__MLDF_STEP_SEAL)))
            continue;
        item->room_at = needed;
        needed += size + COFFER__MLDF_SEAL_SIZE;
    }
    if (needed <= batch->encoded_capacity)
        return COFFER_OK;
    coffer__free(batch->encoded);
    batch->encoded_capacity = 0;
    batch->encoded = coffer__malloc(needed);
    if (!batch->encoded)
        return coffer__fail_no_memory(err, needed);
    batch->encoded_capacity = needed;
    return COFFER_OK;
}

static coffer_status compress(size_t *size, const coffer_mldf_writer *writer, coffer__mldf_encoder *encoder,
                              const coffer__mldf_item *item, const uint8_t *value, uint8_t *out,
                              coffer_error *err)
{
    const coffer__mldf_column *column = &writer->columns[item->field];
    size_t room = ZSTD_compressBound(item->size), result;
    if (!encoder->zstd && !(encoder->zstd = ZSTD_createCCtx()))
        return coffer__fail_no_memory(err, room);
    if (column->prepared)
        result = ZSTD_compress_usingCDict(encoder->zstd, out, room, value, item->size, column->prepared);
    else
        result = ZSTD_compressCCtx(encoder->zstd, out, room, value, item->size, writer->opts.zstd_level);
    if (ZSTD_isError(result))
        return coffer__fail(err, COFFER_E_NO_MEMORY, COFFER_OFFSET_NONE,
                            "sample %" PRIu64 ", field %s: %zu bytes cannot be compressed: %s", item->sample,
                            column->name, item->size, ZSTD_getErrorName(result));
    *size = result;
    return COFFER_OK;
}

static void seal(uint8_t *out, const uint8_t *bytes, size_t len, const coffer_mldf_writer *writer,
                 const coffer__mldf_item *item)
{
    coffer__mldf_binding binding = coffer__mldf_bind(item->sample, item->field, writer->id);
    randombytes_buf(out, COFFER__MLDF_NONCE_SIZE);
    crypto_aead_xchacha20poly1305_ietf_encrypt(out + COFFER__MLDF_NONCE_SIZE, NULL, bytes, len, binding.bytes,
                                               binding.size, NULL, out, writer->key);
}

/* Compresses and encrypts into the room of the item: *bytes and *size become those of the result. */
static coffer_status transform(const uint8_t **bytes, size_t *size, coffer_mldf_writer *writer,
                               const coffer__mldf_item *item, uint32_t worker, coffer_error *err)
{
    uint8_t *room = writer->batch.encoded + item->room_at;
    bool sealed = (item->steps & COFFER__MLDF_STEP_SEAL) != 0;
    if (item->steps & COFFER__MLDF_STEP_ZSTD) {
        /* Where encryption will leave it in place. */
        uint8_t *frame = sealed ? room + COFFER__MLDF_NONCE_SIZE : room;
        coffer_status status = compress(size, writer, &writer->encoders[worker], item, *bytes, frame, err);
        if (status)
            return status;
        *bytes = frame;
    }
    if (sealed) {
        seal(room, *bytes, *size, writer, item);
        *bytes = room;
        *size += COFFER__MLDF_SEAL_SIZE;
    }
    return COFFER_OK;
}

static coffer_status encode_item(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    coffer_mldf_writer *writer = context;
    coffer__mldf_batch_out *batch = &writer->batch;
    coffer__mldf_item *item = &batch->items[index];
    const uint8_t *bytes = item->outside ? item->outside : batch->bytes.data + item->at;
    size_t size = item->size;
    if (item->steps & (COFFER__MLDF_STEP_ZSTD | COFFER__MLDF_STEP_SEAL)) {
        coffer_status status = transform(&bytes, &size, writer, item, worker, err);
        if (status)
            return status;
    }
    if (size > COFFER__MLDF_PAYLOAD_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "sample %" PRIu64 ", field %s: %zu bytes to store, the maximum is %lu",
                            item->sample, writer->columns[item->field].name, size,
                            (unsigned long)COFFER__MLDF_PAYLOAD_MAX);
    item->stored = bytes;
    item->stored_size = (uint32_t)size;
    if (writer->checksums || item->steps & COFFER__MLDF_STEP_HASH)
        item->crc = coffer__crc32(0, bytes, size);
    if (item->steps & COFFER__MLDF_STEP_HASH)
        coffer__hash_seeded(item->hash, bytes, size, writer->known.seed);
    return COFFER_OK;
}

coffer_status coffer__mldf_encode_batch(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!writer->batch.heavy) {
        for (size_t i = 0; i < writer->batch.item_count && !status; i++)
            status = encode_item(writer, i, 0, err);
        return status;
    }
    status = make_encoders(writer, err);
    if (!status)
        status = make_room(writer, err);
    if (status)
        return status;
    return coffer__pool_run(writer->pool, writer->batch.item_count, encode_item, writer, err);
}

/* Training a zstd dictionary on what a field holds. */

/* Training works best with many values, a hundred times the size of the dictionary in all. */
#define VALUES_MAX ((uint64_t)100000)
#define BYTES_PER_DICTIONARY_BYTE 100
#define SMALLEST 256
#define SIZE_DEFAULT ((size_t)110 << 10) /* as the zstd command */

COFFER__INIT_FUNCTION(coffer_mldf_train_opts, COFFER_MLDF_TRAIN_OPTS_INIT)

typedef struct lesson {
    coffer__buffer bytes; /* values, one after the other */
    size_t *sizes;
    unsigned count;
} lesson;

static coffer_status read_lesson(lesson *values, const coffer_mldf *set, size_t field, size_t most,
                                 coffer_error *err)
{
    uint64_t samples = set->header.samples, wanted = samples < VALUES_MAX ? samples : VALUES_MAX;
    coffer_bytes value = COFFER_BYTES_INIT;
    coffer_status status = COFFER_OK;
    values->sizes = coffer__alloc_array(wanted ? (size_t)wanted : 1, sizeof *values->sizes);
    if (!values->sizes)
        return coffer__fail_no_memory(err, wanted * sizeof *values->sizes);
    for (uint64_t i = 0; i < wanted && values->bytes.len < most && !status; i++) {
        /* Evenly over the set, and no sample twice. */
        uint64_t sample = samples / wanted * i + samples % wanted * i / wanted;
        status = coffer_mldf_read(&value, NULL, set, sample, field, err);
        if (status)
            break;
        if (value.size == 0 || value.size > most - values->bytes.len)
            continue;
        if (!coffer__buffer_append(&values->bytes, value.data, value.size))
            status = coffer__fail_no_memory(err, value.size);
        values->sizes[values->count++] = value.size;
    }
    coffer_free(value.data);
    return status;
}

coffer_status coffer_mldf_train_dictionary(coffer_bytes *out, const coffer_mldf *set, size_t field,
                                           const coffer_mldf_train_opts *opts, coffer_error *err)
{
    coffer_mldf_train_opts options = COFFER_MLDF_TRAIN_OPTS_INIT;
    lesson values = { .bytes = COFFER__BUFFER_INIT };
    size_t most, trained;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = coffer__mldf_check_index(set, 0, field, err);
    if (status)
        return status;
    size_t size = options.size ? options.size : SIZE_DEFAULT;
    if (!coffer__mldf_has_payload(set->schema.fields[field].kind) || size < SMALLEST || size > UINT32_MAX)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a dictionary of %zu bytes for the field %s cannot be trained", size,
                            set->schema.fields[field].name);
    if (!coffer__mul_size(&most, size, BYTES_PER_DICTIONARY_BYTE) || most > set->limits.memory_bytes)
        most = (size_t)set->limits.memory_bytes;
    status = read_lesson(&values, set, field, most, err);
    if (!status)
        status = coffer__mldf_bytes_reserve(out, size, err);
    if (status)
        goto out;
    trained = ZDICT_trainFromBuffer(out->data, size, values.bytes.data, values.sizes, values.count);
    if (ZDICT_isError(trained))
        status = coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                              "field %s: %u values with %zu bytes are too few, or too different, to train a "
                              "dictionary (%s)",
                              set->schema.fields[field].name, values.count, values.bytes.len,
                              ZDICT_getErrorName(trained));
    else
        out->size = trained;
out:
    coffer__buffer_free(&values.bytes);
    coffer__free(values.sizes);
    return status;
}
