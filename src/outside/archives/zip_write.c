#include "outside/archives/zip.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/fail.h"

#include <string.h>

enum {
    LOCAL_MAGIC = 0x04034b50,
    DESCRIPTOR_MAGIC = 0x08074b50,
    CENTRAL_MAGIC = 0x02014b50,
    END_MAGIC = 0x06054b50,
    END64_MAGIC = 0x06064b50,
    LOCATOR_MAGIC = 0x07064b50,
    VERSION_ZIP64 = 45,
    FLAG_DESCRIPTOR = 1 << 3,
    FLAG_UTF8 = 1 << 11,
    EXTRA_ZIP64 = 1,
    FIRST_DATE = 0x21 /* 1 January 1980: same input, same bytes */
};

void coffer__zip_writer_init(coffer__zip_writer *writer, coffer__sink *sink)
{
    *writer = (coffer__zip_writer){ .sink = sink };
    coffer__buffer_init(&writer->directory, SIZE_MAX);
}

void coffer__zip_writer_free(coffer__zip_writer *writer)
{
    coffer__buffer_free(&writer->directory);
}

coffer_status coffer__zip_begin(coffer__zip_writer *writer, const char *name, coffer_error *err)
{
    uint8_t head[30] = { 0 }, extra[20] = { 0 };
    size_t len = strlen(name);
    writer->name = name;
    writer->begin = coffer__sink_position(writer->sink);
    writer->size = 0;
    writer->crc = 0;
    coffer__store_u32(head, LOCAL_MAGIC);
    coffer__store_u16(head + 4, VERSION_ZIP64);
    coffer__store_u16(head + 6, FLAG_DESCRIPTOR | FLAG_UTF8);
    coffer__store_u16(head + 12, FIRST_DATE);
    coffer__store_u32(head + 18, UINT32_MAX);
    coffer__store_u32(head + 22, UINT32_MAX);
    coffer__store_u16(head + 26, (uint16_t)len);
    coffer__store_u16(head + 28, sizeof extra);
    coffer__store_u16(extra, EXTRA_ZIP64);
    coffer__store_u16(extra + 2, 16);
    coffer_status status = coffer__sink_write(writer->sink, head, sizeof head, err);
    if (!status)
        status = coffer__sink_write(writer->sink, name, len, err);
    return status ? status : coffer__sink_write(writer->sink, extra, sizeof extra, err);
}

coffer_status coffer__zip_put(coffer__zip_writer *writer, const void *bytes, size_t len, coffer_error *err)
{
    writer->crc = coffer__crc32(writer->crc, bytes, len);
    writer->size += len;
    return coffer__sink_write(writer->sink, bytes, len, err);
}

static void put_central(coffer__zip_writer *writer)
{
    uint8_t head[46] = { 0 }, extra[28] = { 0 };
    size_t len = strlen(writer->name);
    coffer__store_u32(head, CENTRAL_MAGIC);
    coffer__store_u16(head + 4, VERSION_ZIP64);
    coffer__store_u16(head + 6, VERSION_ZIP64);
    coffer__store_u16(head + 8, FLAG_DESCRIPTOR | FLAG_UTF8);
    coffer__store_u16(head + 14, FIRST_DATE);
    coffer__store_u32(head + 16, writer->crc);
    coffer__store_u32(head + 20, UINT32_MAX);
    coffer__store_u32(head + 24, UINT32_MAX);
    coffer__store_u16(head + 28, (uint16_t)len);
    coffer__store_u16(head + 30, sizeof extra);
    coffer__store_u32(head + 42, UINT32_MAX);
    coffer__store_u16(extra, EXTRA_ZIP64);
    coffer__store_u16(extra + 2, 24);
    coffer__store_u64(extra + 4, writer->size);
    coffer__store_u64(extra + 12, writer->size);
    coffer__store_u64(extra + 20, writer->begin);
    coffer__buffer_append(&writer->directory, head, sizeof head);
    coffer__buffer_append(&writer->directory, writer->name, len);
    coffer__buffer_append(&writer->directory, extra, sizeof extra);
}

coffer_status coffer__zip_end(coffer__zip_writer *writer, coffer_error *err)
{
    uint8_t descriptor[24];
    coffer__store_u32(descriptor, DESCRIPTOR_MAGIC);
    coffer__store_u32(descriptor + 4, writer->crc);
    coffer__store_u64(descriptor + 8, writer->size);
    coffer__store_u64(descriptor + 16, writer->size);
    put_central(writer);
    writer->count++;
    return coffer__sink_write(writer->sink, descriptor, sizeof descriptor, err);
}

coffer_status coffer__zip_finish(coffer__zip_writer *writer, coffer_error *err)
{
    uint8_t end64[56] = { 0 }, locator[20] = { 0 }, end[22] = { 0 };
    uint64_t at = coffer__sink_position(writer->sink), size = writer->directory.len;
    uint16_t short_count = writer->count < UINT16_MAX ? (uint16_t)writer->count : UINT16_MAX;
    if (writer->directory.failed)
        return coffer__fail_no_memory(err, size);
    coffer__store_u32(end64, END64_MAGIC);
    coffer__store_u64(end64 + 4, sizeof end64 - 12);
    coffer__store_u16(end64 + 12, VERSION_ZIP64);
    coffer__store_u16(end64 + 14, VERSION_ZIP64);
    coffer__store_u64(end64 + 24, writer->count);
    coffer__store_u64(end64 + 32, writer->count);
    coffer__store_u64(end64 + 40, size);
    coffer__store_u64(end64 + 48, at);
    coffer__store_u32(locator, LOCATOR_MAGIC);
    coffer__store_u64(locator + 8, at + size);
    coffer__store_u32(locator + 16, 1);
    coffer__store_u32(end, END_MAGIC);
    coffer__store_u16(end + 8, short_count);
    coffer__store_u16(end + 10, short_count);
    coffer__store_u32(end + 12, UINT32_MAX);
    coffer__store_u32(end + 16, UINT32_MAX);
    coffer_status status = coffer__sink_write(writer->sink, writer->directory.data, (size_t)size, err);
    if (!status)
        status = coffer__sink_write(writer->sink, end64, sizeof end64, err);
    if (!status)
        status = coffer__sink_write(writer->sink, locator, sizeof locator, err);
    return status ? status : coffer__sink_write(writer->sink, end, sizeof end, err);
}
