#include "convert/datasets/dataset_columns.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "io/file.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <string.h>

/* ---- Arrays ---- */

coffer_status coffer__array_facts_source(coffer_source **out, int fd, uint64_t size, const char *name,
                                         coffer_error *err)
{
    return coffer__source_over_fd(out, fd, false, size, name, NULL, err);
}

void coffer__array_facts_add_shape(coffer__array_facts *facts, coffer_dtype dtype, const uint64_t *dims,
                                   size_t ndim)
{
    dtype = coffer__dataset_stored_dtype(dtype);
    if (dtype == COFFER_DTYPE_NONE || ndim > COFFER_MLDF_MAX_DIMS) {
        facts->mixed = true;
        return;
    }
    if (facts->seen++ == 0) {
        facts->dtype = dtype;
        facts->ndim = (uint32_t)ndim;
        memcpy(facts->dims, dims, ndim * sizeof *dims);
        return;
    }
    if (dtype != facts->dtype || ndim != facts->ndim) {
        facts->mixed = true;
        return;
    }
    for (size_t i = 0; i < ndim; i++) {
        if (facts->dims[i] != dims[i])
            facts->dims[i] = 0;
    }
}

void coffer__array_facts_add(coffer__array_facts *facts, coffer_source *src)
{
    coffer__npy npy = { 0 };
    if (!coffer__npy_read(&npy, src, NULL))
        coffer__array_facts_add_shape(facts,
                                      npy.structured || npy.fields[0].elements != 1
                                          ? COFFER_DTYPE_NONE
                                          : coffer__npy_dtype(&npy.fields[0]),
                                      npy.shape, npy.dimensions);
    else
        facts->mixed = true;
    coffer__npy_free(&npy);
}

coffer_status coffer__array_facts_settle(coffer_mldf_field *field, const coffer__array_facts *facts,
                                         coffer_error *err)
{
    if (facts->mixed || facts->seen == 0)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "the arrays of \"%s\" are not all of one numeric type with up to %d dimensions",
                            field->name, COFFER_MLDF_MAX_DIMS);
    field->dtype = facts->dtype;
    field->ndim = facts->ndim;
    memcpy(field->dims, facts->dims, sizeof field->dims);
    return COFFER_OK;
}

/* ---- Columns ---- */

coffer__column *coffer__columns_find(const coffer__columns *columns, const char *name, size_t len)
{
    coffer__table_probe probe = coffer__table_begin(&columns->table, coffer__hash(name, len));
    uint32_t found;
    while ((found = coffer__table_next(&probe)) != COFFER__TABLE_NONE) {
        coffer__column *column = &columns->items[found];
        if (column->name_len == len && memcmp(column->name, name, len) == 0)
            return column;
    }
    return NULL;
}

coffer_status coffer__columns_get(coffer__column **out, coffer__columns *columns, const char *name,
                                  size_t len, const coffer_limits *limits, coffer_error *err)
{
    *out = coffer__columns_find(columns, name, len);
    if (*out)
        return COFFER_OK;
    if (columns->count >= UINT16_MAX || columns->count >= limits->entries)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %zu fields", columns->count);
    const char *copy = coffer__arena_text(&columns->arena, name, len);
    if (!copy)
        return coffer__fail_no_memory(err, len);
    coffer_status status = coffer__array_reserve_one(&columns->items, &columns->capacity, columns->count,
                                                     sizeof *columns->items, err);
    if (!status)
        status = coffer__table_add(&columns->table, coffer__hash(name, len), columns->count, err);
    if (status)
        return status;
    *out = &columns->items[columns->count++];
    **out = (coffer__column){ .name = copy, .name_len = len, .can = UINT32_MAX };
    return COFFER_OK;
}

void coffer__columns_free(coffer__columns *columns)
{
    coffer__arena_free(&columns->arena);
    coffer__free(columns->items);
    coffer__table_free(&columns->table);
    *columns = (coffer__columns){ 0 };
}

