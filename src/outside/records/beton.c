#include "outside/records/beton.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/source_private.h"
#include "outside/arrays/npy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 2,
    HEADER_SIZE = 24,
    FIELD_SIZE = 1041,
    NAME_SIZE = 16,
    ARGUMENTS_AT = 17,
    ARGUMENTS_SIZE = 1024,
    SHAPE_DIMS = 32,
    DESCRIPTION_AT = 8 * SHAPE_DIMS + 8, /* within the arguments */
    ALLOCATION_SIZE = 24,
    MODE_JPEG = 0,
    MODE_RAW = 1,
    IMAGE_ENTRY = 13,
    BYTES_ENTRY = 16
};

bool coffer__beton_probe(const uint8_t *head, size_t len)
{
    if (len < HEADER_SIZE)
        return false;
    uint32_t page = coffer__load_u32(head + 4);
    return coffer__load_u16(head) == VERSION && coffer__load_u16(head + 2) > 0 && page >= 1u << 21 &&
           (page & (page - 1)) == 0 && coffer__load_u64(head + 16) >= HEADER_SIZE + FIELD_SIZE;
}

static coffer_status fail_at(const coffer__beton *beton, coffer_status status, uint64_t offset,
                             const char *what, uint64_t number, coffer_error *err)
{
    return coffer__fail_other(err, coffer__fail(err, status, offset, "%s (%" PRIu64 ")", what, number),
                              coffer__source_other_name(beton->src));
}

/* ---- Fields ---- */

/* [["", "<f4"]] */
static coffer_status read_description(coffer__beton_field *field, const uint8_t *arguments, uint64_t offset,
                                      coffer_error *err)
{
    uint64_t len = coffer__load_u64(arguments + 8 * SHAPE_DIMS);
    coffer__json *json = NULL;
    coffer__npy_field type = { .elements = 1 };
    const char *text = "";
    if (len > ARGUMENTS_SIZE - DESCRIPTION_AT)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, offset,
                            "field \"%s\": a type description of %" PRIu64 " bytes", field->name, len);
    coffer_status status =
        coffer__json_parse(&json, (const char *)arguments + DESCRIPTION_AT, (size_t)len, offset, NULL, err);
    if (status)
        return status;
    const coffer__json_value *entry = coffer__json_first(coffer__json_root(json));
    if (coffer__json_root(json)->as.count == 1 && entry && entry->kind == COFFER__JSON_ARRAY &&
        entry->as.count == 2) {
        const coffer__json_value *name = coffer__json_first(entry);
        const coffer__json_value *value = name ? coffer__json_next(entry, name) : NULL;
        if (value && value->kind == COFFER__JSON_STRING)
            text = value->as.string;
    }
    if ((text[0] == '<' || text[0] == '|') && text[1]) {
        type.kind = text[1];
        type.size = strtoul(text + 2, NULL, 10);
        field->dtype = coffer__npy_dtype(&type);
    }
    if (field->dtype == COFFER_DTYPE_NONE)
        status = coffer__fail(err, COFFER_E_UNSUPPORTED, offset, "field \"%s\": elements of type \"%s\"",
                              field->name, text);
    coffer__json_free(json);
    return status;
}

static coffer_status read_shape(coffer__beton_field *field, const uint8_t *arguments, uint64_t offset,
                                coffer_error *err)
{
    coffer_status status = read_description(field, arguments, offset, err);
    if (status)
        return status;
    field->size = coffer_dtype_size(field->dtype);
    while (field->ndim < SHAPE_DIMS && coffer__load_u64(arguments + 8 * field->ndim)) {
        uint64_t dim = coffer__load_u64(arguments + 8 * field->ndim);
        if (field->ndim == COFFER__BETON_MAX_DIMS || !coffer__mul_u64(&field->size, field->size, dim))
            return coffer__fail(err, COFFER_E_LIMIT, offset, "field \"%s\": a shape that is too large",
                                field->name);
        field->dims[field->ndim++] = dim;
    }
    return COFFER_OK;
}

