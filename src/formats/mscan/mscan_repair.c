/* Saving what can be saved: whole records are kept, and the metadata is made to agree with them. */
#include "formats/mscan/mscan_writer.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "formats/format.h"
#include "formats/mscan/mscan_damage.h"
#include "formats/mscan/mscan_pass.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct rescue {
    coffer_report *report;
    coffer_source *source;
    const coffer_repair_opts *opts;
    coffer_limits limits;
    bool changed; /* damage was found: the file is rewritten instead of copied */
    coffer__mscan_header header;
    coffer__mscan_metadata metadata;
    coffer__mscan_area area;
    coffer__mscan_survey survey;
    coffer__id_names names;
    coffer__mscan_new_sequence recovered; /* covers tokens that no sequence has */
    coffer__mscan_draft draft;
    coffer__mscan_pieces pieces; /* the records that are kept */
    bool metadata_lost;
} rescue;

static void note_change(rescue *work, coffer_status code, uint64_t offset, const char *text)
{
    work->changed = true;
    coffer__report_add(work->report, code, COFFER_WARNING, offset, "%s", text);
}

/* ---- Metadata ---- */

/* Adds what the loader left out, and ids that are not sorted. */
static void take_over_findings(rescue *work, const coffer_report *found)
{
    for (size_t i = 0; i < coffer_report_count(found); i++) {
        const coffer_finding *finding = coffer_report_at(found, i);
        if (finding->severity != COFFER_ERROR)
            continue;
        if (finding->code == COFFER_E_DUPLICATE || finding->code == COFFER_E_NOT_SORTED)
            work->draft.renumber = true;
        note_change(work, finding->code, finding->offset, finding->text);
    }
    if (work->draft.renumber)
        coffer__report_add(work->report, COFFER_E_NOT_SORTED, COFFER_NOTE, COFFER__MSCAN_HEADER_SIZE,
                           "the sequences got the ids 0 to %zu, in the order of the file",
                           work->metadata.sequence_count - 1);
}

static bool is_unreadable(coffer_status status)
{
    return status == COFFER_E_BAD_JSON || status == COFFER_E_BAD_TEXT || status == COFFER_E_DUPLICATE;
}

static coffer_status load_metadata(rescue *work, coffer_error *err)
{
    coffer_mscan_writer_opts empty = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_report *found = NULL;
    coffer_status status = coffer_report_new(&found, work->limits.findings, err);
    if (status)
        return status;
    status = coffer__mscan_read_metadata(&work->metadata, work->source, &work->header, &work->limits, found,
                                         &cause);
    if (status == COFFER_E_BAD_TEXT) {
        note_change(work, status, cause.offset, "bytes of the metadata that are not UTF-8 became U+FFFD");
        status = coffer__mscan_read_replaced(&work->metadata, work->source, &work->header, &work->limits,
                                             found, &cause);
    }
    if (status == COFFER_E_BAD_JSON) {
        coffer_error ignored = COFFER_ERROR_INIT;
        coffer_status inside = coffer__mscan_read_surrounded(&work->metadata, work->source, &work->header,
                                                             &work->limits, found, &ignored);
        if (inside == COFFER_OK)
            note_change(work, status, cause.offset,
                        "bytes around the metadata that do not belong to it, now dropped");
        if (!is_unreadable(inside))
            status = inside;
    }
    if (is_unreadable(status)) {
        note_change(work, status, cause.offset, cause.text);
        coffer__report_add(work->report, status, COFFER_WARNING, COFFER__MSCAN_HEADER_SIZE,
                           "the metadata is lost: names and sequences are made up from the records");
        work->metadata_lost = true;
        status = coffer__mscan_compose_empty(&work->metadata, &empty, NULL, &work->limits, &cause);
    }
    if (status) {
        status = coffer__fail_copy(err, &cause);
        goto out;
    }
    if (!work->metadata_lost)
        status = coffer__mscan_check_seal(&work->metadata, work->header.record_count, found, err);
    take_over_findings(work, found);
    if (!status)
        status = coffer__report_status(found, err);
out:
    coffer_report_free(found);
    return status;
}

/* ---- Records ---- */

