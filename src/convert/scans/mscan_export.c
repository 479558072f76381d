#include "convert/scans/mscan_export.h"
#include "io/source_private.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/real.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXPORT_OPTIONS                                                                               \
    { "param", "GLOB", "only parameters whose name matches" },                                       \
        { "tokens", "A..B", "only these tokens, B not included" },                                   \
        { "sequence", "ID", "only this sequence" },                                                  \
        { "only", "LIST", "only these columns, with commas between them, in this order" },           \
        { "raw", NULL, "the stored integers, even where the scan knows its scale" },                 \
        { "real", NULL, "real units or an error; without it, integers where the scale is unknown" }, \
    {                                                                                                \
        "metadata", "FILE", "the metadata as JSON beside the records (or read from there)"           \
    }

const coffer_convert_option coffer__mscan_export_text_options[] = {
    EXPORT_OPTIONS,
    { "names", NULL, "also the parameter's name and the sequence of each record" },
    { NULL, NULL, NULL },
};

const coffer_convert_option coffer__mscan_export_array_options[] = {
    EXPORT_OPTIONS,
    { "columns", NULL, "a file for each column, OUT.COLUMN.npy, instead of one with all" },
    { NULL, NULL, NULL },
};

/* ---- Settings ---- */

static coffer_status add_field(coffer__mscan_export *export, const char *name, size_t len, coffer_error *err)
{
    coffer__mscan_field field = coffer__mscan_field_find(name, len);
    /* Arrays of numbers do not have text columns. */
    bool is_text = coffer_convert_is_text(export->job->to);
    bool known = field < (is_text ? COFFER__MSCAN_FIELDS : COFFER__MSCAN_STORED_FIELDS);
    if (!known)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "no column \"%.*s\"; there are token_idx, param_id, block_idx, activation, "
                            "grad_norm%s",
                            (int)len, name, is_text ? ", param_name, sequence" : "");
    for (size_t i = 0; i < export->field_count; i++) {
        if (export->fields[i] == field)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "column %s is requested twice", coffer__mscan_field_names[field]);
    }
    export->fields[export->field_count++] = field;
    return COFFER_OK;
}

static coffer_status choose_fields(coffer__mscan_export *export, coffer_error *err)
{
    const char *only = coffer__job_setting(export->job, "only");
    coffer_status status = COFFER_OK;
    while (only && !status) {
        size_t len = strcspn(only, ",");
        status = add_field(export, only, len, err);
        only = only[len] ? only + len + 1 : NULL;
    }
    if (status || export->field_count > 0)
        return status;
    size_t wanted =
        coffer__job_has(export->job, "names") ? COFFER__MSCAN_FIELDS : COFFER__MSCAN_STORED_FIELDS;
    while (export->field_count < wanted) {
        export->fields[export->field_count] = (coffer__mscan_field) export->field_count;
        export->field_count++;
    }
    return COFFER_OK;
}

static coffer_mscan_metric metric_of(coffer__mscan_field field)
{
    return field == COFFER__MSCAN_ACTIVATION ? COFFER_MSCAN_ACTIVATION : COFFER_MSCAN_GRAD_NORM;
}

/* Real units where the scale is known, unless integers are requested. "raw" as a kind of file is the bytes of
 * the records. */
static coffer_status choose_units(coffer__mscan_export *export, coffer_error *err)
{
    bool must = coffer__job_has(export->job, "real");
    bool raw = coffer__job_has(export->job, "raw") || (!must && strcmp(export->job->to, "raw") == 0);
    if (must && coffer__job_has(export->job, "raw"))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "real and raw exclude each other");
    for (int metric = 0; metric < 2; metric++)
        export->real[metric] =
            !raw && coffer_mscan_quantization_scope(export->scan, (coffer_mscan_metric)metric) !=
                        COFFER_MSCAN_SCALE_UNKNOWN;
    for (size_t i = 0; must && i < export->field_count; i++) {
        coffer__mscan_field field = export->fields[i];
        bool is_metric = field == COFFER__MSCAN_ACTIVATION || field == COFFER__MSCAN_GRAD_NORM;
        if (is_metric && !export->real[metric_of(field)])
            return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                "no real units: the metadata has no \"quantization\" of %s",
                                coffer__mscan_field_names[field]);
    }
    return COFFER_OK;
}

/* *out is COFFER_INDEX_NONE when no sequence was requested. */
static coffer_status select_sequence(size_t *out, const coffer__mscan_export *export, coffer_error *err)
{
    uint64_t id = 0;
    coffer_status status = coffer__job_number(&id, export->job, "sequence", UINT64_MAX, err);
    *out = COFFER_INDEX_NONE;
    if (status || !coffer__job_setting(export->job, "sequence"))
        return status;
    *out = coffer_mscan_find_sequence(export->scan, id);
    if (*out != COFFER_INDEX_NONE)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "the scan has no sequence %" PRIu64, id);
}

