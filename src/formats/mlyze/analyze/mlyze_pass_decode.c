/* Plans batches, decodes pieces into columns, and connects each piece with those before it. */
#include "formats/mlyze/analyze/mlyze_pass.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"

#include <string.h>

/* ---- Planning ---- */

uint64_t coffer__mlyze_next_stop(const coffer__mlyze_pass *pass)
{
    for (size_t i = pass->boundaries.next; i < pass->boundaries.count; i++) {
        if (pass->boundaries.items[i].event > pass->course.next_event)
            return pass->boundaries.items[i].event;
    }
    return UINT64_MAX;
}

void coffer__mlyze_plan(coffer__mlyze_batch *batch, coffer__mlyze_pass *pass)
{
    uint64_t stop = coffer__mlyze_next_stop(pass);
    batch->count = 0;
    batch->first_piece = pass->course.piece_count;
    size_t last_block = pass->map->count;
    if (pass->readers.items && pass->readers.count < last_block - pass->course.next_block)
        last_block = pass->course.next_block + pass->readers.count;
    while (batch->count < pass->batch_pieces && pass->course.next_block < last_block &&
           pass->course.next_event < pass->course.end_event && pass->course.next_event < stop) {
        const coffer__mlyze_block *block = &pass->map->items[pass->course.next_block];
        uint64_t end = block->first_event + block->event_count;
        uint64_t from =
            block->first_event > pass->course.next_event ? block->first_event : pass->course.next_event;
        uint64_t to = end < stop ? end : stop;
        if (to > pass->course.end_event)
            to = pass->course.end_event;
        if (pass->readers.items && from < to && to - from > COFFER__MLYZE_SEGMENT)
            to = from + COFFER__MLYZE_SEGMENT;
        if (from < to) {
            coffer__mlyze_piece *piece = &batch->pieces[batch->count++];
            piece->block = pass->course.next_block;
            piece->from = from;
            piece->to = to;
            pass->course.next_event = to;
        }
        if (to >= end)
            pass->course.next_block++;
        else
            pass->course.next_event = to; /* also past numbers that no block has */
    }
    pass->course.piece_count += batch->count;
    batch->ends_at = pass->course.next_event;
}

/* ---- Decoding ---- */

void coffer__mlyze_piece_free(coffer__mlyze_piece *piece)
{
    coffer_mlyze_events_free(&piece->events);
    coffer__free(piece->row);
    coffer__free(piece->order);
    coffer__free(piece->listed);
    coffer__free(piece->marks);
    coffer__free(piece->stops);
    coffer__free(piece->spans);
}

static coffer_status make_room(coffer__mlyze_piece *piece, const coffer__mlyze_pass *pass, coffer_error *err)
{
    size_t wanted = piece->events.count;
    if (wanted <= piece->capacity)
        return COFFER_OK;
    coffer__free(piece->row);
    coffer__free(piece->order);
    coffer__free(piece->listed);
    piece->capacity = 0;
    piece->row = coffer__alloc_array(wanted, sizeof *piece->row);
    piece->order = coffer__alloc_array(wanted, sizeof *piece->order);
    piece->listed = coffer__alloc_array(wanted, (pass->shards.max + 1) * sizeof *piece->listed);
    if (!piece->row || !piece->order || !piece->listed)
        return coffer__fail_no_memory(err, wanted * sizeof *piece->row);
    piece->capacity = wanted;
    return COFFER_OK;
}

/* A file may contain unknown events whose types are the numbers that pairing uses: they become another
 * unknown type. */
static void hide_own_types(coffer_mlyze_events *events)
{
    for (size_t i = 0; i < events->count; i++)
        events->type[i] =
            events->type[i] < COFFER__MLYZE_REPLACING ? events->type[i] : COFFER__MLYZE_REPLACING - 1;
}