static void report_lost(rescue *work)
{
    const coffer__mscan_area *area = &work->area;
    if (area->lost == 0)
        return;
    work->changed = true;
    if (area->tail_count > 0)
        coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING,
                           area->start + area->count * COFFER__MSCAN_RECORD_SIZE,
                           "records missing or incomplete after record %" PRIu64 ": %" PRIu64
                           "; kept before: %" PRIu64 ", after: %" PRIu64,
                           area->count, area->lost, area->count, area->tail_count);
    else
        coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING, area->start,
                           area->overwritten_head
                               ? "records lost at the front, overwritten by metadata: %" PRIu64
                                 "; kept: %" PRIu64
                               : "records missing at the end: %" PRIu64 "; kept: %" PRIu64,
                           area->lost, area->count);
}

/* Whether a record after the last one belongs to an append that was not committed: its parameter must be
 * known, and its token may be past the total, but below the limit. */
static bool belongs(const rescue *work, const uint8_t *record, uint64_t limit)
{
    return coffer__mscan_find_param(&work->metadata, coffer__mscan_load_param(record)) &&
           coffer__mscan_load_token(record) < limit;
}

/* How many complete records of the tail are kept: those before the first that does not belong. */
static coffer_status count_tail(uint64_t *out, const rescue *work, coffer_error *err)
{
    uint8_t scratch[512 * COFFER__MSCAN_RECORD_SIZE];
    const size_t batch = sizeof scratch / COFFER__MSCAN_RECORD_SIZE;
    uint64_t whole = work->area.trailing / COFFER__MSCAN_RECORD_SIZE;
    uint64_t limit = work->metadata.total_tokens, taken = 0;
    bool unbroken = true;
    if (whole > COFFER__MSCAN_MAX_RECORDS - work->area.count)
        whole = COFFER__MSCAN_MAX_RECORDS - work->area.count;
    if (limit < COFFER__MSCAN_MAX_TOKENS)
        limit += whole; /* every new token brings at least one record */
    while (unbroken && taken < whole) {
        size_t some = whole - taken < batch ? (size_t)(whole - taken) : batch, i = 0;
        const uint8_t *records = NULL;
        coffer_status status = coffer__mscan_fetch(&records, work->source, work->area.start,
                                                   work->area.count + taken, some, scratch, err);
        if (status)
            return status;
        while (i < some && belongs(work, records + i * COFFER__MSCAN_RECORD_SIZE, limit))
            i++;
        taken += i;
        unbroken = i == some;
    }
    *out = taken;
    return coffer_source_intact(work->source, err);
}

static coffer_status settle_tail(rescue *work, coffer_error *err)
{
    uint64_t end = work->area.start + work->area.count * COFFER__MSCAN_RECORD_SIZE, taken = 0, dropped;
    coffer_status status = COFFER_OK;
    if (work->area.trailing == 0)
        return COFFER_OK;
    if (work->opts->keep_tail && work->area.lost == 0)
        status = count_tail(&taken, work, err);
    if (status)
        return status;
    work->changed = true;
    work->area.count += taken;
    dropped = work->area.trailing - taken * COFFER__MSCAN_RECORD_SIZE;
    if (taken > 0)
        coffer__report_add(work->report, COFFER_E_TRAILING_BYTES, COFFER_WARNING, end,
                           "records after the last one, now taken in: %" PRIu64, taken);
    if (dropped > 0)
        coffer__report_add(work->report, COFFER_E_TRAILING_BYTES, COFFER_WARNING,
                           end + taken * COFFER__MSCAN_RECORD_SIZE,
                           "bytes after the last record, now dropped: %" PRIu64, dropped);
    return COFFER_OK;
}

static coffer_status name_unknown_params(rescue *work, coffer_error *err)
{
    const coffer__mscan_pieces *pieces = &work->pieces;
    uint64_t named = 0;
    for (uint32_t id = 0; id < COFFER__MSCAN_PARAM_IDS; id++) {
        char name[32];
        if (!(pieces->used_ids[id / 64] >> id % 64 & 1) || work->metadata.param_index[id])
            continue;
        int len = snprintf(name, sizeof name, "unknown.%lu", (unsigned long)id);
        coffer_status status = coffer__id_names_add(&work->names, (uint16_t)id, name, (size_t)len, err);
        if (status)
            return status;
        named++;
    }
    if (named == 0)
        return COFFER_OK;
    work->changed = true;
    coffer__report_add(work->report, COFFER_E_DANGLING_REFERENCE, COFFER_WARNING, work->area.start,
                       "parameters that the map does not have, now called unknown.ID: %" PRIu64, named);
    return COFFER_OK;
}

