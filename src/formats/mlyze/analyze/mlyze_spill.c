/* For a table of live blocks that does not fit into memory. The addresses are divided into shares by their
 * hash. One pass over the trace writes the allocations and frees of each share to a temporary file; then each
 * share is paired by itself, which writes a list of findings; the last pass over the trace reads these lists
 * side by side: the address of an event selects the list. */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_pass.h"
#include "io/file.h"
#include "io/temporary.h"

#include <stdlib.h>
#include <string.h>

/* u8 what, u64 address in a record, and for a block: u64 size, u64 time, u64 order, u32 stack, u16 thread. */
#define BLOCK_SIZE 30
#define RECORD_MAX (9 + BLOCK_SIZE)
#define RECORD_PAD 0xff /* the rest of the piece is padding: a record is never split */
#define SPILL_NAME "the temporary file"
#define PIECE_SIZE ((size_t)32 << 10)
#define MOST_FIRST_SHARES 64

/* Records, in pieces anywhere in the file. */
typedef struct stream {
    uint64_t *pieces; /* where they are in the file */
    size_t piece_count, piece_capacity;
    size_t last_size; /* of the last piece; the others are full */
    uint8_t *buffer;
    size_t used, filled; /* bytes taken out or put in; bytes there when reading */
    size_t next_piece;
} stream;

typedef struct share {
    uint64_t low, high; /* hashes of its addresses, ends included */
    size_t source;      /* number of the stream that has its events */
    stream findings;
} share;

typedef struct shares {
    share *items;
    size_t count, capacity;
} shares;

struct coffer__mlyze_spill {
    int fd;
    uint64_t size;
    stream sources[MOST_FIRST_SHARES];
    uint64_t width; /* hashes of each source */
    shares waiting, done;
};

/* ---- Streams ---- */

static void stream_free(stream *which)
{
    coffer__free(which->pieces);
    coffer__free(which->buffer);
}

static coffer_status write_piece(stream *to, coffer__mlyze_spill *spill, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&to->pieces, &to->piece_capacity, to->piece_count, sizeof *to->pieces, err);
    if (!status)
        status = coffer__file_write_at(spill->fd, to->buffer, to->used, spill->size, SPILL_NAME, err);
    if (status)
        return status;
    to->pieces[to->piece_count++] = spill->size;
    spill->size += PIECE_SIZE;
    to->last_size = to->used;
    to->used = 0;
    return COFFER_OK;
}

static coffer_status make_buffer(stream *which, coffer_error *err)
{
    if (!which->buffer)
        which->buffer = coffer__malloc(PIECE_SIZE);
    return which->buffer ? COFFER_OK : coffer__fail_no_memory(err, PIECE_SIZE);
}

/* Room for a record at *out; the caller adds its size to `used`. */
static coffer_status make_room(uint8_t **out, stream *to, coffer__mlyze_spill *spill, coffer_error *err)
{
    coffer_status status = make_buffer(to, err);
    if (!status && PIECE_SIZE - to->used < RECORD_MAX) {
        memset(to->buffer + to->used, RECORD_PAD, PIECE_SIZE - to->used);
        to->used = PIECE_SIZE;
        status = write_piece(to, spill, err);
    }
    if (!status)
        *out = to->buffer + to->used;
    return status;
}

/* Writes the rest, and starts to read from the beginning. */
static coffer_status stream_rewind(stream *which, coffer__mlyze_spill *spill, bool written, coffer_error *err)
{
    coffer_status status = written && which->used > 0 ? write_piece(which, spill, err) : COFFER_OK;
    coffer__free(which->buffer);
    which->buffer = NULL;
    which->used = which->filled = which->next_piece = 0;
    return status;
}

/* The next record, which the caller adds to `used`; NULL at the end. */
static coffer_status next_record(const uint8_t **out, stream *from, const coffer__mlyze_spill *spill,
                                 coffer_error *err)
{
    *out = NULL;
    if (from->used == from->filled || from->buffer[from->used] == RECORD_PAD) {
        if (from->next_piece == from->piece_count)
            return COFFER_OK;
        bool is_last = from->next_piece + 1 == from->piece_count;
        size_t size = is_last ? from->last_size : PIECE_SIZE;
        coffer_status status = make_buffer(from, err);
        if (!status)
            status = coffer__file_read_at(spill->fd, from->buffer, size, from->pieces[from->next_piece],
                                          SPILL_NAME, err);
        if (status)
            return status;
        from->next_piece++;
        from->used = 0;
        from->filled = size;
    }
    *out = from->buffer + from->used;
    return COFFER_OK;
}

