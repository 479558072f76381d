/* Sums by stack and by thread, with their values at the high-water mark of the whole trace. A new mark does
 * not copy every row: it begins an epoch, and a row saves its peak values when it is first touched in the new
 * epoch. Rows that are not touched have not changed. */
#ifndef COFFER_FORMATS_MLYZE_ROWS_H
#define COFFER_FORMATS_MLYZE_ROWS_H

#include "base/table.h"
#include "coffer/mlyze.h"
#include "formats/mlyze/analyze/mlyze_live.h"
#include "formats/mlyze/read/mlyze_ids.h"

#define COFFER__MLYZE_NO_ROW UINT32_MAX
#define COFFER__MLYZE_THREADS 65536 /* thread numbers have 16 bits */

typedef struct coffer__mlyze_row {
    uint64_t epoch;
    uint64_t peak_allocs, peak_bytes; /* valid in the current epoch; otherwise the live values are */
    uint64_t live_allocs, live_bytes;
    uint64_t allocs, allocated_bytes;
    uint64_t freed_allocs, lifetime;
    uint64_t temporary_allocs, temporary_bytes;
} coffer__mlyze_row;

/* Makes room for this many rows; new ones are 0. */
coffer_status coffer__mlyze_make_rows(coffer__mlyze_row **rows, size_t *capacity, size_t count,
                                      coffer_error *err);
/* Forgets what was counted before a window, but not what is live. */
void coffer__mlyze_row_begin_window(coffer__mlyze_row *row);
bool coffer__mlyze_row_is_empty(const coffer__mlyze_row *row);

static inline void coffer__mlyze_row_touch(coffer__mlyze_row *row, uint64_t epoch)
{
    if (row->epoch == epoch)
        return;
    row->epoch = epoch;
    row->peak_allocs = row->live_allocs;
    row->peak_bytes = row->live_bytes;
}

/* Maps ids to rows: ids of a metadata table keep their number, others follow. */
typedef struct coffer__mlyze_numbers {
    const coffer__mlyze_ids *listed;
    uint64_t *unlisted; /* ids in the order of their rows */
    size_t unlisted_count, unlisted_capacity, max_unlisted;
    coffer__table table; /* of the unlisted */
} coffer__mlyze_numbers;

/* max_unlisted : more are COFFER_E_LIMIT. */
void coffer__mlyze_numbers_init(coffer__mlyze_numbers *numbers, const coffer__mlyze_ids *listed,
                                uint64_t max_unlisted);
void coffer__mlyze_numbers_free(coffer__mlyze_numbers *numbers);
size_t coffer__mlyze_numbers_count(const coffer__mlyze_numbers *numbers); /* rows */
uint64_t coffer__mlyze_numbers_id(const coffer__mlyze_numbers *numbers, size_t row);
uint32_t coffer__mlyze_numbers_find_unlisted(const coffer__mlyze_numbers *numbers, uint64_t id);
coffer_status coffer__mlyze_numbers_add(uint32_t *row, coffer__mlyze_numbers *numbers, uint64_t id,
                                        coffer_error *err);

/* COFFER__MLYZE_NO_ROW when the id has none yet. */
static inline uint32_t coffer__mlyze_numbers_find(const coffer__mlyze_numbers *numbers, uint64_t id)
{
    size_t number = coffer__mlyze_ids_find(numbers->listed, id);
    return number != SIZE_MAX ? (uint32_t)number : coffer__mlyze_numbers_find_unlisted(numbers, id);
}

#endif
