#include "outside/arrays/hdf5.h"

#include "io/file.h"
#include "io/source_private.h"

#include <string.h>

bool coffer__hdf5_probe(const uint8_t *head, size_t len)
{
    static const uint8_t magic[8] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n' };
    return len >= sizeof magic && memcmp(head, magic, sizeof magic) == 0;
}

const coffer__hdf5_module *coffer__hdf5_load(coffer_error *err)
{
    const coffer__hdf5_module *linked = coffer__module_linked(COFFER__MODULE_HDF5);
    if (linked)
        return linked;
    return coffer__module_program(COFFER__MODULE_HDF5, err) ? &coffer__hdf5_remote : NULL;
}

static coffer_status read_source(void *out, const coffer__hdf5_bytes *bytes, uint64_t offset, size_t len,
                                 coffer_error *err)
{
    return coffer_source_read_at(out, bytes->src, offset, len, err);
}

static coffer_status read_file(void *out, const coffer__hdf5_bytes *bytes, uint64_t offset, size_t len,
                               coffer_error *err)
{
    return coffer__file_read_at(bytes->fd, out, len, offset, NULL, err);
}

static coffer_status write_file(const coffer__hdf5_bytes *bytes, uint64_t offset, const void *data,
                                size_t len, coffer_error *err)
{
    return coffer__file_write_at(bytes->fd, data, len, offset, NULL, err);
}

static coffer_status truncate_file(const coffer__hdf5_bytes *bytes, uint64_t size, coffer_error *err)
{
    return coffer__file_truncate(bytes->fd, size, NULL, err);
}

coffer__hdf5_bytes coffer__hdf5_bytes_of_source(coffer_source *src)
{
    return (coffer__hdf5_bytes){ .src = src,
                                 .fd = coffer__source_descriptor(src),
                                 .name = coffer_source_name(src),
                                 .size = coffer_source_size(src),
                                 .read = read_source };
}

coffer__hdf5_bytes coffer__hdf5_bytes_of_file(int fd, const char *name)
{
    return (coffer__hdf5_bytes){
        .fd = fd, .name = name, .read = read_file, .write = write_file, .truncate = truncate_file
    };
}
