/* Attributes of an HDF5 dataset that are a single number, truth value or text. */
#ifndef COFFER_OUTSIDE_HDF5_ATTRIBUTES_H
#define COFFER_OUTSIDE_HDF5_ATTRIBUTES_H

#include "outside/arrays/hdf5.h"

#ifdef COFFER_HAVE_HDF5

typedef struct coffer__hdf5_attribute {
    const char *name;   /* UTF-8 */
    coffer_dtype dtype; /* BOOL, I64, U64 or F64; NONE for a text */
    union {
        int8_t boolean;
        int64_t i64;
        uint64_t u64;
        double f64;
        struct {
            const char *bytes; /* UTF-8, NUL-terminated when it is written */
            size_t len;
        } text;
    } as;
} coffer__hdf5_attribute;

/* The attribute is borrowed for the call. */
typedef coffer_status (*coffer__hdf5_attribute_visitor)(void *context,
                                                        const coffer__hdf5_attribute *attribute,
                                                        coffer_error *err);

/* Visits the attributes of a dataset by name; arrays and other types are skipped. */
coffer_status coffer__hdf5_visit_attributes(const coffer__hdf5 *file, hid_t dataset,
                                            coffer__hdf5_attribute_visitor visit, void *context,
                                            coffer_error *err);
coffer_status coffer__hdf5_put_attribute(const coffer__hdf5 *file, hid_t dataset,
                                         const coffer__hdf5_attribute *attribute, coffer_error *err);

#endif

#endif
