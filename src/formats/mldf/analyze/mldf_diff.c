/* Two sets: their headers side by side, their fields, their samples. What is stored differently but holds the
 * same is equal. */
#include "formats/mldf/analyze/mldf_diff.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Headers ---- */

static void put_header(coffer_node *list, const char *name, uint64_t a, uint64_t b, coffer_unit unit)
{
    if (a == b)
        return;
    coffer_node *entry = coffer__node_map(list, NULL);
    coffer__node_text(entry, "name", name);
    coffer__node_u64(entry, "a", a, unit);
    coffer__node_u64(entry, "b", b, unit);
}

static void compare_headers(coffer_node *out, const coffer_mldf *a, const coffer_mldf *b)
{
    coffer_node *list = coffer__node_list(out, "header");
    const coffer__mldf_header *x = &a->header, *y = &b->header;
    put_header(list, "version_minor", x->minor, y->minor, COFFER_UNIT_NONE);
    put_header(list, "flags", x->flags, y->flags, COFFER_UNIT_FLAGS);
    put_header(list, "samples", x->samples, y->samples, COFFER_UNIT_NONE);
    put_header(list, "fields", x->fields, y->fields, COFFER_UNIT_NONE);
    put_header(list, "page_size", x->page_size, y->page_size, COFFER_UNIT_BYTES);
    put_header(list, "field_desc_ptr", x->descriptors, y->descriptors, COFFER_UNIT_OFFSET);
    put_header(list, "metadata_ptr", x->metadata, y->metadata, COFFER_UNIT_OFFSET);
    put_header(list, "data_ptr", x->data, y->data, COFFER_UNIT_OFFSET);
    put_header(list, "alloc_table_ptr", x->table, y->table, COFFER_UNIT_OFFSET);
    put_header(list, "data_crc32", x->data_crc, y->data_crc, COFFER_UNIT_FLAGS);
    put_header(list, "table_crc32", x->table_crc, y->table_crc, COFFER_UNIT_FLAGS);
    put_header(list, "descriptor_stride", a->schema.stride, b->schema.stride, COFFER_UNIT_NONE);
    put_header(list, "row_size", a->schema.row_size, b->schema.row_size, COFFER_UNIT_BYTES);
    put_header(list, "payloads", a->table_count, b->table_count, COFFER_UNIT_NONE);
    put_header(list, "file_size", a->file_size, b->file_size, COFFER_UNIT_BYTES);
}

/* ---- Fields ---- */

static void put_change(coffer_node *list, const char *field, const char *change, const char *what,
                       const char *a, const char *b)
{
    coffer_node *entry = coffer__node_map(list, NULL);
    coffer__node_text(entry, "field", field);
    coffer__node_text(entry, "change", change);
    coffer__node_text(entry, "what", what);
    coffer__node_text(entry, "a", a);
    coffer__node_text(entry, "b", b);
}

static const char *type_text(char out[16], const coffer_mldf_field *field)
{
    const char *name = coffer_mldf_type_name(field->type);
    if (name)
        return name;
    snprintf(out, 16, "%u", field->type);
    return out;
}

/* "f32 [2, 3]"; "none" for a type that has no array descriptor. */
static const char *shape_text(char out[320], const coffer_mldf_field *field)
{
    int len = snprintf(out, 320, "%s [", coffer_dtype_name(field->dtype));
    if (field->dtype == COFFER_DTYPE_NONE)
        return "none";
    for (uint32_t d = 0; d < field->ndim; d++)
        len += snprintf(out + len, 320 - (size_t)len, "%s%" PRIu64, d ? ", " : "", field->dims[d]);
    snprintf(out + len, 320 - (size_t)len, "]");
    return out;
}

/* True when the values of both can be compared. */
static bool compare_field(coffer_node *list, const coffer_mldf_field *a, const coffer_mldf_field *b)
{
    char type_a[16], type_b[16], shape_a[320], shape_b[320];
    const char *x = shape_text(shape_a, a), *y = shape_text(shape_b, b);
    if (a->type != b->type)
        put_change(list, a->name, "changed", "type", type_text(type_a, a), type_text(type_b, b));
    else if (strcmp(x, y) != 0)
        put_change(list, a->name, "changed", "shape", x, y);
    return a->kind == b->kind && (a->kind != COFFER_MLDF_ENTRY_OPAQUE || a->row_size == b->row_size);
}

