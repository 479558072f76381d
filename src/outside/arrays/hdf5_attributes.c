#include "outside/arrays/hdf5_attributes.h"

#ifdef COFFER_HAVE_HDF5

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <string.h>

/* A longer text is no property. */
#define MAX_TEXT ((size_t)1 << 20)

/* ---- In ---- */

typedef struct taking {
    const coffer__hdf5 *file;
    coffer_pycauset_changes *changes;
    coffer__buffer path;
    coffer_status status;
    coffer_error *err;
} taking;

/* "properties.NAME", dots in the name escaped. */
static const char *path_of(taking *into, const char *name)
{
    into->path.len = 0;
    coffer__buffer_printf(&into->path, "properties.");
    for (; *name; name++) {
        if (*name == '.' || *name == '\\')
            coffer__buffer_append(&into->path, "\\", 1);
        coffer__buffer_append(&into->path, name, 1);
    }
    return coffer__buffer_text(&into->path);
}

static coffer_status take_text(taking *into, const char *path, hid_t attribute, hid_t type)
{
    char *text = NULL;
    size_t size = H5Tget_size(type);
    if (H5Tis_variable_str(type) > 0) {
        /* Read as it is stored: the character set of the file is UTF-8 or a part of it. */
        if (H5Aread(attribute, type, &text) < 0 || !text)
            return COFFER_OK;
        size = strnlen(text, MAX_TEXT + 1);
        coffer_status status = COFFER_OK;
        if (size <= MAX_TEXT && coffer__utf8_valid(text, size))
            status = coffer_pycauset_changes_set_string(into->changes, path, text, size, into->err);
        H5free_memory(text);
        return status;
    }
    if (size > MAX_TEXT)
        return COFFER_OK;
    text = coffer__malloc(size);
    if (!text)
        return coffer__fail_no_memory(into->err, size);
    coffer_status status = COFFER_OK;
    if (H5Aread(attribute, type, text) >= 0) {
        size = strnlen(text, size);
        if (coffer__utf8_valid(text, size))
            status = coffer_pycauset_changes_set_string(into->changes, path, text, size, into->err);
    }
    coffer__free(text);
    return status;
}

static coffer_status take_number(taking *into, const char *path, hid_t attribute, hid_t type)
{
    char *names[2];
    coffer_dtype dtype = coffer__hdf5_dtype(type, names);
    union {
        double f64;
        int64_t i64;
        uint64_t u64;
        int8_t boolean;
    } value;
    hid_t read_as = -1;
    coffer_status status = COFFER_OK;
    H5free_memory(names[0]);
    H5free_memory(names[1]);
    if (dtype == COFFER_DTYPE_BOOL)
        read_as = coffer__hdf5_type(COFFER_DTYPE_BOOL, NULL);
    else if (coffer_dtype_is_float(dtype))
        read_as = H5Tcopy(H5T_NATIVE_DOUBLE);
    else if (coffer_dtype_is_integer(dtype))
        read_as = H5Tcopy(H5Tget_sign(type) == H5T_SGN_2 ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64);
    if (read_as < 0)
        return COFFER_OK;
    if (H5Aread(attribute, read_as, &value) < 0)
        status = coffer__hdf5_fail(into->file, "cannot read an attribute", into->err);
    else if (dtype == COFFER_DTYPE_BOOL)
        status = coffer_pycauset_changes_set_bool(into->changes, path, value.boolean != 0, into->err);
    else if (coffer_dtype_is_float(dtype))
        status = coffer_pycauset_changes_set_f64(into->changes, path, value.f64, into->err);
    else if (H5Tget_sign(type) == H5T_SGN_2)
        status = coffer_pycauset_changes_set_i64(into->changes, path, value.i64, into->err);
    else
        status = coffer_pycauset_changes_set_u64(into->changes, path, value.u64, into->err);
    H5Tclose(read_as);
    return status;
}

static herr_t take_attribute(hid_t dataset, const char *name, const H5A_info_t *info, void *context)
{
    taking *into = context;
    (void)info;
    hid_t attribute = H5Aopen(dataset, name, H5P_DEFAULT);
    if (attribute < 0)
        return 0;
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    bool single = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    if (type >= 0 && single && name[0] && coffer__utf8_valid(name, strlen(name))) {
        const char *path = path_of(into, name);
        if (into->path.failed)
            into->status = coffer__fail_no_memory(into->err, strlen(name));
        else if (H5Tget_class(type) == H5T_STRING)
            into->status = take_text(into, path, attribute, type);
        else
            into->status = take_number(into, path, attribute, type);
    }
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    H5Aclose(attribute);
    return into->status ? -1 : 0;
}

