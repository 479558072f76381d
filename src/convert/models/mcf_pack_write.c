/* The tensors, sections and ModelInfo of a pack, checked and written. */
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/models/gguf_repack.h"
#include "convert/models/mcf_pack.h"
#include "convert/models/mcf_stand_in.h"
#include "convert/tensors/tensor_selection.h"
#include "convert/tensors/tensors.h"
#include "io/os.h"
#include "outside/models/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Before anything is written ---- */

static bool is_same_file(const struct stat *out, const char *path)
{
    struct stat st;
    return coffer__os_stat(path, &st) == 0 && st.st_dev == out->st_dev && st.st_ino == out->st_ino;
}

static coffer_status fail_same(const char *path, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "input and output are the same file: %s", path);
}

coffer_status coffer__mcf_pack_check_output(const char *out_path, const coffer__mcf_pack *pack,
                                            coffer_error *err)
{
    struct stat out;
    if (coffer__os_stat(out_path, &out) != 0)
        return COFFER_OK;
    for (size_t i = 0; i < pack->set_count; i++) {
        const coffer_tensors *set = pack->sets[i];
        for (size_t j = 0; j < set->part_count; j++) {
            const char *name = coffer_source_name(set->parts[j].src);
            if (is_same_file(&out, name))
                return fail_same(name, err);
        }
    }
    for (size_t i = 0; i < pack->resource_count; i++) {
        if (is_same_file(&out, pack->resources[i].path))
            return fail_same(pack->resources[i].path, err);
    }
    if (pack->chat_template && is_same_file(&out, pack->chat_template_path))
        return fail_same(pack->chat_template_path, err);
    for (size_t i = 0; i < sizeof pack->also_read / sizeof *pack->also_read; i++) {
        if (pack->also_read[i] && is_same_file(&out, pack->also_read[i]))
            return fail_same(pack->also_read[i], err);
    }
    return COFFER_OK;
}

static coffer__mcf_resource *find_resource(const coffer__mcf_pack *pack, uint32_t type)
{
    for (size_t i = 0; i < pack->resource_count; i++) {
        if (pack->resources[i].type == type)
            return &pack->resources[i];
    }
    return NULL;
}

static coffer_status check_json(const coffer__mcf_pack *pack, uint32_t type, coffer_error *err)
{
    const coffer__mcf_resource *resource = find_resource(pack, type);
    coffer__json *json = NULL;
    coffer_error failure = COFFER_ERROR_INIT;
    if (!resource)
        return COFFER_OK;
    coffer_status status = coffer__json_parse_python(&json, (const char *)resource->bytes, resource->len, 0,
                                                     &pack->limits, &failure);
    coffer__json_free(json);
    return status ? coffer__fail_other(err, coffer__fail_copy(err, &failure), resource->path) : COFFER_OK;
}

/* ---- ModelInfo ---- */

static bool is_usual(const coffer__safetensors_metadata *metadata)
{
    return metadata->count == 1 && strcmp(metadata->items[0].key, COFFER__MCF_USUAL_KEY) == 0 &&
           metadata->items[0].text_len == sizeof COFFER__MCF_USUAL_TEXT - 1 &&
           strcmp(metadata->items[0].text, COFFER__MCF_USUAL_TEXT) == 0;
}

/* The metadata of the first set that has any. */
static coffer_status add_metadata(coffer__mcf_pack *pack, coffer_error *err)
{
    const coffer__safetensors_metadata *found = NULL;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < pack->set_count && (!found || !found->count); i++) {
        const coffer__safetensors_metadata *metadata = coffer__safetensors_metadata_of(pack->sets[i]);
        found = metadata ? metadata : found;
    }
    if (!found || is_usual(found))
        return COFFER_OK;
    if (!found->count)
        return coffer__mcf_info_add_text(&pack->info, COFFER__MCF_NO_METADATA_KEY, "", "none", 4, err);
    for (size_t i = 0; !status && i < found->count; i++) {
        /* They become Damage. */
        if (strcmp(found->items[i].key, COFFER__TENSORS_DAMAGED_KEY) == 0 ||
            strcmp(found->items[i].key, COFFER__TENSORS_LOST_KEY) == 0)
            continue;
        status = coffer__mcf_info_add_text(&pack->info, COFFER__MCF_METADATA_KEY, found->items[i].key,
                                           found->items[i].text, found->items[i].text_len, err);
    }
    return status;
}

