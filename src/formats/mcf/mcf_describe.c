#include "formats/mcf/mcf_private.h"

#include "base/fail.h"
#include "base/report.h"

#include <stdio.h>
#include <string.h>

static void describe_model_info(coffer_node *out, const coffer_mcf_model_info *info)
{
    coffer_node *map;
    coffer_node_add_text(out, "model_name", info->model_name);
    coffer_node_add_text(out, "arch", coffer_mcf_arch_name(info->arch));
    map = coffer_node_add_map(out, "model");
    if (info->base_model)
        coffer_node_add_text(map, "base_model", info->base_model);
    coffer_node_add_u64(map, "vocab_size", info->vocab_size, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "hidden_size", info->hidden_size, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "layer_count", info->layer_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "head_count", info->head_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "head_count_kv", info->head_count_kv, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "context_length", info->context_length, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "train_context", info->train_context, COFFER_UNIT_NONE);
    coffer_node_add_text(map, "rope_type", coffer_mcf_rope_name(info->rope_type));
    coffer_node_add_f64(map, "rope_freq_base", info->rope_freq_base, COFFER_UNIT_NONE);
    coffer_node_add_f64(map, "rope_scale", info->rope_scale, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "keys", info->kv_count, COFFER_UNIT_NONE);
}

/* A damaged ModelInfo is reported, and the rest is described anyway. */
static coffer_status describe_model(coffer_node *out, const coffer_mcf *model, coffer_error *err)
{
    const coffer_mcf_model_info *info;
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status = coffer_mcf_get_model_info(&info, model, &cause);
    if (!status) {
        describe_model_info(out, info);
        return COFFER_OK;
    }
    if (!coffer__is_about_file(status))
        return coffer__fail_copy(err, &cause);
    coffer_node_add_null(out, "model_name");
    coffer_node_add_null(out, "arch");
    if (status != COFFER_E_MISSING)
        coffer_node_add_text(out, "damage", cause.text);
    return COFFER_OK;
}

/* Number and size of the tensors of each type. */
static void describe_types(coffer_node *out, const coffer_mcf *model)
{
    uint64_t counts[COFFER_DTYPE_COUNT] = { 0 }, sizes[COFFER_DTYPE_COUNT] = { 0 };
    uint64_t parameters[COFFER_DTYPE_COUNT] = { 0 };
    uint64_t elements = 0, size = 0;
    for (size_t i = 0; i < model->index.count; i++) {
        const coffer_mcf_tensor *tensor = coffer_mcf_tensor_at(model, i);
        counts[tensor->dtype]++;
        sizes[tensor->dtype] += tensor->size;
        parameters[tensor->dtype] += tensor->elements;
        elements += tensor->elements;
        size += tensor->size;
    }
    coffer_node_add_u64(out, "parameters", elements, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "tensor_bytes", size, COFFER_UNIT_BYTES);
    coffer_node *list = coffer_node_add_list(out, "dtypes");
    for (int i = 0; i < COFFER_DTYPE_COUNT; i++) {
        if (counts[i] == 0)
            continue;
        coffer_node *type = coffer_node_add_map(list, NULL);
        coffer_node_add_text(type, "dtype",
                             i == COFFER_DTYPE_NONE ? "unknown" : coffer_dtype_name((coffer_dtype)i));
        coffer_node_add_u64(type, "tensors", counts[i], COFFER_UNIT_NONE);
        coffer_node_add_u64(type, "parameters", parameters[i], COFFER_UNIT_NONE);
        coffer_node_add_u64(type, "size", sizes[i], COFFER_UNIT_BYTES);
    }
}

