/* Folders and files into one MCF model. */
#include "convert/models/mcf_pack.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "convert/models/gguf_model_info.h"
#include "convert/tensors/gguf_tensors.h"
#include "io/os.h"

#include <stdlib.h>
#include <string.h>

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
    const coffer__gguf *gguf = coffer__gguf_of(set);
    return gguf ? coffer__gguf_to_pack(pack, gguf, err) : COFFER_OK;
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
    if (!status && !pack.info.model_name)
        status = coffer__mcf_pack_name(&pack, inputs[0], false, err);
    if (!status)
        status = coffer__mcf_pack_write(out_path, &pack, err);
    if (!status && pack.opts.report)
        coffer__mcf_pack_report(pack.opts.report, &pack);
    coffer__mcf_pack_free(&pack);
    return status;
}
