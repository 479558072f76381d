/* Statistics for people, as comma-separated values and as one JSON object. */
#include "base/buffer.h"
#include "base/json_write.h"
#include "mscan_verbs.h"
#include "stats_view.h"
#include "term.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Statistics for people. */

enum { SOURCE_COLUMNS = 40 };

static void add_key_columns(term_table *table, coffer_mscan_by by)
{
    switch (by) {
    case COFFER_MSCAN_BY_PARAM:
        term_table_column(table, "parameter", TERM_LEFT);
        break;
    case COFFER_MSCAN_BY_BLOCK:
        term_table_column(table, "block", TERM_RIGHT);
        break;
    case COFFER_MSCAN_BY_TOKEN:
        term_table_column(table, "token", TERM_RIGHT);
        term_table_column(table, "sequence", TERM_RIGHT);
        term_table_column(table, "position", TERM_RIGHT);
        break;
    case COFFER_MSCAN_BY_SEQUENCE:
        term_table_column(table, "sequence", TERM_RIGHT);
        term_table_column(table, "source", TERM_LEFT);
        break;
    case COFFER_MSCAN_BY_PARAM_BLOCK:
        term_table_column(table, "parameter", TERM_LEFT);
        term_table_column(table, "block", TERM_RIGHT);
        break;
    case COFFER_MSCAN_BY_LAYER:
        term_table_column(table, "layer", TERM_RIGHT);
        break;
    case COFFER_MSCAN_BY_ALL:
    default:
        break;
    }
}

static void add_param_cell(term_table *table, const stats_view *view, uint16_t param_id)
{
    const char *name = coffer_mscan_param_name(view->scan, param_id);
    if (name)
        term_table_cell(table, name);
    else
        term_table_cellf(table, "(no name: %u)", param_id);
}

static void add_key_cells(term_table *table, const stats_view *view, uint64_t key)
{
    term_text number;
    if (view->by == COFFER_MSCAN_BY_PARAM) {
        add_param_cell(table, view, (uint16_t)key);
    } else if (view->by == COFFER_MSCAN_BY_PARAM_BLOCK) {
        add_param_cell(table, view, (uint16_t)(key >> 16));
        term_table_cellf(table, "%u", (unsigned)(key & UINT16_MAX));
    } else if (view->by == COFFER_MSCAN_BY_LAYER) {
        term_table_cell(table, coffer_mscan_layer_name(view->scan, (size_t)key));
    } else if (view->by == COFFER_MSCAN_BY_SEQUENCE) {
        const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(view->scan, (size_t)key);
        term_table_cellf(table, "%" PRIu64, sequence->sequence_id);
        places_text excerpt;
        term_table_cell(table, places_excerpt(excerpt, sequence, SOURCE_COLUMNS));
    } else {
        term_table_cell(table, term_count(number, key));
    }
    if (view->by == COFFER_MSCAN_BY_TOKEN) {
        const coffer_mscan_sequence *sequence = places_sequence_of(view->scan, key);
        term_table_cell(table, sequence ? term_count(number, sequence->sequence_id) : "-");
        term_table_cell(table, sequence ? term_count(number, key - sequence->first_token) : "-");
    }
}

static void add_value_cell(term_table *table, const stats_view *view, const stats_column *column,
                           double value)
{
    term_text number;
    if (stats_column_is_whole(view, column))
        term_table_cell(table, term_count(number, (uint64_t)value));
    else if (column->kind >= STATS_Z_ACTIVATION)
        term_table_cellf(table, "%+.4f", value);
    else if (view->real[column->metric])
        term_table_cellf(table, "%.6g", value);
    else
        term_table_cellf(table, "%.2f", value);
}

void stats_view_print_table(const stats_view *view, FILE *out)
{
    term_text number;
    term_table *table = term_table_new();
    add_key_columns(table, view->by);
    term_table_column(table, "records", TERM_RIGHT);
    for (size_t i = 0; i < view->column_count; i++)
        term_table_column(table, view->columns[i]->title, TERM_RIGHT);
    for (size_t place = 0; place < view->shown; place++) {
        size_t row = stats_view_row_at(view, place);
        add_key_cells(table, view, stats_view_key(view, row));
        term_table_cell(table, term_count(number, stats_view_count(view, row)));
        for (size_t i = 0; i < view->column_count; i++)
            add_value_cell(table, view, view->columns[i], stats_view_value(view, row, view->columns[i]));
    }
    term_table_print(table, out);
    if (view->shown < stats_view_rows(view))
        fprintf(out, "… and %s more (--top 0 shows all)\n",
                term_count(number, stats_view_rows(view) - view->shown));
}

void stats_view_print_totals(const stats_view *view, const coffer_mscan_group *total, FILE *out)
{
    static const char *const names[2] = { "activation", "grad_norm" };
    term_table *table = term_table_new();
    term_table_column(table, "", TERM_LEFT);
    for (size_t i = 0; i < STATS_METRIC_COLUMNS; i++)
        term_table_column(table, stats_metric_columns[0][i].title, TERM_RIGHT);
    for (int metric = 0; metric < 2; metric++) {
        term_table_cell(table, names[metric]);
        for (size_t i = 0; i < STATS_METRIC_COLUMNS; i++) {
            const stats_column *column = &stats_metric_columns[metric][i];
            add_value_cell(table, view, column, stats_group_value(view, total, column));
        }
    }
    term_table_print(table, out);
}

