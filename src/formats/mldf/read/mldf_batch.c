/* Reading many samples at once into memory of the caller's. */
#include "formats/mldf/read/mldf_batch.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"

#define FIRST_RUN 16 /* keys that are sorted by insertion */

/* ---- Sorting ---- */

static void insertion_sort(coffer__mldf_key *keys, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        coffer__mldf_key moving = keys[i];
        size_t j = i;
        for (; j > 0 && keys[j - 1].key > moving.key; j--)
            keys[j] = keys[j - 1];
        keys[j] = moving;
    }
}

static void merge(coffer__mldf_key *out, const coffer__mldf_key *keys, size_t middle, size_t end)
{
    size_t a = 0, b = middle;
    for (size_t i = 0; i < end; i++)
        out[i] = b >= end || (a < middle && keys[a].key <= keys[b].key) ? keys[a++] : keys[b++];
}

void coffer__mldf_sort_keys(coffer__mldf_key *keys, coffer__mldf_key *spare, size_t count)
{
    size_t sorted = 1;
    while (sorted < count && keys[sorted - 1].key <= keys[sorted].key)
        sorted++;
    if (sorted >= count)
        return;
    for (size_t i = 0; i < count; i += FIRST_RUN)
        insertion_sort(keys + i, count - i < FIRST_RUN ? count - i : FIRST_RUN);
    coffer__mldf_key *from = keys, *to = spare;
    for (size_t width = FIRST_RUN; width < count; width *= 2) {
        for (size_t i = 0; i < count; i += 2 * width) {
            size_t left = count - i, end = left < 2 * width ? left : 2 * width;
            merge(to + i, from + i, left < width ? left : width, end);
        }
        coffer__mldf_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, count * sizeof *keys);
}

void coffer__mldf_batch_announce(const coffer_mldf_batch *batch)
{
    if (batch->mapped || batch->run_count < 2)
        return;
    coffer_range *ranges = coffer__alloc_array(batch->run_count, sizeof *ranges);
    if (!ranges)
        return; /* reads work without it */
    for (size_t i = 0; i < batch->run_count; i++)
        ranges[i] = (coffer_range){ batch->runs[i].from, batch->runs[i].to - batch->runs[i].from };
    coffer_source_prefetch(batch->set->source, ranges, batch->run_count);
    coffer__free(ranges);
}

/* ---- The handle ---- */

COFFER__INIT_FUNCTION(coffer_mldf_target, COFFER_MLDF_TARGET_INIT)
COFFER__INIT_FUNCTION(coffer_mldf_batch_opts, COFFER_MLDF_BATCH_OPTS_INIT)

coffer_status coffer_mldf_batch_new(coffer_mldf_batch **out, const coffer_mldf *set,
                                    const coffer_mldf_batch_opts *opts, coffer_error *err)
{
    coffer_mldf_batch_opts options = COFFER_MLDF_BATCH_OPTS_INIT;
    coffer_mldf_batch *batch;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    batch = coffer__calloc(1, sizeof *batch);
    if (!batch)
        return coffer__fail_no_memory(err, sizeof *batch);
    batch->set = set;
    batch->opts = options;
    batch->mapped = coffer_source_view(set->source, 0, COFFER__MLDF_HEAD_SIZE) != NULL;
    status = coffer__pool_new(&batch->pool, options.threads, err);
    if (!status &&
        !(batch->workers = coffer__calloc(coffer__pool_threads(batch->pool), sizeof *batch->workers)))
        status = coffer__fail_no_memory(err, sizeof *batch->workers);
    if (status) {
        coffer_mldf_batch_free(batch);
        return status;
    }
    *out = batch;
    return COFFER_OK;
}

void coffer_mldf_batch_free(coffer_mldf_batch *batch)
{
    if (!batch)
        return;
    for (uint32_t i = 0; batch->workers && i < coffer__pool_threads(batch->pool); i++) {
        coffer__mldf_give_decoder(batch->set, batch->workers[i].decoder);
        coffer_free(batch->workers[i].bytes.data);
        coffer_free(batch->workers[i].value.data);
        coffer_free(batch->workers[i].staged.data);
    }
    coffer__free(batch->workers);
    coffer__pool_free(batch->pool);
    coffer__free(batch->wanted);
    coffer__free(batch->keys);
    coffer__free(batch->spare_keys);
    coffer__free(batch->runs);
    coffer__free(batch->targets);
    coffer_free(batch->scratch.data);
    coffer__free(batch);
}

/* ---- A call ---- */

