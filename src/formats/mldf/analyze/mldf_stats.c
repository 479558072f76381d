/* Statistics of a set from its rows, without reading payloads. */
#include "formats/mldf/mldf_private.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/work.h"

#include <math.h>
#include <stdlib.h>

#define ROWS_AT_ONCE 8192
#define PAYLOADS_MAX ((size_t)1 << 24) /* more are not compared */
#define VALUES_MAX ((size_t)65536)     /* distinct values of a field; more are not counted */
#define FIRST_CAPACITY ((size_t)64)
#define WIDTH_SHIFT 16 /* a picture size is counted as width << 16 | height */

COFFER__INIT_FUNCTION(coffer_mldf_stats_opts, COFFER_MLDF_STATS_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_mldf_value_count, COFFER_MLDF_VALUE_COUNT_INIT)

/* ---- Counting distinct values ---- */

typedef struct value_slot {
    uint64_t value, count; /* a count of 0 marks a free slot */
    uint64_t first_sample;
} value_slot;

typedef struct value_counts {
    value_slot *slots;
    size_t capacity, used;
    bool overflowed; /* too many, or out of memory */
} value_counts;

static value_slot *find_slot(value_slot *slots, size_t capacity, uint64_t value)
{
    uint64_t hash = value * UINT64_C(0x9e3779b97f4a7c15);
    size_t index = (size_t)(hash >> 32) & (capacity - 1);
    while (slots[index].count > 0 && slots[index].value != value)
        index = (index + 1) & (capacity - 1);
    return &slots[index];
}

static bool counts_grow(value_counts *counts)
{
    size_t capacity = counts->capacity ? 2 * counts->capacity : FIRST_CAPACITY;
    value_slot *slots = coffer__calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < counts->capacity; i++)
        if (counts->slots[i].count > 0)
            *find_slot(slots, capacity, counts->slots[i].value) = counts->slots[i];
    coffer__free(counts->slots);
    counts->slots = slots;
    counts->capacity = capacity;
    return true;
}

static void count_value(value_counts *counts, uint64_t value, uint64_t sample)
{
    if (counts->overflowed)
        return;
    if (2 * counts->used >= counts->capacity && (counts->used >= VALUES_MAX || !counts_grow(counts))) {
        counts->overflowed = true;
        return;
    }
    value_slot *slot = find_slot(counts->slots, counts->capacity, value);
    if (slot->count == 0) {
        counts->used++;
        slot->first_sample = sample;
    }
    slot->value = value;
    slot->count++;
}

static int compare_counts(const void *a, const void *b)
{
    const value_slot *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return ((int64_t)x->value > (int64_t)y->value) - ((int64_t)x->value < (int64_t)y->value);
}

/* Moves the used slots to the front, the most frequent value first. */
static void sort_counts(value_counts *counts)
{
    size_t kept = 0;
    for (size_t i = 0; i < counts->capacity; i++)
        if (counts->slots[i].count > 0)
            counts->slots[kept++] = counts->slots[i];
    if (kept > 0)
        qsort(counts->slots, kept, sizeof *counts->slots, compare_counts);
}

/* ---- One field ---- */

typedef struct payload {
    uint64_t offset, size;
} payload;

struct coffer_mldf_stats {
    const coffer_mldf *set;
    coffer_mldf_field_stats *fields;
    value_counts *values; /* one per field */
    uint64_t payload_bytes, stored_bytes;
};

typedef struct stats_pass {
    coffer_mldf_stats *stats;
    coffer_mldf_entry *entries;
    payload *payloads;
    size_t payload_count, payload_capacity;
    bool too_many;
    const uint64_t *samples; /* ascending; NULL = all */
    uint64_t sample_count;
} stats_pass;

static void range_add(coffer_mldf_range *range, double value)
{
    range->min = range->count == 0 || value < range->min ? value : range->min;
    range->max = range->count == 0 || value > range->max ? value : range->max;
    range->sum += value;
    range->count++;
}