/* A damaged block is skipped; a failure of the machine is an error. */
static coffer_status read_events(coffer__mlyze_piece *piece, const coffer__mlyze_pass *pass,
                                 coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    coffer_status status = pass->readers.items
                               ? coffer__mlyze_read_segment(piece, pass, &failure)
                               : coffer_mlyze_read_block(&piece->events, pass->trace, piece->block, &failure);
    if (status && !coffer__is_about_file(status)) {
        if (err)
            *err = failure;
        return status;
    }
    piece->lost = 0;
    piece->begin = piece->end = 0;
    if (status || piece->events.count > UINT16_MAX + (size_t)1) {
        piece->events.count = 0;
        piece->lost = piece->to - piece->from;
        return COFFER_OK;
    }
    hide_own_types(&piece->events);
    uint64_t first = piece->events.first;
    piece->begin = piece->from > first ? (size_t)(piece->from - first) : 0;
    piece->end = piece->to - first < piece->events.count ? (size_t)(piece->to - first) : piece->events.count;
    if (piece->begin > piece->end)
        piece->begin = piece->end;
    return COFFER_OK;
}

/* Finds the rows of the stacks; returns whether all have one. */
static bool find_rows(coffer__mlyze_piece *piece, const coffer__mlyze_numbers *stacks)
{
    const uint64_t *id = piece->events.id;
    const uint8_t *type = piece->events.type;
    const coffer__mlyze_ids listed =
        *stacks->listed; /* a copy, so that the compiler sees that it does not change */
    bool missing = false;
    for (size_t i = piece->begin; i < piece->end; i++) {
        size_t number = coffer__mlyze_ids_find(&listed, id[i]);
        uint32_t row = number != SIZE_MAX ? (uint32_t)number : COFFER__MLYZE_NO_ROW;
        if (number == SIZE_MAX && type[i] == COFFER_MLYZE_ALLOC)
            row = coffer__mlyze_numbers_find_unlisted(stacks, id[i]);
        piece->row[i] = row;
        missing |= (row == COFFER__MLYZE_NO_ROW) & (type[i] == COFFER_MLYZE_ALLOC);
    }
    return !missing;
}

static void list_all(coffer__mlyze_piece *piece)
{
    const uint8_t *type = piece->events.type;
    size_t count = 0;
    for (size_t i = piece->begin; i < piece->end; i++) {
        piece->listed[count] = (uint16_t)i;
        count += type[i] <= COFFER_MLYZE_FREE;
    }
    piece->list_count[0] = count;
}

static void list_by_shard(coffer__mlyze_piece *piece, const coffer__mlyze_pass *pass)
{
    const uint8_t *type = piece->events.type;
    const uint64_t *address = piece->events.address;
    size_t shards = pass->shards.count;
    memset(piece->list_count, 0, sizeof piece->list_count);
    for (size_t i = piece->begin; i < piece->end; i++) {
        uint64_t hash = coffer__mlyze_hash(&pass->key, address[i]);
        size_t shard = 0;
        for (size_t s = 0; s + 1 < shards; s++)
            shard += hash > pass->shards.high[s];
        if (hash < pass->shards.low[shard] || hash > pass->shards.high[shard])
            shard = shards;
        piece->listed[shard * piece->capacity + piece->list_count[shard]] = (uint16_t)i;
        piece->list_count[shard] += type[i] <= COFFER_MLYZE_FREE;
    }
}

/* ---- Which allocations are temporary ---- */

static coffer_status find_span(coffer__mlyze_span **out, coffer__mlyze_piece *piece, uint32_t *span_of,
                               uint16_t thread, size_t event, coffer_error *err)
{
    if (span_of[thread] == 0) {
        coffer_status status = coffer__array_reserve_one(&piece->spans, &piece->span_capacity,
                                                         piece->span_count, sizeof *piece->spans, err);
        if (status)
            return status;
        piece->spans[piece->span_count++] = (coffer__mlyze_span){ thread, (uint16_t)event, (uint16_t)event };
        span_of[thread] = (uint32_t)piece->span_count;
    }
    *out = &piece->spans[span_of[thread] - 1];
    return COFFER_OK;
}

/* Chains the allocations of each thread. Branch-free: each event is stored as a tentative successor and
 * overwritten until the next allocation. */
