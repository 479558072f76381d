/* Sample by sample: is it whole, does a second copy have it, and if so into the new file with it. */
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sorted.h"
#include "base/work.h"
#include "formats/mldf/mldf_repair.h"

#include <inttypes.h>
#include <stdio.h>
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
    if (!work->table_in_order || !coffer__mldf_has_sums(set) || header->samples != work->samples)
        return COFFER_OK;
    status = coffer__mldf_sum_tables(&crc, set, err);
    if (status)
        return coffer__is_about_file(status) ? COFFER_OK : status;
    return coffer__mldf_table_sum_agrees(&work->table_sure, set, crc, err);
}

static bool is_recovered(const coffer__mldf_recovered *recovered, const coffer__mldf_allocation *entry)
{
    return recovered->entry_count > 0 && bsearch(entry, recovered->entries, recovered->entry_count,
                                                 sizeof *recovered->entries, by_place) != NULL;
}

/* Entries of recovery blocks are as they were written: they replace those of a damaged table. */
static coffer_status merge_recovered(coffer__mldf_rescue *work, coffer_error *err)
{
    coffer__mldf_recovered *recovered = &work->recovered;
    size_t kept = 0;
    if (recovered->entry_count == 0)
        return COFFER_OK;
    qsort(recovered->entries, recovered->entry_count, sizeof *recovered->entries, by_place);
    for (size_t i = 0; i < work->table_count; i++) {
        if (!is_recovered(recovered, &work->table[i]))
            work->table[kept++] = work->table[i];
    }
    coffer__mldf_allocation *all = coffer__alloc_array(kept + recovered->entry_count, sizeof *work->table);
    if (!all)
        return coffer__fail_no_memory(err, (kept + recovered->entry_count) * sizeof *all);
    if (kept > 0)
        memcpy(all, work->table, kept * sizeof *all);
    work->table_count = kept;
    for (size_t i = 0; i < recovered->entry_count; i++) {
        const coffer__mldf_allocation *entry = &recovered->entries[i];
        if (coffer__range_fits(entry->offset, entry->size, work->set.file_size))
            all[work->table_count++] = *entry;
    }
    coffer__free(work->table);
    work->table = all;
    return COFFER_OK;
}

/* A file with a checksum of the data region alone: all of it is right, or nothing is sure. */
static coffer_status check_region(coffer__mldf_rescue *work, coffer_error *err)
{
    coffer_mldf *set = &work->set;
    if (!work->table_in_order || !(set->header.flags & COFFER_MLDF_CHECKSUMMED))
        return COFFER_OK;
    set->table_count = (set->file_size - set->header.table) / COFFER__MLDF_TABLE_ENTRY;
    coffer_status status = coffer__mldf_find_region_only(set, err);
    if (status || !set->region_only)
        return status;
    coffer_error found = COFFER_ERROR_INIT;
    status = coffer__mldf_verify_tables(set, &found);
    work->region_wrong = status != COFFER_OK;
    return status && !coffer__is_about_file(status) ? coffer__fail_copy(err, &found) : COFFER_OK;
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
    if (!status)
        status = check_region(work, err);
    if (!status)
        status = check_sum(work, err);
    if (!status && !work->table_sure)
        status = merge_recovered(work, err);
    if (status)
        return status;
    qsort(work->table, work->table_count, sizeof *work->table, by_place);
    work->in_use = coffer__calloc(work->table_count, sizeof *work->in_use);
    return work->in_use ? COFFER_OK : coffer__fail_no_memory(err, work->table_count);
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
    size_t low =
        COFFER__COUNT_BELOW(work->table, work->table_count, coffer__mldf_allocation, offset, entry->offset);
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

/* Leaves the payload of a value that is whole in work->stored. *sure becomes false when the file has
 * checksums and none says that these are its bytes. */
static coffer_status judge_value(bool *sure, coffer__mldf_rescue *work, uint64_t sample, size_t field,
                                 const coffer_mldf_entry *entry, coffer_error *err)
{
    const coffer_mldf *set = &work->set;
    bool checksummed = coffer__mldf_has_sums(set);
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
    if (found)
        work->in_use[found - work->table] = true;
    *sure = *sure && (found || !checksummed || entry->size == 0);
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

static coffer_status put(coffer__mldf_rescue *work, const uint8_t *id, uint64_t sample, size_t field,
                         coffer_error *err)
{
    coffer__mldf_stored stored = { work->stored.data, work->stored.size, sample, field, id };
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
        status = put(work, copy->guard.id, sample, i, err);
        if (status)
            goto out;
    }
    *done = true;
out:
    coffer__free(other);
    return status;
}

/* ---- One sample ---- */

/* A sample on its way into the new file. */
typedef struct candidate {
    const uint8_t *row;
    uint64_t sample;
    bool row_sure; /* the row is as it was written, or the file cannot tell */
    bool sure;     /* so are the payloads */
    size_t wrong;  /* the first field that is damaged, or SIZE_MAX */
    coffer_error why;
} candidate;

static void tell(coffer__mldf_rescue *work, const candidate *one, coffer_severity severity, const char *what)
{
    coffer__report_add(work->report, one->why.status, severity, one->why.offset,
                       "sample %" PRIu64 ", field %s: %s; %s", one->sample,
                       work->set.schema.fields[one->wrong].name, one->why.text, what);
}

static coffer_status judge_entry(candidate *one, coffer__mldf_rescue *work, size_t index,
                                 const coffer_mldf_entry *entry, coffer_error *err)
{
    const coffer_mldf_field *field = &work->set.schema.fields[index];
    if (entry->present)
        return judge_value(&one->sure, work, one->sample, index, entry, err);
    /* In a row that is not damaged, a program left it out on purpose. */
    if (one->sure || !coffer__mldf_requires_value(&work->set, field))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                        "no value, although the field is not optional");
}

