#include "convert/scans/mscan_import.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

const char *const coffer__mscan_field_names[COFFER__MSCAN_FIELDS] = {
    "token_idx", "param_id", "block_idx", "activation", "grad_norm", "param_name", "sequence",
};

coffer__mscan_field coffer__mscan_field_find(const char *name, size_t len)
{
    unsigned field = 0;
    while (field < COFFER__MSCAN_FIELDS && (strlen(coffer__mscan_field_names[field]) != len ||
                                            memcmp(coffer__mscan_field_names[field], name, len) != 0))
        field++;
    return (coffer__mscan_field)field;
}

coffer_status coffer__mscan_input_add(coffer__mscan_field *field, coffer__mscan_input *rows, const char *name,
                                      size_t len, coffer_error *err)
{
    *field = coffer__mscan_field_find(name, len);
    if (*field == COFFER__MSCAN_FIELDS)
        return coffer__fail(
            err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
            "a scan has no column \"%.*s\"; it has token_idx, param_id, block_idx, activation, "
            "grad_norm, param_name, sequence",
            (int)(len < 40 ? len : 40), name);
    if (rows->has[*field])
        return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE, "column %s appears twice",
                            coffer__mscan_field_names[*field]);
    rows->has[*field] = true;
    return COFFER_OK;
}

coffer_status coffer__mscan_input_complete(const coffer__mscan_input *rows, coffer_error *err)
{
    for (unsigned field = 0; field < COFFER__MSCAN_STORED_FIELDS; field++) {
        bool by_name = field == COFFER__MSCAN_PARAM_ID && rows->has[COFFER__MSCAN_PARAM_NAME];
        if (!rows->has[field] && !by_name)
            return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "column %s is missing%s",
                                coffer__mscan_field_names[field],
                                field == COFFER__MSCAN_PARAM_ID ? ", and so is param_name" : "");
    }
    return COFFER_OK;
}

#define ROWS_BETWEEN_STEPS 4096

coffer_status coffer__mscan_import_fail(coffer_error *err, coffer_status status,
                                        const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                        coffer__mscan_field field, const char *format, ...)
{
    char text[sizeof err->text];
    va_list arguments;
    va_start(arguments, format);
    coffer__format_line(text, sizeof text, format, arguments);
    va_end(arguments);
    return coffer__fail(err, status, row->offset, "%s %" PRIu64 ", column %s: %s", input->place_name,
                        row->place, coffer__mscan_field_names[field], text);
}

coffer_status coffer__mscan_import_whole(uint64_t *out, const coffer__mscan_input *input,
                                         const coffer__mscan_input_row *row, coffer__mscan_field field,
                                         uint64_t max, coffer_error *err)
{
    char text[COFFER__NUMBER_TEXT];
    if (coffer__number_as_u64(out, &row->value[field], max))
        return COFFER_OK;
    bool is_metric = field == COFFER__MSCAN_ACTIVATION || field == COFFER__MSCAN_GRAD_NORM;
    return coffer__mscan_import_fail(err, COFFER_E_BAD_VALUE, input, row, field,
                                     "%s is not an integer from 0 to %" PRIu64 "%s",
                                     coffer__number_text(text, &row->value[field]), max,
                                     is_metric ? " (quantize takes real values)" : "");
}

static coffer_status param_by_name(uint16_t *out, coffer__mscan_import *import,
                                   const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                   coffer_error *err)
{
    uint32_t id = coffer__id_names_find(&import->names, row->param_name, row->param_name_len);
    if (id == COFFER__MSCAN_IDS) {
        id = coffer__id_names_free_id(&import->names);
        if (id == COFFER__MSCAN_IDS)
            return coffer__mscan_import_fail(err, COFFER_E_LIMIT, input, row, COFFER__MSCAN_PARAM_NAME,
                                             "more than %d parameters", COFFER__MSCAN_IDS);
        coffer_status status =
            coffer__id_names_add(&import->names, (uint16_t)id, row->param_name, row->param_name_len, err);
        if (status)
            return status;
    }
    *out = (uint16_t)id;
    return COFFER_OK;
}

