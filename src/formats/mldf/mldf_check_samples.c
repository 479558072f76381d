/* Every sample: its row, and what its values hold. Pieces of rows are looked at on all threads; those with
 * something wrong in them are gone over again in order, so that the findings are the same each time. */
#include "formats/mldf/mldf_check.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>

#define LOOKED_AT_ANYWAY ((uint64_t)1 << 20) /* bytes after the beginning of the data */

typedef struct sample_pass {
    coffer__mldf_checker *check;
    coffer__mldf_survey survey;
    coffer__mldf_surveyor *surveyors; /* one for each worker */
    uint8_t *wrong;                   /* by piece */
    _Atomic(uint64_t) padded;         /* row entries whose padding is not 0 */
    _Atomic(uint64_t) first_padded;   /* place of the first of them */
} sample_pass;

/* ---- One value ---- */

static bool padding_is_zero(coffer_mldf_entry_kind kind, const uint8_t *at)
{
    switch (kind) {
    case COFFER_MLDF_ENTRY_BYTES:
        return coffer__load_u32(at + 12) == 0;
    case COFFER_MLDF_ENTRY_IMAGE:
        return coffer__load_u16(at + 18) == 0 && coffer__load_u32(at + 20) == 0;
    case COFFER_MLDF_ENTRY_TEXT:
        return at[15] == 0;
    default:
        return true;
    }
}

static void note_padding(sample_pass *pass, uint64_t place)
{
    uint64_t first = atomic_load(&pass->first_padded);
    while (place < first && !atomic_compare_exchange_weak(&pass->first_padded, &first, place))
        ;
    atomic_fetch_add(&pass->padded, 1);
}

/* Oddities that do not prevent reading. */
static coffer_severity severity_of(coffer_status status)
{
    return status == COFFER_E_INCONSISTENT ? COFFER_WARNING : COFFER_ERROR;
}

static void report_value(const sample_pass *pass, uint64_t sample, size_t field, const coffer_error *found)
{
    const coffer_mldf *set = &pass->check->set;
    coffer_error named = COFFER_ERROR_INIT;
    uint64_t place =
        found->offset != COFFER_OFFSET_NONE ? found->offset : coffer__mldf_entry_place(set, sample, field);
    if (found->status == COFFER_E_AUTHENTICATION_FAILED) /* its text names the value */
        coffer__fail(&named, found->status, place, "%s", found->text);
    else
        coffer__mldf_fail_value(&named, found->status, place, set, sample, field, "%s", found->text);
    coffer__report_add_error(pass->check->report, severity_of(found->status), &named);
}

static void report_absent(const sample_pass *pass, uint64_t sample, size_t field)
{
    const coffer_mldf *set = &pass->check->set;
    coffer_error named = COFFER_ERROR_INIT;
    coffer__mldf_fail_value(&named, COFFER_E_MISSING, coffer__mldf_entry_place(set, sample, field), set,
                            sample, field, "no value, although the field is not optional");
    coffer__report_add_error(pass->check->report, COFFER_ERROR, &named);
}

/* ---- A piece of rows ---- */

/* report : whether findings are added, or only looked for. *wrong is set when there are any. */
static coffer_status check_piece(sample_pass *pass, uint64_t piece, coffer__mldf_surveyor *surveyor,
                                 bool report, bool *wrong, coffer_error *err)
{
    const coffer_mldf *set = &pass->check->set;
    coffer__mldf_rows rows;
    coffer_status status = coffer__mldf_fetch_rows(&rows, set, piece, &surveyor->rows, err);
    for (size_t i = 0; !status && i < rows.count; i++) {
        for (size_t f = 0; !status && f < set->schema.count; f++) {
            const coffer_mldf_field *field = &set->schema.fields[f];
            const uint8_t *at = rows.bytes + i * set->schema.row_size + field->row_offset;
            coffer_error found = COFFER_ERROR_INIT;
            coffer_mldf_entry entry;
            if (!coffer__mldf_has_payload(field->kind))
                continue;
            coffer__mldf_load_entry(&entry, field->kind, at);
            if (!entry.present && coffer__mldf_requires_value(set, field)) {
                *wrong = true;
                if (report)
                    report_absent(pass, rows.first + i, f);
                continue;
            }
            if (!report && !padding_is_zero(field->kind, at))
                note_padding(pass, coffer__mldf_entry_place(set, rows.first + i, f));
            if (coffer__mldf_survey_value(&pass->survey, surveyor, rows.first + i, f, &entry, &found) ==
                COFFER_OK)
                continue;
            if (!coffer__is_about_file(found.status))
                status = coffer__fail_copy(err, &found);
            else if (report)
                report_value(pass, rows.first + i, f, &found);
            *wrong = true;
        }
    }
    return status;
}

