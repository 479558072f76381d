/* Two matrices compared: shape, types, metadata, values as they are seen. */
#include "formats/pycauset/pycauset_private.h"

#include "base/checked.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/node_diff.h"
#include "base/report.h"
#include "base/work.h"

#include <inttypes.h>
#include <stdio.h>

/* The differences between two states of the metadata. */

typedef struct comparison {
    coffer_node *changes;
    coffer__buffer path;
} comparison;

static size_t push_index(comparison *diff, size_t index)
{
    size_t before = diff->path.len;
    coffer__buffer_printf(&diff->path, "%s%zu", before > 0 ? "." : "", index);
    return before;
}

static void note(comparison *diff, const coffer_pycauset_value *before, const coffer_pycauset_value *after)
{
    coffer_node *entry = coffer_node_add_map(diff->changes, NULL);
    coffer_node_add_text_len(entry, "path", coffer__buffer_text(&diff->path), diff->path.len);
    coffer_node_add_text(entry, "change", !before ? "added" : !after ? "removed" : "changed");
    coffer__pycauset_to_node(entry, "old", before);
    coffer__pycauset_to_node(entry, "new", after);
}

static void compare_trees(comparison *diff, const coffer_pycauset_value *before,
                          const coffer_pycauset_value *after);

static void compare_maps(comparison *diff, const coffer_pycauset_value *before,
                         const coffer_pycauset_value *after)
{
    size_t i = 0, j = 0;
    while (i < before->count || j < after->count) {
        const coffer_pycauset_value *x = coffer_pycauset_value_at(before, i);
        const coffer_pycauset_value *y = coffer_pycauset_value_at(after, j);
        int order = !x ? 1 : !y ? -1 : coffer__pycauset_compare_keys(x->key, x->key_len, y->key, y->key_len);
        size_t back = coffer__pycauset_push_key(&diff->path, order <= 0 ? x : y);
        if (order == 0)
            compare_trees(diff, x, y);
        else
            note(diff, order < 0 ? x : NULL, order < 0 ? NULL : y);
        i += order <= 0;
        j += order >= 0;
        diff->path.len = back;
    }
}

static void compare_arrays(comparison *diff, const coffer_pycauset_value *before,
                           const coffer_pycauset_value *after)
{
    for (size_t i = 0; i < before->count || i < after->count; i++) {
        const coffer_pycauset_value *x = coffer_pycauset_value_at(before, i);
        const coffer_pycauset_value *y = coffer_pycauset_value_at(after, i);
        size_t back = push_index(diff, i);
        if (x && y)
            compare_trees(diff, x, y);
        else
            note(diff, x, y);
        diff->path.len = back;
    }
}

static void compare_trees(comparison *diff, const coffer_pycauset_value *before,
                          const coffer_pycauset_value *after)
{
    if (before->kind == COFFER_PYCAUSET_MAP && after->kind == COFFER_PYCAUSET_MAP)
        compare_maps(diff, before, after);
    else if (before->kind == COFFER_PYCAUSET_ARRAY && after->kind == COFFER_PYCAUSET_ARRAY)
        compare_arrays(diff, before, after);
    else if (!coffer__pycauset_equal(before, after))
        note(diff, before, after);
}

coffer_status coffer_pycauset_value_diff(coffer_node *out, const coffer_pycauset_value *before,
                                         const coffer_pycauset_value *after, coffer_error *err)
{
    static const coffer_pycauset_value nothing = { .kind = COFFER_PYCAUSET_MAP };
    comparison diff = { coffer_node_add_list(out, "changes"), COFFER__BUFFER_INIT };
    compare_trees(&diff, before ? before : &nothing, after ? after : &nothing);
    coffer_status status =
        diff.path.failed ? coffer__fail_no_memory(err, diff.path.len) : coffer_node_status(out, err);
    coffer__buffer_free(&diff.path);
    return status;
}

