/* Preamble, slots, and the framing of metadata blocks. */
#include "formats/pycauset/pycauset_private.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <string.h>

/* A slot caught while it is written fails its checksum, and so may the other when a second commit overtakes a
 * slow reader. */
#define READ_ATTEMPTS 8
#define SMALL_BLOCK 4096 /* read onto the stack */

static const char slot_letters[2] = { 'A', 'B' };

/* ---- Slots ---- */

void coffer__pycauset_judge_slot(coffer__pycauset_slot *slot, uint64_t file_size)
{
    if (!slot->crc_matches)
        slot->fault = COFFER_E_BAD_CHECKSUM;
    else if (!coffer__range_fits(slot->payload_offset, slot->payload_length, file_size) ||
             !coffer__range_fits(slot->metadata_offset, slot->metadata_length, file_size) ||
             slot->payload_offset < COFFER__PYCAUSET_HEADER_SIZE ||
             slot->metadata_offset < COFFER__PYCAUSET_HEADER_SIZE)
        slot->fault = COFFER_E_OUT_OF_BOUNDS;
    else if (slot->payload_offset % COFFER__PYCAUSET_PAYLOAD_ALIGNMENT != 0 ||
             slot->metadata_offset % COFFER__PYCAUSET_BLOCK_ALIGNMENT != 0)
        slot->fault = COFFER_E_MISALIGNED;
    else
        slot->fault = COFFER_OK;
}

static coffer_status explain_range(const char *what, char letter, uint64_t offset, uint64_t length,
                                   uint64_t alignment, uint64_t file_size, uint64_t place, coffer_error *err)
{
    uint64_t end;
    if (!coffer__add_u64(&end, offset, length))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place,
                            "slot %c: %s at %" PRIu64 " of %" PRIu64
                            " bytes exceeds the largest possible offset",
                            letter, what, offset, length);
    if (end > file_size)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place,
                            "slot %c: %s ends at %" PRIu64 ", file has %" PRIu64, letter, what, end,
                            file_size);
    if (offset < COFFER__PYCAUSET_HEADER_SIZE)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place,
                            "slot %c: %s at %" PRIu64 " is inside the header of %d bytes", letter, what,
                            offset, COFFER__PYCAUSET_HEADER_SIZE);
    if (offset % alignment != 0)
        return coffer__fail(err, COFFER_E_MISALIGNED, place,
                            "slot %c: %s at %" PRIu64 ", not a multiple of %" PRIu64, letter, what, offset,
                            alignment);
    return COFFER_OK;
}

coffer_status coffer__pycauset_explain_slot(const coffer__pycauset_header *header, int which,
                                            uint64_t file_size, coffer_error *err)
{
    const coffer__pycauset_slot *slot = &header->slots[which];
    char letter = slot_letters[which];
    uint64_t place = coffer__pycauset_slot_place(which);
    coffer_status status;
    if (!slot->crc_matches)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, place, "slot %c: its checksum does not match",
                            letter);
    status = explain_range("payload", letter, slot->payload_offset, slot->payload_length,
                           COFFER__PYCAUSET_PAYLOAD_ALIGNMENT, file_size, place, err);
    if (!status)
        status = explain_range("metadata", letter, slot->metadata_offset, slot->metadata_length,
                               COFFER__PYCAUSET_BLOCK_ALIGNMENT, file_size, place, err);
    return status;
}

static void load_slot(coffer__pycauset_slot *out, const uint8_t *bytes, uint64_t file_size)
{
    out->generation = coffer__load_u64(bytes + COFFER__PYCAUSET_SLOT_GENERATION_AT);
    out->payload_offset = coffer__load_u64(bytes + COFFER__PYCAUSET_SLOT_PAYLOAD_OFFSET_AT);
    out->payload_length = coffer__load_u64(bytes + COFFER__PYCAUSET_SLOT_PAYLOAD_LENGTH_AT);
    out->metadata_offset = coffer__load_u64(bytes + COFFER__PYCAUSET_SLOT_METADATA_OFFSET_AT);
    out->metadata_length = coffer__load_u64(bytes + COFFER__PYCAUSET_SLOT_METADATA_LENGTH_AT);
    out->hot_offset = coffer__load_u64(bytes + COFFER__PYCAUSET_SLOT_HOT_OFFSET_AT);
    out->hot_length = coffer__load_u64(bytes + COFFER__PYCAUSET_SLOT_HOT_LENGTH_AT);
    out->crc_matches = coffer__load_u32(bytes + COFFER__PYCAUSET_SLOT_CRC_AT) ==
                       coffer__crc32(0, bytes, COFFER__PYCAUSET_SLOT_CRC_AT);
    out->reserved_zero = true;
    for (int i = COFFER__PYCAUSET_SLOT_RESERVED_AT; i < COFFER__PYCAUSET_SLOT_SIZE; i++)
        out->reserved_zero = out->reserved_zero && bytes[i] == 0;
    coffer__pycauset_judge_slot(out, file_size);
}

