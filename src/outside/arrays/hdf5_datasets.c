/* The HDF5 module: datasets. */
#include "base/checked.h"
#include "base/fail.h"
#include "outside/arrays/hdf5_private.h"

#include <string.h>

void coffer__hdf5_close_dataset(coffer__hdf5 *file)
{
    if (file->type >= 0)
        H5Tclose(file->type);
    if (file->space >= 0)
        H5Sclose(file->space);
    if (file->dataset >= 0)
        H5Dclose(file->dataset);
    file->type = file->space = file->dataset = -1;
}

/* ---- Reading ---- */

static bool is_matrix(hid_t dataset)
{
    char *names[2];
    hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    int dimensions = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    bool good = type >= 0 && coffer__hdf5_dtype(type, names) != COFFER_DTYPE_NONE;
    if (good) {
        H5free_memory(names[0]);
        H5free_memory(names[1]);
    }
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    return good && (dimensions == 1 || dimensions == 2);
}

typedef struct listing {
    hid_t file;
    void (*visit)(void *context, const char *name, bool is_matrix);
    void *context;
} listing;

static herr_t visit_object(hid_t group, const char *name, const H5O_info_t *info, void *context)
{
    const listing *list = context;
    (void)group;
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    hid_t dataset = H5Dopen2(list->file, name, H5P_DEFAULT);
    if (dataset < 0)
        return 0;
    list->visit(list->context, name, is_matrix(dataset));
    H5Dclose(dataset);
    return 0;
}

coffer_status coffer__hdf5_list(coffer__hdf5 *file,
                                void (*visit)(void *context, const char *name, bool is_matrix), void *context,
                                coffer_error *err)
{
    listing list = { file->file, visit, context };
    if (H5Ovisit(file->file, H5_INDEX_NAME, H5_ITER_INC, visit_object, &list) < 0)
        return coffer__hdf5_fail(file, "cannot list the datasets", err);
    return COFFER_OK;
}

coffer_status coffer__hdf5_choose(coffer__hdf5 *file, const char *name, coffer_error *err)
{
    coffer_error reason = COFFER_ERROR_INIT;
    coffer__hdf5_close_dataset(file);
    file->dataset = H5Dopen2(file->file, name, H5P_DEFAULT);
    if (file->dataset < 0) {
        coffer_status status = coffer__hdf5_fail(file, "no dataset", &reason);
        return coffer__fail(err, status == COFFER_E_BAD_VALUE ? COFFER_E_NOT_FOUND : status,
                            COFFER_OFFSET_NONE, "\"%s\": %s", name, reason.text);
    }
    file->space = H5Dget_space(file->dataset);
    if (file->space < 0)
        return coffer__hdf5_fail(file, "cannot read the dataset", err);
    file->dimensions = H5Sget_simple_extent_ndims(file->space);
    return COFFER_OK;
}

/* The type of elements in memory, with the names that the parts of a complex one have in the file. */
static coffer_status use_type(coffer__hdf5 *file, coffer_dtype dtype, coffer_error *err)
{
    char *names[2] = { NULL, NULL };
    if (file->type >= 0 && file->dtype == dtype)
        return COFFER_OK;
    if (file->type >= 0)
        H5Tclose(file->type);
    hid_t stored = H5Dget_type(file->dataset);
    if (stored >= 0) {
        coffer__hdf5_dtype(stored, names);
        H5Tclose(stored);
    }
    file->type = coffer__hdf5_type(dtype, names[0] ? (const char *const *)names : NULL);
    file->dtype = dtype;
    H5free_memory(names[0]);
    H5free_memory(names[1]);
    return file->type < 0 ? coffer__hdf5_fail(file, "cannot make a type", err) : COFFER_OK;
}

static void describe_storage(coffer__hdf5_dataset *out, const coffer__hdf5 *file, hid_t creation,
                             size_t element_size)
{
    hsize_t chunk[2] = { 1, 1 };
    H5D_layout_t layout = H5Pget_layout(creation);
    out->is_elsewhere = H5Pget_external_count(creation) != 0 || layout == H5D_VIRTUAL;
    out->is_chunked = layout == H5D_CHUNKED;
    out->stored_bytes = H5Dget_storage_size(file->dataset);
    if (!out->is_chunked)
        return;
    if (H5Pget_chunk(creation, 2, chunk) < 0 || !coffer__mul_u64(&out->chunk_bytes, chunk[0], chunk[1]) ||
        !coffer__mul_u64(&out->chunk_bytes, out->chunk_bytes, element_size))
        out->chunk_bytes = UINT64_MAX;
    out->chunk[0] = chunk[0];
    out->chunk[1] = chunk[1];
}

