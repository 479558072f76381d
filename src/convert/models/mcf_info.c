#include "convert/models/mcf_info.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more, with its key. */
static coffer_status add(coffer_mcf_kv **out, coffer__mcf_info *info, const char *prefix, const char *name,
                         coffer_error *err)
{
    size_t prefix_len = strlen(prefix), name_len = strlen(name);
    coffer_status status =
        coffer__array_reserve_one(&info->kvs, &info->capacity, info->count, sizeof *info->kvs, err);
    if (status)
        return status;
    char *key = coffer__malloc(prefix_len + name_len + 1);
    if (!key)
        return coffer__fail_no_memory(err, prefix_len + name_len + 1);
    memcpy(key, prefix, prefix_len);
    memcpy(key + prefix_len, name, name_len + 1);
    *out = &info->kvs[info->count++];
    **out = (coffer_mcf_kv){ .struct_size = sizeof **out, .key = key };
    return COFFER_OK;
}

coffer_status coffer__mcf_info_add_u32(coffer__mcf_info *info, const char *prefix, const char *name,
                                       uint32_t value, coffer_error *err)
{
    coffer_mcf_kv *kv;
    coffer_status status = add(&kv, info, prefix, name, err);
    if (status)
        return status;
    kv->type = COFFER_MCF_KV_U32;
    kv->u32 = value;
    return COFFER_OK;
}

coffer_status coffer__mcf_info_add_f32(coffer__mcf_info *info, const char *prefix, const char *name,
                                       float value, coffer_error *err)
{
    coffer_mcf_kv *kv;
    coffer_status status = add(&kv, info, prefix, name, err);
    if (status)
        return status;
    kv->type = COFFER_MCF_KV_F32;
    kv->f32 = value;
    return COFFER_OK;
}

coffer_status coffer__mcf_info_add_text(coffer__mcf_info *info, const char *prefix, const char *name,
                                        const char *text, size_t len, coffer_error *err)
{
    coffer_mcf_kv *kv;
    coffer_status status = add(&kv, info, prefix, name, err);
    if (status)
        return status;
    kv->type = COFFER_MCF_KV_STRING;
    kv->text = coffer__strndup(text, len);
    kv->text_len = len;
    return kv->text ? COFFER_OK : coffer__fail_no_memory(err, len);
}

coffer_status coffer__mcf_info_set_name(char **name, const char *text, size_t len, coffer_error *err)
{
    char *copy = coffer__strndup(text, len);
    if (!copy)
        return coffer__fail_no_memory(err, len);
    coffer__free(*name);
    *name = copy;
    return COFFER_OK;
}

static int by_key(const void *left, const void *right)
{
    return strcmp(((const coffer_mcf_kv *)left)->key, ((const coffer_mcf_kv *)right)->key);
}

coffer_status coffer__mcf_info_finish(const coffer_mcf_model_info **out, coffer__mcf_info *info,
                                      coffer_error *err)
{
    if (info->count)
        qsort(info->kvs, info->count, sizeof *info->kvs, by_key);
    for (size_t i = 1; i < info->count; i++) {
        if (strcmp(info->kvs[i - 1].key, info->kvs[i].key) == 0)
            return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE, "duplicate key \"%s\"",
                                info->kvs[i].key);
    }
    info->info.model_name = info->model_name;
    info->info.base_model = info->base_model;
    info->info.kvs = info->kvs;
    info->info.kv_count = info->count;
    *out = &info->info;
    return COFFER_OK;
}

void coffer__mcf_info_free(coffer__mcf_info *info)
{
    for (size_t i = 0; i < info->count; i++) {
        coffer__free(info->kvs[i].key);
        coffer__free(info->kvs[i].text);
    }
    coffer__free(info->kvs);
    coffer__free(info->model_name);
    coffer__free(info->base_model);
    *info = (coffer__mcf_info)COFFER__MCF_INFO_INIT;
}
