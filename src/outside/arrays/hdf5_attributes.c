/* The HDF5 module: attributes of a dataset. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "outside/arrays/hdf5_private.h"

#include <string.h>

/* Element types of HDF5 and of Coffer. */

static hid_t half_type(void)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    /* 1 bit of sign, 5 of exponent, 10 of fraction. */
    if (type >= 0 && (H5Tset_fields(type, 15, 10, 5, 0, 10) < 0 || H5Tset_size(type, 2) < 0 ||
                      H5Tset_ebias(type, 15) < 0)) {
        H5Tclose(type);
        return -1;
    }
    return type;
}

/* The type that h5py and others use for booleans. */
static hid_t bool_type(void)
{
    const int8_t no = 0, yes = 1;
    hid_t type = H5Tenum_create(H5T_STD_I8LE);
    if (type >= 0 && (H5Tenum_insert(type, "FALSE", &no) < 0 || H5Tenum_insert(type, "TRUE", &yes) < 0)) {
        H5Tclose(type);
        return -1;
    }
    return type;
}

static hid_t complex_type(coffer_dtype dtype, const char *const names[2])
{
    static const char *const usual[2] = { "r", "i" };
    coffer_dtype part = dtype == COFFER_DTYPE_C32   ? COFFER_DTYPE_F16
                        : dtype == COFFER_DTYPE_C64 ? COFFER_DTYPE_F32
                                                    : COFFER_DTYPE_F64;
    size_t size = coffer_dtype_size(part);
    hid_t part_type = coffer__hdf5_type(part, NULL), type = H5Tcreate(H5T_COMPOUND, 2 * size);
    if (!names)
        names = usual;
    bool good = part_type >= 0 && type >= 0 && H5Tinsert(type, names[0], 0, part_type) >= 0 &&
                H5Tinsert(type, names[1], size, part_type) >= 0;
    if (part_type >= 0)
        H5Tclose(part_type);
    if (!good && type >= 0)
        H5Tclose(type);
    return good ? type : -1;
}

hid_t coffer__hdf5_type(coffer_dtype dtype, const char *const names[2])
{
    switch (dtype) {
    case COFFER_DTYPE_BOOL:
        return bool_type();
    case COFFER_DTYPE_I8:
        return H5Tcopy(H5T_STD_I8LE);
    case COFFER_DTYPE_U8:
        return H5Tcopy(H5T_STD_U8LE);
    case COFFER_DTYPE_I16:
        return H5Tcopy(H5T_STD_I16LE);
    case COFFER_DTYPE_U16:
        return H5Tcopy(H5T_STD_U16LE);
    case COFFER_DTYPE_I32:
        return H5Tcopy(H5T_STD_I32LE);
    case COFFER_DTYPE_U32:
        return H5Tcopy(H5T_STD_U32LE);
    case COFFER_DTYPE_I64:
        return H5Tcopy(H5T_STD_I64LE);
    case COFFER_DTYPE_U64:
        return H5Tcopy(H5T_STD_U64LE);
    case COFFER_DTYPE_F16:
        return half_type();
    case COFFER_DTYPE_F32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case COFFER_DTYPE_F64:
        return H5Tcopy(H5T_IEEE_F64LE);
    default:
        return complex_type(dtype, names);
    }
}

static coffer_dtype integer_dtype(hid_t type)
{
    bool has_sign = H5Tget_sign(type) == H5T_SGN_2;
    switch (H5Tget_size(type)) {
    case 1:
        return has_sign ? COFFER_DTYPE_I8 : COFFER_DTYPE_U8;
    case 2:
        return has_sign ? COFFER_DTYPE_I16 : COFFER_DTYPE_U16;
    case 3:
    case 4:
        return has_sign ? COFFER_DTYPE_I32 : COFFER_DTYPE_U32;
    default:
        return H5Tget_size(type) > 8 ? COFFER_DTYPE_NONE : has_sign ? COFFER_DTYPE_I64 : COFFER_DTYPE_U64;
    }
}

/* The narrowest that holds every number of the type. */
static coffer_dtype real_dtype(hid_t type)
{
    size_t sign, exponent_at, exponent, fraction_at, fraction;
    if (H5Tget_fields(type, &sign, &exponent_at, &exponent, &fraction_at, &fraction) < 0)
        return COFFER_DTYPE_NONE;
    if (exponent == 5 && fraction == 10 && H5Tget_size(type) == 2)
        return COFFER_DTYPE_F16;
    if (exponent <= 8 && fraction <= 23)
        return COFFER_DTYPE_F32;
    return exponent <= 11 && fraction <= 52 ? COFFER_DTYPE_F64 : COFFER_DTYPE_NONE;
}

