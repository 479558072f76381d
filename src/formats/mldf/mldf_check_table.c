/* The allocation table: in order, without overlap, inside the file; and the sums. */
#include "formats/mldf/mldf_check.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>

#define ENTRIES_AT_ONCE ((size_t)8192)
#define FREE_OF_COST ((uint64_t)64 << 20) /* bytes of payloads that are summed even without `full` */

typedef struct range {
    const char *name;
    uint64_t from, to;
} range;

/* A pass over the table. The first mistake of each kind is reported, with their number. */
typedef struct table_pass {
    coffer__mldf_checker *check;
    coffer__mldf_allocation last;
    range parts[4];
    size_t part_count;
    uint64_t unsorted, overlapping, outside, padded, in_parts;
} table_pass;

static void report_first(const table_pass *pass, uint64_t *count, coffer_status code,
                         coffer_severity severity, uint64_t index, const char *what)
{
    if ((*count)++ == 0)
        coffer__report_add(pass->check->report, code, severity,
                           pass->check->set.header.table + index * COFFER__MLDF_TABLE_ENTRY,
                           "allocation %" PRIu64 " %s", index, what);
}

static void check_against_parts(table_pass *pass, const coffer__mldf_allocation *entry, uint64_t index)
{
    for (size_t i = 0; i < pass->part_count; i++) {
        if (entry->size == 0 || entry->offset >= pass->parts[i].to ||
            entry->offset + entry->size <= pass->parts[i].from)
            continue;
        if (pass->in_parts++ == 0)
            coffer__report_add(pass->check->report, COFFER_E_OVERLAP, COFFER_ERROR, entry->offset,
                               "allocation %" PRIu64 ", %lu bytes at %" PRIu64 ", overlaps %s", index,
                               (unsigned long)entry->size, entry->offset, pass->parts[i].name);
    }
}

static void check_entry(table_pass *pass, const coffer__mldf_allocation *entry, uint64_t index)
{
    const coffer_mldf *set = &pass->check->set;
    if (!coffer__range_fits(entry->offset, entry->size, set->file_size) || entry->offset < set->header.data) {
        if (pass->outside++ == 0)
            coffer__report_add(pass->check->report, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR,
                               set->header.table + index * COFFER__MLDF_TABLE_ENTRY,
                               "allocation %" PRIu64 ", %lu bytes at %" PRIu64
                               ", is outside of the data region, %" PRIu64 " to %" PRIu64,
                               index, (unsigned long)entry->size, entry->offset, set->header.data,
                               set->header.table);
        return;
    }
    if (index > 0 && entry->offset < pass->last.offset)
        report_first(pass, &pass->unsorted, COFFER_E_NOT_SORTED, COFFER_ERROR, index,
                     "begins before the one in front of it: the table is not sorted");
    else if (index > 0 && entry->offset < pass->last.offset + pass->last.size)
        report_first(pass, &pass->overlapping, COFFER_E_OVERLAP, COFFER_ERROR, index,
                     "overlaps the one in front of it");
    if (entry->crc != 0 && !(set->header.flags & COFFER_MLDF_CHECKSUMMED))
        report_first(pass, &pass->padded, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, index,
                     "has a checksum in a file that says it has none");
    check_against_parts(pass, entry, index);
    pass->last = *entry;
}

static void report_counts(const table_pass *pass)
{
    const struct {
        uint64_t count;
        coffer_status code;
        const char *what;
    } counts[] = {
        { pass->outside, COFFER_E_OUT_OF_BOUNDS, "are outside of the data region" },
        { pass->unsorted, COFFER_E_NOT_SORTED, "begin before the one in front of them" },
        { pass->overlapping, COFFER_E_OVERLAP, "overlap the one in front of them" },
        { pass->in_parts, COFFER_E_OVERLAP, "overlap other parts of the file" },
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (counts[i].count > 1)
            coffer__report_add(pass->check->report, counts[i].code, COFFER_NOTE,
                               pass->check->set.header.table, "of %" PRIu64 " allocations %" PRIu64 " %s",
                               pass->check->set.table_count, counts[i].count, counts[i].what);
    }
}

static void collect_parts(table_pass *pass)
{
    const coffer__mldf_checker *check = pass->check;
    const coffer_mldf *set = &check->set;
    pass->parts[pass->part_count++] = (range){ "the header", 0, COFFER__MLDF_HEAD_SIZE };
    if (check->has_schema && set->schema.count > 0)
        pass->parts[pass->part_count++] =
            (range){ "the field descriptors", set->header.descriptors,
                     set->header.descriptors + (uint64_t)set->schema.count * set->schema.stride };
    if (check->has_rows && set->header.samples > 0)
        pass->parts[pass->part_count++] =
            (range){ "the rows", set->header.metadata,
                     set->header.metadata + set->header.samples * set->schema.row_size };
    pass->parts[pass->part_count++] = (range){ "the allocation table", set->header.table, set->file_size };
}

