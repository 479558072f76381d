/* Statistics as comma-separated values. */
#include "base/buffer.h"
#include "base/json_write.h"
#include "places.h"
#include "stats_view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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