static coffer_status read_field(coffer__beton *beton, size_t index, uint32_t *row, bool *aligned,
                                coffer_error *err)
{
    uint8_t bytes[FIELD_SIZE];
    uint64_t offset = HEADER_SIZE + (uint64_t)index * FIELD_SIZE;
    coffer__beton_field *field = &beton->fields[index];
    coffer_status status = coffer_source_read_at(bytes, beton->src, offset, FIELD_SIZE, err);
    if (status)
        return status;
    memcpy(field->name, bytes + 1, NAME_SIZE);
    field->type = bytes[0];
    bool is_array = field->type == COFFER__BETON_ARRAY || field->type == COFFER__BETON_TENSOR;
    if (bytes[0] > COFFER__BETON_TENSOR)
        return fail_at(beton, COFFER_E_UNSUPPORTED, offset, "a field of a custom type", bytes[0], err);
    if (is_array)
        status = read_shape(field, bytes + ARGUMENTS_AT, offset, err);
    if (is_array || field->type == COFFER__BETON_INT || field->type == COFFER__BETON_FLOAT) {
        *row = (*row + 7) / 8 * 8;
        *aligned = true;
    }
    field->row_offset = *row;
    *row += field->type == COFFER__BETON_IMAGE                                        ? IMAGE_ENTRY
            : field->type == COFFER__BETON_BYTES || field->type == COFFER__BETON_JSON ? BYTES_ENTRY
                                                                                      : 8;
    return status;
}

static coffer_status read_fields(coffer__beton *beton, size_t count, coffer_error *err)
{
    uint32_t row = 0;
    bool aligned = false;
    coffer_status status = COFFER_OK;
    beton->fields = coffer__calloc(count ? count : 1, sizeof *beton->fields);
    if (!beton->fields)
        return coffer__fail_no_memory(err, count * sizeof *beton->fields);
    beton->field_count = count;
    for (size_t i = 0; !status && i < count; i++)
        status = read_field(beton, i, &row, &aligned, err);
    beton->row_size = aligned ? (row + 7) / 8 * 8 : row;
    return status;
}

/* ---- The allocation table ---- */

