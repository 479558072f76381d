/* Whole files quantised: a pack of one input, with another type for some of its tensors. */
#include "convert/quantize.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "convert/mcf_pack.h"

#include <inttypes.h>
#include <math.h>

struct coffer__quantize_job {
    coffer_quantize_opts opts;
    coffer__quantize_result *results; /* one for each tensor of the selection */
};

/* ---- What is asked for ---- */

static coffer_status check_rule(const coffer_quantize_rule *rule, const coffer_quantize_opts *opts,
                                coffer_error *err)
{
    const coffer__quant_type *type = coffer__quant_find_type(rule->dtype);
    if (!type && rule->dtype != COFFER_DTYPE_NONE && rule->dtype != COFFER_DTYPE_F16 &&
        rule->dtype != COFFER_DTYPE_BF16)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s is nothing to quantise to", coffer_dtype_name(rule->dtype));
    if (type && type->family != COFFER__QUANT_WHOLE && opts->activations)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s is for weights: activations are int8 or int4",
                            coffer_dtype_name(rule->dtype));
    return COFFER_OK;
}

static coffer_status take_options(coffer_quantize_opts *out, const coffer_quantize_opts *given,
                                  coffer_error *err)
{
    coffer_status status = coffer__take_options(out, sizeof *out, given, err);
    for (size_t i = 0; !status && i < out->rule_count; i++)
        status = check_rule(&out->rules[i], out, err);
    if (!status && (int)out->method != COFFER_QUANT_FIT && out->method != COFFER_QUANT_ABSMAX &&
        out->method != COFFER_QUANT_EXACT)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "there is no method %d",
                              (int)out->method);
    return status;
}

static coffer_pack_opts pack_options(const coffer_quantize_opts *opts)
{
    coffer_pack_opts pack = COFFER_PACK_OPTS_INIT;
    pack.align = opts->align;
    pack.no_dedup = opts->no_dedup;
    pack.no_checksums = opts->no_checksums;
    pack.exclusive = opts->exclusive;
    pack.model_name = opts->model_name;
    pack.threads = opts->threads;
    pack.limits = opts->limits;
    pack.progress = opts->progress;
    return pack;
}

/* ---- The work ---- */

coffer_status coffer__quantize_put(coffer__quantize_job *job, const coffer__chosen_tensor *chosen,
                                   size_t position, coffer__tensor_stream *stream, coffer_mcf_writer *writer,
                                   coffer_error *err)
{
    coffer__quantize_result *result = &job->results[position];
    coffer__quantize_task task = {
        .chosen = chosen,
        .type = coffer__quant_find_type(chosen->dtype),
        .method = (coffer__quant_method)job->opts.method,
        .activations = chosen->activations,
        .nan_to_zero = job->opts.nan_to_zero,
    };
    coffer_status status = coffer__quantize_tensor(result, &task, stream, writer, err);
    if (status || !writer)
        return status;
    coffer_mcf_quality quality = {
        .method = (coffer_quant_method)task.method,
        .snr_db = (float)coffer__comparison_snr(&result->error),
        .max_error = (float)result->error.max_abs,
    };
    status = coffer_mcf_set_clip(writer, -result->largest, result->largest, err);
    return status ? status : coffer_mcf_set_quality(writer, &quality, err);
}

static coffer_status measure(coffer__quantize_job *job, const coffer__mcf_pack *pack,
                             const coffer__selection *selection, coffer_error *err)
{
    coffer__tensor_stream *stream = NULL;
    uint64_t total = 0;
    for (size_t i = 0; i < selection->count; i++)
        total += selection->items[i].quantise ? selection->items[i].size : 0;
    coffer_status status = coffer__tensor_stream_new(&stream, pack->opts.threads, &pack->limits,
                                                     pack->opts.progress, total, err);
    for (size_t i = 0; !status && i < selection->count; i++) {
        if (selection->items[i].quantise)
            status = coffer__quantize_put(job, &selection->items[i], i, stream, NULL, err);
    }
    coffer__tensor_stream_free(stream);
    return status;
}

