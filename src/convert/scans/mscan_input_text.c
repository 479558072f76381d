/* Rows from text: CSV whose first line names the columns, and JSON lines. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/scans/mscan_import.h"
#include "outside/text/csv.h"
#include "outside/text/jsonl.h"

#include <inttypes.h>
#include <string.h>

/* Rows from CSV whose first line names the columns. */

typedef struct csv_rows {
    coffer__csv_reader *reader;
    coffer__mscan_field columns[COFFER__MSCAN_FIELDS]; /* what each column holds */
    size_t column_count;
} csv_rows;

static void close_csv(void *state)
{
    csv_rows *rows = state;
    if (!rows)
        return;
    coffer__csv_close(rows->reader);
    coffer__free(rows);
}

static coffer_status read_title(coffer__mscan_input *out, csv_rows *rows, coffer_error *err)
{
    const coffer__csv_row *row;
    coffer_status status = coffer__csv_next(&row, rows->reader, err);
    if (status)
        return status;
    if (!row)
        return coffer__fail(err, COFFER_E_MISSING, 0, "the file is empty; its first line names the columns");
    for (size_t i = 0; !status && i < row->count; i++) {
        coffer__mscan_field field;
        status = coffer__mscan_input_add(&field, out, row->fields[i].text, row->fields[i].len, err);
        if (!status)
            rows->columns[rows->column_count++] = field; /* none twice, so it fits */
    }
    if (!status)
        status = coffer__mscan_input_complete(out, err);
    return status;
}

static coffer_status next_csv_row(bool *more, coffer__mscan_input_row *out, coffer__mscan_input *all,
                                  coffer_error *err)
{
    csv_rows *rows = all->state;
    const coffer__csv_row *row;
    coffer_status status = coffer__csv_next(&row, rows->reader, err);
    if (status)
        return status;
    *more = row != NULL;
    if (!row)
        return COFFER_OK;
    if (row->count != rows->column_count)
        return coffer__fail(err, COFFER_E_BAD_VALUE, row->offset,
                            "line %" PRIu64 " has %zu fields, the first line names %zu columns", row->line,
                            row->count, rows->column_count);
    for (size_t i = 0; i < row->count; i++) {
        const coffer__csv_field *field = &row->fields[i];
        if (rows->columns[i] == COFFER__MSCAN_PARAM_NAME) {
            out->param_name = field->text;
            out->param_name_len = field->len;
        } else if (!coffer__number_parse(&out->value[rows->columns[i]], field->text, field->len)) {
            return coffer__fail(err, COFFER_E_BAD_VALUE, row->offset,
                                "line %" PRIu64 ", column %s: \"%.*s\" is not a number", row->line,
                                coffer__mscan_field_names[rows->columns[i]],
                                (int)(field->len < 40 ? field->len : 40), field->text);
        }
    }
    out->place = row->line;
    out->offset = row->offset;
    return COFFER_OK;
}

coffer_status coffer__mscan_input_from_csv(coffer__mscan_input *out, coffer_source *src,
                                           const coffer_limits *limits, coffer_error *err)
{
    csv_rows *rows = coffer__calloc(1, sizeof *rows);
    if (!rows)
        return coffer__fail_no_memory(err, sizeof *rows);
    *out = (coffer__mscan_input){
        .place_name = "line", .state = rows, .next = next_csv_row, .close = close_csv
    };
    coffer_status status = coffer__csv_open(&rows->reader, src, limits, err);
    if (!status)
        status = read_title(out, rows, err);
    if (status)
        close_csv(rows);
    return status;
}

/* Rows from JSON lines; the first says which keys all of them have. */

typedef struct jsonl_rows {
    coffer__jsonl_reader *reader;
    const coffer__json_value *first; /* read already, to see the keys */
    size_t field_count;
} jsonl_rows;

static void close_jsonl(void *state)
{
    jsonl_rows *rows = state;
    if (!rows)
        return;
    coffer__jsonl_close(rows->reader);
    coffer__free(rows);
}

