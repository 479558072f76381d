/* The values of a matrix as a dataset of an HDF5 file, its properties as attributes. */
#include "convert/matrices/pycauset_export.h"

#include "base/fail.h"

#ifndef COFFER_HAVE_HDF5

coffer_status coffer__pycauset_to_hdf5(const coffer__convert_job *job, coffer_error *err)
{
    (void)job;
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "built without libhdf5; .npy holds the same values");
}

#else

#include "outside/arrays/hdf5.h"
#include "outside/arrays/hdf5_attributes.h"

#include <string.h>

typedef struct hdf5_export {
    coffer__pycauset_export common;
    coffer__sink *sink;
    coffer__hdf5 *file;
    hid_t dataset, space, type;
    int dimensions;
} hdf5_export;

static void close_ids(hdf5_export *export)
{
    if (export->type >= 0)
        H5Tclose(export->type);
    if (export->space >= 0)
        H5Sclose(export->space);
    if (export->dataset >= 0)
        H5Dclose(export->dataset);
    export->type = export->space = export->dataset = -1;
}

static hid_t create_dataset(hdf5_export *export, const char *name)
{
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), link = H5Pcreate(H5P_LINK_CREATE), dataset = -1;
    /* No times: the same matrix gives the same bytes. */
    if (creation >= 0 && link >= 0 && H5Pset_obj_track_times(creation, false) >= 0 &&
        H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER) >= 0 &&
        H5Pset_create_intermediate_group(link, 1) >= 0)
        dataset = H5Dcreate2(coffer__hdf5_file(export->file), name, export->type, export->space, link,
                             creation, H5P_DEFAULT);
    if (creation >= 0)
        H5Pclose(creation);
    if (link >= 0)
        H5Pclose(link);
    return dataset;
}

static coffer_status begin_dataset(hdf5_export *export, coffer_error *err)
{
    const char *name = coffer__job_setting(export->common.job, "dataset");
    const coffer_pycauset_tile *tile = &export->common.selection;
    hsize_t size[2] = { tile->rows, tile->cols };
    export->dimensions = export->common.is_vector ? 1 : 2;
    if (export->common.is_vector)
        size[0] = tile->rows * tile->cols;
    export->space = H5Screate_simple(export->dimensions, size, NULL);
    export->type = coffer__hdf5_type(export->common.dtype, NULL);
    if (export->space >= 0 && export->type >= 0)
        export->dataset = create_dataset(export, name ? name : "data");
    return export->dataset < 0 ? coffer__hdf5_fail(export->file, "cannot create the dataset", err)
                               : COFFER_OK;
}

static bool write_tile(hdf5_export *export, const uint8_t *values, const coffer_pycauset_tile *tile)
{
    const coffer_pycauset_tile *all = &export->common.selection;
    hsize_t start[2] = { tile->row - all->row, tile->col - all->col }, size[2] = { tile->rows, tile->cols };
    if (export->dimensions == 1) {
        start[0] += start[1];
        size[0] *= size[1];
    }
    hid_t memory = H5Screate_simple(export->dimensions, size, NULL);
    bool good = memory >= 0 &&
                H5Sselect_hyperslab(export->space, H5S_SELECT_SET, start, NULL, size, NULL) >= 0 &&
                H5Dwrite(export->dataset, export->type, memory, export->space, H5P_DEFAULT, values) >= 0;
    if (memory >= 0)
        H5Sclose(memory);
    return good;
}

static coffer_status write_values(hdf5_export *export, coffer_error *err)
{
    for (;;) {
        const uint8_t *values;
        coffer_pycauset_tile tile;
        coffer_status status = coffer__pycauset_export_next(&values, &tile, &export->common, err);
        if (!status && values && !write_tile(export, values, &tile))
            status = coffer__hdf5_fail(export->file, "cannot write the values", err);
        if (!status)
            status = coffer__hdf5_status(export->file, err);
        if (status || !values)
            return status;
    }
}

/* False for values that an attribute cannot hold. */
static bool to_attribute(coffer__hdf5_attribute *out, const coffer_pycauset_value *value)
{
    switch (coffer_pycauset_value_kind(value)) {
    case COFFER_PYCAUSET_BOOL:
        out->dtype = COFFER_DTYPE_BOOL;
        out->as.boolean = coffer_pycauset_value_bool(value);
        return true;
    case COFFER_PYCAUSET_I64:
        out->dtype = COFFER_DTYPE_I64;
        out->as.i64 = coffer_pycauset_value_i64(value);
        return true;
    case COFFER_PYCAUSET_U64:
        out->dtype = COFFER_DTYPE_U64;
        out->as.u64 = coffer_pycauset_value_u64(value);
        return true;
    case COFFER_PYCAUSET_F64:
        out->dtype = COFFER_DTYPE_F64;
        out->as.f64 = coffer_pycauset_value_f64(value);
        return true;
    case COFFER_PYCAUSET_STRING:
        out->dtype = COFFER_DTYPE_NONE;
        out->as.text.bytes = coffer_pycauset_value_text(value, &out->as.text.len);
        return strlen(out->as.text.bytes) == out->as.text.len;
    default:
        return false;
    }
}

static coffer_status write_properties(const hdf5_export *export, coffer_error *err)
{
    const coffer_pycauset_value *properties =
        coffer_pycauset_value_find(coffer_pycauset_metadata(export->common.matrix), "properties");
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < coffer_pycauset_value_count(properties); i++) {
        coffer__hdf5_attribute attribute = { .name = coffer_pycauset_value_key_at(properties, i, NULL) };
        if (attribute.name && attribute.name[0] &&
            to_attribute(&attribute, coffer_pycauset_value_at(properties, i)))
            status = coffer__hdf5_put_attribute(export->file, export->dataset, &attribute, err);
    }
    return status;
}

static coffer_status write_all(hdf5_export *export, coffer_error *err)
{
    int fd;
    coffer_status status = coffer__pycauset_export_create(&export->sink, &export->common, err);
    /* libhdf5 writes here and there, which a stream cannot take. */
    if (!status)
        status = coffer__sink_read_back(&fd, export->sink, err);
    if (!status)
        status = coffer__hdf5_create(&export->file, fd, export->common.job->out_path, err);
    if (status)
        return status;
    status = begin_dataset(export, err);
    if (!status)
        status = write_properties(export, err);
    if (!status)
        status = write_values(export, err);
    close_ids(export);
    coffer_status closed = coffer__hdf5_close(export->file, status ? NULL : err);
    return status ? status : closed;
}

coffer_status coffer__pycauset_to_hdf5(const coffer__convert_job *job, coffer_error *err)
{
    static const coffer__pycauset_target target = { "HDF5", true, false };
    hdf5_export export = { .dataset = -1, .space = -1, .type = -1 };
    coffer_status status = coffer__pycauset_export_open(&export.common, job, &target, err);
    if (status)
        return status;
    status = write_all(&export, err);
    if (status)
        coffer__sink_discard(export.sink);
    else
        status = coffer__pycauset_export_commit(export.sink, &export.common, err);
    coffer__pycauset_export_close(&export.common);
    return status;
}

#endif
