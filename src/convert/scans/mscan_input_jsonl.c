/* Rows from JSON lines; the first says which keys all of them have. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/scans/mscan_input.h"
#include "outside/text/jsonl.h"

#include <inttypes.h>
#include <string.h>

typedef struct jsonl_rows {
    coffer__jsonl_reader *reader;
    const coffer__json_value *first; /* read already, to see the keys */
    size_t field_count;
} jsonl_rows;

static void close_rows(void *state)
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

static coffer_status next_row(bool *more, coffer__mscan_input_row *row, coffer__mscan_input *out,
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
    *out =
        (coffer__mscan_input){ .place_name = "line", .state = rows, .next = next_row, .close = close_rows };
    coffer_status status = coffer__jsonl_open(&rows->reader, src, limits, err);
    if (!status)
        status = read_keys(out, rows, err);
    if (status)
        close_rows(rows);
    return status;
}
