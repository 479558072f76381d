/* The rows of a batch: where every value is, and those that are in the row itself. */
#include "formats/mldf/read/mldf_batch.h"

#include "base/fail.h"

#define SAMPLES_AT_ONCE ((size_t)1024) /* of one piece of work */
#define GAP_MAX ((uint64_t)4096) /* bytes between two rows that are read rather than a second read made */
#define READ_MAX ((uint64_t)256 << 10) /* bytes of rows in one read */

/* Takes the values of one row for all targets. */
static void take_row(coffer_mldf_batch *batch, size_t index, const uint8_t *row)
{
    const coffer__mldf_schema *schema = &batch->set->schema;
    coffer__mldf_wanted *wanted = &batch->wanted[index * batch->target_count];
    for (size_t t = 0; t < batch->target_count; t++, wanted++) {
        const coffer_mldf_target *target = &batch->targets[t];
        const coffer_mldf_field *field = &schema->fields[target->field];
        coffer_mldf_entry entry;
        wanted->index = (uint32_t)index;
        wanted->target = (uint16_t)t;
        wanted->state = COFFER__MLDF_ABSENT;
        if (!coffer__mldf_has_payload(field->kind)) {
            size_t width = target->stride ? target->stride : field->row_size;
            memcpy((uint8_t *)target->data + index * width, row + field->row_offset, field->row_size);
            continue;
        }
        coffer__mldf_load_entry(&entry, field->kind, row + field->row_offset);
        wanted->offset = entry.offset;
        wanted->size = entry.size;
        if (entry.present)
            wanted->state = COFFER__MLDF_WANTED;
        wanted->to = index * target->stride;
        wanted->room = target->stride < UINT32_MAX ? (uint32_t)target->stride : UINT32_MAX;
    }
}

static coffer_status rows_from_map(void *context, uint64_t piece, uint32_t worker, coffer_error *err)
{
    coffer_mldf_batch *batch = context;
    size_t first = (size_t)piece * SAMPLES_AT_ONCE, left = batch->count - first;
    size_t end = first + (left < SAMPLES_AT_ONCE ? left : SAMPLES_AT_ONCE);
    const coffer_mldf *set = batch->set;
    const uint8_t *rows = coffer_source_view(set->source, set->header.metadata,
                                             (size_t)(set->header.samples * set->schema.row_size));
    (void)worker;
    if (!rows)
        return coffer__fail(err, COFFER_E_IO, set->header.metadata, "the rows cannot be looked at any more");
    for (size_t i = first; i < end; i++)
        take_row(batch, i, rows + batch->samples[i] * set->schema.row_size);
    return COFFER_OK;
}

/* Rows that are close to each other are read together. */
static size_t rows_in_reach(const coffer_mldf_batch *batch, size_t first)
{
    uint64_t row_size = batch->set->schema.row_size, start = batch->keys[first].key;
    size_t i = first + 1;
    while (i < batch->key_count &&
           (batch->keys[i].key - batch->keys[i - 1].key) * row_size <= GAP_MAX + row_size &&
           (batch->keys[i].key - start + 1) * row_size <= READ_MAX)
        i++;
    return i;
}

static coffer_status read_row_run(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    coffer_mldf_batch *batch = context;
    const coffer__mldf_run *run = &batch->runs[index];
    const coffer__mldf_key *keys = batch->keys + run->first;
    coffer_bytes *bytes = &batch->workers[worker].bytes;
    size_t row_size = batch->set->schema.row_size, len = (size_t)(run->to - run->from);
    coffer_status status = coffer__mldf_bytes_reserve(bytes, len, err);
    if (!status)
        status = coffer_source_read_at(bytes->data, batch->set->source, run->from, len, err);
    if (status)
        return status;
    for (size_t i = 0; i < run->count; i++)
        take_row(batch, (size_t)keys[i].index, bytes->data + (keys[i].key - keys[0].key) * row_size);
    return COFFER_OK;
}

static coffer_status rows_by_reading(coffer_mldf_batch *batch, coffer_error *err)
{
    const coffer_mldf *set = batch->set;
    batch->key_count = batch->count;
    for (size_t i = 0; i < batch->count; i++)
        batch->keys[i] = (coffer__mldf_key){ batch->samples[i], i };
    coffer__mldf_sort_keys(batch->keys, batch->spare_keys, batch->count);
    batch->run_count = 0;
    for (size_t i = 0; i < batch->count;) {
        size_t end = rows_in_reach(batch, i);
        batch->runs[batch->run_count++] =
            (coffer__mldf_run){ i, end - i, set->header.metadata + batch->keys[i].key * set->schema.row_size,
                                set->header.metadata +
                                    (batch->keys[end - 1].key + 1) * set->schema.row_size };
        i = end;
    }
    coffer__mldf_batch_announce(batch);
    return coffer__pool_run(batch->pool, batch->run_count, read_row_run, batch, err);
}

coffer_status coffer__mldf_batch_rows(coffer_mldf_batch *batch, coffer_error *err)
{
    uint64_t pieces = (batch->count + SAMPLES_AT_ONCE - 1) / SAMPLES_AT_ONCE;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->samples[i] >= batch->set->header.samples)
            return coffer__mldf_check_index(batch->set, batch->samples[i], 0, err);
    }
    if (batch->target_count == 0)
        return COFFER_OK;
    return batch->mapped ? coffer__pool_run(batch->pool, pieces, rows_from_map, batch, err)
                         : rows_by_reading(batch, err);
}
