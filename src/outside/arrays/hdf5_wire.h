/* The frames between libcoffer and the program coffer-hdf5. The library asks and then answers the
 * questions of the program until DONE comes. The program may be in the hands of a malicious file: the library
 * checks all that it gets. */
#ifndef COFFER_OUTSIDE_HDF5_WIRE_H
#define COFFER_OUTSIDE_HDF5_WIRE_H

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/cursor.h"
#include "base/helper.h"
#include "outside/arrays/hdf5.h"

#include <string.h>

typedef enum coffer__hdf5_frame {
    /* Requests */
    COFFER__HDF5_OPEN = 1,   /* u8 writes, u8 has_file, u64 size, u64 memory */
    COFFER__HDF5_CLOSE,      /* */
    COFFER__HDF5_LIST,       /* → ITEM: u8 is_matrix, name */
    COFFER__HDF5_CHOOSE,     /* name → ITEM: u32 dimensions, u64 extent of each */
    COFFER__HDF5_DESCRIBE,   /* → ITEM: a description */
    COFFER__HDF5_READ,       /* u32 dtype, u32 dimensions, u64 start and u64 count of each → DATA */
    COFFER__HDF5_ATTRIBUTES, /* name of an object; "" = the chosen dataset → ITEM: attribute */
    COFFER__HDF5_CREATE,     /* u32 dtype, u32 dimensions, u64 size of each, name */
    COFFER__HDF5_WRITE,      /* u64 bytes, u64 start of both, u64 size of both; then BYTES */
    COFFER__HDF5_PUT,        /* attribute */
    /* Answers to NEED, and the values of WRITE */
    COFFER__HDF5_BYTES, /* empty when reading failed */
    /* From the program */
    COFFER__HDF5_NEED,     /* u64 offset, u32 length → BYTES */
    COFFER__HDF5_STORE,    /* u64 offset, bytes; not answered */
    COFFER__HDF5_TRUNCATE, /* u64 size; not answered */
    COFFER__HDF5_ITEM,
    COFFER__HDF5_DATA, /* values, in order */
    COFFER__HDF5_DONE  /* i32 status, text; the end of every request */
} coffer__hdf5_frame;

/* Data is cut into pieces of this size, which leaves room for the numbers before it. */
#define COFFER__HDF5_PIECE (COFFER__FRAME_MAX - 64)
/* Longer names and texts are not passed on. */
#define COFFER__HDF5_MAX_TEXT (COFFER__FRAME_MAX / 2)

static inline void coffer__hdf5_put_u32(coffer__buffer *out, uint32_t value)
{
    uint8_t bytes[4];
    coffer__store_u32(bytes, value);
    coffer__buffer_append(out, bytes, sizeof bytes);
}

static inline void coffer__hdf5_put_u64(coffer__buffer *out, uint64_t value)
{
    uint8_t bytes[8];
    coffer__store_u64(bytes, value);
    coffer__buffer_append(out, bytes, sizeof bytes);
}

/* A length, the bytes, a NUL. */
static inline void coffer__hdf5_put_text(coffer__buffer *out, const char *text, size_t len)
{
    coffer__hdf5_put_u32(out, (uint32_t)len);
    coffer__buffer_append(out, text, len);
    coffer__buffer_append(out, "", 1);
}

/* Borrowed, without a NUL inside and with one at the end; NULL when it is not so. */
static inline const char *coffer__hdf5_get_text(coffer__cursor *from, size_t *len)
{
    uint32_t size = coffer__cursor_u32(from);
    const uint8_t *text =
        from->failed || size == UINT32_MAX ? NULL : coffer__cursor_bytes(from, (size_t)size + 1);
    if (!text || strnlen((const char *)text, (size_t)size + 1) != size)
        return NULL;
    if (len)
        *len = size;
    return (const char *)text;
}

/* hdf5_wire.c */
void coffer__hdf5_put_attribute_frame(coffer__buffer *out, const coffer__hdf5_attribute *attribute);
bool coffer__hdf5_get_attribute_frame(coffer__hdf5_attribute *out, coffer__cursor *from);
void coffer__hdf5_put_dataset_frame(coffer__buffer *out, const coffer__hdf5_dataset *dataset);
bool coffer__hdf5_get_dataset_frame(coffer__hdf5_dataset *out, coffer__cursor *from);

#endif
