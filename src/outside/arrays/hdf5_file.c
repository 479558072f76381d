/* The HDF5 module: files. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "outside/arrays/hdf5_private.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

/* libhdf5 keeps its state in global variables. */
static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;

/* The only name that the driver below opens. */
static const char the_name[] = "coffer";

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
    return ((const driver_file *)file)->handle->bytes.size;
}

/* Bytes past the end read as zeros, as libhdf5 expects of its drivers. */
static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t offset, size_t len,
                          void *out)
{
    coffer__hdf5 *handle = ((driver_file *)file)->handle;
    coffer_status status;
    (void)type, (void)transfer;
    uint64_t there = offset < handle->bytes.size ? handle->bytes.size - offset : 0;
    size_t some = there < len ? (size_t)there : len;
    if (handle->failure.status)
        status = handle->failure.status;
    else
        status = handle->bytes.read(out, &handle->bytes, some ? offset : 0, some, &handle->failure);
    memset((uint8_t *)out + some, 0, len - some);
    return status ? -1 : 0;
}

/* libhdf5 keeps a file that it could not close and returns to it when the program ends. So a write that fails
 * is recorded in the handle and reported to libhdf5 as done, like all writes after it. */
static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t offset, size_t len,
                           const void *bytes)
{
    coffer__hdf5 *handle = ((driver_file *)file)->handle;
    uint64_t end;
    (void)type, (void)transfer;
    if (!handle->bytes.write || !coffer__add_u64(&end, offset, len))
        return -1;
    if (!handle->failure.status)
        handle->bytes.write(&handle->bytes, offset, bytes, len, &handle->failure);
    if (end > handle->bytes.size)
        handle->bytes.size = end;
    return 0;
}

/* A file that is shorter than what is allocated counts as truncated. */
static herr_t driver_truncate(H5FD_t *file, hid_t transfer, hbool_t closing)
{
    coffer__hdf5 *handle = ((driver_file *)file)->handle;
    haddr_t end = ((driver_file *)file)->end;
    (void)transfer, (void)closing;
    if (!handle->bytes.truncate || handle->failure.status || handle->bytes.size == end)
        return 0;
    handle->bytes.truncate(&handle->bytes, end, &handle->failure);
    handle->bytes.size = end;
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
        file = handle->bytes.write ? H5Fcreate(the_name, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                                   : H5Fopen(the_name, H5F_ACC_RDONLY, access);
    if (access >= 0)
        H5Pclose(access);
    return file;
}

static coffer_status open_handle(coffer__hdf5 **out, const coffer__hdf5_bytes *bytes, coffer_error *err)
{
    coffer__hdf5 *handle = coffer__calloc(1, sizeof *handle);
    if (!handle)
        return coffer__fail_no_memory(err, sizeof *handle);
    handle->bytes = *bytes;
    handle->dataset = handle->space = handle->type = -1;
    begin(handle);
    handle->file = open_file(handle);
    if (handle->file < 0) {
        coffer_status status = coffer__hdf5_fail(handle, bytes->write ? "cannot create" : "cannot open", err);
        end(handle);
        coffer__free(handle);
        return status;
    }
    *out = handle;
    return COFFER_OK;
}

static coffer_status close_handle(coffer__hdf5 *file, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!file)
        return COFFER_OK;
    coffer__hdf5_close_dataset(file);
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

coffer_status coffer__hdf5_fail(const coffer__hdf5 *file, const char *what, coffer_error *err)
{
    const char *text = "no reason given";
    if (file->failure.status) {
        if (err)
            *err = file->failure;
        return file->failure.status;
    }
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, (void *)&text);
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "HDF5: %s: %s", what, text);
}

static const char *library_version(void)
{
    static char text[40];
    unsigned major = 0, minor = 0, release = 0;
    pthread_mutex_lock(&in_use);
    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "%u.%u.%u", major, minor, release);
    pthread_mutex_unlock(&in_use);
    return text;
}

static const coffer__hdf5_module table = {
    COFFER__MODULE_INIT(coffer__hdf5_module, library_version),
    open_handle,
    close_handle,
    coffer__hdf5_list,
    coffer__hdf5_choose,
    coffer__hdf5_describe,
    coffer__hdf5_read_rows,
    coffer__hdf5_read_block,
    coffer__hdf5_attributes,
    coffer__hdf5_create_dataset,
    coffer__hdf5_write_tile,
    coffer__hdf5_put_attribute,
};
COFFER__MODULE_EXPORT(hdf5, table);
