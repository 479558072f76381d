/* Every allocation and every file operation of quantizing fails once: no leak, no litter, the old file as it
 * was. */
#include "support/fault.h"
#include "support/model.h"
#include "support/weights.h"

#include <stdio.h>
#include <string.h>

static const char old_bytes[] = "what was there before";

static void setup(const char *folder, void *context)
{
    static const float importances[64] = { 1, 2, 3, 4 };
    float values[6 * 64];
    (void)context;
    weights_fill(values, 6 * 64, 1);
    weights_one(temp_path(folder, "in.mcf"), 6, 64, values);
    weights_one(temp_path(folder, "weights.mcf"), 1, 64, importances);
    temp_write(temp_path(folder, "out.mcf"), old_bytes, sizeof old_bytes);
}

static coffer_status quantize(const char *folder, const coffer_mcf_quantize_opts *given, coffer_error *err)
{
    coffer_mcf_quantize_opts opts = *given;
    coffer_node *node = NULL;
    opts.threads = 1;
    coffer_status status = coffer_node_new(&node, err);
    if (!status)
        status =
            coffer_mcf_quantize(node, temp_path(folder, "out.mcf"), temp_path(folder, "in.mcf"), &opts, err);
    coffer_node_free(node);
    return status;
}

static coffer_status with_importances(const char *folder, void *context, coffer_error *err)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL };
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    opts.overwrite = true;
    (void)context;
    opts.rules = &rule;
    opts.rule_count = 1;
    opts.weights = temp_path(folder, "weights.mcf");
    return quantize(folder, &opts, err);
}

/* Moments of "w" in weights.mcf. */
static void setup_moments(const char *folder, void *context)
{
    static const uint64_t dims[] = { 64, 64 }, one = 1;
    static const int64_t count = 9;
    float sums[64 * 64];
    coffer_mcf_writer *writer = NULL;
    setup(folder, context);
    for (size_t i = 0; i < 64 * 64; i++)
        sums[i] = i / 64 == i % 64 ? 2.0f : 1.0f;
    assert_int_equal(coffer_mcf_writer_create(&writer, temp_path(folder, "weights.mcf"), &model_overwrite,
                                              NULL),
                     COFFER_OK);
    assert_int_equal(model_add(writer, "w.moments", COFFER_DTYPE_F32, 2, dims, sums, NULL), COFFER_OK);
    assert_int_equal(model_add(writer, "w.count", COFFER_DTYPE_I64, 1, &one, &count, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
}

/* Every way of using them: the estimate of a target, its measurements, and the result. */
static coffer_status with_moments(const char *folder, void *context, coffer_error *err)
{
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    opts.overwrite = true;
    (void)context;
    opts.hessian = temp_path(folder, "weights.mcf");
    opts.min_snr = 25;
    return quantize(folder, &opts, err);
}

static coffer_status to_a_target(const char *folder, void *context, coffer_error *err)
{
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    opts.overwrite = true;
    (void)context;
    opts.target_bpw = 7;
    return quantize(folder, &opts, err);
}

static coffer_status with_one_scale(const char *folder, void *context, coffer_error *err)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_INT4,
                                                   NULL };
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    opts.overwrite = true;
    (void)context;
    opts.rules = &rule;
    opts.rule_count = 1;
    opts.activations = true;
    opts.percentile = 99;
    return quantize(folder, &opts, err);
}

/* One part, which is then joined. */
static coffer_status in_parts(const char *folder, void *context, coffer_error *err)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL };
    static const char *const only[] = { "w" };
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    char part[512];
    const char *const parts[] = { part };
    (void)context;
    snprintf(part, sizeof part, "%s", temp_path(folder, "weights.mcf"));
    opts.overwrite = true;
    opts.threads = 1;
    opts.rules = &rule;
    opts.rule_count = 1;
    opts.only = only;
    opts.only_count = 1;
    coffer_status status = coffer_mcf_quantize(NULL, part, temp_path(folder, "in.mcf"), &opts, err);
    opts.only_count = 0;
    opts.parts = parts;
    opts.part_count = 1;
    return status ? status : quantize(folder, &opts, err);
}

/* A failure after the rename leaves the new file, whole. */
static const char *verify(const char *folder, void *context, const fault_case *which)
{
    coffer_tensors *set = NULL;
    (void)context;
    if (which->fault != SHIM_DEAD_DISK && strcmp(which->function, "coffer__os_unlink") != 0)
        temp_assert_no_litter(folder, "in.mcf", "weights.mcf", "out.mcf", NULL);
    if (temp_holds(temp_path(folder, "out.mcf"), old_bytes, sizeof old_bytes))
        return which->status == COFFER_OK ? "reported as done, and is not" : NULL;
    if (coffer_tensors_open_path(&set, temp_path(folder, "out.mcf"), NULL, NULL))
        return "neither old nor new";
    coffer_tensors_close(set);
    return NULL;
}

