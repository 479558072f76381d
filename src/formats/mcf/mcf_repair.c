/* Repair: writes the complete tensors and readable sections to a new file. When the directory is lost,
 * searches for the index. */
#include "formats/mcf/mcf_repair.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "formats/format.h"

#include <inttypes.h>

/* ---- Is the file damaged at all? ---- */

/* Errors that remain in the new file, because the bytes are copied unchanged. Checksums are looked at again
 * below, part by part. */
static bool stays(coffer_status code)
{
    return code == COFFER_E_BAD_JSON || code == COFFER_E_BAD_TEXT;
}

static coffer_status look(bool *clean, coffer__mcf_rescue *work, coffer_error *err)
{
    coffer_check_opts options = COFFER_CHECK_OPTS_INIT;
    coffer_report *found = NULL;
    coffer_status status = coffer_report_new(&found, work->model->limits.findings, err);
    if (status)
        return status;
    options.full = true;
    options.limits = &work->model->limits;
    status = coffer__mcf_check(found, work->source, &options, err);
    if (!status)
        *clean = coffer_report_total(found, COFFER_ERROR) + coffer_report_total(found, COFFER_WARNING) == 0;
    for (size_t i = 0; !status && i < coffer_report_count(found); i++) {
        const coffer_finding *finding = coffer_report_at(found, i);
        if (finding->severity == COFFER_ERROR && stays(finding->code))
            coffer__report_add(work->report, finding->code, COFFER_WARNING, finding->offset,
                               "%s; copied unchanged", finding->text);
        else if (finding->severity != COFFER_NOTE && !work->first.status)
            coffer__fail(&work->first, finding->code, finding->offset, "%s", finding->text);
    }
    coffer_report_free(found);
    return status;
}

/* ---- Sections ---- */

static coffer_status add_section(coffer_mcf *model, const coffer_mcf_section *section, coffer_error *err)
{
    coffer_mcf_section *grown =
        coffer__realloc(model->sections, (model->section_count + 1) * sizeof *model->sections);
    if (!grown)
        return coffer__fail_no_memory(err, (model->section_count + 1) * sizeof *model->sections);
    grown[model->section_count++] = *section;
    model->sections = grown;
    return COFFER_OK;
}

static void report_lost(const coffer__mcf_rescue *work, const coffer_error *why)
{
    coffer__report_add(work->report, why->status, COFFER_ERROR, why->offset, "lost: %s", why->text);
}

static void lose_section(coffer__mcf_rescue *work, uint32_t type, const coffer_error *why)
{
    const char *name = coffer_mcf_section_name(type);
    report_lost(work, why);
    name = name ? name : "section";
    coffer__mcf_record_lost(work, type, name, strlen(name));
}

/* Keeps the sections that are inside the file. TensorData may end after it: tensors are checked one by
 * one. */
static void keep_sections(coffer__mcf_rescue *work)
{
    coffer_mcf *model = work->model;
    uint64_t size = coffer_source_size(work->source);
    size_t kept = 0;
    for (size_t i = 0; i < model->section_count; i++) {
        const coffer_mcf_section *section = &model->sections[i];
        coffer_error found = COFFER_ERROR_INIT;
        coffer_status status = coffer__mcf_check_section(section, &model->header, size, &found);
        if (!status || status == COFFER_E_MISALIGNED)
            model->sections[kept++] = *section;
        else if (section->type == COFFER_MCF_CHECKSUMS)
            coffer__report_add(work->report, status, COFFER_WARNING, found.offset, "%s", found.text);
        else if (section->type != COFFER_MCF_TENSOR_DATA && section->type != COFFER_MCF_DIRECTORY_COPY)
            lose_section(work, section->type, &found);
        work->index_lost = work->index_lost || (status && section->type == COFFER_MCF_TENSOR_INDEX);
    }
    model->section_count = kept;
}

/* An intact copy of header and directory that belongs to this file is better than both. */
static coffer_status use_copy(bool *used, coffer__mcf_rescue *work, coffer_error *err)
{
    coffer_mcf *model = work->model;
    coffer__mcf_copy copy = { 0 };
    coffer_error found = COFFER_ERROR_INIT;
    uint8_t here[COFFER__MCF_HEADER_SIZE], there[COFFER__MCF_HEADER_SIZE];
    uint64_t size = coffer_source_size(work->source);
    coffer_status status =
        coffer__mcf_copy_load(&copy, work->source, COFFER__MCF_COPY_PLACE, &model->limits, &found);
    *used = false;
    if (status)
        return coffer__is_about_file(status) ? COFFER_OK : coffer__fail_copy(err, &found);
    if (copy.header.file_size != model->header.file_size && copy.header.file_size != size) {
        coffer__free(copy.sections);
        return COFFER_OK;
    }
    coffer__mcf_store_header(here, &model->header);
    coffer__mcf_store_header(there, &copy.header);
    if (memcmp(here, there, sizeof here) != 0)
        coffer__report_add(work->report, COFFER_E_INCONSISTENT, COFFER_NOTE, 0,
                           "the header was damaged; it is taken from its copy");
    model->header = copy.header;
    model->sections = copy.sections;
    model->section_count = copy.header.section_count;
    *used = true;
    return COFFER_OK;
}

