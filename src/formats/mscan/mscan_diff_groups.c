/* The differences of two scans, summed up by parameter, layer, token or sequence. */
#include "formats/mscan/mscan_diff.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/real.h"
#include "base/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Units ---- */

static const coffer_mscan_quantization *file_scale(const coffer_mscan *scan, coffer_mscan_metric metric)
{
    if (coffer_mscan_quantization_scope(scan, metric) != COFFER_MSCAN_SCALE_FILE)
        return NULL;
    return coffer_mscan_quantization_of(scan, metric, 0, 0);
}

bool coffer__mscan_diff_is_real(const coffer_mscan *a, const coffer_mscan *b, coffer_mscan_metric metric)
{
    const coffer_mscan_quantization *left = file_scale(a, metric), *right = file_scale(b, metric);
    return left && right && left->scale == right->scale && left->offset == right->offset;
}

double coffer__mscan_diff_real(const coffer_mscan *a, const coffer_mscan *b, coffer_mscan_metric metric,
                               double difference)
{
    if (!coffer__mscan_diff_is_real(a, b, metric))
        return difference;
    double scale = file_scale(a, metric)->scale;
    return coffer__nearest_decimal(scale * difference, fabs(scale) * 1e-9);
}

/* ---- Groups ---- */

static const char *const by_names[] = {
    "all", "param", "block", "token", "sequence", "param,block", "layer"
};

coffer_status coffer__mscan_diff_groups_init(coffer__mscan_diff_groups *out, const char *by,
                                             const coffer_limits *limits, coffer_error *err)
{
    static const coffer_mscan_by known[] = { COFFER_MSCAN_BY_PARAM, COFFER_MSCAN_BY_LAYER,
                                             COFFER_MSCAN_BY_TOKEN, COFFER_MSCAN_BY_SEQUENCE };
    *out = (coffer__mscan_diff_groups){ .by = COFFER_MSCAN_BY_PARAM };
    out->most = (size_t)(limits->memory_bytes / sizeof *out->list);
    for (size_t i = 0; by && i < sizeof known / sizeof *known; i++) {
        if (strcmp(by, by_names[known[i]]) == 0) {
            out->by = known[i];
            by = NULL;
        }
    }
    if (by)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "scans are compared by param, layer, token or sequence, not by \"%s\"", by);
    return COFFER_OK;
}

void coffer__mscan_diff_groups_free(coffer__mscan_diff_groups *groups)
{
    coffer__free(groups->list);
    coffer__table_free(&groups->table);
}

static uint64_t key_of(const coffer__mscan_diff_groups *groups, const coffer_mscan *a,
                       const coffer__mscan_difference *what)
{
    bool only_b = what->kind == COFFER__MSCAN_DIFF_PARAM_ONLY_IN_B;
    switch (groups->by) {
    case COFFER_MSCAN_BY_LAYER: /* a parameter that a does not have is in no layer of it */
        return only_b ? a->layers.count - 1 : coffer_mscan_layer_of_param(a, what->param);
    case COFFER_MSCAN_BY_TOKEN:
        return what->token;
    case COFFER_MSCAN_BY_SEQUENCE:
        return coffer_mscan_sequence_of_token(a, what->token);
    default:
        return (uint64_t)what->param + (only_b ? COFFER__MSCAN_PARAM_IDS : 0);
    }
}

static coffer_status group_of(coffer__mscan_diff_group **out, coffer__mscan_diff_groups *groups, uint64_t key,
                              coffer_error *err)
{
    uint64_t hash = coffer__hash(&key, sizeof key);
    coffer__table_probe probe = coffer__table_begin(&groups->table, hash);
    uint32_t found;
    while ((found = coffer__table_next(&probe)) != COFFER__TABLE_NONE && groups->list[found].key != key)
        continue;
    if (found == COFFER__TABLE_NONE) {
        if (groups->count >= groups->most)
            return coffer__fail(
                err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                "differences in more than %zu groups, which is all that the memory limit allows",
                groups->most);
        coffer_status status = coffer__array_reserve_one(&groups->list, &groups->capacity, groups->count,
                                                         sizeof *groups->list, err);
        if (!status)
            status = coffer__table_add(&groups->table, hash, groups->count, err);
        if (status)
            return status;
        found = (uint32_t)groups->count++;
        groups->list[found] = (coffer__mscan_diff_group){ .key = key };
    }
    *out = &groups->list[found];
    return COFFER_OK;
}