/* True when MCF supports the type directly. */
static bool is_native(coffer_dtype dtype)
{
    return coffer_mcf_dtype_code(dtype) != 0;
}

static coffer_status add_types(coffer__mcf_pack *pack, const coffer__selection *selection, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < selection->count; i++) {
        const coffer__chosen_tensor *chosen = &selection->items[i];
        const coffer_tensor *tensor = chosen->tensor;
        if (is_native(chosen->dtype))
            continue;
        const coffer__mcf_stand_in *stand_in = coffer__mcf_stand_in_for(chosen->dtype, tensor->type_name);
        if (!stand_in)
            return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                "%s: \"%s\" is %s, which MCF does not support", tensor->file, tensor->name,
                                tensor->type_name);
        status = coffer__mcf_info_add_text(&pack->info, COFFER__MCF_DTYPE_KEY, tensor->name, stand_in->name,
                                           strlen(stand_in->name), err);
    }
    return status;
}

static coffer_status set_model_info(coffer_mcf_writer *writer, coffer__mcf_pack *pack,
                                    const coffer__selection *selection, coffer_error *err)
{
    const coffer__mcf_resource *config = find_resource(pack, COFFER_MCF_CONFIG);
    const coffer_mcf_model_info *info = NULL;
    coffer_status status = pack->has_info ? COFFER_OK : add_metadata(pack, err);
    if (!status)
        status = add_types(pack, selection, err);
    if (!status && config && !pack->has_info)
        status = coffer__mcf_info_from_config(&pack->info, config->bytes, config->len, config->path,
                                              &pack->limits, err);
    if (!status)
        status = coffer__mcf_info_finish(&info, &pack->info, err);
    return status ? status : coffer_mcf_writer_set_model_info(writer, info, err);
}

/* ---- Sections ---- */

static coffer_status add_tokenizer_config(coffer_mcf_writer *writer, const coffer__mcf_pack *pack,
                                          coffer_error *err)
{
    coffer__buffer folded = COFFER__BUFFER_INIT;
    coffer_status status =
        coffer__mcf_pack_fold(&folded, find_resource(pack, COFFER_MCF_TOKENIZER_CONFIG), pack->chat_template,
                              pack->chat_template_len, &pack->limits, err);
    if (!status)
        status = coffer_mcf_writer_add_section(writer, COFFER_MCF_TOKENIZER_CONFIG, 1, folded.data,
                                               folded.len, err);
    coffer__buffer_free(&folded);
    return status;
}

static int by_type(const void *left, const void *right)
{
    uint32_t a = ((const coffer__mcf_resource *)left)->type, b = ((const coffer__mcf_resource *)right)->type;
    return (a > b) - (a < b);
}

static coffer_status add_sections(coffer_mcf_writer *writer, coffer__mcf_pack *pack, coffer_error *err)
{
    bool fold = pack->chat_template != NULL;
    coffer_status status = COFFER_OK;
    if (pack->resource_count)
        qsort(pack->resources, pack->resource_count, sizeof *pack->resources, by_type);
    for (size_t i = 0; !status && i < pack->resource_count; i++) {
        const coffer__mcf_resource *resource = &pack->resources[i];
        bool replaced = fold && resource->type == COFFER_MCF_TOKENIZER_CONFIG;
        if (fold && resource->type >= COFFER_MCF_TOKENIZER_CONFIG) {
            status = add_tokenizer_config(writer, pack, err);
            fold = false;
        }
        if (!status && !replaced)
            status = coffer_mcf_writer_add_section(writer, resource->type, resource->version, resource->bytes,
                                                   resource->len, err);
    }
    return !status && fold ? add_tokenizer_config(writer, pack, err) : status;
}

