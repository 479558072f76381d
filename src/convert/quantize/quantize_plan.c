/* Chooses the type of each tensor: by the caller's rules, or to reach a size. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "convert/quantize/quantize.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Chooses the type of each tensor by the caller's rules and the requirements of the types. */

static bool matches_any(const char *const *globs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (coffer__glob_match(globs[i], name, strlen(name)))
            return true;
    }
    return false;
}

static bool is_wanted(const coffer_mcf_quantize_opts *opts, const char *name)
{
    return (!opts->include_count || matches_any(opts->include, opts->include_count, name)) &&
           !matches_any(opts->exclude, opts->exclude_count, name);
}

/* The rule that applies to a tensor; NULL when none does. */
static const coffer_mcf_quantize_rule *quantize_rule_for(const coffer_mcf_quantize_opts *opts,
                                                         const char *name)
{
    for (size_t i = opts->rule_count; i-- > 0;) {
        const coffer_mcf_quantize_rule *rule = &opts->rules[i];
        if (!rule->glob || coffer__glob_match(rule->glob, name, strlen(name)))
            return rule;
    }
    return NULL;
}

/* True when a tensor meets the requirements of a quantized type. */
static bool quantize_can(const coffer_mcf_quantize_opts *opts, const coffer__chosen_tensor *chosen)
{
    const coffer_tensor *tensor = chosen->tensor;
    coffer_dtype from = tensor->dtype;
    /* Blocks of another format have to become numbers in any case. */
    bool decodes = coffer__tensors_can_decode(chosen->set, chosen->index) &&
                   (opts->requantize || !coffer_dtype_is_quantized(from));
    bool plain = coffer_dtype_is_float(from) && coffer__elements_can_convert(COFFER_DTYPE_F32, from);
    return tensor->rank == 2 && tensor->elements > 0 && (plain || decodes) && is_wanted(opts, tensor->name);
}

static coffer_status quantize(coffer__chosen_tensor *chosen, const coffer_mcf_quantize_opts *opts,
                              coffer_dtype dtype, coffer_error *err)
{
    const coffer__quant_type *type = coffer__quant_find_type(dtype);
    coffer__quant_layout layout;
    bool activations = opts->activations && type->family == COFFER__QUANT_WHOLE;
    coffer_status status = coffer__quant_plan(&layout, dtype, 2, chosen->tensor->dims, activations, err);
    if (status)
        return status;
    chosen->dtype = dtype;
    chosen->as_is = chosen->decoded = false;
    chosen->quantize = true;
    chosen->activations = activations;
    chosen->size = layout.size;
    return COFFER_OK;
}

static coffer_status cast(coffer__chosen_tensor *chosen, const coffer_mcf_quantize_opts *opts,
                          coffer_dtype dtype, coffer_error *err)
{
    const coffer_tensor *tensor = chosen->tensor;
    bool decodes = coffer__tensors_can_decode(chosen->set, chosen->index) &&
                   (opts->requantize || !coffer_dtype_is_quantized(tensor->dtype));
    bool plain = coffer_dtype_is_float(tensor->dtype) && coffer__elements_can_convert(dtype, tensor->dtype);
    if (tensor->dtype == dtype || !(plain || decodes) || !is_wanted(opts, tensor->name))
        return COFFER_OK;
    if (!coffer__mul_u64(&chosen->size, tensor->elements, coffer_dtype_size(dtype)))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "\"%s\" has %" PRIu64 " elements, too many for %s", tensor->name,
                            tensor->elements, coffer_dtype_name(dtype));
    chosen->dtype = dtype;
    chosen->as_is = chosen->decoded = false;
    return COFFER_OK;
}