static coffer_status look_at_piece(void *context, uint64_t piece, uint32_t worker, coffer_error *err)
{
    sample_pass *pass = context;
    bool wrong = false;
    coffer_status status = check_piece(pass, piece, &pass->surveyors[worker], false, &wrong, err);
    pass->wrong[piece] = wrong;
    return status;
}

static coffer_status report_pieces(sample_pass *pass, uint64_t pieces, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    bool wrong;
    for (uint64_t i = 0; !status && i < pieces && !coffer__report_full(pass->check->report); i++) {
        if (pass->wrong[i])
            status = check_piece(pass, i, &pass->surveyors[0], true, &wrong, err);
    }
    return status;
}

static coffer_status run_pass(sample_pass *pass, coffer_error *err)
{
    coffer__mldf_checker *check = pass->check;
    uint64_t pieces = coffer__mldf_row_pieces(&check->set);
    coffer_status status = coffer__mldf_survey_begin(&pass->survey, err);
    if (!status)
        status =
            coffer__mldf_run_pieces(check->pool, pieces, look_at_piece, pass, check->opts->progress, err);
    if (!status)
        status = report_pieces(pass, pieces, err);
    if (!status)
        status = coffer_source_intact(check->set.source, err);
    if (status)
        return status;
    if (pass->padded > 0)
        coffer__report_add(check->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, pass->first_padded,
                           "row entries whose padding is not 0: %" PRIu64, pass->padded);
    return COFFER_OK;
}

/* Any number is right in a row: without payloads there is nothing to look at. */
static bool any_payload(const coffer__mldf_schema *schema)
{
    for (size_t i = 0; i < schema->count; i++) {
        if (coffer__mldf_has_payload(schema->fields[i].kind))
            return true;
    }
    return false;
}

/* Small files are read completely even without `full`. */
static bool is_small(const coffer_mldf *set)
{
    return set->header.data <= set->file_size && set->file_size - set->header.data <= LOOKED_AT_ANYWAY;
}

coffer_status coffer__mldf_check_samples(coffer__mldf_checker *check, const coffer__mldf_sums *sums,
                                         coffer_error *err)
{
    const coffer_mldf *set = &check->set;
    uint32_t threads = coffer__pool_threads(check->pool);
    bool full = check->opts->full;
    sample_pass pass = { .check = check,
                         .survey = { .set = set,
                                     .use_table = check->has_table && check->table_in_order,
                                     .decode = full,
                                     .entries = true,
                                     .contents = full || is_small(set),
                                     .sums = sums },
                         .first_padded = UINT64_MAX };
    coffer_status status;
    if (!any_payload(&set->schema))
        return COFFER_OK;
    pass.surveyors = coffer__calloc(threads, sizeof *pass.surveyors);
    pass.wrong = coffer__calloc((size_t)coffer__mldf_row_pieces(set), sizeof *pass.wrong);
    status = pass.surveyors && pass.wrong ? run_pass(&pass, err)
                                          : coffer__fail_no_memory(err, coffer__mldf_row_pieces(set));
    for (uint32_t i = 0; pass.surveyors && i < threads; i++)
        coffer__mldf_surveyor_free(&pass.surveyors[i], set);
    coffer__mldf_survey_end(&pass.survey);
    coffer__free(pass.surveyors);
    coffer__free(pass.wrong);
    return status;
}
