#include "stats_view.h"
#include "term.h"

#include "base/memory.h"
#include "base/real.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const stats_column stats_metric_columns[2][STATS_METRIC_COLUMNS] = {
    { { "activation_mean", "mean", STATS_MEAN, COFFER_MSCAN_ACTIVATION },
      { "activation_std", "std", STATS_STD, COFFER_MSCAN_ACTIVATION },
      { "activation_min", "min", STATS_MIN, COFFER_MSCAN_ACTIVATION },
      { "activation_max", "max", STATS_MAX, COFFER_MSCAN_ACTIVATION },
      { "activation_zeros", "zeros", STATS_ZEROS, COFFER_MSCAN_ACTIVATION },
      { "activation_saturated", "saturated", STATS_SATURATED, COFFER_MSCAN_ACTIVATION } },
    { { "grad_norm_mean", "mean", STATS_MEAN, COFFER_MSCAN_GRAD_NORM },
      { "grad_norm_std", "std", STATS_STD, COFFER_MSCAN_GRAD_NORM },
      { "grad_norm_min", "min", STATS_MIN, COFFER_MSCAN_GRAD_NORM },
      { "grad_norm_max", "max", STATS_MAX, COFFER_MSCAN_GRAD_NORM },
      { "grad_norm_zeros", "zeros", STATS_ZEROS, COFFER_MSCAN_GRAD_NORM },
      { "grad_norm_saturated", "saturated", STATS_SATURATED, COFFER_MSCAN_GRAD_NORM } },
};

static const stats_column score_columns[] = {
    { "z_activation", "z_activation", STATS_Z_ACTIVATION, COFFER_MSCAN_ACTIVATION },
    { "z_grad_norm", "z_grad_norm", STATS_Z_GRAD_NORM, COFFER_MSCAN_GRAD_NORM },
    { "sps", "sps", STATS_SPS, COFFER_MSCAN_ACTIVATION },
    { "integral", "integral", STATS_INTEGRAL, COFFER_MSCAN_ACTIVATION },
};

static const stats_column dsc_column = { "dsc", "dsc", STATS_SPS, COFFER_MSCAN_ACTIVATION };

static void add_columns(stats_view *view, const stats_column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        view->columns[view->column_count++] = &columns[i];
}

void stats_view_add_metric(stats_view *view, coffer_mscan_metric metric)
{
    add_columns(view, stats_metric_columns[metric], STATS_METRIC_COLUMNS);
}

void stats_view_add_scores(stats_view *view)
{
    add_columns(view, score_columns, sizeof score_columns / sizeof score_columns[0]);
}

void stats_view_add_dsc(stats_view *view)
{
    add_columns(view, &dsc_column, 1);
}

/* ---- Units ---- */

/* The scale of all records of a group; NULL when it differs between records or is unknown. */
static const coffer_mscan_quantization *scale_of(const stats_view *view, coffer_mscan_metric metric,
                                                 uint64_t key)
{
    bool by_blocks = view->by == COFFER_MSCAN_BY_PARAM_BLOCK;
    bool one_param = view->by == COFFER_MSCAN_BY_PARAM || by_blocks;
    uint16_t param_id = (uint16_t)(by_blocks ? key >> 16 : key);
    size_t sequence = view->sequence;
    if (view->by == COFFER_MSCAN_BY_SEQUENCE)
        sequence = (size_t)key;
    else if (view->by == COFFER_MSCAN_BY_TOKEN)
        sequence = coffer_mscan_sequence_of_token(view->scan, key);
    switch (coffer_mscan_quantization_scope(view->scan, metric)) {
    case COFFER_MSCAN_SCALE_FILE:
        break;
    case COFFER_MSCAN_SCALE_PARAM:
        if (!one_param)
            return NULL;
        break;
    case COFFER_MSCAN_SCALE_SEQUENCE:
        if (sequence == COFFER_INDEX_NONE)
            return NULL;
        break;
    case COFFER_MSCAN_SCALE_UNKNOWN:
    default:
        return NULL;
    }
    return coffer_mscan_quantization_of(view->scan, metric, one_param ? param_id : 0,
                                        sequence == COFFER_INDEX_NONE ? 0 : sequence);
}

