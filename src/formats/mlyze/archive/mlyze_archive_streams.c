/* The directory and the compressed streams of an archive block, and the bodies of extension events. */
#include "formats/mlyze/archive/mlyze_archive.h"

#include "base/cursor.h"
#include "base/fail.h"

#include <zstd.h>

/* Streams of a few bytes only grow. */
#define LEAST 24

static coffer_status add_stream(coffer__mlyze_packer *packer, int stream, coffer_error *err)
{
    const coffer__buffer *raw = &packer->streams[stream];
    size_t room = ZSTD_compressBound(raw->len), before = packer->block.len, stored = raw->len;
    if (raw->failed)
        return coffer__fail_no_memory(err, raw->len);
    uint8_t *to = coffer__buffer_extend(&packer->block, room);
    if (!to)
        return coffer__fail_no_memory(err, room);
    if (raw->len >= LEAST)
        stored = ZSTD_compressCCtx(packer->context, to, room, raw->data, raw->len, packer->level);
    if (ZSTD_isError(stored) || stored >= raw->len) {
        stored = raw->len;
        if (stored > 0)
            memcpy(to, raw->data, stored);
    }
    packer->block.len = before + stored;
    uint8_t *sizes =
        packer->block.data + COFFER__MLYZE_ARCHIVE_SIZES_AT + (size_t)stream * COFFER__MLYZE_ARCHIVE_STREAM;
    coffer__store_u32(sizes, (uint32_t)raw->len);
    coffer__store_u32(sizes + 4, (uint32_t)stored);
    return COFFER_OK;
}

coffer_status coffer__mlyze_pack_streams(coffer__mlyze_packer *packer, uint32_t *raw_size, coffer_error *err)
{
    size_t raw = COFFER__MLYZE_ARCHIVE_DIRECTORY;
    coffer_status status = COFFER_OK;
    packer->block.len = 0;
    uint8_t *directory = coffer__buffer_extend(&packer->block, COFFER__MLYZE_ARCHIVE_DIRECTORY);
    if (!directory)
        return coffer__fail_no_memory(err, COFFER__MLYZE_ARCHIVE_DIRECTORY);
    memcpy(directory, COFFER__MLYZE_ARCHIVE_MAGIC, 4);
    coffer__store_u32(directory + COFFER__MLYZE_ARCHIVE_STREAMS_AT, COFFER__MLYZE_STREAMS);
    coffer__store_u64(directory + COFFER__MLYZE_ARCHIVE_FIRST_AT, packer->first_alloc);
    coffer__store_u32(directory + COFFER__MLYZE_ARCHIVE_ALLOCS_AT,
                      (uint32_t)(packer->alloc_count - packer->first_alloc));
    coffer__store_u32(directory + COFFER__MLYZE_ARCHIVE_IMPORTS_AT, (uint32_t)packer->import_count);
    for (int i = 0; !status && i < COFFER__MLYZE_STREAMS; i++) {
        raw += packer->streams[i].len;
        status = add_stream(packer, i, err);
    }
    *raw_size = (uint32_t)raw;
    return status;
}

/* ---- Extension events ---- */

void coffer__mlyze_body_walk_begin(coffer__mlyze_body_walk *walk, const coffer__mlyze_bodies *bodies)
{
    walk->walks = bodies->bytes != NULL;
    walk->others_only = bodies->others_only;
    walk->columns = (coffer_mlyze_events){ .time = &walk->numbers[0],
                                           .address = &walk->numbers[1],
                                           .size = &walk->numbers[2],
                                           .id = &walk->numbers[3],
                                           .thread = &walk->thread,
                                           .type = &walk->type };
    walk->decoder = (coffer__mlyze_decoder){ .at = bodies->bytes, .extensions = true, .out = &walk->columns };
    walk->decoder.end = walk->walks ? bodies->bytes + bodies->len : NULL;
}

const uint8_t *coffer__mlyze_body_walk_next(size_t *len, coffer__mlyze_body_walk *walk, uint8_t type)
{
    coffer__mlyze_decoder *decoder = &walk->decoder;
    uint64_t delta;
    *len = 0;
    if (!walk->walks || (walk->others_only && type <= COFFER_MLYZE_FREE) || decoder->at >= decoder->end)
        return NULL;
    const uint8_t *body = decoder->at + 1;
    coffer__varint_read(&delta, &body, decoder->end); /* it was decoded before */
    decoder->time = 0;
    walk->columns.count = 0;
    coffer__mlyze_decode_event(decoder);
    *len = (size_t)(decoder->at - body);
    return body;
}
