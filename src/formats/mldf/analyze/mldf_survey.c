/* All of a set in one pass: the sums of payloads and of the data, single values and their content. */
#include "formats/mldf/analyze/mldf_survey.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/table.h"
#include "base/work.h"
#include "io/source_private.h"

#include <inttypes.h>

/* The sums of all payloads and of the data region, in one pass over the data. */

#define PIECE ((uint64_t)1 << 20) /* of the data region: small enough to stay in the cache for both sums */
#define ENTRIES_AT_ONCE ((size_t)512)

/* The part of one piece in the checksum of the region. */
typedef struct piece_sum {
    uint32_t crc;
    uint64_t len;
} piece_sum;

typedef struct summing {
    const coffer_mldf *set;
    uint64_t data_end;
    coffer__mldf_sums *sums;
    _Atomic(uint64_t) bad_count;
    piece_sum *pieces;
    uint8_t *scratch; /* a block for each worker */
} summing;

/* Sums of the payloads that begin in [low, high) of the table. */
static coffer_status sum_payloads(summing *job, uint64_t low, uint64_t high, uint8_t *scratch,
                                  coffer_error *err)
{
    uint8_t entries[ENTRIES_AT_ONCE * COFFER__MLDF_TABLE_ENTRY];
    coffer_status status = COFFER_OK;
    while (!status && low < high) {
        size_t count = high - low < ENTRIES_AT_ONCE ? (size_t)(high - low) : ENTRIES_AT_ONCE;
        const uint8_t *at = NULL;
        status = coffer__mldf_fetch_table(&at, job->set, low, count, entries, err);
        for (size_t i = 0; !status && i < count; i++, low++) {
            coffer__mldf_allocation entry = coffer__mldf_load_allocation(at + i * COFFER__MLDF_TABLE_ENTRY);
            uint32_t crc = 0;
            status = coffer__mldf_sum_range(&crc, job->set, entry.offset, entry.size, scratch, err);
            if (!status && crc != entry.crc && !job->set->region_only) {
                atomic_fetch_or(&job->sums->bad[low / 64], UINT64_C(1) << low % 64);
                atomic_fetch_add(&job->bad_count, 1);
            }
        }
    }
    return status;
}

static coffer_status place_of(uint64_t *out, const summing *job, uint64_t index, coffer_error *err)
{
    uint8_t scratch[COFFER__MLDF_TABLE_ENTRY];
    const uint8_t *at = NULL;
    coffer_status status;
    *out = job->data_end;
    if (index >= job->set->table_count)
        return COFFER_OK;
    status = coffer__mldf_fetch_table(&at, job->set, index, 1, scratch, err);
    if (status)
        return status;
    *out = coffer__load_u64(at);
    return COFFER_OK;
}

/* A piece has the payloads that begin in it, and of the region what reaches from the first of them to the
 * first of the next piece: all pieces together are the region. */
static coffer_status sum_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    summing *job = context;
    uint64_t start = job->set->header.data + index * PIECE, low = 0, high = 0, from, to;
    uint8_t *scratch = job->scratch + worker * COFFER__MLDF_SUM_BLOCK;
    coffer_status status = coffer__mldf_lower_bound(&low, job->set, start, err);
    if (!status)
        status = coffer__mldf_lower_bound(&high, job->set, start + PIECE, err);
    if (!status)
        status = place_of(&from, job, low, err);
    if (!status)
        status = place_of(&to, job, high, err);
    if (!status)
        status = sum_payloads(job, low, high, scratch, err);
    if (status)
        return status;
    if (index == 0)
        from = job->set->header.data;
    job->pieces[index].len = to - from;
    return coffer__mldf_sum_range(&job->pieces[index].crc, job->set, from, to - from, scratch, err);
}

static coffer_status finish(summing *job, uint64_t count, coffer_error *err)
{
    const coffer_mldf *set = job->set;
    uint64_t next = coffer__mldf_next_part(&set->header, job->data_end, set->file_size);
    uint32_t crc = 0, padding = 0;
    coffer_status status;
    for (uint64_t i = 0; i < count; i++)
        crc = coffer__crc32_combine(crc, job->pieces[i].crc, job->pieces[i].len);
    status = coffer__mldf_sum_range(&padding, set, job->data_end, next - job->data_end, job->scratch, err);
    if (status)
        return status;
    job->sums->data_crc = crc;
    job->sums->data_crc_to_next_part = coffer__crc32_combine(crc, padding, next - job->data_end);
    job->sums->bad_count = atomic_load(&job->bad_count);
    return coffer_source_intact(set->source, err);
}