static coffer_status grow(void *array, size_t count, size_t size, coffer_error *err)
{
    void *bigger, *old;
    memcpy(&old, array, sizeof old);
    bigger = coffer__alloc_array(count, size);
    if (!bigger)
        return coffer__fail_no_memory(err, (uint64_t)count * size);
    coffer__free(old);
    memcpy(array, &bigger, sizeof bigger);
    return COFFER_OK;
}

/* Room for `values` of them, and for the keys of as many. */
static coffer_status reserve(coffer_mldf_batch *batch, size_t values, coffer_error *err)
{
    coffer_status status;
    if (values <= batch->wanted_capacity)
        return COFFER_OK;
    batch->wanted_capacity = batch->key_capacity = 0;
    status = grow(&batch->wanted, values, sizeof *batch->wanted, err);
    if (!status)
        status = grow(&batch->keys, values, sizeof *batch->keys, err);
    if (!status)
        status = grow(&batch->spare_keys, values, sizeof *batch->spare_keys, err);
    if (!status)
        status = grow(&batch->runs, values, sizeof *batch->runs, err);
    if (status)
        return status;
    batch->wanted_capacity = batch->key_capacity = values;
    return COFFER_OK;
}

static coffer_status take_targets(coffer_mldf_batch *batch, const coffer_mldf_target *targets, size_t count,
                                  coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (count > batch->target_capacity) {
        status = grow(&batch->targets, count, sizeof *batch->targets, err);
        batch->target_capacity = status ? batch->target_capacity : count;
    }
    for (size_t i = 0; i < count && !status; i++) {
        batch->targets[i] = (coffer_mldf_target)COFFER_MLDF_TARGET_INIT;
        status = coffer__take_element(&batch->targets[i], sizeof *batch->targets, targets, i, err);
    }
    return status;
}

static coffer_status begin(coffer_mldf_batch *batch, const uint64_t *samples, size_t count,
                           const coffer_mldf_target *targets, size_t target_count, coffer_error *err)
{
    size_t values;
    if (count > UINT32_MAX || target_count > UINT16_MAX || !coffer__mul_size(&values, count, target_count))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%zu samples of %zu fields are too many for one batch", count, target_count);
    batch->samples = samples;
    batch->count = count;
    batch->target_count = target_count;
    atomic_store(&batch->any_damaged, false);
    for (uint32_t i = 0; i < coffer__pool_threads(batch->pool); i++)
        batch->workers[i].staged.size = 0;
    coffer_status status = take_targets(batch, targets, target_count, err);
    return status ? status : reserve(batch, values > count ? values : count, err);
}

static coffer_status check_target(const coffer_mldf_batch *batch, const coffer_mldf_target *target,
                                  coffer_error *err)
{
    const coffer_mldf_field *field;
    size_t needed, width;
    if (target->field >= batch->set->schema.count)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "field %zu requested, the set has %zu", target->field, batch->set->schema.count);
    field = &batch->set->schema.fields[target->field];
    width = target->stride;
    bool in_row = !coffer__mldf_has_payload(field->kind);
    if (width == 0 && in_row)
        width = field->row_size;
    else if (in_row && width < field->row_size)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "field %s: values of %u bytes do not fit into a stride of %zu", field->name,
                            field->row_size, width);
    else if (width == 0 && !target->offsets)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %s: a target without a stride needs room for offsets", field->name);
    if (!coffer__mul_size(&needed, batch->count, width) || needed > target->data_size)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "field %s: %zu values of %zu bytes do not fit into %zu", field->name,
                            batch->count, width, target->data_size);
    return COFFER_OK;
}

/* ---- Results ---- */

/* After damage there are holes between contiguous values. */
static void close_holes(const coffer_mldf_batch *batch, size_t target)
{
    const coffer_mldf_target *output = &batch->targets[target];
    uint8_t *data = output->data;
    uint64_t at = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const coffer__mldf_wanted *wanted = &batch->wanted[i * batch->target_count + target];
        output->offsets[i] = at;
        if (wanted->state != COFFER__MLDF_DONE)
            continue;
        if (wanted->to != at)
            memmove(data + at, data + wanted->to, wanted->value_size);
        at += wanted->value_size;
    }
    output->offsets[batch->count] = at;
}