static void store_block(uint8_t *at, const coffer__mlyze_held *block)
{
    coffer__store_u64(at, block->size);
    coffer__store_u64(at + 8, block->time);
    coffer__store_u64(at + 16, block->order);
    coffer__store_u32(at + 24, block->stack);
    coffer__store_u16(at + 28, block->thread);
}

static coffer__mlyze_held load_block(const uint8_t *at)
{
    return (coffer__mlyze_held){ .size = coffer__load_u64(at),
                                 .time = coffer__load_u64(at + 8),
                                 .order = coffer__load_u64(at + 16),
                                 .stack = coffer__load_u32(at + 24),
                                 .thread = coffer__load_u16(at + 28) };
}

/* ---- Events and findings ---- */

coffer_status coffer__mlyze_spill_put(coffer__mlyze_spill *spill, uint64_t hash, uint64_t address,
                                      const coffer__mlyze_held *block, coffer_error *err)
{
    stream *to = &spill->sources[hash / spill->width];
    uint8_t *at = NULL;
    coffer_status status = make_room(&at, to, spill, err);
    if (status)
        return status;
    at[0] = block ? COFFER_MLYZE_ALLOC : COFFER_MLYZE_FREE;
    coffer__store_u64(at + 1, address);
    if (block)
        store_block(at + 9, block);
    to->used += block ? RECORD_MAX : 9;
    return COFFER_OK;
}

static coffer_status put_finding(stream *to, coffer__mlyze_spill *spill, const coffer__mlyze_finding *found,
                                 coffer_error *err)
{
    const bool has_block = found->what == COFFER__MLYZE_FOUND_BLOCK;
    uint8_t *at = NULL;
    coffer_status status = make_room(&at, to, spill, err);
    if (status)
        return status;
    at[0] = (uint8_t)found->what;
    if (has_block)
        store_block(at + 1, &found->block);
    to->used += has_block ? 1 + BLOCK_SIZE : 1;
    return COFFER_OK;
}

static share *share_of(const shares *list, uint64_t hash)
{
    size_t low = 0, high = list->count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (hash > list->items[middle].high)
            low = middle + 1;
        else
            high = middle;
    }
    return &list->items[low];
}

coffer_status coffer__mlyze_spill_get(coffer__mlyze_finding *out, coffer__mlyze_spill *spill, uint64_t hash,
                                      coffer_error *err)
{
    stream *from = &share_of(&spill->done, hash)->findings;
    const uint8_t *at = NULL;
    coffer_status status = next_record(&at, from, spill, err);
    out->what = COFFER__MLYZE_FOUND_NOTHING;
    if (!status && !at)
        return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE, "the trace changed while it was read");
    if (status)
        return status;
    out->what = at[0];
    from->used++;
    if (out->what == COFFER__MLYZE_FOUND_BLOCK) {
        out->block = load_block(at + 1);
        from->used += BLOCK_SIZE;
    }
    return COFFER_OK;
}

/* ---- Shares ---- */

static coffer_status add_share(shares *list, const share *item, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&list->items, &list->capacity, list->count, sizeof *list->items, err);
    if (!status)
        list->items[list->count++] = *item;
    return status;
}

static int by_low(const void *a, const void *b)
{
    const share *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* As many as the table would need if it kept growing at the same rate. */
static coffer_status first_shares(coffer__mlyze_spill *spill, const coffer__mlyze_pass *pass,
                                  coffer_error *err)
{
    uint64_t done = pass->state.done_events > 0 ? pass->state.done_events : 1;
    uint64_t count = (pass->end_event + pass->end_event / 4) / done + 2;
    coffer_status status = COFFER_OK;
    if (count > MOST_FIRST_SHARES)
        count = MOST_FIRST_SHARES;
    spill->width = UINT64_MAX / count + 1;
    for (uint64_t i = 0; i < count && !status; i++) {
        share made = { .low = i * spill->width,
                       .high = i + 1 < count ? (i + 1) * spill->width - 1 : UINT64_MAX,
                       .source = (size_t)i };
        status = add_share(&spill->waiting, &made, err);
    }
    return status;
}

static coffer_status split_share(shares *waiting, const share *item, coffer_error *err)
{
    share lower = { .low = item->low, .source = item->source };
    share upper = { .high = item->high, .source = item->source };
    if (item->low == item->high)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "the addresses cannot be divided any further");
    lower.high = item->low + (item->high - item->low) / 2;
    upper.low = lower.high + 1;
    coffer_status status = add_share(waiting, &lower, err);
    return status ? status : add_share(waiting, &upper, err);
}