coffer_status coffer__mldf_survey_sums(coffer__mldf_sums *out, const coffer_mldf *set, coffer__pool *pool,
                                       const coffer_progress *progress, coffer_error *err)
{
    coffer__mldf_sums sums = { 0 };
    summing job = { .set = set, .sums = &sums };
    uint64_t count;
    coffer_status status = coffer__mldf_data_end(&job.data_end, set, err);
    if (status)
        return status;
    count = coffer__divide_up(job.data_end - set->header.data, PIECE);
    sums.bad = coffer__calloc((size_t)coffer__divide_up(set->table_count, 64), sizeof *sums.bad);
    job.pieces = coffer__calloc((size_t)count, sizeof *job.pieces);
    job.scratch = coffer__alloc_array(coffer__pool_threads(pool), COFFER__MLDF_SUM_BLOCK);
    if (!sums.bad || !job.pieces || !job.scratch)
        status = coffer__fail_no_memory(err, count * sizeof *job.pieces);
    else
        status = coffer__mldf_run_pieces(pool, count, sum_piece, &job, progress, err);
    if (!status)
        status = finish(&job, count, err);
    coffer__free(job.pieces);
    coffer__free(job.scratch);
    if (status)
        coffer__mldf_sums_free(&sums);
    else
        *out = sums;
    return status;
}

void coffer__mldf_sums_free(coffer__mldf_sums *sums)
{
    coffer__free(sums->bad);
    *sums = (coffer__mldf_sums){ 0 };
}

/* Single values: where they lie, their sums, and what they hold. */

/* ---- Work in pieces ---- */

#define PIECE_BYTES ((size_t)256 << 10)
#define BATCH 64 /* pieces for each thread between two calls of a progress */

typedef struct part_of_run {
    coffer__pool_task task;
    void *context;
    uint64_t first;
} part_of_run;

static coffer_status run_one(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const part_of_run *part = context;
    return part->task(part->context, part->first + index, worker, err);
}

coffer_status coffer__mldf_run_pieces(coffer__pool *pool, uint64_t count, coffer__pool_task task,
                                      void *context, const coffer_progress *progress, coffer_error *err)
{
    uint64_t batch = progress ? (uint64_t)BATCH * coffer__pool_threads(pool) : count;
    part_of_run part = { task, context, 0 };
    coffer_status status = COFFER_OK;
    while (!status && part.first < count) {
        uint64_t left = count - part.first, n = left < batch ? left : batch;
        status = coffer__pool_run(pool, n, run_one, &part, err);
        part.first += n;
        if (!status)
            status = coffer__progress_step(progress, part.first, count, err);
    }
    return status;
}

/* Rows are looked at in pieces of this many. */
static size_t rows_per_piece(const coffer_mldf *set)
{
    size_t row_size = set->schema.row_size ? set->schema.row_size : 1;
    return row_size < PIECE_BYTES ? PIECE_BYTES / row_size : 1;
}

uint64_t coffer__mldf_row_pieces(const coffer_mldf *set)
{
    return coffer__divide_up(set->header.samples, rows_per_piece(set));
}

coffer_status coffer__mldf_fetch_rows(coffer__mldf_rows *out, const coffer_mldf *set, uint64_t piece,
                                      coffer_bytes *scratch, coffer_error *err)
{
    size_t per_piece = rows_per_piece(set), row_size = set->schema.row_size;
    uint64_t first = piece * per_piece, left = set->header.samples - first;
    coffer__mldf_rows rows = { NULL, first, left < per_piece ? (size_t)left : per_piece };
    uint64_t place = set->header.metadata + first * row_size;
    size_t len = rows.count * row_size;
    coffer_status status = COFFER_OK;
    rows.bytes = coffer_source_view(set->source, place, len);
    if (!rows.bytes) {
        status = coffer__mldf_bytes_reserve(scratch, len, err);
        if (!status)
            status = coffer__source_fetch(&rows.bytes, set->source, place, len, scratch->data, err);
    }
    if (!status)
        *out = rows;
    return status;
}

