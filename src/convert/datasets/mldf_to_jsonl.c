/* A training set as JSON lines. */
#include "base/fail.h"
#include "convert/datasets/mldf_export.h"
#include "convert/datasets/mldf_json.h"

#include <string.h>

#define PROGRESS_STEP 256

/* JSON inside a line is one line. */
static coffer_status put_json(coffer__json_writer *writer, const coffer__mldf_export *export,
                              coffer_error *err)
{
    coffer__json *json = NULL;
    coffer_status status = coffer__json_parse(&json, (const char *)export->bytes.data, export->bytes.size,
                                              export->entry.offset, &export->job->limits, err);
    if (!status)
        coffer__json_write_value(writer, coffer__json_root(json));
    coffer__json_free(json);
    return status;
}

static coffer_status put_value(coffer__json_writer *writer, const coffer__mldf_export *export,
                               const coffer_mldf_field *field, coffer_error *err)
{
    const coffer_bytes *bytes = &export->bytes;
    switch (field->type) {
    case COFFER_MLDF_INT:
        coffer__json_write_i64(writer, export->entry.i64);
        return COFFER_OK;
    case COFFER_MLDF_FLOAT:
        coffer__json_write_f64(writer, export->entry.f64);
        return COFFER_OK;
    case COFFER_MLDF_TEXT:
        if (export->entry.encoding)
            break;
        coffer__json_string_len(writer, (const char *)bytes->data, bytes->size);
        return COFFER_OK;
    case COFFER_MLDF_JSON:
        return put_json(writer, export, err);
    default:
        break;
    }
    return coffer__mldf_json_put(writer, field, &export->entry,
                                 coffer__dataset_is_array(field->type) ? export->dims : NULL, bytes->data,
                                 bytes->size, err);
}

static coffer_status put_sample(coffer__buffer *line, coffer__mldf_export *export, uint64_t sample,
                                coffer_error *err)
{
    coffer__json_writer writer;
    coffer_status status = COFFER_OK;
    line->len = 0;
    coffer__json_writer_init(&writer, line, 0);
    coffer__json_open_object(&writer);
    for (size_t i = 0; !status && i < export->field_count; i++) {
        const coffer_mldf_field *field = coffer__mldf_export_field(export, i);
        status = coffer__mldf_export_read(export, sample, i, err);
        if (status || !export->entry.present)
            continue;
        coffer__json_key(&writer, field->name);
        status = put_value(&writer, export, field, err);
    }
    coffer__json_close_object(&writer);
    coffer__buffer_append(line, "\n", 1);
    if (!status && line->failed)
        status = coffer__fail_no_memory(err, line->len);
    return status ? status : coffer__sink_write(export->sink, line->data, line->len, err);
}

coffer_status coffer__mldf_to_jsonl(const coffer__convert_job *job, coffer_error *err)
{
    coffer__mldf_export export;
    coffer__buffer line = COFFER__BUFFER_INIT;
    coffer_status status = coffer__mldf_export_open(&export, job, err);
    if (!status)
        status = coffer__mldf_export_create(&export, err);
    for (uint64_t i = export.begin; !status && i < export.end; i++) {
        status = put_sample(&line, &export, i, err);
        if (!status && (i - export.begin) % PROGRESS_STEP == 0)
            status = coffer__job_progress(job, i - export.begin, export.end - export.begin, err);
    }
    if (!status)
        status = coffer__mldf_export_commit(&export, err);
    coffer__mldf_export_close(&export);
    coffer__buffer_free(&line);
    return status;
}
