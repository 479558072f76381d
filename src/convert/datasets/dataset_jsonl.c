/* JSON lines: one sample a line, one field a key. */
#include "base/fail.h"
#include "base/json_write.h"
#include "base/options.h"
#include "convert/datasets/dataset_columns.h"
#include "convert/datasets/mldf_export.h"
#include "outside/text/jsonl.h"

#include <inttypes.h>
#include <string.h>

typedef struct jsonl_input {
    coffer__manifest manifest;
    coffer__jsonl_reader *reader;
} jsonl_input;

static coffer_status jsonl_rewind(coffer__dataset_input *base, coffer_error *err)
{
    jsonl_input *input = (jsonl_input *)base;
    coffer__jsonl_close(input->reader);
    input->reader = NULL;
    input->manifest.sample = 0;
    return coffer__jsonl_open(&input->reader, input->manifest.src, &input->manifest.limits, err);
}

static uint32_t judge_scalar(const coffer__json_value *value)
{
    const uint64_t exact = UINT64_C(1) << 53; /* integers up to here are exact in a double */
    switch (value->kind) {
    case COFFER__JSON_U64:
        return COFFER__CAN_JSON | (value->as.u64 <= INT64_MAX ? COFFER__CAN_INT : 0) |
               (value->as.u64 <= exact ? COFFER__CAN_FLOAT : 0);
    case COFFER__JSON_I64:
        return COFFER__CAN_JSON | COFFER__CAN_INT |
               (value->as.i64 >= -(int64_t)exact ? COFFER__CAN_FLOAT : 0);
    case COFFER__JSON_F64:
        return COFFER__CAN_JSON | COFFER__CAN_FLOAT;
    default:
        return COFFER__CAN_JSON;
    }
}

static coffer_status fail_mixed(const jsonl_input *input, const coffer__column *column, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_INCONSISTENT, coffer__jsonl_offset(input->reader),
                        "line %" PRIu64 ": \"%s\" is bytes in some lines and not in others",
                        coffer__jsonl_line(input->reader), column->name);
}

/* Values that JSON cannot hold exactly occur between others: floats, texts and JSON. */
static coffer_status survey_typed(jsonl_input *input, coffer__column *column, const coffer__json_value *value,
                                  coffer_error *err)
{
    uint16_t type = coffer__mldf_json_type(value);
    uint32_t needs = type == COFFER_MLDF_FLOAT  ? COFFER__CAN_FLOAT
                     : type == COFFER_MLDF_TEXT ? COFFER__CAN_TEXT
                     : type == COFFER_MLDF_JSON ? COFFER__CAN_JSON
                                                : 0;
    if (!column->given_type && column->seen && !(column->can & needs))
        return fail_mixed(input, column, err);
    coffer_status status = coffer__mldf_json_survey(column, value, err);
    if (!status)
        coffer__column_see(column, input->manifest.sample, needs ? needs : COFFER__CAN_JSON);
    return status;
}

static coffer_status survey_value(jsonl_input *input, const coffer__json_value *value, coffer_error *err)
{
    coffer__column *column;
    uint32_t path = 0;
    coffer_status status = coffer__columns_get(&column, &input->manifest.columns, value->key, value->key_len,
                                               &input->manifest.limits, err);
    if (status || value->kind == COFFER__JSON_NULL)
        return status;
    if (value->kind == COFFER__JSON_OBJECT && coffer__mldf_json_is(value))
        return survey_typed(input, column, value, err);
    bool is_text = value->kind == COFFER__JSON_STRING;
    if (column->given_type && column->given_type != COFFER_MLDF_JSON &&
        !(column->given_type == COFFER_MLDF_TEXT && is_text))
        return fail_mixed(input, column, err);
    if (is_text)
        status = coffer__manifest_judge_path(&path, &input->manifest, column, value->as.string,
                                             value->string_len, err);
    if (!status)
        coffer__column_see(column, input->manifest.sample,
                           path | (is_text ? COFFER__CAN_TEXT | COFFER__CAN_JSON : judge_scalar(value)));
    return status;
}

static coffer_status survey(jsonl_input *input, coffer_error *err)
{
    const coffer__json_value *object = NULL;
    coffer_status status = jsonl_rewind(&input->manifest.base, err);
    while (!status) {
        status = coffer__jsonl_next(&object, input->reader, err);
        if (status || !object)
            break;
        input->manifest.sample++;
        for (const coffer__json_value *value = coffer__json_first(object); !status && value;
             value = coffer__json_next(object, value))
            status = survey_value(input, value, err);
    }
    return status ? status : coffer__manifest_settle(&input->manifest, err);
}

