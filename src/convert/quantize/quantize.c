/* Quantizes a file: packs one input and changes the type of some of its tensors. */
#include "convert/quantize/quantize.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "convert/models/mcf_pack.h"

#include <math.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_mcf_quantize_rule, COFFER_MCF_QUANTIZE_RULE_INIT)
COFFER__INIT_FUNCTION(coffer_mcf_quantize_opts, COFFER_MCF_QUANTIZE_OPTS_INIT)

/* ---- Options ---- */

static coffer_status check_rule(const coffer_mcf_quantize_rule *rule, const coffer_mcf_quantize_opts *opts,
                                coffer_error *err)
{
    const coffer__quant_type *type = coffer__quant_find_type(rule->dtype);
    if (!type && rule->dtype != COFFER_DTYPE_NONE && rule->dtype != COFFER_DTYPE_F16 &&
        rule->dtype != COFFER_DTYPE_BF16)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "cannot quantize to %s",
                            coffer_dtype_name(rule->dtype));
    if (type && type->family != COFFER__QUANT_WHOLE && opts->activations)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s is for weights: activations are int8 or int4",
                            coffer_dtype_name(rule->dtype));
    if (!rule->glob && opts->target_bpw > 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s for all tensors contradicts a target, which chooses the types",
                            rule->dtype ? coffer_dtype_name(rule->dtype) : "keep");
    return COFFER_OK;
}

static coffer_status check_numbers(const coffer_mcf_quantize_opts *opts, coffer_error *err)
{
    if (opts->method != COFFER_QUANT_FIT && opts->method != COFFER_QUANT_ABSMAX &&
        opts->method != COFFER_QUANT_EXACT)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "unknown method %d",
                            (int)opts->method);
    if (!(opts->target_bpw >= 0) || isinf(opts->target_bpw))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "invalid target of %g bits per weight", opts->target_bpw);
    if (opts->target_bpw > 0 && opts->activations)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a target chooses types for weights, not for activations");
    if (opts->percentile != 0 && !(opts->percentile >= 50 && opts->percentile <= 100))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a percentile of %g is not between 50 and 100", opts->percentile);
    if (opts->weights && opts->method == COFFER_QUANT_ABSMAX)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "absmax ignores importances: use weights with fit or exact");
    return COFFER_OK;
}

static coffer_status take_options(coffer__quantize_job *job, const coffer_mcf_quantize_opts *given,
                                  coffer_error *err)
{
    coffer_mcf_quantize_opts *opts = &job->opts;
    coffer_status status = coffer__take_options(opts, sizeof *opts, given, err);
    if (status)
        return status;
    if (opts->rule_count) {
        job->rules = coffer__alloc_array(opts->rule_count, sizeof *job->rules);
        if (!job->rules)
            return coffer__fail_no_memory(err, opts->rule_count * sizeof *job->rules);
    }
    for (size_t i = 0; !status && i < opts->rule_count; i++) {
        job->rules[i] = (coffer_mcf_quantize_rule)COFFER_MCF_QUANTIZE_RULE_INIT;
        status = coffer__take_element(&job->rules[i], sizeof job->rules[i], opts->rules, i, err);
        if (!status)
            status = check_rule(&job->rules[i], opts, err);
    }
    opts->rules = job->rules;
    return status ? status : check_numbers(opts, err);
}

static coffer_mcf_pack_opts pack_options(const coffer_mcf_quantize_opts *opts)
{
    coffer_mcf_pack_opts pack = COFFER_MCF_PACK_OPTS_INIT;
    pack.align = opts->align;
    pack.no_dedup = opts->no_dedup;
    pack.no_checksums = opts->no_checksums;
    pack.overwrite = opts->overwrite;
    pack.model_name = opts->model_name;
    pack.threads = opts->threads;
    pack.limits = opts->limits;
    pack.progress = opts->progress;
    pack.allow_damaged = opts->allow_damaged;
    return pack;
}

/* ---- The work ---- */

coffer_status coffer__quantize_new_task(coffer__quantize_task *out, float **weights,
                                        const coffer__quantize_job *job, const coffer__chosen_tensor *chosen,
                                        coffer_error *err)
{
    const coffer_tensor *tensor = chosen->tensor;
    *out = (coffer__quantize_task){
        .chosen = chosen,
        .type = coffer__quant_find_type(chosen->dtype),
        .method = (coffer__quant_method)job->opts.method,
        .activations = chosen->activations,
        .nan_to_zero = job->opts.nan_to_zero,
        .portable_scales = job->opts.portable_scales,
    };
    coffer_status status = COFFER_OK;
    if (job->importance && !(out->type && out->type->family == COFFER__QUANT_WHOLE))
        status = coffer__importance_read(weights, job->importance, tensor->name, tensor->dims[1], err);
    out->weights = status ? NULL : *weights;
    return status;
}

