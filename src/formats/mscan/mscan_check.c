#include "formats/mscan/mscan_sums.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/text.h"
#include "base/work.h"
#include "formats/format.h"
#include "formats/mscan/mscan_damage.h"
#include "formats/mscan/mscan_pass.h"
#include "io/source_private.h"

#include <inttypes.h>

#define IDS_SHOWN 8

typedef struct checker {
    coffer_report *report;
    coffer_source *source;
    const coffer_check_opts *opts;
    coffer_limits limits;
    coffer__mscan_header header;
    coffer__mscan_metadata metadata;
    coffer__mscan_area area;
} checker;

static const char *const column_names[2] = { "activation", "grad_norm" };

/* ---- Where the records are ---- */

static void report_area(const checker *check)
{
    const coffer__mscan_area *area = &check->area;
    uint64_t end = area->start + area->count * COFFER__MSCAN_RECORD_SIZE;
    uint64_t missing = (uint64_t)check->header.record_count * COFFER__MSCAN_RECORD_SIZE -
                       (coffer_source_size(check->source) - check->header.header_len);
    if (area->uncertain)
        coffer__report_add(check->report, COFFER_E_TRUNCATED, COFFER_ERROR, check->header.header_len,
                           "header says %lu records, %" PRIu64
                           " bytes are missing, and where the others start cannot be determined",
                           (unsigned long)check->header.record_count, missing);
    else if (area->tail_count > 0)
        coffer__report_add(check->report, COFFER_E_TRUNCATED, COFFER_ERROR,
                           area->start + area->count * COFFER__MSCAN_RECORD_SIZE,
                           "%" PRIu64 " bytes are missing after record %" PRIu64 ": %" PRIu64
                           " of %lu records are lost (repair keeps the others)",
                           missing, area->count, area->lost, (unsigned long)check->header.record_count);
    else if (area->overwritten_head)
        coffer__report_add(check->report, COFFER_E_TRUNCATED, COFFER_ERROR, check->header.header_len,
                           "metadata was written over the first records: %" PRIu64
                           " of %lu are lost, the other %" PRIu64 " "
                           "end with the file (an MScanWriter file; repair keeps them)",
                           area->lost, (unsigned long)check->header.record_count, area->count);
    else if (area->lost > 0)
        coffer__report_add(check->report, COFFER_E_TRUNCATED, COFFER_ERROR, coffer_source_size(check->source),
                           "header says %lu records, file has %" PRIu64 " whole ones",
                           (unsigned long)check->header.record_count, area->count);
    else if (area->trailing > 0)
        coffer__report_add(check->report, COFFER_E_TRAILING_BYTES, COFFER_WARNING, end,
                           "bytes after the last record: %" PRIu64
                           "; whole records of an append that was not committed: "
                           "%" PRIu64 " (repair --keep-tail takes them in)",
                           area->trailing, (area->trailing / COFFER__MSCAN_RECORD_SIZE));
}

/* ---- Records and checksums of sequences ---- */

/* Optional keys, but where they stand and cannot be read, nothing vouches for the records. */
static bool is_unreadable_extent(const coffer__json_value *sequence)
{
    static const char *const keys[] = { "first_record", "num_records", "crc32" };
    uint64_t number;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const coffer__json_value *value = coffer__json_find(sequence, keys[i]);
        if (value && !coffer__json_u64(&number, value))
            return true;
    }
    return false;
}

static void check_extents(const checker *check)
{
    uint64_t wrong = 0, first = 0, unreadable = 0, first_unreadable = 0;
    for (size_t i = 0; i < check->metadata.sequence_count; i++) {
        coffer__mscan_extent extent = coffer__mscan_extent_of(check->metadata.sequence_values[i]);
        if (is_unreadable_extent(check->metadata.sequence_values[i]) && unreadable++ == 0)
            first_unreadable = check->metadata.sequences[i].sequence_id;
        if (extent.has_range &&
            !coffer__range_fits(extent.first_record, extent.num_records, check->header.record_count) &&
            wrong++ == 0)
            first = check->metadata.sequences[i].sequence_id;
    }
    if (wrong > 0)
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_ERROR, COFFER__MSCAN_HEADER_SIZE,
                           "sequence %" PRIu64 " has its records past the %lu there are (%" PRIu64
                           " such sequences)",
                           first, (unsigned long)check->header.record_count, wrong);
    if (unreadable > 0)
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_WARNING, COFFER__MSCAN_HEADER_SIZE,
                           "first_record, num_records or crc32 of sequence %" PRIu64 " is not a whole "
                           "number: its records are not verified (%" PRIu64 " such sequences)",
                           first_unreadable, unreadable);
}

/* ---- The records ---- */