static coffer_status find_sections(coffer__mcf_rescue *work, coffer_error *err)
{
    coffer_mcf *model = work->model;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_mcf_section info;
    bool copied = false;
    coffer_status status = use_copy(&copied, work, err);
    if (status)
        return status;
    if (!copied)
        status = coffer__mcf_read_directory(&model->sections, work->source, &model->header, &model->limits,
                                            &found);
    if (copied) {
        keep_sections(work);
        return COFFER_OK;
    }
    if (!status) {
        model->section_count = model->header.section_count;
        keep_sections(work);
        return COFFER_OK;
    }
    work->directory_lost = true;
    status = coffer__report_take(work->report, COFFER_WARNING, &found, err);
    if (!status)
        status = coffer__mcf_search_model_info(&info, work->source, &model->limits, err);
    if (status)
        return status;
    coffer__report_add(
        work->report, COFFER_E_MISSING, COFFER_ERROR, COFFER__MCF_DIRECTORY_AT,
        "the directory is lost, and with it the places of config, tokenizer and other sections%s",
        info.size > 0 ? "; a ModelInfo was found" : "");
    return info.size > 0 ? add_section(model, &info, err) : COFFER_OK;
}

static coffer_status find_index(coffer__mcf_rescue *work, coffer_error *err)
{
    coffer_mcf *model = work->model;
    coffer_error found = COFFER_ERROR_INIT;
    const coffer_mcf_section *listed = coffer_mcf_find_section(model, COFFER_MCF_TENSOR_INDEX);
    coffer_mcf_section section;
    coffer_status status;
    if (listed) {
        status = coffer__mcf_index_load(&model->index, work->source, listed, &model->limits, &found);
        if (!status)
            return COFFER_OK;
        bool other_version = status == COFFER_E_UNSUPPORTED_VERSION;
        status = coffer__report_take(work->report, COFFER_WARNING, &found, err);
        if (status)
            return status;
        /* The number is what is damaged. Every tensor is verified by its own checksum later. */
        if (other_version && coffer__mcf_is_damaged_section(work, listed) &&
            !coffer__mcf_index_rescue(&model->index, work->source, listed, &model->limits, &found))
            return COFFER_OK;
    } else if (!work->directory_lost && !work->index_lost) {
        return COFFER_OK; /* the file never had an index */
    }
    status = coffer__mcf_search_index(&section, work->source, &model->limits, err);
    if (status)
        return status;
    if (section.size == 0) {
        coffer__report_add(work->report, COFFER_E_MISSING, COFFER_ERROR, COFFER_OFFSET_NONE,
                           "no TensorIndex was found: all tensors are lost");
        const char *name = coffer_mcf_section_name(COFFER_MCF_TENSOR_INDEX);
        coffer__mcf_record_lost(work, COFFER_MCF_TENSOR_INDEX, name, strlen(name));
        return COFFER_OK;
    }
    coffer__report_add(work->report, COFFER_E_MISSING, COFFER_WARNING, section.offset,
                       "a TensorIndex was found at %" PRIu64, section.offset);
    return coffer__mcf_index_load(&model->index, work->source, &section, &model->limits, err);
}

/* ---- Tensors ---- */

static void leave_out(coffer__mcf_rescue *work, size_t tensor, const coffer_error *why)
{
    if (work->left_out[tensor])
        return;
    work->left_out[tensor] = true;
    if (coffer__mcf_take_from_copy(work, tensor)) {
        work->left_out[tensor] = false;
        return;
    }
    coffer__mcf_entry entry = coffer__mcf_index_entry(&work->model->index, tensor);
    report_lost(work, why);
    if (entry.name)
        coffer__mcf_record_lost(work, 0, entry.name, entry.name_len);
}

/* The size of an int8 or int4 tensor without a record determines which of the two layouts it has. */
static bool fits_activations(const coffer__mcf_index *index, size_t tensor)
{
    coffer_dtype dtype = coffer_mcf_dtype_from_code(coffer__mcf_index_entry(index, tensor).dtype);
    return coffer_dtype_is_quantized(dtype) && !coffer__mcf_is_blocked(dtype) &&
           !coffer__mcf_check_payload_size(index, tensor, true, NULL);
}

