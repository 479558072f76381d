/* The report of the differences between two scans. */
#include "formats/mscan/mscan_diff.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/real.h"
#include "base/report.h"
#include "formats/mscan/mscan_sums.h"

#include <math.h>

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
    status = coffer__mscan_diff_metadata(&changes, ids, scan_a, scan_b, err);
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