/* Payloads at the same offset are shared. */
static void keep_payload(stats_pass *pass, const coffer_mldf_entry *entry)
{
    if (pass->too_many || entry->size == 0)
        return;
    if (pass->payload_count == pass->payload_capacity) {
        size_t capacity = pass->payload_capacity ? 2 * pass->payload_capacity : ROWS_AT_ONCE;
        payload *grown = capacity <= PAYLOADS_MAX
                             ? coffer__realloc(pass->payloads, capacity * sizeof *pass->payloads)
                             : NULL;
        if (!grown) {
            pass->too_many = true;
            return;
        }
        pass->payloads = grown;
        pass->payload_capacity = capacity;
    }
    pass->payloads[pass->payload_count++] = (payload){ entry->offset, entry->size };
}

static void add_scalar(coffer_mldf_field_stats *stats, value_counts *values, const coffer_mldf_entry *entry,
                       uint64_t sample)
{
    bool integer = stats->field->kind == COFFER_MLDF_ENTRY_INT;
    double value = integer ? (double)entry->i64 : entry->f64;
    stats->present++;
    if (!isfinite(value)) {
        stats->not_finite++;
        return;
    }
    range_add(&stats->scalars, value);
    if (integer)
        count_value(values, (uint64_t)entry->i64, sample);
}

static void add_payload(coffer_mldf_field_stats *stats, value_counts *values, const coffer_mldf_entry *entry,
                        uint64_t sample)
{
    stats->present++;
    range_add(&stats->bytes, entry->size);
    if (stats->field->kind == COFFER_MLDF_ENTRY_IMAGE) {
        range_add(&stats->widths, entry->width);
        range_add(&stats->heights, entry->height);
        count_value(values, (uint64_t)entry->width << WIDTH_SHIFT | entry->height, sample);
    } else if (stats->field->kind == COFFER_MLDF_ENTRY_AUDIO && entry->sample_rate) {
        range_add(&stats->seconds, (double)entry->num_samples / entry->sample_rate);
        count_value(values, entry->sample_rate, sample);
    } else if (stats->field->kind == COFFER_MLDF_ENTRY_TEXT &&
               entry->num_tokens != COFFER_MLDF_TOKENS_BY_SIZE && entry->num_tokens > 0) {
        range_add(&stats->tokens, entry->num_tokens);
    }
}

static void add_entry(stats_pass *pass, size_t field, const coffer_mldf_entry *entry, uint64_t sample)
{
    coffer_mldf_field_stats *stats = &pass->stats->fields[field];
    value_counts *values = &pass->stats->values[field];
    coffer_mldf_entry_kind kind = stats->field->kind;
    if (kind == COFFER_MLDF_ENTRY_OPAQUE) {
        stats->present++;
    } else if (!coffer__mldf_has_payload(kind)) {
        add_scalar(stats, values, entry, sample);
    } else if (entry->present) {
        add_payload(stats, values, entry, sample);
        keep_payload(pass, entry);
    } else {
        stats->absent++;
    }
}

static coffer_status read_field(stats_pass *pass, size_t field, coffer_error *err)
{
    const coffer_mldf *set = pass->stats->set;
    coffer_mldf_field_stats *stats = &pass->stats->fields[field];
    value_counts *values = &pass->stats->values[field];
    uint64_t samples = set->header.samples, next = 0;
    stats->struct_size = sizeof *stats;
    stats->field = &set->schema.fields[field];
    for (uint64_t first = 0; first < samples; first += ROWS_AT_ONCE) {
        uint64_t count = samples - first < ROWS_AT_ONCE ? samples - first : ROWS_AT_ONCE;
        pass->entries[0].struct_size = sizeof *pass->entries;
        coffer_status status = coffer_mldf_read_entries(pass->entries, set, field, first, count, err);
        if (status)
            return status;
        for (uint64_t i = 0; i < count; i++) {
            while (pass->samples && next < pass->sample_count && pass->samples[next] < first + i)
                next++;
            if (!pass->samples || (next < pass->sample_count && pass->samples[next] == first + i))
                add_entry(pass, field, &pass->entries[i], first + i);
        }
    }
    sort_counts(values);
    stats->values_counted = values->used;
    stats->values_overflowed = values->overflowed;
    return COFFER_OK;
}

/* ---- The whole set ---- */

