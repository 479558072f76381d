/* The guard: the header against its copy, the bytes that no other checksum covers, and the marks of a repair.
 */
#include "formats/mldf/mldf_check.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>

#define FREE_OF_COST ((uint64_t)64 << 20) /* bytes that are summed even without `full` */

static void report_header(const coffer__mldf_checker *check)
{
    const coffer__mldf_guard *guard = &check->set.guard;
    const uint8_t *head = check->set.header.bytes;
    size_t at = 0;
    while (at < COFFER__MLDF_HEAD_SIZE && head[at] == guard->head[at])
        at++;
    if (at < COFFER__MLDF_HEAD_SIZE)
        coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, at,
                           "the header differs from its copy: byte %zu is %02x, the copy has %02x", at,
                           head[at], guard->head[at]);
    if (guard->file_size != check->set.file_size)
        coffer__report_add(check->report, COFFER_E_SIZE_MISMATCH, COFFER_ERROR, check->set.file_size,
                           "the file has %" PRIu64 " bytes, %" PRIu64 " were written", check->set.file_size,
                           guard->file_size);
}

static void report_state(const coffer__mldf_checker *check)
{
    const coffer_mldf *set = &check->set;
    switch (set->guard_state) {
    case COFFER__MLDF_GUARD_NONE:
    case COFFER__MLDF_GUARD_FINE:
        break;
    case COFFER__MLDF_GUARD_ONE_COPY:
        coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, set->header.data,
                           "one of the two copies of the header, before %" PRIu64 " and before %" PRIu64
                           ", is damaged",
                           set->header.data, set->header.table);
        break;
    case COFFER__MLDF_GUARD_STALE:
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_WARNING, set->guard.file_size,
                           "another program has changed the file: header and padding are not covered by a "
                           "checksum; 'coffer compact' adds it");
        break;
    case COFFER__MLDF_GUARD_TRUNCATED:
    case COFFER__MLDF_GUARD_DIFFERS:
        report_header(check);
        break;
    }
}

/* ---- Sums ---- */

static coffer_status check_range(const coffer__mldf_checker *check, uint64_t from, uint64_t to,
                                 uint32_t expected, const char *what, coffer_error *err)
{
    uint8_t *scratch = coffer__malloc(COFFER__MLDF_SUM_BLOCK);
    uint32_t crc = 0;
    if (!scratch)
        return coffer__fail_no_memory(err, COFFER__MLDF_SUM_BLOCK);
    coffer_status status = coffer__mldf_sum_range(&crc, &check->set, from, to - from, scratch, err);
    coffer__free(scratch);
    if (!status && crc != expected)
        coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, from,
                           "the CRC-32 of %s, %" PRIu64 " to %" PRIu64 ", is %08lx, the file says %08lx",
                           what, from, to, (unsigned long)crc, (unsigned long)expected);
    return status;
}

static coffer_status check_ranges(const coffer__mldf_checker *check, coffer_error *err)
{
    const coffer_mldf *set = &check->set;
    const coffer__mldf_guard *guard = &set->guard;
    uint64_t front = set->header.data - COFFER__MLDF_GUARD_SIZE;
    uint64_t tail = set->header.table - COFFER__MLDF_GUARD_SIZE;
    coffer_status status = COFFER_OK;
    if (front <= FREE_OF_COST || check->opts->full)
        status = check_range(check, 0, front, guard->front_crc, "header, descriptors and padding", err);
    if (status || guard->data_end > tail)
        return status;
    if (tail - guard->data_end <= FREE_OF_COST || check->opts->full)
        status = check_range(check, guard->data_end, tail, guard->tail_crc, "rows and padding", err);
    return status;
}

/* ---- Marks ---- */

static void report_mark(const coffer__mldf_checker *check, const coffer__mldf_mark *mark)
{
    char samples[64], field[24] = "";
    if (mark->count == 1)
        snprintf(samples, sizeof samples, "sample %" PRIu64, mark->first);
    else
        snprintf(samples, sizeof samples, "samples %" PRIu64 " to %" PRIu64, mark->first,
                 mark->first + (mark->count - 1));
    if (mark->field != COFFER__MLDF_MARK_ROW)
        snprintf(field, sizeof field, ", field %u", mark->field);
    coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, COFFER_OFFSET_NONE,
                       mark->kind == COFFER_MLDF_MARK_LOST
                           ? "%s%s: lost in a repair; set the value again or delete the sample"
                           : "%s%s: could not be verified when the file was written; set the values again or "
                             "delete the sample",
                       samples, field);
}

static coffer_status report_marks(const coffer__mldf_checker *check, coffer_error *err)
{
    coffer__mldf_mark *marks = NULL;
    size_t count = 0;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer__mldf_read_marks(&marks, &count, &check->set, &found);
    if (status)
        return coffer__report_take(check->report, COFFER_ERROR, &found, err);
    for (size_t i = 0; i < count && !coffer__report_full(check->report); i++)
        report_mark(check, &marks[i]);
    coffer__free(marks);
    return COFFER_OK;
}

coffer_status coffer__mldf_check_guard(coffer__mldf_checker *check, coffer_error *err)
{
    const coffer_mldf *set = &check->set;
    bool current = coffer__mldf_guard_holds(set);
    coffer_status status = COFFER_OK;
    report_state(check);
    if (current)
        status = check_ranges(check, err);
    if (!status && current)
        status = report_marks(check, err);
    return status;
}
