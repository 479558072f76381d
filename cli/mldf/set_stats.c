#include "mldf/set_stats.h"

#include "base/fail.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS_AT_ONCE = 8192, PAYLOADS_MAX = 1 << 24 };

typedef struct payload {
    uint64_t offset, size;
} payload;

typedef struct stats_job {
    const coffer_mldf *set;
    coffer_mldf_entry *entries;
    payload *payloads;
    size_t payload_count, payload_capacity;
    bool too_many;
} stats_job;

double span_mean(const span *values)
{
    return values->count ? values->sum / (double)values->count : NAN;
}

static void span_add(span *values, double value)
{
    values->min = values->count == 0 || value < values->min ? value : values->min;
    values->max = values->count == 0 || value > values->max ? value : values->max;
    values->sum += value;
    values->count++;
}

/* Payloads are compared by their place: those that lie at one are stored once. */
static void keep_payload(stats_job *job, const coffer_mldf_entry *entry)
{
    if (job->too_many || entry->size == 0)
        return;
    if (job->payload_count == job->payload_capacity) {
        size_t capacity = job->payload_capacity ? 2 * job->payload_capacity : ROWS_AT_ONCE;
        payload *grown = capacity <= PAYLOADS_MAX
                             ? coffer__realloc(job->payloads, capacity * sizeof *job->payloads)
                             : NULL;
        if (!grown) {
            job->too_many = true;
            return;
        }
        job->payloads = grown;
        job->payload_capacity = capacity;
    }
    job->payloads[job->payload_count++] = (payload){ entry->offset, entry->size };
}

static void add_scalar(field_stats *stats, const coffer_mldf_entry *entry, uint64_t sample)
{
    bool whole = stats->field->kind == COFFER_MLDF_ENTRY_INT;
    double value = whole ? (double)entry->i64 : entry->f64;
    stats->present++;
    if (!isfinite(value)) {
        stats->unusual++;
        return;
    }
    span_add(&stats->numbers, value);
    if (whole)
        tally_add(&stats->values, (uint64_t)entry->i64, sample);
}

static void add_payload(field_stats *stats, const coffer_mldf_entry *entry, uint64_t sample)
{
    enum { SEE_SIZE = 65535 };
    stats->present++;
    span_add(&stats->sizes, entry->size);
    if (stats->field->kind == COFFER_MLDF_ENTRY_IMAGE) {
        span_add(&stats->widths, entry->width);
        span_add(&stats->heights, entry->height);
        tally_add(&stats->values, (uint64_t)entry->width << 16 | entry->height, sample);
    } else if (stats->field->kind == COFFER_MLDF_ENTRY_AUDIO && entry->sample_rate) {
        span_add(&stats->seconds, (double)entry->num_samples / entry->sample_rate);
        tally_add(&stats->values, entry->sample_rate, sample);
    } else if (stats->field->kind == COFFER_MLDF_ENTRY_TEXT && entry->num_tokens != SEE_SIZE &&
               entry->num_tokens > 0) {
        span_add(&stats->tokens, entry->num_tokens);
    }
}

static void add_entry(stats_job *job, field_stats *stats, const coffer_mldf_entry *entry, uint64_t sample)
{
    coffer_mldf_entry_kind kind = stats->field->kind;
    if (kind == COFFER_MLDF_ENTRY_OPAQUE) {
        stats->present++;
    } else if (kind == COFFER_MLDF_ENTRY_INT || kind == COFFER_MLDF_ENTRY_FLOAT) {
        add_scalar(stats, entry, sample);
    } else if (entry->present) {
        add_payload(stats, entry, sample);
        keep_payload(job, entry);
    } else {
        stats->absent++;
    }
}

static coffer_status read_field(stats_job *job, field_stats *stats, size_t field, coffer_error *err)
{
    uint64_t samples = coffer_mldf_sample_count(job->set);
    stats->field = coffer_mldf_field_at(job->set, field);
    for (uint64_t first = 0; first < samples; first += ROWS_AT_ONCE) {
        uint64_t count = samples - first < ROWS_AT_ONCE ? samples - first : ROWS_AT_ONCE;
        coffer_status status = coffer_mldf_read_entries(job->entries, job->set, field, first, count, err);
        if (status != COFFER_OK)
            return status;
        for (uint64_t i = 0; i < count; i++)
            add_entry(job, stats, &job->entries[i], first + i);
    }
    tally_sort(&stats->values);
    return COFFER_OK;
}

static int compare(const void *a, const void *b)
{
    const payload *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void add_up(set_stats *stats, stats_job *job)
{
    for (size_t i = 0; i < stats->field_count; i++)
        stats->payload_bytes += (uint64_t)stats->fields[i].sizes.sum;
    if (job->too_many) {
        stats->distinct_bytes = stats->payload_bytes;
        return;
    }
    if (job->payload_count > 0)
        qsort(job->payloads, job->payload_count, sizeof *job->payloads, compare);
    for (size_t i = 0; i < job->payload_count; i++)
        if (i == 0 || job->payloads[i].offset != job->payloads[i - 1].offset)
            stats->distinct_bytes += job->payloads[i].size;
}

coffer_status set_stats_read(set_stats *out, const coffer_mldf *set, const coffer_progress *progress,
                             coffer_error *err)
{
    stats_job job = { .set = set };
    set_stats stats = { .samples = coffer_mldf_sample_count(set),
                        .field_count = coffer_mldf_field_count(set) };
    coffer_status status = COFFER_OK;
    stats.fields = coffer__calloc(stats.field_count + 1, sizeof *stats.fields);
    job.entries = coffer__calloc(ROWS_AT_ONCE, sizeof *job.entries);
    if (!stats.fields || !job.entries)
        status = coffer__fail_no_memory(err, ROWS_AT_ONCE * sizeof *job.entries);
    for (size_t i = 0; i < stats.field_count && status == COFFER_OK; i++) {
        status = read_field(&job, &stats.fields[i], i, err);
        if (status == COFFER_OK && progress && progress->step(progress->context, i + 1, stats.field_count))
            status = coffer__fail(err, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "interrupted");
    }
    if (status == COFFER_OK) {
        add_up(&stats, &job);
        *out = stats;
    } else {
        set_stats_free(&stats);
    }
    coffer__free(job.entries);
    coffer__free(job.payloads);
    return status;
}

void set_stats_free(set_stats *stats)
{
    for (size_t i = 0; stats->fields && i < stats->field_count; i++)
        tally_free(&stats->fields[i].values);
    coffer__free(stats->fields);
    stats->fields = NULL;
}