/* Sets what a chosen tensor becomes. */
static coffer_status quantize_choose(coffer__chosen_tensor *chosen, const coffer_mcf_quantize_opts *opts,
                                     coffer_dtype dtype, coffer_error *err)
{
    if (dtype == COFFER_DTYPE_NONE)
        return COFFER_OK;
    if (!coffer_dtype_is_quantized(dtype))
        return cast(chosen, opts, dtype, err);
    return quantize_can(opts, chosen) ? quantize(chosen, opts, dtype, err) : COFFER_OK;
}

/* A glob that nothing matches is a misspelled name. */
static coffer_status check_globs(const char *const *globs, size_t count, const coffer__selection *selection,
                                 coffer_error *err)
{
    for (size_t i = 0; i < count; i++) {
        size_t found = 0;
        while (globs[i] && found < selection->count &&
               !matches_any(&globs[i], 1, selection->items[found].tensor->name))
            found++;
        if (globs[i] && found == selection->count)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "no tensor name matches \"%s\"", globs[i]);
    }
    return COFFER_OK;
}

coffer_status coffer__quantize_plan(coffer__selection *selection, const coffer_mcf_quantize_opts *opts,
                                    coffer_error *err)
{
    coffer_status status = check_globs(opts->include, opts->include_count, selection, err);
    for (size_t i = 0; !status && i < opts->rule_count; i++)
        status = check_globs(&opts->rules[i].glob, 1, selection, err);
    selection->bytes = 0;
    for (size_t i = 0; !status && i < selection->count; i++) {
        coffer__chosen_tensor *chosen = &selection->items[i];
        const coffer_mcf_quantize_rule *rule = quantize_rule_for(opts, chosen->tensor->name);
        /* Norms and biases are small, and runtimes expect them in float32: only a rule for them changes them.
         */
        if (rule && (rule->glob || chosen->tensor->rank >= 2))
            status = quantize_choose(chosen, opts, rule->dtype, err);
        selection->bytes += chosen->size;
    }
    return status;
}

/* A type for each tensor, so that all together have a size and the least error: every type is tried on some
 * rows of every tensor, then bits go where they take away most of the error. */

/* The sample of a tensor: the number of places, and of elements at each of them (at least a row). */
#define SAMPLES 16
#define SAMPLE_ELEMENTS ((uint64_t)1 << 12)

/* From few bits to many; the last one keeps the tensor unchanged. */
static const coffer_dtype candidates[] = { COFFER_DTYPE_K2, COFFER_DTYPE_K3, COFFER_DTYPE_K4,
                                           COFFER_DTYPE_Q4, COFFER_DTYPE_K6, COFFER_DTYPE_Q8 };
#define CANDIDATES (sizeof candidates / sizeof *candidates)

typedef struct option {
    coffer_dtype dtype;
    uint64_t size;
    double error;
} option;

typedef struct tensor_options {
    coffer__chosen_tensor *chosen;
    option options[CANDIDATES + 1]; /* more bytes and less error from one to the next */
    size_t count, taken;
} tensor_options;

/* From one option of a tensor to its next. */
typedef struct step {
    size_t tensor, to;
    uint64_t bytes;
    double gain; /* error that a byte takes away */
} step;

/* ---- Measuring ---- */

typedef struct sampling {
    coffer__quantize_task task;
    uint64_t rows, sample_rows, samples;
    double errors[SAMPLES][CANDIDATES];
} sampling;

static coffer_status new_band(coffer__quantize_band *out, const sampling *sample, coffer_error *err)
{
    uint64_t count, cols = sample->task.chosen->tensor->dims[1], dims[2] = { sample->sample_rows, cols };
    coffer__quant_layout layout;
    size_t len;
    coffer_status status = coffer__quant_plan(&layout, COFFER_DTYPE_Q8, 2, dims, false, err);
    if (status)
        return status;
    if (!coffer__mul_u64(&count, sample->sample_rows, cols) || !coffer__to_size(&len, count))
        return coffer__fail_no_memory(err, cols);
    out->values = coffer__alloc_array(len, sizeof *out->values);
    out->decoded = coffer__alloc_array(len, sizeof *out->decoded);
    out->payload = coffer__calloc(1, (size_t)layout.size); /* of the largest type */
    return out->values && out->decoded && out->payload ? COFFER_OK : coffer__fail_no_memory(err, layout.size);
}