static bool is_bool(hid_t type)
{
    int8_t no = -1, yes = -1;
    hid_t base = H5Tget_super(type);
    bool small = base >= 0 && H5Tget_size(base) == 1;
    if (base >= 0)
        H5Tclose(base);
    return small && H5Tget_nmembers(type) == 2 && H5Tenum_valueof(type, "FALSE", &no) >= 0 &&
           H5Tenum_valueof(type, "TRUE", &yes) >= 0 && no == 0 && yes == 1;
}

static coffer_dtype complex_dtype(hid_t type, char *names[2])
{
    coffer_dtype parts[2] = { COFFER_DTYPE_NONE, COFFER_DTYPE_NONE };
    if (H5Tget_nmembers(type) != 2)
        return COFFER_DTYPE_NONE;
    for (unsigned i = 0; i < 2; i++) {
        hid_t part = H5Tget_member_type(type, i);
        if (part >= 0 && H5Tget_class(part) == H5T_FLOAT)
            parts[i] = real_dtype(part);
        if (part >= 0)
            H5Tclose(part);
        names[i] = H5Tget_member_name(type, i);
    }
    bool first_real = names[0] && (names[0][0] == 'r' || names[0][0] == 'R');
    bool then_imag = names[1] && (names[1][0] == 'i' || names[1][0] == 'I');
    if (parts[0] != parts[1] || !first_real || !then_imag)
        return COFFER_DTYPE_NONE;
    return parts[0] == COFFER_DTYPE_F16   ? COFFER_DTYPE_C32
           : parts[0] == COFFER_DTYPE_F32 ? COFFER_DTYPE_C64
           : parts[0] == COFFER_DTYPE_F64 ? COFFER_DTYPE_C128
                                          : COFFER_DTYPE_NONE;
}

coffer_dtype coffer__hdf5_dtype(hid_t type, char *names[2])
{
    coffer_dtype dtype = COFFER_DTYPE_NONE;
    names[0] = names[1] = NULL;
    switch (H5Tget_class(type)) {
    case H5T_INTEGER:
        return integer_dtype(type);
    case H5T_FLOAT:
        return real_dtype(type);
    case H5T_ENUM:
        return is_bool(type) ? COFFER_DTYPE_BOOL : COFFER_DTYPE_NONE;
    case H5T_COMPOUND:
        dtype = complex_dtype(type, names);
        break;
    default:
        break;
    }
    for (unsigned i = 0; i < 2 && dtype == COFFER_DTYPE_NONE; i++) {
        H5free_memory(names[i]);
        names[i] = NULL;
    }
    return dtype;
}

/* Longer texts are skipped. */
#define MAX_TEXT ((size_t)1 << 18)

/* ---- Reading ---- */

typedef struct reading {
    const coffer__hdf5 *file;
    coffer_status (*visit)(void *context, const coffer__hdf5_attribute *attribute, coffer_error *err);
    void *context;
    coffer_status status;
    coffer_error *err;
} reading;

/* An attribute that cannot be handed over is at least named. */
static coffer_status give_other(const reading *pass, const char *name)
{
    const coffer__hdf5_attribute attribute = { .name = name, .kind = COFFER__HDF5_OTHER };
    return pass->visit(pass->context, &attribute, pass->err);
}

static coffer_status give_text(const reading *pass, const char *name, const char *text, size_t len)
{
    if (!coffer__utf8_valid(text, len))
        return give_other(pass, name);
    coffer__hdf5_attribute attribute = { .name = name, .kind = COFFER__HDF5_TEXT, .text = text, .len = len };
    return pass->visit(pass->context, &attribute, pass->err);
}

static coffer_status read_text(const reading *pass, const char *name, hid_t attribute, hid_t type)
{
    char *text = NULL;
    size_t size = H5Tget_size(type);
    coffer_status status = COFFER_OK;
    if (H5Tis_variable_str(type) > 0) {
        /* Read as it is stored: the character set of the file is UTF-8 or a part of it. */
        if (H5Aread(attribute, type, &text) < 0 || !text)
            return give_other(pass, name);
        size = strnlen(text, MAX_TEXT + 1);
        status = size <= MAX_TEXT ? give_text(pass, name, text, size) : give_other(pass, name);
        H5free_memory(text);
        return status;
    }
    if (size > MAX_TEXT)
        return give_other(pass, name);
    text = coffer__calloc(size + 1, 1);
    if (!text)
        return coffer__fail_no_memory(pass->err, size);
    if (H5Aread(attribute, type, text) >= 0)
        status = give_text(pass, name, text, strlen(text));
    else
        status = give_other(pass, name);
    coffer__free(text);
    return status;
}