static coffer_status report_unknown_params(const checker *check, const coffer__mscan_survey *survey,
                                           coffer_error *err)
{
    coffer__buffer ids = COFFER__BUFFER_INIT;
    uint64_t different = 0;
    coffer_status status = COFFER_OK;
    for (uint32_t id = coffer__mscan_next_unknown(survey, 0); id < COFFER__MSCAN_PARAM_IDS;
         id = coffer__mscan_next_unknown(survey, id + 1)) {
        if (different++ < IDS_SHOWN)
            coffer__buffer_printf(&ids, "%s%lu", different > 1 ? ", " : "", (unsigned long)id);
    }
    if (different > IDS_SHOWN)
        coffer__buffer_printf(&ids, " and %" PRIu64 " more", (different - IDS_SHOWN));
    if (ids.failed)
        status = coffer__fail_no_memory(err, ids.len);
    else
        coffer__report_add(check->report, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR,
                           check->area.start + survey->unknown_first * COFFER__MSCAN_RECORD_SIZE +
                               COFFER__MSCAN_PARAM_AT,
                           "param_id not in the map: %s (first in record %" PRIu64 ", in %" PRIu64 " of all)",
                           coffer__buffer_text(&ids), survey->unknown_first, survey->unknown_count);
    coffer__buffer_free(&ids);
    return status;
}

static void report_columns(const checker *check, const coffer__mscan_survey *survey)
{
    for (int c = 0; c < 2; c++) {
        if (survey->nonzero[c] == 0)
            coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_NOTE, check->area.start,
                               "%s is 0 in all %" PRIu64 " records (older writers left it out)",
                               column_names[c], check->area.count);
        if (survey->saturated[c] > 0)
            coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_NOTE, check->area.start,
                               "%s is saturated (65535) in %" PRIu64 " of %" PRIu64
                               " records: larger values may have been "
                               "cut",
                               column_names[c], survey->saturated[c], check->area.count);
    }
    if (survey->unsorted)
        coffer__report_add(check->report, COFFER_E_NOT_SORTED, COFFER_NOTE, check->area.start,
                           "token_idx is not sorted: finding tokens takes a pass over all records");
}

static coffer_status check_records(const checker *check, coffer_error *err)
{
    coffer__mscan_survey_opts opts = { .source = check->source,
                                       .area = check->area.start,
                                       .count = check->area.count,
                                       .metadata = &check->metadata,
                                       .columns = check->opts->full,
                                       .threads = check->opts->threads,
                                       .progress = check->opts->progress };
    coffer__mscan_survey survey;
    coffer_status status;
    if (check->area.count == 0)
        return COFFER_OK;
    status = coffer__mscan_survey_records(&survey, &opts, err);
    if (!status && survey.unknown_count > 0)
        status = report_unknown_params(check, &survey, err);
    if (status)
        return status;
    if (survey.past_count > 0)
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_ERROR,
                           check->area.start + survey.past_first * COFFER__MSCAN_RECORD_SIZE,
                           "record %" PRIu64 " has a token_idx past the %" PRIu64
                           " tokens of all sequences (so have %" PRIu64 " "
                           "in all, up to token %lu)",
                           survey.past_first, check->metadata.total_tokens, survey.past_count,
                           (unsigned long)survey.max_token);
    if (check->opts->full)
        report_columns(check, &survey);
    return COFFER_OK;
}

/* ---- Checksums ---- */

typedef struct crc_check {
    const coffer__mscan_verifier *verifier;
    uint32_t *found; /* by range */
} crc_check;

static coffer_status crc_of_range(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    crc_check *crc = context;
    (void)worker;
    return coffer__mscan_range_crc(&crc->found[index], crc->verifier, (size_t)index, err);
}

static void report_crcs(const checker *check, const crc_check *crc)
{
    for (size_t i = 0; i < coffer__mscan_verifier_count(crc->verifier); i++) {
        const coffer__mscan_range *range = coffer__mscan_verifier_at(crc->verifier, i);
        uint64_t first = range->offset / COFFER__MSCAN_RECORD_SIZE;
        uint64_t last = (range->offset + range->len - 1) / COFFER__MSCAN_RECORD_SIZE;
        if (crc->found[i] == range->crc)
            continue;
        if (range->sequence != COFFER_INDEX_NONE)
            coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR,
                               check->area.start + range->offset,
                               "sequence %" PRIu64 ": CRC-32 of its %" PRIu64 " records is %08" PRIx32
                               ", the metadata says %08" PRIx32,
                               check->metadata.sequences[range->sequence].sequence_id, last - first + 1,
                               crc->found[i], range->crc);
        else
            coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR,
                               check->area.start + range->offset,
                               "records %" PRIu64 " to %" PRIu64 ": CRC-32 is %08" PRIx32
                               ", the metadata says %08" PRIx32,
                               first, last, crc->found[i], range->crc);
    }
}

static coffer_status compare_crcs(const checker *check, const coffer__mscan_verifier *verifier,
                                  coffer_error *err)
{
    size_t count = coffer__mscan_verifier_count(verifier);
    crc_check crc = { verifier, coffer__calloc(count, sizeof(uint32_t)) };
    coffer__pool *pool = NULL;
    if (!crc.found)
        return coffer__fail_no_memory(err, count * sizeof(uint32_t));
    coffer_status status = coffer__pool_new(&pool, check->opts->threads, err);
    if (!status)
        status = coffer__pool_run(pool, count, crc_of_range, &crc, err);
    if (!status)
        report_crcs(check, &crc);
    coffer__pool_free(pool);
    coffer__free(crc.found);
    return status;
}