coffer_status coffer__hdf5_describe(coffer__hdf5_dataset *out, coffer__hdf5 *file, coffer_error *err)
{
    char *names[2] = { NULL, NULL };
    hsize_t size[2] = { 1, 1 };
    hid_t type = H5Dget_type(file->dataset), creation = H5Dget_create_plist(file->dataset);
    coffer_status status = COFFER_OK;
    memset(out, 0, sizeof *out);
    if (type < 0) {
        status = coffer__hdf5_fail(file, "cannot read the type", err);
    } else if (creation < 0) {
        status = coffer__hdf5_fail(file, "cannot read the dataset", err);
    } else {
        out->dimensions = file->dimensions;
        out->has_values = file->dimensions >= 0 && H5Sget_simple_extent_type(file->space) != H5S_NULL;
        if (file->dimensions == 1 || file->dimensions == 2)
            H5Sget_simple_extent_dims(file->space, size, NULL);
        out->size[0] = size[0];
        out->size[1] = size[1];
        out->dtype = coffer__hdf5_dtype(type, names);
        out->is_wide = out->dtype == COFFER_DTYPE_NONE && H5Tget_class(type) == H5T_FLOAT;
        describe_storage(out, file, creation, H5Tget_size(type));
        H5free_memory(names[0]);
        H5free_memory(names[1]);
    }
    if (type >= 0)
        H5Tclose(type);
    if (creation >= 0)
        H5Pclose(creation);
    return status;
}

coffer_status coffer__hdf5_read_rows(void *out, coffer__hdf5 *file, coffer_dtype dtype, uint64_t row,
                                     uint64_t count, coffer_error *err)
{
    hsize_t start[2] = { row, 0 }, size[2] = { 1, 1 };
    int dimensions = file->dimensions;
    coffer_status status = use_type(file, dtype, err);
    if (status)
        return status;
    if (dimensions > 0)
        H5Sget_simple_extent_dims(file->space, size, NULL);
    size[0] = count;
    hid_t memory = H5Screate_simple(dimensions > 0 ? dimensions : 1, size, NULL);
    bool good = memory >= 0 && (dimensions == 0 || H5Sselect_hyperslab(file->space, H5S_SELECT_SET, start,
                                                                       NULL, size, NULL) >= 0);
    good = good && H5Dread(file->dataset, file->type, memory, file->space, H5P_DEFAULT, out) >= 0;
    if (memory >= 0)
        H5Sclose(memory);
    return good ? COFFER_OK : coffer__hdf5_fail(file, "cannot read the values", err);
}

/* ---- Writing ---- */

static hid_t create(const coffer__hdf5 *file, const char *name)
{
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), link = H5Pcreate(H5P_LINK_CREATE), dataset = -1;
    /* No times: the same matrix gives the same bytes. */
    if (creation >= 0 && link >= 0 && H5Pset_obj_track_times(creation, false) >= 0 &&
        H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER) >= 0 &&
        H5Pset_create_intermediate_group(link, 1) >= 0)
        dataset = H5Dcreate2(file->file, name, file->type, file->space, link, creation, H5P_DEFAULT);
    if (creation >= 0)
        H5Pclose(creation);
    if (link >= 0)
        H5Pclose(link);
    return dataset;
}

coffer_status coffer__hdf5_create_dataset(coffer__hdf5 *file, const char *name, coffer_dtype dtype,
                                          int dimensions, const uint64_t size[2], coffer_error *err)
{
    const hsize_t extent[2] = { size[0], size[1] };
    coffer__hdf5_close_dataset(file);
    file->dimensions = dimensions;
    file->dtype = dtype;
    file->space = H5Screate_simple(dimensions, extent, NULL);
    file->type = coffer__hdf5_type(dtype, NULL);
    if (file->space >= 0 && file->type >= 0)
        file->dataset = create(file, name);
    return file->dataset < 0 ? coffer__hdf5_fail(file, "cannot create the dataset", err) : COFFER_OK;
}

coffer_status coffer__hdf5_write_tile(coffer__hdf5 *file, const void *values, const uint64_t start[2],
                                      const uint64_t size[2], coffer_error *err)
{
    const hsize_t first[2] = { start[0], start[1] }, count[2] = { size[0], size[1] };
    hid_t memory = H5Screate_simple(file->dimensions, count, NULL);
    bool good = memory >= 0 &&
                H5Sselect_hyperslab(file->space, H5S_SELECT_SET, first, NULL, count, NULL) >= 0 &&
                H5Dwrite(file->dataset, file->type, memory, file->space, H5P_DEFAULT, values) >= 0;
    if (memory >= 0)
        H5Sclose(memory);
    /* A failed write passes for done, see hdf5_file.c. */
    return good && !file->failure.status ? COFFER_OK
                                         : coffer__hdf5_fail(file, "cannot write the values", err);
}
