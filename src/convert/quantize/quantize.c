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

static bool has_size(const coffer_mcf_quantize_opts *opts)
{
    return opts->target_bpw > 0 || opts->max_size > 0;
}

static bool has_quality(const coffer_mcf_quantize_opts *opts)
{
    return opts->min_snr > 0 || opts->max_error > 0;
}

static bool has_target(const coffer_mcf_quantize_opts *opts)
{
    return has_size(opts) || has_quality(opts);
}

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
    if (!rule->glob && (opts->preset || has_target(opts)))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s for all tensors contradicts %s, which chooses the types",
                            rule->dtype ? coffer_dtype_name(rule->dtype) : "keep",
                            opts->preset ? opts->preset : "a target");
    return COFFER_OK;
}

static coffer_status check_targets(const coffer_mcf_quantize_opts *opts, coffer_error *err)
{
    if (!(opts->target_bpw >= 0) || isinf(opts->target_bpw))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "invalid target of %g bits per weight", opts->target_bpw);
    if (!(opts->min_snr >= 0) || isinf(opts->min_snr))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "invalid target of %g dB",
                            opts->min_snr);
    if (!(opts->max_error >= 0 && opts->max_error < 1))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a relative error of %g is not between 0 and 1", opts->max_error);
    if (has_size(opts) && has_quality(opts))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a target for the size and one for the quality contradict each other");
    if (has_target(opts) && opts->activations)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a target chooses types for weights, not for activations");
    return COFFER_OK;
}

static coffer_status check_preset(const coffer_mcf_quantize_opts *opts, coffer_error *err)
{
    if (opts->preset && !coffer_mcf_quantize_preset(opts->preset))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "unknown mixture of types \"%s\"", opts->preset);
    if (opts->preset && opts->activations)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s is for weights: activations are int8 or int4", opts->preset);
    if (opts->preset && has_target(opts))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s contradicts a target, which chooses the types", opts->preset);
    return COFFER_OK;
}

static coffer_status check_moments(const coffer_mcf_quantize_opts *opts, coffer_error *err)
{
    if (opts->hessian && opts->method != COFFER_QUANT_FIT)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s ignores second moments: use them with fit",
                            opts->method == COFFER_QUANT_ABSMAX ? "absmax" : "exact");
    if (opts->hessian && opts->activations)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "second moments are for weights, not for activations");
    if (!(opts->damping >= 0) || isinf(opts->damping))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "invalid damping of %g",
                            opts->damping);
    return COFFER_OK;
}

static coffer_status check_numbers(const coffer_mcf_quantize_opts *opts, coffer_error *err)
{
    if (opts->method != COFFER_QUANT_FIT && opts->method != COFFER_QUANT_ABSMAX &&
        opts->method != COFFER_QUANT_EXACT)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "unknown method %d",
                            (int)opts->method);
    if (opts->percentile != 0 && !(opts->percentile >= 50 && opts->percentile <= 100))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a percentile of %g is not between 50 and 100", opts->percentile);
    if (opts->weights && opts->method == COFFER_QUANT_ABSMAX)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "absmax ignores importances: use weights with fit or exact");
    coffer_status status = check_targets(opts, err);
    if (!status)
        status = check_preset(opts, err);
    return status ? status : check_moments(opts, err);
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
        .method = result->method,
        .snr_db = (float)coffer__comparison_snr(&result->error),
        .max_error = (float)result->error.max_abs,
    };
    if (task->moments)
        quality.importance = coffer__moments_source(job->moments);
    else if (task->weights)
        quality.importance = coffer__importance_source(job->importance);
    coffer_status status = coffer_mcf_writer_set_clip(writer, whole ? task->whole.min_clip : -result->largest,
                                                      whole ? task->whole.max_clip : result->largest, err);
    return status ? status : coffer_mcf_writer_set_quality(writer, &quality, err);
}

/* The moments of a tensor stay until those of another one are needed: a target measures a tensor several
 * times. */
static coffer_status find_moments(coffer__quantize_task *task, coffer__quantize_job *job,
                                  coffer__tensors_stream *stream, coffer_error *err)
{
    const coffer_tensor *tensor = task->chosen->tensor;
    coffer_status status = COFFER_OK;
    if (!job->moments)
        return COFFER_OK;
    if (job->loaded_for != tensor) {
        coffer__quant_moments_free(&job->loaded);
        job->loaded_for = NULL;
        status = coffer__moments_read(&job->loaded, job->moments, tensor->name, tensor->dims[1],
                                      job->opts.damping, coffer__tensors_stream_work(stream), err);
        job->loaded_for = status ? NULL : tensor;
    }
    task->moments = !status && job->loaded.columns ? &job->loaded : NULL;
    return status;
}