static void put_sizes(const coffer_mldf_batch *batch, size_t target)
{
    const coffer_mldf_target *output = &batch->targets[target];
    const coffer_mldf_field *field = &batch->set->schema.fields[output->field];
    bool in_row = !coffer__mldf_has_payload(field->kind);
    size_t width = output->stride ? output->stride : field->row_size;
    for (size_t i = 0; i < batch->count; i++) {
        const coffer__mldf_wanted *wanted = &batch->wanted[i * batch->target_count + target];
        if (output->sizes)
            output->sizes[i] = in_row                               ? field->row_size
                               : wanted->state == COFFER__MLDF_DONE ? wanted->value_size
                                                                    : 0;
        if (output->offsets && (in_row || output->stride > 0))
            output->offsets[i] = i * width;
    }
    if (output->offsets && (in_row || output->stride > 0))
        output->offsets[batch->count] = batch->count * width;
    else if (output->offsets)
        close_holes(batch, target);
}

/* Damaged values are read once more, one by one, to say what is wrong with them. */
static void tell_damage(coffer_mldf_batch *batch)
{
    const coffer_mldf_batch_opts *opts = &batch->opts;
    for (size_t i = 0; i < batch->count; i++) {
        if (opts->damaged)
            opts->damaged[i] = false;
        for (size_t t = 0; t < batch->target_count && batch->any_damaged; t++) {
            size_t field = batch->targets[t].field;
            coffer_error why = COFFER_ERROR_INIT;
            if (batch->wanted[i * batch->target_count + t].state != COFFER__MLDF_DAMAGED)
                continue;
            if (opts->damaged)
                opts->damaged[i] = true;
            if (!opts->on_damage)
                continue;
            if (coffer_mldf_read(&batch->scratch, NULL, batch->set, batch->samples[i], field, &why) ==
                COFFER_OK)
                coffer__mldf_fail_value(&why, COFFER_E_CHANGED, COFFER_OFFSET_NONE, batch->set,
                                        batch->samples[i], field, "it could not be read at first");
            opts->on_damage(opts->context, batch->samples[i], field, &why);
        }
    }
}

coffer_status coffer__mldf_batch_failed(coffer_mldf_batch *batch, coffer__mldf_wanted *wanted,
                                        const coffer_error *failure, coffer_error *err)
{
    if (batch->opts.policy == COFFER_MLDF_POLICY_SKIP && coffer__is_about_file(failure->status) &&
        wanted->state != COFFER__MLDF_TOO_LARGE) {
        wanted->state = COFFER__MLDF_DAMAGED;
        atomic_store_explicit(&batch->any_damaged, true, memory_order_relaxed);
        return COFFER_OK;
    }
    return coffer__fail_copy(err, failure);
}

coffer_status coffer_mldf_batch_read(coffer_mldf_batch *batch, const uint64_t *samples, size_t count,
                                     const coffer_mldf_target *targets, size_t target_count,
                                     coffer_error *err)
{
    coffer_status status = begin(batch, samples, count, targets, target_count, err);
    for (size_t t = 0; !status && t < target_count; t++)
        status = check_target(batch, &batch->targets[t], err);
    if (!status)
        status = coffer__mldf_batch_rows(batch, err);
    if (!status)
        status = coffer__mldf_batch_sizes(batch, err);
    if (!status)
        status = coffer__mldf_batch_values(batch, err);
    if (!status)
        status = coffer_source_intact(batch->set->source, err);
    if (status)
        return status;
    for (size_t t = 0; t < target_count; t++)
        put_sizes(batch, t);
    tell_damage(batch);
    return COFFER_OK;
}

coffer_status coffer_mldf_batch_size(uint64_t *out, coffer_mldf_batch *batch, const uint64_t *samples,
                                     size_t count, size_t field, coffer_error *err)
{
    coffer_mldf_target target = { .struct_size = sizeof(coffer_mldf_target), .field = field };
    uint64_t sum = 0;
    coffer_status status = begin(batch, samples, count, &target, 1, err);
    if (status)
        return status;
    if (field >= batch->set->schema.count)
        return check_target(batch, &target, err);
    if (!coffer__mldf_has_payload(batch->set->schema.fields[field].kind)) {
        *out = (uint64_t)count * batch->set->schema.fields[field].row_size;
        return COFFER_OK;
    }
    status = coffer__mldf_batch_rows(batch, err);
    if (!status)
        status = coffer__mldf_batch_sizes(batch, err);
    if (!status)
        status = coffer_source_intact(batch->set->source, err);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++) {
        const coffer__mldf_wanted *wanted = &batch->wanted[i];
        sum += wanted->state == COFFER__MLDF_WANTED || wanted->state == COFFER__MLDF_STAGED
                   ? wanted->value_size
                   : 0;
    }
    *out = sum;
    return COFFER_OK;
}