static coffer_status chain_threads(coffer__mlyze_piece *piece, uint32_t *span_of, uint32_t number,
                                   coffer_error *err)
{
    const uint16_t *thread = piece->events.thread;
    const uint8_t *type = piece->events.type;
    uint32_t base = number << 16, current_thread = UINT32_MAX;
    uint32_t unused, *last = &unused;
    coffer__mlyze_span *span = NULL;
    coffer_status status = COFFER_OK;
    piece->span_count = 0;
    for (size_t i = piece->begin; i < piece->end; i++) {
        bool is_alloc = type[i] == COFFER_MLYZE_ALLOC;
        if (is_alloc & (thread[i] != current_thread)) {
            *last = COFFER__MLYZE_NO_EVENT;
            if (span)
                span->last = (uint16_t)(last - piece->order);
            status = find_span(&span, piece, span_of, thread[i], i, err);
            if (status)
                break;
            current_thread = thread[i];
            last = &piece->order[span->last];
        }
        *last = base + (uint32_t)i;
        last = is_alloc ? &piece->order[i] : last;
    }
    *last = COFFER__MLYZE_NO_EVENT;
    if (span)
        span->last = (uint16_t)(last - piece->order);
    for (size_t i = 0; i < piece->span_count; i++)
        span_of[piece->spans[i].thread] = 0;
    return status;
}

static void count_allocs_before(coffer__mlyze_piece *piece)
{
    const uint8_t *type = piece->events.type;
    uint32_t count = 0;
    for (size_t i = piece->begin; i < piece->end; i++) {
        piece->order[i] = count;
        count += type[i] == COFFER_MLYZE_ALLOC;
    }
}

/* ---- Counts ---- */

static void count_types(coffer__mlyze_piece *piece, bool *seen)
{
    const uint8_t *type = piece->events.type;
    uint64_t allocs = 0, frees = 0, allocated = 0;
    for (size_t i = piece->begin; i < piece->end; i++) {
        allocs += type[i] == COFFER_MLYZE_ALLOC;
        frees += type[i] == COFFER_MLYZE_FREE;
        allocated += piece->events.size[i]; /* of other events too: note_others() subtracts them */
        seen[piece->events.thread[i]] = true;
    }
    piece->allocs = allocs;
    piece->frees = frees;
    piece->allocated = allocated;
    if (piece->begin < piece->end) {
        piece->first_type = type[piece->begin];
        piece->last_type = type[piece->end - 1];
    }
}

static void count_reallocs(coffer__mlyze_piece *piece)
{
    const uint8_t *type = piece->events.type;
    const uint64_t *time = piece->events.time;
    uint64_t reallocs = 0;
    for (size_t i = piece->begin + 1; i < piece->end; i++)
        reallocs +=
            (type[i] == COFFER_MLYZE_ALLOC) & (type[i - 1] == COFFER_MLYZE_FREE) & (time[i] == time[i - 1]);
    piece->reallocs = reallocs;
}

static coffer_status make_stops(coffer__mlyze_piece *piece, coffer_error *err)
{
    if (piece->mark_count < piece->stop_capacity)
        return COFFER_OK;
    size_t capacity = piece->mark_capacity + 1;
    coffer__free(piece->stops);
    piece->stop_capacity = 0;
    piece->stops = coffer__alloc_array(capacity, sizeof *piece->stops);
    if (!piece->stops)
        return coffer__fail_no_memory(err, capacity * sizeof *piece->stops);
    piece->stop_capacity = capacity;
    return COFFER_OK;
}

/* Markers, collections and rarer events. */
static coffer_status note_others(coffer__mlyze_piece *piece, coffer_error *err)
{
    const uint8_t *type = piece->events.type;
    coffer_status status = COFFER_OK;
    bool none = piece->allocs + piece->frees == piece->end - piece->begin;
    piece->mark_count = 0;
    piece->has_markers = false;
    for (size_t i = piece->begin; i < piece->end && !none && !status; i++) {
        if (type[i] <= COFFER_MLYZE_FREE)
            continue;
        status = coffer__array_reserve_one(&piece->marks, &piece->mark_capacity, piece->mark_count,
                                           sizeof *piece->marks, err);
        if (!status)
            piece->marks[piece->mark_count++] = (uint16_t)i;
        piece->has_markers |= type[i] == COFFER_MLYZE_MARKER;
        piece->allocated -= piece->events.size[i];
    }
    return status ? status : make_stops(piece, err);
}

