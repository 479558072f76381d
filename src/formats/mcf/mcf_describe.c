/* Describes and lists a model. */
#include "formats/mcf/mcf_private.h"

#include "base/fail.h"
#include "base/report.h"
#include "base/text.h"

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
    static const char *const methods[] = { "fit", "absmax", "exact", "calibrated" };
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

static void list_quality(coffer_node *entry, const coffer_mcf *model, size_t index)
{
    const coffer_mcf_tensor *tensor = coffer_mcf_tensor_at(model, index);
    const coffer_mcf_quality *quality = coffer_mcf_quality_at(model, index);
    if (tensor->elements)
        coffer_node_add_f64(entry, "bits", 8.0 * (double)tensor->size / (double)tensor->elements,
                            COFFER_UNIT_NONE);
    else
        coffer_node_add_null(entry, "bits");
    if (quality)
        coffer_node_add_f64(entry, "snr_db", (double)quality->snr_db, COFFER_UNIT_NONE);
    else
        coffer_node_add_null(entry, "snr_db");
}

static void list_tensors(coffer_node *entries, const coffer_mcf *model, const char *glob)
{
    for (size_t i = 0; i < model->index.count; i++) {
        const coffer_mcf_tensor *tensor = coffer_mcf_tensor_at(model, i);
        coffer_node *entry, *shape;
        if (glob && !coffer__glob_match(glob, tensor->name, tensor->name_len))
            continue;
        entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_text_len(entry, "name", tensor->name, tensor->name_len);
        if (tensor->dtype == COFFER_DTYPE_NONE)
            coffer_node_add_printf(entry, "dtype", "0x%" PRIx32, tensor->dtype_code);
        else
            coffer_node_add_text(entry, "dtype", coffer_dtype_name(tensor->dtype));
        shape = coffer_node_add_list(entry, "shape");
        for (uint32_t d = 0; d < tensor->rank; d++)
            coffer_node_add_u64(shape, NULL, tensor->dims[d], COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "offset", tensor->offset, COFFER_UNIT_OFFSET);
        coffer_node_add_u64(entry, "size", tensor->size, COFFER_UNIT_BYTES);
        if (model->quality_of)
            list_quality(entry, model, i);
    }
}

static void list_sections(coffer_node *entries, const coffer_mcf *model, const char *glob)
{
    for (size_t i = 0; i < model->section_count; i++) {
        const coffer_mcf_section *section = &model->sections[i];
        coffer__mcf_label label = coffer__mcf_section_label(section->type);
        coffer_node *entry;
        if (glob && !coffer__glob_match(glob, label.text, strlen(label.text)))
            continue;
        entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_text(entry, "name", label.text);
        coffer_node_add_u64(entry, "type", section->type, COFFER_UNIT_FLAGS);
        coffer_node_add_u64(entry, "version", section->version, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "offset", section->offset, COFFER_UNIT_OFFSET);
        coffer_node_add_u64(entry, "size", section->size, COFFER_UNIT_BYTES);
    }
}

static void list_files(coffer_node *entries, const coffer_mcf_file *files, size_t count, const char *glob)
{
    for (size_t i = 0; i < count; i++) {
        coffer_node *entry;
        if (glob && !coffer__glob_match(glob, files[i].name, strlen(files[i].name)))
            continue;
        entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_text(entry, "name", files[i].name);
        coffer_node_add_u64(entry, "size", files[i].size, COFFER_UNIT_BYTES);
        coffer_node_add_text(entry, "kind",
                             files[i].kind == COFFER_MCF_FILE_WHOLE ? "file" : "safetensors header");
    }
}

static void add_float(coffer_node *entry, const char *key, float value)
{
    coffer_node_add_f64(entry, key, (double)value, COFFER_UNIT_NONE);
}

/* The QuantInfo of each quantized tensor. */
static void list_quants(coffer_node *entries, const coffer_mcf *model, const char *glob)
{
    for (size_t i = 0; i < model->index.count; i++) {
        const coffer_mcf_tensor *tensor = coffer_mcf_tensor_at(model, i);
        const coffer_mcf_quant *quant = coffer_mcf_quant_at(model, i);
        if (!quant || (glob && !coffer__glob_match(glob, tensor->name, tensor->name_len)))
            continue;
        coffer_node *entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_text_len(entry, "name", tensor->name, tensor->name_len);
        coffer_node_add_text(entry, "method", coffer_dtype_name(quant->method));
        coffer_node_add_text(entry, "domain", quant->activations ? "activations" : "weights");
        coffer_node_add_u64(entry, "block_size", quant->block_size, COFFER_UNIT_NONE);
        coffer_node_add_u64(entry, "super_size", quant->super_size, COFFER_UNIT_NONE);
        add_float(entry, "min_clip", quant->min_clip);
        add_float(entry, "max_clip", quant->max_clip);
    }
}

static void list_keys(coffer_node *entries, const coffer_mcf_model_info *info, const char *glob)
{
    for (size_t i = 0; i < info->kv_count; i++) {
        const coffer_mcf_kv *kv = &info->kvs[i];
        coffer_node *entry;
        if (glob && !coffer__glob_match(glob, kv->key, strlen(kv->key)))
            continue;
        entry = coffer_node_add_map(entries, NULL);
        coffer_node_add_text(entry, "name", kv->key);
        if (kv->type == COFFER_MCF_KV_U32)
            coffer_node_add_u64(entry, "value", kv->u32, COFFER_UNIT_NONE);
        else if (kv->type == COFFER_MCF_KV_F32)
            coffer_node_add_f64(entry, "value", kv->f32, COFFER_UNIT_NONE);
        else
            coffer_node_add_text_len(entry, "value", kv->text, kv->text_len);
    }
}

coffer_status coffer__mcf_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                               coffer_error *err)
{
    coffer_mcf_open_opts open_options = COFFER_MCF_OPEN_OPTS_INIT;
    const char *what = opts->what ? opts->what : "tensors";
    bool sections = strcmp(what, "sections") == 0, keys = strcmp(what, "keys") == 0;
    bool listed_files = strcmp(what, "files") == 0, quants = strcmp(what, "quant") == 0;
    const coffer_mcf_file *files = NULL;
    size_t file_count = 0;
    const coffer_mcf_model_info *info = NULL;
    coffer_mcf *model = NULL;
    coffer_status status;
    if (!sections && !keys && !listed_files && !quants && strcmp(what, "tensors") != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a model lists tensors, sections, keys, files or quant, not \"%s\"", what);
    open_options.limits = opts->limits;
    status = coffer_mcf_open(&model, src, &open_options, err);
    if (!status && keys)
        status = coffer_mcf_get_model_info(&info, model, err);
    if (!status && listed_files)
        status = coffer_mcf_get_files(&files, &file_count, model, err);
    if (status)
        goto out;
    coffer_node *entries = coffer_node_add_list(out, "entries");
    if (keys)
        list_keys(entries, info, opts->glob);
    else if (listed_files)
        list_files(entries, files, file_count, opts->glob);
    else if (quants)
        list_quants(entries, model, opts->glob);
    else if (sections)
        list_sections(entries, model, opts->glob);
    else
        list_tensors(entries, model, opts->glob);
    if (opts->natural && strcmp(what, "tensors") == 0)
        coffer__node_sort_by_name(out, "entries");
    status = coffer_node_status(out, err);
out:
    coffer_mcf_close(model);
    return status;
}
