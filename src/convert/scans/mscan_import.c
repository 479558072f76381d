#include "convert/scans/mscan_import.h"

#include "base/fail.h"
#include "base/memory.h"
#include "formats/mscan/mscan_writer.h"
#include "io/sink.h"

#include <inttypes.h>
#include <math.h>

#define BATCH_RECORDS 4096

const coffer_convert_option coffer__mscan_import_options[] = {
    { "metadata", "FILE", "the metadata as JSON beside the records (or read from there)" },
    { "model-name", "NAME", "the model's name, where no metadata gives it" },
    { "param-names", "FILE", "a parameter's name a line, the first for id 0" },
    { "sequence-lengths", "N,N", "tokens of each sequence; otherwise all rows are one, or a column says it" },
    { "quantize", NULL, "activation and grad_norm come as real values: store them in 16 bits with a scale" },
    { NULL, NULL, NULL },
};

/* ---- Metadata from a file ---- */

static coffer_status load_metadata(coffer__mscan_metadata *out, const coffer__convert_job *job,
                                   coffer_error *err)
{
    char *text;
    size_t len;
    coffer_status status = coffer__job_json_file(&text, &len, job, "metadata", err);
    if (status)
        return status;
    status = coffer__mscan_metadata_load(out, text, len, 0, &job->limits, NULL, err);
    return coffer__fail_other(err, status, coffer__job_setting(job, "metadata"));
}

/* When metadata is given, the scales must be in it. */
static coffer_status check_settings(const coffer__mscan_import *import, coffer_error *err)
{
    static const char *const made_settings[] = { "model-name", "param-names", "sequence-lengths" };
    if (!import->has_metadata)
        return COFFER_OK;
    for (size_t i = 0; i < sizeof made_settings / sizeof *made_settings; i++) {
        if (coffer__job_has(import->job, made_settings[i]))
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "%s and metadata cannot be combined: the metadata already has it",
                                made_settings[i]);
    }
    for (unsigned metric = 0; import->quantize && metric < 2; metric++) {
        if (import->base.scales[metric].scope == COFFER_MSCAN_SCALE_UNKNOWN)
            return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                                "quantize: the metadata has no \"quantization\" of %s",
                                coffer__mscan_field_names[COFFER__MSCAN_ACTIVATION + metric]);
    }
    return COFFER_OK;
}

static coffer_status import_open(coffer__mscan_import *import, const coffer__convert_job *job,
                                 coffer__mscan_input_opener open, coffer_error *err)
{
    const char *path = coffer__job_setting(job, "metadata");
    coffer_mscan_writer_opts empty = COFFER_MSCAN_WRITER_OPTS_INIT;
    memset(import, 0, sizeof *import);
    import->job = job;
    import->open = open;
    import->quantize = coffer__job_has(job, "quantize");
    import->has_metadata = path != NULL;
    coffer_status status = path ? load_metadata(&import->base, job, err)
                                : coffer__mscan_compose_empty(&import->base, &empty, NULL, &job->limits, err);
    if (!status)
        status = check_settings(import, err);
    if (!status)
        status = coffer__mscan_names_init(&import->names, &import->base, err);
    return status;
}

static void import_close(coffer__mscan_import *import)
{
    coffer__mscan_names_free(&import->names);
    coffer__mscan_metadata_free(&import->base);
    coffer__mscan_metadata_free(&import->target.metadata);
    coffer__free(import->spans);
}

/* ---- The second pass ---- */

static coffer_status quantize(uint16_t *out, const coffer__mscan_import *import,
                              const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                              coffer__mscan_field field, const coffer_mscan_record *record, coffer_error *err)
{
    coffer_mscan_metric metric =
        field == COFFER__MSCAN_ACTIVATION ? COFFER_MSCAN_ACTIVATION : COFFER_MSCAN_GRAD_NORM;
    size_t sequence = coffer_mscan_sequence_of_token(&import->target, record->token_idx);
    double value = coffer__number_as_f64(&row->value[field]);
    const coffer_mscan_quantization *scale =
        coffer_mscan_quantization_of(&import->target, metric, record->param_id, sequence);
    double raw = scale ? round((value - scale->offset) / scale->scale) : (double)NAN;
    if (!(raw >= 0 && raw <= UINT16_MAX))
        return coffer__mscan_import_fail(err, COFFER_E_BAD_VALUE, input, row, field,
                                         "%g is out of range for scale %g and offset %g", value,
                                         scale ? scale->scale : 0.0, scale ? scale->offset : 0.0);
    *out = (uint16_t)raw;
    return COFFER_OK;
}

static coffer_status take_metric(uint16_t *out, const coffer__mscan_import *import,
                                 const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                 coffer__mscan_field field, const coffer_mscan_record *record,
                                 coffer_error *err)
{
    uint64_t raw = 0;
    if (import->quantize)
        return quantize(out, import, input, row, field, record, err);
    coffer_status status = coffer__mscan_import_whole(&raw, input, row, field, UINT16_MAX, err);
    *out = (uint16_t)raw;
    return status;
}

static coffer_status check_sequence(const coffer__mscan_import *import, const coffer__mscan_input *input,
                                    const coffer__mscan_input_row *row, uint64_t token, coffer_error *err)
{
    const coffer__mscan_metadata *metadata = &import->target.metadata;
    uint64_t sequence = 0;
    if (token >= metadata->total_tokens)
        return coffer__mscan_import_fail(err, COFFER_E_INCONSISTENT, input, row, COFFER__MSCAN_TOKEN_IDX,
                                         "token %" PRIu64 ", the sequences have %" PRIu64 " in all", token,
                                         metadata->total_tokens);
    if (!input->has[COFFER__MSCAN_SEQUENCE])
        return COFFER_OK;
    coffer_status status =
        coffer__mscan_import_whole(&sequence, input, row, COFFER__MSCAN_SEQUENCE, UINT32_MAX, err);
    if (status)
        return status;
    if (coffer_mscan_sequence_of_token(&import->target, token) != sequence)
        return coffer__mscan_import_fail(err, COFFER_E_INCONSISTENT, input, row, COFFER__MSCAN_SEQUENCE,
                                         "token %" PRIu64 " is in sequence %zu, not %" PRIu64, token,
                                         coffer_mscan_sequence_of_token(&import->target, token), sequence);
    return COFFER_OK;
}

