/* All entries of a Matrix Market file, with what a reader accepts although it is not right: two values for
 * one element, and entries that the symmetry leaves out. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/work.h"
#include "outside/arrays/mtx.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ENTRIES_A_STEP = 1 << 16 };

typedef struct mtx_check {
    coffer_report *report;
    coffer__mtx mtx;
    uint64_t *places; /* of all entries so far; NULL = too many to remember */
    uint64_t count, last_by_row, last_by_col;
    bool by_rows, by_cols;           /* the entries are in this order, so none is there twice */
    uint64_t outside, first_outside; /* entries above the diagonal of a symmetric matrix, and a line */
    uint64_t on_diagonal, first_on_diagonal; /* of a skew-symmetric one */
} mtx_check;

static void remember(mtx_check *check, const coffer__mtx_entry *entry)
{
    const coffer__mtx *mtx = &check->mtx;
    uint64_t by_row = entry->row * mtx->cols + entry->col, by_col = entry->col * mtx->rows + entry->row;
    if (check->places)
        check->places[check->count] = by_row;
    check->by_rows = check->by_rows && (check->count == 0 || by_row > check->last_by_row);
    check->by_cols = check->by_cols && (check->count == 0 || by_col > check->last_by_col);
    check->last_by_row = by_row;
    check->last_by_col = by_col;
    check->count++;
    if (mtx->symmetry == COFFER__MTX_GENERAL)
        return;
    if (entry->row < entry->col && check->outside++ == 0)
        check->first_outside = entry->line;
    if (mtx->symmetry == COFFER__MTX_SKEW && entry->row == entry->col && check->on_diagonal++ == 0)
        check->first_on_diagonal = entry->line;
}

static int by_value(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static void report_twice(mtx_check *check)
{
    uint64_t twice = 0, first = 0, cols = check->mtx.cols;
    if (check->by_rows || check->by_cols)
        return;
    if (!check->places) {
        coffer__report_set_limits(check->report, "too many entries to find those that are there twice");
        return;
    }
    qsort(check->places, (size_t)check->count, sizeof *check->places, by_value);
    for (uint64_t i = 1; i < check->count; i++) {
        if (check->places[i] == check->places[i - 1] && twice++ == 0)
            first = check->places[i];
    }
    if (twice)
        coffer__report_add(check->report, COFFER_E_DUPLICATE, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "%" PRIu64
                           " entries are for an element that has one already, the first for row %" PRIu64
                           ", column %" PRIu64 "; readers add them up",
                           twice, first / cols + 1, first % cols + 1);
}

static void report_symmetry(const mtx_check *check)
{
    const char *symmetry = coffer__mtx_symmetry_names[check->mtx.symmetry];
    if (check->outside)
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "%" PRIu64 " entries are above the diagonal, the first in line %" PRIu64
                           ": a %s file has the lower triangle only",
                           check->outside, check->first_outside, symmetry);
    if (check->on_diagonal)
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_ERROR, COFFER_OFFSET_NONE,
                           "%" PRIu64 " entries are on the diagonal, the first in line %" PRIu64
                           ": a %s matrix has none",
                           check->on_diagonal, check->first_on_diagonal, symmetry);
}

static coffer_status read_entries(mtx_check *check, const coffer_progress *progress, coffer_error *err)
{
    coffer__mtx_entry entry;
    bool more = true;
    coffer_status status = COFFER_OK;
    while (!status && more) {
        if (check->count % ENTRIES_A_STEP == 0)
            status = coffer__progress_step(progress, check->count, check->mtx.entries, err);
        if (!status)
            status = coffer__mtx_next(&more, &entry, &check->mtx, err);
        if (!status && more)
            remember(check, &entry);
    }
    return status;
}

coffer_status coffer__mtx_check(coffer_report *out, coffer_source *src, const coffer_limits *limits,
                                const coffer_progress *progress, coffer_error *err)
{
    mtx_check check = { .report = out, .by_rows = true, .by_cols = true };
    uint64_t elements;
    coffer_status status = coffer__mtx_open(&check.mtx, src, limits, err);
    if (status)
        return status;
    bool fits = coffer__mul_u64(&elements, check.mtx.rows, check.mtx.cols) &&
                check.mtx.entries <= limits->memory_bytes / sizeof *check.places &&
                check.mtx.entries <= SIZE_MAX / sizeof *check.places;
    if (check.mtx.coordinate && fits)
        check.places = coffer__alloc_array((size_t)check.mtx.entries, sizeof *check.places);
    status = read_entries(&check, progress, err);
    if (!status && check.mtx.coordinate) {
        report_twice(&check);
        report_symmetry(&check);
    }
    coffer__free(check.places);
    coffer__mtx_close(&check.mtx);
    return status;
}
