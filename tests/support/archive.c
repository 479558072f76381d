#include "support/archive.h"

#include "base/bytes.h"
#include "base/crc32.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <isa-l/igzip_lib.h>

static void put_u16(coffer__buffer *out, uint16_t value)
{
    coffer__store_u16(coffer__buffer_extend(out, 2), value);
}

static void put_u32(coffer__buffer *out, uint32_t value)
{
    coffer__store_u32(coffer__buffer_extend(out, 4), value);
}

static void put_u64(coffer__buffer *out, uint64_t value)
{
    coffer__store_u64(coffer__buffer_extend(out, 8), value);
}

static coffer__buffer pack(const archive_member *member)
{
    coffer__buffer out = COFFER__BUFFER_INIT;
    if (!member->deflate) {
        coffer__buffer_append(&out, member->data, member->len);
        return out;
    }
    struct isal_zstream *stream = malloc(sizeof *stream);
    size_t room = member->len + member->len / 8 + 1024;
    assert_non_null(stream);
    isal_deflate_stateless_init(stream);
    stream->next_in = (uint8_t *)(uintptr_t)member->data;
    stream->avail_in = (uint32_t)member->len;
    stream->next_out = coffer__buffer_extend(&out, room);
    stream->avail_out = (uint32_t)room;
    stream->end_of_stream = 1;
    assert_int_equal(isal_deflate_stateless(stream), COMP_OK);
    out.len = stream->total_out;
    free(stream);
    return out;
}

/* The fields that the local and the central header share. */
static void put_common(coffer__buffer *out, const archive_member *member, size_t packed, bool zip64,
                       size_t extra_len)
{
    uint64_t size = member->size ? member->size : member->len;
    put_u16(out, zip64 ? 45 : 20);
    put_u16(out, member->flags);
    put_u16(out, member->method ? member->method : member->deflate ? 8 : 0);
    put_u32(out, 0); /* date */
    put_u32(out, member->crc ? member->crc : coffer__crc32(0, member->data, member->len));
    put_u32(out, zip64 ? UINT32_MAX : (uint32_t)packed);
    put_u32(out, zip64 ? UINT32_MAX : (uint32_t)size);
    put_u16(out, (uint16_t)strlen(member->name));
    put_u16(out, (uint16_t)extra_len);
}

static void put_zip64_sizes(coffer__buffer *out, const archive_member *member, size_t packed, size_t len)
{
    put_u16(out, 1);
    put_u16(out, (uint16_t)(len - 4));
    put_u64(out, member->size ? member->size : member->len);
    put_u64(out, packed);
}

static void put_central(coffer__buffer *out, const archive_member *member, size_t packed, uint64_t at,
                        bool zip64)
{
    put_u32(out, 0x02014b50);
    put_u16(out, 45);
    put_common(out, member, packed, zip64, zip64 ? 28 : 0);
    coffer__buffer_fill(out, 0, 10);
    put_u32(out, zip64 ? UINT32_MAX : (uint32_t)at);
    coffer__buffer_append(out, member->name, strlen(member->name));
    if (zip64) {
        put_zip64_sizes(out, member, packed, 28);
        put_u64(out, at);
    }
}

static void put_end(coffer__buffer *out, size_t count, uint64_t directory_at, bool zip64)
{
    uint64_t size = out->len - directory_at, at = out->len;
    if (zip64) {
        put_u32(out, 0x06064b50);
        put_u64(out, 44);
        put_u32(out, 45 << 16 | 45);
        put_u64(out, 0);
        put_u64(out, count);
        put_u64(out, count);
        put_u64(out, size);
        put_u64(out, directory_at);
        put_u32(out, 0x07064b50);
        put_u32(out, 0);
        put_u64(out, at);
        put_u32(out, 1);
    }
    put_u32(out, 0x06054b50);
    put_u32(out, 0);
    put_u16(out, zip64 ? UINT16_MAX : (uint16_t)count);
    put_u16(out, zip64 ? UINT16_MAX : (uint16_t)count);
    put_u32(out, zip64 ? UINT32_MAX : (uint32_t)size);
    put_u32(out, zip64 ? UINT32_MAX : (uint32_t)directory_at);
    put_u16(out, 0);
}

coffer__buffer archive_build(const archive_member *members, size_t count, bool zip64)
{
    coffer__buffer out = COFFER__BUFFER_INIT, directory = COFFER__BUFFER_INIT;
    for (size_t i = 0; i < count; i++) {
        coffer__buffer packed = pack(&members[i]);
        put_central(&directory, &members[i], packed.len, out.len, zip64);
        put_u32(&out, 0x04034b50);
        put_common(&out, &members[i], packed.len, zip64, zip64 ? 20 : 0);
        coffer__buffer_append(&out, members[i].name, strlen(members[i].name));
        if (zip64)
            put_zip64_sizes(&out, &members[i], packed.len, 20);
        coffer__buffer_append(&out, packed.data, packed.len);
        coffer__buffer_free(&packed);
    }
    uint64_t directory_at = out.len;
    coffer__buffer_append(&out, directory.data, directory.len);
    put_end(&out, count, directory_at, zip64);
    coffer__buffer_free(&directory);
    assert_false(out.failed);
    return out;
}

coffer__buffer archive_npy(const char *literal, const void *data, size_t len)
{
    coffer__buffer out = COFFER__BUFFER_INIT;
    coffer__buffer_append(&out, "\x93NUMPY\1\0", 8);
    put_u16(&out, (uint16_t)strlen(literal));
    coffer__buffer_append(&out, literal, strlen(literal));
    coffer__buffer_append(&out, data, len);
    assert_false(out.failed);
    return out;
}