static coffer_status take_sample(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    sampling *sample = context;
    coffer__quantize_task task = sample->task;
    coffer__quantize_band band = { .rows = sample->sample_rows };
    coffer_status status = new_band(&band, sample, err);
    (void)worker;
    if (sample->samples > 1)
        band.first = (sample->rows - sample->sample_rows) / (sample->samples - 1) * index;
    for (size_t i = 0; !status && i < CANDIDATES; i++) {
        task.type = coffer__quant_find_type(candidates[i]);
        status = coffer__quantize_band_run(&band, &task, err);
        sample->errors[index][i] = band.result.weighted;
    }
    coffer__free(band.values);
    coffer__free(band.decoded);
    coffer__free(band.payload);
    return status;
}

static coffer_status measure(double errors[CANDIDATES], const coffer__quantize_task *task,
                             coffer__tensors_stream *stream, coffer_error *err)
{
    const coffer_tensor *tensor = task->chosen->tensor;
    sampling sample = { .task = *task, .rows = tensor->dims[0] };
    sample.sample_rows = 1 + SAMPLE_ELEMENTS / tensor->dims[1];
    if (sample.rows > 0 && sample.sample_rows > sample.rows)
        sample.sample_rows = sample.rows;
    sample.samples = coffer__divide_up(sample.rows, sample.sample_rows);
    if (sample.samples > SAMPLES)
        sample.samples = SAMPLES;
    coffer_status status =
        coffer__work_run(coffer__tensors_stream_work(stream), sample.samples, take_sample, &sample, err);
    double share = (double)sample.rows / ((double)sample.samples * (double)sample.sample_rows);
    for (size_t i = 0; !status && i < CANDIDATES; i++) {
        errors[i] = 0;
        for (size_t k = 0; k < sample.samples; k++)
            errors[i] += sample.errors[k][i] * share;
    }
    return status;
}

/* ---- Error and size of each choice ---- */

static int by_size(const void *left, const void *right)
{
    const option *a = left, *b = right;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return (a->error > b->error) - (a->error < b->error);
}

static double slope(const option *from, const option *to)
{
    return (from->error - to->error) / (double)(to->size - from->size);
}

/* Those that no mixture of others is better than: each byte takes away less than the one before. */
static void keep_best(tensor_options *choices)
{
    size_t kept = 0;
    qsort(choices->options, choices->count, sizeof *choices->options, by_size);
    for (size_t i = 0; i < choices->count; i++) {
        option next = choices->options[i];
        if (kept &&
            (next.error >= choices->options[kept - 1].error || next.size == choices->options[kept - 1].size))
            continue;
        while (kept > 1 && slope(&choices->options[kept - 2], &choices->options[kept - 1]) <=
                               slope(&choices->options[kept - 1], &next))
            kept--;
        choices->options[kept++] = next;
    }
    choices->count = kept;
}

static coffer_status find_options(tensor_options *out, coffer__chosen_tensor *chosen,
                                  coffer__quantize_job *job, coffer__tensors_stream *stream,
                                  coffer_error *err)
{
    double errors[CANDIDATES];
    float *weights = NULL;
    coffer__quantize_task task;
    coffer_status status = coffer__quantize_new_task(&task, &weights, job, chosen, err);
    if (!status)
        status = measure(errors, &task, stream, err);
    coffer__free(weights);
    if (status)
        return status;
    out->chosen = chosen;
    for (size_t i = 0; i < CANDIDATES; i++) {
        coffer__quant_layout layout;
        status = coffer__quant_plan(&layout, candidates[i], 2, chosen->tensor->dims, false, err);
        if (status)
            return status;
        out->options[i] = (option){ candidates[i], layout.size, errors[i] };
    }
    out->options[CANDIDATES] = (option){ COFFER_DTYPE_NONE, chosen->size, 0.0 };
    out->count = CANDIDATES + 1;
    keep_best(out);
    return COFFER_OK;
}