/* Statistics as comma-separated values. */

static void csv_text(coffer__buffer *line, const char *text, size_t len)
{
    bool quoted = false;
    for (size_t i = 0; i < len; i++)
        quoted |= text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r';
    if (!quoted) {
        coffer__buffer_append(line, text, len);
        return;
    }
    coffer__buffer_append(line, "\"", 1);
    for (size_t i = 0; i < len; i++)
        coffer__buffer_append(line, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1);
    coffer__buffer_append(line, "\"", 1);
}

static void csv_key(coffer__buffer *line, const stats_view *view, uint64_t key)
{
    if (view->by == COFFER_MSCAN_BY_SEQUENCE) {
        const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(view->scan, (size_t)key);
        coffer__buffer_printf(line, "%" PRIu64 ",", sequence->sequence_id);
        csv_text(line, sequence->source, sequence->source ? sequence->source_len : 0);
        return;
    }
    if (view->by == COFFER_MSCAN_BY_LAYER) {
        coffer__buffer_printf(line, "%s", coffer_mscan_layer_name(view->scan, (size_t)key));
        return;
    }
    bool blocks = view->by == COFFER_MSCAN_BY_PARAM_BLOCK;
    uint16_t block = (uint16_t)key;
    key = blocks ? key >> 16 : key;
    coffer__buffer_printf(line, "%" PRIu64, key);
    if (blocks || view->by == COFFER_MSCAN_BY_PARAM) {
        const char *name = coffer_mscan_param_name(view->scan, (uint16_t)key);
        coffer__buffer_append(line, ",", 1);
        csv_text(line, name, name ? strlen(name) : 0);
        if (blocks)
            coffer__buffer_printf(line, ",%u", block);
    } else if (view->by == COFFER_MSCAN_BY_TOKEN) {
        const coffer_mscan_sequence *sequence = places_sequence_of(view->scan, key);
        if (sequence)
            coffer__buffer_printf(line, ",%" PRIu64 ",%" PRIu64, sequence->sequence_id,
                                  (key - sequence->first_token));
        else
            coffer__buffer_append(line, ",,", 2);
    }
}

static void csv_value(coffer__buffer *line, const stats_view *view, const stats_column *column, double value)
{
    coffer__json_writer number;
    coffer__buffer_append(line, ",", 1);
    if (stats_column_is_whole(view, column)) {
        coffer__buffer_printf(line, "%.0f", value);
    } else if (isfinite(value)) {
        coffer__json_writer_init(&number, line, 0);
        coffer__json_write_f64(&number, value);
    }
}

static const char *csv_key_header(coffer_mscan_by by)
{
    switch (by) {
    case COFFER_MSCAN_BY_PARAM:
        return "param_id,name";
    case COFFER_MSCAN_BY_BLOCK:
        return "block";
    case COFFER_MSCAN_BY_TOKEN:
        return "token,sequence_id,position";
    case COFFER_MSCAN_BY_SEQUENCE:
        return "sequence_id,source";
    case COFFER_MSCAN_BY_PARAM_BLOCK:
        return "param_id,name,block";
    case COFFER_MSCAN_BY_LAYER:
        return "layer";
    case COFFER_MSCAN_BY_ALL:
    default:
        return "all";
    }
}

bool stats_view_print_csv(const stats_view *view, FILE *out)
{
    coffer__buffer lines = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&lines, "%s,count", csv_key_header(view->by));
    for (size_t i = 0; i < view->column_count; i++)
        coffer__buffer_printf(&lines, ",%s", view->columns[i]->name);
    coffer__buffer_append(&lines, "\n", 1);
    for (size_t place = 0; place < view->shown && !lines.failed; place++) {
        size_t row = stats_view_row_at(view, place);
        csv_key(&lines, view, stats_view_key(view, row));
        coffer__buffer_printf(&lines, ",%" PRIu64, stats_view_count(view, row));
        for (size_t i = 0; i < view->column_count; i++)
            csv_value(&lines, view, view->columns[i], stats_view_value(view, row, view->columns[i]));
        coffer__buffer_append(&lines, "\n", 1);
        if (lines.len >= STATS_FLUSH_BYTES)
            stats_flush(&lines, out);
    }
    bool whole = !lines.failed;
    if (whole)
        stats_flush(&lines, out);
    coffer__buffer_free(&lines);
    return whole;
}

/* Statistics as one JSON object. */

static void json_number(coffer__json_writer *json, const char *key, uint64_t value)
{
    coffer__json_key(json, key);
    coffer__json_write_u64(json, value);
}

