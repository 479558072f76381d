/* A training set as JSON lines. */
#include "base/fail.h"
#include "base/report.h"
#include "base/utf8.h"
#include "convert/datasets/mldf_export.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define PROGRESS_STEP 256

/* How floats that are not finite are written. */
enum { FLOATS_EXACT, FLOATS_LITERAL, FLOATS_NULL };

typedef struct jsonl_export {
    coffer__mldf_export common;
    size_t floats;
    uint64_t nulls; /* floats that became null */
} jsonl_export;

/* Whether a line can contain the text of a JSON value unchanged and unmistakably: a list or an object in one
 * line. Bare numbers and texts would change the type of the field on the way back. */
static bool fits_line(const coffer_bytes *bytes, const coffer__json_value *root)
{
    if ((root->kind != COFFER__JSON_OBJECT && root->kind != COFFER__JSON_ARRAY) ||
        (root->kind == COFFER__JSON_OBJECT && coffer__mldf_json_is(root)))
        return false;
    return !memchr(bytes->data, '\n', bytes->size) && !memchr(bytes->data, '\r', bytes->size) &&
           strchr("{[", bytes->data[0]) && strchr("}]", bytes->data[bytes->size - 1]);
}

static coffer_status put_json(coffer__json_writer *writer, const coffer__mldf_export *export,
                              const coffer_mldf_field *field, coffer_error *err)
{
    const coffer_bytes *bytes = &export->bytes;
    coffer__json *json = NULL;
    const char *text = (const char *)bytes->data;
    bool is_json = coffer__json_parse(&json, text, bytes->size, export->entry.offset, &export->job->limits,
                                      NULL) == COFFER_OK;
    bool fits = is_json && fits_line(bytes, coffer__json_root(json));
    coffer__json_free(json);
    if (fits)
        coffer__json_write_number(writer, text, bytes->size);
    else if (coffer__utf8_valid(text, bytes->size))
        coffer__mldf_json_put_text(writer, COFFER_MLDF_JSON, text, bytes->size);
    else
        return coffer__mldf_json_put(writer, field, &export->entry, NULL, bytes->data, bytes->size, err);
    return COFFER_OK;
}

static coffer_status put_float(coffer__json_writer *writer, jsonl_export *export, coffer_error *err)
{
    double value = export->common.entry.f64;
    if (isfinite(value) || export->floats == FLOATS_NULL) {
        export->nulls += isfinite(value) ? 0 : 1;
        coffer__json_write_f64(writer, value);
        return COFFER_OK;
    }
    if (export->floats == FLOATS_EXACT)
        return coffer__mldf_json_put_float(writer, value, err);
    const char *text = isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    coffer__json_write_number(writer, text, strlen(text));
    return COFFER_OK;
}

static coffer_status put_value(coffer__json_writer *writer, jsonl_export *export,
                               const coffer_mldf_field *field, coffer_error *err)
{
    const coffer__mldf_export *common = &export->common;
    const coffer_bytes *bytes = &common->bytes;
    switch (field->type) {
    case COFFER_MLDF_INT:
        coffer__json_write_i64(writer, common->entry.i64);
        return COFFER_OK;
    case COFFER_MLDF_FLOAT:
        return put_float(writer, export, err);
    case COFFER_MLDF_TEXT:
        if (common->entry.encoding || !coffer__utf8_valid(bytes->data, bytes->size))
            break;
        coffer__json_string_len(writer, (const char *)bytes->data, bytes->size);
        return COFFER_OK;
    case COFFER_MLDF_JSON:
        return put_json(writer, common, field, err);
    default:
        break;
    }
    return coffer__mldf_json_put(writer, field, &common->entry,
                                 coffer__dataset_is_array(field->type) ? common->dims : NULL, bytes->data,
                                 bytes->size, err);
}

/* An absent value is null, so that every line has all fields in their order. */
static coffer_status put_sample(coffer__buffer *line, jsonl_export *export, uint64_t sample,
                                coffer_error *err)
{
    coffer__mldf_export *common = &export->common;
    coffer__json_writer writer;
    coffer_status status = COFFER_OK;
    line->len = 0;
    coffer__json_writer_init(&writer, line, 0);
    coffer__json_open_object(&writer);
    for (size_t i = 0; !status && i < common->field_count; i++) {
        const coffer_mldf_field *field = coffer__mldf_export_field(common, i);
        status = coffer__mldf_export_read(common, sample, i, err);
        coffer__json_key(&writer, field->name);
        if (!status && !common->entry.present)
            coffer__json_write_null(&writer);
        else if (!status)
            status = put_value(&writer, export, field, err);
    }
    coffer__json_close_object(&writer);
    coffer__buffer_append(line, "\n", 1);
    if (!status && line->failed)
        status = coffer__fail_no_memory(err, line->len);
    return status ? status : coffer__sink_write(common->sink, line->data, line->len, err);
}

const coffer_convert_option coffer__mldf_export_jsonl_options[] = {
    COFFER__MLDF_EXPORT_OPTIONS,
    { "non-finite", "HOW",
      "how NaN and infinities are written: exact (an object that coffer reads back), literal (NaN)",
      "exact|literal|null", "exact" },
    { NULL, NULL, NULL },
};

coffer_status coffer__mldf_to_jsonl(const coffer__convert_job *job, coffer_error *err)
{
    jsonl_export export = { .floats = FLOATS_EXACT };
    coffer__mldf_export *common = &export.common;
    coffer__buffer line = COFFER__BUFFER_INIT;
    const char *floats = coffer__job_setting(job, "non-finite");
    if (floats)
        export.floats = strcmp(floats, "exact") == 0     ? FLOATS_EXACT
                        : strcmp(floats, "literal") == 0 ? FLOATS_LITERAL
                                                         : FLOATS_NULL;
    coffer_status status = coffer__mldf_export_open(common, job, err);
    if (!status)
        status = coffer__mldf_export_create(common, err);
    for (uint64_t i = common->begin; !status && i < common->end; i++) {
        status = put_sample(&line, &export, coffer__mldf_export_sample(common, i), err);
        if (!status && (i - common->begin) % PROGRESS_STEP == 0)
            status = coffer__job_progress(job, i - common->begin, common->end - common->begin, err);
    }
    if (!status)
        status = coffer__mldf_export_commit(common, err);
    if (!status && export.nulls && job->notes)
        coffer__report_add(job->notes, COFFER_E_UNSUPPORTED, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "%" PRIu64 " floats that are NaN or infinite became null", export.nulls);
    coffer__mldf_export_close(common);
    coffer__buffer_free(&line);
    return status;
}