/* The row has an id; if it also has a name, it must be the name of that id. */
static coffer_status param_by_id(uint16_t *out, coffer__mscan_import *import,
                                 const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                 coffer_error *err)
{
    uint64_t id = 0;
    coffer_status status =
        coffer__mscan_import_whole(&id, input, row, COFFER__MSCAN_PARAM_ID, UINT16_MAX, err);
    if (status)
        return status;
    *out = (uint16_t)id;
    const coffer__id_name *name = &import->names.by_id[id];
    if (!input->has[COFFER__MSCAN_PARAM_NAME])
        return COFFER_OK;
    if (!name->text)
        return coffer__id_names_add(&import->names, (uint16_t)id, row->param_name, row->param_name_len, err);
    if (name->len != row->param_name_len || memcmp(name->text, row->param_name, name->len) != 0)
        return coffer__mscan_import_fail(err, COFFER_E_INCONSISTENT, input, row, COFFER__MSCAN_PARAM_NAME,
                                         "\"%.*s\" is not the name of param_id %" PRIu64 ", which is \"%s\"",
                                         (int)(row->param_name_len < 60 ? row->param_name_len : 60),
                                         row->param_name, id, name->text);
    return COFFER_OK;
}

coffer_status coffer__mscan_import_param(uint16_t *out, coffer__mscan_import *import,
                                         const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                         coffer_error *err)
{
    if (input->has[COFFER__MSCAN_PARAM_NAME] && !coffer__utf8_valid(row->param_name, row->param_name_len))
        return coffer__mscan_import_fail(err, COFFER_E_BAD_TEXT, input, row, COFFER__MSCAN_PARAM_NAME,
                                         "not UTF-8");
    return input->has[COFFER__MSCAN_PARAM_ID] ? param_by_id(out, import, input, row, err)
                                              : param_by_name(out, import, input, row, err);
}

coffer_status coffer__mscan_import_progress(const coffer__mscan_import *import, unsigned pass,
                                            const coffer__mscan_input_row *row, coffer_error *err)
{
    uint64_t size = coffer_source_size(import->job->in);
    if (row->place % ROWS_BETWEEN_STEPS != 0)
        return COFFER_OK;
    return coffer__job_progress(import->job, (pass - 1) * size + row->offset, 2 * size, err);
}

#define BATCH_RECORDS 4096

const coffer_convert_option coffer__mscan_import_options[] = {
    { "metadata", "FILE", "the metadata as JSON beside the records (or read from there)" },
    { "model-name", "NAME", "the model's name, where no metadata gives it" },
    { "param-names", "FILE", "a parameter's name a line, the first for id 0" },
    { "sequence-lengths", "N,N", "tokens of each sequence; otherwise all rows are one, or a column says it" },
    { "quantize", NULL, "activation and grad_norm come as real values: store them in 16 bits with a scale" },
    { "raw", NULL, "the table has the stored integers, whatever the metadata says of its units" },
    { NULL, NULL, NULL },
};

/* ---- Metadata from a file ---- */

static coffer_status load_metadata(coffer__mscan_import *import, coffer_error *err)
{
    coffer_mscan_open_opts opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    size_t len;
    coffer_status status = coffer__job_json_file(&import->metadata, &len, import->job, "metadata", err);
    if (status)
        return status;
    opts.limits = &import->job->limits;
    status = coffer_mscan_open_metadata(&import->scan, import->metadata, len, &opts, err);
    return coffer__fail_other(err, status, coffer__job_setting(import->job, "metadata"));
}

/* The export says in the metadata which columns are in real units. */
static coffer_status choose_units(coffer__mscan_import *import, coffer_error *err)
{
    static const char *const names[2] = { "activation", "grad_norm" };
    bool quantize = coffer__job_has(import->job, "quantize"), raw = coffer__job_has(import->job, "raw");
    coffer__json *json = NULL;
    if (quantize && raw)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "quantize and raw exclude each other");
    import->quantize[0] = import->quantize[1] = quantize;
    if (!import->metadata || quantize || raw)
        return COFFER_OK;
    coffer_status status =
        coffer__json_parse(&json, import->metadata, strlen(import->metadata), 0, &import->job->limits, err);
    if (status)
        return status;
    const coffer__json_value *units = coffer__json_find(coffer__json_root(json), "table_units");
    for (int metric = 0; metric < 2; metric++) {
        const coffer__json_value *unit = coffer__json_find(units, names[metric]);
        import->quantize[metric] =
            unit && unit->kind == COFFER__JSON_STRING && strcmp(unit->as.string, "real") == 0;
    }
    coffer__json_free(json);
    return COFFER_OK;
}