uint64_t coffer__pycauset_slot_payload(const coffer__pycauset_header *header, int which)
{
    uint64_t begin = header->slots[which].payload_offset, len = header->slots[which].payload_length;
    for (int i = 0; i < 2; i++) {
        const coffer__pycauset_slot *slot = &header->slots[i];
        if (slot->fault == COFFER_OK && slot->metadata_offset >= begin && slot->metadata_offset - begin < len)
            len = slot->metadata_offset - begin;
    }
    return len;
}

static void choose_active(coffer__pycauset_header *header)
{
    bool a = header->slots[0].fault == COFFER_OK, b = header->slots[1].fault == COFFER_OK;
    if (a && b)
        header->active = header->slots[0].generation > header->slots[1].generation ? 0 : 1;
    else
        header->active = a ? 0 : b ? 1 : -1;
}

void coffer__pycauset_store_slot(uint8_t out[COFFER__PYCAUSET_SLOT_SIZE], const coffer__pycauset_slot *slot)
{
    memset(out, 0, COFFER__PYCAUSET_SLOT_SIZE);
    coffer__store_u64(out + COFFER__PYCAUSET_SLOT_GENERATION_AT, slot->generation);
    coffer__store_u64(out + COFFER__PYCAUSET_SLOT_PAYLOAD_OFFSET_AT, slot->payload_offset);
    coffer__store_u64(out + COFFER__PYCAUSET_SLOT_PAYLOAD_LENGTH_AT, slot->payload_length);
    coffer__store_u64(out + COFFER__PYCAUSET_SLOT_METADATA_OFFSET_AT, slot->metadata_offset);
    coffer__store_u64(out + COFFER__PYCAUSET_SLOT_METADATA_LENGTH_AT, slot->metadata_length);
    coffer__store_u64(out + COFFER__PYCAUSET_SLOT_HOT_OFFSET_AT, slot->hot_offset);
    coffer__store_u64(out + COFFER__PYCAUSET_SLOT_HOT_LENGTH_AT, slot->hot_length);
    coffer__store_u32(out + COFFER__PYCAUSET_SLOT_CRC_AT,
                      coffer__crc32(0, out, COFFER__PYCAUSET_SLOT_CRC_AT));
}

/* ---- The header ---- */

static coffer_status check_preamble(const uint8_t *bytes, const char *name, coffer_error *err)
{
    uint32_t version = coffer__load_u32(bytes + COFFER__PYCAUSET_VERSION_AT);
    uint16_t header_bytes = coffer__load_u16(bytes + COFFER__PYCAUSET_HEADER_BYTES_AT);
    uint8_t endian = bytes[COFFER__PYCAUSET_ENDIAN_AT];
    if (memcmp(bytes, COFFER__PYCAUSET_MAGIC, COFFER__PYCAUSET_MAGIC_SIZE) != 0)
        return coffer__fail(err, COFFER_E_NOT_RECOGNISED, 0, "%s does not begin with " COFFER__PYCAUSET_MAGIC,
                            name);
    if (version != COFFER__PYCAUSET_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, COFFER__PYCAUSET_VERSION_AT,
                            "version %lu, only %d is supported", (unsigned long)version,
                            COFFER__PYCAUSET_VERSION);
    if (endian == 0 && header_bytes == 0)
        return coffer__fail(
            err, COFFER_E_BAD_VALUE, COFFER__PYCAUSET_ENDIAN_AT,
            "byte order and header length are 0: a file that the pycauset program keeps while "
            "it computes, not one that it saved");
    if (endian != COFFER__PYCAUSET_ENDIAN)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER__PYCAUSET_ENDIAN_AT,
                            "byte order is %u, only 1 (little-endian) is supported", endian);
    if (header_bytes != COFFER__PYCAUSET_HEADER_SIZE)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER__PYCAUSET_HEADER_BYTES_AT,
                            "header of %u bytes, it must be %d", header_bytes, COFFER__PYCAUSET_HEADER_SIZE);
    if (bytes[COFFER__PYCAUSET_RESERVED_AT] != 0)
        return coffer__fail(err, COFFER_E_RESERVED_NOT_ZERO, COFFER__PYCAUSET_RESERVED_AT,
                            "reserved byte of the preamble is %u, not 0",
                            bytes[COFFER__PYCAUSET_RESERVED_AT]);
    return COFFER_OK;
}

