/* Attributes and descriptions of datasets as bytes, for both sides of the socket. */
#include "outside/arrays/hdf5_wire.h"

void coffer__hdf5_put_attribute_frame(coffer__buffer *out, const coffer__hdf5_attribute *attribute)
{
    uint64_t bits = 0;
    coffer__hdf5_put_u32(out, (uint32_t)attribute->kind);
    switch (attribute->kind) {
    case COFFER__HDF5_BOOL:
        bits = attribute->boolean;
        break;
    case COFFER__HDF5_I64:
        bits = (uint64_t)attribute->i64;
        break;
    case COFFER__HDF5_U64:
        bits = attribute->u64;
        break;
    case COFFER__HDF5_F64:
        memcpy(&bits, &attribute->f64, sizeof bits);
        break;
    case COFFER__HDF5_TEXT:
    case COFFER__HDF5_OTHER:
        break;
    }
    coffer__hdf5_put_u64(out, bits);
    coffer__hdf5_put_text(out, attribute->name, strlen(attribute->name));
    if (attribute->kind == COFFER__HDF5_TEXT)
        coffer__hdf5_put_text(out, attribute->text, attribute->len);
}

bool coffer__hdf5_get_attribute_frame(coffer__hdf5_attribute *out, coffer__cursor *from)
{
    uint32_t kind = coffer__cursor_u32(from);
    uint64_t bits = coffer__cursor_u64(from);
    const char *name = coffer__hdf5_get_text(from, NULL);
    if (!name || kind > COFFER__HDF5_OTHER)
        return false;
    memset(out, 0, sizeof *out);
    out->name = name;
    switch (kind) {
    case COFFER__HDF5_BOOL:
        out->kind = COFFER__HDF5_BOOL;
        out->boolean = bits != 0;
        return true;
    case COFFER__HDF5_I64:
        out->kind = COFFER__HDF5_I64;
        out->i64 = (int64_t)bits;
        return true;
    case COFFER__HDF5_U64:
        out->kind = COFFER__HDF5_U64;
        out->u64 = bits;
        return true;
    case COFFER__HDF5_F64:
        out->kind = COFFER__HDF5_F64;
        memcpy(&out->f64, &bits, sizeof bits);
        return true;
    case COFFER__HDF5_TEXT:
        out->kind = COFFER__HDF5_TEXT;
        out->text = coffer__hdf5_get_text(from, &out->len);
        return out->text != NULL;
    default:
        out->kind = COFFER__HDF5_OTHER;
        return true;
    }
}

enum { HAS_VALUES = 1, IS_WIDE = 2, IS_ELSEWHERE = 4, IS_CHUNKED = 8 };

void coffer__hdf5_put_dataset_frame(coffer__buffer *out, const coffer__hdf5_dataset *dataset)
{
    uint32_t flags = (dataset->has_values ? HAS_VALUES : 0u) | (dataset->is_wide ? IS_WIDE : 0u) |
                     (dataset->is_elsewhere ? IS_ELSEWHERE : 0u) | (dataset->is_chunked ? IS_CHUNKED : 0u);
    coffer__hdf5_put_u32(out, flags);
    coffer__hdf5_put_u32(out, (uint32_t)dataset->dimensions);
    coffer__hdf5_put_u32(out, (uint32_t)dataset->dtype);
    for (int i = 0; i < COFFER__HDF5_MAX_DIMENSIONS; i++)
        coffer__hdf5_put_u64(out, dataset->extent[i]);
    for (int i = 0; i < 2; i++)
        coffer__hdf5_put_u64(out, dataset->chunk[i]);
    coffer__hdf5_put_u64(out, dataset->chunk_bytes);
    coffer__hdf5_put_u64(out, dataset->stored_bytes);
    coffer__hdf5_put_text(out, dataset->filter, strlen(dataset->filter));
}

bool coffer__hdf5_get_dataset_frame(coffer__hdf5_dataset *out, coffer__cursor *from)
{
    memset(out, 0, sizeof *out);
    uint32_t flags = coffer__cursor_u32(from), dimensions = coffer__cursor_u32(from);
    uint32_t dtype = coffer__cursor_u32(from);
    out->has_values = flags & HAS_VALUES;
    out->is_wide = flags & IS_WIDE;
    out->is_elsewhere = flags & IS_ELSEWHERE;
    out->is_chunked = flags & IS_CHUNKED;
    for (int i = 0; i < COFFER__HDF5_MAX_DIMENSIONS; i++)
        out->extent[i] = coffer__cursor_u64(from);
    for (int i = 0; i < 2; i++)
        out->chunk[i] = coffer__cursor_u64(from);
    out->chunk_bytes = coffer__cursor_u64(from);
    out->stored_bytes = coffer__cursor_u64(from);
    size_t len;
    const char *filter = coffer__hdf5_get_text(from, &len);
    bool no_dimensions = dimensions == UINT32_MAX;
    if (!filter || len >= sizeof out->filter || (dimensions > COFFER__HDF5_MAX_DIMENSIONS && !no_dimensions))
        return false;
    memcpy(out->filter, filter, len + 1);
    out->dimensions = no_dimensions ? -1 : (int)dimensions;
    out->size[0] = out->dimensions >= 1 && out->dimensions <= 2 ? out->extent[0] : 1;
    out->size[1] = out->dimensions == 2 ? out->extent[1] : 1;
    out->dtype = (coffer_dtype)dtype;
    return dtype == COFFER_DTYPE_NONE || coffer_dtype_size(out->dtype) > 0;
}