/* ---- Tensors ---- */

static coffer_status put(void *context, const void *bytes, size_t len, coffer_error *err)
{
    return coffer_mcf_writer_write(context, bytes, len, err);
}

static coffer_status put_blocks(coffer_mcf_writer *writer, uint64_t *small_scales,
                                const coffer__chosen_tensor *chosen, coffer__tensors_stream *stream,
                                coffer_error *err)
{
    float largest = 0;
    coffer_status status = coffer__gguf_repack_in(&largest, small_scales, chosen, stream, put, writer, err);
    return status ? status : coffer_mcf_writer_set_clip(writer, -largest, largest, err);
}

/* In parts, so that progress is reported. */
static coffer_status copy_payload(coffer_mcf_writer *writer, coffer__tensors_stream *stream,
                                  coffer_source *src, const coffer_tensor *tensor, coffer_error *err)
{
    static const uint64_t part_size = (uint64_t)64 << 20;
    coffer_status status = COFFER_OK;
    for (uint64_t done = 0; !status && done < tensor->size;) {
        uint64_t part = tensor->size - done < part_size ? tensor->size - done : part_size;
        status = coffer_mcf_writer_write_from(writer, src, tensor->offset + done, part, err);
        if (!status)
            status = coffer__tensors_stream_count(stream, part, err);
        done += part;
    }
    return status;
}

/* Damage of the source stays known: of copied bytes where it is, of converted ones as a whole. recorded : the
 * names under COFFER__TENSORS_DAMAGED_KEY of the inputs. */
static coffer_status record_damage(coffer_mcf_writer *writer, const coffer__chosen_tensor *chosen,
                                   const coffer__tensors_names *recorded, coffer_error *err)
{
    const coffer_mcf *model = coffer__mcf_model_of(chosen->set);
    coffer_mcf_damage *damages = NULL, whole = COFFER_MCF_DAMAGE_INIT;
    size_t count = 0;
    whole.name = chosen->tensor->name;
    whole.name_len = strlen(whole.name);
    whole.size = UINT64_MAX;
    if (!model)
        return coffer__tensors_names_have(recorded, whole.name)
                   ? coffer_mcf_writer_add_damage(writer, &whole, err)
                   : COFFER_OK;
    size_t index = coffer__tensors_entry_at(chosen->set, chosen->index)->index;
    coffer_status status = coffer_mcf_tensor_damage(&damages, &count, model, index, err);
    for (size_t i = 0; !status && chosen->as_is && i < count; i++)
        status = coffer_mcf_writer_add_damage(writer, &damages[i], err);
    if (!status && !chosen->as_is && count)
        status = coffer_mcf_writer_add_damage(writer, &whole, err);
    coffer__free(damages);
    return status;
}

/* Tensors that a repair of the inputs could not save stay recorded as lost. */
static coffer_status record_lost(coffer_mcf_writer *writer, const coffer__mcf_pack *pack, coffer_error *err)
{
    coffer__tensors_names lost = { 0 };
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < pack->set_count; i++)
        status = coffer__tensors_lost_names(&lost, pack->sets[i], err);
    for (size_t i = 0; !status && i < lost.count; i++) {
        coffer_mcf_damage damage = COFFER_MCF_DAMAGE_INIT;
        damage.reason = COFFER_MCF_DAMAGE_LOST;
        damage.name = lost.items[i];
        damage.name_len = strlen(lost.items[i]);
        status = coffer_mcf_writer_add_damage(writer, &damage, err);
    }
    coffer__tensors_names_free(&lost);
    return status;
}