coffer_status coffer__quantize_put_tensor(void *context, const coffer__chosen_tensor *chosen, size_t position,
                                          coffer__tensors_stream *stream, coffer_mcf_writer *writer,
                                          coffer_error *err)
{
    coffer__quantize_job *job = context;
    coffer__quantize_result *result = &job->results[position];
    coffer__quantize_task task;
    float *weights = NULL;
    bool done = false;
    coffer_status status = COFFER_OK;
    if (!job->planning)
        status = coffer__quantize_put_part(&done, job, chosen, result, stream, writer, err);
    if (status || done)
        return status;
    status = coffer__quantize_new_task(&task, &weights, job, chosen, err);
    if (!status)
        status = find_moments(&task, job, stream, err);
    if (!status && task.type->family == COFFER__QUANT_WHOLE)
        status = find_whole(job, &task, err);
    if (!status)
        status = coffer__quantize_tensor(result, &task, stream, writer, err);
    result->method = task.moments ? COFFER_QUANT_CALIBRATED : (coffer_quant_method)task.method;
    if (!status && writer)
        status = note(job, &task, result, writer, err);
    coffer__free(weights);
    return status;
}

/* ---- Before anything is written ---- */

static coffer_status open_importance(coffer__quantize_job *job, coffer_error *err)
{
    const coffer_mcf_quantize_opts *opts = &job->opts;
    coffer_status status = COFFER_OK;
    if (opts->weights)
        status = coffer__importance_open(&job->importance, opts->weights, opts->limits, err);
    if (!status && opts->hessian)
        status = coffer__moments_open(&job->moments, opts->hessian, opts->limits, err);
    return status;
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

/* The same for moments. */
static coffer_status check_matching(const coffer__quantize_job *job, const coffer__selection *selection,
                                    coffer_error *err)
{
    coffer_status status = COFFER_OK;
    bool found = !job->moments;
    for (size_t i = 0; !status && !found && i < selection->count; i++) {
        if (selection->items[i].quantize)
            status = coffer__moments_has(&found, job->moments, selection->items[i].tensor->name, err);
    }
    if (status || found)
        return status;
    status = coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                          "no moments for any of the tensors that are quantized");
    return coffer__fail_other(err, status, job->opts.hessian);
}

static coffer_status reach_target(coffer__quantize_job *job, coffer__selection *selection,
                                  const coffer__mcf_pack *pack, coffer_error *err)
{
    coffer__tensors_stream *stream = NULL;
    coffer_status status =
        coffer__tensors_stream_new(&stream, pack->opts.threads, &pack->limits, NULL, 0, err);
    job->planning = true;
    if (!status && has_size(&job->opts))
        status = coffer__quantize_spend(selection, job, pack, stream, err);
    else if (!status)
        status = coffer__quantize_reach(selection, job, stream, err);
    job->planning = false;
    coffer__tensors_stream_free(stream);
    return status;
}

static coffer_status plan(coffer__quantize_job *job, coffer__selection *selection,
                          const coffer__mcf_pack *pack, coffer_error *err)
{
    coffer_status status = coffer__quantize_plan(selection, &job->opts, err);
    if (!status && has_target(&job->opts))
        status = reach_target(job, selection, pack, err);
    if (!status)
        status = coffer__selection_keep_blocks(selection, err);
    if (!status)
        status = check_importance(job, selection, err);
    if (!status)
        status = check_matching(job, selection, err);
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
            status = coffer__quantize_put_tensor(job, &selection->items[i], i, stream, NULL, err);
    }
    coffer__tensors_stream_free(stream);
    return status;
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
    pack.also_read[0] = job.opts.weights;
    pack.also_read[1] = job.opts.hessian;
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
    pack.put_tensor = coffer__quantize_put_tensor;
    pack.put_context = &job;
    status = job.opts.dry_run ? measure(&job, &pack, &selection, err)
                              : coffer__mcf_pack_write_chosen(out_path, &pack, &selection, err);
    if (!status && out) {
        coffer__quantize_describe(out, &job, &selection);
        status = coffer_node_status(out, err);
    }
out:
    coffer__tensors_workers_free(job.workers);
    coffer__importance_close(job.importance);
    coffer__quant_moments_free(&job.loaded);
    coffer__moments_close(job.moments);
    coffer__quantize_close_parts(&job);
    coffer__free(job.results);
    coffer__free(job.rules);
    coffer__selection_free(&selection);
    coffer__mcf_pack_free(&pack);
    return status;
}
