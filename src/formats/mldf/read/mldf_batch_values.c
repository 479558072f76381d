/* The values of a batch, in the order of their places in the file. */
#include "formats/mldf/read/mldf_batch.h"

#include "base/checked.h"
#include "base/fail.h"

#define WORK_BYTES ((uint64_t)256 << 10) /* copied by one piece of work */
#define WORK_VALUES ((size_t)512)        /* maximum number of values in one piece of work */
#define GAP_MAX \
    ((uint64_t)16 << 10) /* bytes between two payloads that are read rather than a second read made */
#define READ_MAX ((uint64_t)1 << 20) /* bytes in one read of several payloads */

coffer_status coffer__mldf_batch_value(coffer__mldf_room *room, size_t *size, coffer_mldf_batch *batch,
                                       coffer__mldf_batch_worker *worker, const coffer__mldf_wanted *wanted,
                                       const uint8_t *stored, uint32_t crc, coffer_error *err)
{
    const coffer_mldf *set = batch->set;
    coffer__mldf_value value = { batch->samples[wanted->index], batch->targets[wanted->target].field,
                                 wanted->offset, wanted->size, false };
    coffer_status status = coffer__mldf_check_crc(set, &value, stored, crc, err);
    if (status)
        return status;
    if (!worker->decoder && !(worker->decoder = coffer__mldf_take_decoder(set, err)))
        return COFFER_E_NO_MEMORY;
    status = coffer__mldf_reserve(room, 0, err);
    if (status)
        return status;
    coffer_error why = COFFER_ERROR_INIT;
    status = coffer__mldf_decode(room, size, worker->decoder, set, &value, stored, &why);
    if (!status)
        return COFFER_OK;
    if (room->too_small)
        return coffer__fail_copy(err, &why);
    *size = 0;
    return coffer__mldf_accept_undecoded(set, &value, stored, crc, &why, err);
}

static coffer_status fail_room(const coffer_mldf_batch *batch, const coffer__mldf_wanted *wanted,
                               coffer_error *err)
{
    return coffer__mldf_fail_value(err, COFFER_E_LIMIT, wanted->offset, batch->set,
                                   batch->samples[wanted->index], batch->targets[wanted->target].field,
                                   "%lu bytes, there is room for %lu", (unsigned long)wanted->size,
                                   (unsigned long)wanted->room);
}

/* From bytes in memory to its place. */
static coffer_status put_value(coffer_mldf_batch *batch, coffer__mldf_batch_worker *worker,
                               coffer__mldf_wanted *wanted, const uint8_t *stored, uint32_t crc,
                               coffer_error *err)
{
    const coffer_mldf_target *target = &batch->targets[wanted->target];
    coffer__mldf_room room = { .data = (uint8_t *)target->data + wanted->to, .capacity = wanted->room };
    coffer__mldf_value value = { batch->samples[wanted->index], target->field, wanted->offset, wanted->size,
                                 false };
    size_t size = 0;
    coffer_status status;
    if (coffer__mldf_is_plain(batch->set, target->field)) {
        status = coffer__mldf_check_crc(batch->set, &value, stored, crc, err);
        if (status)
            return status;
        memcpy(room.data, stored, wanted->size);
        size = wanted->size;
    } else {
        status = coffer__mldf_batch_value(&room, &size, batch, worker, wanted, stored, crc, err);
        if (status && room.too_small)
            wanted->state = COFFER__MLDF_TOO_LARGE;
        if (status)
            return status;
    }
    wanted->value_size = (uint32_t)size;
    wanted->state = COFFER__MLDF_DONE;
    return COFFER_OK;
}

/* Fails for a value that must not be read, or that is stored unencoded and does not fit. */
static coffer_status check_value(uint32_t *crc, const coffer_mldf_batch *batch,
                                 const coffer__mldf_wanted *wanted, coffer_error *err)
{
    coffer_mldf_entry entry = { .struct_size = sizeof(coffer_mldf_entry),
                                .present = true,
                                .offset = wanted->offset,
                                .size = wanted->size };
    return coffer__mldf_check_entry(crc, batch->set, batch->samples[wanted->index],
                                    batch->targets[wanted->target].field, &entry, err);
}

/* A value that is larger than the room it has is the caller's mistake, never damage. */
static coffer_status check_room(const coffer_mldf_batch *batch, const coffer__mldf_wanted *wanted,
                                coffer_error *err)
{
    bool plain = coffer__mldf_is_plain(batch->set, batch->targets[wanted->target].field);
    return plain && wanted->size > wanted->room ? fail_room(batch, wanted, err) : COFFER_OK;
}

/* ---- One run of neighbors ---- */

/* The stored bytes of a value: mapped, or out of what was read for the run. */
static coffer_status read_value(coffer_mldf_batch *batch, coffer__mldf_batch_worker *worker,
                                coffer__mldf_wanted *wanted, const coffer__mldf_run *run,
                                const uint8_t *bytes, coffer_error *err)
{
    uint32_t crc;
    const uint8_t *stored;
    coffer_status status = check_value(&crc, batch, wanted, err);
    if (status)
        return status;
    stored = bytes ? bytes + (wanted->offset - run->from)
                   : coffer_source_view(batch->set->source, wanted->offset, wanted->size);
    if (!stored)
        return coffer__fail(err, COFFER_E_IO, wanted->offset, "the payloads cannot be looked at any more");
    return put_value(batch, worker, wanted, stored, crc, err);
}

