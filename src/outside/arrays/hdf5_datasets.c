/* The HDF5 module: datasets. */
#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/table.h"
#include "outside/arrays/hdf5_private.h"

#include <stdio.h>
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

/* H5Ovisit walks for ever through a group that contains itself when the file hides how many links lead to it.
 * This walk remembers every object and has limits of its own. */
enum { MAX_DEPTH = 64, MAX_OBJECTS = 1 << 20 };
#define MAX_PATH_BYTES ((size_t)1 << 16)

typedef struct listing {
    const coffer__hdf5 *file;
    void (*visit)(void *context, const char *name, bool is_matrix);
    void *context;
    coffer__buffer path; /* of the group that is being read, with a slash at the end unless it is the root */
    haddr_t *seen;       /* addresses of objects */
    size_t seen_count, seen_capacity;
    coffer__table seen_table;
    int depth;
    coffer_status status;
    coffer_error *err;
} listing;

static herr_t stop(listing *list, coffer_status status)
{
    list->status = status;
    return -1;
}

/* False when the object was seen before, or something failed (list->status). */
static bool is_new(listing *list, haddr_t address)
{
    uint64_t hash = coffer__table_hash(&list->seen_table, &address, sizeof address);
    coffer__table_probe probe = coffer__table_begin(&list->seen_table, hash);
    for (uint32_t i; (i = coffer__table_next(&probe)) != COFFER__TABLE_NONE;)
        if (list->seen[i] == address)
            return false;
    if (list->seen_count == MAX_OBJECTS) {
        stop(list, coffer__fail(list->err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "HDF5: more than %d objects",
                                MAX_OBJECTS));
        return false;
    }
    if (coffer__array_reserve_one(&list->seen, &list->seen_capacity, list->seen_count, sizeof address,
                                  NULL) ||
        coffer__table_add(&list->seen_table, hash, list->seen_count, NULL)) {
        stop(list, coffer__fail_no_memory(list->err, list->seen_count * sizeof address));
        return false;
    }
    list->seen[list->seen_count++] = address;
    return true;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *context);

static herr_t visit_group(listing *list, hid_t parent, const char *name)
{
    hsize_t at = 0;
    if (list->depth == MAX_DEPTH)
        return stop(list, coffer__fail(list->err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                       "HDF5: groups are nested more than %d levels deep", MAX_DEPTH));
    hid_t group = H5Gopen2(parent, name, H5P_DEFAULT);
    if (group < 0)
        return 0;
    list->depth++;
    herr_t result = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, visit_link, list);
    list->depth--;
    H5Gclose(group);
    return result;
}

static void visit_dataset(listing *list, hid_t group, const char *name)
{
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
    if (dataset < 0)
        return;
    list->visit(list->context, coffer__buffer_text(&list->path), is_matrix(dataset));
    H5Dclose(dataset);
}