/* When metadata is given, the scales must be in it. */
static coffer_status check_settings(const coffer__mscan_import *import, coffer_error *err)
{
    static const char *const made_settings[] = { "model-name", "param-names", "sequence-lengths" };
    if (!import->metadata)
        return COFFER_OK;
    for (size_t i = 0; i < sizeof made_settings / sizeof *made_settings; i++) {
        if (coffer__job_has(import->job, made_settings[i]))
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "%s and metadata cannot be combined: the metadata already has it",
                                made_settings[i]);
    }
    for (unsigned metric = 0; metric < 2; metric++) {
        if (import->quantize[metric] &&
            coffer_mscan_quantization_scope(import->scan, (coffer_mscan_metric)metric) ==
                COFFER_MSCAN_SCALE_UNKNOWN)
            return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                                "quantize: the metadata has no \"quantization\" of %s",
                                coffer__mscan_field_names[COFFER__MSCAN_ACTIVATION + metric]);
    }
    return COFFER_OK;
}

static coffer_status import_open(coffer__mscan_import *import, const coffer__convert_job *job,
                                 coffer__mscan_input_opener open, coffer_error *err)
{
    memset(import, 0, sizeof *import);
    import->job = job;
    import->open = open;
    coffer_status status = coffer__job_setting(job, "metadata") ? load_metadata(import, err) : COFFER_OK;
    if (!status)
        status = choose_units(import, err);
    if (!status)
        status = check_settings(import, err);
    if (!status)
        status = coffer__id_names_init(&import->names, err);
    for (size_t i = 0; !status && import->scan && i < coffer_mscan_param_count(import->scan); i++) {
        const coffer_mscan_param *param = coffer_mscan_param_at(import->scan, i);
        if (param->id < COFFER__MSCAN_IDS)
            coffer__id_names_borrow(&import->names, (uint16_t)param->id, param->name, param->name_len);
    }
    return status;
}

static void import_close(coffer__mscan_import *import)
{
    coffer__id_names_free(&import->names);
    coffer_mscan_close(import->scan);
    coffer__free(import->metadata);
    coffer__free(import->spans);
}

/* ---- The second pass ---- */

static coffer_status quantize(uint16_t *out, const coffer__mscan_import *import,
                              const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                              coffer__mscan_field field, const coffer_mscan_record *record, coffer_error *err)
{
    coffer_mscan_metric metric =
        field == COFFER__MSCAN_ACTIVATION ? COFFER_MSCAN_ACTIVATION : COFFER_MSCAN_GRAD_NORM;
    size_t sequence = coffer_mscan_sequence_of_token(import->scan, record->token_idx);
    double value = coffer__number_as_f64(&row->value[field]);
    const coffer_mscan_quantization *scale =
        coffer_mscan_quantization_of(import->scan, metric, record->param_id, sequence);
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
    unsigned metric = field == COFFER__MSCAN_ACTIVATION ? COFFER_MSCAN_ACTIVATION : COFFER_MSCAN_GRAD_NORM;
    if (import->quantize[metric])
        return quantize(out, import, input, row, field, record, err);
    coffer_status status = coffer__mscan_import_whole(&raw, input, row, field, UINT16_MAX, err);
    *out = (uint16_t)raw;
    return status;
}

