/* Statistics for people. */
#include "places.h"
#include "stats_view.h"
#include "term.h"

#include <inttypes.h>

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