static coffer_status take_text(coffer__dataset_value *value, const coffer__json_value *from,
                               const coffer__column *column, coffer_error *err)
{
    value->form = COFFER__DATASET_FILE;
    value->is_path = (column->can & COFFER__CAN_PATH) != 0;
    return coffer__dataset_value_copy(value, from->as.string, from->string_len, err);
}

/* JSON is stored as it is written in the line. */
static coffer_status take_json(coffer__dataset_value *value, const char *raw, size_t len, coffer_error *err)
{
    value->form = COFFER__DATASET_READY;
    return coffer__dataset_value_copy(value, raw, len, err);
}

static coffer_status take_value(jsonl_input *input, coffer__dataset_sample *sample,
                                const coffer__json_value *from, const char *raw, size_t raw_len,
                                coffer_error *err)
{
    const coffer__column *column = coffer__columns_find(&input->manifest.columns, from->key, from->key_len);
    if (!column || from->kind == COFFER__JSON_NULL)
        return COFFER_OK;
    const coffer_mldf_field *field = &input->manifest.base.schema.fields[column->field];
    coffer__dataset_value *value = &sample->values[column->field];
    if (from->kind == COFFER__JSON_OBJECT && coffer__mldf_json_is(from))
        return coffer__mldf_json_take(value, from, field, err);
    if (field->type == COFFER_MLDF_INT || field->type == COFFER_MLDF_FLOAT) {
        value->form = COFFER__DATASET_SCALAR;
        value->i64 = from->kind == COFFER__JSON_U64   ? (int64_t)from->as.u64
                     : from->kind == COFFER__JSON_I64 ? from->as.i64
                                                      : 0;
        return coffer__json_f64(&value->f64, from)
                   ? COFFER_OK
                   : coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE, "the lines have changed");
    }
    if (from->kind == COFFER__JSON_STRING && field->type != COFFER_MLDF_JSON)
        return take_text(value, from, column, err);
    return take_json(value, raw, raw_len, err);
}

static coffer_status jsonl_next(bool *more, coffer__dataset_sample *sample, coffer__dataset_input *base,
                                coffer_error *err)
{
    jsonl_input *input = (jsonl_input *)base;
    const coffer__json_value *object = NULL;
    coffer_status status = coffer__jsonl_next(&object, input->reader, err);
    *more = !status && object;
    if (!*more)
        return status;
    coffer__buffer_printf(&sample->name, "%s: line %" PRIu64, coffer_source_name(input->manifest.src),
                          coffer__jsonl_line(input->reader));
    const char *raw = "";
    size_t raw_len = 0, at = 0;
    for (const coffer__json_value *value = coffer__json_first(object); !status && value;
         value = coffer__json_next(object, value)) {
        if (!coffer__jsonl_next_raw(&raw, &raw_len, input->reader, &at))
            return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE, "the lines have changed");
        status = take_value(input, sample, value, raw, raw_len, err);
    }
    return status;
}

static void jsonl_close(coffer__dataset_input *base)
{
    jsonl_input *input = (jsonl_input *)base;
    coffer__jsonl_close(input->reader);
    coffer__manifest_close(&input->manifest);
}

coffer_status coffer__dataset_open_jsonl(coffer__dataset_input **out, coffer_source *src, int folder,
                                         const coffer_limits *limits, coffer_error *err)
{
    jsonl_input *input = NULL;
    coffer_status status = coffer__dataset_input_new(&input, sizeof *input, err);
    if (status)
        return status;
    input->manifest.base.next = jsonl_next;
    input->manifest.base.load = coffer__manifest_load;
    input->manifest.base.rewind = jsonl_rewind;
    input->manifest.base.close = jsonl_close;
    input->manifest.src = src;
    input->manifest.folder = folder;
    input->manifest.limits = coffer__limits(limits);
    status = survey(input, err);
    if (!status)
        status = jsonl_rewind(&input->manifest.base, err);
    if (status) {
        jsonl_close(&input->manifest.base);
        return status;
    }
    *out = &input->manifest.base;
    return COFFER_OK;
}
