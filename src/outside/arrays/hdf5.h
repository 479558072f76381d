/* HDF5 files by libhdf5. Damaged files make it crash, loop and take memory without end, so it runs in a
 * process of its own, the program coffer-hdf5, which has limits and can open no file: hdf5_remote.c has a
 * table of functions that pass every call on. Tests and the program itself use the table of hdf5_file.c. The
 * bytes of the file are read by the library, so that a link in a file leads nowhere else, whatever it says.
 */
#ifndef COFFER_OUTSIDE_HDF5_H
#define COFFER_OUTSIDE_HDF5_H

#include "base/module.h"
#include "coffer/dtype.h"
#include "coffer/source.h"

bool coffer__hdf5_probe(const uint8_t *head, size_t len);

/* Where the bytes of a file are. */
typedef struct coffer__hdf5_bytes {
    coffer_source *src; /* reading; borrowed */
    int fd;             /* writing; reading: the file that has exactly these bytes, or −1 */
    const char *name;   /* for messages, borrowed */
    uint64_t size;
    uint64_t memory_bytes; /* that libhdf5 may use; 0 = 1 GiB */
    coffer_status (*read)(void *out, const struct coffer__hdf5_bytes *bytes, uint64_t offset, size_t len,
                          coffer_error *err);
    /* NULL for a file that is only read. */
    coffer_status (*write)(const struct coffer__hdf5_bytes *bytes, uint64_t offset, const void *data,
                           size_t len, coffer_error *err);
    coffer_status (*truncate)(const struct coffer__hdf5_bytes *bytes, uint64_t size, coffer_error *err);
} coffer__hdf5_bytes;

coffer__hdf5_bytes coffer__hdf5_bytes_of_source(coffer_source *src);
/* fd : open for reading and writing, empty. */
coffer__hdf5_bytes coffer__hdf5_bytes_of_file(int fd, const char *name);

enum { COFFER__HDF5_MAX_DIMENSIONS = 32 };

typedef struct coffer__hdf5_dataset {
    bool has_values;
    int dimensions;
    uint64_t extent[COFFER__HDF5_MAX_DIMENSIONS]; /* of every dimension */
    uint64_t size[2];   /* of a dataset with one or two dimensions, 1 where there are fewer */
    coffer_dtype dtype; /* NONE when its elements are not numbers, or wide */
    bool is_wide;       /* floats of more than 64 bits, which F64 rounds */
    bool is_elsewhere;  /* its values are in other files */
    bool is_chunked;
    uint64_t chunk[2], chunk_bytes; /* UINT64_MAX when the product overflows */
    uint64_t stored_bytes;
    char filter[48]; /* a compression that this libhdf5 does not have, such as "LZF"; "" = none */
} coffer__hdf5_dataset;

typedef struct coffer__hdf5_attribute {
    const char *name;
    enum {
        COFFER__HDF5_BOOL,
        COFFER__HDF5_I64,
        COFFER__HDF5_U64,
        COFFER__HDF5_F64,
        COFFER__HDF5_TEXT,
        COFFER__HDF5_OTHER /* an array, or of a type that none of the above holds: only its name is known */
    } kind;
    bool boolean;
    int64_t i64;
    uint64_t u64;
    double f64;
    const char *text; /* UTF-8, NUL after len bytes */
    size_t len;
} coffer__hdf5_attribute;

typedef struct coffer__hdf5 coffer__hdf5; /* a file and at most one dataset of it */

typedef struct coffer__hdf5_module {
    coffer__module common;
    /* Opens for reading, or creates a file where bytes->write is set. bytes : copied. */
    coffer_status (*open)(coffer__hdf5 **out, const coffer__hdf5_bytes *bytes, coffer_error *err);
    /* Closes and frees, also on failure. What was written is complete only when this succeeds. NULL allowed.
     */
    coffer_status (*close)(coffer__hdf5 *file, coffer_error *err);

    /* Calls visit for each dataset, once, also where several hard links lead to it. is_matrix : numbers with
     * one or two dimensions. COFFER_E_LIMIT for a file with too many objects or levels of groups. */
    coffer_status (*list)(coffer__hdf5 *file, void (*visit)(void *context, const char *name, bool is_matrix),
                          void *context, coffer_error *err);
    /* Opens a dataset for the functions below; COFFER_E_NOT_FOUND when no dataset has that name. */
    coffer_status (*choose)(coffer__hdf5 *file, const char *name, coffer_error *err);
    coffer_status (*describe)(coffer__hdf5_dataset *out, coffer__hdf5 *file, coffer_error *err);
    /* Reads rows as little-endian elements of a type: the one of the description, or F64 for wide ones. */
    coffer_status (*read_rows)(void *out, coffer__hdf5 *file, coffer_dtype dtype, uint64_t row,
                               uint64_t count, coffer_error *err);
    /* Reads a block: a start and a count for each dimension of the dataset. Elements as for read_rows. */
    coffer_status (*read_block)(void *out, coffer__hdf5 *file, coffer_dtype dtype, const uint64_t *start,
                                const uint64_t *count, coffer_error *err);
    /* Calls visit for each attribute of an object ("/" is the root group; NULL = the chosen dataset), until
     * it fails. */
    coffer_status (*attributes)(coffer__hdf5 *file, const char *object,
                                coffer_status (*visit)(void *context, const coffer__hdf5_attribute *attribute,
                                                       coffer_error *err),
                                void *context, coffer_error *err);

    coffer_status (*create_dataset)(coffer__hdf5 *file, const char *name, coffer_dtype dtype, int dimensions,
                                    const uint64_t size[2], coffer_error *err);
    coffer_status (*write_tile)(coffer__hdf5 *file, const void *values, const uint64_t start[2],
                                const uint64_t size[2], coffer_error *err);
    coffer_status (*put_attribute)(coffer__hdf5 *file, const coffer__hdf5_attribute *attribute,
                                   coffer_error *err);
} coffer__hdf5_module;

/* NULL with COFFER_E_UNSUPPORTED when the program is not installed. */
const coffer__hdf5_module *coffer__hdf5_load(coffer_error *err);
/* The table that passes calls on to the program, for tests; the other table is linked into them. */
extern const coffer__hdf5_module coffer__hdf5_remote;

#endif
