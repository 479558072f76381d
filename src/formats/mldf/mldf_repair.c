/* Repairing a damaged set: header and fields must be readable, everything else may be missing. */
#include "formats/mldf/mldf_repair.h"

#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/format.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- A file with nothing wrong ---- */

COFFER__INIT_FUNCTION(coffer_mldf_repair_opts, COFFER_MLDF_REPAIR_OPTS_INIT)

static bool flags_agree(const coffer_mldf *set)
{
    uint32_t flags = 0;
    for (size_t i = 0; i < set->schema.count; i++) {
        if (set->schema.fields[i].flags & COFFER_MLDF_FIELD_ZSTD)
            flags |= COFFER_MLDF_COMPRESSED;
        if (set->schema.fields[i].flags & COFFER_MLDF_FIELD_ENCRYPTED)
            flags |= COFFER_MLDF_ENCRYPTED;
    }
    return (set->header.flags & (COFFER_MLDF_COMPRESSED | COFFER_MLDF_ENCRYPTED)) == flags;
}

static coffer_status look(bool *clean, const coffer__mldf_rescue *work, coffer_error *err)
{
    coffer_check_opts options = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_status status = coffer_report_new(&report, 0, err);
    if (status)
        return status;
    options.full = true;
    options.key = work->opts->key;
    options.limits = &work->set.limits;
    status = coffer__mldf_check(report, work->set.source, &options, err);
    *clean = coffer_report_total(report, COFFER_ERROR) == 0 && flags_agree(&work->set);
    coffer_report_free(report);
    return status;
}

/* ---- The parts ---- */

/* Names that nothing can be written under are replaced. */
static void mend_names(coffer__mldf_rescue *work)
{
    coffer__mldf_schema *schema = &work->set.schema;
    for (size_t i = 0; i < schema->count; i++) {
        size_t at = schema->sorted[i];
        char *name = schema->names + at * COFFER__MLDF_NAME_SIZE;
        bool twice = i > 0 && strcmp(schema->fields[schema->sorted[i - 1]].name, name) == 0;
        if (name[0] != '\0' && !twice)
            continue;
        work->renamed[at] = true;
        coffer__report_add(work->report, twice ? COFFER_E_DUPLICATE : COFFER_E_BAD_VALUE, COFFER_WARNING,
                           COFFER_OFFSET_NONE, "field %zu %s; it is called \"field %zu\" now", at,
                           twice ? "has the name of another" : "has no name", at);
    }
    for (size_t i = 0; i < schema->count; i++) {
        if (work->renamed[i])
            snprintf(schema->names + i * COFFER__MLDF_NAME_SIZE, COFFER__MLDF_NAME_SIZE, "field %zu", i);
    }
}

/* Without a shape that can be believed, arrays are bytes. */
static void mend_arrays(coffer__mldf_rescue *work)
{
    for (size_t i = 0; i < work->set.schema.count; i++) {
        coffer_mldf_field *field = &work->set.schema.fields[i];
        const coffer__mldf_type_info *info = coffer__mldf_type_info_of(field->type);
        if (field->kind == COFFER_MLDF_ENTRY_OPAQUE || !info || !info->has_array ||
            field->dtype != COFFER_DTYPE_NONE)
            continue;
        field->type = COFFER_MLDF_BYTES;
        coffer__report_add(work->report, COFFER_E_BAD_VALUE, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "field %s: the type of its arrays is lost; they are bytes now", field->name);
    }
}

/* Rows that lie inside the file. */
static void count_rows(coffer__mldf_rescue *work)
{
    coffer_mldf *set = &work->set;
    uint64_t room = set->header.metadata < set->file_size ? set->file_size - set->header.metadata : 0;
    uint64_t whole = set->schema.row_size ? room / set->schema.row_size : 0;
    work->samples = set->header.samples;
    if (set->header.samples > whole)
        set->header.samples = whole;
}

