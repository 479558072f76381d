#include "outside/arrays/hdf5.h"

#include <string.h>

bool coffer__hdf5_probe(const uint8_t *head, size_t len)
{
    static const uint8_t magic[8] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n' };
    return len >= sizeof magic && memcmp(head, magic, sizeof magic) == 0;
}

#ifdef COFFER_HAVE_HDF5

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"

#include <pthread.h>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

/* libhdf5 keeps its state in global variables. */
static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;

/* The only name that the driver below opens. */
static const char the_name[] = "coffer";

struct coffer__hdf5 {
    coffer_source *src; /* when reading */
    int fd;             /* when writing */
    const char *name;
    uint64_t size;
    coffer_error failure; /* of the disk */
    hid_t driver, file;
    H5E_auto2_t print;
    void *print_context;
};

/* ---- A driver that reads and writes through the handle ---- */

typedef struct driver_file {
    H5FD_t common; /* libhdf5's, comes first */
    coffer__hdf5 *handle;
    haddr_t end; /* of what is allocated */
} driver_file;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t max_address)
{
    coffer__hdf5 *const *handle = H5Pget_driver_info(access);
    (void)flags, (void)max_address;
    /* Any other name comes out of the file: an external link. */
    if (!handle || strcmp(name, the_name) != 0)
        return NULL;
    driver_file *file = coffer__calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->handle = *handle;
    return &file->common;
}

static herr_t driver_close(H5FD_t *file)
{
    coffer__free(file);
    return 0;
}

static int driver_compare(const H5FD_t *a, const H5FD_t *b)
{
    const coffer__hdf5 *x = ((const driver_file *)a)->handle, *y = ((const driver_file *)b)->handle;
    return (x > y) - (x < y);
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t driver_get_end(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const driver_file *)file)->end;
}

static herr_t driver_set_end(H5FD_t *file, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    ((driver_file *)file)->end = end;
    return 0;
}

static haddr_t driver_get_size(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const driver_file *)file)->handle->size;
}

/* What lies behind the end reads as zeros, as libhdf5 expects of its drivers. */
static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t offset, size_t len,
                          void *out)
{
    coffer__hdf5 *handle = ((driver_file *)file)->handle;
    coffer_status status;
    (void)type, (void)transfer;
    uint64_t there = offset < handle->size ? handle->size - offset : 0;
    size_t some = there < len ? (size_t)there : len;
    if (handle->failure.status)
        status = handle->failure.status;
    else if (handle->src)
        status = coffer_source_read_at(out, handle->src, some ? offset : 0, some, &handle->failure);
    else
        status = coffer__file_read_at(handle->fd, out, some, offset, NULL, &handle->failure);
    memset((uint8_t *)out + some, 0, len - some);
    return status ? -1 : 0;
}

/* A file that libhdf5 could not close stays in its tables, and it comes back to it when the program ends. So
 * a write that fails is remembered and then passes for done, as do those after it; who wrote asks the handle.
 */
static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t offset, size_t len,
                           const void *bytes)
{
    coffer__hdf5 *handle = ((driver_file *)file)->handle;
    uint64_t end;
    (void)type, (void)transfer;
    if (handle->src || !coffer__add_u64(&end, offset, len))
        return -1;
    if (!handle->failure.status)
        coffer__file_write_at(handle->fd, bytes, len, offset, NULL, &handle->failure);
    if (end > handle->size)
        handle->size = end;
    return 0;
}

/* The file is as long as what is allocated, or a reader takes it for a cut one. */
static herr_t driver_truncate(H5FD_t *file, hid_t transfer, hbool_t closing)
{
    coffer__hdf5 *handle = ((driver_file *)file)->handle;
    haddr_t end = ((driver_file *)file)->end;
    (void)transfer, (void)closing;
    if (handle->src || handle->failure.status || handle->size == end)
        return 0;
    coffer__file_truncate(handle->fd, end, NULL, &handle->failure);
    handle->size = end;
    return 0;
}