static void json_key(coffer__json_writer *json, const stats_view *view, uint64_t key)
{
    const coffer_mscan_sequence *sequence;
    switch (view->by) {
    case COFFER_MSCAN_BY_PARAM:
        json_number(json, "param_id", key);
        coffer__json_key(json, "name");
        coffer__json_string(json, coffer_mscan_param_name(view->scan, (uint16_t)key));
        break;
    case COFFER_MSCAN_BY_PARAM_BLOCK:
        json_number(json, "param_id", key >> 16);
        coffer__json_key(json, "name");
        coffer__json_string(json, coffer_mscan_param_name(view->scan, (uint16_t)(key >> 16)));
        json_number(json, "block", key & UINT16_MAX);
        break;
    case COFFER_MSCAN_BY_LAYER:
        coffer__json_key(json, "layer");
        coffer__json_string(json, coffer_mscan_layer_name(view->scan, (size_t)key));
        break;
    case COFFER_MSCAN_BY_BLOCK:
        json_number(json, "block", key);
        break;
    case COFFER_MSCAN_BY_TOKEN:
        json_number(json, "token", key);
        sequence = places_sequence_of(view->scan, key);
        if (sequence) {
            json_number(json, "sequence_id", sequence->sequence_id);
            json_number(json, "position", key - sequence->first_token);
        }
        break;
    case COFFER_MSCAN_BY_SEQUENCE:
        sequence = coffer_mscan_sequence_at(view->scan, (size_t)key);
        json_number(json, "sequence_id", sequence->sequence_id);
        break;
    case COFFER_MSCAN_BY_ALL:
    default:
        break;
    }
}

static void json_value(coffer__json_writer *json, const stats_view *view, const stats_column *column,
                       const char *key, double value)
{
    coffer__json_key(json, key);
    if (stats_column_is_whole(view, column))
        coffer__json_write_u64(json, (uint64_t)value);
    else
        coffer__json_write_f64(json, value);
}

static void write_rows(coffer__json_writer *json, const stats_view *view, FILE *out)
{
    coffer__json_open_array(json);
    for (size_t place = 0; place < view->shown; place++) {
        size_t row = stats_view_row_at(view, place);
        coffer__json_open_object(json);
        json_key(json, view, stats_view_key(view, row));
        json_number(json, "count", stats_view_count(view, row));
        for (size_t i = 0; i < view->column_count; i++)
            json_value(json, view, view->columns[i], view->columns[i]->name,
                       stats_view_value(view, row, view->columns[i]));
        coffer__json_close_object(json);
        if (json->out->len >= STATS_FLUSH_BYTES)
            stats_flush(json->out, out);
    }
    coffer__json_close_array(json);
}

static void write_totals(coffer__json_writer *json, const stats_view *view, const coffer_mscan_group *total)
{
    static const char *const names[2] = { "activation", "grad_norm" };
    json_number(json, "records", total->count);
    json_number(json, "sum_activation", total->column[COFFER_MSCAN_ACTIVATION].sum);
    json_number(json, "sum_grad_norm", total->column[COFFER_MSCAN_GRAD_NORM].sum);
    for (int metric = 0; metric < 2; metric++) {
        coffer__json_key(json, names[metric]);
        coffer__json_open_object(json);
        coffer__json_key(json, "units");
        coffer__json_string(json, view->real[metric] ? "real" : "raw");
        for (size_t i = 0; i < STATS_METRIC_COLUMNS; i++) {
            const stats_column *column = &stats_metric_columns[metric][i];
            json_value(json, view, column, column->title, stats_group_value(view, total, column));
        }
        coffer__json_close_object(json);
    }
}

static void write_remarks(coffer__json_writer *json, const coffer_mscan *scan,
                          const coffer_mscan_group *total)
{
    stats_remark text;
    coffer__json_key(json, "notes");
    coffer__json_open_array(json);
    for (int metric = 0; metric < 2; metric++)
        if (total ? stats_remark_on(text, total, (coffer_mscan_metric)metric)
                  : stats_remark_on_scores(text, scan, (coffer_mscan_metric)metric))
            coffer__json_string(json, text);
    coffer__json_close_array(json);
}

bool stats_view_print_json(const stats_view *view, const stats_view *whole, const coffer_mscan_group *total,
                           const char *path, bool with_rows, unsigned indent, FILE *out)
{
    static const char *const by_names[] = { "all",      "param",       "block", "token",
                                            "sequence", "param,block", "layer" };
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__json_writer json;
    coffer__json_writer_init(&json, &text, indent);
    coffer__json_open_object(&json);
    coffer__json_key(&json, "file");
    coffer__json_string_len(&json, path, strlen(path));
    coffer__json_key(&json, "format");
    coffer__json_string(&json, "mscan");
    if (total)
        write_totals(&json, whole, total);
    write_remarks(&json, view->scan, total);
    if (with_rows) {
        coffer__json_key(&json, "by");
        coffer__json_string(&json, by_names[view->by]);
        coffer__json_key(&json, "groups");
        write_rows(&json, view, out);
    }
    coffer__json_close_object(&json);
    coffer__buffer_append(&text, "\n", 1);
    bool complete = !text.failed;
    if (complete)
        stats_flush(&text, out);
    coffer__buffer_free(&text);
    return complete;
}
