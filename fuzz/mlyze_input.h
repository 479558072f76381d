/* Inputs for the targets of traces: corrects wrong checksums. */
#ifndef COFFER_FUZZ_MLYZE_INPUT_H
#define COFFER_FUZZ_MLYZE_INPUT_H

#include "base/bytes.h"
#include "base/crc32.h"
#include "formats/mlyze/mlyze_layout.h"
#include "input.h"

/* full : the checksums cover the headers of blocks too. */
static void fuzz_repair_blocks(uint8_t *bytes, size_t at, size_t size, bool full)
{
    while (size - at > COFFER__MLYZE_BLOCK_HEADER) {
        uint8_t *block = bytes + at;
        uint32_t stored = coffer__load_u32(block + COFFER__MLYZE_BLOCK_STORED_AT);
        if (stored > size - at - COFFER__MLYZE_BLOCK_HEADER)
            return;
        uint32_t sum = full ? coffer__crc32(0, block, COFFER__MLYZE_BLOCK_CRC_AT) : 0;
        size_t from = full ? COFFER__MLYZE_BLOCK_TIME_AT : COFFER__MLYZE_BLOCK_HEADER;
        coffer__store_u32(block + COFFER__MLYZE_BLOCK_CRC_AT,
                          coffer__crc32(sum, block + from, COFFER__MLYZE_BLOCK_HEADER - from + stored));
        at += COFFER__MLYZE_BLOCK_HEADER + stored;
    }
}

/* Writes correct checksums into header, metadata and blocks. */
static void fuzz_repair_trace(uint8_t *bytes, size_t size)
{
    if (size < COFFER__MLYZE_HEADER_SIZE)
        return;
    uint32_t flags = coffer__load_u32(bytes + COFFER__MLYZE_FLAGS_AT);
    uint32_t len = coffer__load_u32(bytes + COFFER__MLYZE_METADATA_LENGTH_AT);
    memcpy(bytes, COFFER__MLYZE_MAGIC, COFFER__MLYZE_MAGIC_SIZE);
    if (len > size - COFFER__MLYZE_HEADER_SIZE) {
        len = (uint32_t)(size - COFFER__MLYZE_HEADER_SIZE);
        coffer__store_u32(bytes + COFFER__MLYZE_METADATA_LENGTH_AT, len);
    }
    if (!(flags & COFFER__MLYZE_FLAG_CHECKSUMS))
        return;
    coffer__store_u32(bytes + COFFER__MLYZE_METADATA_CRC_AT,
                      coffer__crc32(0, bytes + COFFER__MLYZE_HEADER_SIZE, len));
    bool full = flags & COFFER__MLYZE_FLAG_FULL_SUMS;
    uint32_t sum = coffer__crc32(0, bytes, COFFER__MLYZE_HEADER_CRC_AT);
    if (full)
        sum = coffer__crc32(sum, bytes + COFFER__MLYZE_EVENT_COUNT_AT,
                            COFFER__MLYZE_HEADER_SIZE - COFFER__MLYZE_EVENT_COUNT_AT);
    coffer__store_u32(bytes + COFFER__MLYZE_HEADER_CRC_AT, sum);
    if (flags & COFFER__MLYZE_FLAG_BLOCKS)
        fuzz_repair_blocks(bytes, COFFER__MLYZE_HEADER_SIZE + len, size, full);
}

static inline coffer_mlyze_block fuzz_block(const coffer_mlyze *trace, size_t index)
{
    coffer_mlyze_block block = COFFER_MLYZE_BLOCK_INIT;
    MUST(coffer_mlyze_get_block(&block, trace, index, NULL) == COFFER_OK);
    return block;
}

static inline bool fuzz_input_open(fuzz_input *out, const uint8_t *data, size_t size)
{
    return fuzz_input_begin(out, data, size, fuzz_repair_trace);
}

#endif