/* ---- Values ---- */

#define NEAR 16 /* allocations after the last one that are tried before searching */

coffer_status coffer__mldf_survey_begin(coffer__mldf_survey *survey, coffer_error *err)
{
    const coffer_mldf *set = survey->set;
    uint64_t size;
    if (!survey->use_table || !(survey->decode || survey->contents) ||
        !coffer__mul_u64(&size, set->table_count, sizeof *survey->seen) || size > set->limits.memory_bytes)
        return COFFER_OK;
    survey->seen = coffer__calloc((size_t)set->table_count, sizeof *survey->seen);
    return survey->seen ? COFFER_OK : coffer__fail_no_memory(err, size);
}

void coffer__mldf_survey_end(coffer__mldf_survey *survey)
{
    coffer__free(survey->seen);
    survey->seen = NULL;
}

void coffer__mldf_surveyor_free(coffer__mldf_surveyor *surveyor, const coffer_mldf *set)
{
    coffer__mldf_give_decoder(set, surveyor->decoder);
    coffer_free(surveyor->stored.data);
    coffer_free(surveyor->value.data);
    coffer_free(surveyor->rows.data);
}

/* ---- The table ---- */

/* Values come mostly in the order of their payloads: the next entries are tried first. */
static coffer_status locate(uint64_t *index, bool *found, const coffer_mldf *set,
                            coffer__mldf_surveyor *surveyor, const coffer_mldf_entry *entry,
                            coffer_error *err)
{
    uint8_t scratch[NEAR * COFFER__MLDF_TABLE_ENTRY];
    uint64_t left = set->table_count - surveyor->hint;
    size_t count = left < NEAR ? (size_t)left : NEAR;
    const uint8_t *at = NULL;
    coffer__mldf_allocation allocation;
    coffer_status status = coffer__mldf_fetch_table(&at, set, surveyor->hint, count, scratch, err);
    *found = false;
    for (size_t i = 0; !status && i < count; i++) {
        allocation = coffer__mldf_load_allocation(at + i * COFFER__MLDF_TABLE_ENTRY);
        if (allocation.offset > entry->offset)
            break;
        if (allocation.offset == entry->offset && allocation.size == entry->size) {
            *found = true;
            *index = surveyor->hint + i;
            surveyor->hint = *index + 1;
            return COFFER_OK;
        }
    }
    if (!status)
        status =
            coffer__mldf_find_allocation(&allocation, index, found, set, entry->offset, entry->size, err);
    if (status)
        return status;
    if (*found)
        surveyor->hint = *index + 1;
    return COFFER_OK;
}

static coffer_status check_place(const coffer_mldf *set, const coffer_mldf_entry *entry, coffer_error *err)
{
    if (!coffer__range_fits(entry->offset, entry->size, set->file_size))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "%lu bytes at %" PRIu64 ", file has %" PRIu64, (unsigned long)entry->size,
                            entry->offset, set->file_size);
    return COFFER_OK;
}

static coffer_status fail_dangling(const coffer_mldf_entry *entry, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_DANGLING_REFERENCE, COFFER_OFFSET_NONE,
                        "%lu bytes at %" PRIu64 " are not in the allocation table",
                        (unsigned long)entry->size, entry->offset);
}

static bool is_bad(const coffer__mldf_survey *survey, uint64_t allocation)
{
    return survey->sums && (survey->sums->bad[allocation / 64] >> allocation % 64 & 1);
}

/* ---- The bytes ---- */

static bool is_encrypted(const coffer_mldf_field *field)
{
    return (field->flags & COFFER_MLDF_FIELD_ENCRYPTED) != 0;
}

/* True when the bytes of the value have to be read. */
static bool wants_bytes(const coffer__mldf_survey *survey, const coffer_mldf_field *field)
{
    bool coded = (field->flags & (COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_ENCRYPTED)) != 0;
    if (coded && (!survey->decode || (is_encrypted(field) && !survey->set->has_key)))
        return false;
    return (survey->decode && (coded || survey->set->has_key)) ||
           (survey->contents && coffer__mldf_has_content_rule(field));
}

