/* Folders and files into one MCF model: what is packed. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "convert/models/gguf_model_info.h"
#include "convert/models/mcf_pack.h"
#include "convert/models/mcf_stand_in.h"
#include "convert/tensors/tensors.h"
#include "io/file.h"
#include "io/os.h"
#include "io/source_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Folders and files into one MCF model. */

COFFER__INIT_FUNCTION(coffer_mcf_pack_opts, COFFER_MCF_PACK_OPTS_INIT)

coffer_status coffer__mcf_pack_init(coffer__mcf_pack *pack, const coffer_mcf_pack_opts *opts,
                                    coffer_error *err)
{
    *pack = (coffer__mcf_pack){ .info = COFFER__MCF_INFO_INIT, .opts = COFFER_MCF_PACK_OPTS_INIT };
    coffer_status status = coffer__take_options(&pack->opts, sizeof pack->opts, opts, err);
    if (status)
        return status;
    coffer_dtype cast = pack->opts.cast;
    if (cast != COFFER_DTYPE_NONE && cast != COFFER_DTYPE_F16 && cast != COFFER_DTYPE_BF16 &&
        cast != COFFER_DTYPE_F32)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "cannot cast to %s: must be f16, bf16 or f32", coffer_dtype_name(cast));
    pack->limits = coffer__limits(pack->opts.limits);
    return COFFER_OK;
}

void coffer__mcf_pack_free(coffer__mcf_pack *pack)
{
    for (size_t i = 0; i < pack->set_count; i++)
        coffer_tensors_close(pack->sets[i]);
    for (size_t i = 0; i < pack->resource_count; i++) {
        coffer__free(pack->resources[i].path);
        coffer__free(pack->resources[i].bytes);
    }
    coffer__mcf_pack_free_files(pack);
    coffer__free(pack->sets);
    coffer__free(pack->resources);
    coffer__free(pack->chat_template);
    coffer__free(pack->chat_template_path);
    coffer__mcf_info_free(&pack->info);
}

coffer_status coffer__mcf_pack_add_set(coffer__mcf_pack *pack, coffer_tensors *set, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&pack->sets, &pack->set_capacity, pack->set_count, sizeof *pack->sets, err);
    if (status) {
        coffer_tensors_close(set);
        return status;
    }
    pack->sets[pack->set_count++] = set;
    if (!coffer__gguf_of(set))
        return COFFER_OK;
    status = coffer__gguf_to_pack(pack, set, err);
    return status ? status : coffer__gguf_restore_names(set, pack->hf_names, pack->opts.notes, err);
}

/* The last part of a path, without trailing slashes; "" for the root. */
static const char *last_part(size_t *len, const char *path)
{
    *len = strlen(path);
    while (*len && path[*len - 1] == '/')
        --*len;
    size_t begin = *len;
    while (begin && path[begin - 1] != '/')
        begin--;
    *len -= begin;
    return path + begin;
}

/* "model" of "model.safetensors" and of "model.safetensors.index.json", "a.b" of "a.b.npz". */
static size_t without_extension(const char *name, size_t len)
{
    static const char shards[] = ".safetensors.index.json";
    size_t shards_len = sizeof shards - 1, end = len;
    if (len > shards_len && memcmp(name + len - shards_len, shards, shards_len) == 0)
        return len - shards_len;
    while (end > 1 && name[end - 1] != '.')
        end--;
    return end > 1 ? end - 1 : len;
}

coffer_status coffer__mcf_pack_name(coffer__mcf_pack *pack, const char *path, bool is_folder,
                                    coffer_error *err)
{
    const char *given = pack->opts.model_name;
    size_t len;
    if (given)
        return coffer__mcf_info_set_name(&pack->info.model_name, given, strlen(given), err);
    const char *name = last_part(&len, path);
    if (!is_folder)
        return coffer__mcf_info_set_name(&pack->info.model_name, name, without_extension(name, len), err);
    /* "." and ".." have a name only in their absolute path. */
    char *real = strspn(name, ".") >= len ? coffer__os_real_path(path) : NULL;
    if (real)
        name = last_part(&len, real);
    coffer_status status = coffer__mcf_info_set_name(&pack->info.model_name, name, len, err);
    free(real);
    return status;
}