static coffer_status make_records(coffer__mcf_rescue *work, coffer_error *err)
{
    coffer_mcf *model = work->model;
    size_t count = model->index.count, made = 0;
    if (model->quant_of)
        return COFFER_OK;
    model->quants = coffer__calloc(count ? count : 1, sizeof *model->quants);
    model->quant_of = coffer__calloc(count ? count : 1, sizeof *model->quant_of);
    if (!model->quants || !model->quant_of)
        return coffer__fail_no_memory(err, count * sizeof *model->quants);
    for (size_t i = 0; i < count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(&model->index, i);
        if (!coffer_dtype_is_quantized(coffer_mcf_dtype_from_code(entry.dtype)))
            continue;
        model->quants[made] = (coffer__mcf_quant_record){ .tensor = (uint32_t)i,
                                                          .method = (uint8_t)entry.dtype,
                                                          .domain = fits_activations(&model->index, i) };
        model->quant_of[i] = (uint32_t)++made;
    }
    model->quant_count = made;
    if (made > 0)
        coffer__report_add(work->report, COFFER_E_MISSING, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "QuantInfo is lost: %zu records were reconstructed, without the ranges of values",
                           made);
    return COFFER_OK;
}

static void judge(coffer__mcf_rescue *work, size_t tensor)
{
    const coffer_mcf *model = work->model;
    coffer__mcf_entry entry = coffer__mcf_index_entry(&model->index, tensor);
    coffer_error why = COFFER_ERROR_INIT;
    bool known = coffer_mcf_dtype_from_code(entry.dtype) != COFFER_DTYPE_NONE;
    bool activations = coffer__mcf_has_activations(model, tensor) &&
                       !coffer__mcf_is_blocked(coffer_mcf_dtype_from_code(entry.dtype));
    coffer_status status = COFFER_OK;
    if (!entry.name)
        status = coffer__fail(&why, COFFER_E_OUT_OF_BOUNDS, coffer__mcf_entry_at(&model->index, tensor),
                              "tensor #%zu, its name is outside of the index", tensor);
    else if (entry.size > 0 && entry.offset < model->header.header_size)
        status = coffer__fail(&why, COFFER_E_OVERLAP, coffer__mcf_entry_at(&model->index, tensor),
                              "tensor %s, it begins at %" PRIu64 ", inside the header",
                              coffer__mcf_entry_name(&model->index, tensor).text, entry.offset);
    else if (known || !entry.dims)
        status = coffer__mcf_check_payload_size(&model->index, tensor, activations, &why);
    if (!status)
        status = coffer__mcf_check_payload_range(&model->index, tensor, coffer_source_size(work->source),
                                                 NULL, &why);
    if (status)
        leave_out(work, tensor, &why);
}

/* Keeps the first of several tensors with the same name. */
static coffer_status drop_duplicates(coffer__mcf_rescue *work, coffer_error *err)
{
    const coffer__mcf_index *index = &work->model->index;
    uint32_t *order = NULL;
    size_t first = SIZE_MAX; /* that is kept of the names so far */
    coffer_status status = coffer__mcf_index_order(&order, index, err);
    for (size_t i = 0; !status && i < index->count; i++) {
        coffer__mcf_entry here = coffer__mcf_index_entry(index, order[i]), before;
        coffer_error why = COFFER_ERROR_INIT;
        if (work->left_out[order[i]])
            continue;
        if (first != SIZE_MAX) {
            before = coffer__mcf_index_entry(index, first);
            if (coffer__mcf_compare_names(before.name, before.name_len, here.name, here.name_len) == 0) {
                coffer__fail(&why, COFFER_E_DUPLICATE, coffer__mcf_entry_at(index, order[i]),
                             "tensor #%" PRIu32 ", another has its name %s", order[i],
                             coffer__mcf_entry_name(index, order[i]).text);
                leave_out(work, order[i], &why);
                continue;
            }
        }
        first = order[i];
    }
    coffer__free(order);
    return status;
}

static coffer_status judge_tensors(coffer__mcf_rescue *work, coffer_error *err)
{
    size_t count = work->model->index.count;
    coffer_status status;
    work->left_out = coffer__calloc(count ? count : 1, sizeof *work->left_out);
    if (!work->left_out)
        return coffer__fail_no_memory(err, count);
    for (size_t i = 0; i < count; i++)
        judge(work, i);
    status = drop_duplicates(work, err);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++)
        work->kept += !work->left_out[i];
    if (work->kept < count)
        coffer__report_add(work->report, COFFER_E_TRUNCATED, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "tensors kept: %zu of %zu", work->kept, count);
    return COFFER_OK;
}

/* ---- Output ---- */

