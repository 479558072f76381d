/* An input whose texts in one column get numbers: the values, sorted, are counted from 0, and a field "label"
 * has the number of each sample. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/datasets/dataset_input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
