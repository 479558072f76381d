/* Rows out of a dataset of an HDF5 file. */
#include "convert/matrices/pycauset_input.h"

#include "base/fail.h"

#ifndef COFFER_HAVE_HDF5

coffer_status coffer__pycauset_input_hdf5(coffer__pycauset_input *out, const coffer__convert_job *job,
                                          coffer_error *err)
{
    (void)out, (void)job;
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "built without libhdf5; .npy holds the same values: numpy.save(\"m.npy\", dataset)");
}

#else

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "outside/arrays/hdf5.h"
#include "outside/arrays/hdf5_attributes.h"

#include <inttypes.h>
#include <string.h>

/* Data that is not there reads as the same number over and over. More of it than the limit of memory must be
 * asked for; this is more than any filter makes of a byte. */
#define MAX_RATIO 2000
/* Names that a message lists. */
#define MAX_LISTED 120

typedef struct hdf5_state {
    coffer__hdf5 *file;
    hid_t dataset, space, type; /* the latter of elements in memory */
    uint64_t next;              /* row */
} hdf5_state;

static void close_state(void *state)
{
    hdf5_state *from = state;
    if (!from)
        return;
    if (from->type >= 0)
        H5Tclose(from->type);
    if (from->space >= 0)
        H5Sclose(from->space);
    if (from->dataset >= 0)
        H5Dclose(from->dataset);
    coffer__hdf5_close(from->file, NULL);
    coffer__free(from);
}

/* ---- Which dataset ---- */

typedef struct candidates {
    hid_t file;
    size_t count;    /* of those that can be a matrix */
    size_t datasets; /* of any kind */
    coffer__buffer names;
    coffer__buffer first; /* the first of the former, or of the latter when there are none */
} candidates;

static bool can_be_matrix(hid_t dataset)
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

static herr_t add_candidate(hid_t group, const char *name, const H5O_info_t *info, void *context)
{
    candidates *found = context;
    (void)group;
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    hid_t dataset = H5Dopen2(found->file, name, H5P_DEFAULT);
    if (dataset < 0)
        return 0;
    bool good = can_be_matrix(dataset);
    H5Dclose(dataset);
    if (found->datasets++ == 0 || (good && found->count == 0)) {
        found->first.len = 0;
        coffer__buffer_append(&found->first, name, strlen(name) + 1);
    }
    if (good && found->names.len < MAX_LISTED)
        coffer__buffer_printf(&found->names, "%s%s", found->count ? ", " : "", name);
    found->count += good;
    return 0;
}

static coffer_status find_dataset(hdf5_state *from, coffer_error *err)
{
    candidates found = { coffer__hdf5_file(from->file), 0, 0, COFFER__BUFFER_INIT, COFFER__BUFFER_INIT };
    coffer_status status = COFFER_OK;
    if (H5Ovisit(found.file, H5_INDEX_NAME, H5_ITER_INC, add_candidate, &found) < 0)
        status = coffer__hdf5_fail(from->file, "cannot list the datasets", err);
    else if (found.names.failed || found.first.failed)
        status = coffer__fail_no_memory(err, found.names.len);
    /* A dataset that is alone is opened, and then says what is wrong with it. */
    else if (found.count == 0 && found.datasets != 1)
        status = coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                              "no dataset of numbers with one or two dimensions");
    else if (found.count > 1)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "%zu datasets, --dataset says which one: %s", found.count,
                              coffer__buffer_text(&found.names));
    if (!status) {
        from->dataset = H5Dopen2(found.file, (const char *)found.first.data, H5P_DEFAULT);
        if (from->dataset < 0)
            status = coffer__hdf5_fail(from->file, "cannot open the dataset", err);
    }
    coffer__buffer_free(&found.names);
    coffer__buffer_free(&found.first);
    return status;
}

static coffer_status choose_dataset(hdf5_state *from, const coffer__convert_job *job, coffer_error *err)
{
    const char *name = coffer__job_setting(job, "dataset");
    if (!name)
        return find_dataset(from, err);
    from->dataset = H5Dopen2(coffer__hdf5_file(from->file), name, H5P_DEFAULT);
    if (from->dataset >= 0)
        return COFFER_OK;
    coffer_error reason = COFFER_ERROR_INIT;
    coffer_status status = coffer__hdf5_fail(from->file, "no dataset", &reason);
    return coffer__fail(err, status == COFFER_E_BAD_VALUE ? COFFER_E_NOT_FOUND : status, COFFER_OFFSET_NONE,
                        "\"%s\": %s", name, reason.text);
}

