/* HDF5 files by libhdf5, where the library was built with it. The bytes go through the library's own sources
 * and files, so that a link in a file leads nowhere else, whatever it says. libhdf5 is not safe in threads: a
 * file that is open holds a lock. */
#ifndef COFFER_CONVERT_HDF5_H
#define COFFER_CONVERT_HDF5_H

#include "coffer/dtype.h"
#include "coffer/error.h"
#include "coffer/source.h"

bool coffer__hdf5_probe(const uint8_t *head, size_t len);

#ifdef COFFER_HAVE_HDF5

#define H5_USE_110_API /* of newer versions, too */
#include <hdf5.h>

typedef struct coffer__hdf5 coffer__hdf5;

/* Opens for reading. src : borrowed, must outlive the handle. */
coffer_status coffer__hdf5_open(coffer__hdf5 **out, coffer_source *src, coffer_error *err);
/* Makes a new file in an open, empty one. name : for messages, borrowed. */
coffer_status coffer__hdf5_create(coffer__hdf5 **out, int fd, const char *name, coffer_error *err);
hid_t coffer__hdf5_file(const coffer__hdf5 *file);
/* Closes and frees, also on failure. What was written is complete only when this succeeds. NULL allowed. */
coffer_status coffer__hdf5_close(coffer__hdf5 *file, coffer_error *err);
/* What went wrong with the disk so far, or COFFER_OK: libhdf5 does not tell. */
coffer_status coffer__hdf5_status(const coffer__hdf5 *file, coffer_error *err);
/* Puts into words why a call of libhdf5 failed: what the disk said, else what libhdf5 says. */
coffer_status coffer__hdf5_fail(const coffer__hdf5 *file, const char *what, coffer_error *err);

/* The little-endian type of elements, in files and in memory; H5Tclose(). Negative on failure. names : of the
 * two parts of a complex one; NULL = "r" and "i", as h5py has it. */
hid_t coffer__hdf5_type(coffer_dtype dtype, const char *const names[2]);
/* The elements that a type of a file is read as; COFFER_DTYPE_NONE when there are none. names : of the parts
 * of a complex one, H5free_memory(); NULL else. */
coffer_dtype coffer__hdf5_dtype(hid_t type, char *names[2]);

#endif

#endif