static coffer_status read_once(coffer__pycauset_header *out, coffer_source *src, coffer_error *err)
{
    uint8_t bytes[COFFER__PYCAUSET_SLOTS_END];
    coffer_status status = coffer_source_read_at(bytes, src, 0, sizeof bytes, err);
    if (status)
        return status;
    for (int i = 0; i < 2; i++)
        load_slot(&out->slots[i], bytes + COFFER__PYCAUSET_SLOT_A_AT + i * COFFER__PYCAUSET_SLOT_SIZE,
                  coffer_source_size(src));
    choose_active(out);
    return check_preamble(bytes, coffer_source_name(src), err);
}

coffer_status coffer__pycauset_read_header(coffer__pycauset_header *out, coffer_source *src,
                                           coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (coffer_source_size(src) < COFFER__PYCAUSET_HEADER_SIZE)
        return coffer__fail(err, COFFER_E_TRUNCATED, coffer_source_size(src),
                            "the file has %" PRIu64 " bytes, the header alone has %d",
                            coffer_source_size(src), COFFER__PYCAUSET_HEADER_SIZE);
    for (int attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
        status = read_once(out, src, err);
        if (status || out->active >= 0)
            break;
    }
    return status;
}

coffer_status coffer__pycauset_expect_active(const coffer__pycauset_header *header, coffer_source *src,
                                             coffer_error *err)
{
    coffer_error why[2] = { COFFER_ERROR_INIT, COFFER_ERROR_INIT };
    if (header->active >= 0)
        return COFFER_OK;
    /* Two commits since the source was opened put both slots past the size that it knows. */
    if (!coffer__source_settled(src))
        return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                            "changed since it was opened: open it again");
    for (int i = 0; i < 2; i++)
        coffer__pycauset_explain_slot(header, i, coffer_source_size(src), &why[i]);
    return coffer__fail(err, why[0].status, why[0].offset, "no valid header slot: %s; %s", why[0].text,
                        why[1].text);
}

void coffer__pycauset_store_header(uint8_t out[COFFER__PYCAUSET_HEADER_SIZE], const coffer__pycauset_slot *a,
                                   const coffer__pycauset_slot *b)
{
    memset(out, 0, COFFER__PYCAUSET_HEADER_SIZE);
    memcpy(out, COFFER__PYCAUSET_MAGIC, COFFER__PYCAUSET_MAGIC_SIZE);
    coffer__store_u32(out + COFFER__PYCAUSET_VERSION_AT, COFFER__PYCAUSET_VERSION);
    out[COFFER__PYCAUSET_ENDIAN_AT] = COFFER__PYCAUSET_ENDIAN;
    coffer__store_u16(out + COFFER__PYCAUSET_HEADER_BYTES_AT, COFFER__PYCAUSET_HEADER_SIZE);
    coffer__pycauset_store_slot(out + COFFER__PYCAUSET_SLOT_A_AT, a);
    coffer__pycauset_store_slot(out + COFFER__PYCAUSET_SLOT_A_AT + COFFER__PYCAUSET_SLOT_SIZE, b);
}

void coffer__pycauset_store_fresh_header(uint8_t out[COFFER__PYCAUSET_HEADER_SIZE],
                                         const coffer__pycauset_slot *slot)
{
    coffer__pycauset_slot a = *slot, b;
    if (a.generation == 0)
        a.generation = 1;
    b = a;
    b.generation--;
    coffer__pycauset_store_header(out, &a, &b);
}

/* ---- Metadata blocks ---- */