coffer_status coffer_mcf_pack(const char *out_path, const char *const *inputs, size_t input_count,
                              const coffer_mcf_pack_opts *opts, coffer_error *err)
{
    coffer__mcf_pack pack;
    coffer_status status = coffer__mcf_pack_init(&pack, opts, err);
    if (!status && input_count == 0)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "nothing to pack");
    for (size_t i = 0; !status && i < input_count; i++)
        status = coffer__fail_input(err, coffer__mcf_pack_add_input(&pack, inputs[i], err),
                                    input_count > 1 ? inputs[i] : NULL);
    if (!status && pack.set_count == 0 && pack.resource_count == 0)
        status = coffer__fail_input(err,
                                    coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                                 "neither tensors nor a configuration in it; name a folder, "
                                                 "a .safetensors, .gguf or .mcf file"),
                                    NULL);
    if (!status && !pack.info.model_name)
        status = coffer__mcf_pack_name(&pack, inputs[0], false, err);
    if (!status)
        status = coffer__mcf_pack_write(out_path, &pack, err);
    if (!status && pack.opts.report)
        coffer__mcf_pack_report(pack.opts.report, &pack);
    coffer__mcf_pack_free(&pack);
    return status;
}

/* The inputs of a pack: the tensors of a folder or file, and the files next to them that become sections. */

static const char template_name[] = "chat_template.jinja";

/* In the order in which they are written. */
static const uint32_t section_types[] = {
    COFFER_MCF_CONFIG,    COFFER_MCF_GENERATION_CONFIG,
    COFFER_MCF_TOKENIZER, COFFER_MCF_TOKENIZER_CONFIG,
    COFFER_MCF_VOCAB,     COFFER_MCF_MERGES,
};

#define SECTION_COUNT (sizeof section_types / sizeof *section_types)

coffer_status coffer__mcf_pack_read(uint8_t **out, size_t *len, const char *path, const coffer_limits *limits,
                                    coffer_error *err)
{
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *src = NULL;
    opts.access = COFFER_ACCESS_READ;
    coffer_status status = coffer__source_open_other(&src, path, &opts, err);
    if (status)
        return status;
    uint64_t size = coffer_source_size(src);
    uint8_t *bytes = NULL;
    if (size > limits->json_bytes)
        status = coffer__fail_other(err,
                                    coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                                 "%" PRIu64 " bytes, the limit is %" PRIu64, size,
                                                 limits->json_bytes),
                                    path);
    else if (!(bytes = coffer__malloc((size_t)size + 1)))
        status = coffer__fail_no_memory(err, size);
    else
        status = coffer_source_read_at(bytes, src, 0, (size_t)size, err);
    coffer_source_close(src);
    if (status) {
        coffer__free(bytes);
        return status;
    }
    bytes[size] = 0;
    *out = bytes;
    *len = (size_t)size;
    return COFFER_OK;
}

static coffer_status fail_twice(const char *first, const char *second, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE, "two files for one section: %s and %s",
                        first, second);
}

static const coffer__mcf_resource *find_resource(const coffer__mcf_pack *pack, uint32_t type)
{
    for (size_t i = 0; i < pack->resource_count; i++) {
        if (pack->resources[i].type == type)
            return &pack->resources[i];
    }
    return NULL;
}

/* Room for one more, without its bytes. */
static coffer_status new_resource(coffer__mcf_resource **out, coffer__mcf_pack *pack, uint32_t type,
                                  uint32_t version, const char *path, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&pack->resources, &pack->resource_capacity,
                                                     pack->resource_count, sizeof *pack->resources, err);
    if (status)
        return status;
    coffer__mcf_resource *resource = &pack->resources[pack->resource_count];
    *resource = (coffer__mcf_resource){ .type = type, .version = version, .path = coffer__strdup(path) };
    if (!resource->path)
        return coffer__fail_no_memory(err, strlen(path) + 1);
    pack->resource_count++;
    *out = resource;
    return COFFER_OK;
}

static coffer_status add_resource(coffer__mcf_pack *pack, uint32_t type, const char *path, coffer_error *err)
{
    const coffer__mcf_resource *before = find_resource(pack, type);
    coffer__mcf_resource *resource;
    if (before)
        return fail_twice(before->path, path, err);
    coffer_status status = new_resource(&resource, pack, type, 1, path, err);
    return status ? status
                  : coffer__mcf_pack_read(&resource->bytes, &resource->len, path, &pack->limits, err);
}

