/* The first pass over the rows, and the metadata composed from it. */
#include "convert/scans/mscan_import.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "io/source_private.h"
#include "outside/text/text_window.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Rows ---- */

static coffer_status survey_metric(coffer__mscan_import *import, const coffer__mscan_input *input,
                                   const coffer__mscan_input_row *row, coffer__mscan_field field,
                                   coffer_error *err)
{
    unsigned metric = field == COFFER__MSCAN_ACTIVATION ? COFFER_MSCAN_ACTIVATION : COFFER_MSCAN_GRAD_NORM;
    uint64_t raw;
    if (!import->quantize[metric])
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
    if (import->rows == UINT32_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, row->offset,
                            "more than %" PRIu32 " rows do not fit into a scan", UINT32_MAX);
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
        if (id == COFFER__MSCAN_IDS) {
            status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %d names",
                                  COFFER__MSCAN_IDS);
            coffer__fail_other(err, status, coffer__source_other_name(src));
            break;
        }
        if (!import->names.by_id[id].text && len > 0)
            status = coffer__id_names_add(&import->names, (uint16_t)id, line, len, err);
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

/* Names the ids that rows use and that do not have a name. */
static coffer_status name_the_rest(coffer__mscan_import *import, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint32_t id = 0; !status && id < COFFER__MSCAN_IDS; id++) {
        bool used = import->used[id / 64] >> id % 64 & 1;
        char name[24];
        if (!used || import->names.by_id[id].text)
            continue;
        if (import->metadata)
            return coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                                "rows have param_id %" PRIu32 ", the metadata does not name it", id);
        int len = snprintf(name, sizeof name, "param %" PRIu32, id);
        status = coffer__id_names_add(&import->names, (uint16_t)id, name, (size_t)len, err);
    }
    return status;
}

/* ---- Sequences ---- */

typedef struct sequence_list {
    uint64_t *lengths;
    size_t count, capacity;
    uint64_t tokens;
} sequence_list;

static coffer_status add_sequence(sequence_list *list, uint64_t num_tokens, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&list->lengths, &list->capacity, list->count, sizeof *list->lengths, err);
    if (status)
        return status;
    list->lengths[list->count++] = num_tokens;
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
            !coffer__number_as_u64(&length, &number, UINT64_C(1) << 32))
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

static void put_scale(coffer__json_writer *json, const char *key, double low, double high)
{
    coffer_mscan_quantization scale = COFFER_MSCAN_QUANTIZATION_INIT;
    scale_between(&scale, low, high);
    coffer__json_key(json, key);
    coffer__json_open_object(json);
    coffer__json_key(json, "kind");
    coffer__json_string(json, "linear");
    coffer__json_key(json, "scale");
    coffer__json_write_f64(json, scale.scale);
    coffer__json_key(json, "offset");
    coffer__json_write_f64(json, scale.offset);
    coffer__json_key(json, "scope");
    coffer__json_string(json, "file");
    coffer__json_close_object(json);
}

static void put_names(coffer__json_writer *json, const coffer__id_names *names)
{
    coffer__json_key(json, "id_to_param_name_map");
    coffer__json_open_object(json);
    for (uint32_t id = 0; id < COFFER__MSCAN_IDS; id++) {
        char key[16];
        if (!names->by_id[id].text)
            continue;
        snprintf(key, sizeof key, "%" PRIu32, id);
        coffer__json_key(json, key);
        coffer__json_string_len(json, names->by_id[id].text, names->by_id[id].len);
    }
    coffer__json_close_object(json);
}

static void put_sequences(coffer__json_writer *json, const sequence_list *list)
{
    coffer__json_key(json, "sequences");
    coffer__json_open_array(json);
    for (size_t i = 0; i < list->count; i++) {
        coffer__json_open_object(json);
        coffer__json_key(json, "sequence_id");
        coffer__json_write_u64(json, i);
        coffer__json_key(json, "num_tokens");
        coffer__json_write_u64(json, list->lengths[i]);
        coffer__json_close_object(json);
    }
    coffer__json_close_array(json);
}

static void put_metadata(coffer__buffer *out, const coffer__mscan_import *import, const sequence_list *list)
{
    const char *model_name = coffer__job_setting(import->job, "model-name");
    coffer__json_writer json;
    coffer__json_writer_init(&json, out, 0);
    coffer__json_open_object(&json);
    coffer__json_key(&json, "format_version");
    coffer__json_string(&json, "1.1");
    coffer__json_key(&json, "model_name");
    coffer__json_string(&json, model_name ? model_name : "");
    if (import->quantize[0] || import->quantize[1]) {
        coffer__json_key(&json, "quantization");
        coffer__json_open_object(&json);
        put_scale(&json, "activation", import->low[COFFER_MSCAN_ACTIVATION],
                  import->high[COFFER_MSCAN_ACTIVATION]);
        put_scale(&json, "grad_norm", import->low[COFFER_MSCAN_GRAD_NORM],
                  import->high[COFFER_MSCAN_GRAD_NORM]);
        coffer__json_close_object(&json);
    }
    put_names(&json, &import->names);
    put_sequences(&json, list);
    coffer__json_close_object(&json);
}

static coffer_status make_metadata(coffer__mscan_import *import, coffer_error *err)
{
    coffer__buffer json = COFFER__BUFFER_INIT;
    coffer_mscan_open_opts opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    sequence_list list = { 0 };
    opts.limits = &import->job->limits;
    coffer_status status = make_sequences(&list, import, err);
    if (!status) {
        put_metadata(&json, import, &list);
        status = json.failed ? coffer__fail_no_memory(err, json.len)
                             : coffer_mscan_open_metadata(&import->scan, (const char *)json.data, json.len,
                                                          &opts, err);
    }
    coffer__buffer_free(&json);
    coffer__free(list.lengths);
    return status;
}

coffer_status coffer__mscan_import_compose(coffer__mscan_import *import, coffer_error *err)
{
    coffer_status status = read_names_file(import, err);
    if (!status)
        status = name_the_rest(import, err);
    if (!status && !import->scan)
        status = make_metadata(import, err);
    return status;
}
