#include "formats/mlyze/analyze/mlyze_pass.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

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
        status = coffer__mlyze_stream_end(shard->streams, pass->spool, err);
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
    coffer_status status = coffer__mlyze_spool_open(&spool, SPOOL_PIECE, err);
    if (status)
        return status;
    pass->spool = &spool;
    status = spill(pass, &done, err);
    if (!status)
        status = unspill(pass, &done, err);
    free_shares(&done);
    pass->spool = NULL;
    coffer__mlyze_spool_close(&spool);
    return status;
}
