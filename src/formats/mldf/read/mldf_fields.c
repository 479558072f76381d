/* The field descriptors: what they say, how far apart they stand, and the row that follows from them. */
#include "formats/mldf/mldf_private.h"

#include "base/checked.h"
#include "base/dtype.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PAD_AT 72
#define TAIL_SIZE (COFFER__MLDF_STRIDE - COFFER__MLDF_STRIDE_TUTORIAL)

/* The descriptors as bytes, before their stride is known. */
typedef struct raw_fields {
    const coffer__mldf_header *header;
    uint64_t file_size;
    uint8_t *bytes;
    size_t len; /* count × 208, or what the file has of it */
} raw_fields;

/* ---- One descriptor ---- */

static coffer_status read_name(char out[COFFER__MLDF_NAME_SIZE], const uint8_t *at, size_t index,
                               uint64_t place, coffer_error *err)
{
    size_t len = strnlen((const char *)at, COFFER__MLDF_NAME_SIZE);
    if (len == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place, "field %zu has no name", index);
    if (len == COFFER__MLDF_NAME_SIZE)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place,
                            "the name of field %zu has no end within %d bytes", index,
                            COFFER__MLDF_NAME_SIZE);
    if (!coffer__utf8_valid(at, len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, place, "the name of field %zu is not UTF-8", index);
    memset(out, 0, COFFER__MLDF_NAME_SIZE);
    memcpy(out, at, len);
    return COFFER_OK;
}

static coffer_status read_array(coffer_mldf_field *field, const uint8_t *arguments, uint64_t place,
                                coffer_error *err)
{
    coffer_dtype dtype = coffer__dtype_of_code(arguments[0]);
    if (dtype == COFFER_DTYPE_NONE)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place, "field %s: element type %u is not known",
                            field->name, arguments[0]);
    if (arguments[1] > COFFER_MLDF_MAX_DIMS)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place + 1, "field %s: %u dimensions, at most %d",
                            field->name, arguments[1], COFFER_MLDF_MAX_DIMS);
    field->dtype = dtype;
    field->ndim = arguments[1];
    for (uint32_t d = 0; d < field->ndim; d++)
        field->dims[d] = coffer__load_u64(arguments + COFFER__MLDF_DIMS_AT + d * sizeof(uint64_t));
    return COFFER_OK;
}

/* Which arguments count depends on the type; every type may have a dictionary. */
static coffer_status read_arguments(coffer_mldf_field *field, const uint8_t *arguments, uint64_t place,
                                    coffer_error *err)
{
    const coffer__mldf_type_info *info = coffer__mldf_type_info_of(field->type);
    if (!info || field->kind == COFFER_MLDF_ENTRY_OPAQUE)
        return COFFER_OK;
    field->dictionary_offset = coffer__load_u64(arguments + COFFER__MLDF_DICTIONARY_AT);
    field->dictionary_size = coffer__load_u32(arguments + COFFER__MLDF_DICTIONARY_AT + 8);
    if (field->type == COFFER_MLDF_IMAGE_JPEG)
        field->jpeg_quality = arguments[0];
    if (field->kind == COFFER_MLDF_ENTRY_AUDIO)
        field->sample_rate = coffer__load_u32(arguments);
    return info->has_array ? read_array(field, arguments, place, err) : COFFER_OK;
}

