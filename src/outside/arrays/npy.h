/* NumPy's .npy files: one array after a header that is a Python literal. Versions 1, 2 and 3, plain and
 * structured types.
 *
 *   "\x93NUMPY" | u8 major | u8 minor | u16 (version 1) or u32 header length | header | the elements
 *
 *   header: {'descr': TYPE, 'fortran_order': False, 'shape': (N,), }, spaces, a line feed; ends at a multiple
 *   of 64. TYPE is a string such as '<u4', or a list of fields [('name', '<u4'), ('name', '<f4', (3,)), …].
 */
#ifndef COFFER_CONVERT_NPY_H
#define COFFER_CONVERT_NPY_H

#include "base/buffer.h"
#include "coffer/dtype.h"
#include "coffer/source.h"
#include "outside/archives/zip.h"
#include "outside/text/number.h"

#define COFFER__NPY_MAX_DIMENSIONS 64
#define COFFER__NPY_MAX_FIELDS 4096
/* Far above what any program writes; NumPy itself stops at 10,000 bytes unless told otherwise. */
#define COFFER__NPY_MAX_HEADER ((size_t)1 << 20)
#define COFFER__NPY_MAX_ITEM ((uint64_t)1 << 30)

typedef struct coffer__npy_field {
    char *name; /* NUL-terminated UTF-8; NULL when the array is not structured */
    char kind;  /* NumPy's letter: 'b' 'i' 'u' 'f' 'c' 'S' 'U' 'V' 'M' 'm' */
    bool big_endian;
    uint64_t size;     /* of one element, in bytes */
    uint64_t elements; /* 1, or how many of them the field holds */
    uint64_t offset;   /* within the item */
} coffer__npy_field;

typedef struct coffer__npy {
    bool structured;
    bool fortran_order;
    coffer__npy_field *fields; /* one when not structured */
    size_t field_count;
    uint64_t item_size;
    uint64_t shape[COFFER__NPY_MAX_DIMENSIONS];
    size_t dimensions;
    uint64_t count;       /* product of the shape: 1 without dimensions */
    uint64_t data_offset; /* where the elements start */
} coffer__npy;

bool coffer__npy_probe(const uint8_t *head, size_t len);
/* Reads the header; on success the file has at least count × item_size bytes after it. */
coffer_status coffer__npy_read(coffer__npy *out, coffer_source *src, coffer_error *err);
void coffer__npy_free(coffer__npy *npy); /* its members, not itself */
const coffer__npy_field *coffer__npy_find(const coffer__npy *npy, const char *name);

/* True when an element of the field is a number that coffer__npy_number can load. */
bool coffer__npy_is_number(const coffer__npy_field *field);
/* One number of the field, from an item's bytes, whatever the byte order. */
coffer__number coffer__npy_number(const coffer__npy_field *field, const uint8_t *item);

/* Whether NumPy has a type of this kind and size: readers accept any size. */
bool coffer__npy_is_type(char kind, uint64_t size);
/* The library's type of a field's elements, whatever their byte order; COFFER_DTYPE_NONE for other types.
 */
coffer_dtype coffer__npy_dtype(const coffer__npy_field *field);
/* Swaps the bytes of big-endian elements in place, each part of a complex one separately. */
void coffer__npy_swap(void *elements, coffer_dtype dtype, size_t count);

/* ---- Writing ---- */

/* The field of a plain array of this type, without a name. False when NumPy has no such type. */
bool coffer__npy_field_of(coffer__npy_field *out, coffer_dtype dtype);

/* Appends magic, version and header for `npy` (data_offset is not looked at). Names and kinds as above;
 * the oldest version that can hold the header is taken, as NumPy does. */
void coffer__npy_put_header(coffer__buffer *out, const coffer__npy *npy);

/* NumPy's .npz: a ZIP archive of .npy files, one for each array. */
typedef struct coffer__npz_array {
    const char *name; /* as numpy.load names it, without ".npy"; borrowed */
    size_t member;    /* index in the archive */
    coffer__npy npy;  /* data_offset counts from the start of the member */
} coffer__npz_array;

typedef struct coffer__npz {
    coffer__zip *zip;
    coffer__npz_array *arrays; /* in the order of the archive */
    size_t count;
    char *names;
} coffer__npz;

/* Reads the directory and the header of every array. Members other than .npy files are left out. src :
 * borrowed, must outlive the set. */
coffer_status coffer__npz_open(coffer__npz *out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err);
void coffer__npz_close(coffer__npz *npz);                          /* its members, not itself */
size_t coffer__npz_find(const coffer__npz *npz, const char *name); /* SIZE_MAX: none */
/* The .npy file of an array; coffer_source_close(). */
coffer_status coffer__npz_source(coffer_source **out, const coffer__npz *npz, size_t index,
                                 coffer__zip_access access, coffer_error *err);
/* Offset of an array's elements in the archive; COFFER_OFFSET_NONE when they are deflated. */
uint64_t coffer__npz_plain_offset(const coffer__npz *npz, size_t index);

#endif
