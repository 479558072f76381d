/* How many bytes the values of a batch have, and where they go when they are contiguous. */
#include "formats/mldf/read/mldf_batch.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>

/* ---- Values that have to be decoded to know ---- */

static coffer_status stage(coffer__mldf_batch_worker *worker, coffer__mldf_wanted *wanted, uint32_t number,
                           size_t size, coffer_error *err)
{
    coffer_bytes *staged = &worker->staged;
    if (size > staged->capacity - staged->size) {
        size_t capacity = staged->capacity + staged->capacity / 2 + size;
        uint8_t *data = coffer__realloc(staged->data, capacity);
        if (!data)
            return coffer__fail_no_memory(err, capacity);
        staged->data = data;
        staged->capacity = capacity;
    }
    if (size > 0)
        memcpy(staged->data + staged->size, worker->value.data, size);
    wanted->staged_at = staged->size;
    wanted->staged_by = number;
    wanted->value_size = (uint32_t)size;
    wanted->state = COFFER__MLDF_STAGED;
    staged->size += size;
    return COFFER_OK;
}

static coffer_status decode_to_stage(coffer_mldf_batch *batch, coffer__mldf_wanted *wanted, uint32_t number,
                                     coffer_error *err)
{
    coffer__mldf_batch_worker *worker = &batch->workers[number];
    coffer__mldf_room room = { .grows = &worker->value };
    const coffer_mldf *set = batch->set;
    uint64_t sample = batch->samples[wanted->index];
    size_t field = batch->targets[wanted->target].field, size = 0;
    coffer_mldf_entry entry = { .struct_size = sizeof(coffer_mldf_entry),
                                .present = true,
                                .offset = wanted->offset,
                                .size = wanted->size };
    const uint8_t *stored;
    uint32_t crc;
    coffer_status status = coffer__mldf_check_entry(&crc, set, sample, field, &entry, err);
    if (status)
        return status;
    stored = batch->mapped ? coffer_source_view(set->source, wanted->offset, wanted->size) : NULL;
    if (!stored) {
        status = coffer__mldf_bytes_reserve(&worker->bytes, wanted->size, err);
        if (!status)
            status =
                coffer_source_read_at(worker->bytes.data, set->source, wanted->offset, wanted->size, err);
        stored = worker->bytes.data;
    }
    if (!status)
        status = coffer__mldf_batch_value(&room, &size, batch, worker, wanted, stored, crc, err);
    if (status)
        return status;
    if (size > UINT32_MAX)
        return coffer__mldf_fail_value(err, COFFER_E_LIMIT, wanted->offset, set, sample, field,
                                       "%zu bytes are too many for a batch", size);
    return stage(worker, wanted, number, size, err);
}

static coffer_status decode_one(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    coffer_mldf_batch *batch = context;
    coffer__mldf_wanted *wanted = &batch->wanted[batch->keys[index].index];
    coffer_error failure = COFFER_ERROR_INIT;
    if (decode_to_stage(batch, wanted, worker, &failure) == COFFER_OK)
        return COFFER_OK;
    return coffer__mldf_batch_failed(batch, wanted, &failure, err);
}

/* ---- All values ---- */

/* False when the value has to be decoded. */
static bool size_is_known(const coffer_mldf_batch *batch, coffer__mldf_wanted *wanted)
{
    const coffer_mldf *set = batch->set;
    const coffer_mldf_field *field = coffer__mldf_batch_field(batch, wanted);
    coffer__mldf_value value = { batch->samples[wanted->index], batch->targets[wanted->target].field,
                                 wanted->offset, wanted->size, false };
    size_t head_len = wanted->size < COFFER__MLDF_FRAME_HEAD ? wanted->size : COFFER__MLDF_FRAME_HEAD;
    const uint8_t *head = NULL;
    uint64_t size = 0;
    if (field->flags & COFFER_MLDF_FIELD_ZSTD && wanted->size > 0) {
        head = batch->mapped ? coffer_source_view(set->source, wanted->offset, head_len) : NULL;
        if (!head)
            return false;
    }
    if (!coffer__mldf_decoded_size(&size, set, &value, head, head_len) || size > UINT32_MAX)
        return false;
    wanted->value_size = (uint32_t)size;
    return true;
}

/* Values of the target that have to be decoded get a key. */
static void size_target(coffer_mldf_batch *batch, size_t target)
{
    for (size_t i = 0; i < batch->count; i++) {
        size_t index = i * batch->target_count + target;
        coffer__mldf_wanted *wanted = &batch->wanted[index];
        wanted->value_size = 0;
        if (wanted->state == COFFER__MLDF_WANTED && !size_is_known(batch, wanted))
            batch->keys[batch->key_count++] = (coffer__mldf_key){ wanted->offset, index };
    }
}

static coffer_status place_target(coffer_mldf_batch *batch, size_t target, coffer_error *err)
{
    const coffer_mldf_target *output = &batch->targets[target];
    uint64_t at = 0;
    for (size_t i = 0; i < batch->count; i++) {
        coffer__mldf_wanted *wanted = &batch->wanted[i * batch->target_count + target];
        wanted->to = at;
        wanted->room = wanted->value_size;
        if (wanted->state != COFFER__MLDF_ABSENT && wanted->state != COFFER__MLDF_DAMAGED)
            at += wanted->value_size;
    }
    if (output->data && at > output->data_size)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "field %s: the values take %" PRIu64 " bytes, there is room for %zu",
                            batch->set->schema.fields[output->field].name, at, output->data_size);
    return COFFER_OK;
}

static bool lies_behind_the_other(const coffer_mldf_batch *batch, size_t target)
{
    const coffer_mldf_target *output = &batch->targets[target];
    return output->stride == 0 && coffer__mldf_has_payload(batch->set->schema.fields[output->field].kind);
}

coffer_status coffer__mldf_batch_sizes(coffer_mldf_batch *batch, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    batch->key_count = 0;
    for (size_t t = 0; t < batch->target_count; t++) {
        if (lies_behind_the_other(batch, t))
            size_target(batch, t);
    }
    if (batch->key_count > 0) {
        coffer__mldf_sort_keys(batch->keys, batch->spare_keys, batch->key_count);
        status = coffer__pool_run(batch->pool, batch->key_count, decode_one, batch, err);
    }
    for (size_t t = 0; !status && t < batch->target_count; t++) {
        if (lies_behind_the_other(batch, t))
            status = place_target(batch, t, err);
    }
    return status;
}