static coffer_status begin_tensor(coffer_mcf_writer *writer, const coffer__chosen_tensor *chosen,
                                  coffer_error *err)
{
    const coffer_tensor *tensor = chosen->tensor;
    const coffer_mcf *model = coffer__mcf_model_of(chosen->set);
    const coffer__mcf_stand_in *stand_in =
        is_native(chosen->dtype) ? NULL : coffer__mcf_stand_in_for(chosen->dtype, tensor->type_name);
    coffer_mcf_quant quant = COFFER_MCF_QUANT_INIT;
    uint64_t *dims = NULL;
    coffer_mcf_new_tensor new_tensor = {
        .struct_size = sizeof new_tensor,
        .name = tensor->name,
        .name_len = strlen(tensor->name),
        .dtype = stand_in ? stand_in->stored : chosen->dtype,
        .rank = tensor->rank,
        .dims = tensor->dims,
    };
    size_t index = coffer__tensors_entry_at(chosen->set, chosen->index)->index;
    bool copied = model && chosen->as_is;
    if (copied)
        new_tensor.quant = coffer_mcf_quant_at(model, index);
    if (chosen->quantize || chosen->repack) {
        quant.method = chosen->dtype;
        quant.activations = chosen->activations;
        new_tensor.quant = &quant;
    }
    if (stand_in && stand_in->pair) {
        dims = coffer__alloc_array((size_t)tensor->rank + 1, sizeof *dims);
        if (!dims)
            return coffer__fail_no_memory(err, tensor->rank);
        if (tensor->rank)
            memcpy(dims, tensor->dims, tensor->rank * sizeof *dims);
        dims[tensor->rank] = 2;
        new_tensor.dims = dims;
        new_tensor.rank++;
    }
    coffer_status status = coffer_mcf_writer_begin_tensor(writer, &new_tensor, err);
    coffer__free(dims);
    const coffer_mcf_quality *quality = copied ? coffer_mcf_quality_at(model, index) : NULL;
    if (!status && quality)
        status = coffer_mcf_writer_set_quality(writer, quality, err);
    return status;
}

/* Index and checksums are written before the payloads, so that complete tensors of a partial download can be
 * found and verified. */
static coffer_status reserve_index(coffer_mcf_writer *writer, const coffer__selection *selection,
                                   coffer_error *err)
{
    uint64_t dims = 0, name_bytes = 0;
    for (size_t i = 0; i < selection->count; i++) {
        const coffer_tensor *tensor = selection->items[i].tensor;
        dims += (uint64_t)tensor->rank + (is_native(selection->items[i].dtype) ? 0 : 1);
        name_bytes += strlen(tensor->name);
    }
    if (selection->count > UINT32_MAX || dims > UINT32_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%zu tensors with %" PRIu64 " dimensions exceed the limits of MCF",
                            selection->count, dims);
    coffer_status status =
        coffer_mcf_writer_reserve_index(writer, (uint32_t)selection->count, (uint32_t)dims, name_bytes, err);
    if (status)
        return status;
    return coffer_mcf_writer_reserve_checksums(writer, (uint32_t)selection->count, selection->bytes, err);
}

static coffer_status write_tensors(coffer_mcf_writer *writer, coffer__mcf_pack *pack,
                                   const coffer__selection *selection, coffer_error *err)
{
    coffer__tensors_stream *stream = NULL;
    coffer__tensors_names recorded = { 0 };
    uint64_t small_scales = 0;
    coffer_status status = coffer__tensors_stream_new(&stream, pack->opts.threads, &pack->limits,
                                                      pack->opts.progress, selection->bytes, err);
    for (size_t i = 0; !status && i < pack->set_count; i++)
        status = coffer__tensors_recorded_names(&recorded, pack->sets[i], COFFER__TENSORS_DAMAGED_KEY, err);
    coffer__tensors_names_sort(&recorded);
    for (size_t i = 0; !status && i < selection->count; i++) {
        const coffer__chosen_tensor *chosen = &selection->items[i];
        coffer_source *src = chosen->as_is ? coffer__tensors_source_at(chosen->set, chosen->index) : NULL;
        status = begin_tensor(writer, chosen, err);
        if (!status && (pack->opts.allow_damaged || recorded.count))
            status = record_damage(writer, chosen, &recorded, err);
        if (!status && src)
            status = coffer__tensors_verify(chosen->set, chosen->index, 0, chosen->tensor->size, err);
        if (!status && src)
            status = copy_payload(writer, stream, src, chosen->tensor, err);
        else if (!status && chosen->quantize)
            status = pack->put_tensor(pack->put_context, chosen, i, stream, writer, err);
        else if (!status && chosen->repack)
            status = put_blocks(writer, &small_scales, chosen, stream, err);
        else if (!status)
            status = coffer__tensors_stream_run(stream, chosen, put, writer, err);
        if (!status)
            status = coffer_mcf_writer_end_tensor(writer, err);
    }
    coffer__tensors_stream_free(stream);
    coffer__tensors_names_free(&recorded);
    if (!status && small_scales && pack->opts.notes)
        coffer__report_add(pack->opts.notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "scales below the normal range of float16: %" PRIu64 "; mantle reads them as 0",
                           small_scales);
    return status;
}

