/* A source over HTTP: reads go through the cache of blocks, and what will be read next is fetched ahead. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/sorted.h"
#include "io/file.h"
#include "io/remote/block_cache.h"
#include "io/remote/disk_cache.h"
#include "io/remote/remote.h"
#include "io/source_struct.h"
#include "io/temporary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK COFFER__REMOTE_BLOCK
#define RUN_BLOCKS 64 /* in one request: 1 MiB */
#define SEQUENCE 3    /* reads that follow one another before anything is read ahead */
#define FIRST_WINDOW (3 * (uint64_t)BLOCK)
#define LATE (UINT64_C(8) << 20) /* of several threads, one may lag this far */
#define LONGEST_WINDOW (UINT64_C(16) << 20)
#define BRIDGED ((uint64_t)2 * BLOCK) /* holes between ranges that are fetched, too */

/* A fetch of blocks that follow one another. */
typedef struct block_run {
    coffer__remote_fetch fetch;
    uint64_t first_block;
    uint32_t count;
    uint32_t frames[RUN_BLOCKS];
} block_run;

size_t coffer__remote_block_length(const coffer__remote_file *file, uint64_t block)
{
    uint64_t left = file->size - block * BLOCK;
    return left < BLOCK ? (size_t)left : BLOCK;
}

static bool run_take(coffer__remote_fetch *fetch, const uint8_t *bytes, size_t len)
{
    block_run *run = fetch->owner;
    uint64_t at = fetch->got;
    while (len) {
        size_t inside = (size_t)(at % BLOCK), room = BLOCK - inside;
        size_t n = len < room ? len : room;
        uint32_t i = (uint32_t)(at / BLOCK);
        memcpy(coffer__cache_bytes(run->frames[i]) + inside, bytes, n);
        size_t whole = coffer__remote_block_length(fetch->file, run->first_block + i);
        if (fetch->file->disk && inside + n == whole)
            coffer__disk_cache_store(fetch->file->disk, run->first_block + i,
                                     coffer__cache_bytes(run->frames[i]), whole);
        bytes += n;
        len -= n;
        at += n;
    }
    return true;
}

static void run_ended(coffer__remote_fetch *fetch)
{
    block_run *run = fetch->owner;
    if (fetch->error.status)
        fetch->file->failure = fetch->error;
    for (uint32_t i = 0; i < run->count; i++) {
        coffer__cache_settle(run->frames[i], fetch->error.status == COFFER_OK);
        coffer__cache_release(run->frames[i]);
    }
    coffer__free(run);
}

static coffer_status submit_run(coffer__remote_file *file, block_run *run, coffer_error *err)
{
    uint64_t end = (run->first_block + run->count) * BLOCK;
    run->fetch.file = file;
    run->fetch.first = run->first_block * BLOCK;
    run->fetch.len = (size_t)((end < file->size ? end : file->size) - run->fetch.first);
    run->fetch.owner = run;
    run->fetch.take = run_take;
    run->fetch.ended = run_ended;
    coffer_status status = coffer__remote_submit(&run->fetch, err);
    if (status) {
        if (err)
            run->fetch.error = *err;
        run->fetch.error.status = status;
        run_ended(&run->fetch);
    }
    return status;
}

/* Claims frames for the blocks from `block` on that nobody has asked for yet, at most RUN_BLOCKS; those that
 * the disk has are ready at once. *block moves behind what was looked at. */
static void collect_run(block_run *run, coffer__remote_file *file, uint64_t *block, uint64_t end)
{
    run->count = 0;
    while (*block < end && run->count < RUN_BLOCKS) {
        uint32_t frame = coffer__cache_find(file->id, *block);
        if (frame != COFFER__FRAME_NONE) {
            if (run->count)
                return;
            if (run->fetch.is_ahead)
                coffer__cache_refresh(frame);
            ++*block;
            continue;
        }
        frame = coffer__cache_claim(file->id, *block);
        if (frame == COFFER__FRAME_NONE) {
            *block = end;
            return;
        }
        if (file->disk && coffer__disk_cache_load(file->disk, *block, coffer__cache_bytes(frame),
                                                  coffer__remote_block_length(file, *block))) {
            coffer__cache_settle(frame, true);
            coffer__cache_release(frame);
            if (run->count)
                return;
            ++*block;
            continue;
        }
        if (run->count == 0)
            run->first_block = *block;
        run->frames[run->count++] = frame;
        ++*block;
    }
}