static int compare_places(const void *a, const void *b)
{
    const coffer__beton_allocation *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

static coffer_status read_table(coffer__beton *beton, uint64_t at, const coffer_limits *limits,
                                coffer_error *err)
{
    uint64_t size = coffer_source_size(beton->src);
    if (at > size || (size - at) % ALLOCATION_SIZE)
        return fail_at(beton, COFFER_E_OUT_OF_BOUNDS, 16, "no room for an allocation table", at, err);
    uint64_t count = (size - at) / ALLOCATION_SIZE;
    if (count > limits->entries)
        return fail_at(beton, COFFER_E_LIMIT, at, "too many allocations", count, err);
    beton->allocations = coffer__alloc_array(count ? (size_t)count : 1, sizeof *beton->allocations);
    if (!beton->allocations)
        return coffer__fail_no_memory(err, count * sizeof *beton->allocations);
    for (uint64_t done = 0; done < count;) {
        uint8_t bytes[ALLOCATION_SIZE * 512];
        size_t part = count - done < 512 ? (size_t)(count - done) : 512;
        coffer_status status = coffer_source_read_at(bytes, beton->src, at + done * ALLOCATION_SIZE,
                                                     part * ALLOCATION_SIZE, err);
        if (status)
            return status;
        for (size_t i = 0; i < part; i++)
            beton->allocations[done + i] =
                (coffer__beton_allocation){ coffer__load_u64(bytes + i * ALLOCATION_SIZE + 8),
                                            coffer__load_u64(bytes + i * ALLOCATION_SIZE + 16) };
        done += part;
    }
    beton->allocation_count = (size_t)count;
    qsort(beton->allocations, beton->allocation_count, sizeof *beton->allocations, compare_places);
    return COFFER_OK;
}

static coffer_status read_parts(coffer__beton *beton, const coffer_limits *limits, coffer_error *err)
{
    uint8_t head[HEADER_SIZE];
    uint64_t size = coffer_source_size(beton->src), rows;
    if (size < HEADER_SIZE)
        return fail_at(beton, COFFER_E_TRUNCATED, size, "too short for a header", size, err);
    coffer_status status = coffer_source_read_at(head, beton->src, 0, HEADER_SIZE, err);
    if (status)
        return status;
    if (coffer__load_u16(head) != VERSION)
        return fail_at(beton, COFFER_E_UNSUPPORTED_VERSION, 0, "this version cannot be read",
                       coffer__load_u16(head), err);
    uint16_t count = coffer__load_u16(head + 2);
    beton->samples = coffer__load_u64(head + 8);
    beton->rows_at = HEADER_SIZE + (uint64_t)count * FIELD_SIZE;
    if (beton->rows_at > size)
        return fail_at(beton, COFFER_E_TRUNCATED, 2, "no room for its fields", count, err);
    status = read_fields(beton, count, err);
    if (status)
        return status;
    if (!coffer__mul_u64(&rows, beton->samples, beton->row_size) ||
        !coffer__range_fits(beton->rows_at, rows, size) || (beton->row_size == 0 && beton->samples))
        return fail_at(beton, COFFER_E_OUT_OF_BOUNDS, 8, "no room for its samples", beton->samples, err);
    return read_table(beton, coffer__load_u64(head + 16), limits, err);
}

coffer_status coffer__beton_open(coffer__beton *out, coffer_source *src, const coffer_limits *limits,
                                 coffer_error *err)
{
    coffer_limits known = coffer__limits(limits);
    *out = (coffer__beton){ .src = src };
    coffer_status status = read_parts(out, &known, err);
    if (status)
        coffer__beton_close(out);
    return status;
}

void coffer__beton_close(coffer__beton *beton)
{
    coffer__free(beton->fields);
    coffer__free(beton->allocations);
    *beton = (coffer__beton){ 0 };
}

/* ---- Values ---- */

static uint64_t allocated_size(const coffer__beton *beton, uint64_t place)
{
    coffer__beton_allocation key = { place, 0 };
    const coffer__beton_allocation *found = beton->allocation_count
                                                ? bsearch(&key, beton->allocations, beton->allocation_count,
                                                          sizeof *beton->allocations, compare_places)
                                                : NULL;
    return found ? found->size : UINT64_MAX;
}

static coffer_status image_of(coffer__beton_value *out, const coffer__beton *beton, const uint8_t *at,
                              uint64_t sample, coffer_error *err)
{
    uint8_t mode = at[0];
    out->width = coffer__load_u16(at + 1);
    out->height = coffer__load_u16(at + 3);
    out->place = coffer__load_u64(at + 5);
    out->raw = mode == MODE_RAW;
    out->size = out->raw ? (uint64_t)out->width * out->height * 3 : allocated_size(beton, out->place);
    if (mode > MODE_RAW)
        return fail_at(beton, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "a picture of unknown mode in sample",
                       sample, err);
    if (out->size == UINT64_MAX)
        return fail_at(beton, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                       "a picture that is not in the allocation table in sample", sample, err);
    return COFFER_OK;
}

coffer_status coffer__beton_value_of(coffer__beton_value *out, const coffer__beton *beton, const uint8_t *row,
                                     uint64_t sample, size_t field, coffer_error *err)
{
    const coffer__beton_field *facts = &beton->fields[field];
    const uint8_t *at = row + facts->row_offset;
    coffer_status status = COFFER_OK;
    *out = (coffer__beton_value){ 0 };
    uint64_t bits = 0;
    switch (facts->type) {
    case COFFER__BETON_FLOAT:
        bits = coffer__load_u64(at);
        memcpy(&out->f64, &bits, sizeof bits);
        return COFFER_OK;
    case COFFER__BETON_INT:
        out->i64 = (int64_t)coffer__load_u64(at);
        return COFFER_OK;
    case COFFER__BETON_IMAGE:
        status = image_of(out, beton, at, sample, err);
        break;
    case COFFER__BETON_BYTES:
    case COFFER__BETON_JSON:
        out->place = coffer__load_u64(at);
        out->size = coffer__load_u64(at + 8);
        break;
    case COFFER__BETON_ARRAY:
    case COFFER__BETON_TENSOR:
        out->place = coffer__load_u64(at);
        out->size = facts->size;
        break;
    }
    if (!status && !coffer__range_fits(out->place, out->size, coffer_source_size(beton->src)))
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, out->place,
                                               "sample %" PRIu64 ", field \"%s\": %" PRIu64
                                               " bytes at %" PRIu64 ", the file has %" PRIu64,
                                               sample, facts->name, out->size, out->place,
                                               coffer_source_size(beton->src)),
                                  coffer__source_other_name(beton->src));
    return status;
}