static coffer_status check_sequence(const coffer__mscan_import *import, const coffer__mscan_input *input,
                                    const coffer__mscan_input_row *row, uint64_t token, coffer_error *err)
{
    uint64_t sequence = 0;
    uint64_t total = coffer_mscan_total_tokens(import->scan);
    if (token >= total)
        return coffer__mscan_import_fail(err, COFFER_E_INCONSISTENT, input, row, COFFER__MSCAN_TOKEN_IDX,
                                         "token %" PRIu64 ", the sequences have %" PRIu64 " in all", token,
                                         total);
    if (!input->has[COFFER__MSCAN_SEQUENCE])
        return COFFER_OK;
    coffer_status status =
        coffer__mscan_import_whole(&sequence, input, row, COFFER__MSCAN_SEQUENCE, UINT32_MAX, err);
    if (status)
        return status;
    if (coffer_mscan_sequence_of_token(import->scan, token) != sequence)
        return coffer__mscan_import_fail(err, COFFER_E_INCONSISTENT, input, row, COFFER__MSCAN_SEQUENCE,
                                         "token %" PRIu64 " is in sequence %zu, not %" PRIu64, token,
                                         coffer_mscan_sequence_of_token(import->scan, token), sequence);
    return COFFER_OK;
}

static coffer_status take_record(coffer_mscan_record *out, coffer__mscan_import *import,
                                 const coffer__mscan_input *input, const coffer__mscan_input_row *row,
                                 coffer_error *err)
{
    uint64_t token = 0, block = 0;
    out->param_id = 0;
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
    if (!(import->used[out->param_id / 64] >> out->param_id % 64 & 1))
        return coffer__fail(err, COFFER_E_CHANGED, row->offset, "the file changed while it was read");
    out->token_idx = (uint32_t)token;
    out->block_idx = (uint16_t)block;
    status = take_metric(&out->activation, import, input, row, COFFER__MSCAN_ACTIVATION, out, err);
    if (!status)
        status = take_metric(&out->grad_norm, import, input, row, COFFER__MSCAN_GRAD_NORM, out, err);
    return status;
}

static coffer_status write_rows(coffer_mscan_writer *writer, coffer__mscan_import *import,
                                coffer__mscan_input *input, coffer_error *err)
{
    coffer_mscan_record batch[BATCH_RECORDS];
    size_t count = 0;
    uint64_t rows = 0;
    coffer__mscan_input_row row;
    for (;;) {
        bool more = false;
        coffer_status status = input->next(&more, &row, input, err);
        if (!status && more)
            status = take_record(&batch[count], import, input, &row, err);
        if (!status && more) {
            count++;
            rows++;
            status = coffer__mscan_import_progress(import, 2, &row, err);
        }
        if (!status && (!more || count == BATCH_RECORDS)) {
            status = coffer_mscan_writer_put_global(writer, batch, count, err);
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

static coffer_status add_params(coffer_mscan_writer *writer, const coffer__mscan_import *import,
                                coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint32_t id = 0; !status && id < COFFER__MSCAN_IDS; id++) {
        const coffer__id_name *name = &import->names.by_id[id];
        if (!name->text || coffer_mscan_param_name(import->scan, (uint16_t)id))
            continue;
        status = strlen(name->text) == name->len
                     ? coffer_mscan_writer_add_param_id(writer, (uint16_t)id, name->text, err)
                     : coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE,
                                    "the name of parameter %" PRIu32 " contains a NUL", id);
    }
    return status;
}

static coffer_status write_scan(coffer__mscan_import *import, coffer_error *err)
{
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_mscan_writer *writer = NULL;
    coffer__mscan_input input = { 0 };
    opts.overwrite = import->job->overwrite;
    opts.limits = &import->job->limits;
    opts.metadata_json = coffer_mscan_metadata(import->scan, NULL);
    coffer_status status = import->open(&input, import->job->in, &import->job->limits, err);
    if (status)
        return status;
    status = coffer_mscan_writer_create(&writer, import->job->out_path, &opts, err);
    if (!status)
        status = add_params(writer, import, err);
    if (!status)
        status = write_rows(writer, import, &input, err);
    input.close(input.state);
    if (status) {
        coffer_mscan_writer_discard(writer);
        return status;
    }
    return coffer_mscan_writer_commit(writer, err);
}

static coffer_status import_rows(const coffer__convert_job *job, coffer__mscan_input_opener open,
                                 coffer_error *err)
{
    coffer__mscan_import *import = coffer__malloc(sizeof *import);
    if (!import)
        return coffer__fail_no_memory(err, sizeof *import);
    coffer_status status = import_open(import, job, open, err);
    if (!status)
        status = coffer__mscan_import_survey(import, err);
    if (!status)
        status = coffer__mscan_import_compose(import, err);
    if (!status)
        status = write_scan(import, err);
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