/* A single value that is stored as it is goes straight to its place. */
static coffer_status read_straight(coffer_mldf_batch *batch, coffer__mldf_wanted *wanted, coffer_error *err)
{
    const coffer_mldf_target *target = &batch->targets[wanted->target];
    uint8_t *to = (uint8_t *)target->data + wanted->to;
    coffer__mldf_value value = { batch->samples[wanted->index], target->field, wanted->offset, wanted->size,
                                 false };
    uint32_t crc;
    coffer_status status = check_value(&crc, batch, wanted, err);
    if (!status)
        status = coffer_source_read_at(to, batch->set->source, wanted->offset, wanted->size, err);
    if (!status)
        status = coffer__mldf_check_crc(batch->set, &value, to, crc, err);
    if (status)
        return status;
    wanted->value_size = wanted->size;
    wanted->state = COFFER__MLDF_DONE;
    return COFFER_OK;
}

static bool goes_straight(const coffer_mldf_batch *batch, const coffer__mldf_run *run)
{
    const coffer__mldf_wanted *wanted = &batch->wanted[batch->keys[run->first].index];
    return run->count == 1 && !batch->mapped &&
           coffer__mldf_is_plain(batch->set, batch->targets[wanted->target].field);
}

static coffer_status read_run(void *context, uint64_t index, uint32_t number, coffer_error *err)
{
    coffer_mldf_batch *batch = context;
    coffer__mldf_batch_worker *worker = &batch->workers[number];
    const coffer__mldf_run *run = &batch->runs[index];
    bool straight = goes_straight(batch, run);
    const uint8_t *bytes = NULL;
    coffer_status status = COFFER_OK;
    if (!batch->mapped && !straight) {
        size_t len = (size_t)(run->to - run->from);
        status = coffer__mldf_bytes_reserve(&worker->bytes, len, err);
        if (!status)
            status = coffer_source_read_at(worker->bytes.data, batch->set->source, run->from, len, err);
        if (status)
            return status;
        bytes = worker->bytes.data;
    }
    for (size_t i = 0; !status && i < run->count; i++) {
        coffer__mldf_wanted *wanted = &batch->wanted[batch->keys[run->first + i].index];
        coffer_error failure = COFFER_ERROR_INIT;
        status = check_room(batch, wanted, err);
        if (status)
            return status;
        if ((straight ? read_straight(batch, wanted, &failure)
                      : read_value(batch, worker, wanted, run, bytes, &failure)) != COFFER_OK)
            status = coffer__mldf_batch_failed(batch, wanted, &failure, err);
    }
    return status;
}

/* ---- All of them ---- */

/* Values outside the data region fail at once, so that a run never reaches outside of it. */
static coffer_status collect(coffer_mldf_batch *batch, coffer_error *err)
{
    size_t values = batch->count * batch->target_count;
    coffer_status status = COFFER_OK;
    batch->key_count = 0;
    for (size_t i = 0; !status && i < values; i++) {
        coffer__mldf_wanted *wanted = &batch->wanted[i];
        const coffer__mldf_header *header = &batch->set->header;
        if (wanted->state == COFFER__MLDF_STAGED) {
            const coffer_mldf_target *target = &batch->targets[wanted->target];
            if (wanted->value_size > 0)
                memcpy((uint8_t *)target->data + wanted->to,
                       batch->workers[wanted->staged_by].staged.data + wanted->staged_at, wanted->value_size);
            wanted->state = COFFER__MLDF_DONE;
        }
        if (wanted->state != COFFER__MLDF_WANTED)
            continue;
        if (wanted->offset >= header->data &&
            coffer__range_fits(wanted->offset, wanted->size, header->table)) {
            batch->keys[batch->key_count++] = (coffer__mldf_key){ wanted->offset, i };
            continue;
        }
        coffer_error failure = COFFER_ERROR_INIT;
        uint32_t crc;
        check_value(&crc, batch, wanted, &failure);
        status = coffer__mldf_batch_failed(batch, wanted, &failure, err);
    }
    return status;
}

static uint64_t end_of(const coffer_mldf_batch *batch, size_t key)
{
    const coffer__mldf_wanted *wanted = &batch->wanted[batch->keys[key].index];
    return wanted->offset + wanted->size;
}

/* Neighbors until they are enough work, and, where they are read, as long as they are close. */
static void make_runs(coffer_mldf_batch *batch)
{
    batch->run_count = 0;
    for (size_t i = 0; i < batch->key_count;) {
        coffer__mldf_run run = { i, 1, batch->keys[i].key, end_of(batch, i) };
        uint64_t bytes = run.to - run.from;
        for (i++; i < batch->key_count; i++) {
            uint64_t end = end_of(batch, i), size = end - batch->keys[i].key;
            if (batch->mapped ? bytes + size > WORK_BYTES || run.count == WORK_VALUES
                              : batch->keys[i].key > run.to + GAP_MAX || end - run.from > READ_MAX)
                break;
            run.to = end > run.to ? end : run.to;
            bytes += size;
            run.count++;
        }
        batch->runs[batch->run_count++] = run;
    }
}

coffer_status coffer__mldf_batch_values(coffer_mldf_batch *batch, coffer_error *err)
{
    coffer_status status = collect(batch, err);
    if (status)
        return status;
    coffer__mldf_sort_keys(batch->keys, batch->spare_keys, batch->key_count);
    make_runs(batch);
    coffer__mldf_batch_announce(batch);
    return coffer__pool_run(batch->pool, batch->run_count, read_run, batch, err);
}