static coffer_status add_template(coffer__mcf_pack *pack, const char *path, coffer_error *err)
{
    uint8_t *bytes = NULL;
    if (pack->chat_template)
        return fail_twice(pack->chat_template_path, path, err);
    pack->chat_template_path = coffer__strdup(path);
    if (!pack->chat_template_path)
        return coffer__fail_no_memory(err, strlen(path) + 1);
    coffer_status status = coffer__mcf_pack_read(&bytes, &pack->chat_template_len, path, &pack->limits, err);
    pack->chat_template = (char *)bytes;
    return status;
}

/* A file of a known name; *taken is false when the name is another. */
static coffer_status add_named(bool *taken, coffer__mcf_pack *pack, const char *path, coffer_error *err)
{
    const char *name = path + coffer__file_folder_len(path);
    *taken = true;
    if (strcmp(name, template_name) == 0)
        return add_template(pack, path, err);
    for (size_t i = 0; i < SECTION_COUNT; i++) {
        if (strcmp(name, coffer_mcf_section_name(section_types[i])) == 0)
            return add_resource(pack, section_types[i], path, err);
    }
    *taken = false;
    return COFFER_OK;
}

static coffer_status add_if_there(coffer__mcf_pack *pack, const char *folder, const char *name,
                                  coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    struct stat st;
    bool taken;
    if (!coffer__buffer_printf(&path, "%s/%s", folder, name))
        status = coffer__fail_no_memory(err, strlen(folder));
    else if (coffer__os_stat(coffer__buffer_text(&path), &st) == 0)
        status = add_named(&taken, pack, coffer__buffer_text(&path), err);
    else if (errno != ENOENT)
        status = coffer__fail_other(err, coffer__fail_errno(err, "cannot examine", errno), name);
    coffer__buffer_free(&path);
    return status;
}

static coffer_status add_folder(coffer__mcf_pack *pack, const char *path, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < SECTION_COUNT; i++)
        status = add_if_there(pack, path, coffer_mcf_section_name(section_types[i]), err);
    if (!status)
        status = add_if_there(pack, path, template_name, err);
    return status ? status : coffer__mcf_pack_folder(pack, path, err);
}

/* ---- A model that is packed again ---- */

static bool is_made_anew(uint32_t type)
{
    return type == COFFER_MCF_MODEL_INFO || type == COFFER_MCF_QUANT_INFO ||
           type == COFFER_MCF_TENSOR_INDEX || type == COFFER_MCF_TENSOR_DATA ||
           type == COFFER_MCF_CHECKSUMS || type == COFFER_MCF_QUALITY || type == COFFER_MCF_DIRECTORY_COPY ||
           type == COFFER_MCF_DAMAGE || type == COFFER_MCF_FILES;
}

/* Sections of types that the pack already has are skipped. */
static coffer_status take_sections(coffer__mcf_pack *pack, const coffer_mcf *model, const char *path,
                                   coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < coffer_mcf_section_count(model); i++) {
        const coffer_mcf_section *section = coffer_mcf_section_at(model, i);
        coffer__mcf_resource *resource;
        if (is_made_anew(section->type) || find_resource(pack, section->type))
            continue;
        status = new_resource(&resource, pack, section->type, section->version, path, err);
        if (!status)
            status = coffer_mcf_read_section(&resource->bytes, &resource->len, model, section->type, err);
    }
    return status;
}

static coffer_status take_kv(coffer__mcf_info *info, const coffer_mcf_kv *kv, coffer_error *err)
{
    /* The keys with true types are written again for the chosen tensors. */
    if (strncmp(kv->key, COFFER__MCF_DTYPE_KEY, sizeof COFFER__MCF_DTYPE_KEY - 1) == 0)
        return COFFER_OK;
    switch (kv->type) {
    case COFFER_MCF_KV_U32:
        return coffer__mcf_info_add_u32(info, kv->key, "", kv->u32, err);
    case COFFER_MCF_KV_F32:
        return coffer__mcf_info_add_f32(info, kv->key, "", kv->f32, err);
    case COFFER_MCF_KV_STRING:
        break;
    }
    return coffer__mcf_info_add_text(info, kv->key, "", kv->text, kv->text_len, err);
}

