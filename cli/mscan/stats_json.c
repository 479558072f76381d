/* Statistics as one JSON object. */
#include "base/buffer.h"
#include "base/json_write.h"
#include "places.h"
#include "stats_view.h"

#include <string.h>

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
