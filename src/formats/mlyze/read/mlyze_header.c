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

uint32_t coffer__mlyze_header_sum(const uint8_t header[COFFER__MLYZE_HEADER_SIZE], uint32_t flags)
{
    uint32_t sum = coffer__crc32(0, header, COFFER__MLYZE_HEADER_CRC_AT);
    if (!(flags & COFFER__MLYZE_FLAG_FULL_SUMS))
        return sum;
    return coffer__crc32(sum, header + COFFER__MLYZE_EVENT_COUNT_AT,
                         COFFER__MLYZE_HEADER_SIZE - COFFER__MLYZE_EVENT_COUNT_AT);
}

coffer_status coffer__mlyze_check_header_sum(const coffer__mlyze_header *header, coffer_error *err)
{
    uint32_t found = coffer__mlyze_header_sum(header->bytes, header->flags);
    uint32_t expected = coffer__load_u32(header->bytes + COFFER__MLYZE_HEADER_CRC_AT);
    if (coffer__mlyze_has_full_sums(header) && !coffer__mlyze_has_sums(header))
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER__MLYZE_FLAGS_AT,
                            "flags %" PRIx32 ": %x without %x is damage", header->flags,
                            COFFER__MLYZE_FLAG_FULL_SUMS, COFFER__MLYZE_FLAG_CHECKSUMS);
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

/* ---- The checksum of a plain trace ---- */

/* Lower case only, so that every flipped bit of a digit counts. */
static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool coffer__mlyze_find_plain_sum(uint32_t *out, const char *text, size_t len)
{
    static const char form[] = COFFER__MLYZE_PLAIN_SUM;
    const size_t digits_at = COFFER__MLYZE_PLAIN_SUM_LENGTH - COFFER__MLYZE_PLAIN_SUM_FROM_END;
    const size_t digits_end = digits_at + COFFER__MLYZE_PLAIN_SUM_DIGITS;
    uint32_t sum = 0;
    if (len <= COFFER__MLYZE_PLAIN_SUM_LENGTH)
        return false;
    text += len - COFFER__MLYZE_PLAIN_SUM_LENGTH;
    if (memcmp(text, form, digits_at) != 0 || memcmp(text + digits_end, form + digits_end, 2) != 0)
        return false;
    for (size_t i = digits_at; i < digits_end; i++) {
        int digit = digit_of(text[i]);
        if (digit < 0)
            return false;
        sum = sum << 4 | (uint32_t)digit;
    }
    *out = sum;
    return true;
}

#define PIECE ((size_t)1 << 20)

/* The CRC-32 of the file with zeros for the digits at an offset. */
static coffer_status sum_file(uint32_t *out, coffer_source *src, uint64_t digits_at, coffer_error *err)
{
    uint64_t size = coffer_source_size(src), at = 0;
    uint8_t *piece = coffer__malloc(PIECE);
    coffer_status status = COFFER_OK;
    uint32_t sum = 0;
    if (!piece)
        return coffer__fail_no_memory(err, PIECE);
    while (!status && at < size) {
        size_t len = size - at < PIECE ? (size_t)(size - at) : PIECE;
        status = coffer_source_read_at(piece, src, at, len, err);
        for (uint64_t i = digits_at; !status && i < digits_at + COFFER__MLYZE_PLAIN_SUM_DIGITS; i++) {
            if (i >= at && i - at < len)
                piece[i - at] = '0';
        }
        sum = status ? 0 : coffer__crc32(sum, piece, len);
        at += len;
    }
    coffer__free(piece);
    if (!status)
        *out = sum;
    return status;
}

coffer_status coffer__mlyze_verify_plain(const coffer_mlyze *trace, coffer_error *err)
{
    const coffer__mlyze_metadata *metadata = &trace->metadata;
    const coffer__json_value *root = metadata->json ? coffer__json_root(metadata->json) : NULL;
    uint32_t said, found = 0;
    if (coffer__mlyze_has_sums(&trace->header) || !root ||
        (!coffer__json_find(root, COFFER__MLYZE_PLAIN_SUM_KIND_KEY) &&
         !coffer__json_find(root, COFFER__MLYZE_PLAIN_SUM_KEY)))
        return COFFER_OK;
    if (!coffer__mlyze_find_plain_sum(&said, metadata->text, metadata->text_len))
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER__MLYZE_HEADER_SIZE,
                            "the checksum at the end of the metadata is damaged");
    uint64_t digits_at = COFFER__MLYZE_HEADER_SIZE + metadata->text_len - COFFER__MLYZE_PLAIN_SUM_FROM_END;
    coffer_status status = sum_file(&found, trace->source, digits_at, err);
    if (status || found == said)
        return status;
    return coffer__fail(err, COFFER_E_BAD_CHECKSUM, digits_at,
                        "the checksum of the file is %08" PRIx32 ", its bytes give %08" PRIx32
                        ": events, names or times were changed",
                        said, found);
}