/* ---- Everything ---- */

coffer_status coffer__mcf_pack_choose(coffer__selection *out, const coffer__mcf_pack *pack, coffer_error *err)
{
    const coffer_mcf_pack_opts *opts = &pack->opts;
    coffer__selection_opts selection_opts = {
        .cast = opts->cast,
        .include = opts->include,
        .exclude = opts->exclude,
        .include_count = opts->include_count,
        .exclude_count = opts->exclude_count,
        .keep_quantized = true,
    };
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < pack->set_count; i++)
        status = coffer__selection_add(out, pack->sets[i], &selection_opts, err);
    if (status)
        return status;
    return coffer__selection_finish(out, (const coffer_tensors *const *)pack->sets, pack->set_count,
                                    &selection_opts, err);
}

coffer_status coffer__mcf_pack_write_chosen(const char *out_path, coffer__mcf_pack *pack,
                                            const coffer__selection *selection, coffer_error *err)
{
    coffer_mcf_writer_opts opts = COFFER_MCF_WRITER_OPTS_INIT;
    coffer_mcf_writer *writer = NULL;
    opts.align = pack->opts.align;
    opts.no_dedup = pack->opts.no_dedup;
    opts.no_checksums = pack->opts.no_checksums;
    opts.overwrite = pack->opts.overwrite;
    opts.threads = pack->opts.threads;
    coffer__selection_note(pack->opts.notes, selection);
    coffer_status status = check_json(pack, COFFER_MCF_GENERATION_CONFIG, err);
    if (!status && !pack->chat_template)
        status = check_json(pack, COFFER_MCF_TOKENIZER_CONFIG, err);
    if (!status)
        status = coffer_mcf_writer_create(&writer, out_path, &opts, err);
    if (!status && !pack->tensors_only)
        status = add_sections(writer, pack, err);
    if (!status && !pack->tensors_only)
        status = coffer__mcf_pack_write_files(writer, pack, err);
    if (!status)
        status = set_model_info(writer, pack, selection, err);
    if (!status)
        status = reserve_index(writer, selection, err);
    if (!status)
        status = write_tensors(writer, pack, selection, err);
    if (!status)
        status = record_lost(writer, pack, err);
    if (!status)
        return coffer_mcf_writer_commit(writer, err);
    coffer_mcf_writer_discard(writer);
    return status;
}

coffer_status coffer__mcf_pack_write(const char *out_path, coffer__mcf_pack *pack, coffer_error *err)
{
    coffer__selection selection = { 0 };
    coffer_status status = coffer__mcf_pack_check_output(out_path, pack, err);
    if (!status)
        status = coffer__mcf_pack_choose(&selection, pack, err);
    if (!status)
        status = coffer__selection_keep_blocks(&selection, err);
    if (!status)
        status = coffer__mcf_pack_write_chosen(out_path, pack, &selection, err);
    coffer__selection_free(&selection);
    return status;
}
