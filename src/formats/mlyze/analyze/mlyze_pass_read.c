/* Decodes the trace in batches; while one is followed, other threads decode the next. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "formats/mlyze/analyze/mlyze_pass.h"

#define BLOCKS_PER_THREAD 4 /* of a batch, so that threads wait for each other less often */
#define SEGMENT 4096        /* events of an archive block that are decoded at once: they stay in the cache */
#define SEGMENTS_AHEAD 8    /* of a batch, with more than one thread */
#define MAX_ROOM 1024

coffer_status coffer__mlyze_make_batches(coffer__mlyze_pass *pass, coffer_error *err)
{
    const bool is_archive = coffer__mlyze_has_archive(&pass->trace->header);
    const uint32_t threads = coffer__work_threads(pass->work);
    size_t room = is_archive ? SEGMENTS_AHEAD : (size_t)threads * BLOCKS_PER_THREAD;
    if (threads == 1)
        room = 1;
    pass->batch_room = room < MAX_ROOM ? room : MAX_ROOM;
    for (size_t i = 0; i < 2; i++) {
        coffer__mlyze_batch *batch = &pass->batches[i];
        batch->is_archive = is_archive;
        batch->chapters = coffer__calloc(pass->batch_room, sizeof *batch->chapters);
        if (!batch->chapters)
            return coffer__fail_no_memory(err, pass->batch_room * sizeof *batch->chapters);
    }
    return COFFER_OK;
}

void coffer__mlyze_free_batches(coffer__mlyze_pass *pass)
{
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; pass->batches[i].chapters && k < pass->batch_room; k++)
            coffer_mlyze_events_free(&pass->batches[i].chapters[k].events);
        coffer__free(pass->batches[i].chapters);
        coffer__mlyze_unpacker_free(&pass->unpackers[i]);
    }
}

/* ---- Planning ---- */

/* The next events of a block; false when none of them is wanted. */
static bool plan_chapter(coffer__mlyze_chapter *out, coffer__mlyze_pass *pass, bool is_archive)
{
    coffer__mlyze_state *state = &pass->state;
    const coffer__mlyze_block *block = &pass->map->items[state->next_block];
    const uint64_t first = block->first_event, end = first + block->event_count;
    const uint64_t wanted = end < pass->end_event ? end : pass->end_event;
    out->block = state->next_block;
    out->from = first > state->next_event ? first : state->next_event;
    out->to = is_archive && wanted > out->from && wanted - out->from > SEGMENT ? out->from + SEGMENT : wanted;
    out->begins_block = out->from == first;
    out->ends_block = out->to >= wanted;
    if (out->ends_block)
        state->next_block++;
    if (out->from >= out->to)
        return false;
    state->next_event = out->to;
    return true;
}

/* The chapters of an archive's batch are all of one block. */
static coffer_status prepare(void *context, size_t slot, uint64_t *pieces, coffer_error *err)
{
    coffer__mlyze_pass *pass = context;
    coffer__mlyze_batch *batch = &pass->batches[slot];
    (void)err;
    batch->count = 0;
    while (batch->count < pass->batch_room && pass->state.next_block < pass->map->count &&
           pass->state.next_event < pass->end_event && !pass->named.failed) {
        if (!plan_chapter(&batch->chapters[batch->count], pass, batch->is_archive))
            continue;
        batch->count++;
        if (batch->is_archive && batch->chapters[batch->count - 1].ends_block)
            break;
    }
    *pieces = batch->is_archive && batch->count > 0 ? 1 : batch->count;
    return COFFER_OK;
}

/* ---- Decoding ---- */

/* Damage is not a failure. */
static coffer_status lose(coffer__mlyze_chapter *chapter, coffer_status status, const coffer_error *failure,
                          coffer_error *err)
{
    chapter->lost = status != COFFER_OK;
    if (!status || coffer__is_about_file(status))
        return COFFER_OK;
    return coffer__fail_copy(err, failure);
}