coffer_status coffer__mlyze_decode(coffer__mlyze_piece *piece, const coffer__mlyze_pass *pass,
                                   uint32_t number, uint32_t worker, coffer_error *err)
{
    coffer_status status = read_events(piece, pass, err);
    if (!status)
        status = make_room(piece, pass, err);
    if (status)
        return status;
    count_types(piece, pass->chains.seen_by[worker]);
    count_reallocs(piece);
    piece->has_unlisted = !find_rows(piece, &pass->stacks);
    if (pass->shards.sees_all)
        list_all(piece);
    else
        list_by_shard(piece, pass);
    piece->span_count = 0;
    if (pass->opts.temporary_allocs > 0)
        count_allocs_before(piece);
    else if (pass->opts.temporary_us == 0 && !pass->shards.sees_all)
        status = chain_threads(piece, pass->chains.span_of[worker], number, err);
    return status ? status : note_others(piece, err);
}

/* ---- Joining: what depends on the pieces before ---- */

static coffer_status add_rows(coffer__mlyze_pass *pass, coffer__mlyze_piece *piece, coffer_error *err)
{
    for (size_t i = piece->begin; i < piece->end; i++) {
        if (piece->events.type[i] != COFFER_MLYZE_ALLOC || piece->row[i] != COFFER__MLYZE_NO_ROW)
            continue;
        uint64_t id = piece->events.id[i];
        uint32_t row = coffer__mlyze_numbers_find(&pass->stacks, id);
        if (row == COFFER__MLYZE_NO_ROW) {
            coffer_status status = coffer__mlyze_numbers_add(&row, &pass->stacks, id, err);
            if (status)
                return status;
        }
        piece->row[i] = row;
    }
    return COFFER_OK;
}

static void join_threads(coffer__mlyze_pass *pass, coffer__mlyze_batch *batch, size_t number)
{
    const coffer__mlyze_piece *piece = &batch->pieces[number];
    for (size_t i = 0; i < piece->span_count; i++) {
        const coffer__mlyze_span *span = &piece->spans[i];
        uint32_t first = (uint32_t)number << 16 | span->first;
        uint32_t before = pass->chains.last_here[span->thread];
        if (pass->chains.first_here[span->thread] == COFFER__MLYZE_NO_EVENT) {
            pass->chains.first_here[span->thread] = first;
            pass->chains.threads_here[pass->chains.threads_here_count++] = span->thread;
        } else {
            batch->pieces[before >> 16].order[before & UINT16_MAX] = first;
        }
        pass->chains.last_here[span->thread] = (uint32_t)number << 16 | span->last;
    }
}

coffer_status coffer__mlyze_join(coffer__mlyze_pass *pass, coffer__mlyze_batch *batch, coffer_error *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        coffer__mlyze_piece *piece = &batch->pieces[i];
        if (piece->has_unlisted) {
            coffer_status status = add_rows(pass, piece, err);
            if (status)
                return status;
        }
        piece->allocs_before = pass->course.alloc_count;
        pass->course.alloc_count += piece->allocs;
        join_threads(pass, batch, i);
    }
    return COFFER_OK;
}

void coffer__mlyze_part_with(coffer__mlyze_pass *pass, const coffer__mlyze_batch *batch)
{
    for (size_t i = 0; i < pass->chains.threads_here_count; i++) {
        uint16_t thread = pass->chains.threads_here[i];
        pass->chains.last_before[thread] = (batch->first_piece << 16) + pass->chains.last_here[thread];
        pass->chains.first_here[thread] = COFFER__MLYZE_NO_EVENT;
    }
    pass->chains.threads_here_count = 0;
}