/* ---- What it is ---- */

static coffer_status take_shape(coffer__pycauset_input *out, hdf5_state *from, coffer_error *err)
{
    hsize_t size[2] = { 1, 1 };
    int dimensions = H5Sget_simple_extent_ndims(from->space);
    if (dimensions < 0 || H5Sget_simple_extent_type(from->space) == H5S_NULL)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "the dataset holds no values");
    if (dimensions > 2)
        return coffer__fail(
            err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
            "a dataset of %d dimensions; a matrix has two: numpy.save one layer of it as .npy", dimensions);
    if (dimensions > 0)
        H5Sget_simple_extent_dims(from->space, size, NULL);
    out->rows = size[0];
    out->cols = size[1];
    out->is_vector = dimensions == 1;
    return COFFER_OK;
}

static coffer_status take_type(coffer__pycauset_input *out, hdf5_state *from, const coffer__convert_job *job,
                               coffer_error *err)
{
    char *names[2] = { NULL, NULL };
    hid_t type = H5Dget_type(from->dataset);
    if (type < 0)
        return coffer__hdf5_fail(from->file, "cannot read the type", err);
    out->dtype = coffer__hdf5_dtype(type, names);
    bool is_wide = out->dtype == COFFER_DTYPE_NONE && H5Tget_class(type) == H5T_FLOAT;
    H5Tclose(type);
    if (is_wide && coffer__job_has(job, "dtype"))
        out->dtype = COFFER_DTYPE_F64;
    if (out->dtype == COFFER_DTYPE_NONE)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            is_wide ? "numbers of more than 64 bits; --dtype f64 rounds them"
                                    : "the dataset does not hold numbers");
    from->type = coffer__hdf5_type(out->dtype, names[0] ? (const char *const *)names : NULL);
    H5free_memory(names[0]);
    H5free_memory(names[1]);
    return from->type < 0 ? coffer__hdf5_fail(from->file, "cannot make a type", err) : COFFER_OK;
}

/* Where the values lie: in this file, in pieces that fit into memory. */
static coffer_status check_storage(coffer__pycauset_input *out, hdf5_state *from, hid_t creation,
                                   const coffer__convert_job *job, coffer_error *err)
{
    H5D_layout_t layout = H5Pget_layout(creation);
    hsize_t chunk[2] = { 1, 1 };
    uint64_t bytes;
    if (H5Pget_external_count(creation) != 0 || layout == H5D_VIRTUAL)
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                            "the dataset's values lie in other files, which are not followed");
    if (layout == H5D_CHUNKED) {
        hid_t type = H5Dget_type(from->dataset);
        if (H5Pget_chunk(creation, 2, chunk) < 0 || !coffer__mul_u64(&bytes, chunk[0], chunk[1]) ||
            !coffer__mul_u64(&bytes, bytes, type >= 0 ? H5Tget_size(type) : 0) ||
            bytes > job->limits.memory_bytes)
            bytes = UINT64_MAX;
        if (type >= 0)
            H5Tclose(type);
        if (bytes == UINT64_MAX)
            return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                "chunks of %" PRIu64 " × %" PRIu64 " values, the limit is %" PRIu64 " bytes",
                                (uint64_t)chunk[0], (uint64_t)chunk[1], job->limits.memory_bytes);
        out->band_rows = chunk[0];
    }
    uint64_t stored = H5Dget_storage_size(from->dataset);
    if (!coffer__mul_u64(&bytes, out->rows, out->cols) ||
        !coffer__mul_u64(&bytes, bytes, coffer_dtype_size(out->dtype)) ||
        (bytes > job->limits.memory_bytes && bytes / MAX_RATIO > stored && !coffer__job_has(job, "dense")))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " × %" PRIu64 " values, of which %" PRIu64
                            " bytes are there; --dense fills in the rest",
                            out->rows, out->cols, stored);
    return COFFER_OK;
}

/* ---- Attributes ---- */

typedef struct property_job {
    coffer_pycauset_changes *changes;
    coffer__buffer path;
} property_job;