/* ---- What came out ---- */

static double bits_of(uint64_t size, uint64_t elements)
{
    return elements ? 8.0 * (double)size / (double)elements : 0.0;
}

static void describe_tensor(coffer_node *list, const coffer__chosen_tensor *chosen,
                            const coffer__quantize_result *result)
{
    const coffer_tensor *tensor = chosen->tensor;
    coffer_node *node = coffer__node_map(list, NULL);
    coffer__node_text(node, "name", tensor->name);
    coffer__node_text(node, "from",
                      tensor->dtype == COFFER_DTYPE_NONE ? tensor->type_name
                                                         : coffer_dtype_name(tensor->dtype));
    coffer__node_text(node, "type",
                      chosen->dtype == COFFER_DTYPE_NONE ? tensor->type_name
                                                         : coffer_dtype_name(chosen->dtype));
    coffer__node_f64(node, "bits", bits_of(chosen->size, tensor->elements), COFFER_UNIT_NONE);
    if (!chosen->quantise) {
        coffer__node_null(node, "snr_db");
        coffer__node_null(node, "max_error");
        return;
    }
    coffer__node_f64(node, "snr_db", coffer__comparison_snr(&result->error), COFFER_UNIT_NONE);
    coffer__node_f64(node, "max_error", result->error.max_abs, COFFER_UNIT_NONE);
}

static void describe(coffer_node *out, const coffer__quantize_job *job, const coffer__selection *selection)
{
    uint64_t elements = 0, quantised = 0;
    coffer_node *list = coffer__node_list(out, "tensors");
    for (size_t i = 0; i < selection->count; i++) {
        describe_tensor(list, &selection->items[i], &job->results[i]);
        elements += selection->items[i].tensor->elements;
        quantised += selection->items[i].quantise;
    }
    coffer__node_u64(out, "quantised", quantised, COFFER_UNIT_NONE);
    coffer__node_u64(out, "weights", elements, COFFER_UNIT_NONE);
    coffer__node_u64(out, "size", selection->bytes, COFFER_UNIT_BYTES);
    coffer__node_f64(out, "bits_per_weight", bits_of(selection->bytes, elements), COFFER_UNIT_NONE);
}

coffer_status coffer_quantize(coffer_node *out, const char *out_path, const char *in_path,
                              const coffer_quantize_opts *opts, coffer_error *err)
{
    coffer__quantize_job job = { .opts = COFFER_QUANTIZE_OPTS_INIT };
    coffer__selection selection = { 0 };
    coffer__mcf_pack pack = { 0 };
    coffer_status status = take_options(&job.opts, opts, err);
    if (status)
        return status;
    coffer_pack_opts pack_opts = pack_options(&job.opts);
    if ((status = coffer__mcf_pack_init(&pack, &pack_opts, err)) ||
        (status = coffer__mcf_pack_add_input(&pack, in_path, err)) ||
        (!job.opts.dry_run && (status = coffer__mcf_pack_check_output(out_path, &pack, err))) ||
        (status = coffer__mcf_pack_choose(&selection, &pack, err)))
        goto out;
    job.results = coffer__calloc(selection.count ? selection.count : 1, sizeof *job.results);
    if (!job.results) {
        status = coffer__fail_no_memory(err, selection.count * sizeof *job.results);
        goto out;
    }
    if ((status = coffer__quantize_plan(&selection, &job.opts, err)))
        goto out;
    pack.quantize = &job;
    status = job.opts.dry_run ? measure(&job, &pack, &selection, err)
                              : coffer__mcf_pack_write_chosen(out_path, &pack, &selection, err);
    if (!status && out) {
        describe(out, &job, &selection);
        status = coffer__node_status(out, err);
    }
out:
    coffer__free(job.results);
    coffer__selection_free(&selection);
    coffer__mcf_pack_free(&pack);
    return status;
}
