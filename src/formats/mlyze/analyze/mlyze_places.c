#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mlyze/analyze/mlyze_rows.h"
#include "formats/mlyze/mlyze_private.h"

#include <stdlib.h>
#include <string.h>

#define UNKNOWN UINT64_MAX /* the id of stacks that the metadata does not list */

struct coffer_mlyze_places {
    coffer_mlyze_place_row *rows;
    size_t count;
};

/* Places being summed: rows by number of id. */
typedef struct summing {
    coffer_mlyze_by by;
    coffer__mlyze_numbers numbers;
    coffer_mlyze_place_row *rows;
    size_t *seen; /* the last stack, from 1, in the row's inclusive sums: each stack counts once */
    size_t count, capacity;
} summing;

void coffer_mlyze_places_free(coffer_mlyze_places *places)
{
    if (!places)
        return;
    coffer__free(places->rows);
    coffer__free(places);
}

static coffer_status make_rows(summing *sums, size_t count, coffer_error *err)
{
    if (count > sums->capacity) {
        size_t capacity = count + count / 2 + 16;
        coffer_mlyze_place_row *rows = coffer__calloc(capacity, sizeof *rows);
        size_t *seen = coffer__calloc(capacity, sizeof *seen);
        if (!rows || !seen) {
            coffer__free(rows);
            coffer__free(seen);
            return coffer__fail_no_memory(err, capacity * sizeof *rows);
        }
        if (sums->count > 0) {
            memcpy(rows, sums->rows, sums->count * sizeof *rows);
            memcpy(seen, sums->seen, sums->count * sizeof *seen);
        }
        coffer__free(sums->rows);
        coffer__free(sums->seen);
        sums->rows = rows;
        sums->seen = seen;
        sums->capacity = capacity;
    }
    for (; sums->count < count; sums->count++)
        sums->rows[sums->count].id = coffer__mlyze_numbers_id(&sums->numbers, sums->count);
    return COFFER_OK;
}

static coffer_status find_row(size_t *row, summing *sums, uint64_t id, coffer_error *err)
{
    uint32_t number = coffer__mlyze_numbers_find(&sums->numbers, id);
    coffer_status status = COFFER_OK;
    if (number == COFFER__MLYZE_NO_ROW) {
        status = coffer__mlyze_numbers_add(&number, &sums->numbers, id, err);
        if (!status)
            status = make_rows(sums, (size_t)number + 1, err);
    }
    *row = number;
    return status;
}

static void add_self(coffer_mlyze_place_row *place, const coffer_mlyze_stack_row *row)
{
    place->allocs += row->allocs;
    place->allocated_bytes += row->allocated_bytes;
    place->peak_allocs += row->peak_allocs;
    place->peak_bytes += row->peak_bytes;
    place->live_allocs += row->live_allocs;
    place->live_bytes += row->live_bytes;
    place->temporary_allocs += row->temporary_allocs;
    place->temporary_bytes += row->temporary_bytes;
}

static void add_inclusive(coffer_mlyze_place_row *place, const coffer_mlyze_stack_row *row)
{
    place->inclusive_allocs += row->allocs;
    place->inclusive_allocated_bytes += row->allocated_bytes;
    place->inclusive_peak_bytes += row->peak_bytes;
    place->inclusive_live_bytes += row->live_bytes;
    place->inclusive_temporary_bytes += row->temporary_bytes;
}

/* frame : 0 is the innermost. */
static coffer_status add_place(summing *sums, uint64_t id, const coffer_mlyze_stack_row *row, size_t number,
                               size_t frame, coffer_error *err)
{
    size_t place;
    coffer_status status = find_row(&place, sums, id, err);
    if (status)
        return status;
    if (frame == 0)
        add_self(&sums->rows[place], row);
    if (sums->seen[place] != number + 1)
        add_inclusive(&sums->rows[place], row);
    sums->seen[place] = number + 1;
    return COFFER_OK;
}

