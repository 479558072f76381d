/* Sample by sample: is it whole, does a second copy have it, and if so into the new file with it. */
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"
#include "formats/mldf/mldf_repair.h"

#include <inttypes.h>
#include <stdlib.h>

#define ENTRIES_AT_ONCE 256
#define STEP 256

/* ---- The table ---- */

static int by_place(const void *a, const void *b)
{
    const coffer__mldf_allocation *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}

static void take_entries(coffer__mldf_rescue *work, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        coffer__mldf_allocation entry = coffer__mldf_load_allocation(bytes + i * COFFER__MLDF_TABLE_ENTRY);
        const coffer__mldf_allocation *last =
            work->table_count > 0 ? &work->table[work->table_count - 1] : NULL;
        if (!coffer__range_fits(entry.offset, entry.size, work->set.file_size)) {
            work->table_in_order = false;
            continue;
        }
        if (last && entry.offset < last->offset + last->size)
            work->table_in_order = false;
        work->table[work->table_count++] = entry;
    }
}

/* True when descriptors, rows and table have the checksum of the header. */
static coffer_status check_sum(coffer__mldf_rescue *work, coffer_error *err)
{
    const coffer_mldf *set = &work->set;
    const coffer__mldf_header *header = &set->header;
    uint32_t crc = 0;
    coffer_status status;
    if (!work->table_in_order || !(header->flags & COFFER_MLDF_CHECKSUMMED) ||
        header->samples != work->samples)
        return COFFER_OK;
    status = coffer__mldf_sum_tables(&crc, set, err);
    if (status)
        return coffer__is_about_file(status) ? COFFER_OK : status;
    return coffer__mldf_table_sum_agrees(&work->table_sure, set, crc, err);
}

coffer_status coffer__mldf_rescue_table(coffer__mldf_rescue *work, coffer_error *err)
{
    coffer_mldf *set = &work->set;
    uint64_t count = set->header.table < set->file_size
                         ? (set->file_size - set->header.table) / COFFER__MLDF_TABLE_ENTRY
                         : 0;
    uint8_t scratch[ENTRIES_AT_ONCE * COFFER__MLDF_TABLE_ENTRY];
    coffer_status status = COFFER_OK;
    work->table_in_order = set->header.table <= set->file_size &&
                           (set->file_size - set->header.table) % COFFER__MLDF_TABLE_ENTRY == 0;
    if (count > set->limits.memory_bytes / sizeof *work->table)
        return coffer__fail(err, COFFER_E_LIMIT, set->header.table,
                            "the allocation table has %" PRIu64 " entries, too many for the memory allowed",
                            count);
    work->table = coffer__alloc_array(count ? (size_t)count : 1, sizeof *work->table);
    if (!work->table)
        return coffer__fail_no_memory(err, count * sizeof *work->table);
    for (uint64_t first = 0; first < count && !status; first += ENTRIES_AT_ONCE) {
        size_t part = count - first < ENTRIES_AT_ONCE ? (size_t)(count - first) : ENTRIES_AT_ONCE;
        status =
            coffer_source_read_at(scratch, set->source, set->header.table + first * COFFER__MLDF_TABLE_ENTRY,
                                  part * COFFER__MLDF_TABLE_ENTRY, err);
        if (!status)
            take_entries(work, scratch, part);
    }
    qsort(work->table, work->table_count, sizeof *work->table, by_place);
    return status ? status : check_sum(work, err);
}

static const coffer__mldf_allocation *find(const coffer__mldf_rescue *work, uint64_t offset, uint32_t size)
{
    coffer__mldf_allocation wanted = { offset, size, 0 };
    return work->table_count == 0
               ? NULL
               : bsearch(&wanted, work->table, work->table_count, sizeof *work->table, by_place);
}

/* A payload that the table knows begins inside the range, or reaches into it. */
static bool touches_other(const coffer__mldf_rescue *work, const coffer_mldf_entry *entry)
{
    size_t low = 0, high = work->table_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (work->table[middle].offset < entry->offset)
            low = middle + 1;
        else
            high = middle;
    }
    return (low < work->table_count && work->table[low].offset - entry->offset < entry->size) ||
           (low > 0 && work->table[low - 1].offset + work->table[low - 1].size > entry->offset);
}

/* ---- One value ---- */

static coffer_status read_payload(coffer__mldf_rescue *work, const coffer_mldf_entry *entry,
                                  coffer_error *err)
{
    coffer_status status = coffer__mldf_bytes_reserve(&work->stored, entry->size, err);
    if (!status)
        status = coffer_source_read_at(work->stored.data, work->set.source, entry->offset, entry->size, err);
    work->stored.size = status ? 0 : entry->size;
    return status;
}

