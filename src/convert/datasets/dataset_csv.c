/* A CSV table with a header row: one sample per row. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "convert/datasets/dataset_manifest.h"
#include "io/source_private.h"
#include "outside/text/csv.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct csv_input {
    coffer__manifest manifest;
    coffer__csv_reader *reader;
    size_t width; /* cells of the row of names */
} csv_input;

static coffer_status csv_rewind(coffer__dataset_input *base, coffer_error *err)
{
    csv_input *input = (csv_input *)base;
    const coffer__csv_row *row;
    coffer__csv_close(input->reader);
    input->reader = NULL;
    input->manifest.sample = 0;
    coffer_status status =
        coffer__csv_open(&input->reader, input->manifest.src, &input->manifest.limits, err);
    return status ? status : coffer__csv_next(&row, input->reader, err);
}

static coffer_status read_names(csv_input *input, coffer_error *err)
{
    const coffer__csv_row *row;
    coffer_status status = coffer__csv_next(&row, input->reader, err);
    if (!status && !row)
        return coffer__fail_other(err, coffer__fail(err, COFFER_E_MISSING, 0, "no header row"),
                                  coffer__source_other_name(input->manifest.src));
    for (size_t i = 0; !status && i < row->count; i++) {
        coffer__column *column;
        size_t before = input->manifest.columns.count;
        status = coffer__columns_get(&column, &input->manifest.columns, row->fields[i].text,
                                     row->fields[i].len, &input->manifest.limits, err);
        if (!status && input->manifest.columns.count == before)
            status = coffer__fail_other(
                err, coffer__fail(err, COFFER_E_DUPLICATE, row->offset, "two columns \"%s\"", column->name),
                coffer__source_other_name(input->manifest.src));
    }
    input->width = input->manifest.columns.count;
    return status;
}

static coffer_status check_width(const csv_input *input, const coffer__csv_row *row, coffer_error *err)
{
    if (row->count == input->width)
        return COFFER_OK;
    return coffer__fail_other(err,
                              coffer__fail(err, COFFER_E_INCONSISTENT, row->offset,
                                           "line %" PRIu64 " has %zu cells, the first one %zu", row->line,
                                           row->count, input->width),
                              coffer__source_other_name(input->manifest.src));
}

/* A whole number only when its text can be made from it again: "007" is a text. */
static uint32_t judge_number(const char *text, size_t len)
{
    coffer__number number;
    int64_t value;
    char again[32];
    if (!coffer__number_parse(&number, text, len))
        return 0;
    if (number.kind == COFFER__NUMBER_F64)
        return COFFER__CAN_FLOAT;
    if (!coffer__number_as_i64(&value, &number))
        return 0;
    int again_len = snprintf(again, sizeof again, "%" PRId64, value);
    if ((size_t)again_len != len || memcmp(again, text, len) != 0)
        return 0;
    bool exact = value <= INT64_C(1) << 53 && value >= -(INT64_C(1) << 53);
    return COFFER__CAN_INT | (exact ? COFFER__CAN_FLOAT : 0);
}

static coffer_status survey_cell(csv_input *input, size_t i, const coffer__csv_field *cell, coffer_error *err)
{
    coffer__column *column = &input->manifest.columns.items[i];
    uint32_t path = 0, text = coffer__utf8_valid(cell->text, cell->len) ? COFFER__CAN_TEXT : 0;
    if (cell->len == 0)
        return COFFER_OK;
    coffer_status status =
        coffer__manifest_judge_path(&path, &input->manifest, column, cell->text, cell->len, err);
    if (!status)
        coffer__column_see(column, input->manifest.sample,
                           path | text | judge_number(cell->text, cell->len) | COFFER__CAN_BYTES);
    return status;
}

static coffer_status survey(csv_input *input, coffer_error *err)
{
    const coffer__csv_row *row = NULL;
    coffer_status status =
        coffer__csv_open(&input->reader, input->manifest.src, &input->manifest.limits, err);
    if (!status)
        status = read_names(input, err);
    while (!status) {
        status = coffer__csv_next(&row, input->reader, err);
        if (status || !row)
            break;
        input->manifest.sample++;
        status = check_width(input, row, err);
        for (size_t i = 0; !status && i < row->count; i++)
            status = survey_cell(input, i, &row->fields[i], err);
        if (status)
            return status;
    }
    return status ? status : coffer__manifest_settle(&input->manifest, err);
}

static coffer_status take_cell(coffer__dataset_value *value, const coffer__column *column, uint16_t type,
                               const coffer__csv_field *cell, coffer_error *err)
{
    coffer__number number;
    if (type != COFFER_MLDF_INT && type != COFFER_MLDF_FLOAT) {
        value->form = COFFER__DATASET_FILE;
        value->is_path = (column->can & COFFER__CAN_PATH) != 0;
        return coffer__dataset_value_copy(value, cell->text, cell->len, err);
    }
    value->form = COFFER__DATASET_SCALAR;
    if (!coffer__number_parse(&number, cell->text, cell->len) ||
        (type == COFFER_MLDF_INT && !coffer__number_as_i64(&value->i64, &number)))
        return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE, "the table has changed");
    value->f64 = coffer__number_as_f64(&number);
    return COFFER_OK;
}

static coffer_status csv_next(bool *more, coffer__dataset_sample *sample, coffer__dataset_input *base,
                              coffer_error *err)
{
    csv_input *input = (csv_input *)base;
    const coffer__csv_row *row = NULL;
    coffer_status status = coffer__csv_next(&row, input->reader, err);
    *more = !status && row;
    if (!*more)
        return status;
    coffer__buffer_printf(&sample->name, "%s: line %" PRIu64, coffer_source_name(input->manifest.src),
                          row->line);
    status = check_width(input, row, err);
    for (size_t i = 0; !status && i < row->count; i++) {
        const coffer__column *column = &input->manifest.columns.items[i];
        if (row->fields[i].len)
            status = take_cell(&sample->values[column->field], column,
                               base->schema.fields[column->field].type, &row->fields[i], err);
    }
    return status;
}

static void csv_close(coffer__dataset_input *base)
{
    csv_input *input = (csv_input *)base;
    coffer__csv_close(input->reader);
    coffer__manifest_close(&input->manifest);
}

coffer_status coffer__dataset_open_csv(coffer__dataset_input **out, coffer_source *src, int folder,
                                       const coffer_limits *limits, coffer_error *err)
{
    csv_input *input = NULL;
    coffer_status status = coffer__dataset_input_new(&input, sizeof *input, err);
    if (status)
        return status;
    input->manifest.base.next = csv_next;
    input->manifest.base.load = coffer__manifest_load;
    input->manifest.base.rewind = csv_rewind;
    input->manifest.base.close = csv_close;
    input->manifest.src = src;
    input->manifest.folder = folder;
    input->manifest.limits = coffer__limits(limits);
    status = survey(input, err);
    if (!status)
        status = csv_rewind(&input->manifest.base, err);
    if (status) {
        csv_close(&input->manifest.base);
        return status;
    }
    *out = &input->manifest.base;
    return COFFER_OK;
}
