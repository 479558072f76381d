/* The page of a training set: its fields, labels, sizes, and a gallery of samples. */
#include "page/page_set.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>

enum { MOST_VALUES = 1000, BUCKETS = 65, ENTRIES_AT_ONCE = 4096 };

static void close_set(void *state)
{
    coffer__page_set_state *page = state;
    for (size_t i = 0; i < 2; i++) {
        coffer_mldf_stats_free(page->stats[i]);
        coffer_mldf_close(page->sets[i]);
    }
    coffer_free(page->damaged);
    coffer__free(page);
}

static coffer_status open_set(void **state, coffer_chunks *chunks, coffer_error *err)
{
    coffer_mldf_open_opts how = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer__page_set_state *page = coffer__calloc(1, sizeof *page);
    if (!page)
        return coffer__fail_no_memory(err, sizeof *page);
    coffer_status status = COFFER_OK;
    how.limits = &chunks->limits;
    page->count = chunks->file_count;
    for (size_t i = 0; i < page->count && !status; i++) {
        status = coffer_mldf_open(&page->sets[i], coffer_file_source(chunks->files[i]), &how, err);
        if (!status)
            status = coffer_mldf_stats_new(&page->stats[i], page->sets[i], NULL, err);
    }
    if (!status && page->count == 1)
        status = coffer__page_find_damage(page, chunks, err);
    if (status) {
        close_set(page);
        return status;
    }
    *state = page;
    return COFFER_OK;
}

/* ---- Fields ---- */

static void add_range(coffer_node *map, const char *name, const coffer_mldf_range *range, coffer_unit unit)
{
    if (range->count == 0)
        return;
    coffer_node *inner = coffer_node_add_map(map, name);
    coffer_node_add_f64(inner, "min", range->min, unit);
    coffer_node_add_f64(inner, "max", range->max, unit);
    coffer_node_add_f64(inner, "mean", range->sum / (double)range->count, unit);
}

/* The most frequent values of a field: labels, picture sizes, sample rates. */
static coffer_status add_counts(coffer_chunks *chunks, coffer_node *map, const coffer__page_set_state *page,
                                size_t field, uint32_t detail, coffer_error *err)
{
    const coffer_mldf_field_stats *stats = coffer_mldf_stats_field_at(page->stats[0], field);
    size_t total = stats->values_counted, most = MOST_VALUES / detail;
    size_t count = total < most ? total : most;
    coffer_status status = COFFER_OK;
    if (count == 0 || stats->values_overflowed)
        return COFFER_OK;
    coffer_node *list = coffer_node_add_list(map, "values");
    for (size_t i = 0; i < count && !status; i++) {
        coffer_mldf_value_count value = COFFER_MLDF_VALUE_COUNT_INIT;
        status = coffer_mldf_stats_value_at(&value, page->stats[0], field, i, err);
        coffer_node *entry = coffer_node_add_map(list, NULL);
        if (stats->field->kind == COFFER_MLDF_ENTRY_IMAGE)
            coffer_node_add_printf(entry, "value", "%" PRIu32 " × %" PRIu32, value.width, value.height);
        else
            coffer_node_add_printf(entry, "value", "%" PRId64, value.value);
        coffer_node_add_u64(entry, "count", value.count, COFFER_UNIT_NONE);
    }
    if (count < total)
        coffer__chunks_note(chunks, "field %s: the %zu most frequent of %zu values", stats->field->name,
                            count, total);
    return status;
}

