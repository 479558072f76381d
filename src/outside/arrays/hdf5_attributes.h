/* Attributes of a dataset and the properties of a matrix. */
#ifndef COFFER_CONVERT_HDF5_ATTRIBUTES_H
#define COFFER_CONVERT_HDF5_ATTRIBUTES_H

#include "coffer/pycauset.h"
#include "outside/arrays/hdf5.h"

#ifdef COFFER_HAVE_HDF5

/* Single numbers, truth values and texts among the attributes become properties; others are left out. *out is
 * NULL when there are none. */
coffer_status coffer__hdf5_take_attributes(coffer_pycauset_changes **out, const coffer__hdf5 *file,
                                           hid_t dataset, coffer_error *err);
/* The same way back. */
coffer_status coffer__hdf5_put_attributes(const coffer__hdf5 *file, hid_t dataset,
                                          const coffer_pycauset_value *properties, coffer_error *err);

#endif

#endif
