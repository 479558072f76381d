#include "formats/mlyze/analyze/mlyze_spill.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_pass.h"
#include "io/file.h"
#include "io/temporary.h"

#include <stdlib.h>
#include <string.h>

/* u8 what, and for a block: u64 size, u64 time, u32 stack, u16 thread. */
#define BLOCK_SIZE 22
#define FINDING_MAX (1 + BLOCK_SIZE)
#define SPOOL_NAME "the temporary file"

static coffer_status spool_open(coffer__mlyze_spool *spool, size_t piece_size, coffer_error *err)
{
    coffer_status status = coffer__temporary_unnamed(&spool->fd, err);
    if (status)
        return status;
    spool->size = 0;
    spool->piece_size = piece_size;
    pthread_mutex_init(&spool->lock, NULL);
    return COFFER_OK;
}

static void spool_close(coffer__mlyze_spool *spool)
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

/* Writes the rest of the buffer and frees it. */
static coffer_status stream_end(coffer__mlyze_stream *stream, coffer__mlyze_spool *spool, coffer_error *err)
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

#define SPOOL_PIECE ((size_t)16 << 10)
#define MOST_FIRST_SHARES 64

/* Shares of the hashes, as streams: waiting ones, and those whose streams are complete. Both ascending. */
typedef struct shares {
    coffer__mlyze_stream *items;
    size_t count, capacity;
} shares;

static coffer_status add_share(shares *list, const coffer__mlyze_stream *share, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&list->items, &list->capacity, list->count, sizeof *list->items, err);
    if (!status)
        list->items[list->count++] = *share;
    return status;
}

static int by_low(const void *a, const void *b)
{
    const coffer__mlyze_stream *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

static void sort_shares(shares *which)
{
    if (which->count > 1)
        qsort(which->items, which->count, sizeof *which->items, by_low);
}

static void free_shares(shares *which)
{
    for (size_t i = 0; i < which->count; i++)
        coffer__mlyze_stream_free(&which->items[i]);
    coffer__free(which->items);
}

/* As many as the table would need if it kept growing at the same rate. */
static coffer_status first_shares(shares *waiting, const coffer__mlyze_pass *pass, coffer_error *err)
{
    uint64_t done = pass->course.done_events > 0 ? pass->course.done_events : 1;
    uint64_t count = (pass->course.end_event + pass->course.end_event / 4) / done + 2;
    coffer_status status = COFFER_OK;
    if (count > MOST_FIRST_SHARES)
        count = MOST_FIRST_SHARES;
    uint64_t width = UINT64_MAX / count;
    for (uint64_t i = 0; i < count && !status; i++) {
        coffer__mlyze_stream share = { .low = i * width + (i > 0),
                                       .high = i + 1 < count ? (i + 1) * width : UINT64_MAX };
        status = add_share(waiting, &share, err);
    }
    return status;
}

static coffer_status split_share(shares *waiting, const coffer__mlyze_stream *share, coffer_error *err)
{
    coffer__mlyze_stream lower = { .low = share->low }, upper = { .high = share->high };
    if (share->low == share->high)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "the addresses cannot be divided any further");
    lower.high = share->low + (share->high - share->low) / 2;
    upper.low = lower.high + 1;
    coffer_status status = add_share(waiting, &lower, err);
    return status ? status : add_share(waiting, &upper, err);
}

/* The first of the waiting shares, one for each shard. */
static coffer_status hand_out(coffer__mlyze_pass *pass, shares *waiting, coffer_error *err)
{
    for (size_t i = 0; i < pass->shards.count; i++) {
        coffer__mlyze_shard *shard = &pass->shards.items[i];
        shard->streams = coffer__malloc(sizeof *shard->streams);
        if (!shard->streams)
            return coffer__fail_no_memory(err, sizeof *shard->streams);
        *shard->streams = waiting->items[i];
        shard->stream_count = 1;
        pass->shards.low[i] = shard->streams->low;
        pass->shards.high[i] = shard->streams->high;
    }
    waiting->count -= pass->shards.count;
    memmove(waiting->items, waiting->items + pass->shards.count, waiting->count * sizeof *waiting->items);
    return COFFER_OK;
}

static coffer_status take_in(coffer__mlyze_pass *pass, shares *waiting, shares *done, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < pass->shards.count && !status; i++) {
        coffer__mlyze_shard *shard = &pass->shards.items[i];
        if (shard->overflowed) {
            status = split_share(waiting, shard->streams, err);
            continue;
        }
        status = stream_end(shard->streams, pass->spool, err);
        if (!status)
            status = coffer__mlyze_collect_leftovers(pass, i, err);
        if (!status)
            status = add_share(done, shard->streams, err);
        if (status)
            break;
        shard->stream_count = 0; /* `done` has it */
    }
    return status;
}

static coffer_status spill(coffer__mlyze_pass *pass, shares *done, coffer_error *err)
{
    shares waiting = { 0 };
    coffer_status status = first_shares(&waiting, pass, err);
    while (!status && waiting.count > 0) {
        size_t shards = waiting.count < pass->shards.max ? waiting.count : pass->shards.max;
        sort_shares(&waiting);
        status = coffer__mlyze_pass_begin(pass, COFFER__MLYZE_SPILL, shards, err);
        if (!status)
            status = hand_out(pass, &waiting, err);
        if (!status)
            status = coffer__mlyze_run_pass(pass, err);
        if (status)
            break;
        status = take_in(pass, &waiting, done, err);
    }
    free_shares(&waiting);
    sort_shares(done);
    return status;
}

static coffer_status unspill(coffer__mlyze_pass *pass, shares *done, coffer_error *err)
{
    size_t shards = done->count < pass->shards.max ? done->count : pass->shards.max, first = 0;
    coffer_status status = coffer__mlyze_pass_begin(pass, COFFER__MLYZE_UNSPILL, shards, err);
    if (status)
        return status;
    for (size_t i = 0; i < shards; i++) {
        coffer__mlyze_shard *shard = &pass->shards.items[i];
        size_t end = done->count * (i + 1) / shards;
        shard->streams = coffer__alloc_array(end - first, sizeof *shard->streams);
        if (!shard->streams)
            return coffer__fail_no_memory(err, (end - first) * sizeof *shard->streams);
        pass->shards.low[i] = done->items[first].low;
        pass->shards.high[i] = done->items[end - 1].high;
        for (; first < end; first++) {
            shard->streams[shard->stream_count++] = done->items[first];
            memset(&done->items[first], 0, sizeof done->items[first]);
        }
    }
    return coffer__mlyze_run_pass(pass, err);
}

coffer_status coffer__mlyze_run_spilled(coffer__mlyze_pass *pass, coffer_error *err)
{
    coffer__mlyze_spool spool;
    shares done = { 0 };
    coffer_status status = spool_open(&spool, SPOOL_PIECE, err);
    if (status)
        return status;
    pass->spool = &spool;
    status = spill(pass, &done, err);
    if (!status)
        status = unspill(pass, &done, err);
    free_shares(&done);
    pass->spool = NULL;
    spool_close(&spool);
    return status;
}