static coffer_status pair_record(coffer__mlyze_finding *found, coffer__mlyze_live *live, uint64_t hash,
                                 const uint8_t *at, coffer_error *err)
{
    static const uint8_t found_by_put[] = { COFFER__MLYZE_FOUND_NOTHING, COFFER__MLYZE_FOUND_AGAIN,
                                            COFFER__MLYZE_FOUND_BLOCK };
    const uint64_t address = coffer__load_u64(at + 1);
    coffer__mlyze_put what = COFFER__MLYZE_PUT_NEW;
    coffer_status status = COFFER_OK;
    if (at[0] == COFFER_MLYZE_FREE) {
        found->what = coffer__mlyze_live_take(&found->block, live, hash, address)
                          ? COFFER__MLYZE_FOUND_BLOCK
                          : COFFER__MLYZE_FOUND_NOTHING;
        return COFFER_OK;
    }
    const coffer__mlyze_held block = load_block(at + 9);
    if (!coffer__mlyze_put_fast(live, hash, address, &block))
        status = coffer__mlyze_live_put(&what, live, hash, address, &block, &found->block, err);
    found->what = found_by_put[what];
    return status;
}

/* Pairs the events of a share with a table of its own. */
static coffer_status pair_share(coffer__mlyze_live *live, share *item, coffer__mlyze_spill *spill,
                                coffer_error *err)
{
    stream *source = &spill->sources[item->source];
    coffer_status status = stream_rewind(source, spill, false, err);
    while (!status) {
        const uint8_t *at = NULL;
        coffer__mlyze_finding found;
        status = next_record(&at, source, spill, err);
        if (status || !at)
            break;
        const uint64_t hash = coffer__mlyze_hash(&live->key, coffer__load_u64(at + 1));
        source->used += at[0] == COFFER_MLYZE_FREE ? 9 : RECORD_MAX;
        if (hash < item->low || hash > item->high)
            continue;
        status = pair_record(&found, live, hash, at, err);
        if (!status)
            status = put_finding(&item->findings, spill, &found, err);
    }
    return status ? status : stream_rewind(&item->findings, spill, true, err);
}

/* Pairs a share, or divides it when its table is too large. */
static coffer_status take_share(coffer__mlyze_pass *pass, coffer__mlyze_spill *spill, share *item,
                                coffer_error *err)
{
    coffer__mlyze_live live;
    coffer__mlyze_live_init(&live, pass->live.key, &pass->budget);
    live.remember = pass->opts.reuse;
    atomic_store(&pass->budget.exceeded, false);
    coffer_status status = pair_share(&live, item, spill, err);
    if (!status)
        status = coffer__mlyze_collect_leftovers(pass, &live, err);
    if (!status)
        status = add_share(&spill->done, item, err);
    coffer__mlyze_live_free(&live);
    if (status)
        stream_free(&item->findings);
    if (status == COFFER_E_LIMIT && atomic_load(&pass->budget.exceeded))
        status = split_share(&spill->waiting, item, err);
    return status;
}

static coffer_status pair_shares(coffer__mlyze_pass *pass, coffer__mlyze_spill *spill, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < MOST_FIRST_SHARES && !status; i++)
        status = stream_rewind(&spill->sources[i], spill, true, err);
    while (!status && spill->waiting.count > 0) {
        share item = spill->waiting.items[--spill->waiting.count];
        status = take_share(pass, spill, &item, err);
    }
    for (size_t i = 0; i < MOST_FIRST_SHARES; i++) {
        stream_free(&spill->sources[i]);
        spill->sources[i] = (stream){ .pieces = NULL };
    }
    if (spill->done.count > 1)
        qsort(spill->done.items, spill->done.count, sizeof *spill->done.items, by_low);
    return status;
}

static void spill_free(coffer__mlyze_spill *spill)
{
    for (size_t i = 0; i < MOST_FIRST_SHARES; i++)
        stream_free(&spill->sources[i]);
    for (size_t i = 0; i < spill->done.count; i++)
        stream_free(&spill->done.items[i].findings);
    coffer__free(spill->done.items);
    coffer__free(spill->waiting.items);
    coffer__file_close(spill->fd);
    coffer__free(spill);
}

coffer_status coffer__mlyze_run_spilled(coffer__mlyze_pass *pass, coffer_error *err)
{
    coffer__mlyze_spill *spill = coffer__calloc(1, sizeof *spill);
    if (!spill)
        return coffer__fail_no_memory(err, sizeof *spill);
    coffer_status status = coffer__temporary_unnamed(&spill->fd, err);
    if (status) {
        coffer__free(spill);
        return status;
    }
    pass->spill = spill;
    status = first_shares(spill, pass, err);
    if (!status)
        status = coffer__mlyze_run_pass(pass, COFFER__MLYZE_DIVIDE, err);
    if (!status)
        status = pair_shares(pass, spill, err);
    if (!status)
        status = coffer__mlyze_run_pass(pass, COFFER__MLYZE_FROM_SPILL, err);
    pass->spill = NULL;
    spill_free(spill);
    return status;
}