static coffer_status find_whole(coffer__quantize_job *job, coffer__quantize_task *task, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!job->workers)
        status = coffer__tensors_workers_new(&job->workers, job->opts.threads, NULL, 0, err);
    if (!status)
        status = coffer__quantize_find_whole(&task->whole, task, job->opts.percentile, job->workers, err);
    task->method = COFFER__QUANT_ABSMAX; /* the bounds determine the scale */
    return status;
}

static coffer_status note(const coffer__quantize_job *job, const coffer__quantize_task *task,
                          const coffer__quantize_result *result, coffer_mcf_writer *writer, coffer_error *err)
{
    bool whole = task->type->family == COFFER__QUANT_WHOLE;
    coffer_mcf_quality quality = {
        .struct_size = sizeof quality,
        .method = (coffer_quant_method)task->method,
        .snr_db = (float)coffer__comparison_snr(&result->error),
        .max_error = (float)result->error.max_abs,
    };
    if (task->weights)
        quality.importance = coffer__importance_source(job->importance);
    coffer_status status = coffer_mcf_writer_set_clip(writer, whole ? task->whole.min_clip : -result->largest,
                                                      whole ? task->whole.max_clip : result->largest, err);
    return status ? status : coffer_mcf_writer_set_quality(writer, &quality, err);
}

/* writer : NULL = only measure. */
static coffer_status put_tensor(void *context, const coffer__chosen_tensor *chosen, size_t position,
                                coffer__tensors_stream *stream, coffer_mcf_writer *writer, coffer_error *err)
{
    coffer__quantize_job *job = context;
    coffer__quantize_result *result = &job->results[position];
    coffer__quantize_task task;
    float *weights = NULL;
    bool done = false;
    coffer_status status = coffer__quantize_put_part(&done, job, chosen, result, stream, writer, err);
    if (status || done)
        return status;
    status = coffer__quantize_new_task(&task, &weights, job, chosen, err);
    if (!status && task.type->family == COFFER__QUANT_WHOLE)
        status = find_whole(job, &task, err);
    if (!status)
        status = coffer__quantize_tensor(result, &task, stream, writer, err);
    if (!status && writer)
        status = note(job, &task, result, writer, err);
    coffer__free(weights);
    return status;
}

/* ---- Before anything is written ---- */

static coffer_status open_importance(coffer__quantize_job *job, coffer_error *err)
{
    return job->opts.weights
               ? coffer__importance_open(&job->importance, job->opts.weights, job->opts.limits, err)
               : COFFER_OK;
}

/* A file of importances for another model is a mistake. */
static coffer_status check_importance(const coffer__quantize_job *job, const coffer__selection *selection,
                                      coffer_error *err)
{
    for (size_t i = 0; job->importance && i < selection->count; i++) {
        if (selection->items[i].quantize &&
            coffer__importance_has(job->importance, selection->items[i].tensor->name))
            return COFFER_OK;
    }
    if (!job->importance)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                        "%s: no importances for any of the tensors that are quantized", job->opts.weights);
}

static coffer_status plan(coffer__quantize_job *job, coffer__selection *selection,
                          const coffer__mcf_pack *pack, coffer_error *err)
{
    coffer__tensors_stream *stream = NULL;
    coffer_status status = coffer__quantize_plan(selection, &job->opts, err);
    if (!status && job->opts.target_bpw > 0) {
        status = coffer__tensors_stream_new(&stream, pack->opts.threads, &pack->limits, NULL, 0, err);
        if (!status)
            status = coffer__quantize_spend(selection, job, stream, err);
        coffer__tensors_stream_free(stream);
    }
    if (!status)
        status = coffer__selection_keep_blocks(selection, err);
    if (!status)
        status = check_importance(job, selection, err);
    return status || !job->opts.only_count ? status : coffer__quantize_keep_only(selection, &job->opts, err);
}

