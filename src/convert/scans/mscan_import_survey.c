/* The first pass over the rows, and the metadata that comes out of it. */
#include "convert/scans/mscan_import.h"

#include "base/array.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/source_private.h"
#include "outside/text/text_window.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Rows ---- */

static coffer_status survey_metric(coffer__mscan_import *import, const coffer__mscan_input *input,
                                   const coffer__mscan_input_row *row, coffer__mscan_field field,
                                   coffer_error *err)
{
    unsigned metric = field == COFFER__MSCAN_ACTIVATION ? COFFER_MSCAN_ACTIVATION : COFFER_MSCAN_GRAD_NORM;
    uint64_t raw;
    if (!import->quantize)
        return coffer__mscan_import_whole(&raw, input, row, field, UINT16_MAX, err);
    double value = coffer__number_as_f64(&row->value[field]);
    if (!isfinite(value))
        return coffer__mscan_import_fail(err, COFFER_E_BAD_VALUE, input, row, field, "%g cannot be quantized",
                                         value);
    if (import->rows == 0 || value < import->low[metric])
        import->low[metric] = value;
    if (import->rows == 0 || value > import->high[metric])
        import->high[metric] = value;
    return COFFER_OK;
}

static coffer_status grow_spans(coffer__mscan_import *import, uint64_t sequence, coffer_error *err)
{
    size_t capacity = import->span_capacity ? import->span_capacity : 64;
    while (capacity <= sequence)
        capacity *= 2;
    if (capacity > import->span_capacity) {
        coffer__mscan_span *spans = coffer__realloc(import->spans, capacity * sizeof *spans);
        if (!spans)
            return coffer__fail_no_memory(err, capacity * sizeof *spans);
        memset(spans + import->span_capacity, 0, (capacity - import->span_capacity) * sizeof *spans);
        import->spans = spans;
        import->span_capacity = capacity;
    }
    if (import->span_count <= sequence)
        import->span_count = (size_t)sequence + 1;
    return COFFER_OK;
}

static coffer_status survey_sequence(coffer__mscan_import *import, const coffer__mscan_input *input,
                                     const coffer__mscan_input_row *row, uint64_t token, coffer_error *err)
{
    uint64_t sequence = 0;
    /* Sequences may be empty, but a file does not have more of them than bytes. */
    const coffer_limits *limits = &import->job->limits;
    uint64_t most = coffer_source_size(import->job->in);
    if (most > limits->entries)
        most = limits->entries;
    if (most > limits->memory_bytes / sizeof(coffer__mscan_span) / 2)
        most = limits->memory_bytes / sizeof(coffer__mscan_span) / 2;
    coffer_status status =
        coffer__mscan_import_whole(&sequence, input, row, COFFER__MSCAN_SEQUENCE, most, err);
    if (!status)
        status = grow_spans(import, sequence, err);
    if (status)
        return status;
    coffer__mscan_span *span = &import->spans[sequence];
    if (!span->seen || token < span->first)
        span->first = token;
    if (!span->seen || token > span->last)
        span->last = token;
    span->seen = true;
    return COFFER_OK;
}

static coffer_status survey_row(coffer__mscan_import *import, const coffer__mscan_input *input,
                                const coffer__mscan_input_row *row, coffer_error *err)
{
    uint64_t token = 0, block;
    uint16_t param = 0;
    coffer_status status =
        coffer__mscan_import_whole(&token, input, row, COFFER__MSCAN_TOKEN_IDX, UINT32_MAX, err);
    if (!status)
        status = coffer__mscan_import_whole(&block, input, row, COFFER__MSCAN_BLOCK_IDX, UINT16_MAX, err);
    if (!status)
        status = survey_metric(import, input, row, COFFER__MSCAN_ACTIVATION, err);
    if (!status)
        status = survey_metric(import, input, row, COFFER__MSCAN_GRAD_NORM, err);
    if (!status)
        status = coffer__mscan_import_param(&param, import, input, row, err);
    if (!status && input->has[COFFER__MSCAN_SEQUENCE])
        status = survey_sequence(import, input, row, token, err);
    if (status)
        return status;
    if (import->rows == COFFER__MSCAN_MAX_RECORDS)
        return coffer__fail(err, COFFER_E_LIMIT, row->offset,
                            "more than %" PRIu32 " rows, a scan holds no more", COFFER__MSCAN_MAX_RECORDS);
    import->rows++;
    if (token >= import->tokens)
        import->tokens = token + 1;
    import->used[param / 64] |= UINT64_C(1) << param % 64;
    return coffer__mscan_import_progress(import, 1, row, err);
}

