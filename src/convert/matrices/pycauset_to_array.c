/* The values of a matrix as an array: NumPy's, the same bytes without a header, or a dataset of HDF5. */
#include "base/fail.h"
#include "base/report.h"
#include "convert/matrices/pycauset_export.h"
#include "outside/arrays/hdf5.h"
#include "outside/arrays/npy.h"

#include <string.h>

/* The values of a matrix as a NumPy array, and the same bytes without NumPy's header. */

static coffer_status write_header(coffer__sink *sink, const coffer__pycauset_export *export,
                                  coffer_error *err)
{
    coffer__buffer header = COFFER__BUFFER_INIT;
    const coffer_pycauset_tile *tile = &export->selection;
    coffer__npy_field field;
    if (!coffer__npy_field_of(&field, export->dtype))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "NumPy has no type for %s",
                            coffer_dtype_name(export->dtype));
    coffer__npy npy = { .fields = &field, .field_count = 1, .item_size = field.size };
    npy.count = tile->rows * tile->cols;
    npy.dimensions = export->is_vector ? 1 : 2;
    npy.shape[0] = export->is_vector ? npy.count : tile->rows;
    npy.shape[1] = tile->cols;
    coffer__npy_put_header(&header, &npy);
    coffer_status status = header.failed ? coffer__fail_no_memory(err, header.len)
                                         : coffer__sink_write(sink, header.data, header.len, err);
    coffer__buffer_free(&header);
    return status;
}

static coffer_status write_values(coffer__sink *sink, coffer__pycauset_export *export, coffer_error *err)
{
    size_t size = coffer_dtype_size(export->dtype);
    for (;;) {
        const uint8_t *values;
        coffer_pycauset_tile tile;
        coffer_status status = coffer__pycauset_export_next(&values, &tile, export, err);
        if (!status && values)
            status = coffer__sink_write(sink, values, (size_t)(tile.rows * tile.cols) * size, err);
        if (status || !values)
            return status;
    }
}

static coffer_status to_array(const coffer__convert_job *job, const coffer__pycauset_target *target,
                              bool has_header, coffer_error *err)
{
    coffer__pycauset_export export;
    coffer__sink *sink = NULL;
    coffer_status status = coffer__pycauset_export_open(&export, job, target, err);
    if (status)
        return status;
    status = coffer__pycauset_export_create(&sink, &export, err);
    if (!status && has_header)
        status = write_header(sink, &export, err);
    if (!status)
        status = write_values(sink, &export, err);
    if (status)
        coffer__sink_discard(sink);
    else
        status = coffer__pycauset_export_commit(sink, &export, err);
    coffer__pycauset_export_close(&export);
    return status;
}

coffer_status coffer__pycauset_to_npy(const coffer__convert_job *job, coffer_error *err)
{
    static const coffer__pycauset_target target = { "NumPy", true, false };
    return to_array(job, &target, true, err);
}

coffer_status coffer__pycauset_to_raw(const coffer__convert_job *job, coffer_error *err)
{
    static const coffer__pycauset_target target = { "a raw file", true, true };
    return to_array(job, &target, false, err);
}

/* The values of a matrix as a dataset of an HDF5 file, its properties as attributes. */

typedef struct hdf5_export {
    coffer__pycauset_export common;
    coffer__sink *sink;
    const coffer__hdf5_module *hdf5;
    coffer__hdf5 *file;
} hdf5_export;

static coffer_status begin_dataset(hdf5_export *export, coffer_error *err)
{
    const char *name = coffer__job_setting(export->common.job, "dataset");
    const coffer_pycauset_tile *tile = &export->common.selection;
    uint64_t size[2] = { tile->rows, tile->cols };
    if (export->common.is_vector)
        size[0] = tile->rows * tile->cols;
    return export->hdf5->create_dataset(export->file, name ? name : "data", export->common.dtype,
                                        export->common.is_vector ? 1 : 2, size, err);
}