static coffer_status look_into(const coffer__mldf_survey *survey, coffer__mldf_surveyor *surveyor,
                               const coffer__mldf_value *value, const coffer_mldf_entry *entry,
                               coffer_error *err)
{
    const coffer_mldf *set = survey->set;
    const coffer_mldf_field *field = &set->schema.fields[value->field];
    coffer__mldf_room room = { .grows = &surveyor->value };
    const uint8_t *stored = coffer_source_view(set->source, value->offset, value->size), *bytes = stored;
    size_t size = value->size;
    coffer_status status = COFFER_OK;
    if (!stored) {
        status = coffer__mldf_bytes_reserve(&surveyor->stored, value->size, err);
        if (!status)
            status =
                coffer_source_read_at(surveyor->stored.data, set->source, value->offset, value->size, err);
        if (status)
            return status;
        stored = bytes = surveyor->stored.data;
    }
    if (!coffer__mldf_is_plain(set, value->field)) {
        if (!surveyor->decoder && !(surveyor->decoder = coffer__mldf_take_decoder(set, err)))
            return COFFER_E_NO_MEMORY;
        status = coffer__mldf_reserve(&room, 0, err);
        if (status)
            return status;
        status = coffer__mldf_decode(&room, &size, surveyor->decoder, set, value, stored, err);
        if (status)
            return status;
        bytes = room.data;
    }
    return survey->contents ? coffer__mldf_check_content(field, entry, bytes, size, &set->limits, err)
                            : COFFER_OK;
}

/* A hash of the field and of what the row says about the value; never 0. */
static uint32_t mark_of(size_t field, const coffer_mldf_entry *entry)
{
    struct facts {
        uint64_t field, a, b;
    } facts = { field, (uint64_t)entry->height << 48 | (uint64_t)entry->width << 32 | entry->num_samples,
                (uint64_t)entry->sample_rate << 32 | (uint64_t)entry->channels << 16 | entry->num_tokens };
    facts.field |= (uint64_t)entry->mode << 32 | (uint64_t)entry->bit_depth << 40 |
                   (uint64_t)entry->codec << 48 | (uint64_t)entry->encoding << 56;
    return (uint32_t)coffer__hash(&facts, sizeof facts) | 1;
}

coffer_status coffer__mldf_survey_value(const coffer__mldf_survey *survey, coffer__mldf_surveyor *surveyor,
                                        uint64_t sample, size_t field, const coffer_mldf_entry *entry,
                                        coffer_error *err)
{
    const coffer_mldf *set = survey->set;
    coffer__mldf_value value = { sample, field, entry->offset, entry->size, .unnamed = true };
    uint64_t index = 0;
    bool found = true, is_empty = entry->size == 0 && entry->offset == set->header.data;
    coffer_status status;
    if (!entry->present)
        return COFFER_OK;
    status = check_place(set, entry, err);
    if (status)
        return status;
    if (survey->use_table && !is_empty) {
        status = locate(&index, &found, set, surveyor, entry, err);
        if (status)
            return status;
        if (!found)
            return fail_dangling(entry, err);
        if (is_bad(survey, index))
            return coffer__fail(err, COFFER_E_BAD_CHECKSUM, entry->offset,
                                "the CRC-32 of its %lu bytes at %" PRIu64
                                " is not that of the allocation table",
                                (unsigned long)entry->size, entry->offset);
    }
    if (survey->entries)
        status = coffer__mldf_check_entry_values(&set->schema.fields[field], entry, err);
    if (status)
        return status;
    if (!wants_bytes(survey, &set->schema.fields[field]))
        return COFFER_OK;
    uint32_t mark = mark_of(field, entry);
    /* A seal holds for one sample: what is right for another says nothing. */
    bool keep = survey->seen && !is_empty && !set->has_key;
    if (keep && atomic_load_explicit(&survey->seen[index], memory_order_relaxed) == mark)
        return COFFER_OK;
    status = look_into(survey, surveyor, &value, entry, err);
    if (!status && keep)
        atomic_store_explicit(&survey->seen[index], mark, memory_order_relaxed);
    return status;
}
