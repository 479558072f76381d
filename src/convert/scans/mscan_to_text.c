/* Writes the records of a scan as CSV or JSON lines, which differ in the text around the values. */
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "convert/scans/mscan_export.h"
#include "outside/text/csv.h"
#include "outside/text/number.h"

#include <string.h>

#define OUTPUT_SIZE ((size_t)1 << 18)
/* Maximum size of a row without names: a key and 24 digits for each value. */
#define ROW_SIZE (COFFER__MSCAN_FIELDS * 48)

typedef struct dialect {
    bool json;
    const char *row_end;
    const char *nothing; /* for a name or a sequence that is not known */
} dialect;

static const dialect csv = { false, "\n", "" };
static const dialect jsonl = { true, "}\n", "null" };

typedef struct slice {
    const char *text;
    size_t len;
} slice;

typedef struct name_range {
    size_t start, len; /* in text_export.names */
    bool known;
} name_range;

typedef struct text_export {
    coffer__mscan_export common;
    const dialect *dialect;
    slice before[COFFER__MSCAN_FIELDS]; /* text before each value: a comma or a key */
    coffer__buffer keys;
    coffer__buffer names; /* of all parameters, quoted for the output, one after the other */
    name_range *name_of;  /* by param_id */
    size_t longest_name;
    coffer__buffer number; /* for one real value */
    coffer__sink *sink;
    char *output;
    size_t output_size, used;
} text_export;

static coffer_status prepare_keys(text_export *export, coffer_error *err)
{
    size_t ends[COFFER__MSCAN_FIELDS];
    size_t count = export->common.field_count;
    for (size_t i = 0; i < count; i++) {
        if (export->dialect->json)
            coffer__buffer_printf(&export->keys, "%s\"%s\":", i ? "," : "{",
                                  coffer__mscan_field_names[export->common.fields[i]]);
        else if (i > 0)
            coffer__buffer_append(&export->keys, ",", 1);
        ends[i] = export->keys.len;
    }
    const char *text = coffer__buffer_text(&export->keys);
    if (export->keys.failed)
        return coffer__fail_no_memory(err, export->keys.len);
    for (size_t i = 0; i < count; i++) {
        size_t start = i ? ends[i - 1] : 0;
        export->before[i] = (slice){ text + start, ends[i] - start };
    }
    return COFFER_OK;
}

static coffer_status prepare_names(text_export *export, coffer_error *err)
{
    const coffer_mscan *scan = export->common.scan;
    coffer__json_writer writer;
    export->name_of = coffer__calloc(COFFER__MSCAN_IDS, sizeof *export->name_of);
    if (!export->name_of)
        return coffer__fail_no_memory(err, COFFER__MSCAN_IDS * sizeof *export->name_of);
    for (size_t i = 0; i < coffer_mscan_param_count(scan); i++) {
        const coffer_mscan_param *param = coffer_mscan_param_at(scan, i);
        if (param->id >= COFFER__MSCAN_IDS)
            break;
        size_t start = export->names.len;
        if (export->dialect->json) {
            coffer__json_writer_init(&writer, &export->names, 0);
            coffer__json_string_len(&writer, param->name, param->name_len);
        } else {
            coffer__csv_put_text(&export->names, param->name, param->name_len);
        }
        size_t len = export->names.len - start;
        export->name_of[param->id] = (name_range){ start, len, true };
        if (len > export->longest_name)
            export->longest_name = len;
    }
    return export->names.failed ? coffer__fail_no_memory(err, export->names.len) : COFFER_OK;
}

static char *put(char *to, const char *text, size_t len)
{
    memcpy(to, text, len);
    return to + len;
}

static char *put_name(char *to, const text_export *export, const coffer_mscan_record *record)
{
    const name_range *name = &export->name_of[record->param_id];
    if (!name->known)
        return put(to, export->dialect->nothing, strlen(export->dialect->nothing));
    return put(to, (const char *)export->names.data + name->start, name->len);
}

static char *put_sequence(char *to, const text_export *export, const coffer_mscan_record *record)
{
    size_t sequence = coffer_mscan_sequence_of_token(export->common.scan, record->token_idx);
    if (sequence == COFFER_INDEX_NONE)
        return put(to, export->dialect->nothing, strlen(export->dialect->nothing));
    return coffer__put_u32(to, (uint32_t)sequence);
}

