/* Rows of NumPy arrays: one sample for each index of the first dimension. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "convert/datasets/dataset_columns.h"
#include "io/source_private.h"
#include "outside/arrays/npy.h"

#include <inttypes.h>
#include <string.h>

typedef struct array_rows {
    coffer_source *src; /* the .npy file: borrowed, or a member of the archive */
    coffer__npy npy;    /* of a .npy file; an archive keeps its own */
    const coffer__npy *header;
    uint64_t row_size;
    uint8_t *turned; /* all elements of an array in Fortran order, row by row; else NULL */
} array_rows;

typedef struct numpy_input {
    coffer__dataset_input base;
    coffer_source *src;
    coffer__npz npz;
    bool is_archive;
    array_rows *arrays;
    size_t array_count;
    coffer_limits limits;
    uint64_t row;
} numpy_input;

static bool is_plain_row(const coffer__npy *npy)
{
    return npy->dimensions == 1;
}

/* The elements of an array that is stored column by column (Fortran order), row by row. All of it is read
 * once: a row has an element in every column. */
static coffer_status turn_round(array_rows *array, const coffer_limits *limits, coffer_error *err)
{
    const coffer__npy *npy = array->header;
    size_t each = (size_t)npy->item_size, count = (size_t)npy->count;
    uint64_t size = npy->count * npy->item_size, at[COFFER__NPY_MAX_DIMENSIONS] = { 0 };
    if (size > limits->memory_bytes / 2)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " bytes in Fortran order need more than the limit of %" PRIu64
                            " bytes; save the array in C order (numpy.ascontiguousarray)",
                            size, limits->memory_bytes);
    uint8_t *from = coffer__malloc(size ? (size_t)size : 1), *to = coffer__malloc(size ? (size_t)size : 1);
    coffer_status status = from && to
                               ? coffer_source_read_at(from, array->src, npy->data_offset, (size_t)size, err)
                               : coffer__fail_no_memory(err, size);
    for (size_t i = 0; !status && i < count; i++) {
        uint64_t place = 0;
        for (size_t d = npy->dimensions; d-- > 0;)
            place = place * npy->shape[d] + at[d];
        memcpy(to + i * each, from + place * each, each);
        for (size_t d = npy->dimensions; d-- > 0 && ++at[d] == npy->shape[d];)
            at[d] = 0;
    }
    coffer__free(from);
    if (status)
        coffer__free(to);
    else
        array->turned = to;
    return status;
}

static coffer_status add_array(numpy_input *input, array_rows *array, const char *name, coffer_error *err)
{
    const coffer__npy *npy = array->header;
    coffer_dtype dtype = npy->structured || npy->fields[0].elements != 1 ? COFFER_DTYPE_NONE
                                                                         : coffer__npy_dtype(&npy->fields[0]);
    coffer_mldf_field *field;
    if (dtype == COFFER_DTYPE_NONE)
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                               "\"%s\" is not an array of numbers", name),
                                  coffer__source_other_name(input->src));
    if (npy->dimensions == 0 || npy->dimensions - 1 > COFFER_MLDF_MAX_DIMS)
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                               "\"%s\" has %zu dimensions", name, npy->dimensions),
                                  coffer__source_other_name(input->src));
    if (array == input->arrays)
        input->base.count = npy->shape[0];
    if (npy->shape[0] != input->base.count)
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                                               "\"%s\" has %" PRIu64 " rows, others have %" PRIu64, name,
                                               npy->shape[0], input->base.count),
                                  coffer__source_other_name(input->src));
    uint16_t type = COFFER_MLDF_NDARRAY;
    if (is_plain_row(npy) && (coffer_dtype_is_integer(dtype) || dtype == COFFER_DTYPE_BOOL) &&
        dtype != COFFER_DTYPE_U64)
        type = COFFER_MLDF_INT;
    else if (is_plain_row(npy) && coffer_dtype_is_float(dtype))
        type = COFFER_MLDF_FLOAT;
    coffer_status status =
        coffer__dataset_add_field(&field, &input->base.schema, name, strlen(name), type, err);
    if (status)
        return status;
    array->row_size = npy->shape[0] ? npy->count / npy->shape[0] * npy->item_size : 0;
    if (array->row_size > input->limits.memory_bytes)
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                               "rows of %" PRIu64 " bytes", array->row_size),
                                  coffer__source_other_name(input->src));
    if (type == COFFER_MLDF_NDARRAY) {
        if (dtype == COFFER_DTYPE_BOOL)
            input->base.note =
                "arrays of booleans stored as u8, 0 and 1, because the format has no type for them";
        field->dtype = coffer__dataset_stored_dtype(dtype);
        field->ndim = (uint32_t)npy->dimensions - 1;
        memcpy(field->dims, npy->shape + 1, field->ndim * sizeof *field->dims);
    }
    return npy->fortran_order && npy->dimensions > 1 ? turn_round(array, &input->limits, err) : COFFER_OK;
}

