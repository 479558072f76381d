/* Rows from a structured NumPy array. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/scans/mscan_import.h"
#include "outside/arrays/npy.h"

#include <inttypes.h>
#include <string.h>

#define BATCH_BYTES ((size_t)1 << 16)

typedef struct npy_rows {
    coffer_source *src;
    coffer__npy npy;
    const coffer__npy_field *fields[COFFER__MSCAN_FIELDS];
    uint64_t next;
    uint8_t *batch;
    uint64_t batch_first, batch_count; /* the items in hand */
    uint64_t batch_capacity;
} npy_rows;

static void close_rows(void *state)
{
    npy_rows *rows = state;
    if (!rows)
        return;
    coffer__npy_free(&rows->npy);
    coffer__free(rows->batch);
    coffer__free(rows);
}

static coffer_status take_field(coffer__mscan_input *out, npy_rows *rows, const coffer__npy_field *npy_field,
                                coffer_error *err)
{
    coffer__mscan_field field;
    if (!npy_field->name[0])
        return COFFER_OK; /* padding */
    coffer_status status =
        coffer__mscan_input_add(&field, out, npy_field->name, strlen(npy_field->name), err);
    if (status)
        return status;
    if (field == COFFER__MSCAN_PARAM_NAME || !coffer__npy_is_number(npy_field))
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "the field %s is of type %c%" PRIu64 ", not a number", npy_field->name,
                            npy_field->kind, npy_field->size);
    rows->fields[field] = npy_field;
    return COFFER_OK;
}

static coffer_status take_fields(coffer__mscan_input *out, npy_rows *rows, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!rows->npy.structured || rows->npy.dimensions != 1)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "an array of %zu dimensions%s; needed is one dimension of items with the fields "
                            "token_idx, param_id, block_idx, activation, grad_norm",
                            rows->npy.dimensions, rows->npy.structured ? "" : " without named fields");
    for (size_t i = 0; !status && i < rows->npy.field_count; i++)
        status = take_field(out, rows, &rows->npy.fields[i], err);
    if (!status)
        status = coffer__mscan_input_complete(out, err);
    return status;
}

static coffer_status fill_batch(npy_rows *rows, coffer_error *err)
{
    uint64_t left = rows->npy.count - rows->next;
    rows->batch_first = rows->next;
    rows->batch_count = left < rows->batch_capacity ? left : rows->batch_capacity;
    return coffer_source_read_at(rows->batch, rows->src,
                                 rows->npy.data_offset + rows->next * rows->npy.item_size,
                                 (size_t)(rows->batch_count * rows->npy.item_size), err);
}

static coffer_status next_row(bool *more, coffer__mscan_input_row *row, coffer__mscan_input *out,
                              coffer_error *err)
{
    npy_rows *rows = out->state;
    *more = rows->next < rows->npy.count;
    if (!*more)
        return COFFER_OK;
    if (rows->next - rows->batch_first >= rows->batch_count) {
        coffer_status status = fill_batch(rows, err);
        if (status)
            return status;
    }
    const uint8_t *item = rows->batch + (rows->next - rows->batch_first) * rows->npy.item_size;
    for (unsigned field = 0; field < COFFER__MSCAN_FIELDS; field++) {
        if (rows->fields[field])
            row->value[field] = coffer__npy_number(rows->fields[field], item);
    }
    row->offset = rows->npy.data_offset + rows->next * rows->npy.item_size;
    row->place = ++rows->next;
    return COFFER_OK;
}

coffer_status coffer__mscan_input_from_npy(coffer__mscan_input *out, coffer_source *src,
                                           const coffer_limits *limits, coffer_error *err)
{
    npy_rows *rows = coffer__calloc(1, sizeof *rows);
    coffer_status status;
    if (!rows)
        return coffer__fail_no_memory(err, sizeof *rows);
    *out = (coffer__mscan_input){ .place_name = "row", .state = rows, .next = next_row, .close = close_rows };
    rows->src = src;
    status = coffer__npy_read(&rows->npy, src, err);
    if (!status)
        status = take_fields(out, rows, err);
    if (!status && rows->npy.item_size > limits->memory_bytes)
        status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                              "items of %" PRIu64 " bytes, the limit is %" PRIu64, rows->npy.item_size,
                              limits->memory_bytes);
    if (!status) {
        rows->batch_capacity = rows->npy.item_size < BATCH_BYTES ? BATCH_BYTES / rows->npy.item_size : 1;
        rows->batch = coffer__malloc((size_t)(rows->batch_capacity * rows->npy.item_size));
        if (!rows->batch)
            status = coffer__fail_no_memory(err, rows->batch_capacity * rows->npy.item_size);
    }
    if (status)
        close_rows(rows);
    return status;
}
