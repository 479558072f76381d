/* Checks a model: header and directory here, the rest in mcf_check_*.c. */
#include "formats/mcf/mcf_check.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/format.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Header and directory ---- */

static void check_header(const coffer__mcf_checker *check)
{
    uint64_t says = check->header.file_size, has = coffer_source_size(check->source);
    uint64_t unknown = check->header.flags & ~COFFER__MCF_FLAG_ALIGNED64;
    if (says != has)
        coffer__report_add(check->report, COFFER_E_SIZE_MISMATCH, COFFER_ERROR, COFFER__MCF_FILE_SIZE_AT,
                           "header says %" PRIu64 " bytes, file has %" PRIu64, says, has);
    if (has < says)
        coffer__report_add(check->report, COFFER_E_TRUNCATED, COFFER_ERROR, has,
                           "the last %" PRIu64 " of %" PRIu64
                           " bytes are missing (repair keeps the complete tensors)",
                           says - has, says);
    if (unknown != 0)
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_NOTE, COFFER__MCF_FLAGS_AT,
                           "unknown flags: 0x%" PRIx64, unknown);
    if (check->header.section_count > 0 && check->header.directory % COFFER__MCF_SECTION_ALIGNMENT != 0)
        coffer__report_add(check->report, COFFER_E_MISALIGNED, COFFER_NOTE, COFFER__MCF_DIRECTORY_AT,
                           "the directory begins at %" PRIu64 ", which is not a multiple of %d",
                           check->header.directory, COFFER__MCF_SECTION_ALIGNMENT);
}

static int by_type(const void *a, const void *b)
{
    uint32_t x = ((const coffer_mcf_section *)a)->type, y = ((const coffer_mcf_section *)b)->type;
    return (x > y) - (x < y);
}

static coffer_status check_types(const coffer__mcf_checker *check, const coffer_mcf_section *sections,
                                 size_t count, coffer_error *err)
{
    coffer_mcf_section *sorted = coffer__alloc_array(count, sizeof *sorted);
    bool in_order = true;
    if (!sorted)
        return coffer__fail_no_memory(err, count * sizeof *sorted);
    if (count > 0) {
        memcpy(sorted, sections, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, by_type);
    }
    for (size_t i = 1; i < count; i++) {
        in_order = in_order && sections[i - 1].type <= sections[i].type;
        if (sorted[i].type == sorted[i - 1].type && (i == 1 || sorted[i - 2].type != sorted[i].type))
            coffer__report_add(check->report, COFFER_E_DUPLICATE, COFFER_WARNING, check->header.directory,
                               "%s is in the directory twice; the first one applies",
                               coffer__mcf_section_label(sorted[i].type).text);
    }
    if (!in_order)
        coffer__report_add(check->report, COFFER_E_NOT_SORTED, COFFER_NOTE, check->header.directory,
                           "the directory is not sorted by type");
    coffer__free(sorted);
    return COFFER_OK;
}

/* Reports sections with an invalid range and leaves them out of the further checks. */
static coffer_status check_sections(coffer__mcf_checker *check, coffer_error *err)
{
    uint64_t size = coffer_source_size(check->source);
    size_t kept = 0;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status;
    for (size_t i = 0; i < check->section_count; i++) {
        const coffer_mcf_section *section = &check->sections[i];
        if (coffer__mcf_check_section(section, &check->header, size, &found)) {
            coffer__report_add_error(check->report, COFFER_ERROR, &found);
            /* A misaligned section can still be checked. */
            if (found.status != COFFER_E_MISALIGNED)
                continue;
        }
        check->sections[kept++] = *section;
    }
    check->section_count = kept;
    status = coffer__mcf_check_overlap(check->sections, kept, &found);
    return status ? coffer__report_take(check->report, COFFER_ERROR, &found, err) : COFFER_OK;
}

static coffer_status check_directory(coffer__mcf_checker *check, bool *readable, coffer_error *err)
{
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status;
    *readable =
        !coffer__mcf_read_directory(&check->sections, check->source, &check->header, &check->limits, &found);
    if (!*readable)
        return coffer__report_take(check->report, COFFER_ERROR, &found, err);
    check->section_count = check->header.section_count;
    status = coffer__mcf_check_copy(check, err);
    if (!status)
        status = check_types(check, check->sections, check->section_count, err);
    return status ? status : check_sections(check, err);
}

/* ---- Sections with a content of their own ---- */

static void check_version(const coffer__mcf_checker *check, const coffer_mcf_section *section)
{
    if (section->type >= COFFER_MCF_MODEL_INFO && section->type <= COFFER_MCF_TENSOR_INDEX &&
        section->version != COFFER__MCF_SECTION_VERSION)
        coffer__report_add(check->report, COFFER_E_UNSUPPORTED_VERSION, COFFER_ERROR, check->header.directory,
                           "the directory says version %" PRIu32 " of %s, this program reads %d",
                           section->version, coffer__mcf_section_label(section->type).text,
                           COFFER__MCF_SECTION_VERSION);
}

