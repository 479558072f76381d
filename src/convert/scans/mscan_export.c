#include "convert/scans/mscan_export.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <string.h>

/* One text a line, for both tables below. */
#define EXPORT_OPTIONS                                                                              \
    { "param", "GLOB", "only parameters whose name matches" },                                      \
        { "tokens", "A..B", "only these tokens, B not included" },                                  \
        { "sequence", "ID", "only this sequence" },                                                 \
        { "only", "LIST", "only these columns, with commas between them, in this order" },          \
        { "real", NULL, "activation and grad_norm in real units, where the scan knows its scale" }, \
    {                                                                                               \
        "metadata", "FILE", "the metadata as JSON beside the records (or read from there)"          \
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
    /* An array of numbers has no room for texts. */
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
                                "the column %s is asked for twice", coffer__mscan_field_names[field]);
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

static coffer_status check_scales(const coffer__mscan_export *export, coffer_error *err)
{
    for (size_t i = 0; i < export->field_count; i++) {
        coffer__mscan_field field = export->fields[i];
        if (coffer__mscan_export_is_real(export, field) &&
            coffer_mscan_quantization_scope(export->scan, metric_of(field)) == COFFER_MSCAN_SCALE_UNKNOWN)
            return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                "no real units: the metadata has no \"quantization\" of %s",
                                coffer__mscan_field_names[field]);
    }
    return COFFER_OK;
}

/* *out is COFFER_INDEX_NONE, for all, when none is asked for. */
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

static coffer_status select_records(coffer__mscan_export *export, coffer_error *err)
{
    uint64_t begin = 0, end = UINT64_MAX;
    size_t sequence;
    coffer_status status = coffer__job_range(&begin, &end, export->job, "tokens", err);
    if (!status)
        status = select_sequence(&sequence, export, err);
    if (!status)
        status = coffer__mscan_select(&export->selection, export->scan,
                                      coffer__job_setting(export->job, "param"), begin, end, sequence, err);
    return status;
}

coffer_status coffer__mscan_export_open(coffer__mscan_export *out, const coffer__convert_job *job,
                                        coffer_error *err)
{
    coffer_mscan_open_opts opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    memset(out, 0, sizeof *out);
    out->job = job;
    out->real = coffer__job_has(job, "real");
    opts.limits = &job->limits;
    coffer_status status = choose_fields(out, err);
    if (!status)
        status = coffer_mscan_open(&out->scan, job->in, &opts, err);
    if (!status)
        status = check_scales(out, err);
    if (!status)
        status = select_records(out, err);
    if (!status) {
        const size_t batch = (size_t)COFFER__MSCAN_EXPORT_BATCH * COFFER__MSCAN_RECORD_SIZE;
        out->fetched = coffer__malloc(batch);
        out->packed = coffer__malloc(batch);
        if (!out->fetched || !out->packed)
            status = coffer__fail_no_memory(err, 2 * batch);
    }
    if (status)
        coffer__mscan_export_close(out);
    return status;
}

void coffer__mscan_export_close(coffer__mscan_export *export)
{
    coffer_mscan_close(export->scan);
    coffer__free(export->fetched);
    coffer__free(export->packed);
    export->scan = NULL;
    export->fetched = export->packed = NULL;
}

/* ---- Records ---- */

static coffer_status fetch_selected(const uint8_t **records, size_t *count, coffer__mscan_export *export,
                                    coffer_error *err)
{
    const coffer__mscan_selection *selection = &export->selection;
    uint64_t left = selection->count - export->done;
    size_t some = left < COFFER__MSCAN_EXPORT_BATCH ? (size_t)left : COFFER__MSCAN_EXPORT_BATCH;
    *records = NULL;
    *count = 0;
    if (some == 0)
        return COFFER_OK;
    coffer_status status = coffer__mscan_fetch(records, export->scan->source, export->scan->record_area,
                                               selection->first + export->done, some, export->fetched, err);
    if (status)
        return status;
    *count = some;
    if (coffer__mscan_must_pack(selection)) {
        *count = coffer__mscan_pack(export->packed, selection, *records, some);
        *records = export->packed;
    }
    export->done += some;
    return coffer_source_intact(export->scan->source, err);
}

coffer_status coffer__mscan_export_next(const uint8_t **records, size_t *count, coffer__mscan_export *export,
                                        coffer_error *err)
{
    coffer_status status = fetch_selected(records, count, export, err);
    if (!status && *records)
        status = coffer__job_progress(export->job, export->done, export->selection.count, err);
    return status;
}

coffer_status coffer__mscan_export_count(uint64_t *count, coffer__mscan_export *export, coffer_error *err)
{
    const uint8_t *records;
    size_t some;
    uint64_t total = 0;
    if (!coffer__mscan_must_pack(&export->selection)) {
        *count = export->selection.count;
        return COFFER_OK;
    }
    do {
        coffer_status status = fetch_selected(&records, &some, export, err);
        if (status)
            return status;
        total += some;
    } while (records);
    export->done = 0;
    *count = total;
    return COFFER_OK;
}

coffer_status coffer__mscan_export_real(double *out, const coffer__mscan_export *export,
                                        const uint8_t *record, coffer__mscan_field field, coffer_error *err)
{
    coffer_mscan_metric metric = metric_of(field);
    uint16_t param = coffer__mscan_load_param(record);
    size_t sequence = COFFER_INDEX_NONE;
    if (coffer_mscan_quantization_scope(export->scan, metric) == COFFER_MSCAN_SCALE_SEQUENCE)
        sequence = coffer_mscan_sequence_of_token(export->scan, coffer__mscan_load_token(record));
    const coffer_mscan_quantization *scale =
        coffer_mscan_quantization_of(export->scan, metric, param, sequence);
    if (!scale)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "no real units: the metadata has no scale of %s for token %" PRIu32 ", param %u",
                            coffer__mscan_field_names[field], coffer__mscan_load_token(record), param);
    *out = scale->offset + scale->scale * coffer__mscan_field_value(record, field);
    return COFFER_OK;
}

/* ---- Outputs ---- */

coffer_status coffer__mscan_export_create(coffer__sink **out, const coffer__mscan_export *export,
                                          const char *path, coffer_error *err)
{
    coffer__sink_opts opts = { .exclusive = !export->job->overwrite };
    return coffer__sink_create(out, path, &opts, err);
}

static coffer_status write_metadata(coffer__sink **out, const coffer__mscan_export *export, coffer_error *err)
{
    const char *path = coffer__job_setting(export->job, "metadata");
    size_t len;
    const char *text = coffer_mscan_metadata(export->scan, &len);
    coffer__sink *sink = NULL;
    if (!path) {
        *out = NULL;
        return COFFER_OK;
    }
    coffer_status status = coffer__mscan_export_create(&sink, export, path, err);
    if (!status)
        status = coffer__sink_write(sink, text, len, err);
    if (!status)
        status = coffer__sink_write(sink, "\n", 1, err);
    if (status) {
        coffer__sink_discard(sink);
        return status;
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