static void select_params(coffer__mscan_export *export, const char *glob)
{
    export->by_param = glob != NULL;
    for (size_t i = 0; glob && i < coffer_mscan_param_count(export->scan); i++) {
        const coffer_mscan_param *param = coffer_mscan_param_at(export->scan, i);
        if (param->id < COFFER__MSCAN_IDS && coffer__glob_match(glob, param->name, param->name_len))
            export->params[param->id / 64] |= UINT64_C(1) << param->id % 64;
    }
}

static coffer_status select_tokens(coffer__mscan_export *export, uint64_t begin, uint64_t end,
                                   coffer_error *err)
{
    bool sorted;
    export->token_begin = begin;
    export->token_end = end < begin ? begin : end;
    if (begin == 0 && end > UINT32_MAX)
        return COFFER_OK;
    coffer_status status = coffer_mscan_is_sorted(&sorted, export->scan, err);
    if (status)
        return status;
    export->by_token = !sorted;
    if (!sorted)
        return COFFER_OK;
    return coffer_mscan_find_tokens(&export->first, &export->record_count, export->scan, export->token_begin,
                                    export->token_end, err);
}

static coffer_status select_records(coffer__mscan_export *export, coffer_error *err)
{
    uint64_t begin = 0, end = UINT64_MAX;
    size_t index;
    coffer_status status = coffer__job_range(&begin, &end, export->job, "tokens", err);
    if (!status)
        status = select_sequence(&index, export, err);
    if (status)
        return status;
    const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(export->scan, index);
    if (sequence) {
        uint64_t last = sequence->first_token + sequence->num_tokens;
        begin = begin > sequence->first_token ? begin : sequence->first_token;
        end = end < last ? end : last;
    }
    export->record_count = coffer_mscan_record_count(export->scan);
    select_params(export, coffer__job_setting(export->job, "param"));
    return select_tokens(export, begin, end, err);
}

coffer_status coffer__mscan_export_open(coffer__mscan_export *out, const coffer__convert_job *job,
                                        coffer_error *err)
{
    coffer_mscan_open_opts opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    memset(out, 0, sizeof *out);
    out->job = job;
    opts.limits = &job->limits;
    coffer_status status = choose_fields(out, err);
    if (!status)
        status = coffer_mscan_open(&out->scan, job->in, &opts, err);
    if (!status && coffer_mscan_damage_count(out->scan) > 0) {
        coffer_error marked = COFFER_ERROR_INIT;
        coffer__fail(&marked, COFFER_E_BAD_CHECKSUM, COFFER_OFFSET_NONE,
                     "a repair could not verify parts of the scan (%zu marks): accept them with "
                     "'coffer set FILE --delete damage'",
                     coffer_mscan_damage_count(out->scan));
        status = coffer__source_accept_damage(job->in, &marked, err);
    }
    if (!status)
        status = choose_units(out, err);
    if (!status)
        status = select_records(out, err);
    if (!status) {
        out->records = coffer__alloc_array(COFFER__MSCAN_EXPORT_BATCH, sizeof *out->records);
        out->values = coffer__calloc((size_t)2 * (UINT16_MAX + 1), sizeof *out->values);
        if (!out->records || !out->values)
            status = coffer__fail_no_memory(err, COFFER__MSCAN_EXPORT_BATCH * sizeof *out->records);
    }
    if (status)
        coffer__mscan_export_close(out);
    return status;
}

void coffer__mscan_export_close(coffer__mscan_export *export)
{
    coffer_mscan_close(export->scan);
    coffer__free(export->records);
    coffer__free(export->values);
    export->scan = NULL;
    export->records = NULL;
    export->values = NULL;
}

/* ---- Records ---- */

static bool is_selected(const coffer__mscan_export *export, const coffer_mscan_record *record)
{
    if (export->by_token &&
        (record->token_idx < export->token_begin || record->token_idx >= export->token_end))
        return false;
    return !export->by_param || export->params[record->param_id / 64] >> record->param_id % 64 & 1;
}

static coffer_status read_selected(const coffer_mscan_record **records, size_t *count,
                                   coffer__mscan_export *export, coffer_error *err)
{
    uint64_t left = export->record_count - export->done;
    size_t some = left < COFFER__MSCAN_EXPORT_BATCH ? (size_t)left : COFFER__MSCAN_EXPORT_BATCH;
    *records = NULL;
    *count = 0;
    if (some == 0)
        return COFFER_OK;
    coffer_status status =
        coffer_mscan_read(export->records, export->scan, export->first + export->done, some, err);
    if (status)
        return status;
    *count = some;
    if (export->by_token || export->by_param) {
        *count = 0;
        for (size_t i = 0; i < some; i++)
            if (is_selected(export, &export->records[i]))
                export->records[(*count)++] = export->records[i];
    }
    *records = export->records;
    export->done += some;
    return COFFER_OK;
}