/* Puts what is intact into the current sample. */
static coffer_status put_whole(candidate *one, coffer__mldf_rescue *work, coffer_error *err)
{
    const coffer__mldf_schema *schema = &work->set.schema;
    one->wrong = SIZE_MAX;
    put_row(work, one->row);
    for (size_t i = 0; i < schema->count; i++) {
        const coffer_mldf_field *field = &schema->fields[i];
        coffer_error found = COFFER_ERROR_INIT;
        coffer_mldf_entry entry;
        if (!coffer__mldf_has_payload(field->kind))
            continue;
        coffer__mldf_load_entry(&entry, field->kind, one->row + field->row_offset);
        coffer_status status = judge_entry(one, work, i, &entry, &found);
        if (!status) {
            status = entry.present ? put(work, work->set.guard.id, one->sample, i, err) : COFFER_OK;
            if (status)
                return status;
            continue;
        }
        if (!coffer__is_about_file(status) && status != COFFER_E_MISSING)
            return coffer__fail_copy(err, &found);
        if (one->wrong == SIZE_MAX) {
            one->wrong = i;
            one->why = found;
        }
        if (!work->keeps_numbers)
            return COFFER_OK;
        memset(coffer__mldf_current_row(work->writer) + field->row_offset, 0, field->row_size);
    }
    return COFFER_OK;
}

static coffer_status mark(coffer__mldf_rescue *work, size_t field, coffer_mldf_mark_kind kind,
                          coffer_error *err)
{
    coffer__mldf_mark made = { work->writer->sample, 1,
                               (uint16_t)(field == SIZE_MAX ? COFFER__MLDF_MARK_ROW : field),
                               (uint16_t)kind };
    return coffer__mldf_add_mark(work->writer, &made, err);
}

static coffer_status end_whole(coffer__mldf_rescue *work, const candidate *one, coffer_error *err)
{
    coffer_status status =
        coffer__mldf_carry_marks(work->writer, work->marks, work->mark_count, one->sample, NULL, err);
    if (!status && !one->sure) {
        work->unverified++;
        status = mark(work, SIZE_MAX, COFFER_MLDF_MARK_UNVERIFIED, err);
    }
    return status ? status : coffer__mldf_end_row(work->writer, err);
}

/* A sample with a damaged value: from the copy, without the value, or not at all. */
static coffer_status end_damaged(coffer__mldf_rescue *work, candidate *one, coffer_error *err)
{
    bool fetched = false;
    coffer_status status = COFFER_OK;
    if (work->opts->copy) {
        coffer_mldf_writer_cancel_sample(work->writer);
        status = fetch_sample(&fetched, work, one->row, one->sample, err);
        /* A damaged row that differs from that of the copy counts as lost, see fetch_row. */
        if (!status && !fetched && !one->row_sure && work->opts->copy->header.samples == work->samples)
            status = fetch_sample(&fetched, work, NULL, one->sample, err);
        if (!status && !fetched && work->keeps_numbers)
            status = put_whole(one, work, err);
    }
    if (status)
        return status;
    tell(work, one, fetched ? COFFER_NOTE : COFFER_ERROR,
         fetched               ? "taken from the copy"
         : work->keeps_numbers ? "the value is lost"
                               : "the sample is lost");
    work->fetched += fetched;
    work->values_lost += !fetched && work->keeps_numbers;
    work->lost += !fetched && !work->keeps_numbers;
    if (fetched)
        return coffer__mldf_end_row(work->writer, err);
    if (work->keeps_numbers) {
        status = mark(work, one->wrong, COFFER_MLDF_MARK_LOST, err);
        return status ? status : end_whole(work, one, err);
    }
    coffer_mldf_writer_cancel_sample(work->writer);
    return COFFER_OK;
}