coffer_status coffer__hdf5_take_attributes(coffer_pycauset_changes **out, const coffer__hdf5 *file,
                                           hid_t dataset, coffer_error *err)
{
    taking into = { file, NULL, COFFER__BUFFER_INIT, COFFER_OK, err };
    hsize_t at = 0;
    coffer_status status = coffer_pycauset_changes_new(&into.changes, err);
    if (status)
        return status;
    if (H5Aiterate2(dataset, H5_INDEX_NAME, H5_ITER_INC, &at, take_attribute, &into) < 0)
        status = into.status ? into.status : coffer__hdf5_fail(file, "cannot list the attributes", err);
    coffer__buffer_free(&into.path);
    if (status)
        coffer_pycauset_changes_free(into.changes);
    else
        *out = into.changes;
    return status;
}

/* ---- Out ---- */

static hid_t type_of(const coffer_pycauset_value *value)
{
    hid_t type;
    switch (coffer_pycauset_value_kind(value)) {
    case COFFER_PYCAUSET_BOOL:
        return coffer__hdf5_type(COFFER_DTYPE_BOOL, NULL);
    case COFFER_PYCAUSET_I64:
        return coffer__hdf5_type(COFFER_DTYPE_I64, NULL);
    case COFFER_PYCAUSET_U64:
        return coffer__hdf5_type(COFFER_DTYPE_U64, NULL);
    case COFFER_PYCAUSET_F64:
        return coffer__hdf5_type(COFFER_DTYPE_F64, NULL);
    default:
        type = H5Tcopy(H5T_C_S1);
        if (type >= 0 && (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
            H5Tclose(type);
            type = -1;
        }
        return type;
    }
}

static bool write_value(hid_t attribute, hid_t type, const coffer_pycauset_value *value)
{
    const int8_t boolean = coffer_pycauset_value_bool(value);
    const int64_t i64 = coffer_pycauset_value_i64(value);
    const uint64_t u64 = coffer_pycauset_value_u64(value);
    const double f64 = coffer_pycauset_value_f64(value);
    const char *text;
    switch (coffer_pycauset_value_kind(value)) {
    case COFFER_PYCAUSET_BOOL:
        return H5Awrite(attribute, type, &boolean) >= 0;
    case COFFER_PYCAUSET_I64:
        return H5Awrite(attribute, type, &i64) >= 0;
    case COFFER_PYCAUSET_U64:
        return H5Awrite(attribute, type, &u64) >= 0;
    case COFFER_PYCAUSET_F64:
        return H5Awrite(attribute, type, &f64) >= 0;
    default:
        text = coffer_pycauset_value_text(value, NULL);
        return H5Awrite(attribute, type, &text) >= 0;
    }
}

static bool put_attribute(hid_t dataset, const char *name, const coffer_pycauset_value *value)
{
    hid_t type = type_of(value), space = H5Screate(H5S_SCALAR), attribute = -1;
    if (type >= 0 && space >= 0)
        attribute = H5Acreate2(dataset, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && write_value(attribute, type, value);
    if (attribute >= 0)
        H5Aclose(attribute);
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    return good;
}

static bool is_single(const coffer_pycauset_value *value)
{
    size_t len;
    switch (coffer_pycauset_value_kind(value)) {
    case COFFER_PYCAUSET_BOOL:
    case COFFER_PYCAUSET_I64:
    case COFFER_PYCAUSET_U64:
    case COFFER_PYCAUSET_F64:
        return true;
    case COFFER_PYCAUSET_STRING:
        return strlen(coffer_pycauset_value_text(value, &len)) == len;
    default:
        return false;
    }
}

coffer_status coffer__hdf5_put_attributes(const coffer__hdf5 *file, hid_t dataset,
                                          const coffer_pycauset_value *properties, coffer_error *err)
{
    for (size_t i = 0; i < coffer_pycauset_value_count(properties); i++) {
        const coffer_pycauset_value *value = coffer_pycauset_value_at(properties, i);
        const char *name = coffer_pycauset_value_key_at(properties, i, NULL);
        if (name && name[0] && is_single(value) && !put_attribute(dataset, name, value))
            return coffer__hdf5_fail(file, "cannot write an attribute", err);
    }
    return COFFER_OK;
}

#endif