static coffer_status load_fields(coffer__mldf_rescue *work, coffer_error *err)
{
    coffer_mldf *set = &work->set;
    coffer_report *mistakes = NULL;
    coffer_status status = coffer_report_new(&mistakes, 0, err);
    if (status)
        return status;
    status = coffer__mldf_read_schema(&set->schema, set->source, &set->header, &set->limits, mistakes, err);
    for (size_t i = 0; i < coffer_report_count(mistakes) && !status; i++) {
        const coffer_finding *mistake = coffer_report_at(mistakes, i);
        if (mistake->severity == COFFER_ERROR)
            coffer__report_add(work->report, mistake->code, COFFER_WARNING, mistake->offset, "%s",
                               mistake->text);
    }
    coffer_report_free(mistakes);
    if (!status)
        status =
            coffer__mldf_bound_row(set->schema.row_size, &set->header, set->file_size, &set->limits, err);
    if (!status)
        status = coffer__mldf_settle_fields(set, err);
    if (status)
        return status;
    work->renamed = coffer__calloc(set->schema.count ? set->schema.count : 1, sizeof *work->renamed);
    if (!work->renamed)
        return coffer__fail_no_memory(err, set->schema.count);
    mend_names(work);
    mend_arrays(work);
    count_rows(work);
    for (size_t i = 0; i < set->schema.count; i++)
        work->keeps_numbers = work->keeps_numbers ||
                              (set->schema.fields[i].flags & COFFER_MLDF_FIELD_ENCRYPTED && !set->has_key);
    return COFFER_OK;
}

/* ---- Output ---- */

static coffer_status start(coffer__mldf_rescue *work, const char *path, coffer_error *err)
{
    coffer_mldf_writer_opts options = coffer__mldf_settings_of(&work->set);
    if (options.page_size == 0 && work->opts->copy)
        options.page_size = coffer__mldf_settings_of(work->opts->copy).page_size;
    options.overwrite = work->opts->overwrite;
    options.limits = &work->set.limits;
    options.key = work->opts->key;
    coffer_status status =
        coffer__mldf_start_copy(&work->writer, path, &work->set, NULL, work->set.schema.count, &options, err);
    if (status != COFFER_E_INVALID_ARGUMENT)
        return status;
    /* The argument is not the caller's: the file has such fields. */
    if (err)
        err->status = COFFER_E_BAD_VALUE;
    return coffer__fail_prefix(err, COFFER_E_BAD_VALUE, "the field descriptors are damaged");
}

/* Payloads that the table knows and no sample of the result has. */
static void offer_payloads(const coffer__mldf_rescue *work)
{
    uint64_t count = 0, bytes = 0;
    for (size_t i = 0; i < work->table_count; i++) {
        count += !work->in_use[i];
        bytes += work->in_use[i] ? 0 : work->table[i].size;
    }
    if (count > 0 && (work->lost > 0 || work->unverified > 0))
        coffer__report_add(work->report, COFFER_E_DANGLING_REFERENCE, COFFER_NOTE, work->set.header.data,
                           "payloads that no sample of the result has are still in the damaged file: %" PRIu64
                           ", %" PRIu64 " bytes; 'coffer ls --what table' lists them, 'coffer get FILE "
                           "@OFFSET' reads one",
                           count, bytes);
}

static void tell_end(coffer__mldf_rescue *work)
{
    uint64_t kept = work->writer->sample;
    if (!work->table_in_order)
        coffer__report_add(work->report, COFFER_E_NOT_SORTED, COFFER_NOTE, work->set.header.table,
                           "the allocation table is damaged; it is rebuilt");
    if (work->restored > 0)
        coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_NOTE, work->set.header.metadata,
                           "rows that were restored from their second copy in the file: %" PRIu64,
                           work->restored);
    if (work->unverified > 0)
        coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, work->set.header.metadata,
                           "samples that could not be verified: %" PRIu64
                           "; they are kept and marked, 'coffer check' names them",
                           work->unverified);
    if (work->lost == 0 && work->fetched == 0 && work->unverified == 0 && work->restored == 0 &&
        work->values_lost == 0 && work->table_in_order)
        coffer__report_add(work->report, COFFER_E_INCONSISTENT, COFFER_NOTE, COFFER__MLDF_HEADER_AT,
                           "no sample is damaged; header, tables and checksums are rewritten");
    if (work->keeps_numbers)
        coffer__report_add(work->report, COFFER_E_KEY_NEEDED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "encrypted values were compared with their checksums alone: no key was given");
    offer_payloads(work);
    char from_copy[48] = "";
    if (work->opts->copy)
        snprintf(from_copy, sizeof from_copy, ", %" PRIu64 " of them from the copy", work->fetched);
    coffer__report_add(work->report, COFFER_E_TRUNCATED, work->lost ? COFFER_ERROR : COFFER_NOTE,
                       COFFER_OFFSET_NONE, "samples kept: %" PRIu64 " of %" PRIu64 "%s", kept, work->samples,
                       from_copy);
}

