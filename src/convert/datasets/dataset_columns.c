#include "convert/datasets/dataset_columns.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "convert/datasets/dataset_input.h"
#include "io/file.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdlib.h>
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

/* An input whose texts in one column get numbers: the values, sorted, are counted from 0, and a field "label"
 * has the number of each sample. */

typedef struct label {
    const char *text;
    size_t len;
} label;

typedef struct label_input {
    coffer__dataset_input base;
    coffer__dataset_input *inner;
    size_t column, field; /* of the texts, of the numbers */
    coffer__arena texts;
    label *labels; /* sorted, each once */
    size_t count, capacity;
} label_input;

static int compare_labels(const void *a, const void *b)
{
    const label *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static coffer_status labels_next(bool *more, coffer__dataset_sample *sample, coffer__dataset_input *base,
                                 coffer_error *err)
{
    label_input *input = (label_input *)base;
    coffer_status status = input->inner->next(more, sample, input->inner, err);
    if (status || !*more)
        return status;
    const coffer__dataset_value *text = &sample->values[input->column];
    coffer__dataset_value *number = &sample->values[input->field];
    const label wanted = { (const char *)text->bytes, text->size };
    const label *found = text->form == COFFER__DATASET_ABSENT
                             ? NULL
                             : bsearch(&wanted, input->labels, input->count, sizeof wanted, compare_labels);
    number->form = COFFER__DATASET_SCALAR;
    number->i64 = found ? found - input->labels : -1;
    return COFFER_OK;
}

static coffer_status labels_load(coffer__dataset_sample *sample, const coffer__dataset_input *base,
                                 coffer_error *err)
{
    const label_input *input = (const label_input *)base;
    return input->inner->load ? input->inner->load(sample, input->inner, err) : COFFER_OK;
}

static coffer_status labels_rewind(coffer__dataset_input *base, coffer_error *err)
{
    label_input *input = (label_input *)base;
    return input->inner->rewind(input->inner, err);
}

static void labels_close(coffer__dataset_input *base)
{
    label_input *input = (label_input *)base;
    coffer__dataset_input_close(input->inner);
    coffer__arena_free(&input->texts);
    coffer__free(input->labels);
    coffer__dataset_input_free(base);
}

static coffer_status note_label(label_input *input, const coffer__dataset_value *value, coffer_error *err)
{
    if (value->form == COFFER__DATASET_ABSENT)
        return COFFER_OK;
    coffer_status status =
        coffer__array_reserve_one(&input->labels, &input->capacity, input->count, sizeof *input->labels, err);
    if (status)
        return status;
    char *copy = coffer__arena_text(&input->texts, (const char *)value->bytes, value->size);
    if (!copy)
        return coffer__fail_no_memory(err, value->size);
    input->labels[input->count++] = (label){ copy, value->size };
    return COFFER_OK;
}

static void sort_labels(label_input *input)
{
    size_t kept = 0;
    if (input->count)
        qsort(input->labels, input->count, sizeof *input->labels, compare_labels);
    for (size_t i = 0; i < input->count; i++)
        if (kept == 0 || compare_labels(&input->labels[kept - 1], &input->labels[i]) != 0)
            input->labels[kept++] = input->labels[i];
    input->count = kept;
}

/* Reads all samples once for their labels. */
static coffer_status survey(label_input *input, coffer_error *err)
{
    size_t fields = input->inner->schema.count;
    coffer__dataset_value *values = coffer__calloc(fields + 1, sizeof *values);
    coffer__dataset_sample sample = { .values = values };
    bool more = true;
    coffer__buffer_init(&sample.name, SIZE_MAX);
    coffer_status status = values ? COFFER_OK : coffer__fail_no_memory(err, fields * sizeof *values);
    for (size_t f = 0; values && f < fields; f++)
        coffer__buffer_init(&values[f].own, SIZE_MAX);
    while (!status && more) {
        sample.name.len = 0;
        for (size_t f = 0; f < fields; f++) {
            values[f].form = COFFER__DATASET_ABSENT;
            values[f].own.len = 0;
        }
        status = input->inner->next(&more, &sample, input->inner, err);
        if (!status && more)
            status = note_label(input, &values[input->column], err);
        sample.index++;
    }
    for (size_t f = 0; values && f < fields; f++)
        coffer__buffer_free(&values[f].own);
    coffer__buffer_free(&sample.name);
    coffer__free(values);
    sort_labels(input);
    return status ? status : input->inner->rewind(input->inner, err);
}

static coffer_status copy_schema(label_input *input, const char *column, coffer_error *err)
{
    const coffer__dataset_schema *from = &input->inner->schema;
    coffer_mldf_field *field = NULL;
    coffer_status status = COFFER_OK;
    input->column = SIZE_MAX;
    for (size_t i = 0; i < from->count && !status; i++) {
        const coffer_mldf_field *old = &from->fields[i];
        status = coffer__dataset_add_field(&field, &input->base.schema, old->name, strlen(old->name),
                                           old->type, err);
        if (status)
            break;
        const char *name = field->name;
        *field = *old;
        field->name = name;
        if (strcmp(name, column) == 0 && old->type == COFFER_MLDF_TEXT)
            input->column = i;
        if (strcmp(name, "label") == 0)
            status = coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                                  "the input has a field \"label\" already, where the numbers would go");
    }
    if (!status && input->column == SIZE_MAX)
        status = coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                              "no text field \"%s\" whose values could be numbered", column);
    input->field = from->count;
    return status ? status
                  : coffer__dataset_add_field(&field, &input->base.schema, "label", 5, COFFER_MLDF_INT, err);
}

coffer_status coffer__dataset_number_labels(coffer__dataset_input **input, const char *column,
                                            coffer_error *err)
{
    label_input *labels = NULL;
    coffer_status status = coffer__dataset_input_new(&labels, sizeof *labels, err);
    if (status)
        return status;
    coffer__dataset_input *inner = *input;
    labels->inner = inner;
    status = copy_schema(labels, column, err);
    if (!status)
        status = survey(labels, err);
    if (status) {
        labels->inner = NULL;
        labels_close(&labels->base);
        return status;
    }
    labels->base.next = labels_next;
    labels->base.load = labels_load;
    labels->base.rewind = labels_rewind;
    labels->base.close = labels_close;
    labels->base.unit = inner->unit;
    labels->base.found = inner->found;
    labels->base.count = inner->count;
    labels->base.bytes = inner->bytes;
    labels->base.note = inner->note;
    labels->base.kept_as_text = inner->kept_as_text;
    labels->base.shares_payloads = true;
    labels->base.class_count = labels->count;
    for (size_t i = 0; !status && i < inner->left_out_count; i++)
        status = coffer__dataset_leave_out(&labels->base, inner->left_out[i].name, inner->left_out[i].code,
                                           inner->left_out[i].text, inner->left_out[i].expected, err);
    coffer__digest_add(labels->base.seen, column, strlen(column) + 1);
    *input = &labels->base;
    return status;
}
