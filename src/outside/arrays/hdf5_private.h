/* Declarations shared by the files of the HDF5 module. */
#ifndef COFFER_OUTSIDE_HDF5_PRIVATE_H
#define COFFER_OUTSIDE_HDF5_PRIVATE_H

#include "outside/arrays/hdf5.h"

#define H5_USE_110_API /* of newer versions, too */
#include <hdf5.h>

struct coffer__hdf5 {
    coffer__hdf5_bytes bytes;
    coffer_error failure; /* of the disk */
    hid_t driver, file;
    H5E_auto2_t print;
    void *print_context;

    hid_t dataset, space;
    hid_t type; /* of elements in memory, those of `dtype` */
    coffer_dtype dtype;
    int dimensions;
};

/* Says why a call of libhdf5 failed: the failure of the disk, else the reason of libhdf5. */
coffer_status coffer__hdf5_fail(const coffer__hdf5 *file, const char *what, coffer_error *err);

/* The little-endian type of elements, in files and in memory; H5Tclose(). Negative on failure. names : of the
 * two parts of a complex one; NULL = "r" and "i", as h5py has it. */
hid_t coffer__hdf5_type(coffer_dtype dtype, const char *const names[2]);
/* The element type for a type of a file; COFFER_DTYPE_NONE when it is not supported. names : of the parts
 * of a complex one, H5free_memory(); NULL else. */
coffer_dtype coffer__hdf5_dtype(hid_t type, char *names[2]);

void coffer__hdf5_close_dataset(coffer__hdf5 *file);
coffer_status coffer__hdf5_list(coffer__hdf5 *file,
                                void (*visit)(void *context, const char *name, bool is_matrix), void *context,
                                coffer_error *err);
coffer_status coffer__hdf5_choose(coffer__hdf5 *file, const char *name, coffer_error *err);
coffer_status coffer__hdf5_describe(coffer__hdf5_dataset *out, coffer__hdf5 *file, coffer_error *err);
coffer_status coffer__hdf5_read_rows(void *out, coffer__hdf5 *file, coffer_dtype dtype, uint64_t row,
                                     uint64_t count, coffer_error *err);
coffer_status coffer__hdf5_read_block(void *out, coffer__hdf5 *file, coffer_dtype dtype,
                                      const uint64_t *start, const uint64_t *count, coffer_error *err);
coffer_status coffer__hdf5_create_dataset(coffer__hdf5 *file, const char *name, coffer_dtype dtype,
                                          int dimensions, const uint64_t size[2], coffer_error *err);
coffer_status coffer__hdf5_write_tile(coffer__hdf5 *file, const void *values, const uint64_t start[2],
                                      const uint64_t size[2], coffer_error *err);

coffer_status coffer__hdf5_attributes(coffer__hdf5 *file, const char *object,
                                      coffer_status (*visit)(void *context,
                                                             const coffer__hdf5_attribute *attribute,
                                                             coffer_error *err),
                                      void *context, coffer_error *err);
coffer_status coffer__hdf5_put_attribute(coffer__hdf5 *file, const coffer__hdf5_attribute *attribute,
                                         coffer_error *err);

#endif