coffer_status coffer__mscan_diff_groups_take(coffer__mscan_diff_groups *groups, const coffer_mscan *a,
                                             const coffer__mscan_difference *what, coffer_error *err)
{
    coffer__mscan_diff_group *group = NULL;
    coffer_status status = group_of(&group, groups, key_of(groups, a, what), err);
    if (status)
        return status;
    if (what->kind != COFFER__MSCAN_DIFF_CHANGED) {
        ++*(what->kind == COFFER__MSCAN_DIFF_ONLY_IN_A ? &group->only_in_a : &group->only_in_b);
        return COFFER_OK;
    }
    group->changed++;
    for (unsigned metric = 0; metric < 2; metric++) {
        int difference = (int)what->value[1][metric] - (int)what->value[0][metric];
        uint16_t distance = (uint16_t)abs(difference);
        group->sum[metric] += difference;
        group->largest[metric] = distance > group->largest[metric] ? distance : group->largest[metric];
    }
    return COFFER_OK;
}

/* The largest differences first; groups without pairs by how many records they miss. */
static int compare_groups(const void *left, const void *right)
{
    const coffer__mscan_diff_group *a = left, *b = right;
    uint16_t a_most = a->largest[0] > a->largest[1] ? a->largest[0] : a->largest[1];
    uint16_t b_most = b->largest[0] > b->largest[1] ? b->largest[0] : b->largest[1];
    uint64_t a_missing = a->only_in_a + a->only_in_b, b_missing = b->only_in_a + b->only_in_b;
    if (a_most != b_most)
        return a_most > b_most ? -1 : 1;
    if (a_missing != b_missing)
        return a_missing > b_missing ? -1 : 1;
    return (a->key > b->key) - (a->key < b->key);
}

void coffer__mscan_diff_groups_sort(coffer__mscan_diff_groups *groups)
{
    if (groups->count > 0)
        qsort(groups->list, groups->count, sizeof *groups->list, compare_groups);
}

/* ---- Report ---- */

static void put_key(coffer_node *map, const coffer__mscan_diff_groups *groups, uint64_t key,
                    const coffer_mscan *a, const coffer_mscan *b)
{
    const coffer_mscan_sequence *sequence;
    const char *name;
    switch (groups->by) {
    case COFFER_MSCAN_BY_LAYER:
        coffer_node_add_text(map, "layer", coffer_mscan_layer_name(a, (size_t)key));
        break;
    case COFFER_MSCAN_BY_TOKEN:
        coffer_node_add_u64(map, "token", key, COFFER_UNIT_NONE);
        break;
    case COFFER_MSCAN_BY_SEQUENCE:
        sequence = coffer_mscan_sequence_at(a, (size_t)key);
        if (sequence)
            coffer_node_add_u64(map, "sequence_id", sequence->sequence_id, COFFER_UNIT_NONE);
        else
            coffer_node_add_null(map, "sequence_id");
        break;
    default:
        name = coffer_mscan_param_name(key < COFFER__MSCAN_PARAM_IDS ? a : b, (uint16_t)key);
        if (name)
            coffer_node_add_text(map, "param", name);
        else
            coffer_node_add_printf(map, "param", "param %u", (unsigned)(uint16_t)key);
        break;
    }
}

void coffer__mscan_diff_groups_put(coffer_node *out, const coffer__mscan_diff_groups *groups,
                                   const coffer_mscan *a, const coffer_mscan *b, uint64_t most)
{
    static const char *const largest[2] = { "activation_max", "grad_norm_max" };
    static const char *const mean[2] = { "activation_mean", "grad_norm_mean" };
    coffer_node_add_text(out, "by", by_names[groups->by]);
    coffer_node_add_u64(out, "group_count", groups->count, COFFER_UNIT_NONE);
    coffer_node *list = coffer_node_add_list(out, "groups");
    for (size_t i = 0; i < groups->count && i < most; i++) {
        const coffer__mscan_diff_group *group = &groups->list[i];
        coffer_node *map = coffer_node_add_map(list, NULL);
        put_key(map, groups, group->key, a, b);
        coffer_node_add_u64(map, "changed", group->changed, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "only_in_a", group->only_in_a, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "only_in_b", group->only_in_b, COFFER_UNIT_NONE);
        for (int k = 0; k < 2; k++) {
            coffer_mscan_metric metric = (coffer_mscan_metric)k;
            double average = group->changed ? (double)group->sum[k] / (double)group->changed : 0;
            bool real = coffer__mscan_diff_is_real(a, b, metric);
            coffer_node_add_f64(map, largest[k], coffer__mscan_diff_real(a, b, metric, group->largest[k]),
                                COFFER_UNIT_NONE);
            coffer_node_add_f64(map, mean[k], real ? average * file_scale(a, metric)->scale : average,
                                COFFER_UNIT_NONE);
        }
    }
}
