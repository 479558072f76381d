/* The samples of an FFCV file. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "convert/datasets/dataset_input.h"
#include "outside/records/beton.h"

#include <inttypes.h>
#include <string.h>

/* Rows that are read at a time. */
#define WINDOW_ROWS 1024

typedef struct beton_input {
    coffer__dataset_input base;
    coffer_source *src;
    coffer_limits limits;
    coffer__beton beton;
    uint64_t row;
    uint8_t *rows; /* a window of them */
    uint64_t window_at, window_count;
} beton_input;

static coffer_status row_at(const uint8_t **out, beton_input *input, uint64_t row, coffer_error *err)
{
    const coffer__beton *beton = &input->beton;
    size_t size = (size_t)beton->row_size;
    if (row < input->window_at || row - input->window_at >= input->window_count) {
        uint64_t left = beton->samples - row, count = left < WINDOW_ROWS ? left : WINDOW_ROWS;
        coffer_status status = coffer_source_read_at(input->rows, input->src, beton->rows_at + row * size,
                                                     (size_t)count * size, err);
        if (status)
            return status;
        input->window_at = row;
        input->window_count = count;
    }
    *out = input->rows + (row - input->window_at) * size;
    return COFFER_OK;
}

/* A field with one raw picture must be one of raw pictures: the mode of each is in its row. */
static coffer_status has_raw_pictures(bool *out, beton_input *input, size_t field, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    *out = false;
    for (uint64_t i = 0; !status && !*out && i < input->beton.samples; i++) {
        const uint8_t *row = NULL;
        status = row_at(&row, input, i, err);
        *out = !status && row[input->beton.fields[field].row_offset] == 1;
    }
    return status;
}

static coffer_status add_field(beton_input *input, size_t index, coffer_error *err)
{
    static const uint16_t types[] = { COFFER_MLDF_FLOAT,  COFFER_MLDF_INT,     COFFER_MLDF_IMAGE_JPEG,
                                      COFFER_MLDF_BYTES,  COFFER_MLDF_NDARRAY, COFFER_MLDF_JSON,
                                      COFFER_MLDF_NDARRAY };
    const coffer__beton_field *from = &input->beton.fields[index];
    coffer_mldf_field *field;
    bool raw = false;
    coffer_status status = coffer__dataset_add_field(&field, &input->base.schema, from->name,
                                                     strlen(from->name), types[from->type], err);
    if (!status && from->type == COFFER__BETON_IMAGE)
        status = has_raw_pictures(&raw, input, index, err);
    if (status)
        return status;
    if (raw)
        field->type = COFFER_MLDF_IMAGE_RAW;
    if (field->type == COFFER_MLDF_NDARRAY) {
        field->dtype = from->dtype;
        field->ndim = from->ndim;
        _Static_assert(COFFER__BETON_MAX_DIMS <= COFFER_MLDF_MAX_DIMS, "the shape of an array fits a field");
        memcpy(field->dims, from->dims, sizeof from->dims);
    }
    return COFFER_OK;
}

static coffer_status read_bytes(coffer__dataset_value *value, const beton_input *input,
                                const coffer__beton_value *from, coffer_error *err)
{
    if (from->size > input->limits.memory_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, from->place, "a value of %" PRIu64 " bytes", from->size);
    size_t size = (size_t)from->size;
    value->bytes = coffer_source_view(input->src, from->place, size);
    value->size = size;
    if (value->bytes)
        return COFFER_OK;
    value->own.len = 0;
    uint8_t *to = coffer__buffer_extend(&value->own, size ? size : 1);
    if (!to)
        return coffer__fail_no_memory(err, size);
    value->bytes = to;
    return coffer_source_read_at(to, input->src, from->place, size, err);
}

static coffer_status take_value(coffer__dataset_value *value, const beton_input *input, size_t index,
                                const coffer__beton_value *from, coffer_error *err)
{
    const coffer__beton_field *field = &input->beton.fields[index];
    if (field->type == COFFER__BETON_INT || field->type == COFFER__BETON_FLOAT) {
        value->form = COFFER__DATASET_SCALAR;
        value->i64 = from->i64;
        value->f64 = from->f64;
        return COFFER_OK;
    }
    coffer_status status = read_bytes(value, input, from, err);
    if (status)
        return status;
    value->form = COFFER__DATASET_FILE;
    if (field->dtype != COFFER_DTYPE_NONE || (field->type == COFFER__BETON_IMAGE && from->raw))
        value->form = COFFER__DATASET_READY;
    memcpy(value->dims, field->dims, sizeof value->dims);
    if (field->type == COFFER__BETON_IMAGE && from->raw) {
        value->has_entry = true;
        value->entry = (coffer_mldf_entry){ .struct_size = sizeof(coffer_mldf_entry),
                                            .present = true,
                                            .width = from->width,
                                            .height = from->height,
                                            .channels = 3 };
    }
    while (field->type == COFFER__BETON_JSON && value->size && value->bytes[value->size - 1] == 0)
        value->size--;
    return COFFER_OK;
}

static coffer_status beton_next(bool *more, coffer__dataset_sample *sample, coffer__dataset_input *base,
                                coffer_error *err)
{
    beton_input *input = (beton_input *)base;
    const uint8_t *row = NULL;
    *more = input->row < base->count;
    if (!*more)
        return COFFER_OK;
    coffer__buffer_printf(&sample->name, "%s: sample %" PRIu64, coffer_source_name(input->src), input->row);
    coffer_status status = row_at(&row, input, input->row, err);
    for (size_t i = 0; !status && i < input->beton.field_count; i++) {
        coffer__beton_value value;
        status = coffer__beton_value_of(&value, &input->beton, row, input->row, i, err);
        if (!status)
            status = take_value(&sample->values[i], input, i, &value, err);
    }
    input->row++;
    return status;
}

static coffer_status beton_rewind(coffer__dataset_input *base, coffer_error *err)
{
    (void)err;
    ((beton_input *)base)->row = 0;
    return COFFER_OK;
}

static void beton_close(coffer__dataset_input *base)
{
    beton_input *input = (beton_input *)base;
    coffer__beton_close(&input->beton);
    coffer__free(input->rows);
    coffer__dataset_input_free(base);
}

coffer_status coffer__dataset_open_beton(coffer__dataset_input **out, coffer_source *src,
                                         const coffer_limits *limits, coffer_error *err)
{
    beton_input *input = NULL;
    coffer_status status = coffer__dataset_input_new(&input, sizeof *input, err);
    if (status)
        return status;
    input->base.next = beton_next;
    input->base.rewind = beton_rewind;
    input->base.close = beton_close;
    input->src = src;
    input->limits = coffer__limits(limits);
    status = coffer__beton_open(&input->beton, src, limits, err);
    if (!status) {
        input->base.count = input->beton.samples;
        input->rows = coffer__alloc_array(WINDOW_ROWS, (size_t)input->beton.row_size + 1);
        if (!input->rows)
            status = coffer__fail_no_memory(err, WINDOW_ROWS * input->beton.row_size);
    }
    for (size_t i = 0; !status && i < input->beton.field_count; i++)
        status = add_field(input, i, err);
    if (status) {
        beton_close(&input->base);
        return status;
    }
    *out = &input->base;
    return COFFER_OK;
}