/* Values that are read at a time, and that a thread takes at once. */
#define PIECE UINT64_C(16384)
#define UNIT (16 * PIECE)
#define MAX_UNITS UINT64_C(65536)
/* A matrix without a payload of that size may claim any: past this it would take for ever. */
#define MAX_IMPLIED (UINT64_C(1) << 40)

typedef struct value_job {
    const coffer_pycauset *a, *b;
    uint64_t cols, elements, unit;
    double tolerance;
    uint8_t *scratch; /* a piece of each for each thread */
    coffer__comparison *found;
} value_job;

/* ---- Values ---- */

/* The next part of [first, end) of the values, counted row by row, that one tile can have. */
static coffer_pycauset_tile tile_at(const value_job *job, uint64_t first, uint64_t end)
{
    uint64_t row = first / job->cols, col = first % job->cols,
             count = end - first < PIECE ? end - first : PIECE;
    if (col == 0 && count >= job->cols)
        return (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(row, count / job->cols, 0, job->cols);
    return (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(row, 1, col,
                                                      job->cols - col < count ? job->cols - col : count);
}

/* Reads a tile of both; the values of b are PIECE × 16 bytes after those of a. */
static coffer_status read_both(uint8_t *scratch, const value_job *job, const coffer_pycauset_tile *tile,
                               coffer_error *err)
{
    coffer_status status = coffer_pycauset_read_tile(scratch, 0, job->a, tile, COFFER_DTYPE_NONE, err);
    if (status)
        return status;
    status = coffer_pycauset_read_tile(scratch + PIECE * 16, 0, job->b, tile, COFFER_DTYPE_NONE, err);
    return coffer__fail_input(err, status, coffer_source_name(job->b->source));
}

static coffer_status compare_unit(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    value_job *job = context;
    uint64_t first = index * job->unit;
    uint64_t end = job->elements - first < job->unit ? job->elements : first + job->unit;
    uint8_t *scratch = job->scratch + (uint64_t)worker * 2 * PIECE * 16;
    coffer__comparison_init(&job->found[index]);
    while (first < end) {
        coffer_pycauset_tile tile = tile_at(job, first, end);
        coffer_status status = read_both(scratch, job, &tile, err);
        if (status)
            return status;
        coffer__comparison_add(&job->found[index], first, scratch, job->a->info.value_dtype,
                               scratch + PIECE * 16, job->b->info.value_dtype,
                               (size_t)(tile.rows * tile.cols), job->tolerance);
        first += tile.rows * tile.cols;
    }
    return COFFER_OK;
}

static coffer_status check_size(value_job *job, coffer_error *err)
{
    const coffer_pycauset_info *info = &job->a->info;
    bool implied = coffer__pycauset_layout_of(info->type) == COFFER_PYCAUSET_LAYOUT_NONE &&
                   coffer__pycauset_layout_of(job->b->info.type) == COFFER_PYCAUSET_LAYOUT_NONE;
    if (coffer__mul_u64(&job->elements, info->rows, info->cols) && (!implied || job->elements <= MAX_IMPLIED))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                        "%" PRIu64 " x %" PRIu64 " values are too many to compare", info->rows, info->cols);
}

/* ---- The list of differences ---- */

static void put_value(coffer_node *map, const char *name, const uint8_t *at, coffer_dtype dtype)
{
    union {
        double pair[2];
        uint64_t u64;
        int64_t i64;
    } value;
    if (dtype == COFFER_DTYPE_U64) {
        coffer__elements_convert(&value.u64, COFFER_DTYPE_U64, at, dtype, 1);
        coffer_node_add_u64(map, name, value.u64, COFFER_UNIT_NONE);
    } else if (coffer_dtype_is_integer(dtype) || dtype == COFFER_DTYPE_BOOL) {
        coffer__elements_convert(&value.i64, COFFER_DTYPE_I64, at, dtype, 1);
        coffer_node_add_i64(map, name, value.i64, COFFER_UNIT_NONE);
    } else {
        coffer__elements_convert(value.pair, COFFER_DTYPE_C128, at, dtype, 1);
        if (coffer_dtype_is_complex(dtype))
            coffer_node_add_printf(map, name, "%.17g%+.17gi", value.pair[0], value.pair[1]);
        else
            coffer_node_add_f64(map, name, value.pair[0], COFFER_UNIT_NONE);
    }
}

/* Lists what differs in a tile that was read, until there are enough. */
static void list_tile(coffer_node *list, uint64_t *left, const value_job *job,
                      const coffer_pycauset_tile *tile)
{
    coffer_dtype a_type = job->a->info.value_dtype, b_type = job->b->info.value_dtype;
    for (uint64_t i = 0; i<tile->rows * tile->cols && * left> 0; i++) {
        const uint8_t *a = job->scratch + i * coffer_dtype_size(a_type);
        const uint8_t *b = job->scratch + PIECE * 16 + i * coffer_dtype_size(b_type);
        coffer__comparison one;
        coffer__comparison_init(&one);
        coffer__comparison_add(&one, 0, a, a_type, b, b_type, 1, job->tolerance);
        if (one.differing == 0)
            continue;
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_u64(map, "row", tile->row + i / tile->cols, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "col", tile->col + i % tile->cols, COFFER_UNIT_NONE);
        put_value(map, "a", a, a_type);
        put_value(map, "b", b, b_type);
        (*left)--;
    }
}

static coffer_status list_differences(coffer_node *list, const value_job *job, uint64_t units,
                                      uint64_t max_shown, coffer_error *err)
{
    for (uint64_t unit = 0; unit < units && max_shown > 0; unit++) {
        uint64_t first = job->found[unit].first, end = (unit + 1) * job->unit;
        end = end < job->elements ? end : job->elements;
        while (first < end && max_shown > 0) { /* none when first is UINT64_MAX */
            coffer_pycauset_tile tile = tile_at(job, first, end);
            coffer_status status = read_both(job->scratch, job, &tile, err);
            if (status)
                return status;
            list_tile(list, &max_shown, job, &tile);
            first += tile.rows * tile.cols;
        }
    }
    return COFFER_OK;
}

/* ---- Output ---- */

static void put_place(coffer_node *out, const char *name, uint64_t index, uint64_t cols, bool known)
{
    if (!known) {
        coffer_node_add_null(out, name);
        return;
    }
    coffer_node *map = coffer_node_add_map(out, name);
    coffer_node_add_u64(map, "row", index / cols, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "col", index % cols, COFFER_UNIT_NONE);
}

static void put_values(coffer_node *out, const coffer__comparison *all, uint64_t cols)
{
    coffer_node *map = coffer_node_add_map(out, "values");
    coffer_node_add_u64(map, "compared", all->count, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "differing", all->differing, COFFER_UNIT_NONE);
    coffer_node_add_f64(map, "max_abs", all->max_abs, COFFER_UNIT_NONE);
    put_place(map, "max_at", all->max_at, cols, all->max_abs > 0);
    coffer_node_add_f64(map, "rmse", coffer__comparison_rmse(all), COFFER_UNIT_NONE);
    put_place(map, "first", all->first, cols, all->differing > 0);
}

static void put_both(coffer_node *map, const char *name, uint64_t a, uint64_t b)
{
    char key[32];
    snprintf(key, sizeof key, "%s_a", name);
    coffer_node_add_u64(map, key, a, COFFER_UNIT_NONE);
    snprintf(key, sizeof key, "%s_b", name);
    coffer_node_add_u64(map, key, b, COFFER_UNIT_NONE);
}

static void put_shapes(coffer_node *out, const coffer_pycauset_info *a, const coffer_pycauset_info *b,
                       bool same)
{
    coffer_node *map = coffer_node_add_map(out, "shape");
    coffer_node_add_bool(map, "equal", same);
    put_both(map, "rows", a->rows, b->rows);
    put_both(map, "cols", a->cols, b->cols);
}

static void put_types(coffer_node *out, const coffer_pycauset_info *a, const coffer_pycauset_info *b,
                      bool same)
{
    coffer_node *map = coffer_node_add_map(out, "type");
    coffer_node_add_bool(map, "equal", same);
    coffer_node_add_text(map, "matrix_type_a", coffer_pycauset_type_name(a->type));
    coffer_node_add_text(map, "matrix_type_b", coffer_pycauset_type_name(b->type));
    coffer_node_add_text(map, "data_type_a", coffer_pycauset_dtype_name(a->dtype));
    coffer_node_add_text(map, "data_type_b", coffer_pycauset_dtype_name(b->dtype));
}

/* ---- Metadata ---- */

static bool describes_storage(const coffer_pycauset_value *value)
{
    static const char *const keys[] = {
        "rows",
        "cols",
        "matrix_type",
        "data_type",
        "payload_uuid",
        "view",
        "payload_layout",
        COFFER__PYCAUSET_CHECKSUMS_KEY,
        "block_manifest",
        COFFER__PYCAUSET_COMMIT_KEY,
        COFFER__PYCAUSET_ELEMENTS_KEY,
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(value->key, keys[i]) == 0)
            return true;
    }
    return false;
}