/* Soft and external links are not followed: what a soft link leads to has a hard link of its own. */
static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *context)
{
    listing *list = context;
    H5O_info_t object;
    size_t before = list->path.len, len = strlen(name);
    if (link->type != H5L_TYPE_HARD || before + len + 1 > MAX_PATH_BYTES)
        return 0;
    if (H5Oget_info_by_name2(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0 ||
        !is_new(list, object.addr))
        return list->status ? -1 : 0;
    herr_t result = 0;
    coffer__buffer_append(&list->path, name, len);
    if (object.type == H5O_TYPE_DATASET) {
        visit_dataset(list, group, name);
    } else if (object.type == H5O_TYPE_GROUP) {
        coffer__buffer_append(&list->path, "/", 1);
        result = visit_group(list, group, name);
    }
    list->path.len = before;
    return list->path.failed ? stop(list, coffer__fail_no_memory(list->err, before + len)) : result;
}

coffer_status coffer__hdf5_list(coffer__hdf5 *file,
                                void (*visit)(void *context, const char *name, bool is_matrix), void *context,
                                coffer_error *err)
{
    listing list = { .file = file,
                     .visit = visit,
                     .context = context,
                     .path = COFFER__BUFFER_INIT,
                     .seen_table = COFFER__TABLE_INIT,
                     .err = err };
    H5O_info_t root;
    coffer__table_init_keyed(&list.seen_table);
    if (H5Oget_info_by_name2(file->file, "/", &root, H5O_INFO_BASIC, H5P_DEFAULT) >= 0)
        is_new(&list, root.addr);
    herr_t result = list.status ? -1 : visit_group(&list, file->file, "/");
    coffer__table_free(&list.seen_table);
    coffer__free(list.seen);
    coffer__buffer_free(&list.path);
    if (list.status)
        return list.status;
    return result < 0 ? coffer__hdf5_fail(file, "cannot list the datasets", err) : COFFER_OK;
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

/* Filters are numbers; the registry of the HDF Group has their names. */
static const char *filter_name(H5Z_filter_t filter)
{
    static const struct {
        H5Z_filter_t number;
        const char *name;
    } known[] = {
        { H5Z_FILTER_SZIP, "szip" }, { 305, "LZO" },   { 307, "bzip2" },        { 32000, "LZF" },
        { 32001, "Blosc" },          { 32004, "LZ4" }, { 32008, "bitshuffle" }, { 32013, "ZFP" },
        { 32015, "Zstandard" },      { 32017, "SZ" },  { 32024, "SZ3" },        { 32026, "Blosc2" },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].number == filter)
            return known[i].name;
    return NULL;
}

/* Filters that files name are never loaded from plugins. */
static void describe_filters(coffer__hdf5_dataset *out, hid_t creation)
{
    int count = H5Pget_nfilters(creation);
    for (int i = 0; i < count && !out->filter[0]; i++) {
        unsigned flags = 0, settings = 0;
        size_t values = 0;
        H5Z_filter_t filter =
            H5Pget_filter2(creation, (unsigned)i, &flags, &values, NULL, 0, NULL, &settings);
        if (filter < 0 || H5Zfilter_avail(filter) > 0)
            continue;
        if (filter_name(filter))
            snprintf(out->filter, sizeof out->filter, "%s", filter_name(filter));
        else
            snprintf(out->filter, sizeof out->filter, "filter %d", (int)filter);
    }
}

static void describe_storage(coffer__hdf5_dataset *out, const coffer__hdf5 *file, hid_t creation,
                             size_t element_size)
{
    hsize_t chunk[COFFER__HDF5_MAX_DIMENSIONS] = { 1, 1 };
    H5D_layout_t layout = H5Pget_layout(creation);
    out->is_elsewhere = H5Pget_external_count(creation) != 0 || layout == H5D_VIRTUAL;
    out->is_chunked = layout == H5D_CHUNKED;
    out->stored_bytes = H5Dget_storage_size(file->dataset);
    if (!out->is_chunked)
        return;
    int dimensions = H5Pget_chunk(creation, COFFER__HDF5_MAX_DIMENSIONS, chunk);
    out->chunk_bytes = dimensions < 0 ? UINT64_MAX : element_size;
    for (int i = 0; i < dimensions; i++)
        if (!coffer__mul_u64(&out->chunk_bytes, out->chunk_bytes, chunk[i]))
            out->chunk_bytes = UINT64_MAX;
    out->chunk[0] = chunk[0];
    out->chunk[1] = chunk[1];
}

coffer_status coffer__hdf5_describe(coffer__hdf5_dataset *out, coffer__hdf5 *file, coffer_error *err)
{
    char *names[2] = { NULL, NULL };
    hsize_t size[COFFER__HDF5_MAX_DIMENSIONS] = { 1, 1 };
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
        if (file->dimensions > 0 && file->dimensions <= COFFER__HDF5_MAX_DIMENSIONS)
            H5Sget_simple_extent_dims(file->space, size, NULL);
        for (int i = 0; i < file->dimensions && i < COFFER__HDF5_MAX_DIMENSIONS; i++)
            out->extent[i] = size[i];
        out->size[0] = file->dimensions == 1 || file->dimensions == 2 ? size[0] : 1;
        out->size[1] = file->dimensions == 2 ? size[1] : 1;
        out->dtype = coffer__hdf5_dtype(type, names);
        out->is_wide = out->dtype == COFFER_DTYPE_NONE && H5Tget_class(type) == H5T_FLOAT;
        describe_storage(out, file, creation, H5Tget_size(type));
        describe_filters(out, creation);
        H5free_memory(names[0]);
        H5free_memory(names[1]);
    }
    if (type >= 0)
        H5Tclose(type);
    if (creation >= 0)
        H5Pclose(creation);
    return status;
}

coffer_status coffer__hdf5_read_block(void *out, coffer__hdf5 *file, coffer_dtype dtype,
                                      const uint64_t *start, const uint64_t *count, coffer_error *err)
{
    hsize_t first[COFFER__HDF5_MAX_DIMENSIONS] = { 0 }, size[COFFER__HDF5_MAX_DIMENSIONS] = { 1 };
    int dimensions = file->dimensions;
    coffer_status status = use_type(file, dtype, err);
    if (status)
        return status;
    if (dimensions > COFFER__HDF5_MAX_DIMENSIONS)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "a dataset of %d dimensions",
                            dimensions);
    for (int i = 0; i < dimensions; i++) {
        first[i] = start[i];
        size[i] = count[i];
    }
    hid_t memory = H5Screate_simple(dimensions > 0 ? dimensions : 1, size, NULL);
    bool good = memory >= 0 && (dimensions == 0 || H5Sselect_hyperslab(file->space, H5S_SELECT_SET, first,
                                                                       NULL, size, NULL) >= 0);
    good = good && H5Dread(file->dataset, file->type, memory, file->space, H5P_DEFAULT, out) >= 0;
    if (memory >= 0)
        H5Sclose(memory);
    return good ? COFFER_OK : coffer__hdf5_fail(file, "cannot read the values", err);
}

coffer_status coffer__hdf5_read_rows(void *out, coffer__hdf5 *file, coffer_dtype dtype, uint64_t row,
                                     uint64_t count, coffer_error *err)
{
    hsize_t extent[COFFER__HDF5_MAX_DIMENSIONS] = { 1, 1 };
    uint64_t start[COFFER__HDF5_MAX_DIMENSIONS] = { row }, size[COFFER__HDF5_MAX_DIMENSIONS] = { count };
    if (file->dimensions > 0 && file->dimensions <= COFFER__HDF5_MAX_DIMENSIONS)
        H5Sget_simple_extent_dims(file->space, extent, NULL);
    for (int i = 1; i < file->dimensions && i < COFFER__HDF5_MAX_DIMENSIONS; i++)
        size[i] = extent[i];
    return coffer__hdf5_read_block(out, file, dtype, start, size, err);
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
