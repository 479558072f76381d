/* Tables that name the values of samples: CSV with a header row, and what it shares with JSON lines. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "convert/datasets/dataset_columns.h"
#include "convert/datasets/mldf_export.h"
#include "io/file.h"
#include "io/source_private.h"
#include "outside/archives/folder_walk.h"
#include "outside/text/csv.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define EXTENSION_MAX 16

/* The part after the last dot, in lower case; false when there is nothing like it. */
static bool extension_of(char out[EXTENSION_MAX], const char *text, size_t len)
{
    size_t dot = len;
    while (dot && text[dot - 1] != '.' && text[dot - 1] != '/')
        dot--;
    if (dot < 2 || text[dot - 1] != '.' || dot == len || len - dot >= EXTENSION_MAX)
        return false;
    for (size_t i = dot; i < len; i++) {
        char c = text[i];
        out[i - dot] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    out[len - dot] = 0;
    return true;
}

static uint32_t types_of(const coffer__tar_extension *known)
{
    switch (known->kind) {
    case COFFER__TAR_IMAGE:
        return COFFER__CAN_IMAGE;
    case COFFER__TAR_AUDIO:
        return COFFER__CAN_AUDIO;
    case COFFER__TAR_VIDEO:
        return COFFER__CAN_VIDEO;
    case COFFER__TAR_ARRAY:
        return COFFER__CAN_ARRAY;
    case COFFER__TAR_JSON:
    case COFFER__TAR_TEXT:
        return COFFER__CAN_TEXT;
    default:
        return 0;
    }
}

/* Opens the file that a value names. */
static coffer_status open_named(int *fd, int folder, const char *text, size_t len, coffer_error *err)
{
    char *path = coffer__strndup(text, len);
    if (!path)
        return coffer__fail_no_memory(err, len + 1);
    coffer_status status = strlen(path) == len ? coffer__folder_open_inside(fd, folder, path, err)
                                               : coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                                                              "\"%s\" has a NUL in it", path);
    coffer__free(path);
    return status;
}

static coffer_status look_at_file(coffer__manifest *manifest, coffer__column *column, bool is_array,
                                  const char *text, size_t len, coffer_error *err)
{
    uint64_t size = 0;
    coffer_source *src = NULL;
    int fd = -1;
    coffer_status status = open_named(&fd, manifest->folder, text, len, err);
    if (!status && is_array) {
        status = coffer__file_size(&size, fd, "array", err);
        if (!status)
            status = coffer__array_facts_source(&src, fd, size, "array", err);
        if (!status)
            coffer__array_facts_add(&column->arrays, src);
        coffer_source_close(src);
    }
    coffer__file_close(fd);
    return status;
}

coffer_status coffer__manifest_judge_path(uint32_t *can, coffer__manifest *manifest, coffer__column *column,
                                          const char *text, size_t len, coffer_error *err)
{
    char extension[EXTENSION_MAX];
    *can = 0;
    if (manifest->folder < 0 || !(column->can & COFFER__CAN_PATH) || !extension_of(extension, text, len))
        return COFFER_OK;
    const coffer__tar_extension *known = coffer__tar_extension_of(extension);
    uint32_t types = known ? types_of(known) : 0;
    if (types == 0) {
        /* A file of a kind that is not read in: its path stays, and that is reported. */
        if (column->seen == 0 && look_at_file(manifest, column, false, text, len, NULL) == COFFER_OK)
            column->names_files = true;
        return COFFER_OK;
    }
    bool is_array = types == COFFER__CAN_ARRAY;
    column->names_files = column->names_files || types != COFFER__CAN_TEXT;
    if (column->seen == 0 || is_array) {
        coffer_status status = look_at_file(manifest, column, is_array, text, len, err);
        if (status == COFFER_E_NOT_FOUND && column->seen == 0)
            return COFFER_OK; /* a text that looks like a path */
        if (status)
            return status;
    }
    column->firsts += known->is_first;
    *can = COFFER__CAN_PATH | types;
    return COFFER_OK;
}

coffer_status coffer__manifest_settle(coffer__manifest *manifest, coffer_error *err)
{
    if (manifest->columns.count == 0)
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "no samples in it"),
                                  coffer__source_other_name(manifest->src));
    const uint32_t of_files =
        COFFER__CAN_PATH | COFFER__CAN_IMAGE | COFFER__CAN_AUDIO | COFFER__CAN_ARRAY | COFFER__CAN_VIDEO;
    for (size_t i = 0; i < manifest->columns.count; i++) {
        coffer__column *column = &manifest->columns.items[i];
        if (!(column->can & COFFER__CAN_PATH) && !column->given_type)
            column->can &= ~of_files;
        if (column->names_files && !(column->can & COFFER__CAN_PATH) && !manifest->base.kept_as_text)
            manifest->base.kept_as_text = column->name;
    }
    manifest->base.count = manifest->sample;
    return coffer__columns_settle(&manifest->base.schema, &manifest->columns, manifest->sample, err);
}

coffer_status coffer__manifest_load(coffer__dataset_sample *sample, const coffer__dataset_input *input,
                                    coffer_error *err)
{
    const coffer__manifest *manifest = (const coffer__manifest *)input;
    coffer_status status = COFFER_OK;
    for (size_t f = 0; !status && f < input->schema.count; f++) {
        coffer__dataset_value *value = &sample->values[f];
        int fd = -1;
        if (!value->is_path)
            continue;
        char *path = coffer__strndup((const char *)value->bytes, value->size);
        if (!path)
            return coffer__fail_no_memory(err, value->size);
        status = coffer__folder_open_inside(&fd, manifest->folder, path, err);
        if (!status)
            status =
                coffer__dataset_read_file(&value->own, sample, fd, manifest->limits.memory_bytes, path, err);
        value->is_path = false;
        value->bytes = value->own.data;
        value->size = value->own.len;
        coffer__file_close(fd);
        coffer__free(path);
    }
    return status;
}

void coffer__manifest_close(coffer__manifest *manifest)
{
    coffer__columns_free(&manifest->columns);
    coffer__dataset_input_free(&manifest->base);
}

/* A CSV table with a header row: one sample per row. */

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