/* Adds the metadata to compare: without keys that describe how the payload is stored and seen, and of cached
 * values only the results that are not stale. */
static void put_metadata(coffer_node *out, const coffer_pycauset *matrix)
{
    const coffer_pycauset_value *root = matrix->metadata.root;
    for (uint32_t i = 0; i < root->count; i++) {
        const coffer_pycauset_value *value = &root->as.children[i];
        if (describes_storage(value))
            continue;
        if (value->kind != COFFER_PYCAUSET_MAP || strcmp(value->key, "cached") != 0) {
            coffer__pycauset_to_node(out, value->key, value);
            continue;
        }
        coffer_node *cached = coffer_node_add_map(out, "cached");
        for (uint32_t j = 0; j < value->count; j++) {
            const coffer_pycauset_value *entry = &value->as.children[j];
            if (coffer__pycauset_is_fresh(entry, root, matrix->view_signature))
                coffer__pycauset_to_node(cached, entry->key, coffer__pycauset_get_key(entry, "value"));
        }
    }
}

typedef struct metadata_pair {
    coffer_node *a, *b;
    uint64_t changes;
} metadata_pair;

/* The caller frees the nodes, also after a failure. */
static coffer_status compare_metadata(metadata_pair *out, const coffer_pycauset *a, const coffer_pycauset *b,
                                      coffer_error *err)
{
    coffer_status status = coffer_node_new(&out->a, err);
    if (!status)
        status = coffer_node_new(&out->b, err);
    if (status)
        return status;
    put_metadata(out->a, a);
    put_metadata(out->b, b);
    status = coffer_node_status(out->a, err);
    if (!status)
        status = coffer_node_status(out->b, err);
    coffer__node_changes changes = { .list = NULL };
    if (!status)
        status = coffer__node_diff(&changes, "", out->a, out->b, err);
    out->changes = changes.count;
    return status;
}