/* Sizes of the stored values in powers of two, like those of a trace. */
static coffer_status add_sizes(coffer_chunks *chunks, const coffer_mldf *set, size_t field, coffer_error *err)
{
    char name[32];
    uint64_t samples = coffer_mldf_sample_count(set);
    coffer_mldf_entry *entries = coffer__calloc(ENTRIES_AT_ONCE, sizeof *entries);
    if (!entries)
        return coffer__fail_no_memory(err, ENTRIES_AT_ONCE * sizeof *entries);
    snprintf(name, sizeof name, "sizes.%zu", field);
    double *buckets = coffer__chunks_f64(chunks, name, BUCKETS);
    coffer_status status = COFFER_OK;
    for (uint64_t done = 0; buckets && done < samples && !status;) {
        uint64_t count = samples - done < ENTRIES_AT_ONCE ? samples - done : ENTRIES_AT_ONCE;
        entries[0].struct_size = sizeof *entries;
        status = coffer_mldf_read_entries(entries, set, field, done, count, err);
        for (uint64_t i = 0; i < count && !status; i++) {
            unsigned bucket = 0;
            for (uint64_t size = entries[i].size; size; size >>= 1)
                bucket++;
            buckets[bucket] += entries[i].present;
        }
        done += count;
    }
    coffer__free(entries);
    return status;
}

static coffer_status add_field(coffer_chunks *chunks, coffer_node *list, const coffer__page_set_state *page,
                               size_t index, uint32_t detail, coffer_error *err)
{
    const coffer_mldf_field_stats *stats = coffer_mldf_stats_field_at(page->stats[0], index);
    const coffer_mldf_field *field = stats->field;
    const char *type = coffer_mldf_type_name(field->type);
    coffer_node *map = coffer_node_add_map(list, NULL);
    coffer_node_add_text(map, "name", field->name);
    coffer_node_add_text(map, "type", type ? type : "unknown");
    coffer_node_add_bool(map, "optional", field->flags & COFFER_MLDF_FIELD_OPTIONAL);
    coffer_node_add_bool(map, "compressed", field->flags & COFFER_MLDF_FIELD_ZSTD);
    coffer_node_add_bool(map, "encrypted", field->flags & COFFER_MLDF_FIELD_ENCRYPTED);
    coffer_node_add_u64(map, "present", stats->present, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "absent", stats->absent, COFFER_UNIT_NONE);
    add_range(map, "bytes", &stats->bytes, COFFER_UNIT_BYTES);
    add_range(map, "scalars", &stats->scalars, COFFER_UNIT_NONE);
    add_range(map, "widths", &stats->widths, COFFER_UNIT_NONE);
    add_range(map, "heights", &stats->heights, COFFER_UNIT_NONE);
    add_range(map, "seconds", &stats->seconds, COFFER_UNIT_NONE);
    add_range(map, "tokens", &stats->tokens, COFFER_UNIT_NONE);
    coffer_status status = add_counts(chunks, map, page, index, detail, err);
    bool has_payload = stats->bytes.count > 0;
    coffer_node_add_bool(map, "sizes", has_payload);
    return status || !has_payload ? status : add_sizes(chunks, page->sets[0], index, err);
}

static coffer_status emit_set(coffer_chunks *chunks, void *state, uint32_t detail, coffer_error *err)
{
    const coffer__page_set_state *page = state;
    coffer_node *list = coffer_node_add_list(chunks->view, "sets");
    for (size_t i = 0; i < page->count; i++) {
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_u64(map, "samples", coffer_mldf_sample_count(page->sets[i]), COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "fields", coffer_mldf_field_count(page->sets[i]), COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "payload_bytes", coffer_mldf_stats_payload_bytes(page->stats[i]),
                            COFFER_UNIT_BYTES);
    }
    coffer_status status = COFFER_OK;
    if (page->count > 1)
        return COFFER_OK;
    coffer_node *fields = coffer_node_add_list(chunks->view, "fields");
    for (size_t i = 0; i < coffer_mldf_field_count(page->sets[0]) && !status; i++)
        status = add_field(chunks, fields, page, i, detail, err);
    if (!status)
        status = coffer__page_add_samples(chunks, page->sets[0], detail, err);
    return status ? status : coffer__page_add_whole(chunks, page, detail, err);
}

const coffer__page_kind coffer__page_set = {
    .page = "set",
    .kinds = "mldf",
    .open = open_set,
    .emit = emit_set,
    .close = close_set,
};