/* out->name : room for the name. */
static coffer_status read_descriptor(coffer_mldf_field *out, char name[COFFER__MLDF_NAME_SIZE],
                                     const uint8_t *at, size_t index, uint64_t place, coffer_error *err)
{
    coffer_mldf_field field = COFFER_MLDF_FIELD_INIT;
    const coffer__mldf_type_info *info;
    coffer_status status = read_name(name, at, index, place, err);
    field.name = name;
    field.type = coffer__load_u16(at + COFFER__MLDF_FIELD_TYPE_AT);
    field.flags = coffer__load_u16(at + COFFER__MLDF_FIELD_FLAGS_AT);
    field.row_size = coffer__load_u32(at + COFFER__MLDF_FIELD_ROW_SIZE_AT);
    info = coffer__mldf_type_info_of(field.type);
    if (info && coffer__mldf_entry_size(info->kind) == field.row_size)
        field.kind = info->kind;
    *out = field;
    if (status)
        return status;
    if (field.row_size == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place + COFFER__MLDF_FIELD_ROW_SIZE_AT,
                            "field %s takes no bytes in the row", name);
    return read_arguments(out, at + COFFER__MLDF_ARGUMENTS_AT, place + COFFER__MLDF_ARGUMENTS_AT, err);
}

bool coffer__mldf_lay_out_row(uint32_t *row_size, coffer_mldf_field *fields, size_t count)
{
    uint64_t at = 0, widest = 1;
    for (size_t i = 0; i < count; i++) {
        const coffer__mldf_type_info *info = coffer__mldf_type_info_of(fields[i].type);
        if (fields[i].row_size == 0 && info)
            fields[i].row_size = coffer__mldf_entry_size(info->kind);
        if (info && fields[i].row_size == coffer__mldf_entry_size(info->kind))
            fields[i].kind = info->kind;
        uint64_t alignment = coffer__mldf_alignment_of(fields[i].row_size);
        if (alignment > widest)
            widest = alignment;
        at = (at + alignment - 1) & ~(alignment - 1);
        if (at > UINT32_MAX)
            return false;
        fields[i].row_offset = (uint32_t)at;
        at += fields[i].row_size;
    }
    at = (at + widest - 1) & ~(widest - 1);
    if (at > UINT32_MAX)
        return false;
    *row_size = (uint32_t)at;
    return true;
}

/* ---- The stride ---- */

uint64_t coffer__mldf_next_part(const coffer__mldf_header *header, uint64_t offset, uint64_t file_size)
{
    uint64_t parts[] = { header->descriptors, header->metadata, header->data, header->table };
    uint64_t next = file_size;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i] > offset && parts[i] < next)
            next = parts[i];
    }
    return next;
}

static bool all_zero(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i])
            return false;
    }
    return true;
}

/* How well the bytes suit a stride. */
typedef struct fit {
    size_t whole; /* descriptors before the first that makes no sense; count + 1 when the rows do as well */
    bool odd;     /* all make sense, and yet something is not as a writer would leave it */
    bool leaves_gap; /* of the next part */
} fit;

static bool is_odd(const coffer_mldf_field *field, const uint8_t *at, uint32_t stride)
{
    size_t name_len = strlen(field->name);
    return field->kind == COFFER_MLDF_ENTRY_OPAQUE ||
           !all_zero(at + name_len, COFFER__MLDF_NAME_SIZE - name_len) ||
           coffer__load_u32(at + PAD_AT) != 0 ||
           (stride == COFFER__MLDF_STRIDE && !all_zero(at + COFFER__MLDF_STRIDE_TUTORIAL, TAIL_SIZE));
}

/* The widths of the fields as they come, as coffer__mldf_lay_out_row lays them out. */
typedef struct row_width {
    uint64_t at, widest;
} row_width;

static void widen(row_width *row, uint32_t entry_size)
{
    uint64_t alignment = coffer__mldf_alignment_of(entry_size);
    row->at = ((row->at + alignment - 1) & ~(alignment - 1)) + entry_size;
    if (alignment > row->widest)
        row->widest = alignment;
}

/* No overflow: 65535 entries of less than 4 GiB each. */
static uint64_t finished_width(const row_width *row)
{
    return (row->at + row->widest - 1) & ~(row->widest - 1);
}

