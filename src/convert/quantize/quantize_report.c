/* The report of a job. */
#include "convert/quantize/quantize.h"

#include <math.h>

static double snr_of(double signal, double error)
{
    return error > 0.0 ? 10.0 * log10(signal / error) : INFINITY;
}

double coffer__quantize_result_snr(const coffer__quantize_result *result)
{
    return result->calibrated ? snr_of(result->output.signal, result->output.error)
                              : coffer__comparison_snr(&result->error);
}

static double bits_of(uint64_t size, uint64_t elements)
{
    return elements ? 8.0 * (double)size / (double)elements : 0.0;
}

static void add_number(coffer_node *node, const char *name, double value, bool known)
{
    if (known)
        coffer_node_add_f64(node, name, value, COFFER_UNIT_NONE);
    else
        coffer_node_add_null(node, name);
}

static const char *method_name(coffer_quant_method method)
{
    static const char *const names[] = { "fit", "absmax", "exact", "calibrated" };
    return names[method];
}

static void describe_tensor(coffer_node *list, const coffer__chosen_tensor *chosen,
                            const coffer__quantize_result *result)
{
    const coffer_tensor *tensor = chosen->tensor;
    const coffer_mcf_quality *recorded = result->recorded;
    bool known = chosen->quantize && result->known;
    double snr = recorded ? (double)recorded->snr_db : coffer__comparison_snr(&result->error);
    coffer_node *node = coffer_node_add_map(list, NULL);
    coffer_node_add_text(node, "name", tensor->name);
    coffer_node_add_text(node, "from",
                         tensor->dtype == COFFER_DTYPE_NONE ? tensor->type_name
                                                            : coffer_dtype_name(tensor->dtype));
    coffer_node_add_text(node, "type",
                         chosen->dtype == COFFER_DTYPE_NONE ? tensor->type_name
                                                            : coffer_dtype_name(chosen->dtype));
    coffer_node_add_f64(node, "bits", bits_of(chosen->size, tensor->elements), COFFER_UNIT_NONE);
    add_number(node, "snr_db", snr, known);
    add_number(node, "max_error", recorded ? (double)recorded->max_error : result->error.max_abs, known);
    coffer_node_add_u64(node, "size", chosen->size, COFFER_UNIT_BYTES);
    coffer_node_add_text(node, "method",
                         known ? method_name(recorded ? recorded->method : result->method) : NULL);
    add_number(node, "error", pow(10.0, -snr / 20.0), known);
    add_number(node, "output_snr_db", coffer__quantize_result_snr(result), known && result->calibrated);
}

static void describe_preset(coffer_node *out, const char *name)
{
    coffer_node *node = coffer_node_add_map(out, "preset");
    coffer_node_add_text(node, "name", name);
    coffer_node_add_text(node, "meaning", coffer_mcf_quantize_preset(name));
}

static void describe_moments(coffer_node *out, const coffer__quantize_job *job,
                             const coffer__selection *selection)
{
    coffer_node *map = coffer_node_add_map(out, "moments");
    uint64_t used = 0;
    for (size_t i = 0; i < selection->count; i++)
        used += job->results[i].calibrated;
    coffer_node_add_text(map, "file", job->opts.hessian);
    coffer_node_add_u64(map, "used", used, COFFER_UNIT_NONE);
    coffer_node *without = coffer_node_add_list(map, "without");
    for (size_t i = 0; i < selection->count; i++) {
        const coffer__quantize_result *result = &job->results[i];
        if (selection->items[i].quantize && result->known && !result->recorded && !result->calibrated)
            coffer_node_add_text(without, NULL, selection->items[i].tensor->name);
    }
    coffer__moments_describe_unused(map, "unused", job->moments);
}

void coffer__quantize_describe(coffer_node *out, const coffer__quantize_job *job,
                               const coffer__selection *selection)
{
    uint64_t elements = 0, quantized = 0, small_scales = 0;
    coffer_node *list = coffer_node_add_list(out, "tensors");
    for (size_t i = 0; i < selection->count; i++) {
        describe_tensor(list, &selection->items[i], &job->results[i]);
        elements += selection->items[i].tensor->elements;
        quantized += selection->items[i].quantize;
        small_scales += job->results[i].small_scales;
    }
    coffer_node_add_u64(out, "quantised", quantized, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "weights", elements, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "size", selection->bytes, COFFER_UNIT_BYTES);
    coffer_node_add_f64(out, "bits_per_weight", bits_of(selection->bytes, elements), COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "small_scales", small_scales, COFFER_UNIT_NONE);
    if (job->opts.preset)
        describe_preset(out, job->opts.preset);
    if (job->moments)
        describe_moments(out, job, selection);
}