static coffer_status check_model_info(const coffer__mcf_checker *check, const coffer_mcf_section *section,
                                      coffer_error *err)
{
    coffer_mcf_model_info *info = NULL;
    coffer_error found = COFFER_ERROR_INIT;
    uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status =
        coffer__mcf_load_section(&bytes, &len, check->source, section, check->limits.json_bytes, &found);
    if (!status)
        status = coffer__mcf_decode_model_info(&info, bytes, len, section->offset, check->report, &found);
    coffer__mcf_model_info_free(info);
    coffer__free(bytes);
    return status ? coffer__report_take(check->report, COFFER_ERROR, &found, err) : COFFER_OK;
}

bool coffer__mcf_holds_json(uint32_t type)
{
    return type >= COFFER_MCF_CONFIG && type <= COFFER_MCF_VOCAB;
}

coffer_status coffer__mcf_check_json(uint32_t type, const char *text, size_t len, uint64_t base,
                                     const coffer_limits *limits, coffer_error *err)
{
    coffer__json *json = NULL;
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status = coffer__json_parse_python(&json, text, len, base, limits, &cause);
    coffer__json_free(json);
    if (!status)
        return COFFER_OK;
    return coffer__fail(err, status, cause.offset, "%s: %s", coffer__mcf_section_label(type).text,
                        cause.text);
}

static coffer_status check_json(const coffer__mcf_checker *check, const coffer_mcf_section *section,
                                coffer_error *err)
{
    coffer_error found = COFFER_ERROR_INIT;
    uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status =
        coffer__mcf_load_section(&bytes, &len, check->source, section, check->limits.json_bytes, &found);
    if (!status)
        status = coffer__mcf_check_json(section->type, (const char *)bytes, len, section->offset,
                                        &check->limits, &found);
    coffer__free(bytes);
    if (!status)
        return COFFER_OK;
    return coffer__report_take(check->report, status == COFFER_E_DUPLICATE ? COFFER_WARNING : COFFER_ERROR,
                               &found, err);
}

static coffer_status check_files(const coffer__mcf_checker *check, const coffer_mcf_section *section,
                                 coffer_error *err)
{
    coffer__mcf_files files = { 0 };
    coffer_error found = COFFER_ERROR_INIT;
    uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status =
        coffer__mcf_load_section(&bytes, &len, check->source, section, check->limits.memory_bytes, &found);
    if (!status)
        status = coffer__mcf_files_decode(&files, bytes, len, section->offset, &found);
    coffer__mcf_files_free(&files);
    return status ? coffer__report_take(check->report, COFFER_ERROR, &found, err) : COFFER_OK;
}

static coffer_status check_contents(coffer__mcf_checker *check, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < check->section_count; i++) {
        const coffer_mcf_section *section = &check->sections[i];
        check_version(check, section);
        if (section->type == COFFER_MCF_MODEL_INFO)
            status = check_model_info(check, section, err);
        else if (section->type == COFFER_MCF_FILES)
            status = check_files(check, section, err);
        else if (coffer__mcf_holds_json(section->type))
            status = check_json(check, section, err);
    }
    return status;
}

/* ---- Everything ---- */

const coffer_mcf_section *coffer__mcf_checker_section(const coffer__mcf_checker *check, uint32_t type)
{
    return coffer__mcf_first_section(check->sections, check->section_count, type);
}

static coffer_status check_all(coffer__mcf_checker *check, coffer_error *err)
{
    bool readable = false;
    coffer_status status;
    check_header(check);
    status = check_directory(check, &readable, err);
    if (status || !readable)
        return status;
    const coffer_mcf_section *data = coffer__mcf_checker_section(check, COFFER_MCF_TENSOR_DATA);
    check->has_data = data != NULL;
    if (data)
        check->data = *data;
    status = check_contents(check, err);
    if (!status)
        status = coffer__mcf_check_quants(check, err);
    if (!status)
        status = coffer__mcf_check_quality(check, err);
    if (!status)
        status = coffer__mcf_check_index(check, err);
    if (!status)
        status = coffer__mcf_check_places(check, err);
    if (status)
        return status;
    return coffer__mcf_check_payloads(check, err);
}

coffer_status coffer__mcf_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                coffer_error *err)
{
    coffer__mcf_checker check = {
        .report = out, .source = src, .opts = opts, .limits = coffer__limits(opts->limits)
    };
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status;
    coffer__note_interrupted(out, src);
    if (coffer__mcf_read_header(&check.header, src, &found))
        status = coffer__report_take(out, COFFER_ERROR, &found, err);
    else
        status = check_all(&check, err);
    coffer__free(check.sections);
    coffer__free(check.quants);
    coffer__free(check.quant_of);
    coffer__mcf_index_free(&check.index);
    if (!status)
        status = coffer__expect_settled(src, err);
    if (status)
        return status;
    return coffer__report_status(out, err);
}