static coffer_status measure(coffer__quantize_job *job, const coffer__mcf_pack *pack,
                             const coffer__selection *selection, coffer_error *err)
{
    coffer__tensors_stream *stream = NULL;
    uint64_t total = 0;
    for (size_t i = 0; i < selection->count; i++)
        total += selection->items[i].quantize ? selection->items[i].size : 0;
    coffer_status status = coffer__tensors_stream_new(&stream, pack->opts.threads, &pack->limits,
                                                      pack->opts.progress, total, err);
    for (size_t i = 0; !status && !job->opts.plan_only && i < selection->count; i++) {
        if (selection->items[i].quantize)
            status = put_tensor(job, &selection->items[i], i, stream, NULL, err);
    }
    coffer__tensors_stream_free(stream);
    return status;
}

/* ---- Results ---- */

static double bits_of(uint64_t size, uint64_t elements)
{
    return elements ? 8.0 * (double)size / (double)elements : 0.0;
}

static void describe_tensor(coffer_node *list, const coffer__chosen_tensor *chosen,
                            const coffer__quantize_result *result)
{
    const coffer_tensor *tensor = chosen->tensor;
    coffer_node *node = coffer_node_add_map(list, NULL);
    coffer_node_add_text(node, "name", tensor->name);
    coffer_node_add_text(node, "from",
                         tensor->dtype == COFFER_DTYPE_NONE ? tensor->type_name
                                                            : coffer_dtype_name(tensor->dtype));
    coffer_node_add_text(node, "type",
                         chosen->dtype == COFFER_DTYPE_NONE ? tensor->type_name
                                                            : coffer_dtype_name(chosen->dtype));
    coffer_node_add_f64(node, "bits", bits_of(chosen->size, tensor->elements), COFFER_UNIT_NONE);
    const coffer_mcf_quality *recorded = result->recorded;
    if (!chosen->quantize || !result->known) {
        coffer_node_add_null(node, "snr_db");
        coffer_node_add_null(node, "max_error");
        return;
    }
    coffer_node_add_f64(node, "snr_db",
                        recorded ? (double)recorded->snr_db : coffer__comparison_snr(&result->error),
                        COFFER_UNIT_NONE);
    coffer_node_add_f64(node, "max_error", recorded ? (double)recorded->max_error : result->error.max_abs,
                        COFFER_UNIT_NONE);
}

static void describe(coffer_node *out, const coffer__quantize_job *job, const coffer__selection *selection)
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
}

coffer_status coffer_mcf_quantize(coffer_node *out, const char *out_path, const char *in_path,
                                  const coffer_mcf_quantize_opts *opts, coffer_error *err)
{
    coffer__quantize_job job = { .opts = COFFER_MCF_QUANTIZE_OPTS_INIT };
    coffer__selection selection = { 0 };
    coffer__mcf_pack pack = { 0 };
    coffer_status status = take_options(&job, opts, err);
    if (status)
        goto out;
    coffer_mcf_pack_opts pack_opts = pack_options(&job.opts);
    status = coffer__mcf_pack_init(&pack, &pack_opts, err);
    if (status)
        goto out;
    pack.also_read = job.opts.weights;
    pack.tensors_only = job.opts.only_count > 0;
    status = coffer__mcf_pack_add_input(&pack, in_path, err);
    if (!status && !job.opts.dry_run)
        status = coffer__mcf_pack_check_output(out_path, &pack, err);
    if (!status)
        status = open_importance(&job, err);
    if (!status)
        status = coffer__quantize_open_parts(&job, err);
    if (!status)
        status = coffer__mcf_pack_choose(&selection, &pack, err);
    if (status)
        goto out;
    if (pack.set_count == 0) {
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s contains no tensors",
                              in_path);
        goto out;
    }
    job.results = coffer__calloc(selection.count ? selection.count : 1, sizeof *job.results);
    if (!job.results) {
        status = coffer__fail_no_memory(err, selection.count * sizeof *job.results);
        goto out;
    }
    status = plan(&job, &selection, &pack, err);
    if (status)
        goto out;
    pack.put_tensor = put_tensor;
    pack.put_context = &job;
    status = job.opts.dry_run ? measure(&job, &pack, &selection, err)
                              : coffer__mcf_pack_write_chosen(out_path, &pack, &selection, err);
    if (!status && out) {
        describe(out, &job, &selection);
        status = coffer_node_status(out, err);
    }
out:
    coffer__tensors_workers_free(job.workers);
    coffer__importance_close(job.importance);
    coffer__quantize_close_parts(&job);
    coffer__free(job.results);
    coffer__free(job.rules);
    coffer__selection_free(&selection);
    coffer__mcf_pack_free(&pack);
    return status;
}