static coffer_status add_stack(summing *sums, const coffer_mlyze *trace, const coffer_mlyze_stack_row *row,
                               size_t number, coffer_error *err)
{
    size_t depth = 0;
    const coffer_mlyze_frame *frames = NULL;
    coffer_status status = COFFER_OK;
    if (sums->by == COFFER_MLYZE_BY_STACK)
        return add_place(sums, row->id, row, number, 0, err);
    if (row->stack != SIZE_MAX)
        frames = coffer_mlyze_frames(&depth, trace, row->stack);
    if (depth == 0)
        return add_place(sums, UNKNOWN, row, number, 0, err);
    for (size_t i = 0; i < depth && !status; i++)
        status = add_place(sums, sums->by == COFFER_MLYZE_BY_FUNCTION ? frames[i].func_id : frames[i].file_id,
                           row, number, i, err);
    return status;
}

static int by_id(const void *a, const void *b)
{
    const coffer_mlyze_place_row *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Keeps the rows that have stacks. */
static void keep_seen(coffer_mlyze_places *places, summing *sums)
{
    for (size_t i = 0; i < sums->count; i++) {
        if (sums->seen[i] > 0)
            sums->rows[places->count++] = sums->rows[i];
    }
    places->rows = sums->rows;
    sums->rows = NULL;
    if (places->count > 1)
        qsort(places->rows, places->count, sizeof *places->rows, by_id);
}

coffer_status coffer_mlyze_places_new(coffer_mlyze_places **out, const coffer_mlyze *trace,
                                      const coffer_mlyze_stats *stats, coffer_mlyze_by by, coffer_error *err)
{
    coffer_mlyze_places_opts opts = COFFER_MLYZE_PLACES_OPTS_INIT;
    opts.by = by;
    return coffer_mlyze_places_select(out, trace, stats, &opts, err);
}

COFFER__INIT_FUNCTION(coffer_mlyze_places_opts, COFFER_MLYZE_PLACES_OPTS_INIT)

static bool is_selected(const coffer_mlyze_places_opts *opts, const coffer_mlyze *trace,
                        const coffer_mlyze_stack_row *row)
{
    return coffer__mlyze_is_selected(opts->focus, opts->ignore, trace, row->stack) &&
           (!opts->growing || coffer_mlyze_stack_row_is_growing(row));
}

coffer_status coffer_mlyze_places_select(coffer_mlyze_places **out, const coffer_mlyze *trace,
                                         const coffer_mlyze_stats *stats,
                                         const coffer_mlyze_places_opts *opts, coffer_error *err)
{
    coffer_mlyze_places_opts options = COFFER_MLYZE_PLACES_OPTS_INIT;
    const coffer__mlyze_metadata *metadata = &trace->metadata;
    const coffer__mlyze_ids *listed[] = { &metadata->stacks.ids, &metadata->functions.ids,
                                          &metadata->files.ids };
    coffer_mlyze_places *places = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    coffer_mlyze_by by = options.by;
    summing sums = { .by = by };
    if (status)
        return status;
    if ((unsigned)by > COFFER_MLYZE_BY_FILE)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "unknown kind of places %u",
                            (unsigned)by);
    coffer__mlyze_numbers_init(&sums.numbers, listed[by], UINT64_MAX);
    status = make_rows(&sums, listed[by]->count, err);
    for (size_t i = 0; i < coffer_mlyze_stats_stack_count(stats) && !status; i++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(stats, i);
        if (is_selected(&options, trace, row))
            status = add_stack(&sums, trace, row, i, err);
    }
    if (status)
        goto out;
    places = coffer__calloc(1, sizeof *places);
    if (!places) {
        status = coffer__fail_no_memory(err, sizeof *places);
        goto out;
    }
    keep_seen(places, &sums);
    *out = places;
out:
    coffer__free(sums.rows);
    coffer__free(sums.seen);
    coffer__mlyze_numbers_free(&sums.numbers);
    return status;
}

size_t coffer_mlyze_places_count(const coffer_mlyze_places *places)
{
    return places->count;
}

const coffer_mlyze_place_row *coffer_mlyze_places_at(const coffer_mlyze_places *places, size_t index)
{
    return index < places->count ? &places->rows[index] : NULL;
}
