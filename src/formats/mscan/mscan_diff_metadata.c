#include "formats/mscan/mscan_diff.h"

#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "formats/mscan/mscan_sums.h"

#include <inttypes.h>
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

coffer_status coffer__mscan_diff_metadata(coffer__node_changes *changes, coffer__mscan_id_map *ids,
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
