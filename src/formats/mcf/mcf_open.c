/* Opens a model: reads header, directory and index, no payload. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/large_pages.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/source_private.h"

#include <inttypes.h>

COFFER__INIT_FUNCTION(coffer_mcf_open_opts, COFFER_MCF_OPEN_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_mcf_work_opts, COFFER_MCF_WORK_OPTS_INIT)

coffer_status coffer__mcf_load_section(uint8_t **out, size_t *len, coffer_source *src,
                                       const coffer_mcf_section *section, uint64_t max, coffer_error *err)
{
    coffer_status status;
    uint8_t *bytes;
    size_t size;
    if (section->size > max || !coffer__to_size(&size, section->size) || size == SIZE_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, section->offset,
                            "%s has %" PRIu64 " bytes, the limit is %" PRIu64,
                            coffer__mcf_section_label(section->type).text, section->size, max);
    bytes = coffer__malloc(size + 1);
    coffer__expect_filled(bytes, size);
    if (!bytes)
        return coffer__fail_no_memory(err, size);
    status = coffer_source_read_at(bytes, src, section->offset, size, err);
    if (status) {
        coffer__free(bytes);
        return status;
    }
    bytes[size] = 0;
    *len = size;
    *out = bytes;
    return COFFER_OK;
}

static coffer_status check_file_size(const coffer_mcf *model, bool lenient, coffer_error *err)
{
    uint64_t says = model->header.file_size, has = coffer_source_size(model->source);
    if (says == has || lenient)
        return COFFER_OK;
    return coffer__fail(err, has < says ? COFFER_E_TRUNCATED : COFFER_E_SIZE_MISMATCH,
                        COFFER__MCF_FILE_SIZE_AT, "header says %" PRIu64 " bytes, file has %" PRIu64, says,
                        has);
}

/* Checks the place of every section; lenient mode leaves out bad ones. */
static coffer_status settle_sections(coffer_mcf *model, bool lenient, coffer_error *err)
{
    uint64_t size = coffer_source_size(model->source);
    size_t kept = 0;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < model->section_count && !status; i++) {
        status = coffer__mcf_check_section(&model->sections[i], &model->header, size, err);
        if (!status)
            model->sections[kept++] = model->sections[i];
        else if (lenient)
            status = COFFER_OK;
    }
    if (!status) {
        model->section_count = kept;
        if (!lenient)
            status = coffer__mcf_check_overlap(model->sections, kept, err);
    }
    return status;
}

static coffer_status load_directory(coffer_mcf *model, bool lenient, coffer_error *err)
{
    coffer_status status =
        coffer__mcf_read_directory(&model->sections, model->source, &model->header, &model->limits, err);
    if (!status)
        model->section_count = model->header.section_count;
    else if (lenient && (status == COFFER_E_OUT_OF_BOUNDS || status == COFFER_E_OVERLAP))
        return COFFER_OK;
    if (!status && !lenient)
        status =
            coffer__mcf_copy_compare(model->source, &model->header, model->sections, &model->limits, err);
    return status ? status : settle_sections(model, lenient, err);
}

static coffer_status load_index(coffer_mcf *model, bool lenient, coffer_error *err)
{
    const coffer_mcf_section *data = coffer_mcf_find_section(model, COFFER_MCF_TENSOR_DATA);
    const coffer_mcf_section *index = coffer_mcf_find_section(model, COFFER_MCF_TENSOR_INDEX);
    model->sorted = true;
    model->has_data = data != NULL;
    if (data)
        model->data = *data;
    if (!index)
        return COFFER_OK;
    coffer_status status = coffer__mcf_index_load(&model->index, model->source, index, &model->limits, err);
    if (status == COFFER_E_OUT_OF_BOUNDS && lenient)
        return COFFER_OK;
    if (!status)
        model->sorted = coffer__mcf_index_is_sorted(&model->index);
    return status;
}