static coffer_status put_real(char **to, text_export *export, const coffer_mscan_record *record,
                              coffer__mscan_field field, coffer_error *err)
{
    double value;
    coffer__json_writer writer;
    coffer_status status = coffer__mscan_export_real(&value, &export->common, record, field, err);
    if (status)
        return status;
    export->number.len = 0;
    coffer__json_writer_init(&writer, &export->number, 0);
    coffer__json_write_f64(&writer, value);
    if (export->number.failed)
        return coffer__fail_no_memory(err, sizeof value);
    *to = put(*to, (const char *)export->number.data, export->number.len);
    return COFFER_OK;
}

static coffer_status put_row(text_export *export, const coffer_mscan_record *record, coffer_error *err)
{
    char *to = export->output + export->used;
    for (size_t i = 0; i < export->common.field_count; i++) {
        coffer__mscan_field field = export->common.fields[i];
        to = put(to, export->before[i].text, export->before[i].len);
        if (field == COFFER__MSCAN_PARAM_NAME) {
            to = put_name(to, export, record);
        } else if (field == COFFER__MSCAN_SEQUENCE) {
            to = put_sequence(to, export, record);
        } else if (coffer__mscan_export_is_real(&export->common, field)) {
            coffer_status status = put_real(&to, export, record, field, err);
            if (status)
                return status;
        } else {
            to = coffer__put_u32(to, coffer__mscan_field_value(record, field));
        }
    }
    to = put(to, export->dialect->row_end, strlen(export->dialect->row_end));
    export->used = (size_t)(to - export->output);
    return COFFER_OK;
}

static coffer_status flush(text_export *export, coffer_error *err)
{
    coffer_status status = coffer__sink_write(export->sink, export->output, export->used, err);
    export->used = 0;
    return status;
}

static coffer_status put_title(text_export *export, coffer_error *err)
{
    coffer__buffer title = COFFER__BUFFER_INIT;
    for (size_t i = 0; i < export->common.field_count; i++)
        coffer__buffer_printf(&title, "%s%s", i ? "," : "",
                              coffer__mscan_field_names[export->common.fields[i]]);
    coffer__buffer_append(&title, "\n", 1);
    coffer_status status = title.failed ? coffer__fail_no_memory(err, title.len)
                                        : coffer__sink_write(export->sink, title.data, title.len, err);
    coffer__buffer_free(&title);
    return status;
}

static coffer_status put_rows(text_export *export, coffer_error *err)
{
    size_t room = ROW_SIZE + export->longest_name;
    coffer_status status = export->dialect->json ? COFFER_OK : put_title(export, err);
    const coffer_mscan_record *records = NULL;
    while (!status) {
        size_t count;
        status = coffer__mscan_export_next(&records, &count, &export->common, err);
        if (!status && !records)
            return flush(export, err);
        for (size_t i = 0; !status && i < count; i++) {
            if (export->output_size - export->used < room)
                status = flush(export, err);
            if (!status)
                status = put_row(export, &records[i], err);
        }
    }
    return status;
}

static coffer_status prepare(text_export *export, coffer_error *err)
{
    coffer_status status = prepare_keys(export, err);
    if (!status)
        status = prepare_names(export, err);
    if (status)
        return status;
    export->output_size = OUTPUT_SIZE + export->longest_name;
    export->output = coffer__malloc(export->output_size);
    if (!export->output)
        return coffer__fail_no_memory(err, export->output_size);
    return coffer__mscan_export_create(&export->sink, &export->common, export->common.job->out_path, err);
}

static coffer_status export_text(const coffer__convert_job *job, const dialect *how, coffer_error *err)
{
    text_export export = { .dialect = how,
                           .keys = COFFER__BUFFER_INIT,
                           .names = COFFER__BUFFER_INIT,
                           .number = COFFER__BUFFER_INIT };
    coffer_status status = coffer__mscan_export_open(&export.common, job, err);
    if (status)
        return status;
    status = prepare(&export, err);
    if (!status)
        status = put_rows(&export, err);
    if (!status)
        status = coffer__mscan_export_commit(&export.sink, 1, &export.common, err);
    coffer__sink_discard(export.sink);
    coffer__buffer_free(&export.keys);
    coffer__buffer_free(&export.names);
    coffer__buffer_free(&export.number);
    coffer__free(export.name_of);
    coffer__free(export.output);
    coffer__mscan_export_close(&export.common);
    return status;
}

coffer_status coffer__mscan_to_csv(const coffer__convert_job *job, coffer_error *err)
{
    return export_text(job, &csv, err);
}

coffer_status coffer__mscan_to_jsonl(const coffer__convert_job *job, coffer_error *err)
{
    return export_text(job, &jsonl, err);
}