static coffer_status read_row(uint8_t *to, const array_rows *array, uint64_t row, coffer_error *err)
{
    size_t size = (size_t)array->row_size;
    if (!array->turned)
        return coffer_source_read_at(to, array->src, array->header->data_offset + row * array->row_size, size,
                                     err);
    memcpy(to, array->turned + row * size, size);
    return COFFER_OK;
}

static coffer_status take_row(coffer__dataset_value *value, const array_rows *array,
                              const coffer_mldf_field *field, uint64_t row, coffer_error *err)
{
    const coffer__npy *npy = array->header;
    size_t size = (size_t)array->row_size;
    value->own.len = 0;
    uint8_t *to = coffer__buffer_extend(&value->own, size ? size : 1);
    if (!to)
        return coffer__fail_no_memory(err, size);
    coffer_status status = read_row(to, array, row, err);
    if (status)
        return status;
    if (field->type != COFFER_MLDF_NDARRAY) {
        coffer__number number = coffer__npy_number(&npy->fields[0], to);
        value->form = COFFER__DATASET_SCALAR;
        value->f64 = coffer__number_as_f64(&number);
        coffer__number_as_i64(&value->i64, &number);
        return COFFER_OK;
    }
    if (npy->fields[0].big_endian)
        coffer__npy_swap(to, field->dtype, size / (size_t)npy->item_size);
    value->form = COFFER__DATASET_READY;
    value->bytes = to;
    value->size = size;
    memcpy(value->dims, field->dims, sizeof value->dims);
    return COFFER_OK;
}

static coffer_status numpy_next(bool *more, coffer__dataset_sample *sample, coffer__dataset_input *base,
                                coffer_error *err)
{
    numpy_input *input = (numpy_input *)base;
    coffer_status status = COFFER_OK;
    *more = input->row < base->count;
    if (!*more)
        return COFFER_OK;
    coffer__buffer_printf(&sample->name, "%s: row %" PRIu64, coffer_source_name(input->src), input->row);
    for (size_t i = 0; !status && i < input->array_count; i++)
        status = take_row(&sample->values[i], &input->arrays[i], &base->schema.fields[i], input->row, err);
    input->row++;
    return status;
}

static coffer_status numpy_rewind(coffer__dataset_input *base, coffer_error *err)
{
    (void)err;
    ((numpy_input *)base)->row = 0;
    return COFFER_OK;
}

static void numpy_close(coffer__dataset_input *base)
{
    numpy_input *input = (numpy_input *)base;
    for (size_t i = 0; i < input->array_count; i++) {
        coffer__npy_free(&input->arrays[i].npy);
        coffer__free(input->arrays[i].turned);
        if (input->is_archive)
            coffer_source_close(input->arrays[i].src);
    }
    coffer__free(input->arrays);
    coffer__npz_close(&input->npz);
    coffer__dataset_input_free(base);
}

static coffer_status new_input(numpy_input **out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err)
{
    coffer_status status = coffer__dataset_input_new(out, sizeof **out, err);
    if (status)
        return status;
    (*out)->base.next = numpy_next;
    (*out)->base.rewind = numpy_rewind;
    (*out)->base.close = numpy_close;
    (*out)->src = src;
    (*out)->limits = coffer__limits(limits);
    return COFFER_OK;
}

static coffer_status make_arrays(numpy_input *input, size_t count, coffer_error *err)
{
    input->arrays = coffer__calloc(count ? count : 1, sizeof *input->arrays);
    if (!input->arrays)
        return coffer__fail_no_memory(err, count * sizeof *input->arrays);
    input->array_count = count;
    return COFFER_OK;
}

static coffer_status finish(coffer__dataset_input **out, numpy_input *input, coffer_status status)
{
    if (status)
        numpy_close(&input->base);
    else
        *out = &input->base;
    return status;
}

coffer_status coffer__dataset_open_npy(coffer__dataset_input **out, coffer_source *src,
                                       const coffer_limits *limits, coffer_error *err)
{
    numpy_input *input = NULL;
    coffer_status status = new_input(&input, src, limits, err);
    if (status)
        return status;
    status = make_arrays(input, 1, err);
    if (!status) {
        input->arrays[0].src = src;
        input->arrays[0].header = &input->arrays[0].npy;
        status = coffer__npy_read(&input->arrays[0].npy, src, err);
    }
    if (!status)
        status = add_array(input, &input->arrays[0], "array", err);
    return finish(out, input, status);
}

coffer_status coffer__dataset_open_npz(coffer__dataset_input **out, coffer_source *src,
                                       const coffer_limits *limits, coffer_error *err)
{
    numpy_input *input = NULL;
    coffer_status status = new_input(&input, src, limits, err);
    if (status)
        return status;
    input->is_archive = true;
    status = coffer__npz_open(&input->npz, src, limits, err);
    if (!status)
        status = make_arrays(input, input->npz.count, err);
    for (size_t i = 0; !status && i < input->npz.count; i++) {
        input->arrays[i].header = &input->npz.arrays[i].npy;
        status = coffer__npz_source(&input->arrays[i].src, &input->npz, i, COFFER__ZIP_RANDOM, err);
        if (!status)
            status = add_array(input, &input->arrays[i], input->npz.arrays[i].name, err);
    }
    return finish(out, input, status);
}