/* ---- The choice ---- */

static int by_gain(const void *left, const void *right)
{
    const step *a = left, *b = right;
    if (a->gain != b->gain)
        return a->gain > b->gain ? -1 : 1;
    if (a->tensor != b->tensor)
        return a->tensor < b->tensor ? -1 : 1;
    return (a->to > b->to) - (a->to < b->to);
}

/* Bytes go where they take away most, as long as there are any left. */
static coffer_status spend(tensor_options *tensors, size_t count, uint64_t bytes, coffer_error *err)
{
    step *steps = coffer__alloc_array(count ? count * CANDIDATES : 1, sizeof *steps);
    size_t found = 0;
    if (!steps)
        return coffer__fail_no_memory(err, count * CANDIDATES * sizeof *steps);
    for (size_t i = 0; i < count; i++) {
        const option *options = tensors[i].options;
        for (size_t k = 1; k < tensors[i].count; k++)
            steps[found++] =
                (step){ i, k, options[k].size - options[k - 1].size, slope(&options[k - 1], &options[k]) };
    }
    qsort(steps, found, sizeof *steps, by_gain);
    for (size_t i = 0; i < found; i++) {
        tensor_options *choices = &tensors[steps[i].tensor];
        if (choices->taken + 1 != steps[i].to || steps[i].bytes > bytes)
            continue;
        choices->taken = steps[i].to;
        bytes -= steps[i].bytes;
    }
    coffer__free(steps);
    return COFFER_OK;
}

static coffer_status choose(tensor_options *tensors, size_t count, coffer__selection *selection,
                            const coffer_mcf_quantize_opts *opts, coffer_error *err)
{
    uint64_t elements = 0, fixed = selection->bytes, least;
    for (size_t i = 0; i < selection->count; i++)
        elements += selection->items[i].tensor->elements;
    for (size_t i = 0; i < count; i++)
        fixed -= tensors[i].chosen->size;
    least = fixed;
    for (size_t i = 0; i < count; i++)
        least += tensors[i].options[0].size;
    double bytes = opts->target_bpw / 8.0 * (double)elements;
    if ((double)least > bytes)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%g bits per weight is too low: the smallest types take %.3f", opts->target_bpw,
                            8.0 * (double)least / (double)elements);
    /* Avoids overflow for absurdly large targets. */
    uint64_t left = bytes < 0x1p63 ? (uint64_t)bytes - least : UINT64_MAX;
    coffer_status status = spend(tensors, count, left, err);
    selection->bytes = fixed;
    for (size_t i = 0; !status && i < count; i++) {
        status = quantize_choose(tensors[i].chosen, opts, tensors[i].options[tensors[i].taken].dtype, err);
        selection->bytes += tensors[i].chosen->size;
    }
    return status;
}

coffer_status coffer__quantize_spend(coffer__selection *selection, coffer__quantize_job *job,
                                     coffer__tensors_stream *stream, coffer_error *err)
{
    const coffer_mcf_quantize_opts *opts = &job->opts;
    size_t count = 0;
    coffer_status status = COFFER_OK;
    tensor_options *tensors = coffer__calloc(selection->count ? selection->count : 1, sizeof *tensors);
    if (!tensors)
        return coffer__fail_no_memory(err, selection->count * sizeof *tensors);
    for (size_t i = 0; !status && i < selection->count; i++) {
        coffer__chosen_tensor *chosen = &selection->items[i];
        if (!quantize_rule_for(opts, chosen->tensor->name) && quantize_can(opts, chosen))
            status = find_options(&tensors[count++], chosen, job, stream, err);
    }
    if (!status)
        status = choose(tensors, count, selection, opts, err);
    coffer__free(tensors);
    return status;
}