coffer_status coffer__mldf_check_allocations(coffer__mldf_checker *check, coffer_error *err)
{
    const coffer_mldf *set = &check->set;
    table_pass pass = { .check = check };
    uint8_t *scratch = coffer__alloc_array(ENTRIES_AT_ONCE, COFFER__MLDF_TABLE_ENTRY);
    coffer_status status = COFFER_OK;
    if (!scratch)
        return coffer__fail_no_memory(err, ENTRIES_AT_ONCE * COFFER__MLDF_TABLE_ENTRY);
    collect_parts(&pass);
    for (uint64_t first = 0; !status && first < set->table_count; first += ENTRIES_AT_ONCE) {
        uint64_t left = set->table_count - first;
        size_t count = left < ENTRIES_AT_ONCE ? (size_t)left : ENTRIES_AT_ONCE;
        const uint8_t *at = NULL;
        status = coffer__mldf_fetch_table(&at, set, first, count, scratch, err);
        for (size_t i = 0; !status && i < count; i++) {
            coffer__mldf_allocation entry = coffer__mldf_load_allocation(at + i * COFFER__MLDF_TABLE_ENTRY);
            check_entry(&pass, &entry, first + i);
        }
    }
    coffer__free(scratch);
    if (status)
        return status;
    report_counts(&pass);
    check->table_in_order = pass.unsorted + pass.overlapping + pass.outside == 0;
    return coffer_source_intact(set->source, err);
}

/* ---- Sums ---- */

static coffer_status check_table_sum(const coffer__mldf_checker *check, coffer_error *err)
{
    const coffer_mldf *set = &check->set;
    uint32_t crc = 0;
    bool agrees = true;
    coffer_status status = coffer__mldf_sum_tables(&crc, set, err);
    if (!status)
        status = coffer__mldf_table_sum_agrees(&agrees, set, crc, err);
    if (!status && !agrees)
        coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR,
                           COFFER__MLDF_HEADER_AT + COFFER__MLDF_TABLE_CRC_AT,
                           "the CRC-32 of descriptors, rows and allocation table is %08lx, the header says "
                           "%08lx",
                           (unsigned long)crc, (unsigned long)set->header.table_crc);
    return status;
}

/* Some writers count the padding after the last payload as data. */
static void report_data_sum(const coffer__mldf_checker *check, const coffer__mldf_sums *sums)
{
    const coffer__mldf_header *header = &check->set.header;
    bool wrong = header->data_crc != sums->data_crc && header->data_crc != sums->data_crc_to_next_part;
    if (wrong && check->set.region_only)
        coffer__report_add(
            check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR,
            COFFER__MLDF_HEADER_AT + COFFER__MLDF_DATA_CRC_AT,
            "the CRC-32 of the data region is %08lx, the header says %08lx; single payloads do "
            "not have one",
            (unsigned long)sums->data_crc, (unsigned long)header->data_crc);
    else if (wrong)
        coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR,
                           COFFER__MLDF_HEADER_AT + COFFER__MLDF_DATA_CRC_AT,
                           "the CRC-32 of the data region is %08lx, the header says %08lx; payloads with a "
                           "wrong one: %" PRIu64,
                           (unsigned long)sums->data_crc, (unsigned long)header->data_crc, sums->bad_count);
    else if (sums->bad_count > 0)
        coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, header->table,
                           "payloads with another CRC-32 than the allocation table says: %" PRIu64,
                           sums->bad_count);
}

coffer_status coffer__mldf_check_sums(coffer__mldf_sums *sums, bool *known, coffer__mldf_checker *check,
                                      coffer_error *err)
{
    const coffer_mldf *set = &check->set;
    uint64_t end = 0;
    *known = false;
    if (!(set->header.flags & COFFER_MLDF_CHECKSUMMED) || !check->has_table)
        return COFFER_OK;
    coffer_status status = COFFER_OK;
    if (check->has_schema && check->has_rows && !set->region_only)
        status = check_table_sum(check, err);
    if (status)
        return status;
    if (!check->has_data || !check->table_in_order)
        return COFFER_OK;
    status = coffer__mldf_data_end(&end, set, err);
    if (status)
        return status;
    if (!check->opts->full && end - set->header.data > FREE_OF_COST)
        return COFFER_OK;
    status = coffer__mldf_survey_sums(sums, set, check->pool, check->opts->progress, err);
    if (status)
        return status;
    report_data_sum(check, sums);
    *known = true;
    return COFFER_OK;
}
