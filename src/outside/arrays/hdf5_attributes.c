#include "outside/arrays/hdf5_attributes.h"

#ifdef COFFER_HAVE_HDF5

#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <string.h>

/* Longer texts are skipped. */
#define MAX_TEXT ((size_t)1 << 20)

/* ---- Reading ---- */

typedef struct visit_job {
    const coffer__hdf5 *file;
    coffer__hdf5_attribute_visitor visit;
    void *context;
    coffer_status status;
    coffer_error *err;
} visit_job;

static coffer_status visit_text(visit_job *job, const char *name, const char *text, size_t len)
{
    if (len > MAX_TEXT || !coffer__utf8_valid(text, len))
        return COFFER_OK;
    coffer__hdf5_attribute attribute = { .name = name, .dtype = COFFER_DTYPE_NONE };
    attribute.as.text.bytes = text;
    attribute.as.text.len = len;
    return job->visit(job->context, &attribute, job->err);
}

static coffer_status read_text(visit_job *job, const char *name, hid_t attribute, hid_t type)
{
    char *text = NULL;
    if (H5Tis_variable_str(type) > 0) {
        /* Not converted: the character set of the file is ASCII or UTF-8. */
        if (H5Aread(attribute, type, &text) < 0 || !text)
            return COFFER_OK;
        coffer_status status = visit_text(job, name, text, strnlen(text, MAX_TEXT + 1));
        H5free_memory(text);
        return status;
    }
    size_t size = H5Tget_size(type);
    if (size > MAX_TEXT)
        return COFFER_OK;
    text = coffer__malloc(size);
    if (!text)
        return coffer__fail_no_memory(job->err, size);
    coffer_status status = COFFER_OK;
    if (H5Aread(attribute, type, text) >= 0)
        status = visit_text(job, name, text, strnlen(text, size));
    coffer__free(text);
    return status;
}

/* The type that a number is read as, or NONE. */
static coffer_dtype wide_dtype(hid_t type)
{
    char *names[2];
    coffer_dtype dtype = coffer__hdf5_dtype(type, names);
    H5free_memory(names[0]);
    H5free_memory(names[1]);
    if (dtype == COFFER_DTYPE_BOOL)
        return COFFER_DTYPE_BOOL;
    if (coffer_dtype_is_float(dtype))
        return COFFER_DTYPE_F64;
    if (coffer_dtype_is_integer(dtype))
        return H5Tget_sign(type) == H5T_SGN_2 ? COFFER_DTYPE_I64 : COFFER_DTYPE_U64;
    return COFFER_DTYPE_NONE;
}

static coffer_status read_number(visit_job *job, const char *name, hid_t attribute, hid_t type)
{
    coffer__hdf5_attribute number = { .name = name, .dtype = wide_dtype(type) };
    if (number.dtype == COFFER_DTYPE_NONE)
        return COFFER_OK;
    hid_t memory_type = coffer__hdf5_type(number.dtype, NULL);
    if (memory_type < 0)
        return COFFER_OK;
    coffer_status status = H5Aread(attribute, memory_type, &number.as) < 0
                               ? coffer__hdf5_fail(job->file, "cannot read an attribute", job->err)
                               : job->visit(job->context, &number, job->err);
    H5Tclose(memory_type);
    return status;
}

static herr_t visit_attribute(hid_t dataset, const char *name, const H5A_info_t *info, void *context)
{
    visit_job *job = context;
    (void)info;
    hid_t attribute = H5Aopen(dataset, name, H5P_DEFAULT);
    if (attribute < 0)
        return 0;
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    bool single = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    if (type >= 0 && single && name[0] && coffer__utf8_valid(name, strlen(name))) {
        if (H5Tget_class(type) == H5T_STRING)
            job->status = read_text(job, name, attribute, type);
        else
            job->status = read_number(job, name, attribute, type);
    }
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    H5Aclose(attribute);
    return job->status ? -1 : 0;
}

coffer_status coffer__hdf5_visit_attributes(const coffer__hdf5 *file, hid_t dataset,
                                            coffer__hdf5_attribute_visitor visit, void *context,
                                            coffer_error *err)
{
    visit_job job = { file, visit, context, COFFER_OK, err };
    hsize_t position = 0;
    if (H5Aiterate2(dataset, H5_INDEX_NAME, H5_ITER_INC, &position, visit_attribute, &job) < 0)
        return job.status ? job.status : coffer__hdf5_fail(file, "cannot list the attributes", err);
    return COFFER_OK;
}

/* ---- Writing ---- */

static hid_t text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
        H5Tclose(type);
        return -1;
    }
    return type;
}

coffer_status coffer__hdf5_put_attribute(const coffer__hdf5 *file, hid_t dataset,
                                         const coffer__hdf5_attribute *attribute, coffer_error *err)
{
    bool is_text = attribute->dtype == COFFER_DTYPE_NONE;
    const void *value = is_text ? (const void *)&attribute->as.text.bytes : (const void *)&attribute->as;
    hid_t type = is_text ? text_type() : coffer__hdf5_type(attribute->dtype, NULL);
    hid_t space = H5Screate(H5S_SCALAR), id = -1;
    if (type >= 0 && space >= 0)
        id = H5Acreate2(dataset, attribute->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = id >= 0 && H5Awrite(id, type, value) >= 0;
    if (id >= 0)
        H5Aclose(id);
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    return good ? COFFER_OK : coffer__hdf5_fail(file, "cannot write an attribute", err);
}

#endif