static coffer_status open_block(coffer__mlyze_chapter *chapter, coffer__mlyze_pass *pass,
                                coffer__mlyze_unpacker *unpacker, coffer_error *err)
{
    coffer__mlyze_block block;
    coffer_status status = coffer__mlyze_find_block(&block, pass->trace, chapter->block, err);
    unpacker->event = 0;
    if (!status)
        status =
            coffer__mlyze_unpack_open(unpacker, pass->trace, &block, pass->way == COFFER__MLYZE_BY_NAME, err);
    return status;
}

/* A block that could not be decoded stays lost to its end: `event` of its unpacker does not match. */
static coffer_status unpack_segment(coffer__mlyze_chapter *chapter, coffer__mlyze_pass *pass,
                                    coffer_error *err)
{
    coffer__mlyze_unpacker *unpacker = &pass->unpackers[chapter->block % 2];
    const size_t count = (size_t)(chapter->to - chapter->from);
    coffer_error failure = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    chapter->events.count = 0;
    if (chapter->begins_block)
        status = open_block(chapter, pass, unpacker, &failure);
    if (!status && unpacker->block.first_event + unpacker->event != chapter->from)
        status = coffer__fail(&failure, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "the block is damaged");
    if (!status)
        status = coffer__mlyze_events_reserve_rows(&chapter->events, SEGMENT, &failure);
    if (!status)
        status = coffer__mlyze_unpack_some(&chapter->events, unpacker, count, &failure);
    if (status) {
        unpacker->event = UINT32_MAX;
        if (coffer__is_about_file(status))
            coffer__mlyze_note_lost(pass->trace, chapter->block);
    }
    chapter->unpacker = unpacker;
    chapter->replaces = unpacker->replaces;
    chapter->first_alloc = unpacker->first_alloc;
    chapter->alloc_count = unpacker->alloc_count;
    chapter->import_count = unpacker->import_count;
    return lose(chapter, status, &failure, err);
}

static coffer_status produce(void *context, size_t slot, uint64_t piece, uint32_t worker, coffer_error *err)
{
    coffer__mlyze_pass *pass = context;
    const coffer__mlyze_batch *batch = &pass->batches[slot];
    coffer__mlyze_chapter *chapter = &batch->chapters[piece];
    (void)worker;
    if (!batch->is_archive) {
        coffer_error failure = COFFER_ERROR_INIT;
        coffer_status status =
            coffer_mlyze_read_block(&chapter->events, pass->trace, chapter->block, &failure);
        status = lose(chapter, status, &failure, err);
        chapter->lost |= chapter->events.first > chapter->from; /* the map was wrong and has been replaced */
        return status;
    }
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < batch->count && !status; i++)
        status = unpack_segment(&batch->chapters[i], pass, err);
    return status;
}

/* ---- Following ---- */

static coffer_status consume_chapter(coffer__mlyze_pass *pass, const coffer__mlyze_chapter *chapter,
                                     coffer_error *err)
{
    const bool by_name = pass->way == COFFER__MLYZE_BY_NAME;
    coffer_status status = COFFER_OK;
    pass->named.failed |= by_name && (chapter->lost || chapter->replaces);
    if (by_name && chapter->begins_block && !pass->named.failed)
        status = coffer__mlyze_begin_names(pass, chapter, err);
    if (!status && !pass->named.failed)
        status = coffer__mlyze_follow_chapter(pass, chapter, err);
    if (!status && by_name && chapter->ends_block && !pass->named.failed)
        status = coffer__mlyze_end_names(pass, chapter, err);
    return status;
}

static coffer_status consume(void *context, size_t slot, coffer_error *err)
{
    coffer__mlyze_pass *pass = context;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < pass->batches[slot].count && !status; i++)
        status = consume_chapter(pass, &pass->batches[slot].chapters[i], err);
    return status;
}

static coffer_status report_progress(void *context, size_t slot, coffer_error *err)
{
    const coffer__mlyze_pass *pass = context;
    (void)slot;
    if (pass->state.done_events == 0)
        return COFFER_OK;
    return coffer__progress_step(pass->opts.progress, pass->state.done_events, pass->end_event, err);
}

coffer_status coffer__mlyze_read_all(coffer__mlyze_pass *pass, coffer_error *err)
{
    static const coffer__work_pipeline pipeline = { prepare, produce, consume, report_progress };
    return coffer__work_run_pipeline(pass->work, &pipeline, pass, err);
}
