/* Rows from CSV whose first line names the columns. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/scans/mscan_input.h"
#include "outside/text/csv.h"

#include <inttypes.h>
#include <string.h>

typedef struct csv_rows {
    coffer__csv_reader *reader;
    coffer__mscan_field columns[COFFER__MSCAN_FIELDS]; /* what each column holds */
    size_t column_count;
} csv_rows;

static void close_rows(void *state)
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

static coffer_status next_row(bool *more, coffer__mscan_input_row *out, coffer__mscan_input *all,
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
    *out =
        (coffer__mscan_input){ .place_name = "line", .state = rows, .next = next_row, .close = close_rows };
    coffer_status status = coffer__csv_open(&rows->reader, src, limits, err);
    if (!status)
        status = read_title(out, rows, err);
    if (status)
        close_rows(rows);
    return status;
}
