/* The fields of a new set: what the format can hold is checked before anything is written. */
#include "base/checked.h"
#include "base/dtype.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "formats/mldf/write/mldf_write.h"

#include <stdlib.h>

#define KNOWN_FLAGS (COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_ENCRYPTED | COFFER_MLDF_FIELD_OPTIONAL)

static coffer_status check_name(const char *name, size_t index, coffer_error *err)
{
    size_t len = name ? strlen(name) : 0;
    if (len == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "field %zu has no name",
                            index);
    if (len >= COFFER__MLDF_NAME_SIZE)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %zu: its name has %zu bytes, the maximum is %d (%.80s)", index, len,
                            COFFER__MLDF_NAME_SIZE - 1, name);
    if (!coffer__utf8_valid(name, len))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %zu: its name is not UTF-8 (%s)", index, name);
    return COFFER_OK;
}

/* Elements of a known size are contiguous; an array that varies is checked with each value. */
static coffer_status check_array(const coffer_mldf_field *field, coffer_error *err)
{
    uint64_t size = coffer_dtype_size(field->dtype);
    if (coffer__dtype_code(field->dtype) == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %s: arrays of the type \"%s\" cannot be stored", field->name,
                            coffer_dtype_name(field->dtype));
    if (field->ndim > COFFER_MLDF_MAX_DIMS)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %s: %u dimensions, the maximum is %d", field->name, field->ndim,
                            COFFER_MLDF_MAX_DIMS);
    for (uint32_t i = 0; i < field->ndim; i++) {
        uint64_t dim = field->dims[i] ? field->dims[i] : 1;
        if (!coffer__mul_u64(&size, size ? size : 1, dim) || size > COFFER__MLDF_PAYLOAD_MAX)
            return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                "field %s: an array of this shape does not fit into a payload of %lu bytes",
                                field->name, (unsigned long)COFFER__MLDF_PAYLOAD_MAX);
    }
    return COFFER_OK;
}

static coffer_status check_options(const coffer_mldf_field *field, coffer_error *err)
{
    const char *wrong = NULL;
    bool payload = coffer__mldf_has_payload(field->kind);
    if (field->flags & ~KNOWN_FLAGS)
        wrong = "has a flag that is not known";
    else if (!payload && field->flags & (COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_ENCRYPTED))
        wrong = "is stored in the row: it cannot be compressed or encrypted";
    else if (field->dictionary && !(field->flags & COFFER_MLDF_FIELD_ZSTD))
        wrong = "has a dictionary but is not compressed";
    else if (field->dictionary && field->dictionary_size == 0)
        wrong = "has an empty dictionary";
    else if (field->jpeg_quality > 100)
        wrong = "has a JPEG quality over 100";
    return wrong ? coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "field %s %s",
                                field->name, wrong)
                 : COFFER_OK;
}

static coffer_status check_field(coffer_mldf_field *field, size_t index, coffer_error *err)
{
    const coffer__mldf_type_info *info = coffer__mldf_type_info_of(field->type);
    coffer_status status = check_name(field->name, index, err);
    if (status)
        return status;
    if (!info && field->row_size == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %s: %u is not a type of a training set", field->name, field->type);
    if (info && field->row_size == 0)
        field->row_size = coffer__mldf_entry_size(info->kind);
    /* An entry of another size is copied unchanged. */
    field->kind = info && field->row_size == coffer__mldf_entry_size(info->kind) ? info->kind
                                                                                 : COFFER_MLDF_ENTRY_OPAQUE;
    if (field->kind != COFFER_MLDF_ENTRY_OPAQUE && info && info->has_array)
        status = check_array(field, err);
    return status ? status : check_options(field, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const coffer_mldf_field *const *)a)->name, (*(const coffer_mldf_field *const *)b)->name);
}

static coffer_status check_unique(const coffer_mldf_field *fields, size_t count, coffer_error *err)
{
    const coffer_mldf_field **sorted = coffer__alloc_array(count, sizeof(const coffer_mldf_field *));
    coffer_status status = COFFER_OK;
    if (!sorted)
        return coffer__fail_no_memory(err, count * sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &fields[i];
    qsort(sorted, count, sizeof *sorted, by_name);
    for (size_t i = 1; i < count && !status; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            status = coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                                  "two fields have the name \"%s\"", sorted[i]->name);
    }
    coffer__free(sorted);
    return status;
}

static coffer_status check_fields(coffer_mldf_field *fields, size_t count, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < count && !status; i++)
        status = check_field(&fields[i], i, err);
    return status ? status : check_unique(fields, count, err);
}

static coffer_status take_field(coffer__mldf_column *column, const coffer_mldf_field *field,
                                coffer_error *err)
{
    column->field = *field;
    memcpy(column->name, field->name, strlen(field->name));
    column->field.name = column->name;
    column->field.dictionary_offset = 0;
    column->field.dictionary = NULL;
    column->field.dictionary_size = field->dictionary ? field->dictionary_size : 0;
    if (field->dictionary) {
        column->dictionary = coffer__malloc(field->dictionary_size);
        if (!column->dictionary)
            return coffer__fail_no_memory(err, field->dictionary_size);
        memcpy(column->dictionary, field->dictionary, field->dictionary_size);
        column->field.dictionary = column->dictionary;
    }
    return COFFER_OK;
}

coffer_status coffer__mldf_make_columns(coffer__mldf_column **columns, uint32_t *row_size,
                                        const coffer_mldf_field *fields, size_t count, coffer_error *err)
{
    coffer_mldf_field *laid_out = NULL;
    coffer__mldf_column *made = NULL;
    coffer_status status;
    if (count == 0 || count > UINT16_MAX)
        return coffer__fail(err, count ? COFFER_E_LIMIT : COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%zu fields: a set has from 1 to %d", count, UINT16_MAX);
    laid_out = coffer__alloc_array(count, sizeof *laid_out);
    made = coffer__calloc(count, sizeof *made);
    if (!laid_out || !made) {
        status = coffer__fail_no_memory(err, count * sizeof *made);
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        laid_out[i] = (coffer_mldf_field)COFFER_MLDF_FIELD_INIT;
        status = coffer__take_element(&laid_out[i], sizeof *laid_out, fields, i, err);
        if (status)
            goto out;
    }
    status = check_fields(laid_out, count, err);
    if (status)
        goto out;
    if (!coffer__mldf_lay_out_row(row_size, laid_out, count)) {
        status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "the rows would be too wide");
        goto out;
    }
    for (size_t i = 0; i < count && !status; i++)
        status = take_field(&made[i], &laid_out[i], err);
    if (status)
        goto out;
    *columns = made;
    made = NULL;
out:
    coffer__mldf_columns_free(made, count);
    coffer__free(laid_out);
    return status;
}

void coffer__mldf_columns_free(coffer__mldf_column *columns, size_t count)
{
    if (!columns)
        return;
    for (size_t i = 0; i < count; i++) {
        coffer__free(columns[i].arguments);
        coffer__free(columns[i].dictionary);
        ZSTD_freeCDict(columns[i].prepared);
    }
    coffer__free(columns);
}