void stats_view_choose_units(stats_view *view, bool raw)
{
    for (int metric = 0; metric < 2; metric++) {
        bool real = !raw && view->stats;
        for (size_t row = 0; real && row < stats_view_rows(view); row++) {
            real = scale_of(view, (coffer_mscan_metric)metric, stats_view_key(view, row)) != NULL;
        }
        view->real[metric] = real;
    }
}

stats_view stats_view_of_total(const stats_view *view, bool raw)
{
    stats_view total = *view;
    total.by = COFFER_MSCAN_BY_ALL;
    for (int metric = 0; metric < 2; metric++) {
        total.real[metric] = !raw && scale_of(&total, (coffer_mscan_metric)metric, 0);
    }
    return total;
}

bool stats_view_mixes_blocks(const stats_view *view)
{
    if (view->by != COFFER_MSCAN_BY_BLOCK || !view->stats)
        return false;
    return coffer_mscan_param_count(view->scan) > 1 && !view->one_param;
}

const char *stats_view_raw_reason(const stats_view *view, coffer_mscan_metric metric)
{
    if (view->real[metric])
        return NULL;
    switch (coffer_mscan_quantization_scope(view->scan, metric)) {
    case COFFER_MSCAN_SCALE_PARAM:
        return "each parameter has a scale of its own: --by param shows real units";
    case COFFER_MSCAN_SCALE_SEQUENCE:
        return "each sequence has a scale of its own: --by sequence or --sequence N shows real units";
    case COFFER_MSCAN_SCALE_FILE:
        return "as asked for with --raw";
    case COFFER_MSCAN_SCALE_UNKNOWN:
    default:
        return "the file does not say how its values were quantized";
    }
}

/* ---- Rows and values ---- */

size_t stats_view_rows(const stats_view *view)
{
    return view->stats ? coffer_mscan_stats_count(view->stats) : coffer_mscan_scores_count(view->scores);
}

uint64_t stats_view_key(const stats_view *view, size_t row)
{
    return view->stats ? coffer_mscan_stats_at(view->stats, row)->key
                       : coffer_mscan_scores_at(view->scores, row)->key;
}

uint64_t stats_view_count(const stats_view *view, size_t row)
{
    return view->stats ? coffer_mscan_stats_at(view->stats, row)->count
                       : coffer_mscan_scores_at(view->scores, row)->count;
}

bool stats_column_is_whole(const stats_view *view, const stats_column *column)
{
    bool extreme = column->kind == STATS_MIN || column->kind == STATS_MAX;
    return column->kind == STATS_ZEROS || column->kind == STATS_SATURATED ||
           (extreme && !view->real[column->metric]);
}

double stats_group_value(const stats_view *view, const coffer_mscan_group *group, const stats_column *column)
{
    coffer_mscan_metric metric = column->metric;
    const coffer_mscan_column *values = &group->column[metric];
    double scale = 1, offset = 0;
    if (view->real[metric]) {
        const coffer_mscan_quantization *unit = scale_of(view, metric, group->key);
        scale = unit ? unit->scale : NAN;
        offset = unit ? unit->offset : NAN;
    }
    switch (column->kind) {
    case STATS_MEAN:
        return offset + scale * coffer_mscan_mean(group, metric);
    case STATS_STD:
        return fabs(scale) * coffer_mscan_stddev(group, metric);
    case STATS_MIN:
        return coffer__nearest_decimal(offset + scale * (scale < 0 ? values->max : values->min),
                                       fabs(scale) * 1e-9);
    case STATS_MAX:
        return coffer__nearest_decimal(offset + scale * (scale < 0 ? values->min : values->max),
                                       fabs(scale) * 1e-9);
    case STATS_ZEROS:
        return (double)values->zeros;
    case STATS_SATURATED:
        return (double)values->saturated;
    default:
        return NAN;
    }
}

static double score_value(const coffer_mscan_score *score, stats_kind kind)
{
    switch (kind) {
    case STATS_Z_ACTIVATION:
        return score->z_activation;
    case STATS_Z_GRAD_NORM:
        return score->z_grad_norm;
    case STATS_SPS:
        return score->sps;
    case STATS_INTEGRAL:
        return score->integral_sps;
    default:
        return NAN;
    }
}

double stats_view_value(const stats_view *view, size_t row, const stats_column *column)
{
    if (view->scores)
        return score_value(coffer_mscan_scores_at(view->scores, row), column->kind);
    return stats_group_value(view, coffer_mscan_stats_at(view->stats, row), column);
}

/* ---- Order ---- */