void coffer__column_see(coffer__column *column, uint64_t sample, uint32_t can)
{
    column->can &= can;
    column->last_sample = sample;
    column->seen++;
}

static uint16_t settled_type(const coffer__column *column, uint64_t samples)
{
    bool mostly_firsts = 2 * column->firsts > column->seen;
    if (column->given_type)
        return column->given_type;
    if (column->seen == 0)
        return COFFER_MLDF_TEXT;
    if (column->can & COFFER__CAN_INT && column->seen == samples)
        return COFFER_MLDF_INT;
    if (column->can & COFFER__CAN_FLOAT && column->seen == samples)
        return COFFER_MLDF_FLOAT;
    if (column->can & COFFER__CAN_IMAGE)
        return mostly_firsts ? COFFER_MLDF_IMAGE_PNG : COFFER_MLDF_IMAGE_JPEG;
    if (column->can & COFFER__CAN_AUDIO)
        return mostly_firsts ? COFFER_MLDF_AUDIO_COMPRESSED : COFFER_MLDF_AUDIO;
    if (column->can & COFFER__CAN_VIDEO)
        return COFFER_MLDF_VIDEO_COMPRESSED;
    if (column->can & COFFER__CAN_ARRAY && !column->arrays.mixed && column->arrays.seen)
        return COFFER_MLDF_NDARRAY;
    if (column->can & COFFER__CAN_TEXT)
        return COFFER_MLDF_TEXT;
    if (column->can & COFFER__CAN_JSON)
        return COFFER_MLDF_JSON;
    return column->can & COFFER__CAN_LIST ? COFFER_MLDF_TEXT_HIERARCHICAL : COFFER_MLDF_BYTES;
}

coffer_status coffer__columns_settle(coffer__dataset_schema *schema, coffer__columns *columns,
                                     uint64_t samples, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < columns->count; i++) {
        coffer__column *column = &columns->items[i];
        coffer_mldf_field *field;
        uint16_t type = settled_type(column, samples);
        column->field = schema->count;
        const char *name = column->field_name ? column->field_name : column->name;
        status = coffer__dataset_add_field(&field, schema, name,
                                           column->field_name ? strlen(name) : column->name_len, type, err);
        if (status)
            return status;
        if (coffer__dataset_is_array(type))
            status = coffer__array_facts_settle(field, &column->arrays, err);
        if (column->seen < samples && type != COFFER_MLDF_INT && type != COFFER_MLDF_FLOAT)
            field->flags |= COFFER_MLDF_FIELD_OPTIONAL;
    }
    return status;
}

static uint32_t sniff_array(coffer__column *column, const uint8_t *bytes, size_t size)
{
    coffer_source *src = NULL;
    if (coffer_source_from_memory(&src, bytes, size, NULL))
        return COFFER__CAN_BYTES;
    coffer__array_facts_add(&column->arrays, src);
    coffer_source_close(src);
    return COFFER__CAN_ARRAY | COFFER__CAN_BYTES;
}

uint32_t coffer__column_sniff(coffer__column *column, const uint8_t *bytes, size_t size)
{
    coffer_image_info image = COFFER_IMAGE_INFO_INIT;
    coffer_audio_info audio = COFFER_AUDIO_INFO_INIT;
    if (!coffer_image_probe(&image, bytes, size, NULL)) {
        column->firsts += image.kind != COFFER_IMAGE_JPEG;
        return COFFER__CAN_IMAGE | COFFER__CAN_BYTES;
    }
    if (coffer__npy_probe(bytes, size))
        return sniff_array(column, bytes, size);
    if (!coffer_audio_probe(&audio, bytes, size, NULL)) {
        column->firsts += audio.kind != COFFER_AUDIO_WAV;
        return COFFER__CAN_AUDIO | COFFER__CAN_BYTES;
    }
    return COFFER__CAN_BYTES | (coffer__utf8_valid(bytes, size) ? COFFER__CAN_TEXT : 0);
}