/* ---- The comparison ---- */

typedef struct matrix_diff {
    const coffer_diff_opts *opts;
    value_job values;
    coffer__comparison all;
    uint64_t units;
    bool same_shape, same_type;
    metadata_pair metadata;
} matrix_diff;

static coffer_status compare_values(matrix_diff *diff, coffer_error *err)
{
    value_job *job = &diff->values;
    coffer__work_opts work_opts = { .threads = diff->opts->threads, .progress = diff->opts->progress };
    coffer__work *work = NULL;
    coffer_status status = check_size(job, err);
    if (status)
        return status;
    job->unit = (job->elements / MAX_UNITS / UNIT + 1) * UNIT;
    diff->units = job->elements / job->unit + (job->elements % job->unit != 0);
    status = coffer__work_new_pieces(&work, diff->units, &work_opts, err);
    if (status)
        return status;
    job->scratch = coffer__alloc_array(coffer__work_threads(work), 2 * PIECE * 16);
    job->found = coffer__alloc_array((size_t)diff->units, sizeof *job->found);
    if (!job->scratch || !job->found)
        status = coffer__fail_no_memory(err, diff->units * sizeof *job->found);
    else
        status = coffer__work_run(work, diff->units, compare_unit, job, err);
    for (uint64_t i = 0; !status && i < diff->units; i++)
        coffer__comparison_merge(&diff->all, &job->found[i]);
    coffer__work_free(work);
    return status;
}