coffer_status coffer__mscan_import_survey(coffer__mscan_import *import, coffer_error *err)
{
    coffer__mscan_input input;
    coffer__mscan_input_row row;
    bool more = true;
    coffer_status status = import->open(&input, import->job->in, &import->job->limits, err);
    if (status)
        return status;
    while (!status && more) {
        status = input.next(&more, &row, &input, err);
        if (!status && more)
            status = survey_row(import, &input, &row, err);
    }
    input.close(input.state);
    return status;
}

/* ---- Names ---- */

/* One name a line, the first for id 0. */
static coffer_status read_names(coffer__mscan_import *import, coffer_source *src, coffer_error *err)
{
    coffer__text_window window;
    coffer_status status = coffer__text_window_open(&window, src, import->job->limits.string_bytes, err);
    if (status)
        return status;
    for (uint32_t id = 0;; id++) {
        char *line = NULL;
        size_t len;
        status = coffer__text_window_line(&line, &len, &window, err);
        if (status || !line)
            break;
        if (id == COFFER__MSCAN_PARAM_IDS) {
            status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %d names",
                                  COFFER__MSCAN_PARAM_IDS);
            coffer__fail_other(err, status, coffer__source_other_name(src));
            break;
        }
        if (!import->names.by_id[id].text && len > 0)
            status = coffer__mscan_names_add(&import->names, (uint16_t)id, line, len, err);
        if (status)
            break;
    }
    coffer__text_window_close(&window);
    return status;
}

static coffer_status read_names_file(coffer__mscan_import *import, coffer_error *err)
{
    const char *path = coffer__job_setting(import->job, "param-names");
    coffer_source *src = NULL;
    if (!path)
        return COFFER_OK;
    coffer_status status = coffer__source_open_other(&src, path, NULL, err);
    if (!status)
        status = read_names(import, src, err);
    coffer_source_close(src);
    return status;
}

/* Ids that rows use and nobody has named. */
static coffer_status name_the_rest(coffer__mscan_import *import, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint32_t id = 0; !status && id < COFFER__MSCAN_PARAM_IDS; id++) {
        bool used = import->used[id / 64] >> id % 64 & 1;
        char name[24];
        if (!used || import->names.by_id[id].text)
            continue;
        if (import->has_metadata)
            return coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                                "rows have param_id %" PRIu32 ", the metadata does not name it", id);
        int len = snprintf(name, sizeof name, "param %" PRIu32, id);
        status = coffer__mscan_names_add(&import->names, (uint16_t)id, name, (size_t)len, err);
    }
    return status;
}

/* ---- Sequences ---- */

typedef struct sequence_list {
    coffer__mscan_new_sequence *items;
    size_t count, capacity;
    uint64_t tokens;
} sequence_list;

static coffer_status add_sequence(sequence_list *list, uint64_t num_tokens, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&list->items, &list->capacity, list->count, sizeof *list->items, err);
    if (status)
        return status;
    list->items[list->count] =
        (coffer__mscan_new_sequence){ .sequence_id = list->count, .num_tokens = num_tokens };
    list->count++;
    list->tokens += num_tokens;
    return COFFER_OK;
}

