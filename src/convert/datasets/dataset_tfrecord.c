/* TFRecord files of tf.train.Example messages: one sample a record, one field a feature. Records that are
 * something else become bytes. */
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "convert/datasets/dataset_columns.h"
#include "io/source_private.h"
#include "outside/records/tfrecord.h"

#include <inttypes.h>
#include <string.h>

static const char record_name[] = "record";

typedef struct record_input {
    coffer__dataset_input base;
    coffer_source *src;
    coffer_limits limits;
    coffer__byte_stream *stream;
    coffer__columns columns;
    bool is_bytes; /* the records are not tf.train.Example messages */
    coffer__tf_example example;
    coffer__buffer own;
    uint64_t number; /* of the record that was read last, counted from 1 */
} record_input;

static coffer_status record_rewind(coffer__dataset_input *base, coffer_error *err)
{
    record_input *input = (record_input *)base;
    coffer__byte_stream_close(input->stream);
    input->stream = NULL;
    input->number = 0;
    return coffer__byte_stream_open(&input->stream, input->src, &input->limits, err);
}

static coffer_status next_record(const uint8_t **bytes, size_t *size, record_input *input, coffer_error *err)
{
    coffer_status status =
        coffer__tfrecord_next(bytes, size, &input->own, input->stream, coffer__source_other_name(input->src),
                              input->number, &input->limits, err);
    if (!status && *bytes)
        input->number++;
    return status;
}

/* ---- Surveying the input ---- */

static uint32_t judge_bytes(coffer__column *column, const coffer__tf_feature *feature)
{
    const uint8_t *at = feature->list, *bytes;
    size_t size;
    uint32_t can = COFFER__CAN_LIST;
    if (feature->count == 1) {
        coffer__tf_next_bytes(&bytes, &size, &at, feature);
        can = coffer__column_sniff(column, bytes, size) & ~(uint32_t)COFFER__CAN_ARRAY;
        return coffer__utf8_valid(bytes, size) ? can | COFFER__CAN_LIST : can;
    }
    while (coffer__tf_next_bytes(&bytes, &size, &at, feature)) {
        if (!coffer__utf8_valid(bytes, size))
            can = 0;
    }
    return can;
}

static uint32_t judge_feature(coffer__column *column, const coffer__tf_feature *feature)
{
    bool one = feature->count == 1;
    if (feature->kind == COFFER__TF_BYTES)
        return judge_bytes(column, feature);
    bool is_float = feature->kind == COFFER__TF_FLOAT;
    coffer__array_facts_add_shape(&column->arrays, is_float ? COFFER_DTYPE_F32 : COFFER_DTYPE_I64,
                                  &feature->count, 1);
    return COFFER__CAN_ARRAY | (!one ? 0 : is_float ? COFFER__CAN_FLOAT : COFFER__CAN_INT);
}

static coffer_status fail_feature(const record_input *input, coffer_status status,
                                  const coffer__column *column, const char *what, coffer_error *err)
{
    return coffer__fail_other(err,
                              coffer__fail(err, status, COFFER_OFFSET_NONE,
                                           "record %" PRIu64 ": feature \"%s\" %s", input->number - 1,
                                           column->name, what),
                              coffer__source_other_name(input->src));
}

static coffer_status survey_example(record_input *input, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < input->example.count; i++) {
        const coffer__tf_feature *feature = &input->example.features[i];
        coffer__column *column;
        if (feature->kind == COFFER__TF_NONE || feature->count == 0)
            continue;
        status = coffer__columns_get(&column, &input->columns, feature->key, feature->key_len, &input->limits,
                                     err);
        if (status)
            break;
        if (column->last_sample == input->number)
            return fail_feature(input, COFFER_E_DUPLICATE, column, "occurs twice", err);
        uint32_t can = judge_feature(column, feature);
        if (can == 0 || (column->can & can) == 0)
            return fail_feature(input, COFFER_E_UNSUPPORTED, column,
                                "has values of different kinds, or several that are not text", err);
        coffer__column_see(column, input->number, can);
    }
    return status;
}

static coffer_status add_record_field(record_input *input, coffer_error *err)
{
    coffer_mldf_field *field;
    return coffer__dataset_add_field(&field, &input->base.schema, record_name, sizeof record_name - 1,
                                     COFFER_MLDF_BYTES, err);
}

static coffer_status survey(record_input *input, coffer_error *err)
{
    coffer_status status = record_rewind(&input->base, err);
    while (!status) {
        const uint8_t *bytes = NULL;
        size_t size = 0;
        status = next_record(&bytes, &size, input, err);
        if (status || !bytes)
            break;
        if (input->is_bytes)
            continue;
        status = coffer__tf_parse(&input->example, bytes, size, err);
        if (status == COFFER_E_BAD_VALUE && input->number == 1) {
            input->is_bytes = true;
            status = COFFER_OK;
            continue;
        }
        if (!status)
            status = survey_example(input, err);
    }
    input->base.count = input->number;
    if (!status && input->is_bytes)
        return add_record_field(input, err);
    return status ? status : coffer__columns_settle(&input->base.schema, &input->columns, input->number, err);
}

/* ---- Samples ---- */

static coffer_status take_numbers(coffer__dataset_value *value, const coffer__tf_feature *feature,
                                  coffer_error *err)
{
    bool is_float = feature->kind == COFFER__TF_FLOAT;
    size_t count = (size_t)feature->count, width = is_float ? 4 : 8;
    value->own.len = 0;
    uint8_t *to = coffer__buffer_extend(&value->own, count * width);
    if (!to)
        return coffer__fail_no_memory(err, count * width);
    if (is_float)
        coffer__tf_floats((float *)(void *)to, feature);
    else
        coffer__tf_int64s((int64_t *)(void *)to, feature);
    value->form = COFFER__DATASET_READY;
    value->bytes = to;
    value->size = count * width;
    value->dims[0] = count;
    return COFFER_OK;
}