static coffer_status check_sums(const checker *check, bool by_sequence, coffer_error *err)
{
    coffer__mscan_verifier *verifier = NULL;
    coffer_status status = coffer__mscan_verifier_new(&verifier, check->source, check->area.start,
                                                      check->area.count, &check->metadata, by_sequence, err);
    if (!status && coffer__mscan_verifier_count(verifier) > 0)
        status = compare_crcs(check, verifier, err);
    coffer__mscan_verifier_free(verifier);
    return status;
}

/* The sequences say more precisely where damage is; the table knows of records that no sequence covers. */
static coffer_status check_crcs(const checker *check, coffer_error *err)
{
    uint64_t before = coffer_report_total(check->report, COFFER_ERROR);
    coffer_status status = check_sums(check, true, err);
    if (status || coffer_report_total(check->report, COFFER_ERROR) > before || !check->metadata.seal.spelled)
        return status;
    return check_sums(check, false, err);
}

/* An "ok" says what was not verified. */
static void say_limits(const checker *check)
{
    const coffer__mscan_metadata *metadata = &check->metadata;
    coffer__size_text size;
    bool summed = metadata->seal.spelled;
    for (size_t i = 0; !summed && i < metadata->sequence_count; i++)
        summed = coffer__mscan_extent_of(metadata->sequence_values[i]).has_crc;
    if (!summed)
        coffer__report_set_limits(check->report, "the file has no checksums");
    else if (!check->opts->full && check->area.count > 0)
        coffer__report_set_limits(check->report, "structure only; --full verifies %s",
                                  coffer__size_text_of(size, check->area.count * COFFER__MSCAN_RECORD_SIZE));
}

static void report_marks(const checker *check)
{
    for (size_t i = 0; i < check->metadata.mark_count; i++) {
        const coffer__mscan_mark *mark = &check->metadata.marks[i];
        if (mark->in_metadata)
            coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, COFFER__MSCAN_HEADER_SIZE,
                               "the metadata was damaged before the file was repaired: names, sequences and "
                               "scales may be wrong");
        else if (mark->unverified)
            coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR,
                               check->area.start + mark->first_record * COFFER__MSCAN_RECORD_SIZE,
                               "records %" PRIu64 " to %" PRIu64
                               " could not be verified when the file was repaired",
                               mark->first_record, mark->first_record + mark->num_records - 1);
        else
            coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR,
                               check->area.start + mark->first_record * COFFER__MSCAN_RECORD_SIZE,
                               "records %" PRIu64 " to %" PRIu64
                               " were damaged before the file was repaired: values may be wrong",
                               mark->first_record, mark->first_record + mark->num_records - 1);
    }
}

static void check_scales(const checker *check)
{
    for (int c = 0; c < 2; c++) {
        const coffer__mscan_scales *scales = &check->metadata.scales[c];
        if (scales->scope != COFFER_MSCAN_SCALE_UNKNOWN && scales->has_common && scales->common.scale <= 0)
            coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_NOTE, COFFER__MSCAN_HEADER_SIZE,
                               "the scale of %s is %g: larger raw values mean no larger real ones",
                               column_names[c], scales->common.scale);
    }
}

/* ---- All of it ---- */

static coffer_status check_contents(checker *check, coffer_error *err)
{
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer__mscan_read_metadata(&check->metadata, check->source, &check->header,
                                                       &check->limits, check->report, &found);
    bool understood = !status;
    if (coffer__is_about_file(status))
        coffer__report_add_error(check->report, COFFER_ERROR, &found);
    else if (status)
        return coffer__fail_copy(err, &found);

    status = coffer__mscan_locate_records(&check->area, check->source, &check->header,
                                          understood ? &check->metadata : NULL, err);
    /* An append changes header and metadata in place; existing records stay as they are. */
    if (!status)
        status = coffer__expect_settled(check->source, err);
    if (status)
        return status;
    report_area(check);
    if (!understood || check->area.uncertain)
        return COFFER_OK;
    check_extents(check);
    report_marks(check);
    say_limits(check);
    status = coffer__mscan_check_seal(&check->metadata, check->header.record_count, check->report, err);
    if (!status)
        status = check_records(check, err);
    if (status || !check->opts->full)
        return status;
    check_scales(check);
    /* Counted from a first record that is gone, the extents mean nothing. */
    if (check->area.overwritten_head)
        return COFFER_OK;
    return check_crcs(check, err);
}

coffer_status coffer__mscan_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                  coffer_error *err)
{
    checker check = { .report = out, .source = src, .opts = opts, .limits = coffer__limits(opts->limits) };
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer__mscan_read_header(&check.header, src, &found);

    coffer__note_interrupted(out, src);
    if (coffer__is_about_file(status)) {
        coffer__report_add_error(out, COFFER_ERROR, &found);
        status = coffer__expect_settled(src, err);
    } else if (status) {
        return coffer__fail_copy(err, &found);
    } else {
        status = check_contents(&check, err);
        coffer__mscan_metadata_free(&check.metadata);
    }
    return status ? status : coffer__report_status(out, err);
}