/* False for values that an attribute cannot hold. */
static bool to_attribute(coffer__hdf5_attribute *out, const coffer_pycauset_value *value)
{
    switch (coffer_pycauset_value_kind(value)) {
    case COFFER_PYCAUSET_BOOL:
        out->kind = COFFER__HDF5_BOOL;
        out->boolean = coffer_pycauset_value_bool(value);
        return true;
    case COFFER_PYCAUSET_I64:
        out->kind = COFFER__HDF5_I64;
        out->i64 = coffer_pycauset_value_i64(value);
        return true;
    case COFFER_PYCAUSET_U64:
        out->kind = COFFER__HDF5_U64;
        out->u64 = coffer_pycauset_value_u64(value);
        return true;
    case COFFER_PYCAUSET_F64:
        out->kind = COFFER__HDF5_F64;
        out->f64 = coffer_pycauset_value_f64(value);
        return true;
    case COFFER_PYCAUSET_STRING:
        out->kind = COFFER__HDF5_TEXT;
        out->text = coffer_pycauset_value_text(value, &out->len);
        return strlen(out->text) == out->len;
    default:
        return false;
    }
}

static coffer_status write_properties(hdf5_export *export, coffer_error *err)
{
    const coffer_pycauset_value *properties =
        coffer_pycauset_value_find(coffer_pycauset_metadata(export->common.matrix), "properties");
    coffer_status status = COFFER_OK;
    size_t lost = 0;
    for (size_t i = 0; !status && i < coffer_pycauset_value_count(properties); i++) {
        coffer__hdf5_attribute attribute = { .name = coffer_pycauset_value_key_at(properties, i, NULL) };
        if (attribute.name && attribute.name[0] &&
            to_attribute(&attribute, coffer_pycauset_value_at(properties, i)))
            status = export->hdf5->put_attribute(export->file, &attribute, err);
        else
            lost++;
    }
    if (lost > 0 && export->common.job->notes && !coffer__job_has(export->common.job, "metadata"))
        coffer__report_add(export->common.job->notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "properties that are lists, maps or bytes are not written as attributes: %zu%s",
                           lost,
                           strcmp(export->common.job->from, "pycauset") == 0 ? "; --metadata FILE writes them"
                                                                             : "");
    return status;
}

static coffer_status write_dataset(hdf5_export *export, coffer_error *err)
{
    const coffer_pycauset_tile *all = &export->common.selection;
    for (;;) {
        const uint8_t *values;
        coffer_pycauset_tile tile;
        coffer_status status = coffer__pycauset_export_next(&values, &tile, &export->common, err);
        if (status || !values)
            return status;
        uint64_t start[2] = { tile.row - all->row, tile.col - all->col }, size[2] = { tile.rows, tile.cols };
        if (export->common.is_vector) {
            start[0] += start[1];
            size[0] *= size[1];
        }
        status = export->hdf5->write_tile(export->file, values, start, size, err);
        if (status)
            return status;
    }
}

static coffer_status write_all(hdf5_export *export, coffer_error *err)
{
    int fd;
    coffer_status status = coffer__pycauset_export_create(&export->sink, &export->common, err);
    /* libhdf5 does not write from front to back, which a stream cannot take. */
    if (!status)
        status = coffer__sink_read_back(&fd, export->sink, err);
    if (status)
        return status;
    const coffer__hdf5_bytes bytes = coffer__hdf5_bytes_of_file(fd, export->common.job->out_path);
    status = export->hdf5->open(&export->file, &bytes, err);
    if (status)
        return status;
    status = begin_dataset(export, err);
    if (!status)
        status = write_properties(export, err);
    if (!status)
        status = write_dataset(export, err);
    coffer_status closed = export->hdf5->close(export->file, status ? NULL : err);
    return status ? status : closed;
}

coffer_status coffer__pycauset_to_hdf5(const coffer__convert_job *job, coffer_error *err)
{
    static const coffer__pycauset_target target = { "HDF5", true, false };
    hdf5_export export = { .hdf5 = coffer__hdf5_load(err) };
    if (!export.hdf5)
        return COFFER_E_UNSUPPORTED;
    coffer_status status = coffer__pycauset_export_open(&export.common, job, &target, err);
    if (status)
        return status;
    export.common.keeps_properties = true;
    status = write_all(&export, err);
    if (status)
        coffer__sink_discard(export.sink);
    else
        status = coffer__pycauset_export_commit(export.sink, &export.common, err);
    coffer__pycauset_export_close(&export.common);
    return status;
}