/* Damage that only the copy of the header shows is undone first. */
static coffer_status read_header(coffer__mldf_rescue *work, coffer_error *err)
{
    coffer_mldf *set = &work->set;
    coffer_status status = coffer__mldf_read_header(&set->header, set->source, err);
    if (!status)
        status =
            coffer__mldf_read_guard(&set->guard, &set->guard_state, set->source, &set->header, true, err);
    if (status || set->guard_state != COFFER__MLDF_GUARD_DIFFERS)
        return status;
    if (memcmp(set->guard.head, set->header.bytes, sizeof set->guard.head) != 0) {
        coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_NOTE, COFFER__MLDF_HEADER_AT,
                           "the header is damaged; its copy is used");
        set->header = coffer__mldf_load_header(set->guard.head + COFFER__MLDF_HEADER_AT);
        memcpy(set->header.bytes, set->guard.head, sizeof set->guard.head);
        work->header_restored = true;
    }
    return COFFER_OK;
}

/* True when header, the descriptors of this set and zeros have the checksum of the bytes before the guard. */
static coffer_status fields_agree(bool *out, const coffer__mldf_rescue *work, const coffer_mldf *set,
                                  coffer_error *err)
{
    const coffer_mldf *own = &work->set;
    uint64_t front = own->header.data - COFFER__MLDF_GUARD_SIZE, at = own->header.descriptors;
    size_t len = set->schema.count * set->schema.stride;
    *out = false;
    if (len > front - at)
        return COFFER_OK;
    uint8_t *bytes = coffer__malloc(len);
    if (!bytes)
        return coffer__fail_no_memory(err, len);
    coffer_status status = coffer_source_read_at(bytes, set->source, set->header.descriptors, len, err);
    uint32_t crc = coffer__crc32(0, own->header.bytes, sizeof own->header.bytes);
    if (!status)
        crc = coffer__mldf_sum_zeros(coffer__crc32(crc, bytes, len), front - at - len);
    *out = !status && crc == own->guard.front_crc;
    coffer__free(bytes);
    return status;
}

/* The copy has the descriptors that this file had. */
static coffer_status take_fields_of_copy(coffer__mldf_rescue *work, coffer_error *err)
{
    const coffer_mldf *copy = work->opts->copy;
    coffer__mldf_schema schema = { 0 };
    coffer_status status =
        coffer__mldf_read_schema(&schema, copy->source, &copy->header, &work->set.limits, NULL, err);
    if (status)
        return status;
    coffer__mldf_schema_free(&work->set.schema);
    work->set.schema = schema;
    work->set.header.samples = work->samples;
    count_rows(work);
    work->fields_wrong = false;
    coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_NOTE, work->set.header.descriptors,
                       "the field descriptors are damaged; those of the copy are used");
    return COFFER_OK;
}

/* The bytes before the guard are header, descriptors and zeros: what differs is in the descriptors, or in
 * zeros that nobody needs. */
static coffer_status check_descriptors(coffer__mldf_rescue *work, coffer_error *err)
{
    const coffer_mldf *set = &work->set, *copy = work->opts->copy;
    bool described = coffer__mldf_guard_holds(set) || work->header_restored, agree = false;
    if (!described || set->header.descriptors != COFFER__MLDF_HEAD_SIZE ||
        set->header.data < COFFER__MLDF_HEAD_SIZE + COFFER__MLDF_GUARD_SIZE)
        return COFFER_OK;
    coffer_status status = fields_agree(&agree, work, set, err);
    work->fields_wrong = !agree;
    if (status || agree)
        return status;
    if (copy && copy->schema.count == set->schema.count)
        status = fields_agree(&agree, work, copy, err);
    if (!status && agree)
        return take_fields_of_copy(work, err);
    coffer__report_add(work->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, set->header.descriptors,
                       "the field descriptors are damaged: names and types may be wrong");
    return status;
}