static int compare_payloads(const void *a, const void *b)
{
    const payload *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void add_up(stats_pass *pass)
{
    coffer_mldf_stats *stats = pass->stats;
    for (size_t i = 0; i < stats->set->schema.count; i++)
        stats->payload_bytes += (uint64_t)stats->fields[i].bytes.sum;
    if (pass->too_many) {
        stats->stored_bytes = stats->payload_bytes;
        return;
    }
    if (pass->payload_count > 0)
        qsort(pass->payloads, pass->payload_count, sizeof *pass->payloads, compare_payloads);
    for (size_t i = 0; i < pass->payload_count; i++)
        if (i == 0 || pass->payloads[i].offset != pass->payloads[i - 1].offset)
            stats->stored_bytes += pass->payloads[i].size;
}

static coffer_status read_fields(stats_pass *pass, const coffer_progress *progress, coffer_error *err)
{
    size_t count = pass->stats->set->schema.count;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < count && !status; i++) {
        status = read_field(pass, i, err);
        if (!status)
            status = coffer__progress_step(progress, i + 1, count, err);
    }
    return status;
}

coffer_status coffer_mldf_stats_new(coffer_mldf_stats **out, const coffer_mldf *set,
                                    const coffer_mldf_stats_opts *opts, coffer_error *err)
{
    coffer_mldf_stats_opts options = COFFER_MLDF_STATS_OPTS_INIT;
    stats_pass pass = { 0 };
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    pass.stats = coffer__calloc(1, sizeof *pass.stats);
    if (!pass.stats)
        return coffer__fail_no_memory(err, sizeof *pass.stats);
    pass.stats->set = set;
    pass.samples = options.samples;
    pass.sample_count = options.sample_count;
    pass.stats->fields = coffer__calloc(set->schema.count + 1, sizeof *pass.stats->fields);
    pass.stats->values = coffer__calloc(set->schema.count + 1, sizeof *pass.stats->values);
    pass.entries = coffer__calloc(ROWS_AT_ONCE, sizeof *pass.entries);
    if (!pass.stats->fields || !pass.stats->values || !pass.entries) {
        status = coffer__fail_no_memory(err, ROWS_AT_ONCE * sizeof *pass.entries);
        goto out;
    }
    status = read_fields(&pass, options.progress, err);
    if (status)
        goto out;
    add_up(&pass);
    *out = pass.stats;
    pass.stats = NULL;
out:
    coffer_mldf_stats_free(pass.stats);
    coffer__free(pass.entries);
    coffer__free(pass.payloads);
    return status;
}

void coffer_mldf_stats_free(coffer_mldf_stats *stats)
{
    if (!stats)
        return;
    for (size_t i = 0; stats->values && i < stats->set->schema.count; i++)
        coffer__free(stats->values[i].slots);
    coffer__free(stats->values);
    coffer__free(stats->fields);
    coffer__free(stats);
}

uint64_t coffer_mldf_stats_payload_bytes(const coffer_mldf_stats *stats)
{
    return stats->payload_bytes;
}

uint64_t coffer_mldf_stats_stored_bytes(const coffer_mldf_stats *stats)
{
    return stats->stored_bytes;
}

const coffer_mldf_field_stats *coffer_mldf_stats_field_at(const coffer_mldf_stats *stats, size_t field)
{
    return field < stats->set->schema.count ? &stats->fields[field] : NULL;
}

coffer_status coffer_mldf_stats_value_at(coffer_mldf_value_count *out, const coffer_mldf_stats *stats,
                                         size_t field, size_t index, coffer_error *err)
{
    size_t counted = field < stats->set->schema.count ? stats->values[field].used : 0;
    if (index >= counted)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "field %zu: value %zu requested, %zu are counted", field, index, counted);
    const value_slot *slot = &stats->values[field].slots[index];
    coffer_mldf_value_count value = { .struct_size = sizeof value,
                                      .value = (int64_t)slot->value,
                                      .count = slot->count,
                                      .first_sample = slot->first_sample };
    if (stats->fields[field].field->kind == COFFER_MLDF_ENTRY_IMAGE) {
        value.width = (uint32_t)(slot->value >> WIDTH_SHIFT);
        value.height = (uint32_t)(slot->value & UINT16_MAX);
    }
    return coffer__give_struct(out, &value, sizeof value, err);
}
