/* The report of the differences between two scans. */
#include "formats/mscan/mscan_diff.h"

#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/real.h"
#include "base/report.h"
#include "formats/mscan/mscan_sums.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The values to compare, of a and of b. */
typedef struct two_trees {
    coffer_node *a, *b;
} two_trees;

/* ---- Parameters ---- */

typedef struct param_entry {
    const coffer_mscan_param *param;
    bool matched;
} param_entry;

static int compare_names(const coffer_mscan_param *a, const coffer_mscan_param *b)
{
    size_t shorter = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = memcmp(a->name, b->name, shorter);
    return order ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static int by_name(const void *left, const void *right)
{
    const coffer_mscan_param *a = ((const param_entry *)left)->param;
    const coffer_mscan_param *b = ((const param_entry *)right)->param;
    int order = compare_names(a, b);
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

static int by_id(const void *left, const void *right)
{
    const coffer_mscan_param *a = ((const param_entry *)left)->param;
    const coffer_mscan_param *b = ((const param_entry *)right)->param;
    return (a->id > b->id) - (a->id < b->id);
}

typedef struct param_match {
    coffer_node *names_a, *names_b; /* id to name */
    coffer_node *ids_a, *ids_b;     /* name to id */
    coffer__mscan_id_map *ids;
    param_entry *a, *b; /* those not matched yet */
    size_t a_count, b_count;
} param_match;

static void map_id(coffer__mscan_id_map *ids, uint64_t b, uint64_t a)
{
    if (b >= COFFER__MSCAN_PARAM_IDS)
        return; /* no record can name it */
    ids->to_a[b] = a < COFFER__MSCAN_PARAM_IDS ? (uint32_t)a : COFFER__MSCAN_ONLY_B;
    if (a != b)
        ids->identity = false;
}

/* Leaves out what has the same id and the same name in both. Both lists ascend by id. */
static void drop_same(param_match *match, const coffer__mscan_metadata *a, const coffer__mscan_metadata *b)
{
    size_t i = 0, j = 0;
    while (i < a->param_count || j < b->param_count) {
        const coffer_mscan_param *left = i < a->param_count ? &a->params[i] : NULL;
        const coffer_mscan_param *right = j < b->param_count ? &b->params[j] : NULL;
        bool take_left = left && (!right || left->id <= right->id);
        bool take_right = right && (!left || right->id <= left->id);
        bool same = take_left && take_right && compare_names(left, right) == 0;
        if (take_left && !same)
            match->a[match->a_count++] = (param_entry){ left, false };
        if (take_right && !same)
            match->b[match->b_count++] = (param_entry){ right, false };
        i += take_left;
        j += take_right;
    }
}

static void drop_matched(param_entry *entries, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (!entries[i].matched)
            entries[kept++] = entries[i];
    }
    *count = kept;
    qsort(entries, kept, sizeof *entries, by_id);
}

static void add_id(coffer_node *ids, const coffer_mscan_param *param)
{
    coffer_node_add_u64(coffer_node_add_map(ids, param->name), "id", param->id, COFFER_UNIT_NONE);
}

static void add_name(coffer_node *names, const coffer_mscan_param *param)
{
    char id[24];
    snprintf(id, sizeof id, "%" PRIu64, param->id);
    coffer_node_add_text_len(names, id, param->name, param->name_len);
}

static void match_names(param_match *match)
{
    qsort(match->a, match->a_count, sizeof *match->a, by_name);
    qsort(match->b, match->b_count, sizeof *match->b, by_name);
    for (size_t i = 0, j = 0; i < match->a_count && j < match->b_count;) {
        param_entry *left = &match->a[i], *right = &match->b[j];
        int order = compare_names(left->param, right->param);
        if (order == 0) {
            left->matched = right->matched = true;
            map_id(match->ids, right->param->id, left->param->id);
            add_id(match->ids_a, left->param);
            add_id(match->ids_b, right->param);
        }
        i += order <= 0;
        j += order >= 0;
    }
    drop_matched(match->a, &match->a_count);
    drop_matched(match->b, &match->b_count);
}

/* left or right is NULL when the other file has nothing under this id. */
static void match_id(param_match *match, uint64_t id, const coffer_mscan_param *left,
                     const coffer_mscan_param *right)
{
    if (right)
        map_id(match->ids, id, left ? id : COFFER__MSCAN_ONLY_B);
    else
        match->ids->identity = false; /* a record under this id is not the same record in b */
    if (left)
        add_name(match->names_a, left);
    if (right)
        add_name(match->names_b, right);
}

/* The other parameters have another name, or are in one file only. */
static void match_ids(param_match *match)
{
    size_t i = 0, j = 0;
    while (i < match->a_count || j < match->b_count) {
        const coffer_mscan_param *left = i < match->a_count ? match->a[i].param : NULL;
        const coffer_mscan_param *right = j < match->b_count ? match->b[j].param : NULL;
        uint64_t left_id = left ? left->id : UINT64_MAX, right_id = right ? right->id : UINT64_MAX;
        uint64_t id = left_id < right_id ? left_id : right_id;
        bool take_left = left && left_id == id, take_right = right && right_id == id;
        match_id(match, id, take_left ? left : NULL, take_right ? right : NULL);
        i += take_left;
        j += take_right;
    }
}

/* An id without a name in b is mapped to itself, unless a has a parameter with that id. */
static void map_unnamed(coffer__mscan_id_map *ids, const coffer_mscan *a, const coffer_mscan *b)
{
    for (uint32_t id = 0; id < COFFER__MSCAN_PARAM_IDS; id++) {
        bool named_in_b = coffer__mscan_find_param(&b->metadata, (uint16_t)id);
        bool named_in_a = coffer__mscan_find_param(&a->metadata, (uint16_t)id);
        ids->to_a[id] = !named_in_b && named_in_a ? COFFER__MSCAN_ONLY_B : id;
    }
    ids->identity = true;
}

/* Adds the parameters that differ to the trees. */
static coffer_status diff_params(const two_trees *trees, coffer__mscan_id_map *ids, const coffer_mscan *a,
                                 const coffer_mscan *b, coffer_error *err)
{
    size_t a_count = a->metadata.param_count + 1, b_count = b->metadata.param_count + 1;
    param_match match = { .ids = ids };
    match.a = coffer__alloc_array(a_count, sizeof *match.a);
    match.b = coffer__alloc_array(b_count, sizeof *match.b);
    coffer_status status = COFFER_OK;
    if (!match.a || !match.b) {
        status = coffer__fail_no_memory(err, (a_count + b_count) * sizeof *match.a);
        goto out;
    }
    match.names_a = coffer_node_add_map(trees->a, "id_to_param_name_map");
    match.names_b = coffer_node_add_map(trees->b, "id_to_param_name_map");
    match.ids_a = coffer_node_add_map(trees->a, "params");
    match.ids_b = coffer_node_add_map(trees->b, "params");
    map_unnamed(ids, a, b);
    drop_same(&match, &a->metadata, &b->metadata);
    match_names(&match);
    match_ids(&match);
out:
    coffer__free(match.a);
    coffer__free(match.b);
    return status;
}

/* ---- Sequences and other keys ---- */

/* Keys that one comparison leaves out; ends with NULL. */
typedef const char *const *key_list;

static bool is_ignored(const coffer__json_value *member, key_list ignored)
{
    for (; *ignored; ignored++) {
        if (strcmp(member->key, *ignored) == 0)
            return true;
    }
    return false;
}

static void add_members(coffer_node *map, const coffer__json_value *object, key_list ignored)
{
    for (const coffer__json_value *member = coffer__json_first(object); member;
         member = coffer__json_next(object, member)) {
        if (!is_ignored(member, ignored))
            coffer__json_add_node(map, member->key, member);
    }
}

/* Adds everything but the parameters. Extents and checksums follow from the records. */
static void add_metadata(coffer_node *tree, const coffer__mscan_metadata *metadata)
{
    static const char *const in_sequences[] = { "first_record", "num_records", "crc32", NULL };
    static const char *const elsewhere[] = { "id_to_param_name_map", "sequences", COFFER__MSCAN_SUMS_KEY,
                                             COFFER__MSCAN_SEAL_KEY, NULL };
    const coffer__json_value *sequences = coffer__json_find(metadata->root, "sequences");
    add_members(tree, metadata->root, elsewhere);
    coffer_node *list = coffer_node_add_list(tree, "sequences");
    for (const coffer__json_value *sequence = coffer__json_first(sequences); sequence;
         sequence = coffer__json_next(sequences, sequence))
        add_members(coffer_node_add_map(list, NULL), sequence, in_sequences);
}

/* A parameter whose name was added, removed or changed has the path "id_to_param_name_map.ID"; one with
 * another id has "params.NAME.id". */
static coffer_status diff_metadata(coffer__node_changes *changes, coffer__mscan_id_map *ids,
                                   const coffer_mscan *a, const coffer_mscan *b, coffer_error *err)
{
    two_trees trees = { NULL, NULL };
    coffer_status status = coffer_node_new(&trees.a, err);
    if (!status)
        status = coffer_node_new(&trees.b, err);
    if (!status)
        status = diff_params(&trees, ids, a, b, err);
    if (!status) {
        add_metadata(trees.a, &a->metadata);
        add_metadata(trees.b, &b->metadata);
        status = coffer_node_status(trees.a, err);
    }
    if (!status)
        status = coffer_node_status(trees.b, err);
    if (!status)
        status = coffer__node_diff(changes, "", trees.a, trees.b, err);
    coffer_node_free(trees.a);
    coffer_node_free(trees.b);
    return status;
}

/* The values of one scan in real units, where it has scales. */
static void put_values(coffer_node *map, const char *const names[2], const coffer_mscan *scan,
                       uint16_t param_id, uint32_t token, const uint16_t *values)
{
    for (unsigned i = 0; i < 2; i++) {
        const coffer_mscan_quantization *scale =
            coffer_mscan_quantization_of(scan, (coffer_mscan_metric)i, param_id,
                                         coffer_mscan_sequence_of_token(scan, token));
        if (!values)
            coffer_node_add_null(map, names[i]);
        else if (scale)
            coffer_node_add_f64(map, names[i],
                                coffer__nearest_decimal(scale->offset + scale->scale * values[i],
                                                        fabs(scale->scale) * 1e-9),
                                COFFER_UNIT_NONE);
        else
            coffer_node_add_u64(map, names[i], values[i], COFFER_UNIT_NONE);
    }
}

/* The differences have the ids of a. */
static uint16_t id_in_b(const coffer__mscan_comparison *cmp, const coffer__mscan_difference *what)
{
    if (cmp->ids->identity || what->kind == COFFER__MSCAN_DIFF_PARAM_ONLY_IN_B)
        return what->param;
    for (uint32_t id = 0; id < COFFER__MSCAN_PARAM_IDS; id++) {
        if (cmp->ids->to_a[id] == what->param)
            return (uint16_t)id;
    }
    return what->param;
}

static void put_difference(coffer_node *list, const coffer__mscan_comparison *cmp,
                           const coffer__mscan_difference *what)
{
    static const char *const kinds[] = { "changed", "only-in-a", "only-in-b", "only-in-b" };
    static const char *const names_a[2] = { "activation_a", "grad_norm_a" };
    static const char *const names_b[2] = { "activation_b", "grad_norm_b" };
    const coffer_mscan *named_by =
        what->kind == COFFER__MSCAN_DIFF_PARAM_ONLY_IN_B ? cmp->b.scan : cmp->a.scan;
    const char *name = coffer_mscan_param_name(named_by, what->param);
    coffer_node *map = coffer_node_add_map(list, NULL);
    coffer_node_add_text(map, "kind", kinds[what->kind]);
    coffer_node_add_u64(map, "token", what->token, COFFER_UNIT_NONE);
    if (name)
        coffer_node_add_text(map, "param", name);
    else
        coffer_node_add_printf(map, "param", "param %u", what->param);
    coffer_node_add_u64(map, "block", what->block, COFFER_UNIT_NONE);
    put_values(map, names_a, cmp->a.scan, what->param, what->token,
               what->kind >= COFFER__MSCAN_DIFF_ONLY_IN_B ? NULL : what->value[0]);
    put_values(map, names_b, cmp->b.scan, id_in_b(cmp, what), what->token,
               what->kind == COFFER__MSCAN_DIFF_ONLY_IN_A ? NULL : what->value[1]);
}

static void put_metric(coffer_node *out, const char *name, const coffer__mscan_comparison *cmp,
                       unsigned metric)
{
    uint64_t pairs = cmp->equal + cmp->changed;
    const coffer_mscan *a = cmp->a.scan, *b = cmp->b.scan;
    coffer_mscan_metric which = (coffer_mscan_metric)metric;
    bool real = coffer__mscan_diff_is_real(a, b, which);
    double mean = pairs ? (double)cmp->sum[metric] / (double)pairs : 0.0;
    coffer_node *map = coffer_node_add_map(out, name);
    coffer_node_add_text(map, "units", real ? "real" : "raw");
    coffer_node_add_u64(map, "changed", cmp->differing[metric], COFFER_UNIT_NONE);
    if (real)
        coffer_node_add_f64(map, "max_difference", coffer__mscan_diff_real(a, b, which, cmp->largest[metric]),
                            COFFER_UNIT_NONE);
    else
        coffer_node_add_u64(map, "max_difference", cmp->largest[metric], COFFER_UNIT_NONE);
    coffer_node_add_f64(map, "mean_difference", coffer__mscan_diff_real(a, b, which, mean), COFFER_UNIT_NONE);
}

static void put_result(coffer_node *out, const coffer__mscan_comparison *cmp,
                       const coffer__node_changes *changes)
{
    bool same_records_all = cmp->changed + cmp->only_in_a + cmp->only_in_b == 0;
    coffer_node_add_bool(out, "equal", same_records_all && changes->count == 0);
    coffer_node_add_u64(out, "metadata_differences", changes->count, COFFER_UNIT_NONE);
    coffer_node *records = coffer_node_add_map(out, "records");
    coffer_node_add_u64(records, "a", cmp->a.scan->record_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(records, "b", cmp->b.scan->record_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(records, "equal", cmp->equal, COFFER_UNIT_NONE);
    coffer_node_add_u64(records, "changed", cmp->changed, COFFER_UNIT_NONE);
    coffer_node_add_u64(records, "only_in_a", cmp->only_in_a, COFFER_UNIT_NONE);
    coffer_node_add_u64(records, "only_in_b", cmp->only_in_b, COFFER_UNIT_NONE);
    put_metric(out, "activation", cmp, COFFER_MSCAN_ACTIVATION);
    put_metric(out, "grad_norm", cmp, COFFER_MSCAN_GRAD_NORM);
    coffer_node_add_copy(out, "metadata", changes->list);
    coffer__mscan_diff_groups_put(out, &cmp->groups, cmp->a.scan, cmp->b.scan, cmp->opts.max_shown);
    coffer_node *list = coffer_node_add_list(out, "differences");
    for (size_t i = 0; i < cmp->shown_count; i++)
        put_difference(list, cmp, &cmp->shown[i]);
}

static void comparison_free(coffer__mscan_comparison *cmp)
{
    coffer__free(cmp->a.records);
    coffer__free(cmp->a.scratch);
    coffer__free(cmp->b.records);
    coffer__free(cmp->b.scratch);
    coffer__free(cmp->shown);
    coffer__mscan_diff_groups_free(&cmp->groups);
}

coffer_status coffer__mscan_diff(coffer_node *out, coffer_source *a, coffer_source *b,
                                 const coffer_diff_opts *opts, coffer_error *err)
{
    coffer__mscan_comparison cmp = { .opts = COFFER_DIFF_OPTS_INIT };
    coffer_node *found = NULL;
    coffer_mscan *scan_a = NULL, *scan_b = NULL;
    coffer_mscan_open_opts open_opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    coffer__copy_options(&cmp.opts, sizeof cmp.opts, opts);
    cmp.limits = coffer__limits(cmp.opts.limits);
    open_opts.limits = &cmp.limits;
    coffer__mscan_id_map *ids = coffer__malloc(sizeof *ids);
    coffer_status status = ids ? COFFER_OK : coffer__fail_no_memory(err, sizeof *ids);
    if (!status)
        status = coffer_mscan_open(&scan_a, a, &open_opts, err);
    if (status)
        goto out;
    status = coffer__fail_input(err, coffer_mscan_open(&scan_b, b, &open_opts, err), coffer_source_name(b));
    if (status)
        goto out;
    /* All records are compared anyway; here it is known which of the two files is damaged. */
    status = coffer__mscan_verify(scan_a->verifier, 0, scan_a->record_count, err);
    if (!status)
        status = coffer__fail_input(err, coffer__mscan_verify(scan_b->verifier, 0, scan_b->record_count, err),
                                    coffer_source_name(b));
    if (!status)
        status = coffer_node_new(&found, err);
    if (status)
        goto out;
    coffer__node_changes changes = coffer__node_changes_new(found, cmp.opts.max_shown);
    status = diff_metadata(&changes, ids, scan_a, scan_b, err);
    if (status)
        goto out;
    cmp.ids = ids;
    cmp.a.scan = scan_a;
    cmp.b.scan = scan_b;
    status = coffer__mscan_diff_groups_init(&cmp.groups, cmp.opts.group_by, &cmp.limits, err);
    if (!status)
        status = coffer__mscan_compare_records(&cmp, err);
    coffer__mscan_diff_groups_sort(&cmp.groups);
    if (!status)
        status = coffer_source_intact(a, err);
    if (!status)
        status = coffer__fail_input(err, coffer_source_intact(b, err), coffer_source_name(b));
    if (status)
        goto out;
    put_result(out, &cmp, &changes);
    status = coffer_node_status(out, err);
out:
    comparison_free(&cmp);
    coffer_node_free(found);
    coffer_mscan_close(scan_a);
    coffer_mscan_close(scan_b);
    coffer__free(ids);
    return status;
}