static fit fit_of(const raw_fields *raw, uint32_t stride)
{
    const coffer__mldf_header *header = raw->header;
    row_width row = { 0, 1 };
    fit found = { 0, false, false };
    uint64_t end = header->descriptors + (uint64_t)header->fields * stride, rows = 0;
    uint64_t next = coffer__mldf_next_part(header, header->descriptors, raw->file_size);
    if ((uint64_t)header->fields * stride > raw->len)
        return found;
    for (; found.whole < header->fields; found.whole++) {
        const uint8_t *at = raw->bytes + found.whole * stride;
        char name[COFFER__MLDF_NAME_SIZE];
        coffer_mldf_field field;
        if (read_descriptor(&field, name, at, found.whole, 0, NULL) != COFFER_OK)
            return found;
        widen(&row, field.row_size);
        found.odd = found.odd || is_odd(&field, at, stride);
    }
    found.odd = found.odd || end > next;
    found.leaves_gap = end < next;
    if (coffer__mul_u64(&rows, header->samples, finished_width(&row)) &&
        coffer__range_fits(header->metadata, rows,
                           coffer__mldf_next_part(header, header->metadata, raw->file_size)))
        found.whole++;
    return found;
}

/* 208, unless 204 makes more sense. One field alone looks the same both ways: then rows that follow the
 * descriptors are those of the tutorial's writer, which uses 204; ours puts the data there. */
static uint32_t find_stride(const raw_fields *raw)
{
    const coffer__mldf_header *header = raw->header;
    fit ours = fit_of(raw, COFFER__MLDF_STRIDE), tutorial = fit_of(raw, COFFER__MLDF_STRIDE_TUTORIAL);
    uint64_t next = coffer__mldf_next_part(header, header->descriptors, raw->file_size);
    bool rows_follow = next == header->metadata && next != header->data;
    if (header->fields == 0)
        return COFFER__MLDF_STRIDE;
    if ((uint64_t)header->fields * COFFER__MLDF_STRIDE > raw->len)
        return COFFER__MLDF_STRIDE_TUTORIAL;
    if (ours.whole != tutorial.whole)
        return ours.whole > tutorial.whole ? COFFER__MLDF_STRIDE : COFFER__MLDF_STRIDE_TUTORIAL;
    if (ours.odd != tutorial.odd)
        return tutorial.odd ? COFFER__MLDF_STRIDE : COFFER__MLDF_STRIDE_TUTORIAL;
    return header->fields == 1 && rows_follow && ours.leaves_gap ? COFFER__MLDF_STRIDE_TUTORIAL
                                                                 : COFFER__MLDF_STRIDE;
}

/* A file that ends inside the last descriptors: without them only the stride of the tutorial is left, which
 * must make sense then. */
static coffer_status expect_whole(const raw_fields *raw, coffer_error *err)
{
    uint64_t len = (uint64_t)raw->header->fields * COFFER__MLDF_STRIDE;
    if (len <= raw->len || fit_of(raw, COFFER__MLDF_STRIDE_TUTORIAL).whole >= raw->header->fields)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_TRUNCATED, raw->file_size,
                        "%u field descriptors take %" PRIu64 " bytes at %" PRIu64 ", file has %" PRIu64,
                        raw->header->fields, len, raw->header->descriptors, raw->file_size);
}

/* ---- All of them ---- */

static int compare_names(const void *a, const void *b, void *context)
{
    const coffer_mldf_field *fields = context;
    size_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = strcmp(fields[x].name, fields[y].name);
    return order ? order : (x > y) - (x < y);
}

static coffer_status sort_names(coffer__mldf_schema *schema, const coffer__mldf_header *header,
                                coffer_report *report, coffer_error *err)
{
    for (size_t i = 0; i < schema->count; i++)
        schema->sorted[i] = (uint32_t)i;
    qsort_r(schema->sorted, schema->count, sizeof *schema->sorted, compare_names, schema->fields);
    for (size_t i = 1; i < schema->count; i++) {
        size_t a = schema->sorted[i - 1], b = schema->sorted[i];
        coffer_error found;
        if (strcmp(schema->fields[a].name, schema->fields[b].name) != 0)
            continue;
        coffer__fail(&found, COFFER_E_DUPLICATE, header->descriptors + b * schema->stride,
                     "fields %zu and %zu have the same name: %s", a, b, schema->fields[a].name);
        if (!report)
            return coffer__fail_copy(err, &found);
        coffer__report_add_error(report, COFFER_ERROR, &found);
    }
    return COFFER_OK;
}

