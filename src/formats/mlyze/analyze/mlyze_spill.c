#include "formats/mlyze/analyze/mlyze_spill.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/temporary.h"

#include <string.h>

/* u8 what, and for a block: u64 size, u64 time, u32 stack, u16 thread. */
#define BLOCK_SIZE 22
#define FINDING_MAX (1 + BLOCK_SIZE)
#define SPOOL_NAME "the temporary file"

coffer_status coffer__mlyze_spool_open(coffer__mlyze_spool *spool, size_t piece_size, coffer_error *err)
{
    coffer_status status = coffer__temporary_unnamed(&spool->fd, err);
    if (status)
        return status;
    spool->size = 0;
    spool->piece_size = piece_size;
    pthread_mutex_init(&spool->lock, NULL);
    return COFFER_OK;
}

void coffer__mlyze_spool_close(coffer__mlyze_spool *spool)
{
    coffer__file_close(spool->fd);
    pthread_mutex_destroy(&spool->lock);
}

void coffer__mlyze_stream_free(coffer__mlyze_stream *stream)
{
    coffer__free(stream->pieces);
    coffer__free(stream->buffer);
}

/* ---- Writing ---- */

static uint64_t take_place(coffer__mlyze_spool *spool)
{
    pthread_mutex_lock(&spool->lock);
    uint64_t place = spool->size;
    spool->size += spool->piece_size;
    pthread_mutex_unlock(&spool->lock);
    return place;
}

static coffer_status write_piece(coffer__mlyze_stream *stream, coffer__mlyze_spool *spool, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&stream->pieces, &stream->piece_capacity,
                                                     stream->piece_count, sizeof *stream->pieces, err);
    if (status)
        return status;
    uint64_t place = take_place(spool);
    status = coffer__file_write_at(spool->fd, stream->buffer, stream->used, place, SPOOL_NAME, err);
    if (status)
        return status;
    stream->pieces[stream->piece_count++] = place;
    stream->last_size = stream->used;
    stream->used = 0;
    return COFFER_OK;
}

static coffer_status make_buffer(coffer__mlyze_stream *stream, size_t size, coffer_error *err)
{
    if (stream->buffer)
        return COFFER_OK;
    stream->buffer = coffer__malloc(size);
    return stream->buffer ? COFFER_OK : coffer__fail_no_memory(err, size);
}

coffer_status coffer__mlyze_stream_put(coffer__mlyze_stream *stream, coffer__mlyze_spool *spool,
                                       const coffer__mlyze_finding *finding, coffer_error *err)
{
    coffer_status status = make_buffer(stream, spool->piece_size, err);
    if (!status && spool->piece_size - stream->used < FINDING_MAX) {
        /* A finding is never split between pieces: the rest of a full piece is padding. */
        memset(stream->buffer + stream->used, 0xff, spool->piece_size - stream->used);
        stream->used = spool->piece_size;
        status = write_piece(stream, spool, err);
    }
    if (status)
        return status;
    uint8_t *at = stream->buffer + stream->used;
    at[0] = (uint8_t)finding->what;
    stream->used++;
    if (finding->what < COFFER__MLYZE_FOUND_BLOCK)
        return COFFER_OK;
    coffer__store_u64(at + 1, finding->block.size);
    coffer__store_u64(at + 9, finding->block.time);
    coffer__store_u32(at + 17, finding->block.stack);
    coffer__store_u16(at + 21, finding->block.thread);
    stream->used += BLOCK_SIZE;
    return COFFER_OK;
}

coffer_status coffer__mlyze_stream_end(coffer__mlyze_stream *stream, coffer__mlyze_spool *spool,
                                       coffer_error *err)
{
    coffer_status status = stream->used > 0 ? write_piece(stream, spool, err) : COFFER_OK;
    coffer__free(stream->buffer);
    stream->buffer = NULL;
    stream->used = 0;
    return status;
}

/* ---- Reading ---- */

static coffer_status read_piece(coffer__mlyze_stream *stream, coffer__mlyze_spool *spool, coffer_error *err)
{
    bool is_last = stream->next_piece + 1 == stream->piece_count;
    size_t size = is_last ? stream->last_size : spool->piece_size;
    coffer_status status = make_buffer(stream, spool->piece_size, err);
    if (!status)
        status = coffer__file_read_at(spool->fd, stream->buffer, size, stream->pieces[stream->next_piece],
                                      SPOOL_NAME, err);
    if (status)
        return status;
    stream->next_piece++;
    stream->used = 0;
    stream->filled = size;
    return COFFER_OK;
}

coffer_status coffer__mlyze_stream_get(coffer__mlyze_finding *out, coffer__mlyze_stream *stream,
                                       coffer__mlyze_spool *spool, coffer_error *err)
{
    if (stream->used == stream->filled || stream->buffer[stream->used] == 0xff) {
        if (stream->next_piece == stream->piece_count)
            return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                                "the trace changed while it was read");
        coffer_status status = read_piece(stream, spool, err);
        if (status)
            return status;
    }
    const uint8_t *at = stream->buffer + stream->used++;
    memset(out, 0, sizeof *out);
    out->what = at[0];
    if (out->what < COFFER__MLYZE_FOUND_BLOCK)
        return COFFER_OK;
    out->block.size = coffer__load_u64(at + 1);
    out->block.time = coffer__load_u64(at + 9);
    out->block.stack = coffer__load_u32(at + 17);
    out->block.thread = coffer__load_u16(at + 21);
    stream->used += BLOCK_SIZE;
    return COFFER_OK;
}
