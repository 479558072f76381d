/* Blocks: LZ4 over whole events, with a header that lets each be read by itself. */
#include "formats/mlyze/write/mlyze_encode.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"

#include <lz4.h>
#include <lz4hc.h>
#include <string.h>

#define BLOCK_MAX (COFFER__MLYZE_BLOCK_HEADER + LZ4_COMPRESSBOUND(COFFER__MLYZE_BLOCK_RAW_MAX))

coffer_status coffer__mlyze_sealer_init(coffer__mlyze_sealer *sealer, int level, coffer_error *err)
{
    size_t state_size = (size_t)(level > 0 ? LZ4_sizeofStateHC() : LZ4_sizeofState());
    *sealer = (coffer__mlyze_sealer){ .level = level };
    sealer->state = coffer__malloc(state_size);
    sealer->block = coffer__malloc(BLOCK_MAX);
    if (sealer->state && sealer->block)
        return COFFER_OK;
    coffer__mlyze_sealer_free(sealer);
    return coffer__fail_no_memory(err, state_size + BLOCK_MAX);
}

void coffer__mlyze_sealer_free(coffer__mlyze_sealer *sealer)
{
    coffer__free(sealer->state);
    coffer__free(sealer->block);
    *sealer = (coffer__mlyze_sealer){ 0 };
}

/* How many bytes LZ4 makes of them; 0 when it does not make fewer. */
static size_t compress(coffer__mlyze_sealer *sealer, uint8_t *to, const uint8_t *events, size_t len)
{
    const char *from = (const char *)events;
    int size = (int)len, room = size - 1, stored;
    if (sealer->level > 0)
        stored = LZ4_compress_HC_extStateHC(sealer->state, from, (char *)to, size, room, sealer->level);
    else
        stored = LZ4_compress_fast_extState(sealer->state, from, (char *)to, size, room, 1);
    return stored > 0 ? (size_t)stored : 0;
}

void coffer__mlyze_seal(coffer__mlyze_sealer *sealer, const uint8_t *events, size_t len, uint32_t count,
                        uint64_t start)
{
    uint8_t *block = sealer->block, *stored_bytes = block + COFFER__MLYZE_BLOCK_HEADER;
    size_t stored = compress(sealer, stored_bytes, events, len);
    if (stored == 0) {
        memcpy(stored_bytes, events, len);
        stored = len;
    }
    coffer__store_u32(block, (uint32_t)len);
    coffer__store_u32(block + COFFER__MLYZE_BLOCK_STORED_AT, (uint32_t)stored);
    coffer__store_u32(block + COFFER__MLYZE_BLOCK_COUNT_AT, count);
    coffer__store_u32(block + COFFER__MLYZE_BLOCK_CRC_AT, coffer__crc32(0, stored_bytes, stored));
    coffer__store_u64(block + COFFER__MLYZE_BLOCK_TIME_AT, start);
    sealer->len = COFFER__MLYZE_BLOCK_HEADER + stored;
}