/* Sets "properties.NAME", with the dots of the name escaped. */
static coffer_status set_property(void *context, const coffer__hdf5_attribute *attribute, coffer_error *err)
{
    property_job *job = context;
    job->path.len = 0;
    coffer__buffer_printf(&job->path, "properties.");
    for (const char *name = attribute->name; *name; name++) {
        if (*name == '.' || *name == '\\')
            coffer__buffer_append(&job->path, "\\", 1);
        coffer__buffer_append(&job->path, name, 1);
    }
    const char *path = coffer__buffer_text(&job->path);
    if (job->path.failed)
        return coffer__fail_no_memory(err, strlen(attribute->name));
    switch (attribute->dtype) {
    case COFFER_DTYPE_BOOL:
        return coffer_pycauset_changes_set_bool(job->changes, path, attribute->as.boolean != 0, err);
    case COFFER_DTYPE_I64:
        return coffer_pycauset_changes_set_i64(job->changes, path, attribute->as.i64, err);
    case COFFER_DTYPE_U64:
        return coffer_pycauset_changes_set_u64(job->changes, path, attribute->as.u64, err);
    case COFFER_DTYPE_F64:
        return coffer_pycauset_changes_set_f64(job->changes, path, attribute->as.f64, err);
    default:
        return coffer_pycauset_changes_set_string(job->changes, path, attribute->as.text.bytes,
                                                  attribute->as.text.len, err);
    }
}

static coffer_status read_attributes(coffer_pycauset_changes **out, const hdf5_state *from, coffer_error *err)
{
    property_job job = { NULL, COFFER__BUFFER_INIT };
    coffer_status status = coffer_pycauset_changes_new(&job.changes, err);
    if (!status)
        status = coffer__hdf5_visit_attributes(from->file, from->dataset, set_property, &job, err);
    coffer__buffer_free(&job.path);
    if (status)
        coffer_pycauset_changes_free(job.changes);
    else
        *out = job.changes;
    return status;
}

/* ---- Values ---- */

static coffer_status read_rows(void *out, uint64_t count, coffer__pycauset_input *input, coffer_error *err)
{
    hdf5_state *from = input->state;
    const hsize_t start[2] = { from->next, 0 }, size[2] = { count, input->cols };
    int dimensions = H5Sget_simple_extent_ndims(from->space);
    uint8_t *bytes = out;
    hid_t memory = H5Screate_simple(dimensions > 0 ? dimensions : 1, size, NULL);
    bool good = memory >= 0 && (dimensions == 0 || H5Sselect_hyperslab(from->space, H5S_SELECT_SET, start,
                                                                       NULL, size, NULL) >= 0);
    good = good && H5Dread(from->dataset, from->type, memory, from->space, H5P_DEFAULT, out) >= 0;
    if (memory >= 0)
        H5Sclose(memory);
    if (!good)
        return coffer__hdf5_fail(from->file, "cannot read the values", err);
    for (uint64_t i = 0; input->dtype == COFFER_DTYPE_BOOL && i < count * input->cols; i++)
        bytes[i] = bytes[i] != 0;
    from->next += count;
    return COFFER_OK;
}

coffer_status coffer__pycauset_input_hdf5(coffer__pycauset_input *out, const coffer__convert_job *job,
                                          coffer_error *err)
{
    hdf5_state *from = coffer__calloc(1, sizeof *from);
    hid_t creation = -1;
    if (!from)
        return coffer__fail_no_memory(err, sizeof *from);
    from->dataset = from->space = from->type = -1;
    *out = (coffer__pycauset_input){ .state = from, .read = read_rows, .close = close_state };
    coffer_status status = coffer__hdf5_open(&from->file, job->in, err);
    if (!status)
        status = choose_dataset(from, job, err);
    if (!status) {
        from->space = H5Dget_space(from->dataset);
        creation = H5Dget_create_plist(from->dataset);
        if (from->space < 0 || creation < 0)
            status = coffer__hdf5_fail(from->file, "cannot read the dataset", err);
    }
    if (!status)
        status = take_shape(out, from, err);
    if (!status)
        status = take_type(out, from, job, err);
    if (!status)
        status = check_storage(out, from, creation, job, err);
    if (!status)
        status = read_attributes(&out->changes, from, err);
    if (creation >= 0)
        H5Pclose(creation);
    if (status) {
        coffer_pycauset_changes_free(out->changes);
        close_state(from);
        memset(out, 0, sizeof *out);
    }
    return status;
}

#endif
