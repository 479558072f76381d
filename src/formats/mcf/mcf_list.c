#include "formats/mcf/mcf_private.h"

#include "base/fail.h"
#include "base/report.h"
#include "base/text.h"

#include <string.h>

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