static const H5FD_class_t driver_class = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600,
#endif
    .name = "coffer",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(coffer__hdf5 *),
    .open = driver_open,
    .close = driver_close,
    .cmp = driver_compare,
    .query = driver_query,
    .get_eoa = driver_get_end,
    .set_eoa = driver_set_end,
    .get_eof = driver_get_size,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* ---- Handles ---- */

static void begin(coffer__hdf5 *handle)
{
    pthread_mutex_lock(&in_use);
    /* The program's own way to print errors comes back at the end. */
    H5Eget_auto2(H5E_DEFAULT, &handle->print, &handle->print_context);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static void end(coffer__hdf5 *handle)
{
    if (handle->driver >= 0)
        H5FDunregister(handle->driver);
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, handle->print, handle->print_context);
    pthread_mutex_unlock(&in_use);
}

static hid_t open_file(coffer__hdf5 *handle)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    handle->driver = H5FDregister(&driver_class);
    if (access >= 0 && handle->driver >= 0 && H5Pset_driver(access, handle->driver, &handle) >= 0 &&
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0)
        file = handle->src ? H5Fopen(the_name, H5F_ACC_RDONLY, access)
                           : H5Fcreate(the_name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (access >= 0)
        H5Pclose(access);
    return file;
}

static coffer_status start(coffer__hdf5 **out, coffer_source *src, int fd, const char *name,
                           coffer_error *err)
{
    coffer__hdf5 *handle = coffer__calloc(1, sizeof *handle);
    if (!handle)
        return coffer__fail_no_memory(err, sizeof *handle);
    handle->src = src;
    handle->fd = fd;
    handle->name = name;
    handle->size = src ? coffer_source_size(src) : 0;
    begin(handle);
    handle->file = open_file(handle);
    if (handle->file < 0) {
        coffer_status status = coffer__hdf5_fail(handle, src ? "cannot open" : "cannot create", err);
        end(handle);
        coffer__free(handle);
        return status;
    }
    *out = handle;
    return COFFER_OK;
}

coffer_status coffer__hdf5_open(coffer__hdf5 **out, coffer_source *src, coffer_error *err)
{
    return start(out, src, -1, coffer_source_name(src), err);
}

coffer_status coffer__hdf5_create(coffer__hdf5 **out, int fd, const char *name, coffer_error *err)
{
    return start(out, NULL, fd, name, err);
}

hid_t coffer__hdf5_file(const coffer__hdf5 *file)
{
    return file->file;
}

coffer_status coffer__hdf5_close(coffer__hdf5 *file, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!file)
        return COFFER_OK;
    bool closed = H5Fclose(file->file) >= 0;
    if (!closed || file->failure.status)
        status = coffer__hdf5_fail(file, "cannot finish", err);
    end(file);
    if (closed)
        coffer__free(file);
    else if (!file->failure.status)
        coffer__fail(&file->failure, COFFER_E_IO, COFFER_OFFSET_NONE, "closed"); /* libhdf5 still has it */
    return status;
}

static herr_t keep_innermost(unsigned n, const H5E_error2_t *entry, void *context)
{
    const char **text = context;
    (void)n;
    if (entry->desc && entry->desc[0])
        *text = entry->desc;
    return 0;
}

coffer_status coffer__hdf5_status(const coffer__hdf5 *file, coffer_error *err)
{
    if (file->failure.status && err)
        *err = file->failure;
    return file->failure.status;
}

coffer_status coffer__hdf5_fail(const coffer__hdf5 *file, const char *what, coffer_error *err)
{
    const char *text = "no reason given";
    if (file->failure.status)
        return coffer__hdf5_status(file, err);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, (void *)&text);
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "HDF5: %s: %s", what, text);
}

/* ---- Types ---- */

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

/* As h5py and others keep truth values. */
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

#endif
