/* Types for the tensors without a rule that reach a target: a size, or a quality. Every type is tried on some
 * rows of every tensor. For a size, bits then go where they take away most of the error; for a quality, each
 * tensor is measured in full. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/quantize/quantize.h"
#include "outside/models/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    coffer__quantize_result results[SAMPLES][CANDIDATES];
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
        sample->results[index][i] = band.result;
    }
    coffer__free(band.values);
    coffer__free(band.decoded);
    coffer__free(band.payload);
    return status;
}

/* The error of a tensor in one of the types, estimated. */
typedef struct estimate {
    double weighted; /* squared error */
    double snr;
} estimate;

static coffer_status measure(estimate out[CANDIDATES], const coffer__quantize_task *task,
                             coffer__tensors_stream *stream, coffer_error *err)
{
    const coffer_tensor *tensor = task->chosen->tensor;
    sampling *sample = coffer__calloc(1, sizeof *sample);
    if (!sample)
        return coffer__fail_no_memory(err, sizeof *sample);
    sample->task = *task;
    sample->rows = tensor->dims[0];
    sample->sample_rows = 1 + SAMPLE_ELEMENTS / tensor->dims[1];
    if (sample->rows > 0 && sample->sample_rows > sample->rows)
        sample->sample_rows = sample->rows;
    sample->samples = coffer__divide_up(sample->rows, sample->sample_rows);
    if (sample->samples > SAMPLES)
        sample->samples = SAMPLES;
    coffer_status status =
        coffer__work_run(coffer__tensors_stream_work(stream), sample->samples, take_sample, sample, err);
    double share = (double)sample->rows / ((double)sample->samples * (double)sample->sample_rows);
    for (size_t i = 0; !status && i < CANDIDATES; i++) {
        coffer__comparison sum;
        coffer__comparison_init(&sum);
        out[i].weighted = 0;
        for (size_t k = 0; k < sample->samples; k++) {
            out[i].weighted += sample->results[k][i].weighted * share;
            coffer__comparison_merge(&sum, &sample->results[k][i].error);
        }
        out[i].snr = coffer__comparison_snr(&sum);
    }
    coffer__free(sample);
    return status;
}

static coffer_status estimate_errors(estimate out[CANDIDATES], const coffer__chosen_tensor *chosen,
                                     const coffer__quantize_job *job, coffer__tensors_stream *stream,
                                     coffer_error *err)
{
    float *weights = NULL;
    coffer__quantize_task task;
    coffer_status status = coffer__quantize_new_task(&task, &weights, job, chosen, err);
    if (!status && !task.weights && job->moments) {
        status = coffer__moments_read_diagonal(&weights, job->moments, chosen->tensor->name,
                                               chosen->tensor->dims[1], err);
        task.weights = weights;
    }
    if (!status)
        status = measure(out, &task, stream, err);
    coffer__free(weights);
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
    estimate errors[CANDIDATES];
    coffer_status status = estimate_errors(errors, chosen, job, stream, err);
    if (status)
        return status;
    out->chosen = chosen;
    for (size_t i = 0; i < CANDIDATES; i++) {
        coffer__quant_layout layout;
        status = coffer__quant_plan(&layout, candidates[i], 2, chosen->tensor->dims, false, err);
        if (status)
            return status;
        out->options[i] = (option){ candidates[i], layout.size, errors[i].weighted };
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

/* The bytes of a file besides its payloads, at most: for each tensor its entries in all sections with its
 * name, and the padding before it. */
static uint64_t other_bytes(const coffer__selection *selection, const coffer__mcf_pack *pack)
{
    uint64_t sum = 4096 + selection->bytes / 4096, align = pack->opts.align > 64 ? pack->opts.align : 64;
    for (size_t i = 0; i < selection->count; i++) {
        const coffer_tensor *tensor = selection->items[i].tensor;
        sum += 512 + 4 * strlen(tensor->name) + 8 * (uint64_t)tensor->rank + align;
    }
    for (size_t i = 0; i < pack->resource_count; i++)
        sum += 64 + pack->resources[i].len;
    for (size_t i = 0; i < pack->file_count; i++)
        sum += 256 + 2 * strlen(pack->files[i].name) + pack->files[i].len;
    for (size_t i = 0; i < pack->info.count; i++)
        sum += 64 + strlen(pack->info.kvs[i].key) + pack->info.kvs[i].text_len;
    for (size_t i = 0; i < pack->set_count; i++) {
        const coffer__safetensors_metadata *metadata = coffer__safetensors_metadata_of(pack->sets[i]);
        for (size_t k = 0; metadata && k < metadata->count; k++)
            sum += 128 + strlen(metadata->items[k].key) + metadata->items[k].text_len;
    }
    return sum + 2 * pack->chat_template_len;
}

/* The bytes that payloads may take. COFFER_E_INVALID_ARGUMENT when the smallest types take more. */
static coffer_status find_budget(uint64_t *out, uint64_t least, const coffer__selection *selection,
                                 const coffer_mcf_quantize_opts *opts, const coffer__mcf_pack *pack,
                                 coffer_error *err)
{
    uint64_t elements = 0, other = other_bytes(selection, pack);
    for (size_t i = 0; i < selection->count; i++)
        elements += selection->items[i].tensor->elements;
    *out = UINT64_MAX;
    if (opts->target_bpw > 0) {
        double bytes = opts->target_bpw / 8.0 * (double)elements;
        if ((double)least > bytes)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "%g bits per weight is too low: the smallest types take %.3f",
                                opts->target_bpw, 8.0 * (double)least / (double)elements);
        if (bytes < 0x1p63) /* absurdly large targets would overflow */
            *out = (uint64_t)bytes;
    }
    if (opts->max_size && (opts->max_size < other || opts->max_size - other < least))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a file of %" PRIu64
                            " bytes is too small: with the smallest types it takes up to %" PRIu64,
                            opts->max_size, least + other);
    if (opts->max_size && opts->max_size - other < *out)
        *out = opts->max_size - other;
    return COFFER_OK;
}