static coffer_status take_fields(coffer__mldf_schema *schema, const raw_fields *raw, coffer_report *report,
                                 coffer_error *err)
{
    for (size_t i = 0; i < schema->count; i++) {
        char *name = schema->names + i * COFFER__MLDF_NAME_SIZE;
        coffer_error found = COFFER_ERROR_INIT;
        coffer_status status = read_descriptor(&schema->fields[i], name, raw->bytes + i * schema->stride, i,
                                               raw->header->descriptors + i * schema->stride, &found);
        if (!status)
            continue;
        if (!report)
            return coffer__fail_copy(err, &found);
        coffer__report_add_error(report, COFFER_ERROR, &found);
        if (name[0] == 0)
            snprintf(name, COFFER__MLDF_NAME_SIZE, "#%zu", i);
    }
    if (!coffer__mldf_lay_out_row(&schema->row_size, schema->fields, schema->count))
        return coffer__fail(err, COFFER_E_BAD_VALUE, raw->header->descriptors,
                            "the %zu fields make a row of more than 4 GiB", schema->count);
    return sort_names(schema, raw->header, report, err);
}

static coffer_status read_raw(raw_fields *raw, coffer_source *src, const coffer_limits *limits,
                              coffer_error *err)
{
    const coffer__mldf_header *header = raw->header;
    uint64_t left;
    coffer_status status = coffer__mldf_check_descriptors(header, raw->file_size, err);
    if (status)
        return status;
    if (header->fields > limits->entries)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER__MLDF_HEADER_AT + COFFER__MLDF_FIELDS_AT,
                            "%u fields, the limit is %" PRIu64, header->fields, limits->entries);
    left = raw->file_size - header->descriptors;
    raw->len = (size_t)header->fields * COFFER__MLDF_STRIDE;
    if (raw->len > left)
        raw->len = (size_t)left;
    raw->bytes = coffer__malloc(raw->len);
    if (!raw->bytes)
        return coffer__fail_no_memory(err, raw->len);
    return coffer_source_read_at(raw->bytes, src, header->descriptors, raw->len, err);
}

coffer_status coffer__mldf_read_schema(coffer__mldf_schema *out, coffer_source *src,
                                       const coffer__mldf_header *header, const coffer_limits *limits,
                                       coffer_report *report, coffer_error *err)
{
    raw_fields raw = { .header = header, .file_size = coffer_source_size(src) };
    coffer__mldf_schema schema = { .count = header->fields };
    coffer_status status = read_raw(&raw, src, limits, err);
    if (!status)
        status = expect_whole(&raw, err);
    if (status)
        goto out;
    schema.stride = find_stride(&raw);
    schema.fields = coffer__calloc(schema.count, sizeof *schema.fields);
    schema.names = coffer__calloc(schema.count, COFFER__MLDF_NAME_SIZE);
    schema.sorted = coffer__alloc_array(schema.count, sizeof *schema.sorted);
    if (!schema.fields || !schema.names || !schema.sorted) {
        status = coffer__fail_no_memory(err, schema.count * sizeof *schema.fields);
        goto out;
    }
    status = take_fields(&schema, &raw, report, err);
out:
    coffer__free(raw.bytes);
    if (status)
        coffer__mldf_schema_free(&schema);
    else
        *out = schema;
    return status;
}

void coffer__mldf_schema_free(coffer__mldf_schema *schema)
{
    coffer__free(schema->fields);
    coffer__free(schema->names);
    coffer__free(schema->sorted);
    *schema = (coffer__mldf_schema){ 0 };
}