static coffer_status compare_schemas(bool *same, coffer__mldf_comparison *of, coffer_node *out,
                                     coffer_error *err)
{
    const coffer_mldf *a = of->set[0], *b = of->set[1];
    coffer_node *list = coffer__node_list(out, "schema");
    char text[16];
    of->pairs = coffer__calloc(a->schema.count, sizeof *of->pairs);
    if (!of->pairs)
        return coffer__fail_no_memory(err, a->schema.count * sizeof *of->pairs);
    for (size_t i = 0; i < a->schema.count; i++) {
        const coffer_mldf_field *field = &a->schema.fields[i];
        size_t other = coffer_mldf_find_field(b, field->name);
        if (other == SIZE_MAX)
            put_change(list, field->name, "removed", "field", type_text(text, field), NULL);
        else if (compare_field(list, field, &b->schema.fields[other]))
            of->pairs[of->pair_count++] = (coffer__mldf_pair){ .field = { i, other }, .first = UINT64_MAX };
    }
    for (size_t i = 0; i < b->schema.count; i++) {
        const coffer_mldf_field *field = &b->schema.fields[i];
        if (coffer_mldf_find_field(a, field->name) == SIZE_MAX)
            put_change(list, field->name, "added", "field", NULL, type_text(text, field));
    }
    *same = coffer_node_count(list) == 0;
    return coffer__node_status(out, err);
}

/* ---- All of it ---- */

static bool put_pairs(coffer_node *out, const coffer__mldf_comparison *of)
{
    coffer_node *list = coffer__node_list(out, "values");
    bool equal = true;
    for (size_t i = 0; i < of->pair_count; i++) {
        const coffer__mldf_pair *pair = &of->pairs[i];
        const coffer_mldf_field *field = &of->set[0]->schema.fields[pair->field[0]];
        coffer_node *entry = coffer__node_map(list, NULL);
        coffer__node_text(entry, "field", field->name);
        coffer__node_u64(entry, "compared", of->samples, COFFER_UNIT_NONE);
        coffer__node_u64(entry, "differing", pair->differing, COFFER_UNIT_NONE);
        if (pair->differing > 0)
            coffer__node_u64(entry, "first_sample", pair->first, COFFER_UNIT_NONE);
        else
            coffer__node_null(entry, "first_sample");
        if (pair->largest > 0)
            coffer__node_f64(entry, "largest", pair->largest, COFFER_UNIT_NONE);
        else
            coffer__node_null(entry, "largest");
        equal = equal && pair->differing == 0;
    }
    return equal;
}

static coffer_status compare(coffer_node *out, coffer__mldf_comparison *of, coffer_error *err)
{
    const coffer_mldf *a = of->set[0], *b = of->set[1];
    coffer_node *equal = coffer__node_hold(out, "equal"), *listed = NULL;
    coffer_status status;
    of->samples = a->header.samples < b->header.samples ? a->header.samples : b->header.samples;
    compare_headers(out, a, b);
    bool same_schema = false;
    status = compare_schemas(&same_schema, of, out, err);
    if (status)
        return status;
    coffer__node_u64(out, "samples_a", a->header.samples, COFFER_UNIT_NONE);
    coffer__node_u64(out, "samples_b", b->header.samples, COFFER_UNIT_NONE);
    listed = coffer__node_list(out, "differences");
    status = coffer__mldf_compare_values(of, listed, err);
    if (status)
        return status;
    bool same_values = put_pairs(out, of);
    coffer__node_set_bool(equal, same_schema && same_values && a->header.samples == b->header.samples);
    return coffer__node_status(out, err);
}

coffer_status coffer__mldf_diff(coffer_node *out, coffer_source *a, coffer_source *b,
                                const coffer_diff_opts *opts, coffer_error *err)
{
    coffer_mldf_open_opts open_opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer__mldf_comparison of = { .opts = opts };
    coffer_mldf *set_a = NULL, *set_b = NULL;
    coffer_status status;
    open_opts.limits = opts->limits;
    open_opts.key = opts->key;
    status = coffer_mldf_open(&set_a, a, &open_opts, err);
    if (!status)
        status = coffer_mldf_open(&set_b, b, &open_opts, err);
    if (!status) {
        of.set[0] = set_a;
        of.set[1] = set_b;
        status = compare(out, &of, err);
    }
    coffer__free(of.pairs);
    coffer_mldf_close(set_a);
    coffer_mldf_close(set_b);
    return status;
}