/* A copy that agrees vouches for a sample that nothing else does. */
static coffer_status end_unsure(coffer__mldf_rescue *work, candidate *one, coffer_error *err)
{
    bool fetched = false;
    coffer_mldf_writer_cancel_sample(work->writer);
    coffer_status status = fetch_sample(&fetched, work, one->row, one->sample, err);
    if (!status && !fetched)
        status = put_whole(one, work, err);
    if (status)
        return status;
    work->fetched += fetched;
    return fetched ? coffer__mldf_end_row(work->writer, err) : end_whole(work, one, err);
}

/* The row of a sample: from a recovery block, or, as far as the file has it, from the rows. */
static coffer_status find_row(candidate *one, coffer__mldf_rescue *work, coffer_error *err)
{
    const coffer_mldf *set = &work->set;
    const uint8_t *stored = NULL;
    bool found = false;
    coffer_status status = COFFER_OK;
    if (one->sample < set->header.samples)
        status = coffer__mldf_row_of(&stored, &work->rows, one->sample, err);
    one->sure = work->table_sure || (!coffer__mldf_has_sums(set) && !work->region_wrong);
    one->row = stored;
    if (status || work->table_sure)
        return status;
    status = coffer__mldf_recovered_row(&found, work->row, work, one->sample, err);
    if (status || !found)
        return status;
    work->restored += !stored || memcmp(stored, work->row, set->schema.row_size) != 0;
    one->row = work->row;
    one->sure = !work->fields_wrong;
    return COFFER_OK;
}

static coffer_status rescue_sample(bool *missing, coffer__mldf_rescue *work, uint64_t sample,
                                   coffer_error *err)
{
    candidate one = { .sample = sample, .why = COFFER_ERROR_INIT };
    coffer_status status = find_row(&one, work, err);
    *missing = !one.row;
    one.row_sure = one.sure;
    if (!status && one.row)
        status = put_whole(&one, work, err);
    if (status || !one.row)
        return status;
    if (one.wrong != SIZE_MAX)
        return end_damaged(work, &one, err);
    return one.sure || !work->opts->copy ? end_whole(work, &one, err) : end_unsure(work, &one, err);
}

/* ---- Rows that the file does not have any more ---- */

typedef struct lost_rows {
    uint64_t first, count, fetched;
} lost_rows;

static coffer_status fetch_row(lost_rows *lost, coffer__mldf_rescue *work, uint64_t sample, coffer_error *err)
{
    const coffer_mldf *copy = work->opts->copy;
    bool fetched = false;
    coffer_status status = COFFER_OK;
    if (lost->count++ == 0)
        lost->first = sample;
    if (copy && copy->header.samples == work->samples)
        status = fetch_sample(&fetched, work, NULL, sample, err);
    if (status || !fetched)
        return status;
    lost->fetched++;
    return coffer__mldf_end_row(work->writer, err);
}

static void tell_lost_rows(coffer__mldf_rescue *work, const lost_rows *lost)
{
    uint64_t gone = lost->count - lost->fetched;
    char from_copy[48] = "";
    if (lost->count == 0)
        return;
    if (work->opts->copy)
        snprintf(from_copy, sizeof from_copy, "; taken from the copy: %" PRIu64, lost->fetched);
    coffer__report_add(work->report, COFFER_E_TRUNCATED, gone ? COFFER_ERROR : COFFER_NOTE,
                       work->set.file_size, "the rows of %" PRIu64 " samples from %" PRIu64 " on are lost%s",
                       lost->count, lost->first, from_copy);
    work->fetched += lost->fetched;
    work->lost += gone;
}

coffer_status coffer__mldf_rescue_samples(coffer__mldf_rescue *work, coffer_error *err)
{
    const coffer_mldf *copy = work->opts->copy;
    uint64_t end = work->set.header.samples;
    lost_rows lost = { 0 };
    coffer_status status = coffer__mldf_row_reader_init(&work->rows, &work->set, err);
    work->row = coffer__malloc(work->set.schema.row_size);
    if (!status && !work->row)
        status = coffer__fail_no_memory(err, work->set.schema.row_size);
    if (work->recovered.end > end)
        end = work->recovered.end;
    /* Without a copy that confirms it, the number of samples in the header is not trusted. */
    if (copy && copy->header.samples == work->samples)
        end = work->samples;
    for (uint64_t i = 0; i < end && !status; i++) {
        bool missing = false;
        status = rescue_sample(&missing, work, i, err);
        if (!status && missing)
            status = fetch_row(&lost, work, i, err);
        if (!status && (i + 1) % STEP == 0)
            status = coffer__progress_step(work->opts->progress, i + 1, work->samples, err);
    }
    if (end < work->samples) {
        lost.first = lost.count ? lost.first : end;
        lost.count += work->samples - end;
    }
    tell_lost_rows(work, &lost);
    return status;
}
