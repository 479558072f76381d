/* ZIP archives and NumPy files for tests, put together byte by byte. */
#ifndef SUPPORT_ARCHIVE_H
#define SUPPORT_ARCHIVE_H

#include "base/buffer.h"

typedef struct archive_member {
    const char *name;
    const void *data;
    size_t len;
    bool deflate;
    /* False values to write into the archive; 0 = the correct value. */
    uint32_t crc;
    uint64_t size;
    uint16_t method, flags;
} archive_member;

/* The bytes of an archive; coffer__buffer_free. zip64 : every size and place in 64 bits. */
coffer__buffer archive_build(const archive_member *members, size_t count, bool zip64);

/* A version 1 .npy file with this literal as its header. */
coffer__buffer archive_npy(const char *literal, const void *data, size_t len);

#endif
