/* The numbers and texts of a training set as a table with a header row. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/real.h"
#include "base/report.h"
#include "convert/datasets/mldf_export.h"
#include "outside/text/csv.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <string.h>

#define PROGRESS_STEP 1024

const coffer_convert_option coffer__mldf_export_csv_options[] = {
    COFFER__MLDF_EXPORT_OPTIONS,
    { NULL, NULL, NULL },
};

typedef struct csv_export {
    coffer__mldf_export common;
    coffer__buffer line;
    uint64_t empty; /* texts without a character, which a table cannot tell from absent ones */
} csv_export;

static bool fits(const coffer_mldf_field *field)
{
    return field->type == COFFER_MLDF_INT || field->type == COFFER_MLDF_FLOAT ||
           field->type == COFFER_MLDF_TEXT || field->type == COFFER_MLDF_JSON;
}

static bool is_chosen_by_name(const coffer__convert_job *job)
{
    for (size_t i = 0; i < job->setting_count; i++)
        if (strcmp(job->settings[i].name, "field") == 0)
            return true;
    return false;
}

/* Leaves the fields that a table can hold; one that was asked for by name is an error. */
static coffer_status keep_fitting(csv_export *export, coffer_error *err)
{
    coffer__mldf_export *common = &export->common;
    size_t kept = 0;
    for (size_t i = 0; i < common->field_count; i++) {
        const coffer_mldf_field *field = coffer__mldf_export_field(common, i);
        if (fits(field)) {
            common->fields[kept++] = common->fields[i];
            continue;
        }
        const char *type = coffer_mldf_type_name(field->type);
        if (is_chosen_by_name(common->job))
            return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                "field \"%s\" is of type %s, which a table cannot hold", field->name,
                                type ? type : "unknown");
        if (common->job->notes)
            coffer__report_add(common->job->notes, COFFER_E_UNSUPPORTED, COFFER_WARNING, COFFER_OFFSET_NONE,
                               "field \"%s\" of type %s is left out: a table holds numbers and texts",
                               field->name, type ? type : "unknown");
    }
    common->field_count = kept;
    if (kept == 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "no field is a number or a text, which is what a table can hold");
    return COFFER_OK;
}

static coffer_status put_value(csv_export *export, size_t index, uint64_t sample, coffer_error *err)
{
    coffer__mldf_export *common = &export->common;
    const coffer_mldf_field *field = coffer__mldf_export_field(common, index);
    char number[COFFER__REAL_TEXT > 24 ? COFFER__REAL_TEXT : 24];
    coffer_status status = coffer__mldf_export_read(common, sample, index, err);
    if (status || !common->entry.present)
        return status;
    if (field->type == COFFER_MLDF_INT || field->type == COFFER_MLDF_FLOAT) {
        char *end = field->type == COFFER_MLDF_INT ? coffer__put_i64(number, common->entry.i64)
                                                   : coffer__put_f64(number, common->entry.f64);
        coffer__buffer_append(&export->line, number, (size_t)(end - number));
        return COFFER_OK;
    }
    if (common->entry.encoding)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, common->entry.offset,
                            "sample %" PRIu64 ", field \"%s\": token ids, not a text", sample, field->name);
    export->empty += common->bytes.size == 0;
    coffer__csv_put_text(&export->line, (const char *)common->bytes.data, common->bytes.size);
    return COFFER_OK;
}

static coffer_status put_line(csv_export *export, uint64_t sample, bool header, coffer_error *err)
{
    coffer__mldf_export *common = &export->common;
    coffer_status status = COFFER_OK;
    export->line.len = 0;
    for (size_t i = 0; !status && i < common->field_count; i++) {
        const coffer_mldf_field *field = coffer__mldf_export_field(common, i);
        if (i)
            coffer__buffer_append(&export->line, ",", 1);
        if (header)
            coffer__csv_put_text(&export->line, field->name, strlen(field->name));
        else
            status = put_value(export, i, sample, err);
    }
    coffer__buffer_append(&export->line, "\n", 1);
    if (!status && export->line.failed)
        status = coffer__fail_no_memory(err, export->line.len);
    return status ? status : coffer__sink_write(common->sink, export->line.data, export->line.len, err);
}

coffer_status coffer__mldf_to_csv(const coffer__convert_job *job, coffer_error *err)
{
    csv_export export = { .line = COFFER__BUFFER_INIT };
    coffer__mldf_export *common = &export.common;
    coffer_status status = coffer__mldf_export_open(common, job, err);
    if (!status)
        status = keep_fitting(&export, err);
    if (!status)
        status = coffer__mldf_export_create(common, err);
    if (!status)
        status = put_line(&export, 0, true, err);
    for (uint64_t i = common->begin; !status && i < common->end; i++) {
        status = put_line(&export, coffer__mldf_export_sample(common, i), false, err);
        if (!status && (i - common->begin) % PROGRESS_STEP == 0)
            status = coffer__job_progress(job, i - common->begin, common->end - common->begin, err);
    }
    if (!status)
        status = coffer__mldf_export_commit(common, err);
    if (!status && export.empty && job->notes)
        coffer__report_add(job->notes, COFFER_E_UNSUPPORTED, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "%" PRIu64 " empty texts look like absent ones in a table", export.empty);
    coffer__mldf_export_close(common);
    coffer__buffer_free(&export.line);
    return status;
}