/* Leaves the payload of a value that is whole in work->stored. */
static coffer_status judge_value(coffer__mldf_rescue *work, uint64_t sample, size_t field,
                                 const coffer_mldf_entry *entry, coffer_error *err)
{
    const coffer_mldf *set = &work->set;
    bool checksummed = (set->header.flags & COFFER_MLDF_CHECKSUMMED) != 0;
    coffer__mldf_survey survey = { .set = set, .decode = true };
    const coffer__mldf_allocation *found = NULL;
    coffer_status status;
    if (entry->size > 0)
        found = find(work, entry->offset, entry->size);
    if (entry->size > 0 && !found && (work->table_sure || touches_other(work, entry)))
        return coffer__fail(err, COFFER_E_DANGLING_REFERENCE, entry->offset,
                            "%lu bytes at %" PRIu64 " are not in the allocation table",
                            (unsigned long)entry->size, entry->offset);
    status = coffer__mldf_survey_value(&survey, &work->surveyor, sample, field, entry, err);
    if (!status)
        status = read_payload(work, entry, err);
    if (status)
        return status;
    if (found && checksummed && coffer__crc32(0, work->stored.data, entry->size) != found->crc)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, entry->offset,
                            "the CRC-32 of its %lu bytes at %" PRIu64 " is not that of the allocation table",
                            (unsigned long)entry->size, entry->offset);
    return COFFER_OK;
}

/* ---- The second copy ---- */

/* True when the rows agree, apart from the offsets of payloads. */
static bool rows_agree(const coffer_mldf *set, const uint8_t *a, const uint8_t *b)
{
    for (size_t i = 0; i < set->schema.count; i++) {
        const coffer_mldf_field *field = &set->schema.fields[i];
        size_t skip = coffer__mldf_has_payload(field->kind) ? sizeof(uint64_t) : 0;
        if (memcmp(a + field->row_offset + skip, b + field->row_offset + skip, field->row_size - skip) != 0)
            return false;
    }
    return true;
}

/* The payload of the copy, if it is what the table of this file says. row : of this file; NULL = lost. */
static coffer_status fetch_value(coffer__mldf_rescue *work, const uint8_t *row, uint64_t sample, size_t field,
                                 coffer_error *err)
{
    const coffer_mldf *set = &work->set;
    const coffer__mldf_allocation *known = NULL;
    coffer_mldf_entry entry;
    coffer_status status = coffer_mldf_read_stored(&work->stored, work->opts->copy, sample, field, err);
    if (status || !row)
        return status;
    coffer__mldf_load_entry(&entry, set->schema.fields[field].kind,
                            row + set->schema.fields[field].row_offset);
    if (set->header.flags & COFFER_MLDF_CHECKSUMMED)
        known = find(work, entry.offset, entry.size);
    if (known && coffer__crc32(0, work->stored.data, work->stored.size) != known->crc)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "field %s: the copy has other bytes", set->schema.fields[field].name);
    return COFFER_OK;
}

static coffer_status put(coffer__mldf_rescue *work, uint64_t sample, size_t field, coffer_error *err)
{
    coffer__mldf_stored stored = { work->stored.data, work->stored.size, sample, field };
    return coffer__mldf_put_stored(work->writer, &stored, field, &work->scratch, err);
}

/* The row without the places of payloads, which are those of the old file. */
static void put_row(coffer__mldf_rescue *work, const uint8_t *row)
{
    uint8_t *to = coffer__mldf_current_row(work->writer);
    for (size_t i = 0; i < work->set.schema.count; i++) {
        const coffer_mldf_field *field = &work->set.schema.fields[i];
        memcpy(to + field->row_offset, row + field->row_offset, field->row_size);
        if (coffer__mldf_has_payload(field->kind))
            memset(to + field->row_offset, 0, 12);
    }
}

/* *done is false when the copy does not have the sample, or not this one. row : of this file; NULL = lost. */
static coffer_status fetch_sample(bool *done, coffer__mldf_rescue *work, const uint8_t *row, uint64_t sample,
                                  coffer_error *err)
{
    const coffer_mldf *copy = work->opts->copy;
    const coffer__mldf_schema *schema = &work->set.schema;
    coffer_status status = COFFER_OK;
    uint8_t *other;
    *done = false;
    if (!copy || sample >= copy->header.samples)
        return COFFER_OK;
    other = coffer__malloc(schema->row_size);
    if (!other)
        return coffer__fail_no_memory(err, schema->row_size);
    status = coffer_source_read_at(other, copy->source, copy->header.metadata + sample * schema->row_size,
                                   schema->row_size, err);
    if (status || (row && !rows_agree(&work->set, row, other)))
        goto out;
    put_row(work, other);
    for (size_t i = 0; i < schema->count; i++) {
        coffer_error found = COFFER_ERROR_INIT;
        coffer_mldf_entry entry;
        if (!coffer__mldf_has_payload(schema->fields[i].kind))
            continue;
        coffer__mldf_load_entry(&entry, schema->fields[i].kind, other + schema->fields[i].row_offset);
        if (!entry.present)
            continue;
        if (fetch_value(work, row, sample, i, &found) != COFFER_OK) {
            coffer_mldf_writer_cancel_sample(work->writer);
            goto out;
        }
        status = put(work, sample, i, err);
        if (status)
            goto out;
    }
    *done = true;
out:
    coffer__free(other);
    return status;
}