/* Asks for what is missing of the bytes first..end. With the lock. */
static coffer_status request(coffer__remote_file *file, uint64_t first, uint64_t end, bool ahead,
                             coffer_error *err)
{
    uint64_t block = first / BLOCK, last = (end + BLOCK - 1) / BLOCK;
    while (block < last) {
        block_run *run = coffer__calloc(1, sizeof *run);
        if (!run)
            return coffer__fail_no_memory(err, sizeof *run);
        run->fetch.is_ahead = ahead;
        collect_run(run, file, &block, last);
        if (run->count == 0) {
            coffer__free(run);
            continue;
        }
        coffer_status status = submit_run(file, run, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

static bool direct_take(coffer__remote_fetch *fetch, const uint8_t *bytes, size_t len)
{
    coffer__direct_read *read = fetch->owner;
    memcpy(read->out + fetch->got, bytes, len);
    return true;
}

static void direct_ended(coffer__remote_fetch *fetch)
{
    coffer__direct_read *read = fetch->owner;
    read->has_ended = true;
}

void coffer__direct_read_init(coffer__direct_read *read, coffer__remote_file *file, uint8_t *out,
                              uint64_t offset, size_t len)
{
    memset(read, 0, sizeof *read);
    read->out = out;
    read->fetch.file = file;
    read->fetch.first = offset;
    read->fetch.len = len;
    read->fetch.owner = read;
    read->fetch.take = direct_take;
    read->fetch.ended = direct_ended;
}

coffer_status coffer__remote_wait_for(coffer__remote_fetch *fetch, const bool *has_ended, coffer_error *err)
{
    coffer_status status = coffer__remote_submit(fetch, err);
    if (status)
        return status;
    while (!*has_ended)
        pthread_cond_wait(&coffer__remote_progress, &coffer__remote_lock);
    return fetch->error.status ? coffer__fail_copy(err, &fetch->error) : COFFER_OK;
}

static coffer_status read_past_cache(coffer__remote_file *file, uint8_t *out, uint64_t offset, size_t len,
                                     coffer_error *err)
{
    coffer__direct_read *read = coffer__malloc(sizeof *read);
    if (!read)
        return coffer__fail_no_memory(err, sizeof *read);
    coffer__direct_read_init(read, file, out, offset, len);
    coffer_status status = coffer__remote_wait_for(&read->fetch, &read->has_ended, err);
    coffer__free(read);
    return status;
}

/* The announced range that contains an offset, or NULL. */
static const struct coffer__planned *find_planned(const coffer__read_plan *plan, uint64_t offset)
{
    size_t low = COFFER__COUNT_UP_TO(plan->ranges, plan->count, struct coffer__planned, offset, offset);
    const struct coffer__planned *range = low ? &plan->ranges[low - 1] : NULL;
    return range && offset - range->offset < range->len ? range : NULL;
}

/* Copies bytes of one block, waiting for it. */
static coffer_status copy_block(coffer__remote_file *file, uint32_t frame, uint8_t *out, uint64_t offset,
                                size_t len, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (find_planned(&file->plan, offset))
        coffer__cache_pin(frame);
    else
        coffer__cache_hold(frame);
    while (coffer__cache_state(frame) == COFFER__FRAME_LOADING)
        pthread_cond_wait(&coffer__remote_progress, &coffer__remote_lock);
    if (coffer__cache_state(frame) == COFFER__FRAME_READY) {
        pthread_mutex_unlock(&coffer__remote_lock);
        memcpy(out, coffer__cache_bytes(frame) + offset % BLOCK, len);
        pthread_mutex_lock(&coffer__remote_lock);
    } else {
        status = coffer__fail_copy(err, &file->failure);
    }
    coffer__cache_release(frame);
    return status;
}

static uint64_t longest_window(void)
{
    uint64_t quarter = (uint64_t)coffer__cache_capacity() / 4 * BLOCK;
    return quarter < LONGEST_WINDOW ? quarter : LONGEST_WINDOW;
}

/* Asks for the next announced ranges, as much as the cache can hold of them. */
static void follow_plan(coffer__remote_file *file)
{
    coffer__read_plan *plan = &file->plan;
    uint64_t most = (uint64_t)coffer__cache_capacity() * 5 / 8 * BLOCK;
    while (plan->next < plan->count && plan->asked < plan->reached + most) {
        const struct coffer__planned *range = &plan->ranges[plan->next];
        uint64_t inside = plan->asked - range->position, left = range->len - inside;
        uint64_t room = plan->reached + most - plan->asked, n = left < room ? left : room;
        if (request(file, range->offset + inside, range->offset + inside + n, true, NULL))
            return;
        plan->asked += n;
        plan->next += n == left;
    }
}

/* The stream that a read belongs to; otherwise the one that was idle longest. */
static coffer__read_stream *find_stream(coffer__remote_file *file, uint64_t offset, bool *follows)
{
    coffer__read_stream *oldest = &file->streams[0];
    *follows = true;
    for (size_t i = 0; i < COFFER__REMOTE_STREAMS; i++) {
        coffer__read_stream *stream = &file->streams[i];
        if (stream->last_read && offset + LATE >= stream->front && offset <= stream->front + BRIDGED)
            return stream;
        if (stream->last_read < oldest->last_read)
            oldest = stream;
    }
    *follows = false;
    return oldest;
}

/* Readers that go through a file from front to back find the next bytes there: as many as they have read in
 * sequence so far, so that at most half of what travels is not read. */
static void read_in_sequence(coffer__remote_file *file, uint64_t offset, uint64_t end)
{
    bool follows;
    coffer__read_stream *stream = find_stream(file, offset, &follows);
    if (!follows)
        *stream = (coffer__read_stream){ .begin = offset, .front = end, .ahead_until = end };
    stream->last_read = ++file->read_count;
    stream->reads += end > COFFER__REMOTE_OPENING; /* the first request brought the others */
    if (end > stream->front)
        stream->front = end;
    if (stream->front > stream->ahead_until)
        stream->ahead_until = stream->front;
    uint64_t window = stream->front - stream->begin, longest = longest_window();
    if (stream->reads < SEQUENCE)
        return;
    if (window < FIRST_WINDOW)
        window = FIRST_WINDOW;
    if (window > longest)
        window = longest;
    uint64_t left = file->size - stream->front, until = stream->front + (left < window ? left : window);
    if (until <= stream->ahead_until || until - stream->ahead_until < window / 4)
        return;
    coffer__ignore(request(file, stream->ahead_until, until, true, NULL));
    stream->ahead_until = until;
}

static void read_ahead(coffer__remote_file *file, uint64_t offset, uint64_t end)
{
    coffer__read_plan *plan = &file->plan;
    const struct coffer__planned *range = find_planned(plan, offset);
    if (!range) {
        read_in_sequence(file, offset, end);
        return;
    }
    uint64_t inside = end - range->offset < range->len ? end - range->offset : range->len;
    if (range->position + inside > plan->reached)
        plan->reached = range->position + inside;
    follow_plan(file);
}

coffer_status coffer__remote_read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    coffer__remote_file *file = context;
    uint8_t *to = out;
    uint64_t at = offset, end = offset + len, asked = offset;
    coffer_status status = COFFER_OK;
    pthread_mutex_lock(&coffer__remote_lock);
    while (at < end && !status) {
        uint64_t window = longest_window();
        if (asked < end && asked - at < window / 2) {
            uint64_t until = end - at < window ? end : at + window;
            status = request(file, asked, until, false, err);
            asked = until;
            if (until == end)
                read_ahead(file, offset, end);
        }
        if (status)
            break;
        uint32_t frame = coffer__cache_find(file->id, at / BLOCK);
        size_t inside = (size_t)(at % BLOCK);
        size_t n = (frame == COFFER__FRAME_NONE ? RUN_BLOCKS * BLOCK : BLOCK) - inside;
        if (n > end - at)
            n = (size_t)(end - at);
        status = frame == COFFER__FRAME_NONE ? read_past_cache(file, to, at, n, err)
                                             : copy_block(file, frame, to, at, n, err);
        to += n;
        at += n;
    }
    pthread_mutex_unlock(&coffer__remote_lock);
    return status;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct coffer__planned *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Sorts the ranges. Those that overlap, or have a small hole between them, become one. */
static void join_ranges(coffer__read_plan *plan)
{
    struct coffer__planned *ranges = plan->ranges;
    size_t count = plan->count, joined = 0;
    qsort(ranges, count, sizeof *ranges, compare_ranges);
    for (size_t i = 0; i < count; i++) {
        struct coffer__planned *last = joined ? &ranges[joined - 1] : NULL;
        uint64_t last_end = last ? last->offset + last->len : 0, end = ranges[i].offset + ranges[i].len;
        if (!last || ranges[i].offset > last_end + BRIDGED) {
            ranges[joined++] = ranges[i];
            ranges[joined - 1].position = last ? last->position + last->len : 0;
        } else if (end > last_end) {
            last->len = end - last->offset;
        }
    }
    plan->count = joined;
}

void coffer__remote_prefetch(void *context, const coffer_range *ranges, size_t count)
{
    coffer__remote_file *file = context;
    coffer__read_plan plan = { .ranges = coffer__alloc_array(count, sizeof *plan.ranges), .count = count };
    if (!plan.ranges)
        return; /* reads work without it */
    for (size_t i = 0; i < count; i++)
        plan.ranges[i] = (struct coffer__planned){ ranges[i].offset, ranges[i].len, 0 };
    join_ranges(&plan);
    pthread_mutex_lock(&coffer__remote_lock);
    coffer__free(file->plan.ranges);
    file->plan = plan;
    follow_plan(file);
    pthread_mutex_unlock(&coffer__remote_lock);
}