typedef struct sort_item {
    double value;
    const char *name;
    size_t row;
} sort_item;

/* Largest value first, then by name, then as they were. */
static int compare_items(const void *a, const void *b)
{
    const sort_item *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    int names = x->name && y->name ? coffer__natural_compare(x->name, y->name) : 0;
    if (names)
        return names;
    return x->row < y->row ? -1 : x->row > y->row;
}

static const stats_column *column_titled(const stats_view *view, const char *title)
{
    for (size_t i = 0; i < view->column_count; i++)
        if (strcmp(view->columns[i]->title, title) == 0)
            return view->columns[i];
    return NULL;
}

static sort_item item_for(const stats_view *view, size_t row, const char *by, const stats_column *column)
{
    sort_item item = { 0, NULL, row };
    if (column)
        item.value = stats_view_value(view, row, column);
    else if (strcmp(by, "count") == 0)
        item.value = (double)stats_view_count(view, row);
    else if (view->by == COFFER_MSCAN_BY_PARAM)
        item.name = coffer_mscan_param_name(view->scan, (uint16_t)stats_view_key(view, row));
    else if (view->by == COFFER_MSCAN_BY_PARAM_BLOCK)
        item.name = coffer_mscan_param_name(view->scan, (uint16_t)(stats_view_key(view, row) >> 16));
    if (isnan(item.value))
        item.value = -INFINITY;
    return item;
}

bool stats_view_sort(stats_view *view, const char *by, bool *failed)
{
    size_t rows = stats_view_rows(view);
    const stats_column *column = column_titled(view, by);
    *failed = false;
    if (strcmp(by, "key") == 0)
        return true;
    if (!column && strcmp(by, "count") != 0 && strcmp(by, "name") != 0)
        return false;
    sort_item *items = coffer__alloc_array(rows, sizeof *items);
    size_t *order = coffer__alloc_array(rows, sizeof *order);
    if (!items || !order) {
        *failed = true;
        coffer__free(items);
        coffer__free(order);
        return true;
    }
    for (size_t row = 0; row < rows; row++)
        items[row] = item_for(view, row, by, column);
    qsort(items, rows, sizeof *items, compare_items);
    for (size_t place = 0; place < rows; place++)
        order[place] = items[place].row;
    coffer__free(items);
    view->order = order;
    return true;
}

size_t stats_view_row_at(const stats_view *view, size_t place)
{
    return view->order ? view->order[place] : place;
}

/* ---- Remarks ---- */

static const char *const metric_names[2] = { "activation", "grad_norm" };

bool stats_remark_on(stats_remark out, const coffer_mscan_group *total, coffer_mscan_metric metric)
{
    const coffer_mscan_column *column = &total->column[metric];
    if (total->count == 0)
        return false;
    if (column->zeros == total->count) {
        snprintf(out, sizeof(stats_remark),
                 "%s is 0 in all %" PRIu64 " records: the writer never filled it in", metric_names[metric],
                 total->count);
        return true;
    }
    if (column->saturated >= (total->count + 99) / 100) {
        snprintf(out, sizeof(stats_remark),
                 "%s is 65535 in %" PRIu64 " of %" PRIu64 " records: larger values were cut off",
                 metric_names[metric], column->saturated, total->count);
        return true;
    }
    return false;
}

bool stats_remark_on_scores(stats_remark out, const coffer_mscan *scan, coffer_mscan_metric metric)
{
    coffer_mscan_scale_scope scope = coffer_mscan_quantization_scope(scan, metric);
    const coffer_mscan_quantization *common =
        coffer_mscan_quantization_of(scan, metric, 0, COFFER_INDEX_NONE);
    const char *reason = "differs by parameter";
    if (scope == COFFER_MSCAN_SCALE_SEQUENCE)
        reason = "differs by sequence";
    else if (scope == COFFER_MSCAN_SCALE_FILE && common && common->scale <= 0)
        reason = common->scale < 0 ? "is negative" : "is 0";
    else if (scope != COFFER_MSCAN_SCALE_PARAM)
        return false;
    snprintf(out, sizeof(stats_remark), "z-scores are those of raw integers, but the scale of %s %s",
             metric_names[metric], reason);
    return true;
}

void stats_flush(coffer__buffer *buffer, FILE *out)
{
    term_put_safe(out, buffer->data, buffer->len);
    buffer->len = 0;
}