static coffer_status take_info(coffer__mcf_pack *pack, const coffer_mcf *model, coffer_error *err)
{
    const coffer_mcf_model_info *from = NULL;
    coffer_status status = coffer_mcf_get_model_info(&from, model, err);
    if (status == COFFER_E_MISSING)
        return COFFER_OK;
    if (status)
        return status;
    pack->has_info = true;
    pack->info.info = *from;
    if (from->model_name && !pack->info.model_name && !pack->opts.model_name)
        status = coffer__mcf_info_set_name(&pack->info.model_name, from->model_name, strlen(from->model_name),
                                           err);
    if (!status && from->base_model)
        status = coffer__mcf_info_set_name(&pack->info.base_model, from->base_model, strlen(from->base_model),
                                           err);
    for (size_t i = 0; !status && i < from->kv_count; i++)
        status = take_kv(&pack->info, &from->kvs[i], err);
    return status;
}

static coffer_status take_model(coffer__mcf_pack *pack, const coffer_mcf *model, const char *path,
                                coffer_error *err)
{
    coffer_status status = take_sections(pack, model, path, err);
    if (!status && !pack->opts.no_files)
        status = coffer__mcf_pack_take_files(pack, model, err);
    return !status && !pack->has_info ? take_info(pack, model, err) : status;
}

/* ---- Inputs ---- */

/* Downloads that are stored under their hash, and pipes, have no extension. */
static bool has_tensors(const char *path)
{
    coffer_tensors *set = NULL;
    coffer_status status = coffer_tensors_open_path(&set, path, NULL, NULL);
    coffer_tensors_close(set);
    return !status;
}

/* Files that belong to a model and contain no tensors, when they are named one by one. */
static bool is_other_file(const char *path)
{
    static const char *const extensions[] = { ".json",  ".txt", ".md",   ".jinja",
                                              ".model", ".py",  ".yaml", ".yml" };
    const char *name = path + coffer__file_folder_len(path);
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        if (coffer__file_has_extension(name, extensions[i]))
            return !coffer__file_has_extension(name, ".index.json");
    }
    return !strchr(name, '.') && !has_tensors(path);
}

static coffer_status add_other_file(coffer__mcf_pack *pack, const char *path, coffer_error *err)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status = coffer__mcf_pack_read(&bytes, &len, path, &pack->limits, err);
    if (status)
        return status;
    pack->found++;
    pack->packed++;
    return coffer__mcf_pack_add_file(pack, path + coffer__file_folder_len(path), COFFER_MCF_FILE_WHOLE, bytes,
                                     len, err);
}

coffer_status coffer__mcf_pack_add_input(coffer__mcf_pack *pack, const char *path, coffer_error *err)
{
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    coffer_tensors *set = NULL;
    struct stat st;
    bool taken = false;
    coffer_status status = COFFER_OK;
    bool is_folder = coffer__os_stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (!is_folder)
        status = add_named(&taken, pack, path, err);
    if (taken && !status) {
        pack->found++;
        pack->packed++;
    }
    if (status || taken)
        return status;
    if (!is_folder && is_other_file(path) && !pack->opts.no_files && coffer__os_stat(path, &st) == 0)
        return add_other_file(pack, path, err);
    opts.limits = &pack->limits;
    /* Pages of a mapping would count as our memory. */
    opts.access = COFFER_ACCESS_READ;
    opts.allow_damaged = pack->opts.allow_damaged;
    status = coffer_tensors_open_path(&set, path, &opts, err);
    if (!status)
        status = coffer__mcf_pack_add_set(pack, set, err);
    if (!status && !pack->opts.no_files)
        status = coffer__mcf_pack_heads(pack, set, err);
    if (!status && !is_folder) {
        pack->found++;
        pack->packed++;
    }
    if (!status && coffer__mcf_model_of(set))
        status = take_model(pack, coffer__mcf_model_of(set), path, err);
    if (!status && !pack->info.model_name)
        status = coffer__mcf_pack_name(pack, path, is_folder, err);
    return !status && is_folder ? add_folder(pack, path, err) : status;
}