/* Records past the total stay: a sequence of their own takes their tokens. */
static void cover_tokens(rescue *work)
{
    static char source[] = "recovered";
    const coffer__mscan_metadata *metadata = &work->metadata;
    const coffer__mscan_pieces *pieces = &work->pieces;
    coffer__mscan_new_sequence *recovered = &work->recovered;
    if (pieces->past_count == 0)
        return;
    recovered->num_tokens = (uint64_t)pieces->max_token + 1 - metadata->total_tokens;
    recovered->source = source;
    recovered->source_len = sizeof source - 1;
    if (metadata->sequence_count > 0 &&
        !coffer__add_u64(&recovered->sequence_id,
                         metadata->sequences[metadata->sequence_count - 1].sequence_id, 1))
        work->draft.renumber = true;
    if (work->draft.renumber)
        recovered->sequence_id = metadata->sequence_count;
    work->draft.added = recovered;
    work->draft.added_count = 1;
    work->changed = true;
    coffer__report_add(work->report, COFFER_E_INCONSISTENT, COFFER_WARNING, work->area.start,
                       "records past the %" PRIu64 " tokens of all sequences: %" PRIu64
                       "; the new sequence %" PRIu64 ", "
                       "\"recovered\", covers them up to token %lu",
                       metadata->total_tokens, pieces->past_count, recovered->sequence_id,
                       (unsigned long)pieces->max_token);
}

static void report_dropped(rescue *work)
{
    if (work->pieces.dropped == 0)
        return;
    work->changed = true;
    coffer__report_add(work->report, COFFER_E_INCONSISTENT, COFFER_WARNING, work->pieces.dropped_offset,
                       "records dropped because their token is far past the end of all sequences: %" PRIu64,
                       work->pieces.dropped);
}

static coffer_status settle_records(rescue *work, coffer_error *err)
{
    coffer__mscan_survey_opts opts = { .source = work->source,
                                       .area = work->area.start,
                                       .count = work->area.count,
                                       .metadata = &work->metadata };
    coffer_status status = coffer__mscan_survey_records(&work->survey, &opts, err);
    /* Every token past the total brings at least one record; without metadata there may be gaps. */
    uint64_t limit = work->metadata.total_tokens + work->survey.past_count;
    if (work->metadata.sequence_count == 0)
        limit = 1024 + 64 * work->area.count;
    if (!status)
        status = coffer__mscan_pieces_find(&work->pieces, &work->area, work->source, &work->header,
                                           &work->metadata, limit, err);
    if (!status)
        status = name_unknown_params(work, err);
    if (status)
        return status;
    report_dropped(work);
    cover_tokens(work);
    return COFFER_OK;
}

/* ---- Verification ---- */

static void report_marks(rescue *work)
{
    for (size_t i = 0; i < work->pieces.mark_count; i++) {
        const coffer__mscan_mark *mark = &work->pieces.marks[i];
        uint64_t last = mark->first_record + mark->num_records - 1;
        work->changed = true;
        if (mark->in_metadata)
            coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_WARNING, COFFER__MSCAN_HEADER_SIZE,
                               "the metadata could not be verified; the new file is marked as damaged");
        else if (mark->unverified)
            coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_WARNING, work->area.start,
                               "records %" PRIu64 " to %" PRIu64
                               " of the new file could not be verified; they are marked as unverified",
                               mark->first_record, last);
        else
            coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_WARNING, work->area.start,
                               "records %" PRIu64 " to %" PRIu64
                               " of the new file do not match their checksum; they are marked as damaged",
                               mark->first_record, last);
    }
}

static coffer_status settle_marks(rescue *work, coffer_error *err)
{
    const coffer__mscan_metadata *metadata = &work->metadata;
    bool claims_seal = coffer__json_find(metadata->root, COFFER__MSCAN_SEAL_KEY) ||
                       coffer__json_find(metadata->root, COFFER__MSCAN_SUMS_KEY);
    coffer_error ignored = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    if (work->metadata_lost ||
        (claims_seal && coffer__mscan_check_seal(metadata, work->header.record_count, NULL, &ignored)))
        status = coffer__mscan_pieces_mark_metadata(&work->pieces, err);
    if (!status && !work->metadata_lost)
        status = coffer__mscan_pieces_verify(&work->pieces, err);
    if (status)
        return status;
    report_marks(work);
    work->draft.marks = work->pieces.marks;
    work->draft.mark_count = work->pieces.mark_count;
    return COFFER_OK;
}

