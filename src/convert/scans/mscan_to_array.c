/* The records of a scan as NumPy arrays, one structured array or an array for each column, and the same bytes
 * without NumPy's header. */
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/scans/mscan_export.h"
#include "outside/arrays/npy.h"

#include <string.h>

/* An output file and the fields in it. */
typedef struct array {
    coffer__sink *sink;
    const coffer__mscan_field *fields;
    size_t field_count;
    coffer__npy_field layout[COFFER__MSCAN_FIELDS];
    uint64_t item_size;
} array;

/* The array borrows its fields' names. */
static void lay_out(array *out, const coffer__mscan_export *export)
{
    for (size_t i = 0; i < out->field_count; i++) {
        coffer__mscan_field field = out->fields[i];
        bool real = coffer__mscan_export_is_real(export, field);
        out->layout[i] = (coffer__npy_field){
            .name = (char *)(uintptr_t)coffer__mscan_field_names[field],
            .kind = real ? 'f' : 'u',
            .size = real                               ? 8
                    : field == COFFER__MSCAN_TOKEN_IDX ? 4
                                                       : 2,
            .elements = 1,
            .offset = out->item_size,
        };
        out->item_size += out->layout[i].size;
    }
}

static coffer_status write_header(array *out, uint64_t count, coffer_error *err)
{
    coffer__buffer header = COFFER__BUFFER_INIT;
    coffer__npy npy = { .structured = out->field_count > 1,
                        .fields = out->layout,
                        .field_count = out->field_count,
                        .item_size = out->item_size,
                        .shape = { count },
                        .dimensions = 1,
                        .count = count };
    coffer__npy_put_header(&header, &npy);
    coffer_status status = header.failed ? coffer__fail_no_memory(err, header.len)
                                         : coffer__sink_write(out->sink, header.data, header.len, err);
    coffer__buffer_free(&header);
    return status;
}

static coffer_status begin_array(array *out, coffer__mscan_export *export, const char *path,
                                 coffer_error *err)
{
    uint64_t count = 0;
    bool has_header = strcmp(export->job->to, "npy") == 0;
    lay_out(out, export);
    coffer_status status = has_header ? coffer__mscan_export_count(&count, export, err) : COFFER_OK;
    if (!status)
        status = coffer__mscan_export_create(&out->sink, export, path, err);
    if (!status && has_header)
        status = write_header(out, count, err);
    return status;
}

static coffer_status put_real_column(uint8_t *to, size_t stride, coffer__mscan_export *export,
                                     coffer__mscan_field field, const coffer_mscan_record *records,
                                     size_t count, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < count; i++) {
        double value;
        uint64_t bits;
        status = coffer__mscan_export_real(&value, export, &records[i], field, err);
        if (status)
            break;
        memcpy(&bits, &value, sizeof bits);
        coffer__store_u64(to + i * stride, bits);
    }
    return status;
}

static void put_column(uint8_t *to, size_t stride, coffer__mscan_field field,
                       const coffer_mscan_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t value = coffer__mscan_field_value(&records[i], field);
        if (field == COFFER__MSCAN_TOKEN_IDX)
            coffer__store_u32(to + i * stride, value);
        else
            coffer__store_u16(to + i * stride, (uint16_t)value);
    }
}

static coffer_status write_items(array *out, coffer__mscan_export *export, const coffer_mscan_record *records,
                                 size_t count, uint8_t *items, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < out->field_count; i++) {
        uint8_t *to = items + out->layout[i].offset;
        if (coffer__mscan_export_is_real(export, out->fields[i]))
            status = put_real_column(to, out->item_size, export, out->fields[i], records, count, err);
        else
            put_column(to, out->item_size, out->fields[i], records, count);
    }
    if (!status)
        status = coffer__sink_write(out->sink, items, count * out->item_size, err);
    return status;
}

static coffer_status write_records(array *arrays, size_t array_count, coffer__mscan_export *export,
                                   coffer_error *err)
{
    /* Enough for the widest item: two real columns and the three others. */
    const size_t items_size = (size_t)COFFER__MSCAN_EXPORT_BATCH * (2 * 8 + 4 + 2 * 2);
    uint8_t *items = coffer__malloc(items_size);
    if (!items)
        return coffer__fail_no_memory(err, items_size);
    for (;;) {
        const coffer_mscan_record *records;
        size_t count;
        coffer_status status = coffer__mscan_export_next(&records, &count, export, err);
        for (size_t i = 0; !status && records && i < array_count; i++)
            status = write_items(&arrays[i], export, records, count, items, err);
        if (status || !records) {
            coffer__free(items);
            return status;
        }
    }
}

/* "dir/scan.npy" and activation become "dir/scan.activation.npy". */
static coffer_status column_path(char **out, const coffer__convert_job *job, coffer__mscan_field field,
                                 coffer_error *err)
{
    coffer__buffer name = COFFER__BUFFER_INIT;
    size_t len = strlen(job->out_path), to_len = strlen(job->to);
    if (len > to_len + 1 && job->out_path[len - to_len - 1] == '.' &&
        strcmp(job->out_path + len - to_len, job->to) == 0)
        len -= to_len + 1;
    coffer__buffer_append(&name, job->out_path, len);
    coffer__buffer_printf(&name, ".%s.%s", coffer__mscan_field_names[field], job->to);
    coffer__buffer_append(&name, "", 1);
    if (name.failed) {
        coffer__buffer_free(&name);
        return coffer__fail_no_memory(err, len);
    }
    *out = (char *)coffer__buffer_release(&name, &len);
    return COFFER_OK;
}

static coffer_status begin_columns(array *arrays, coffer__mscan_export *export, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (strcmp(export->job->out_path, "-") == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a file for each column cannot go to standard output");
    for (size_t i = 0; !status && i < export->field_count; i++) {
        char *path = NULL;
        arrays[i].fields = &export->fields[i];
        arrays[i].field_count = 1;
        status = column_path(&path, export->job, export->fields[i], err);
        if (status)
            break;
        status = begin_array(&arrays[i], export, path, err);
        coffer__free(path);
    }
    return status;
}

coffer_status coffer__mscan_to_array(const coffer__convert_job *job, coffer_error *err)
{
    coffer__mscan_export export;
    array arrays[COFFER__MSCAN_FIELDS] = { 0 };
    coffer__sink *sinks[COFFER__MSCAN_FIELDS] = { NULL };
    coffer_status status = coffer__mscan_export_open(&export, job, err);
    if (status)
        return status;
    bool split = coffer__job_has(job, "columns");
    size_t array_count = split ? export.field_count : 1;
    if (split) {
        status = begin_columns(arrays, &export, err);
    } else {
        arrays[0].fields = export.fields;
        arrays[0].field_count = export.field_count;
        status = begin_array(&arrays[0], &export, job->out_path, err);
    }
    if (!status)
        status = write_records(arrays, array_count, &export, err);
    for (size_t i = 0; i < array_count; i++) {
        if (status)
            coffer__sink_discard(arrays[i].sink);
        else
            sinks[i] = arrays[i].sink;
    }
    if (!status)
        status = coffer__mscan_export_commit(sinks, array_count, &export, err);
    coffer__mscan_export_close(&export);
    return status;
}