static void quantizing_with_importances_leaves_the_old_file_or_the_new_one(void **state)
{
    const fault_test test = { setup, with_importances, verify, NULL };
    (void)state;
    fault_each(&test);
}

static void quantizing_with_moments_leaves_the_old_file_or_the_new_one(void **state)
{
    const fault_test test = { setup_moments, with_moments, verify, NULL };
    (void)state;
    fault_each(&test);
}

static void quantizing_to_a_target_leaves_the_old_file_or_the_new_one(void **state)
{
    const fault_test test = { setup, to_a_target, verify, NULL };
    (void)state;
    fault_each(&test);
}

static void quantizing_with_one_scale_leaves_the_old_file_or_the_new_one(void **state)
{
    const fault_test test = { setup, with_one_scale, verify, NULL };
    (void)state;
    fault_each(&test);
}

static void quantizing_in_parts_leaves_the_old_file_or_the_new_one(void **state)
{
    const fault_test test = { setup, in_parts, verify, NULL };
    (void)state;
    fault_each(&test);
}

/* ---- Comparing with the original ---- */

static void setup_pair(const char *folder, void *context)
{
    coffer_error err = COFFER_ERROR_INIT;
    setup(folder, context);
    if (with_importances(folder, context, &err))
        fail_msg("%s", err.text);
}

static coffer_status compare(const char *folder, void *context, coffer_error *err)
{
    coffer_mcf_work_opts opts = COFFER_MCF_WORK_OPTS_INIT;
    coffer_report *report = NULL;
    (void)context;
    opts.threads = 1;
    coffer_status status = coffer_report_new(&report, 0, err);
    if (!status)
        status = coffer_mcf_quantize_check(report, temp_path(folder, "out.mcf"), temp_path(folder, "in.mcf"),
                                           &opts, err);
    coffer_report_free(report);
    return status;
}

static const char *nothing_changes(const char *folder, void *context, const fault_case *which)
{
    (void)context;
    (void)which;
    temp_assert_only(folder, "in.mcf", "weights.mcf", "out.mcf", NULL);
    return NULL;
}

static void comparing_with_the_original_fails_cleanly(void **state)
{
    const fault_test test = { setup_pair, compare, nothing_changes, NULL };
    (void)state;
    fault_each(&test);
}

/* ---- Products ---- */

static coffer_status multiply(const char *folder, void *context, coffer_error *err)
{
    static const uint8_t payload[64 + 8 * 32] = { 0, 0x3C };
    static const float x[10 * 32] = { 1, 2, 3 };
    coffer_quant_tensor tensor = COFFER_QUANT_TENSOR_INIT;
    coffer_quant_product_opts opts = COFFER_QUANT_PRODUCT_OPTS_INIT;
    float y[8 * 10];
    (void)folder;
    (void)context;
    tensor.dtype = COFFER_DTYPE_Q8;
    tensor.rows = 8;
    tensor.cols = 32;
    tensor.payload = payload;
    tensor.size = sizeof payload;
    coffer_status status = coffer_quant_workers_new(&opts.workers, NULL, err);
    for (int inputs = COFFER_QUANT_INPUTS_F32; inputs <= COFFER_QUANT_INPUTS_INT8 && !status; inputs++) {
        opts.inputs = (coffer_quant_inputs)inputs;
        status = coffer_quant_matvec(y, &tensor, x, &opts, err);
        if (!status)
            status = coffer_quant_matmul(y, &tensor, x, 10, &opts, err);
    }
    coffer_quant_workers_free(opts.workers);
    return status;
}

static const char *nothing_to_verify(const char *folder, void *context, const fault_case *which)
{
    (void)folder;
    (void)context;
    (void)which;
    return NULL;
}

static void a_product_without_memory_fails_cleanly(void **state)
{
    const fault_test test = { NULL, multiply, nothing_to_verify, NULL };
    (void)state;
    fault_each(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantizing_with_importances_leaves_the_old_file_or_the_new_one),
        cmocka_unit_test(quantizing_with_moments_leaves_the_old_file_or_the_new_one),
        cmocka_unit_test(quantizing_to_a_target_leaves_the_old_file_or_the_new_one),
        cmocka_unit_test(quantizing_with_one_scale_leaves_the_old_file_or_the_new_one),
        cmocka_unit_test(quantizing_in_parts_leaves_the_old_file_or_the_new_one),
        cmocka_unit_test(comparing_with_the_original_fails_cleanly),
        cmocka_unit_test(a_product_without_memory_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