/* Sequences that say where their records are must not say it of records that are gone or have moved. */
static void settle_extents(rescue *work)
{
    uint64_t wrong = 0;
    work->draft.extent_limit = work->pieces.unmoved;
    for (size_t i = 0; i < work->metadata.sequence_count; i++) {
        coffer__mscan_extent extent = coffer__mscan_extent_of(work->metadata.sequence_values[i]);
        wrong += extent.has_range &&
                 !coffer__range_fits(extent.first_record, extent.num_records, work->draft.extent_limit);
    }
    if (wrong == 0)
        return;
    work->changed = true;
    coffer__report_add(work->report, COFFER_E_INCONSISTENT, COFFER_WARNING, COFFER__MSCAN_HEADER_SIZE,
                       "sequences that no longer say where their records are: %" PRIu64, wrong);
}

/* ---- Output ---- */

static coffer_status write_repaired(coffer__sink *sink, void *context, coffer_error *err)
{
    rescue *work = context;
    coffer__buffer json = COFFER__BUFFER_INIT;
    coffer__chunk_counter sums = { 0 };
    coffer_status status = coffer__mscan_pieces_sum(&sums, &work->pieces, err);
    uint32_t area = 0;
    work->draft.sums = sums.sums;
    work->draft.sum_count = sums.count;
    work->draft.bad_sequences = work->pieces.bad_sequences;
    if (!status)
        status = coffer__mscan_compose(&json, &work->draft, err);
    if (!status)
        status = coffer__mscan_place_records(&area, json.len, coffer__mscan_default_room(json.len), err);
    if (!status)
        status = coffer__mscan_write_front(sink, area, work->pieces.total, &json, err);
    coffer__buffer_free(&json);
    coffer__chunk_counter_free(&sums);
    for (size_t i = 0; !status && i < work->pieces.count; i++)
        status = coffer__sink_copy_source(sink, work->source, work->pieces.list[i].offset,
                                          work->pieces.list[i].count * COFFER__MSCAN_RECORD_SIZE,
                                          work->opts->progress, err);
    return status;
}

static coffer_status rescue_all(rescue *work, const char *path, coffer_error *err)
{
    coffer_status status = coffer__mscan_read_header(&work->header, work->source, err);
    if (!status)
        status = load_metadata(work, err);
    if (!status)
        status = coffer__mscan_names_init(&work->names, &work->metadata, err);
    if (!status)
        status = coffer__mscan_locate_records(&work->area, work->source, &work->header, &work->metadata, err);
    if (status)
        return status;
    if (work->area.uncertain)
        return coffer__fail(err, COFFER_E_TRUNCATED, work->header.header_len,
                            "bytes are missing, and where the records start cannot be determined: any choice "
                            "could write wrong values");
    report_lost(work);
    status = settle_tail(work, err);
    if (!status)
        status = settle_records(work, err);
    if (!status)
        status = settle_marks(work, err);
    if (status)
        return status;
    settle_extents(work);
    work->draft.base = &work->metadata;
    work->draft.names = &work->names;
    return coffer__rescue_write(path, work->opts->overwrite, work->source, work->opts->progress,
                                work->changed ? write_repaired : NULL, work, err);
}

coffer_status coffer__mscan_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                   const coffer_repair_opts *opts, coffer_error *err)
{
    rescue *work = coffer__calloc(1, sizeof *work);
    if (!work)
        return coffer__fail_no_memory(err, sizeof *work);
    work->report = out;
    work->source = src;
    work->opts = opts;
    work->limits = coffer__limits(opts->limits);
    coffer_status status = rescue_all(work, out_path, err);
    coffer__mscan_pieces_free(&work->pieces);
    coffer__id_names_free(&work->names);
    coffer__mscan_metadata_free(&work->metadata);
    coffer__free(work);
    return status ? status : coffer__report_status(out, err);
}