/* ---- One sample ---- */

static void tell(coffer__mldf_rescue *work, const coffer_error *why, uint64_t sample, const char *field,
                 const char *what)
{
    coffer__report_add(work->report, why->status, COFFER_WARNING, why->offset,
                       "sample %" PRIu64 ", field %s: %s; %s", sample, field, why->text, what);
}

/* Puts what is whole into the current sample; *wrong is the first field that is not, or SIZE_MAX. */
static coffer_status put_whole(size_t *wrong, coffer_error *why, coffer__mldf_rescue *work,
                               const uint8_t *row, uint64_t sample, coffer_error *err)
{
    const coffer__mldf_schema *schema = &work->set.schema;
    *wrong = SIZE_MAX;
    put_row(work, row);
    for (size_t i = 0; i < schema->count; i++) {
        const coffer_mldf_field *field = &schema->fields[i];
        coffer_mldf_entry entry;
        coffer_status status;
        if (!coffer__mldf_has_payload(field->kind))
            continue;
        coffer__mldf_load_entry(&entry, field->kind, row + field->row_offset);
        if (!entry.present)
            continue;
        coffer_error found = COFFER_ERROR_INIT;
        status = judge_value(work, sample, i, &entry, &found);
        if (!status) {
            status = put(work, sample, i, err);
            if (status)
                return status;
            continue;
        }
        if (!coffer__is_about_file(status))
            return coffer__fail_copy(err, &found);
        if (*wrong == SIZE_MAX) {
            *wrong = i;
            *why = found;
        }
        if (!work->keeps_numbers)
            return COFFER_OK;
        memset(coffer__mldf_current_row(work->writer) + field->row_offset, 0, field->row_size);
    }
    return COFFER_OK;
}

static coffer_status rescue_sample(coffer__mldf_rescue *work, uint64_t sample, coffer_error *err)
{
    const uint8_t *row = NULL;
    coffer_error why = COFFER_ERROR_INIT;
    size_t wrong = SIZE_MAX;
    bool fetched = false;
    coffer_status status = coffer__mldf_row_of(&row, &work->rows, sample, err);
    if (!status)
        status = put_whole(&wrong, &why, work, row, sample, err);
    if (status)
        return status;
    if (wrong == SIZE_MAX)
        return coffer__mldf_end_row(work->writer, err);
    const char *name = work->set.schema.fields[wrong].name;
    if (work->opts->copy) {
        coffer_mldf_writer_cancel_sample(work->writer);
        status = fetch_sample(&fetched, work, row, sample, err);
        if (status)
            return status;
        if (!fetched && work->keeps_numbers)
            status = put_whole(&wrong, &why, work, row, sample, err);
        if (status)
            return status;
    }
    tell(work, &why, sample, name,
         fetched               ? "taken from the copy"
         : work->keeps_numbers ? "the value is lost"
                               : "the sample is lost");
    work->fetched += fetched;
    work->lost += !fetched;
    if (fetched || work->keeps_numbers)
        return coffer__mldf_end_row(work->writer, err);
    coffer_mldf_writer_cancel_sample(work->writer);
    return COFFER_OK;
}

/* Rows that the file does not have any more. */
static coffer_status rescue_lost_rows(coffer__mldf_rescue *work, coffer_error *err)
{
    const coffer_mldf *copy = work->opts->copy;
    uint64_t first = work->set.header.samples, missing = work->samples - first, found = 0;
    coffer_status status = COFFER_OK;
    if (missing == 0)
        return COFFER_OK;
    if (!copy || copy->header.samples != work->samples) {
        work->lost += missing;
        coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING, work->set.file_size,
                           "the rows of %" PRIu64 " samples from %" PRIu64 " on are lost", missing, first);
        return COFFER_OK;
    }
    for (uint64_t i = first; i < work->samples && !status; i++) {
        bool fetched = false;
        status = fetch_sample(&fetched, work, NULL, i, err);
        if (status)
            return status;
        found += fetched;
        if (fetched)
            status = coffer__mldf_end_row(work->writer, err);
    }
    work->fetched += found;
    work->lost += missing - found;
    coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING, work->set.file_size,
                       "the rows of %" PRIu64 " samples from %" PRIu64
                       " on are lost; taken from the copy: %" PRIu64,
                       missing, first, found);
    return status;
}

coffer_status coffer__mldf_rescue_samples(coffer__mldf_rescue *work, coffer_error *err)
{
    coffer_status status = coffer__mldf_row_reader_init(&work->rows, &work->set, err);
    for (uint64_t i = 0; i < work->set.header.samples && !status; i++) {
        status = rescue_sample(work, i, err);
        if (!status && (i + 1) % STEP == 0)
            status = coffer__progress_step(work->opts->progress, i + 1, work->samples, err);
    }
    return status ? status : rescue_lost_rows(work, err);
}
