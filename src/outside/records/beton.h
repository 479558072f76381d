/* FFCV's .beton files, version 2, for reading. Little-endian, natural alignment of scalars only.
 *
 *   header, 24 bytes      0 u16 version, 2   2 u16 fields   4 u32 page size   8 u64 samples
 *                         16 u64 allocation table
 *   field, 1041 bytes     0 u8 type   1 16 bytes name   17 1024 bytes arguments
 *   rows, one per sample  the entries below one after the other; numbers and pointers aligned to 8, the row
 *                         padded to that when there is one
 *     0 float   f64                    3 bytes   u64 place, u64 size
 *     1 int     i64                    4 array   u64 place; arguments: u64 shape[32], u64 length of a NumPy
 *     2 image   u8 mode (0 JPEG, 1               type description in JSON, and that
 *               raw), u16 width, u16   5 json    as bytes, with a NUL at the end
 *               height, u64 place      6 tensor  as array
 *   allocation table, to the end of the file: u64 sample, u64 place, u64 size
 */
#ifndef COFFER_OUTSIDE_BETON_H
#define COFFER_OUTSIDE_BETON_H

#include "coffer/dtype.h"
#include "coffer/limits.h"
#include "coffer/source.h"

#define COFFER__BETON_MAX_DIMS 13 /* arrays with more are refused */

typedef enum coffer__beton_type {
    COFFER__BETON_FLOAT = 0,
    COFFER__BETON_INT = 1,
    COFFER__BETON_IMAGE = 2,
    COFFER__BETON_BYTES = 3,
    COFFER__BETON_ARRAY = 4,
    COFFER__BETON_JSON = 5,
    COFFER__BETON_TENSOR = 6
} coffer__beton_type;

typedef struct coffer__beton_field {
    char name[17];
    coffer__beton_type type;
    uint32_t row_offset;
    coffer_dtype dtype; /* arrays */
    uint32_t ndim;
    uint64_t dims[COFFER__BETON_MAX_DIMS];
    uint64_t size; /* of one array */
} coffer__beton_field;

typedef struct coffer__beton_allocation {
    uint64_t place, size;
} coffer__beton_allocation;

typedef struct coffer__beton {
    coffer_source *src;
    uint64_t samples, rows_at, row_size;
    coffer__beton_field *fields;
    size_t field_count;
    coffer__beton_allocation *allocations; /* sorted by place */
    size_t allocation_count;
} coffer__beton;

/* A value of a row: a number, or where its bytes are. */
typedef struct coffer__beton_value {
    int64_t i64;
    double f64;
    uint64_t place, size; /* inside the file */
    bool raw;             /* image */
    uint16_t width, height;
} coffer__beton_value;

bool coffer__beton_probe(const uint8_t *head, size_t len);
/* src : borrowed, must outlive it. */
coffer_status coffer__beton_open(coffer__beton *out, coffer_source *src, const coffer_limits *limits,
                                 coffer_error *err);
void coffer__beton_close(coffer__beton *beton); /* its members, not itself */
/* row : row_size bytes. sample : for messages. */
coffer_status coffer__beton_value_of(coffer__beton_value *out, const coffer__beton *beton, const uint8_t *row,
                                     uint64_t sample, size_t field, coffer_error *err);

#endif
