/* Groups of records as rows and columns, whatever they are grouped by and whatever is measured: what the
 * table, the CSV and the JSON of `coffer stats` have in common. */
#ifndef COFFER_CLI_STATS_VIEW_H
#define COFFER_CLI_STATS_VIEW_H

#include "base/buffer.h"
#include "coffer/mscan.h"

#include <stdio.h>

typedef enum stats_kind {
    STATS_MEAN,
    STATS_STD,
    STATS_MIN,
    STATS_MAX,
    STATS_ZEROS,
    STATS_SATURATED,
    STATS_Z_ACTIVATION,
    STATS_Z_GRAD_NORM,
    STATS_SPS,
    STATS_INTEGRAL
} stats_kind;

typedef struct stats_column {
    const char *name;  /* in CSV and JSON */
    const char *title; /* in tables, and for --sort */
    stats_kind kind;
    coffer_mscan_metric metric;
} stats_column;

enum { STATS_METRIC_COLUMNS = 6, STATS_MOST_COLUMNS = 2 * STATS_METRIC_COLUMNS };
extern const stats_column stats_metric_columns[2][STATS_METRIC_COLUMNS]; /* by metric */

typedef struct stats_view {
    const coffer_mscan *scan;
    coffer_mscan_by by;
    const coffer_mscan_stats *stats;   /* one of these two */
    const coffer_mscan_scores *scores; /* is there */
    bool one_param;                    /* only one parameter is selected */
    size_t sequence;                   /* the only one that is shown, or COFFER_INDEX_NONE */
    bool real[2];                      /* by metric: real units, not quantized integers */
    const stats_column *columns[STATS_MOST_COLUMNS];
    size_t column_count;
    size_t *order; /* of the rows; NULL = by key */
    size_t shown;  /* rows that are printed, of all */
} stats_view;

/* Adds the columns of one metric, of the scores, or of the parameter's mean difference. */
void stats_view_add_metric(stats_view *view, coffer_mscan_metric metric);
void stats_view_add_scores(stats_view *view);
void stats_view_add_dsc(stats_view *view);
/* Decides where real units can be shown: the scale must be the same for all records of every row. */
void stats_view_choose_units(stats_view *view, bool raw);
/* The same selection as one group, with the units that hold for all of it. */
stats_view stats_view_of_total(const stats_view *view, bool raw);
/* Whether rows add up blocks of several parameters that have nothing in common but their number. */
bool stats_view_mixes_blocks(const stats_view *view);
/* Why a metric is shown raw, or NULL when it is not. */
const char *stats_view_raw_reason(const stats_view *view, coffer_mscan_metric metric);

size_t stats_view_rows(const stats_view *view);
uint64_t stats_view_key(const stats_view *view, size_t row);
uint64_t stats_view_count(const stats_view *view, size_t row);
double stats_view_value(const stats_view *view, size_t row, const stats_column *column);
/* The same for a group that is not in the view. */
double stats_group_value(const stats_view *view, const coffer_mscan_group *group, const stats_column *column);
/* Counts, and extremes of quantized integers. */
bool stats_column_is_whole(const stats_view *view, const stats_column *column);

/* Orders the rows by a column's title (largest first), or by "key", "name" or "count". False when there is no
 * such column; *failed when memory ran out. */
bool stats_view_sort(stats_view *view, const char *by, bool *failed);
/* Index of the row at a position of the sorted order. */
size_t stats_view_row_at(const stats_view *view, size_t place);

typedef char stats_remark[160];
/* Says so when a column looks like another writer's fault: empty, or cut to 16 bits. */
bool stats_remark_on(stats_remark out, const coffer_mscan_group *total, coffer_mscan_metric metric);
/* Whether z-scores, which are those of the raw integers, would be others in real units. */
bool stats_remark_on_scores(stats_remark out, const coffer_mscan *scan, coffer_mscan_metric metric);

/* ---- Output ---- */

enum { STATS_FLUSH_BYTES = 1 << 16 };
/* Writes the buffer out and empties it. */
void stats_flush(coffer__buffer *buffer, FILE *out);

void stats_view_print_table(const stats_view *view, FILE *out);
/* Both metrics of the whole selection. */
void stats_view_print_totals(const stats_view *view, const coffer_mscan_group *total, FILE *out);
/* These two give false when memory ran out. */
bool stats_view_print_csv(const stats_view *view, FILE *out);
/* whole : the units of total. total : NULL when scores are shown. */
bool stats_view_print_json(const stats_view *view, const stats_view *whole, const coffer_mscan_group *total,
                           const char *path, bool with_rows, unsigned indent, FILE *out);

#endif
