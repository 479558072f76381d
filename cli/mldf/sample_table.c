#include "mldf/sample_table.h"
#include "base/fail.h"

#include "mldf/mldf_verbs.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

enum {
    TABLE_FIELDS = TERM_COLUMNS_MAX - 1,
    CELL_MAX = 60 /* columns: this is for looking, get gives the whole value */
};

/* Cuts a text to a number of columns. */
static void cut(coffer__buffer *text, size_t columns)
{
    const char *begin = coffer__buffer_text(text), *at = begin, *end = begin + text->len;
    term_piece piece;
    size_t width = 0;
    while (at < end && width < columns)
        width += term_next_piece(piece, &at, end);
    if (at == end)
        return;
    text->len = (size_t)(at - begin);
    coffer__buffer_append(text, "…", 3);
}

/* Errors in the content take a cell; others end the table. */
static coffer_status put_cell(term_table *table, sample_reader *reader, uint64_t sample, size_t field,
                              coffer_error *first_error, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = sample_put_text(&text, reader, sample, field, &found);
    if (!status) {
        cut(&text, CELL_MAX);
        term_table_cell_len(table, coffer__buffer_text(&text), text.len);
    } else if (coffer__is_about_file(status)) {
        term_table_style(table, TERM_RED);
        term_table_cell(table, "(unreadable)");
        if (!first_error->status)
            *first_error = found;
        status = COFFER_OK;
    } else {
        *err = found;
    }
    coffer__buffer_free(&text);
    return status;
}

static bool is_number(const coffer_mldf_field *field)
{
    return field->kind == COFFER_MLDF_ENTRY_INT || field->kind == COFFER_MLDF_ENTRY_FLOAT;
}

static int print_table(sample_reader *reader, const char *path, uint64_t first, uint64_t end)
{
    coffer_error damage = COFFER_ERROR_INIT, err = COFFER_ERROR_INIT;
    size_t fields = sample_field_count(reader);
    size_t shown = fields < TABLE_FIELDS ? fields : TABLE_FIELDS;
    term_table *table = term_table_new();
    term_table_column(table, "sample", TERM_RIGHT);
    for (size_t i = 0; i < shown; i++) {
        const coffer_mldf_field *field = coffer_mldf_field_at(reader->set, sample_field_at(reader, i));
        term_table_column(table, field->name, is_number(field) ? TERM_RIGHT : TERM_LEFT);
    }
    coffer_status status = COFFER_OK;
    for (uint64_t position = first; position < end && !status; position++) {
        uint64_t sample = sample_at(reader, position);
        term_table_cellf(table, "%" PRIu64, sample);
        for (size_t i = 0; i < shown && !status; i++)
            status = put_cell(table, reader, sample, sample_field_at(reader, i), &damage, &err);
    }
    term_table_print(table, stdout);
    if (shown < fields)
        printf("%s… and %zu more fields (--json shows all)%s\n", term_on(stdout, TERM_DIM), fields - shown,
               term_off(stdout));
    if (status)
        return mldf_fail(path, &err);
    return damage.status ? mldf_fail(path, &damage) : CLI_OK;
}

static int print_json(sample_reader *reader, const char *path, uint64_t first, uint64_t end)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__buffer line = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    for (uint64_t position = first; position < end && !status; position++) {
        uint64_t sample = sample_at(reader, position);
        coffer__json_writer json;
        line.len = 0;
        coffer__json_writer_init(&json, &line, 0);
        status = sample_put_object(&json, reader, sample, &err);
        coffer__buffer_append(&line, "\n", 1);
        if (!status)
            term_put_safe(stdout, line.data, line.len);
    }
    coffer__buffer_free(&line);
    return status ? mldf_fail(path, &err) : CLI_OK;
}

static int print_csv(sample_reader *reader, const char *path, uint64_t first, uint64_t end)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    fputs("sample", stdout);
    for (size_t i = 0; i < sample_field_count(reader); i++) {
        const char *name = coffer_mldf_field_at(reader->set, sample_field_at(reader, i))->name;
        putchar(',');
        cli_print_csv_cell(stdout, name, strlen(name));
    }
    putchar('\n');
    for (uint64_t position = first; position < end && !status; position++) {
        uint64_t sample = sample_at(reader, position);
        printf("%" PRIu64, sample);
        for (size_t i = 0; i < sample_field_count(reader) && !status; i++) {
            size_t field = sample_field_at(reader, i);
            coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
            text.len = 0;
            status = coffer_mldf_entry_at(&entry, reader->set, sample, field, &err);
            if (!status && entry.present)
                status = sample_put_text(&text, reader, sample, field, &err);
            putchar(',');
            cli_print_csv_cell(stdout, coffer__buffer_text(&text), text.len);
        }
        putchar('\n');
    }
    coffer__buffer_free(&text);
    return status ? mldf_fail(path, &err) : CLI_OK;
}

int sample_table_print(sample_reader *reader, const cli_args *args, uint64_t first, uint64_t end)
{
    const char *path = cli_operand(args, 0);
    if (cli_has(args, "csv"))
        return print_csv(reader, path, first, end);
    return cli_has(args, "json") ? print_json(reader, path, first, end)
                                 : print_table(reader, path, first, end);
}