static coffer_status put_diff(coffer_node *out, const matrix_diff *diff, coffer_error *err)
{
    const coffer_pycauset_info *a = &diff->values.a->info, *b = &diff->values.b->info;
    coffer_node_add_bool(out, "equal",
                         diff->same_shape && diff->same_type && diff->all.differing == 0 &&
                             diff->metadata.changes == 0);
    put_shapes(out, a, b, diff->same_shape);
    put_types(out, a, b, diff->same_type);
    if (diff->same_shape)
        put_values(out, &diff->all, diff->values.cols);
    else
        coffer_node_add_null(out, "values");
    coffer_node_add_u64(out, "metadata_differences", diff->metadata.changes, COFFER_UNIT_NONE);
    coffer__node_changes changes = coffer__node_changes_new(out, diff->opts->max_shown);
    coffer_status status = coffer__node_diff(&changes, "", diff->metadata.a, diff->metadata.b, err);
    if (status)
        return status;
    if (diff->same_shape)
        status = list_differences(coffer_node_add_list(out, "differences"), &diff->values, diff->units,
                                  diff->opts->max_shown, err);
    else
        coffer_node_add_null(out, "differences"); /* not none: nobody looked */
    return status ? status : coffer_node_status(out, err);
}

static coffer_status compare(coffer_node *out, const coffer_pycauset *a, const coffer_pycauset *b,
                             const coffer_diff_opts *opts, coffer_error *err)
{
    matrix_diff diff = {
        .opts = opts,
        .values = { .a = a, .b = b, .cols = a->info.cols, .tolerance = opts->tolerance },
        .same_shape = a->info.rows == b->info.rows && a->info.cols == b->info.cols,
        .same_type = a->info.type == b->info.type && a->info.dtype == b->info.dtype &&
                     a->info.has_diagonal == b->info.has_diagonal,
    };
    coffer_status status = COFFER_OK;
    coffer__comparison_init(&diff.all);
    if (diff.same_shape)
        status = compare_values(&diff, err);
    if (!status)
        status = compare_metadata(&diff.metadata, a, b, err);
    if (!status)
        status = put_diff(out, &diff, err);
    coffer_node_free(diff.metadata.a);
    coffer_node_free(diff.metadata.b);
    coffer__free(diff.values.scratch);
    coffer__free(diff.values.found);
    return status;
}

coffer_status coffer__pycauset_diff(coffer_node *out, coffer_source *a, coffer_source *b,
                                    const coffer_diff_opts *opts, coffer_error *err)
{
    coffer_pycauset_open_opts open_opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset *matrix_a = NULL, *matrix_b = NULL;
    coffer_status status;
    open_opts.limits = opts->limits;
    status = coffer_pycauset_open(&matrix_a, a, &open_opts, err);
    if (!status)
        status = coffer__fail_input(err, coffer_pycauset_open(&matrix_b, b, &open_opts, err),
                                    coffer_source_name(b));
    if (!status)
        status = compare(out, matrix_a, matrix_b, opts, err);
    coffer_pycauset_close(matrix_a);
    coffer_pycauset_close(matrix_b);
    return status;
}
