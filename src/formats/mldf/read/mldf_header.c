/* The header, and whether the parts it points to lie inside the file. */
#include "formats/mldf/mldf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "formats/format.h"

#include <inttypes.h>

#define ROW_SIZE_ANYWAY ((uint32_t)1 << 20) /* harmless in a file of any size */

coffer__mldf_header coffer__mldf_load_header(const uint8_t at[COFFER__MLDF_HEADER_SIZE])
{
    return (coffer__mldf_header){
        .major = coffer__load_u16(at),
        .minor = coffer__load_u16(at + COFFER__MLDF_MINOR_AT),
        .flags = coffer__load_u32(at + COFFER__MLDF_FLAGS_AT),
        .samples = coffer__load_u64(at + COFFER__MLDF_SAMPLES_AT),
        .fields = coffer__load_u16(at + COFFER__MLDF_FIELDS_AT),
        .pad = coffer__load_u16(at + COFFER__MLDF_FIELDS_AT + 2),
        .page_size = coffer__load_u32(at + COFFER__MLDF_PAGE_SIZE_AT),
        .descriptors = coffer__load_u64(at + COFFER__MLDF_DESCRIPTORS_AT),
        .metadata = coffer__load_u64(at + COFFER__MLDF_METADATA_AT),
        .data = coffer__load_u64(at + COFFER__MLDF_DATA_AT),
        .table = coffer__load_u64(at + COFFER__MLDF_TABLE_AT),
        .data_crc = coffer__load_u32(at + COFFER__MLDF_DATA_CRC_AT),
        .table_crc = coffer__load_u32(at + COFFER__MLDF_TABLE_CRC_AT),
        .stated_data = coffer__load_u64(at + COFFER__MLDF_DATA_AT),
        .stated_table = coffer__load_u64(at + COFFER__MLDF_TABLE_AT),
    };
}

/* The tutorial's writer seeks to the data region and writes nothing when no value has a payload. A table that
 * begins with the data says that there is nothing in it. */
static void settle_empty_data(coffer__mldf_header *header, uint64_t file_size)
{
    if (header->data != header->table || header->table <= file_size)
        return;
    header->data = header->table = file_size;
}

coffer_status coffer__mldf_read_header(coffer__mldf_header *out, coffer_source *src, coffer_error *err)
{
    uint64_t size = coffer_source_size(src);
    uint8_t bytes[COFFER__MLDF_HEAD_SIZE];
    size_t have = size < sizeof bytes ? (size_t)size : sizeof bytes;
    coffer__mldf_header header;
    coffer_status status = coffer_source_read_at(bytes, src, 0, have, err);
    if (status)
        return status;
    if (have < COFFER__MLDF_MAGIC_SIZE || memcmp(bytes, COFFER__MLDF_MAGIC, COFFER__MLDF_MAGIC_SIZE) != 0)
        return coffer__fail_magic(&coffer__mldf_format, bytes, have, err);
    if (have < sizeof bytes)
        return coffer__fail(err, COFFER_E_TRUNCATED, size,
                            "magic and header take %d bytes, file has %" PRIu64, COFFER__MLDF_HEAD_SIZE,
                            size);
    header = coffer__mldf_load_header(bytes + COFFER__MLDF_HEADER_AT);
    if (header.major != COFFER__MLDF_MAJOR)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, COFFER__MLDF_HEADER_AT,
                            "version %u.%u is too %s, this program reads %d.x", header.major, header.minor,
                            header.major > COFFER__MLDF_MAJOR ? "new" : "old", COFFER__MLDF_MAJOR);
    if (!(header.flags & COFFER_MLDF_LITTLE_ENDIAN))
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER__MLDF_HEADER_AT + COFFER__MLDF_FLAGS_AT,
                            "flags are 0x%lx: the file is not little-endian", (unsigned long)header.flags);
    memcpy(header.bytes, bytes, sizeof bytes);
    settle_empty_data(&header, size);
    *out = header;
    return COFFER_OK;
}

coffer_status coffer__mldf_check_descriptors(const coffer__mldf_header *header, uint64_t file_size,
                                             coffer_error *err)
{
    uint64_t len = (uint64_t)header->fields * COFFER__MLDF_STRIDE_TUTORIAL;
    if (!coffer__range_fits(header->descriptors, len, file_size))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER__MLDF_HEADER_AT + COFFER__MLDF_DESCRIPTORS_AT,
                            "%u field descriptors take %" PRIu64 " bytes at %" PRIu64 ", file has %" PRIu64,
                            header->fields, len, header->descriptors, file_size);
    if (len > 0 && header->descriptors < COFFER__MLDF_HEAD_SIZE)
        return coffer__fail(err, COFFER_E_OVERLAP, COFFER__MLDF_HEADER_AT + COFFER__MLDF_DESCRIPTORS_AT,
                            "the field descriptors begin at %" PRIu64 ", inside the header of %d bytes",
                            header->descriptors, COFFER__MLDF_HEAD_SIZE);
    return COFFER_OK;
}

coffer_status coffer__mldf_check_rows(const coffer__mldf_header *header, uint32_t row_size,
                                      uint64_t file_size, coffer_error *err)
{
    uint64_t len = 0;
    if (!coffer__mul_u64(&len, header->samples, row_size) ||
        (len > 0 && !coffer__range_fits(header->metadata, len, file_size)))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER__MLDF_HEADER_AT + COFFER__MLDF_METADATA_AT,
                            "the rows of %" PRIu64 " samples, %lu bytes each, at %" PRIu64
                            " do not fit: file has %" PRIu64,
                            header->samples, (unsigned long)row_size, header->metadata, file_size);
    return COFFER_OK;
}

coffer_status coffer__mldf_bound_row(uint32_t row_size, const coffer__mldf_header *header, uint64_t file_size,
                                     const coffer_limits *limits, coffer_error *err)
{
    if (row_size > limits->memory_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, header->descriptors,
                            "the fields make a row of %lu bytes, the limit is %" PRIu64,
                            (unsigned long)row_size, limits->memory_bytes);
    if (row_size > file_size && row_size > ROW_SIZE_ANYWAY)
        return coffer__fail(err, COFFER_E_LIMIT, header->descriptors,
                            "the fields make a row of %lu bytes, the whole file has %" PRIu64,
                            (unsigned long)row_size, file_size);
    return COFFER_OK;
}

coffer_status coffer__mldf_check_data(const coffer__mldf_header *header, uint64_t file_size,
                                      coffer_error *err)
{
    if (header->data > file_size)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER__MLDF_HEADER_AT + COFFER__MLDF_DATA_AT,
                            "the data region begins at %" PRIu64 ", file has %" PRIu64, header->data,
                            file_size);
    return COFFER_OK;
}

coffer_status coffer__mldf_check_table(const coffer__mldf_header *header, uint64_t file_size,
                                       coffer_error *err)
{
    if (header->table > file_size)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER__MLDF_HEADER_AT + COFFER__MLDF_TABLE_AT,
                            "the allocation table begins at %" PRIu64 ", file has %" PRIu64
                            ": it may have been cut",
                            header->table, file_size);
    if ((file_size - header->table) % COFFER__MLDF_TABLE_ENTRY != 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, header->table,
                            "the allocation table has %" PRIu64 " bytes, no multiple of %d",
                            (file_size - header->table), COFFER__MLDF_TABLE_ENTRY);
    return COFFER_OK;
}