static coffer_status read_keys(coffer__mscan_input *out, jsonl_rows *rows, coffer_error *err)
{
    coffer_status status = coffer__jsonl_next(&rows->first, rows->reader, err);
    if (status)
        return status;
    if (!rows->first) {
        /* No line: a scan without records. */
        for (unsigned field = 0; field < COFFER__MSCAN_STORED_FIELDS; field++)
            out->has[field] = true;
        return COFFER_OK;
    }
    for (const coffer__json_value *member = coffer__json_first(rows->first); !status && member;
         member = coffer__json_next(rows->first, member)) {
        coffer__mscan_field field;
        status = coffer__mscan_input_add(&field, out, member->key, member->key_len, err);
        rows->field_count++;
    }
    if (!status)
        status = coffer__mscan_input_complete(out, err);
    return status;
}

static bool take_value(coffer__mscan_input_row *row, coffer__mscan_field field,
                       const coffer__json_value *value)
{
    if (field == COFFER__MSCAN_PARAM_NAME) {
        row->param_name = value->kind == COFFER__JSON_STRING ? value->as.string : NULL;
        row->param_name_len = value->string_len;
        return row->param_name != NULL;
    }
    switch (value->kind) {
    case COFFER__JSON_U64:
        row->value[field] = coffer__number_u64(value->as.u64);
        return true;
    case COFFER__JSON_I64:
        row->value[field] = coffer__number_i64(value->as.i64);
        return true;
    case COFFER__JSON_F64:
        row->value[field] = coffer__number_f64(value->as.f64);
        return true;
    default:
        return false;
    }
}

static coffer_status take_object(coffer__mscan_input_row *row, const coffer__mscan_input *out,
                                 const coffer__json_value *object, coffer_error *err)
{
    const jsonl_rows *rows = out->state;
    if (object->as.count != rows->field_count)
        return coffer__fail(err, COFFER_E_BAD_VALUE, row->offset,
                            "line %" PRIu64 " has %" PRIu64 " keys, the first one has %zu", row->place,
                            object->as.count, rows->field_count);
    for (const coffer__json_value *member = coffer__json_first(object); member;
         member = coffer__json_next(object, member)) {
        coffer__mscan_field field = coffer__mscan_field_find(member->key, member->key_len);
        if (field == COFFER__MSCAN_FIELDS || !out->has[field])
            return coffer__fail(err, COFFER_E_BAD_VALUE, row->offset,
                                "line %" PRIu64 " has the key \"%s\", the first one does not", row->place,
                                member->key);
        if (!take_value(row, field, member))
            return coffer__fail(err, COFFER_E_BAD_VALUE, row->offset,
                                "line %" PRIu64 ", key %s: expected a %s", row->place, member->key,
                                field == COFFER__MSCAN_PARAM_NAME ? "string" : "number");
    }
    return COFFER_OK;
}

static coffer_status next_jsonl_row(bool *more, coffer__mscan_input_row *row, coffer__mscan_input *out,
                                    coffer_error *err)
{
    jsonl_rows *rows = out->state;
    const coffer__json_value *object = rows->first;
    rows->first = NULL;
    if (!object) {
        coffer_status status = coffer__jsonl_next(&object, rows->reader, err);
        if (status)
            return status;
    }
    *more = object != NULL;
    if (!object)
        return COFFER_OK;
    row->place = coffer__jsonl_line(rows->reader);
    row->offset = coffer__jsonl_offset(rows->reader);
    return take_object(row, out, object, err);
}

coffer_status coffer__mscan_input_from_jsonl(coffer__mscan_input *out, coffer_source *src,
                                             const coffer_limits *limits, coffer_error *err)
{
    jsonl_rows *rows = coffer__calloc(1, sizeof *rows);
    if (!rows)
        return coffer__fail_no_memory(err, sizeof *rows);
    *out = (coffer__mscan_input){
        .place_name = "line", .state = rows, .next = next_jsonl_row, .close = close_jsonl
    };
    coffer_status status = coffer__jsonl_open(&rows->reader, src, limits, err);
    if (!status)
        status = read_keys(out, rows, err);
    if (status)
        close_jsonl(rows);
    return status;
}
