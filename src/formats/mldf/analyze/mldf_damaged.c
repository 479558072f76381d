/* Which samples cannot be read whole. */
#include "formats/mldf/analyze/mldf_survey.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"

#define ENTRIES_AT_ONCE ((size_t)8192)

COFFER__INIT_FUNCTION(coffer_mldf_find_damaged_opts, COFFER_MLDF_FIND_DAMAGED_OPTS_INIT)

typedef struct damage_pass {
    coffer__mldf_survey survey;
    coffer__mldf_surveyor *surveyors; /* one for each worker */
    _Atomic(uint64_t) *damaged;       /* one bit for each sample */
    _Atomic(uint64_t) count;
} damage_pass;

/* True when the table is sorted and inside the file, so that payloads can be looked up. */
static coffer_status table_in_order(bool *out, const coffer_mldf *set, coffer_error *err)
{
    uint8_t *scratch = coffer__alloc_array(ENTRIES_AT_ONCE, COFFER__MLDF_TABLE_ENTRY);
    uint64_t end = set->header.data;
    coffer_status status = COFFER_OK;
    *out = true;
    if (!scratch)
        return coffer__fail_no_memory(err, ENTRIES_AT_ONCE * COFFER__MLDF_TABLE_ENTRY);
    for (uint64_t first = 0; !status && *out && first < set->table_count; first += ENTRIES_AT_ONCE) {
        uint64_t left = set->table_count - first;
        size_t count = left < ENTRIES_AT_ONCE ? (size_t)left : ENTRIES_AT_ONCE;
        const uint8_t *at = NULL;
        status = coffer__mldf_fetch_table(&at, set, first, count, scratch, err);
        for (size_t i = 0; !status && *out && i < count; i++) {
            coffer__mldf_allocation entry = coffer__mldf_load_allocation(at + i * COFFER__MLDF_TABLE_ENTRY);
            *out = entry.offset >= end && coffer__range_fits(entry.offset, entry.size, set->file_size);
            end = entry.offset + entry.size;
        }
    }
    coffer__free(scratch);
    return status;
}

static coffer_status is_damaged(bool *out, damage_pass *pass, coffer__mldf_surveyor *surveyor,
                                const uint8_t *row, uint64_t sample, coffer_error *err)
{
    const coffer_mldf *set = pass->survey.set;
    *out = false;
    for (size_t f = 0; f < set->schema.count && !*out; f++) {
        const coffer_mldf_field *field = &set->schema.fields[f];
        coffer_error found = COFFER_ERROR_INIT;
        coffer_mldf_entry entry;
        if (!coffer__mldf_has_payload(field->kind))
            continue;
        coffer__mldf_load_entry(&entry, field->kind, row + field->row_offset);
        if (coffer__mldf_survey_value(&pass->survey, surveyor, sample, f, &entry, &found) == COFFER_OK)
            continue;
        if (!coffer__is_about_file(found.status))
            return coffer__fail_copy(err, &found);
        *out = true;
    }
    return COFFER_OK;
}

static coffer_status look_at_piece(void *context, uint64_t piece, uint32_t worker, coffer_error *err)
{
    damage_pass *pass = context;
    const coffer_mldf *set = pass->survey.set;
    coffer__mldf_surveyor *surveyor = &pass->surveyors[worker];
    coffer__mldf_rows rows;
    coffer_status status = coffer__mldf_fetch_rows(&rows, set, piece, &surveyor->rows, err);
    for (size_t i = 0; !status && i < rows.count; i++) {
        uint64_t sample = rows.first + i;
        bool damaged = false;
        status = is_damaged(&damaged, pass, surveyor, rows.bytes + i * set->schema.row_size, sample, err);
        if (!status && damaged) {
            atomic_fetch_or(&pass->damaged[sample / 64], UINT64_C(1) << sample % 64);
            atomic_fetch_add(&pass->count, 1);
        }
    }
    return status;
}

static coffer_status list_numbers(uint64_t **out, const damage_pass *pass, coffer_error *err)
{
    uint64_t samples = pass->survey.set->header.samples, count = atomic_load(&pass->count);
    uint64_t *numbers = coffer__alloc_array((size_t)count, sizeof *numbers);
    size_t n = 0;
    if (!numbers)
        return coffer__fail_no_memory(err, count * sizeof *numbers);
    for (uint64_t word = 0; count > 0 && word < coffer__divide_up(samples, 64); word++) {
        for (uint64_t bits = atomic_load(&pass->damaged[word]); bits != 0; bits &= bits - 1)
            numbers[n++] = word * 64 + (uint64_t)__builtin_ctzll(bits);
    }
    *out = numbers;
    return COFFER_OK;
}

static coffer_status run_pass(damage_pass *pass, coffer__mldf_sums *sums, coffer__pool *pool,
                              const coffer_progress *progress, coffer_error *err)
{
    const coffer_mldf *set = pass->survey.set;
    coffer_status status = table_in_order(&pass->survey.use_table, set, err);
    if (!status && pass->survey.use_table && coffer__mldf_has_sums(set)) {
        status = coffer__mldf_survey_sums(sums, set, pool, progress, err);
        pass->survey.sums = sums;
    }
    if (!status)
        status = coffer__mldf_survey_begin(&pass->survey, err);
    if (!status)
        status =
            coffer__mldf_run_pieces(pool, coffer__mldf_row_pieces(set), look_at_piece, pass, progress, err);
    if (status)
        return status;
    return coffer_source_intact(set->source, err);
}

coffer_status coffer_mldf_find_damaged(uint64_t **samples, uint64_t *count, const coffer_mldf *set,
                                       const coffer_mldf_find_damaged_opts *opts, coffer_error *err)
{
    coffer_mldf_find_damaged_opts options = COFFER_MLDF_FIND_DAMAGED_OPTS_INIT;
    damage_pass pass = { .survey = { .set = set, .decode = true } };
    coffer__mldf_sums sums = { 0 };
    coffer__pool *pool = NULL;
    size_t words = (size_t)coffer__divide_up(set->schema.row_size ? set->header.samples : 0, 64);
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = coffer__pool_new(&pool, options.threads, err);
    if (status)
        return status;
    uint32_t threads = coffer__pool_threads(pool);
    pass.surveyors = coffer__calloc(threads, sizeof *pass.surveyors);
    pass.damaged = coffer__calloc(words, sizeof *pass.damaged);
    if (!pass.surveyors || !pass.damaged)
        status = coffer__fail_no_memory(err, words * sizeof *pass.damaged);
    else if (words > 0)
        status = run_pass(&pass, &sums, pool, options.progress, err);
    if (!status)
        status = list_numbers(samples, &pass, err);
    if (!status)
        *count = atomic_load(&pass.count);
    for (uint32_t i = 0; pass.surveyors && i < threads; i++)
        coffer__mldf_surveyor_free(&pass.surveyors[i], set);
    coffer__mldf_survey_end(&pass.survey);
    coffer__mldf_sums_free(&sums);
    coffer__free(pass.surveyors);
    coffer__free(pass.damaged);
    coffer__pool_free(pool);
    return status;
}