static coffer_status choose(tensor_options *tensors, size_t count, coffer__selection *selection,
                            const coffer_mcf_quantize_opts *opts, const coffer__mcf_pack *pack,
                            coffer_error *err)
{
    uint64_t fixed = selection->bytes, least, budget;
    for (size_t i = 0; i < count; i++)
        fixed -= tensors[i].chosen->size;
    least = fixed;
    for (size_t i = 0; i < count; i++)
        least += tensors[i].options[0].size;
    coffer_status status = find_budget(&budget, least, selection, opts, pack, err);
    if (!status)
        status = spend(tensors, count, budget - least, err);
    selection->bytes = fixed;
    for (size_t i = 0; !status && i < count; i++) {
        status =
            coffer__quantize_choose(tensors[i].chosen, opts, tensors[i].options[tensors[i].taken].dtype, err);
        selection->bytes += tensors[i].chosen->size;
    }
    return status;
}

coffer_status coffer__quantize_spend(coffer__selection *selection, coffer__quantize_job *job,
                                     const coffer__mcf_pack *pack, coffer__tensors_stream *stream,
                                     coffer_error *err)
{
    const coffer_mcf_quantize_opts *opts = &job->opts;
    size_t count = 0;
    coffer_status status = COFFER_OK;
    tensor_options *tensors = coffer__calloc(selection->count ? selection->count : 1, sizeof *tensors);
    if (!tensors)
        return coffer__fail_no_memory(err, selection->count * sizeof *tensors);
    for (size_t i = 0; !status && i < selection->count; i++) {
        if (coffer__quantize_is_free(opts, &selection->items[i]))
            status = find_options(&tensors[count++], &selection->items[i], job, stream, err);
    }
    if (!status)
        status = choose(tensors, count, selection, opts, pack, err);
    coffer__free(tensors);
    return status;
}

/* ---- Quality ---- */

static double wanted_snr(const coffer_mcf_quantize_opts *opts)
{
    double by_error = opts->max_error > 0 ? -20.0 * log10(opts->max_error) : -INFINITY;
    return opts->min_snr > by_error || opts->max_error <= 0 ? opts->min_snr : by_error;
}

/* Measures the tensor, as it would be written, in a type. */
static coffer_status is_good(bool *out, coffer__chosen_tensor *chosen, size_t position, coffer_dtype dtype,
                             coffer__quantize_job *job, coffer__tensors_stream *stream, coffer_error *err)
{
    coffer_status status = coffer__quantize_choose(chosen, &job->opts, dtype, err);
    if (!status)
        status = coffer__quantize_put_tensor(job, chosen, position, stream, NULL, err);
    if (!status)
        *out = coffer__quantize_result_snr(&job->results[position]) >= wanted_snr(&job->opts);
    return status;
}

/* The smallest type that is good enough, from the one that looks like it on: down while the next smaller one
 * is good as well, or up. */
static coffer_status reach(coffer__chosen_tensor *chosen, size_t position, coffer__quantize_job *job,
                           coffer__tensors_stream *stream, coffer_error *err)
{
    const coffer__chosen_tensor unchanged = *chosen;
    estimate errors[CANDIDATES];
    size_t first = 0, best = CANDIDATES;
    bool good = true;
    coffer_status status = estimate_errors(errors, chosen, job, stream, err);
    while (!status && first + 1 < CANDIDATES && errors[first].snr < wanted_snr(&job->opts))
        first++;
    for (size_t i = first + 1; !status && good && i-- > 0;) {
        status = is_good(&good, chosen, position, candidates[i], job, stream, err);
        best = !status && good ? i : best;
    }
    for (size_t i = first + 1; !status && best == CANDIDATES && i < CANDIDATES; i++) {
        status = is_good(&good, chosen, position, candidates[i], job, stream, err);
        best = !status && good ? i : best;
    }
    *chosen = unchanged;
    job->results[position] = (coffer__quantize_result){ 0 };
    return status || best == CANDIDATES ? status
                                        : coffer__quantize_choose(chosen, &job->opts, candidates[best], err);
}

coffer_status coffer__quantize_reach(coffer__selection *selection, coffer__quantize_job *job,
                                     coffer__tensors_stream *stream, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    selection->bytes = 0;
    for (size_t i = 0; !status && i < selection->count; i++) {
        coffer__chosen_tensor *chosen = &selection->items[i];
        if (coffer__quantize_is_free(&job->opts, chosen))
            status = reach(chosen, i, job, stream, err);
        selection->bytes += chosen->size;
    }
    return status;
}