/* Several texts: their number, where each ends, and their bytes. */
static coffer_status take_texts(coffer__dataset_value *value, const coffer__tf_feature *feature,
                                coffer_error *err)
{
    const uint8_t *at = feature->list, *bytes;
    size_t size, n = 0;
    uint64_t end = 0;
    value->own.len = 0;
    if (feature->count > UINT32_MAX / 8 || feature->list_len > UINT32_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%" PRIu64 " texts", feature->count);
    uint8_t *head = coffer__buffer_extend(&value->own, 4 * ((size_t)feature->count + 1));
    if (head)
        coffer__store_u32(head, (uint32_t)feature->count);
    while (coffer__tf_next_bytes(&bytes, &size, &at, feature)) {
        end += size;
        if (value->own.data)
            coffer__store_u32(value->own.data + 4 * ++n, (uint32_t)end);
        coffer__buffer_append(&value->own, bytes, size);
    }
    if (value->own.failed)
        return coffer__fail_no_memory(err, end);
    value->form = COFFER__DATASET_READY;
    value->bytes = value->own.data;
    value->size = value->own.len;
    return COFFER_OK;
}

static coffer_status take_feature(coffer__dataset_value *value, const coffer_mldf_field *field,
                                  const coffer__tf_feature *feature, coffer_error *err)
{
    const uint8_t *at = feature->list, *bytes;
    size_t size;
    if (field->type == COFFER_MLDF_INT || field->type == COFFER_MLDF_FLOAT) {
        float real = 0;
        value->form = COFFER__DATASET_SCALAR;
        if (feature->kind == COFFER__TF_INT64)
            coffer__tf_int64s(&value->i64, feature);
        else
            coffer__tf_floats(&real, feature);
        value->f64 = (double)real;
        return COFFER_OK;
    }
    if (field->type == COFFER_MLDF_NDARRAY)
        return take_numbers(value, feature, err);
    if (field->type == COFFER_MLDF_TEXT_HIERARCHICAL)
        return take_texts(value, feature, err);
    if (!coffer__tf_next_bytes(&bytes, &size, &at, feature))
        return COFFER_OK;
    value->form = COFFER__DATASET_FILE;
    return coffer__dataset_value_copy(value, bytes, size, err);
}

/* Compares a feature with the survey: the file may have changed since. */
static bool still_fits(const coffer_mldf_field *field, const coffer__tf_feature *feature)
{
    switch (field->type) {
    case COFFER_MLDF_INT:
        return feature->kind == COFFER__TF_INT64 && feature->count == 1;
    case COFFER_MLDF_FLOAT:
        return feature->kind == COFFER__TF_FLOAT && feature->count == 1;
    case COFFER_MLDF_NDARRAY:
        return feature->kind == (field->dtype == COFFER_DTYPE_F32 ? COFFER__TF_FLOAT : COFFER__TF_INT64);
    default:
        return feature->kind == COFFER__TF_BYTES;
    }
}

static coffer_status take_example(record_input *input, coffer__dataset_sample *sample, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < input->example.count; i++) {
        const coffer__tf_feature *feature = &input->example.features[i];
        const coffer__column *column = coffer__columns_find(&input->columns, feature->key, feature->key_len);
        if (!column || feature->kind == COFFER__TF_NONE || feature->count == 0)
            continue;
        const coffer_mldf_field *field = &input->base.schema.fields[column->field];
        if (!still_fits(field, feature))
            return fail_feature(input, COFFER_E_CHANGED, column, "has changed", err);
        status = take_feature(&sample->values[column->field], field, feature, err);
    }
    return status;
}

static coffer_status record_next(bool *more, coffer__dataset_sample *sample, coffer__dataset_input *base,
                                 coffer_error *err)
{
    record_input *input = (record_input *)base;
    const uint8_t *bytes = NULL;
    size_t size = 0;
    coffer_status status = next_record(&bytes, &size, input, err);
    *more = !status && bytes;
    if (!*more)
        return status;
    coffer__buffer_printf(&sample->name, "%s: record %" PRIu64, coffer_source_name(input->src),
                          input->number - 1);
    if (input->is_bytes) {
        sample->values[0].form = COFFER__DATASET_READY;
        return coffer__dataset_value_copy(&sample->values[0], bytes, size, err);
    }
    status = coffer__tf_parse(&input->example, bytes, size, err);
    return status ? status : take_example(input, sample, err);
}

static void record_close(coffer__dataset_input *base)
{
    record_input *input = (record_input *)base;
    coffer__byte_stream_close(input->stream);
    coffer__columns_free(&input->columns);
    coffer__tf_free(&input->example);
    coffer__buffer_free(&input->own);
    coffer__dataset_input_free(base);
}

coffer_status coffer__dataset_open_tfrecord(coffer__dataset_input **out, coffer_source *src,
                                            const coffer_limits *limits, coffer_error *err)
{
    record_input *input = NULL;
    coffer_status status = coffer__dataset_input_new(&input, sizeof *input, err);
    if (status)
        return status;
    input->base.next = record_next;
    input->base.rewind = record_rewind;
    input->base.close = record_close;
    input->src = src;
    input->limits = coffer__limits(limits);
    coffer__buffer_init(&input->own, SIZE_MAX);
    status = survey(input, err);
    if (!status)
        status = record_rewind(&input->base, err);
    if (status) {
        record_close(&input->base);
        return status;
    }
    *out = &input->base;
    return COFFER_OK;
}
