/* Connects each piece with the pieces before it: rows of new stacks, and the next allocation of each thread.
 */
#include "formats/mlyze/analyze/mlyze_pass.h"

#include "base/fail.h"

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
        /* Numbers in the file bound the memory of the pages: they must be right before they are used. */
        if (pass->readers.by_number &&
            (piece->lost > 0 || piece->replaces || piece->alloc_number != pass->course.alloc_count)) {
            atomic_store(&pass->readers.needs_addresses, true);
            return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                                "frees are paired by address instead of by number");
        }
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