/* "128,96,64" */
static coffer_status sequences_from_lengths(sequence_list *list, const char *text, uint64_t tokens,
                                            coffer_error *err)
{
    for (const char *at = text; at;) {
        size_t len = strcspn(at, ",");
        coffer__number number;
        uint64_t length;
        if (!coffer__number_parse(&number, at, len) ||
            !coffer__number_as_u64(&length, &number, COFFER__MSCAN_MAX_TOKENS))
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "sequence-lengths: expected numbers with commas between them, not \"%s\"",
                                at);
        coffer_status status = add_sequence(list, length, err);
        if (status)
            return status;
        at = at[len] ? at + len + 1 : NULL;
    }
    if (tokens > list->tokens)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "rows reach token %" PRIu64 ", the sequence lengths add up to %" PRIu64,
                            tokens - 1, list->tokens);
    return COFFER_OK;
}

/* A sequence ends with its last token, and the next begins there. */
static coffer_status sequences_from_spans(sequence_list *list, const coffer__mscan_import *import,
                                          coffer_error *err)
{
    for (size_t i = 0; i < import->span_count; i++) {
        const coffer__mscan_span *span = &import->spans[i];
        if (span->seen && span->first < list->tokens)
            return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                                "sequence %zu begins at token %" PRIu64
                                ", the sequences before it reach token %" PRIu64,
                                i, span->first, list->tokens - 1);
        coffer_status status = add_sequence(list, span->seen ? span->last + 1 - list->tokens : 0, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

static coffer_status make_sequences(sequence_list *list, const coffer__mscan_import *import,
                                    coffer_error *err)
{
    const char *lengths = coffer__job_setting(import->job, "sequence-lengths");
    if (import->has_metadata)
        return COFFER_OK; /* it has them */
    if (lengths)
        return sequences_from_lengths(list, lengths, import->tokens, err);
    if (import->spans)
        return sequences_from_spans(list, import, err);
    return import->tokens ? add_sequence(list, import->tokens, err) : COFFER_OK;
}

/* ---- The metadata ---- */

/* So that low becomes 0 and high 65535. */
static void scale_between(coffer_mscan_quantization *out, double low, double high)
{
    double scale = high / UINT16_MAX - low / UINT16_MAX;
    out->scale = scale > 0 ? scale : 1.0;
    out->offset = low;
}

static coffer_status compose_base(coffer__mscan_metadata *out, const coffer__mscan_import *import,
                                  coffer_error *err)
{
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    opts.model_name = coffer__job_setting(import->job, "model-name");
    coffer_mscan_quantization scales[2] = { COFFER_MSCAN_QUANTIZATION_INIT, COFFER_MSCAN_QUANTIZATION_INIT };
    if (import->quantize) {
        for (unsigned metric = 0; metric < 2; metric++)
            scale_between(&scales[metric], import->low[metric], import->high[metric]);
        opts.activation = &scales[COFFER_MSCAN_ACTIVATION];
        opts.grad_norm = &scales[COFFER_MSCAN_GRAD_NORM];
    }
    return coffer__mscan_compose_empty(out, &opts, NULL, &import->job->limits, err);
}

coffer_status coffer__mscan_import_compose(coffer__buffer *json, coffer__mscan_import *import,
                                           coffer_error *err)
{
    sequence_list list = { 0 };
    coffer__mscan_metadata made = { 0 };
    coffer_status status = read_names_file(import, err);
    if (!status)
        status = name_the_rest(import, err);
    if (!status)
        status = make_sequences(&list, import, err);
    if (!status && !import->has_metadata)
        status = compose_base(&made, import, err);
    if (!status) {
        /* Where records of a sequence stood in another file says nothing about this one. */
        coffer__mscan_draft draft = { .base = import->has_metadata ? &import->base : &made,
                                      .names = &import->names,
                                      .added = list.items,
                                      .added_count = list.count,
                                      .extent_limit = 0 };
        status = coffer__mscan_compose(json, &draft, err);
    }
    coffer__mscan_metadata_free(&made);
    coffer__free(list.items);
    return status;
}
