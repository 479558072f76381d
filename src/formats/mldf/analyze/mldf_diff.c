/* Compares two sets: headers, fields, samples. Sets with equal fields and values are equal, whatever their
 * layout. */
#include "formats/mldf/analyze/mldf_diff.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/node_diff.h"
#include "base/report.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Metadata ---- */

static void put_header(coffer_node *out, const coffer_mldf *set)
{
    const coffer__mldf_header *header = &set->header;
    coffer_node_add_u64(out, "version_minor", header->minor, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "flags", header->flags, COFFER_UNIT_FLAGS);
    coffer_node_add_u64(out, "samples", header->samples, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "fields", header->fields, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "page_size", header->page_size, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "field_desc_ptr", header->descriptors, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(out, "metadata_ptr", header->metadata, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(out, "data_ptr", header->data, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(out, "alloc_table_ptr", header->table, COFFER_UNIT_OFFSET);
    coffer_node_add_u64(out, "data_crc32", header->data_crc, COFFER_UNIT_FLAGS);
    coffer_node_add_u64(out, "table_crc32", header->table_crc, COFFER_UNIT_FLAGS);
    coffer_node_add_u64(out, "descriptor_stride", set->schema.stride, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "row_size", set->schema.row_size, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "payloads", set->table_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "file_size", set->file_size, COFFER_UNIT_BYTES);
}

/* "f32 [2, 3]" */
static void put_shape(coffer_node *out, const coffer_mldf_field *field)
{
    char text[320];
    int len = snprintf(text, sizeof text, "%s [", coffer_dtype_name(field->dtype));
    for (uint32_t d = 0; d < field->ndim; d++)
        len += snprintf(text + len, sizeof text - (size_t)len, "%s%" PRIu64, d ? ", " : "", field->dims[d]);
    snprintf(text + len, sizeof text - (size_t)len, "]");
    coffer_node_add_text(out, "shape", text);
}

static void put_fields(coffer_node *out, const coffer__mldf_schema *schema)
{
    for (size_t i = 0; i < schema->count; i++) {
        const coffer_mldf_field *field = &schema->fields[i];
        const char *type = coffer_mldf_type_name(field->type);
        coffer_node *entry = coffer_node_add_map(out, field->name);
        if (type)
            coffer_node_add_text(entry, "type", type);
        else
            coffer_node_add_u64(entry, "type", field->type, COFFER_UNIT_NONE);
        if (field->dtype != COFFER_DTYPE_NONE)
            put_shape(entry, field);
    }
}

static coffer_status compare_metadata(bool *same_fields, coffer_node *out,
                                      const coffer__mldf_comparison *comparison, coffer_error *err)
{
    coffer_node *root = NULL, *fields[2], *header[2];
    coffer_status status = coffer_node_new(&root, err);
    if (status)
        return status;
    for (int i = 0; i < 2; i++) {
        fields[i] = coffer_node_add_map(root, i == 0 ? "fields_a" : "fields_b");
        header[i] = coffer_node_add_map(root, i == 0 ? "header_a" : "header_b");
        put_fields(fields[i], &comparison->set[i]->schema);
        put_header(header[i], comparison->set[i]);
    }
    coffer__node_changes changes = coffer__node_changes_new(out, comparison->opts->max_shown);
    status = coffer_node_status(root, err);
    if (!status)
        status = coffer__node_diff(&changes, "fields", fields[0], fields[1], err);
    *same_fields = changes.count == 0;
    if (!status && comparison->opts->header)
        status = coffer__node_diff(&changes, "header", header[0], header[1], err);
    coffer_node_add_u64(out, "metadata_differences", changes.count, COFFER_UNIT_NONE);
    coffer_node_free(root);
    return status ? status : coffer_node_status(out, err);
}

/* ---- Fields ---- */

static bool can_compare(const coffer_mldf_field *a, const coffer_mldf_field *b)
{
    return a->kind == b->kind && (a->kind != COFFER_MLDF_ENTRY_OPAQUE || a->row_size == b->row_size);
}

static coffer_status pair_fields(coffer__mldf_comparison *comparison, coffer_error *err)
{
    const coffer__mldf_schema *a = &comparison->set[0]->schema, *b = &comparison->set[1]->schema;
    comparison->pairs = coffer__calloc(a->count, sizeof *comparison->pairs);
    if (!comparison->pairs)
        return coffer__fail_no_memory(err, a->count * sizeof *comparison->pairs);
    for (size_t i = 0; i < a->count; i++) {
        size_t other = coffer_mldf_find_field(comparison->set[1], a->fields[i].name);
        if (other != COFFER_INDEX_NONE && can_compare(&a->fields[i], &b->fields[other]))
            comparison->pairs[comparison->pair_count++] =
                (coffer__mldf_pair){ .field = { i, other }, .first = UINT64_MAX };
    }
    return COFFER_OK;
}

/* ---- Comparing ---- */

static bool put_pairs(coffer_node *out, const coffer__mldf_comparison *comparison)
{
    coffer_node *list = coffer_node_add_list(out, "values");
    bool equal = true;
    for (size_t i = 0; i < comparison->pair_count; i++) {
        const coffer__mldf_pair *pair = &comparison->pairs[i];
        const coffer_mldf_field *field = &comparison->set[0]->schema.fields[pair->field[0]];
        coffer_node *entry = coffer_node_add_map(list, NULL);
        coffer_node_add_text(entry, "field", field->name);
        coffer_node_add_u64(entry, "compared", comparison->samples, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "differing", pair->differing, COFFER_UNIT_NONE);
        if (pair->differing > 0)
            coffer_node_add_u64(entry, "first_sample", coffer__mldf_sample_of(comparison, pair->first, 0),
                                COFFER_UNIT_NONE);
        else
            coffer_node_add_null(entry, "first_sample");
        if (pair->largest > 0)
            coffer_node_add_f64(entry, "largest", pair->largest, COFFER_UNIT_NONE);
        else
            coffer_node_add_null(entry, "largest");
        equal = equal && pair->differing == 0;
    }
    return equal;
}

static bool differ(const coffer__mldf_comparison *comparison)
{
    for (size_t i = 0; i < comparison->pair_count; i++)
        if (comparison->pairs[i].differing)
            return true;
    return comparison->set[0]->header.samples != comparison->set[1]->header.samples;
}

/* Sets that differ number by number are compared again with samples aligned, unless the names of all samples
 * agree. *key : the pair that names samples. */
static coffer_status align(size_t *key, coffer__mldf_comparison *comparison, coffer_error *err)
{
    uint64_t a = comparison->set[0]->header.samples, b = comparison->set[1]->header.samples;
    coffer_status status = coffer__mldf_align_field(key, comparison, err);
    if (!status && a == b)
        status = coffer__mldf_compare_values(comparison, NULL, err);
    bool names_agree = *key != SIZE_MAX && a == b && comparison->pairs[*key].differing == 0;
    bool needed = !status && comparison->pair_count && !names_agree && differ(comparison);
    for (size_t i = 0; i < comparison->pair_count; i++) {
        comparison->pairs[i].differing = 0;
        comparison->pairs[i].first = UINT64_MAX;
        comparison->pairs[i].largest = 0;
    }
    return needed ? coffer__mldf_align(comparison, *key, err) : status;
}

/* Samples of one set that the other does not have: how many, and the first of them. Without matches nothing
 * bounds their number: those in both are the first ones. */
static coffer_status put_unmatched(coffer_node *out, const coffer__mldf_comparison *comparison, int side,
                                   coffer_error *err)
{
    uint64_t count = comparison->set[side]->header.samples, shown = 0;
    bool *taken = comparison->matches ? coffer__calloc((size_t)count + 1, sizeof *taken) : NULL;
    if (comparison->matches && !taken)
        return coffer__fail_no_memory(err, count);
    for (uint64_t i = 0; taken && i < comparison->samples; i++)
        taken[coffer__mldf_sample_of(comparison, i, side)] = true;
    coffer_node *list = coffer_node_add_list(out, side ? "only_in_b" : "only_in_a");
    for (uint64_t i = taken ? 0 : comparison->samples; i < count && shown < comparison->opts->max_shown;
         i++) {
        if (taken && taken[i])
            continue;
        coffer_node_add_u64(list, NULL, i, COFFER_UNIT_NONE);
        shown++;
    }
    coffer_node_add_u64(out, side ? "samples_only_in_b" : "samples_only_in_a", count - comparison->samples,
                        COFFER_UNIT_NONE);
    coffer__free(taken);
    return COFFER_OK;
}

static coffer_status put_alignment(coffer_node *out, const coffer__mldf_comparison *comparison, size_t key,
                                   coffer_error *err)
{
    const coffer__mldf_schema *schema = &comparison->set[0]->schema;
    const char *by = !comparison->matches ? "number"
                     : key == SIZE_MAX    ? "content"
                                          : schema->fields[comparison->pairs[key].field[0]].name;
    coffer_node_add_u64(out, "samples_a", comparison->set[0]->header.samples, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "samples_b", comparison->set[1]->header.samples, COFFER_UNIT_NONE);
    coffer_node_add_text(out, "aligned_by", by);
    coffer_node_add_u64(out, "samples_in_both", comparison->samples, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "samples_moved", comparison->moved, COFFER_UNIT_NONE);
    coffer_status status = put_unmatched(out, comparison, 0, err);
    return status ? status : put_unmatched(out, comparison, 1, err);
}

static coffer_status compare(coffer_node *out, coffer__mldf_comparison *comparison, coffer_error *err)
{
    const coffer_mldf *a = comparison->set[0], *b = comparison->set[1];
    coffer_node *equal = coffer__node_hold(out, "equal");
    size_t key = SIZE_MAX;
    comparison->samples = a->header.samples < b->header.samples ? a->header.samples : b->header.samples;
    bool same_fields = false;
    coffer_status status = compare_metadata(&same_fields, out, comparison, err);
    if (!status)
        status = pair_fields(comparison, err);
    if (!status)
        status = align(&key, comparison, err);
    if (!status)
        status = put_alignment(out, comparison, key, err);
    if (!status)
        status = coffer__mldf_compare_values(comparison, coffer_node_add_list(out, "differences"), err);
    if (status)
        return status;
    bool same_values = put_pairs(out, comparison);
    coffer__node_set_bool(equal, same_fields && same_values && a->header.samples == b->header.samples &&
                                     comparison->samples == a->header.samples && comparison->moved == 0);
    return coffer_node_status(out, err);
}

coffer_status coffer__mldf_diff(coffer_node *out, coffer_source *a, coffer_source *b,
                                const coffer_diff_opts *opts, coffer_error *err)
{
    coffer_mldf_open_opts open_opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer__mldf_comparison comparison = { .opts = opts };
    coffer_mldf *set_a = NULL, *set_b = NULL;
    coffer_status status;
    open_opts.limits = opts->limits;
    open_opts.key = opts->key;
    open_opts.verify = true;
    status = coffer_mldf_open(&set_a, a, &open_opts, err);
    if (!status)
        status = coffer__fail_input(err, coffer_mldf_open(&set_b, b, &open_opts, err), coffer_source_name(b));
    if (!status) {
        comparison.set[0] = set_a;
        comparison.set[1] = set_b;
        status = compare(out, &comparison, err);
    }
    coffer__free(comparison.pairs);
    coffer__free(comparison.matches);
    coffer_mldf_close(set_a);
    coffer_mldf_close(set_b);
    return status;
}