static bool anything_left(const coffer__mcf_rescue *work)
{
    if (work->kept > 0)
        return true;
    for (size_t i = 0; i < work->model->section_count; i++) {
        uint32_t type = work->model->sections[i].type;
        if (type != COFFER_MCF_TENSOR_INDEX && type != COFFER_MCF_TENSOR_DATA &&
            type != COFFER_MCF_QUANT_INFO && type != COFFER_MCF_CHECKSUMS &&
            type != COFFER_MCF_DIRECTORY_COPY && type != COFFER_MCF_DAMAGE)
            return true;
    }
    return false;
}

static coffer_status write_repaired(const coffer__mcf_rescue *work, const char *path, coffer_error *err)
{
    coffer_mcf_writer_opts options = COFFER_MCF_WRITER_OPTS_INIT;
    coffer__mcf_rewrite from = { .model = work->model,
                                 .left_out = work->left_out,
                                 .progress = work->opts->progress,
                                 .verified = true,
                                 .patches = work->patches,
                                 .patch_count = work->patch_count,
                                 .moved = work->moved,
                                 .moved_count = work->moved_count };
    coffer_mcf_writer *writer = NULL;
    coffer_status status;
    if (!anything_left(work))
        return coffer__fail(err, COFFER_E_TRUNCATED, coffer_source_size(work->source),
                            "no tensor and no section can be saved");
    options.align = coffer__mcf_common_alignment(work->model);
    options.no_dedup = true;
    options.no_checksums = !work->directory_lost && !work->has_sums && !work->damages.count &&
                           !coffer_mcf_find_section(work->model, COFFER_MCF_CHECKSUMS);
    options.flags = work->model->header.flags;
    options.overwrite = work->opts->overwrite;
    status = coffer_mcf_writer_create(&writer, path, &options, err);
    if (status)
        return status;
    status = coffer__mcf_take_over(writer, &from, err);
    for (size_t i = 0; !status && i < work->damages.count; i++)
        status = coffer_mcf_writer_add_damage(writer, &work->damages.items[i], err);
    if (status) {
        coffer_mcf_writer_discard(writer);
        return status;
    }
    return coffer_mcf_writer_commit(writer, err);
}

/* Its copy replaces a header that cannot be read. */
static coffer_status read_header(coffer__mcf_rescue *work, coffer_error *err)
{
    coffer__mcf_copy copy = { 0 };
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status = coffer__mcf_read_header(&work->model->header, work->source, &cause);
    if (!status)
        return COFFER_OK;
    coffer_error other = COFFER_ERROR_INIT;
    coffer_status copied =
        coffer__mcf_copy_load(&copy, work->source, COFFER__MCF_COPY_PLACE, &work->model->limits, &other);
    if (copied)
        return coffer__fail_copy(err, coffer__is_about_file(copied) ? &cause : &other);
    coffer__report_add(work->report, status, COFFER_NOTE, cause.offset,
                       "%s; the header is taken from its copy", cause.text);
    work->model->header = copy.header;
    coffer__free(copy.sections);
    return COFFER_OK;
}

static coffer_status rescue_all(coffer__mcf_rescue *work, const char *path, coffer_error *err)
{
    bool clean = false;
    coffer_status status = read_header(work, err);
    if (!status)
        status = look(&clean, work, err);
    if (status)
        return status;
    if (clean)
        return coffer__rescue_write(path, work->opts->overwrite, work->source, work->opts->progress, NULL,
                                    NULL, err);
    status = find_sections(work, err);
    if (!status)
        status = coffer__mcf_gather_evidence(work, err);
    if (!status)
        status = find_index(work, err);
    if (!status)
        status = coffer__mcf_load_quants(work->model, err);
    if (!status)
        status = make_records(work, err);
    if (!status)
        status = judge_tensors(work, err);
    if (!status)
        status = coffer__mcf_verify_rescued(work, err);
    if (status)
        return status;
    if (coffer_report_count(work->report) == 0)
        coffer__report_add(work->report, work->first.status, COFFER_NOTE, work->first.offset,
                           "corrected damage: %s", work->first.text);
    return write_repaired(work, path, err);
}

coffer_status coffer__mcf_repair(coffer_report *out, coffer_source *src, const char *out_path,
                                 const coffer_repair_opts *opts, coffer_error *err)
{
    coffer__mcf_rescue work = {
        .report = out, .source = src, .opts = opts, .failure = COFFER_ERROR_INIT, .first = COFFER_ERROR_INIT
    };
    coffer_status status;
    work.model = coffer__calloc(1, sizeof *work.model);
    if (!work.model)
        return coffer__fail_no_memory(err, sizeof *work.model);
    work.model->source = src;
    work.model->limits = coffer__limits(opts->limits);
    status = rescue_all(&work, out_path, err);
    coffer__mcf_rescue_free(&work);
    return status ? status : coffer__report_status(out, err);
}
