/* Element types of HDF5 and of Coffer. */
#include "outside/arrays/hdf5_private.h"

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
