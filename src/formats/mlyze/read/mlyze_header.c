#include "formats/mlyze/mlyze_private.h"

#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>

static coffer_status check_header(const coffer__mlyze_header *header, uint64_t size, coffer_error *err)
{
    if (header->version == 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, COFFER__MLYZE_VERSION_AT,
                            "version 0, traces begin with version %d", COFFER__MLYZE_VERSION);
    if (header->metadata_len > size - COFFER__MLYZE_HEADER_SIZE)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER__MLYZE_METADATA_LENGTH_AT,
                            "metadata ends at %" PRIu64 ", file has %" PRIu64,
                            (uint64_t)COFFER__MLYZE_HEADER_SIZE + header->metadata_len, size);
    return COFFER_OK;
}

coffer_status coffer__mlyze_read_header(coffer__mlyze_header *out, coffer_source *src, coffer_error *err)
{
    uint64_t size = coffer_source_size(src);
    coffer__mlyze_header header = { 0 };
    size_t have = size < sizeof header.bytes ? (size_t)size : sizeof header.bytes;
    const uint8_t *bytes = header.bytes;
    coffer_status status = coffer_source_read_at(header.bytes, src, 0, have, err);
    if (status)
        return status;
    if (have < COFFER__MLYZE_MAGIC_SIZE || memcmp(bytes, COFFER__MLYZE_MAGIC, COFFER__MLYZE_MAGIC_SIZE) != 0)
        return coffer__fail(err, COFFER_E_NOT_RECOGNISED, 0, "not a trace: it does not begin with %s",
                            COFFER__MLYZE_MAGIC);
    if (have < sizeof header.bytes)
        return coffer__fail(err, COFFER_E_TRUNCATED, size, "the header takes %d bytes, file has %" PRIu64,
                            COFFER__MLYZE_HEADER_SIZE, size);
    header.version = coffer__load_u32(bytes + COFFER__MLYZE_VERSION_AT);
    header.start_time = coffer__load_u64(bytes + COFFER__MLYZE_START_AT);
    header.metadata_len = coffer__load_u32(bytes + COFFER__MLYZE_METADATA_LENGTH_AT);
    header.flags = coffer__load_u32(bytes + COFFER__MLYZE_FLAGS_AT);
    header.event_count = coffer__load_u64(bytes + COFFER__MLYZE_EVENT_COUNT_AT);
    header.event_length = coffer__load_u64(bytes + COFFER__MLYZE_EVENT_LENGTH_AT);
    status = check_header(&header, size, err);
    if (!status)
        *out = header;
    return status;
}

coffer_status coffer__mlyze_check_header_sum(const coffer__mlyze_header *header, coffer_error *err)
{
    uint32_t found = coffer__crc32(0, header->bytes, COFFER__MLYZE_HEADER_CRC_AT);
    uint32_t expected = coffer__load_u32(header->bytes + COFFER__MLYZE_HEADER_CRC_AT);
    if (!coffer__mlyze_has_sums(header) || found == expected)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER__MLYZE_HEADER_CRC_AT,
                        "the header's checksum is %08" PRIx32 ", its bytes give %08" PRIx32, expected, found);
}

coffer_status coffer__mlyze_check_metadata_sum(const coffer__mlyze_header *header, const char *text,
                                               coffer_error *err)
{
    uint32_t expected = coffer__load_u32(header->bytes + COFFER__MLYZE_METADATA_CRC_AT), found;
    if (!coffer__mlyze_has_sums(header))
        return COFFER_OK;
    found = coffer__crc32(0, text, header->metadata_len);
    if (found == expected)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER__MLYZE_METADATA_CRC_AT,
                        "the metadata's checksum is %08" PRIx32 ", its bytes give %08" PRIx32, expected,
                        found);
}

coffer_status coffer__mlyze_read_metadata(char **out, coffer_source *src, const coffer__mlyze_header *header,
                                          const coffer_limits *limits, coffer_error *err)
{
    size_t len = header->metadata_len;
    coffer_status status;
    char *text;
    if (len > limits->json_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER__MLYZE_HEADER_SIZE,
                            "metadata of %zu bytes, the limit is %" PRIu64, len, limits->json_bytes);
    text = coffer__malloc(len + 1);
    if (!text)
        return coffer__fail_no_memory(err, len + 1);
    status = coffer_source_read_at(text, src, COFFER__MLYZE_HEADER_SIZE, len, err);
    if (status)
        coffer__free(text);
    else
        *out = text;
    return status;
}
