/* Bytes of a ZIP archive that belong to no member: readers do not look at them, so a check reports them. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "outside/archives/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* CRC-32 and sizes after the contents, with or without a signature, in 32 or 64 bits. */
static bool is_descriptor(const coffer__zip_member *member, uint64_t len)
{
    return member->described && (len == 12 || len == 16 || len == 20 || len == 24);
}

static void report_gap(coffer_report *out, uint64_t begin, uint64_t end)
{
    if (begin < end)
        coffer__report_add(out, COFFER_E_INCONSISTENT, COFFER_ERROR, begin,
                           "%" PRIu64 " bytes at %" PRIu64 " belong to no member of the archive", end - begin,
                           begin);
}

static int by_header(const void *left, const void *right)
{
    const coffer__zip_member *a = *(const coffer__zip_member *const *)left;
    const coffer__zip_member *b = *(const coffer__zip_member *const *)right;
    return (a->header > b->header) - (a->header < b->header);
}

coffer_status coffer__zip_check(coffer_report *out, const coffer__zip *zip, coffer_error *err)
{
    const coffer__zip_member **sorted = coffer__alloc_array(zip->count, sizeof *sorted);
    uint64_t covered = 0;
    if (!sorted)
        return coffer__fail_no_memory(err, zip->count * sizeof *sorted);
    for (size_t i = 0; i < zip->count; i++)
        sorted[i] = &zip->members[i];
    if (zip->count)
        qsort(sorted, zip->count, sizeof *sorted, by_header);
    for (size_t i = 0; i <= zip->count; i++) {
        uint64_t begin = i < zip->count ? sorted[i]->header : zip->directory;
        if (i == 0 || begin < covered || !is_descriptor(sorted[i - 1], begin - covered))
            report_gap(out, covered, begin);
        if (i < zip->count)
            covered = sorted[i]->offset + sorted[i]->packed;
    }
    coffer__free(sorted);
    report_gap(out, zip->listed_end, zip->directory_end);
    return COFFER_OK;
}