/* The tensors as callers see them, with NUL-terminated names. */
static coffer_status load_tensors(coffer_mcf *model, coffer_error *err)
{
    size_t count = model->index.count, names = 0;
    for (size_t i = 0; i < count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(&model->index, i);
        names += (entry.name ? entry.name_len : 0) + (size_t)1;
    }
    model->tensors = coffer__alloc_array(count, sizeof *model->tensors);
    model->names = coffer__malloc(names);
    if (!model->tensors || !model->names)
        return coffer__fail_no_memory(err, names + count * sizeof *model->tensors);
    coffer__expect_filled(model->tensors, count * sizeof *model->tensors);
    coffer__expect_filled(model->names, names);
    char *name = model->names;
    for (size_t i = 0; i < count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(&model->index, i);
        coffer_mcf_tensor tensor = { .name = name,
                                     .name_len = entry.name ? entry.name_len : 0,
                                     .dtype = coffer_mcf_dtype_from_code(entry.dtype),
                                     .dtype_code = entry.dtype,
                                     .rank = entry.dims ? entry.rank : 0,
                                     .dims = entry.dims,
                                     .offset = entry.offset,
                                     .size = entry.size };
        if (entry.dims && !coffer__mcf_elements(&tensor.elements, entry.rank, entry.dims))
            tensor.elements = 0;
        if (entry.name && tensor.name_len > 0)
            memcpy(name, entry.name, tensor.name_len);
        name[tensor.name_len] = 0;
        name += tensor.name_len + 1;
        model->tensors[i] = tensor;
    }
    return COFFER_OK;
}

/* Anything read so far may be a mixture of an old and a new state. */
static coffer_status finish_open(coffer_mcf **out, coffer_mcf *model, coffer_status status, coffer_error *err)
{
    if (!coffer__source_settled(model->source))
        status =
            coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE, "changed while it was opened, try again");
    if (status) {
        coffer_mcf_close(model);
        return status;
    }
    *out = model;
    return COFFER_OK;
}

coffer_status coffer__mcf_open_outline(coffer_mcf **out, coffer_source *src, const coffer_limits *limits,
                                       coffer_error *err)
{
    coffer_mcf *model = coffer__calloc(1, sizeof *model);
    coffer_status status;
    if (!model)
        return coffer__fail_no_memory(err, sizeof *model);
    model->source = src;
    model->limits = coffer__limits(limits);
    status = coffer__mcf_read_header(&model->header, src, err);
    if (!status)
        status = check_file_size(model, false, err);
    if (!status)
        status = load_directory(model, false, err);
    /* Sections that an edit reads are verified, and must not have recorded damage. */
    if (!status)
        status = coffer__mcf_load_damage(model, err);
    if (!status)
        status = coffer__mcf_start_verifying(model, false, true, err);
    return finish_open(out, model, status, err);
}

coffer_status coffer_mcf_open(coffer_mcf **out, coffer_source *src, const coffer_mcf_open_opts *opts,
                              coffer_error *err)
{
    coffer_mcf_open_opts options = COFFER_MCF_OPEN_OPTS_INIT;
    coffer_mcf *model;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    model = coffer__calloc(1, sizeof *model);
    if (!model)
        return coffer__fail_no_memory(err, sizeof *model);
    model->source = src;
    model->limits = coffer__limits(options.limits);
    model->allow_damaged = options.allow_damaged;
    status = coffer__mcf_read_header(&model->header, src, err);
    if (!status)
        status = check_file_size(model, options.lenient, err);
    if (!status)
        status = load_directory(model, options.lenient, err);
    if (!status)
        status = load_index(model, options.lenient, err);
    if (!status)
        status = load_tensors(model, err);
    if (!status)
        status = coffer__mcf_load_quants(model, err);
    if (!status)
        status = coffer__mcf_load_quality(model, err);
    if (!status)
        status = coffer__mcf_load_damage(model, err);
    if (!status)
        status = coffer__mcf_start_verifying(model, options.verify, options.lenient, err);
    return finish_open(out, model, status, err);
}

coffer_status coffer_mcf_open_path(coffer_mcf **out, const char *path, const coffer_mcf_open_opts *opts,
                                   coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_mcf *model = NULL;
    coffer_status status = coffer_source_open(&src, path, NULL, err);
    if (!status)
        status = coffer_mcf_open(&model, src, opts, err);
    if (status) {
        coffer_source_close(src);
        return status;
    }
    model->owns_source = true;
    *out = model;
    return COFFER_OK;
}

void coffer_mcf_close(coffer_mcf *model)
{
    if (!model)
        return;
    if (model->owns_source)
        coffer_source_close(model->source);
    coffer__mcf_verifier_free(model->verifier);
    coffer__mcf_damages_free(&model->damages);
    coffer__free(model->damage_of);
    coffer__free(model->damage_next);
    coffer__mcf_public_files_free(atomic_load(&model->files));
    coffer__mcf_model_info_free(atomic_load(&model->model_info));
    coffer__free(atomic_load(&model->order));
    coffer__free(model->qualities);
    coffer__free(model->importances);
    coffer__free(model->quality_of);
    coffer__free(model->quant_of);
    coffer__free(model->public_quants);
    coffer__free(model->tensors);
    coffer__free(model->names);
    coffer__free(model->quants);
    coffer__mcf_index_free(&model->index);
    coffer__free(model->sections);
    coffer__free(model);
}