static coffer_status fail_empty(const coffer__mldf_rescue *work, coffer_error *err)
{
    if (work->table_count == 0)
        return coffer__fail(err, COFFER_E_TRUNCATED, work->set.file_size, "no sample of it can be saved");
    return coffer__fail(err, COFFER_E_TRUNCATED, work->set.file_size,
                        "no sample of it can be saved; %zu payloads are still in the file: 'coffer ls --what "
                        "table' lists them, 'coffer get FILE @OFFSET' reads one",
                        work->table_count);
}

static coffer_status rescue(coffer__mldf_rescue *work, const char *path, coffer_error *err)
{
    coffer_status status;
    bool clean = false;
    status = read_header(work, err);
    if (!status)
        status = load_fields(work, err);
    if (!status)
        status = look(&clean, work, err);
    if (status)
        return status;
    if (clean)
        return coffer__rescue_write(path, work->opts->overwrite, work->set.source, work->opts->progress, NULL,
                                    NULL, err);
    status = check_descriptors(work, err);
    if (!status)
        status = coffer__mldf_recover(work, err);
    if (!status)
        status = coffer__mldf_rescue_table(work, err);
    if (!status && work->set.guard.mark_count > 0 &&
        coffer__mldf_read_marks(&work->marks, &work->mark_count, &work->set, NULL) != COFFER_OK)
        coffer__report_add(work->report, COFFER_E_OUT_OF_BOUNDS, COFFER_ERROR, COFFER_OFFSET_NONE,
                           "the marks of an earlier repair are lost");
    coffer__mldf_sort_marks(work->marks, &work->mark_count);
    if (!status)
        status = start(work, path, err);
    if (status)
        return status;
    if (work->opts->copy)
        status = coffer__mldf_compare_fields(work->writer, &work->set, work->opts->copy, err);
    if (status)
        return status;
    status = coffer__mldf_rescue_samples(work, err);
    if (status)
        return status;
    if (work->samples > 0 && work->writer->sample == 0)
        return fail_empty(work, err);
    tell_end(work);
    coffer_mldf_writer *writer = work->writer;
    work->writer = NULL;
    return coffer_mldf_writer_commit(writer, err);
}

coffer_status coffer_mldf_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                 const coffer_mldf_repair_opts *opts, coffer_error *err)
{
    coffer_mldf_repair_opts options = COFFER_MLDF_REPAIR_OPTS_INIT;
    coffer__mldf_rescue *work;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    work = coffer__calloc(1, sizeof *work);
    if (!work)
        return coffer__fail_no_memory(err, sizeof *work);
    work->report = out;
    work->opts = &options;
    coffer__mldf_prepare(&work->set, src, options.limits, options.key);
    status = rescue(work, out_path, err);
    coffer_mldf_writer_discard(work->writer);
    coffer__mldf_surveyor_free(&work->surveyor, &work->set);
    coffer__mldf_row_reader_free(&work->rows);
    coffer_free(work->stored.data);
    coffer_free(work->scratch.data);
    coffer__mldf_release(&work->set);
    coffer__mldf_recovered_free(&work->recovered);
    coffer__free(work->row);
    coffer__free(work->in_use);
    coffer__free(work->marks);
    coffer__free(work->table);
    coffer__free(work->renamed);
    coffer__free(work);
    return status ? status : coffer__report_status(out, err);
}

coffer_status coffer__mldf_repair_file(coffer_report *out, coffer_source *src, const char *out_path,
                                       const coffer_repair_opts *opts, coffer_error *err)
{
    coffer_mldf_repair_opts options = COFFER_MLDF_REPAIR_OPTS_INIT;
    coffer_mldf_open_opts open_options = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf *copy = NULL;
    coffer_status status = COFFER_OK;
    open_options.key = opts->key;
    open_options.limits = opts->limits;
    open_options.verify = true;
    if (opts->copy)
        status = coffer__mldf_open_strict(&copy, opts->copy, &open_options, err);
    if (status)
        return status;
    options.copy = copy;
    options.key = opts->key;
    options.overwrite = opts->overwrite;
    options.limits = opts->limits;
    options.progress = opts->progress;
    status = coffer_mldf_repair(out, src, out_path, &options, err);
    coffer_mldf_close(copy);
    return status;
}