/* How good the quantized tensors are, the worst of them by name. */
static void describe_quality(coffer_node *out, const coffer_mcf *model)
{
    static const char *const methods[] = { "fit", "absmax", "exact" };
    const coffer_mcf_quality *worst = NULL;
    uint64_t count = 0, by_method[sizeof methods / sizeof *methods] = { 0 };
    size_t worst_at = 0;
    for (size_t i = 0; i < model->index.count; i++) {
        const coffer_mcf_quality *quality = coffer_mcf_quality_at(model, i);
        if (!quality)
            continue;
        count++;
        by_method[quality->method]++;
        if (!worst || quality->snr_db < worst->snr_db) {
            worst_at = i;
            worst = quality;
        }
    }
    if (!worst)
        return;
    const coffer_mcf_tensor *tensor = coffer_mcf_tensor_at(model, worst_at);
    coffer_node *map = coffer_node_add_map(out, "quality");
    coffer_node_add_u64(map, "tensors", count, COFFER_UNIT_NONE);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (by_method[i])
            coffer_node_add_u64(map, methods[i], by_method[i], COFFER_UNIT_NONE);
    }
    coffer_node_add_text_len(map, "worst", tensor->name, tensor->name_len);
    coffer_node_add_f64(map, "snr_db", (double)worst->snr_db, COFFER_UNIT_NONE);
    if (worst->importance)
        coffer_node_add_text(map, "importance", worst->importance);
}

static void describe_sections(coffer_node *out, const coffer_mcf *model)
{
    coffer_node *list = coffer_node_add_list(out, "section_list");
    for (size_t i = 0; i < model->section_count; i++) {
        const coffer_mcf_section *section = &model->sections[i];
        coffer_node *entry = coffer_node_add_map(list, NULL);
        coffer_node_add_text(entry, "name", coffer__mcf_section_label(section->type).text);
        coffer_node_add_u64(entry, "size", section->size, COFFER_UNIT_BYTES);
    }
}

/* Internals of the file, after the facts of the model. */
static void describe_layout(coffer_node *out, const coffer_mcf *model)
{
    coffer_node_add_printf(out, "version", "%u.%u", model->header.major, model->header.minor);
    coffer__node_mark_detail(out);
    coffer_node_add_u64(out, "flags", model->header.flags, COFFER_UNIT_FLAGS);
    coffer__node_mark_detail(out);
    coffer_node_add_u64(out, "sections", model->section_count, COFFER_UNIT_NONE);
    coffer__node_mark_detail(out);
    describe_sections(out, model);
    coffer__node_mark_detail(out);
}

static coffer_status describe_hash(coffer_node *out, const coffer_mcf *model,
                                   const coffer_describe_opts *opts, coffer_error *err)
{
    uint8_t hash[32];
    char text[2 * sizeof hash + 1];
    coffer_mcf_work_opts options = COFFER_MCF_WORK_OPTS_INIT;
    options.threads = opts->threads;
    options.progress = opts->progress;
    coffer_status status = coffer_mcf_content_hash(hash, model, &options, err);
    if (status)
        return status;
    for (size_t i = 0; i < sizeof hash; i++)
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    coffer_node_add_text(out, "content_hash", text);
    return COFFER_OK;
}

coffer_status coffer__mcf_describe(coffer_node *out, coffer_source *src, const coffer_describe_opts *opts,
                                   coffer_error *err)
{
    coffer_mcf_open_opts open_options = COFFER_MCF_OPEN_OPTS_INIT;
    coffer_mcf *model;
    coffer_status status;
    open_options.limits = opts->limits;
    status = coffer_mcf_open(&model, src, &open_options, err);
    if (status)
        return status;
    status = describe_model(out, model, err);
    if (status)
        goto out;
    coffer_node_add_u64(out, "tensors", model->index.count, COFFER_UNIT_NONE);
    describe_types(out, model);
    describe_quality(out, model);
    describe_layout(out, model);
    coffer_node_add_bool(out, "checksums", coffer_mcf_find_section(model, COFFER_MCF_CHECKSUMS) != NULL);
    if (opts->hash)
        status = describe_hash(out, model, opts, err);
    if (status)
        goto out;
    if (coffer_source_interrupted_update(src))
        coffer_node_add_text(out, "state", "interrupted update, old state shown");
    status = coffer_node_status(out, err);
out:
    coffer_mcf_close(model);
    return status;
}