static coffer_status read_number(const reading *pass, const char *name, hid_t attribute, hid_t type)
{
    char *names[2];
    coffer_dtype dtype = coffer__hdf5_dtype(type, names);
    coffer__hdf5_attribute value = { .name = name };
    int8_t boolean = 0;
    void *out = NULL;
    hid_t read_as = -1;
    H5free_memory(names[0]);
    H5free_memory(names[1]);
    if (dtype == COFFER_DTYPE_BOOL) {
        read_as = coffer__hdf5_type(COFFER_DTYPE_BOOL, NULL);
        value.kind = COFFER__HDF5_BOOL;
        out = &boolean;
    } else if (coffer_dtype_is_float(dtype)) {
        read_as = H5Tcopy(H5T_NATIVE_DOUBLE);
        value.kind = COFFER__HDF5_F64;
        out = &value.f64;
    } else if (coffer_dtype_is_integer(dtype)) {
        bool has_sign = H5Tget_sign(type) == H5T_SGN_2;
        read_as = H5Tcopy(has_sign ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64);
        value.kind = has_sign ? COFFER__HDF5_I64 : COFFER__HDF5_U64;
        out = has_sign ? (void *)&value.i64 : (void *)&value.u64;
    }
    if (read_as < 0)
        return give_other(pass, name);
    herr_t result = H5Aread(attribute, read_as, out);
    H5Tclose(read_as);
    if (result < 0)
        return coffer__hdf5_fail(pass->file, "cannot read an attribute", pass->err);
    value.boolean = boolean != 0;
    return pass->visit(pass->context, &value, pass->err);
}

static herr_t read_attribute(hid_t dataset, const char *name, const H5A_info_t *info, void *context)
{
    reading *pass = context;
    (void)info;
    hid_t attribute = H5Aopen(dataset, name, H5P_DEFAULT);
    if (attribute < 0)
        return 0;
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    bool single = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    if (name[0] && strlen(name) < MAX_TEXT && coffer__utf8_valid(name, strlen(name))) {
        if (type < 0 || !single)
            pass->status = give_other(pass, name);
        else if (H5Tget_class(type) == H5T_STRING)
            pass->status = read_text(pass, name, attribute, type);
        else
            pass->status = read_number(pass, name, attribute, type);
    }
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    H5Aclose(attribute);
    return pass->status ? -1 : 0;
}

coffer_status coffer__hdf5_attributes(coffer__hdf5 *file, const char *object,
                                      coffer_status (*visit)(void *context,
                                                             const coffer__hdf5_attribute *attribute,
                                                             coffer_error *err),
                                      void *context, coffer_error *err)
{
    reading pass = { file, visit, context, COFFER_OK, err };
    hsize_t at = 0;
    hid_t other = object ? H5Oopen(file->file, object, H5P_DEFAULT) : -1;
    if (object && other < 0)
        return coffer__hdf5_fail(file, "cannot open an object", err);
    herr_t result =
        H5Aiterate2(object ? other : file->dataset, H5_INDEX_NAME, H5_ITER_INC, &at, read_attribute, &pass);
    if (other >= 0)
        H5Oclose(other);
    if (result >= 0)
        return COFFER_OK;
    return pass.status ? pass.status : coffer__hdf5_fail(file, "cannot list the attributes", err);
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

static hid_t type_of(const coffer__hdf5_attribute *attribute)
{
    switch (attribute->kind) {
    case COFFER__HDF5_BOOL:
        return coffer__hdf5_type(COFFER_DTYPE_BOOL, NULL);
    case COFFER__HDF5_I64:
        return coffer__hdf5_type(COFFER_DTYPE_I64, NULL);
    case COFFER__HDF5_U64:
        return coffer__hdf5_type(COFFER_DTYPE_U64, NULL);
    case COFFER__HDF5_F64:
        return coffer__hdf5_type(COFFER_DTYPE_F64, NULL);
    default:
        return text_type();
    }
}

static bool write_value(hid_t out, hid_t type, const coffer__hdf5_attribute *attribute)
{
    const int8_t boolean = attribute->boolean;
    switch (attribute->kind) {
    case COFFER__HDF5_BOOL:
        return H5Awrite(out, type, &boolean) >= 0;
    case COFFER__HDF5_I64:
        return H5Awrite(out, type, &attribute->i64) >= 0;
    case COFFER__HDF5_U64:
        return H5Awrite(out, type, &attribute->u64) >= 0;
    case COFFER__HDF5_F64:
        return H5Awrite(out, type, &attribute->f64) >= 0;
    default:
        return H5Awrite(out, type, &attribute->text) >= 0;
    }
}

coffer_status coffer__hdf5_put_attribute(coffer__hdf5 *file, const coffer__hdf5_attribute *attribute,
                                         coffer_error *err)
{
    hid_t type = type_of(attribute), space = H5Screate(H5S_SCALAR), out = -1;
    if (type >= 0 && space >= 0)
        out = H5Acreate2(file->dataset, attribute->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = out >= 0 && write_value(out, type, attribute);
    if (out >= 0)
        H5Aclose(out);
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    return good ? COFFER_OK : coffer__hdf5_fail(file, "cannot write an attribute", err);
}