coffer_status coffer__mscan_export_next(const coffer_mscan_record **records, size_t *count,
                                        coffer__mscan_export *export, coffer_error *err)
{
    coffer_status status = read_selected(records, count, export, err);
    if (!status && *records)
        status = coffer__job_progress(export->job, export->done, export->record_count, err);
    return status;
}

coffer_status coffer__mscan_export_count(uint64_t *count, coffer__mscan_export *export, coffer_error *err)
{
    const coffer_mscan_record *records;
    size_t some;
    uint64_t total = 0;
    if (!export->by_token && !export->by_param) {
        *count = export->record_count;
        return COFFER_OK;
    }
    do {
        coffer_status status = read_selected(&records, &some, export, err);
        if (status)
            return status;
        total += some;
    } while (records);
    export->done = 0;
    *count = total;
    return COFFER_OK;
}

coffer_status coffer__mscan_export_real(double *out, coffer__mscan_export *export,
                                        const coffer_mscan_record *record, coffer__mscan_field field,
                                        coffer_error *err)
{
    coffer_mscan_metric metric = metric_of(field);
    size_t sequence = COFFER_INDEX_NONE;
    if (coffer_mscan_quantization_scope(export->scan, metric) == COFFER_MSCAN_SCALE_SEQUENCE)
        sequence = coffer_mscan_sequence_of_token(export->scan, record->token_idx);
    const coffer_mscan_quantization *scale =
        coffer_mscan_quantization_of(export->scan, metric, record->param_id, sequence);
    if (!scale)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "no real units: the metadata has no scale of %s for token %" PRIu32
                            ", param %u; --raw gives the stored integers",
                            coffer__mscan_field_names[field], record->token_idx, record->param_id);
    uint32_t raw = coffer__mscan_field_value(record, field);
    coffer__mscan_real *known = &export->values[(size_t)metric * (UINT16_MAX + 1) + raw];
    if (known->scale != scale) {
        known->scale = scale;
        known->value = coffer__nearest_decimal(scale->offset + scale->scale * raw, fabs(scale->scale) * 1e-9);
    }
    *out = known->value;
    return COFFER_OK;
}

/* ---- Outputs ---- */

coffer_status coffer__mscan_export_create(coffer__sink **out, const coffer__mscan_export *export,
                                          const char *path, coffer_error *err)
{
    coffer__sink_opts opts = { .exclusive = !export->job->overwrite };
    return coffer__sink_create(out, path, &opts, err);
}

/* The units of a table go with its metadata, so that reading both gives the same scan. */
static coffer_status put_metadata(coffer__sink *sink, const coffer__mscan_export *export, coffer_error *err)
{
    size_t len;
    const char *text = coffer_mscan_metadata(export->scan, &len);
    char units[120] = "\n";
    size_t kept = len;
    if ((export->real[0] || export->real[1]) && len > 0 && text[len - 1] == '}') {
        static const char *const names[2] = { "raw", "real" };
        kept--;
        while (kept > 0 && strchr(" \t\r\n", text[kept - 1]))
            kept--;
        snprintf(units, sizeof units, "%s\"table_units\":{\"activation\":\"%s\",\"grad_norm\":\"%s\"}}\n",
                 text[kept - 1] == '{' ? "" : ",", names[export->real[0]], names[export->real[1]]);
    }
    coffer_status status = coffer__sink_write(sink, text, kept, err);
    return status ? status : coffer__sink_write(sink, units, strlen(units), err);
}

static coffer_status write_metadata(coffer__sink **out, const coffer__mscan_export *export, coffer_error *err)
{
    const char *path = coffer__job_setting(export->job, "metadata");
    coffer__sink *sink = NULL;
    if (!path) {
        *out = NULL;
        return COFFER_OK;
    }
    coffer_status status = coffer__mscan_export_create(&sink, export, path, err);
    if (!status)
        status = put_metadata(sink, export, err);
    if (status) {
        coffer__sink_discard(sink);
        return coffer__fail_other(err, status, path);
    }
    *out = sink;
    return COFFER_OK;
}

coffer_status coffer__mscan_export_commit(coffer__sink **sinks, size_t count,
                                          const coffer__mscan_export *export, coffer_error *err)
{
    coffer__sink *metadata = NULL;
    coffer_status status = write_metadata(&metadata, export, err);
    for (size_t i = 0; i < count; i++) {
        if (status)
            coffer__sink_discard(sinks[i]);
        else
            status = coffer__sink_commit(sinks[i], err);
        sinks[i] = NULL;
    }
    if (status)
        coffer__sink_discard(metadata);
    else if (metadata)
        status = coffer__sink_commit(metadata, err);
    return status;
}