static coffer_status check_framing(const uint8_t *block, uint64_t offset, uint64_t length, coffer_error *err)
{
    uint32_t version = coffer__load_u32(block + COFFER__PYCAUSET_BLOCK_VERSION_AT),
             encoding = coffer__load_u32(block + COFFER__PYCAUSET_BLOCK_ENCODING_AT);
    uint64_t payload = coffer__load_u64(block + COFFER__PYCAUSET_BLOCK_LENGTH_AT);
    if (memcmp(block, COFFER__PYCAUSET_BLOCK_MAGIC, COFFER__PYCAUSET_BLOCK_MAGIC_SIZE) != 0)
        return coffer__fail(err, COFFER_E_BAD_MAGIC, offset,
                            "the metadata block at %" PRIu64
                            " does not begin with " COFFER__PYCAUSET_BLOCK_MAGIC,
                            offset);
    if (version != COFFER__PYCAUSET_BLOCK_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, offset + COFFER__PYCAUSET_BLOCK_VERSION_AT,
                            "metadata block of version %lu, only %d is supported", (unsigned long)version,
                            COFFER__PYCAUSET_BLOCK_VERSION);
    if (encoding != COFFER__PYCAUSET_ENCODING_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, offset + COFFER__PYCAUSET_BLOCK_ENCODING_AT,
                            "metadata in encoding version %lu, only %d is supported", (unsigned long)encoding,
                            COFFER__PYCAUSET_ENCODING_VERSION);
    if (coffer__load_u32(block + COFFER__PYCAUSET_BLOCK_RESERVED_AT) != 0 ||
        coffer__load_u32(block + COFFER__PYCAUSET_BLOCK_RESERVED_2_AT) != 0)
        return coffer__fail(err, COFFER_E_RESERVED_NOT_ZERO, offset + COFFER__PYCAUSET_BLOCK_RESERVED_AT,
                            "reserved fields of the metadata block at %" PRIu64 " are %lu and %lu, not 0",
                            offset,
                            (unsigned long)coffer__load_u32(block + COFFER__PYCAUSET_BLOCK_RESERVED_AT),
                            (unsigned long)coffer__load_u32(block + COFFER__PYCAUSET_BLOCK_RESERVED_2_AT));
    if (payload != length - COFFER__PYCAUSET_BLOCK_HEADER)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, offset + COFFER__PYCAUSET_BLOCK_LENGTH_AT,
                            "the metadata block declares %" PRIu64 " bytes, its slot %" PRIu64, payload,
                            (length - COFFER__PYCAUSET_BLOCK_HEADER));
    return COFFER_OK;
}

static coffer_status decode_block(coffer__pycauset_tree *out, const uint8_t *block, uint64_t offset,
                                  uint64_t length, const coffer_limits *limits, coffer_error *err)
{
    coffer_status status = check_framing(block, offset, length, err);
    if (status)
        return status;
    const uint8_t *payload = block + COFFER__PYCAUSET_BLOCK_HEADER;
    size_t len = (size_t)length - COFFER__PYCAUSET_BLOCK_HEADER;
    if (coffer__load_u32(block + COFFER__PYCAUSET_BLOCK_CRC_AT) != coffer__crc32(0, payload, len))
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, offset + COFFER__PYCAUSET_BLOCK_CRC_AT,
                            "the checksum of the metadata block at %" PRIu64 " does not match", offset);
    return coffer__pycauset_decode(out, payload, len, offset + COFFER__PYCAUSET_BLOCK_HEADER, limits, err);
}

coffer_status coffer__pycauset_read_block(coffer__pycauset_tree *out, coffer_source *src, uint64_t offset,
                                          uint64_t length, const coffer_limits *limits, coffer_error *err)
{
    uint8_t small[SMALL_BLOCK], *block = small;
    coffer_status status;
    if (length < COFFER__PYCAUSET_BLOCK_HEADER)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, offset,
                            "a metadata block of %" PRIu64 " bytes, its framing alone has %d", length,
                            COFFER__PYCAUSET_BLOCK_HEADER);
    if (length > limits->json_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, offset,
                            "metadata of %" PRIu64 " bytes, the limit is %" PRIu64, length,
                            limits->json_bytes);
    if (length > sizeof small && !(block = coffer__malloc((size_t)length)))
        return coffer__fail_no_memory(err, length);
    /* A copy of its own: what is mapped may change between two looks at it. */
    status = coffer_source_read_at(block, src, offset, (size_t)length, err);
    if (!status)
        status = decode_block(out, block, offset, length, limits, err);
    if (block != small)
        coffer__free(block);
    return status;
}
