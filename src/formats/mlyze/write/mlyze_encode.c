#include "formats/mlyze/write/mlyze_encode.h"

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/read/mlyze_blocks.h"

#include <lz4.h>
#include <lz4hc.h>
#include <string.h>

void coffer__mlyze_raw_clear(coffer__mlyze_raw *raw)
{
    raw->len = 0;
    raw->count = 0;
    raw->start = raw->time;
}

/* Spreads the bits in groups of seven over eight bytes, all in registers: the lengths of sizes and stack ids
 * are unpredictable, and a mispredicted branch costs more than all of this. */
static inline uint8_t *put_varint(uint8_t *to, uint64_t value)
{
    if (value >> 56)
        return to + coffer__varint_write(to, value);
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1), len = (bits * 37 + 222) >> 8; /* ⌈bits / 7⌉ */
    uint64_t x = (value & 0x0fffffff) | (value & 0xfffffff0000000) << 4;
    x = (x & 0x00003fff00003fff) | (x & 0x0fffc0000fffc000) << 2;
    x = (x & 0x007f007f007f007f) | (x & 0x3f803f803f803f80) << 1;
    x |= 0x8080808080808080 & ((UINT64_C(1) << (8 * len - 8)) - 1);
    coffer__store_u64(to, x);
    return to + len;
}

/* Most deltas are a byte. */
static inline uint8_t *put_delta(uint8_t *to, uint64_t delta)
{
    if (delta < 0x80) {
        *to = (uint8_t)delta;
        return to + 1;
    }
    return put_varint(to, delta);
}

static uint8_t *put_body(uint8_t *to, const coffer__mlyze_event_row *event)
{
    switch (event->type) {
    case COFFER_MLYZE_OBJECT:
        coffer__store_u64(to, event->address);
        to = put_varint(to + 8, event->id);
        return event->size ? put_varint(to, event->size) : to;
    case COFFER_MLYZE_REFERENCE:
        coffer__store_u64(to, event->address);
        coffer__store_u64(to + 8, event->size);
        return put_varint(to + 16, event->id);
    case COFFER_MLYZE_SNAPSHOT:
        *to = (uint8_t)event->size;
        return put_varint(to + 1, event->id);
    case COFFER_MLYZE_THREAD:
        coffer__store_u16(to, event->thread);
        return put_varint(to + 2, event->id);
    default: /* COFFER_MLYZE_RSS */
        return put_varint(to, event->size);
    }
}

/* The bytes after the delta of events other than ALLOC and FREE. */
static uint8_t *put_rare(uint8_t *to, const coffer__mlyze_event_row *event)
{
    if (event->type == COFFER_MLYZE_GC)
        return put_varint(put_varint(to, event->id), event->size);
    if (event->type == COFFER_MLYZE_MARKER)
        return put_varint(to, event->id);
    uint8_t *end = put_body(to + 1, event);
    *to = (uint8_t)(end - to - 1); /* a body is shorter than 128 bytes */
    return end;
}

static inline uint8_t *put_event(uint8_t *to, const coffer_mlyze_events *from, size_t i, uint64_t delta)
{
    uint8_t type = from->type[i];
    *to = type;
    to = put_delta(to + 1, delta);
    if (type > COFFER_MLYZE_FREE) {
        coffer__mlyze_event_row event = { 0,           from->address[i], from->size[i],
                                          from->id[i], from->thread[i],  type };
        return put_rare(to, &event);
    }
    /* Branch-free: ALLOC and FREE alternate unpredictably, so both are written as an ALLOC, and the end of a
     * FREE is overwritten. */
    coffer__store_u64(to, from->address[i]);
    to += 8;
    uint8_t *end = put_varint(put_varint(to, from->size[i]), from->id[i]);
    coffer__store_u16(end, from->thread[i]);
    return type == COFFER_MLYZE_FREE ? to : end + 2;
}

size_t coffer__mlyze_raw_add(coffer__mlyze_raw *raw, const coffer_mlyze_events *events, size_t from)
{
    const coffer_mlyze_events columns = *events;
    const uint8_t *limit = raw->bytes + COFFER__MLYZE_BLOCK_RAW_MAX;
    uint8_t *to = raw->bytes + raw->len;
    uint64_t time = raw->time;
    size_t i = from;
    for (; i < columns.count; i++) {
        uint64_t now = columns.time[i] > time ? columns.time[i] : time;
        uint8_t *end = put_event(to, &columns, i, now - time);
        if (end > limit)
            break;
        to = end;
        time = now;
    }
    raw->count += (uint32_t)(i - from);
    raw->len = (size_t)(to - raw->bytes);
    raw->time = time;
    return i - from;
}

/* ---- Blocks ---- */

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

/* The compressed size, or 0 when LZ4 does not make it smaller. */
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
    coffer__mlyze_block header = { .event_count = count, .raw_size = (uint32_t)len, .time = start };
    size_t stored = compress(sealer, stored_bytes, events, len);
    if (stored == 0) {
        memcpy(stored_bytes, events, len);
        stored = len;
    }
    header.stored_size = (uint32_t)stored;
    coffer__store_u32(block, header.raw_size);
    coffer__store_u32(block + COFFER__MLYZE_BLOCK_STORED_AT, header.stored_size);
    coffer__store_u32(block + COFFER__MLYZE_BLOCK_COUNT_AT, count);
    coffer__store_u32(block + COFFER__MLYZE_BLOCK_CRC_AT,
                      coffer__mlyze_block_sum(&header, stored_bytes, true));
    coffer__store_u64(block + COFFER__MLYZE_BLOCK_TIME_AT, start);
    sealer->len = COFFER__MLYZE_BLOCK_HEADER + stored;
}