static coffer_status take_record(coffer_mscan_record *out, coffer__mscan_import *import,
                                 const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                 coffer_error *err)
{
    uint64_t token = 0, block = 0;
    coffer_status status =
        coffer__mscan_import_whole(&token, input, row, COFFER__MSCAN_TOKEN_IDX, UINT32_MAX, err);
    if (!status)
        status = coffer__mscan_import_whole(&block, input, row, COFFER__MSCAN_BLOCK_IDX, UINT16_MAX, err);
    if (!status)
        status = check_sequence(import, input, row, token, err);
    if (!status)
        status = coffer__mscan_import_param(&out->param_id, import, input, row, err);
    if (status)
        return status;
    if (!coffer__mscan_find_param(&import->target.metadata, out->param_id))
        return coffer__fail(err, COFFER_E_CHANGED, row->offset, "the file changed while it was read");
    out->token_idx = (uint32_t)token;
    out->block_idx = (uint16_t)block;
    status = take_metric(&out->activation, import, input, row, COFFER__MSCAN_ACTIVATION, out, err);
    if (!status)
        status = take_metric(&out->grad_norm, import, input, row, COFFER__MSCAN_GRAD_NORM, out, err);
    return status;
}

static coffer_status write_rows(coffer__sink *sink, coffer__mscan_import *import, coffer__mscan_input *input,
                                coffer_error *err)
{
    uint8_t batch[BATCH_RECORDS * COFFER__MSCAN_RECORD_SIZE];
    size_t count = 0;
    uint64_t rows = 0;
    coffer__mscan_input_row row;
    for (;;) {
        bool more = false;
        coffer_mscan_record record;
        coffer_status status = input->next(&more, &row, input, err);
        if (!status && more)
            status = take_record(&record, import, input, &row, err);
        if (!status && more) {
            coffer__mscan_store(batch + count++ * COFFER__MSCAN_RECORD_SIZE, &record);
            rows++;
            status = coffer__mscan_import_progress(import, 2, &row, err);
        }
        if (!status && (!more || count == BATCH_RECORDS)) {
            status = coffer__sink_write(sink, batch, count * COFFER__MSCAN_RECORD_SIZE, err);
            count = 0;
        }
        if (status)
            return status;
        if (!more)
            break;
    }
    if (rows != import->rows)
        return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                            "the file had %" PRIu64 " rows, then %" PRIu64 ": it changed while it was read",
                            import->rows, rows);
    return COFFER_OK;
}

/* Parses the metadata of the new file, which the second pass is checked against. */
static coffer_status load_target(coffer__mscan_import *import, const coffer__buffer *json, coffer_error *err)
{
    char *text = coffer__strndup((const char *)json->data, json->len);
    if (!text)
        return coffer__fail_no_memory(err, json->len + 1);
    return coffer__mscan_metadata_load(&import->target.metadata, text, json->len, COFFER__MSCAN_HEADER_SIZE,
                                       &import->job->limits, NULL, err);
}

static coffer_status write_scan(coffer__mscan_import *import, const coffer__buffer *json, coffer_error *err)
{
    coffer__sink_opts opts = { .exclusive = !import->job->overwrite };
    coffer__sink *sink = NULL;
    coffer__mscan_input input = { 0 };
    uint32_t area = 0;
    coffer_status status =
        coffer__mscan_place_records(&area, json->len, coffer__mscan_default_room(json->len), err);
    if (status)
        return status;
    status = import->open(&input, import->job->in, &import->job->limits, err);
    if (status)
        return status;
    status = coffer__sink_create(&sink, import->job->out_path, &opts, err);
    if (!status)
        status = coffer__mscan_write_front(sink, area, import->rows, json, err);
    if (!status)
        status = write_rows(sink, import, &input, err);
    input.close(input.state);
    if (status) {
        coffer__sink_discard(sink);
        return status;
    }
    return coffer__sink_commit(sink, err);
}

static coffer_status import_rows(const coffer__convert_job *job, coffer__mscan_input_opener open,
                                 coffer_error *err)
{
    coffer__buffer json = COFFER__BUFFER_INIT;
    coffer__mscan_import *import = coffer__malloc(sizeof *import);
    if (!import)
        return coffer__fail_no_memory(err, sizeof *import);
    coffer_status status = import_open(import, job, open, err);
    if (!status)
        status = coffer__mscan_import_survey(import, err);
    if (!status)
        status = coffer__mscan_import_compose(&json, import, err);
    if (!status)
        status = load_target(import, &json, err);
    if (!status)
        status = write_scan(import, &json, err);
    coffer__buffer_free(&json);
    import_close(import);
    coffer__free(import);
    return status;
}

coffer_status coffer__mscan_from_npy(const coffer__convert_job *job, coffer_error *err)
{
    return import_rows(job, coffer__mscan_input_from_npy, err);
}

coffer_status coffer__mscan_from_csv(const coffer__convert_job *job, coffer_error *err)
{
    return import_rows(job, coffer__mscan_input_from_csv, err);
}

coffer_status coffer__mscan_from_jsonl(const coffer__convert_job *job, coffer_error *err)
{
    return import_rows(job, coffer__mscan_input_from_jsonl, err);
}
