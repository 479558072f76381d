#include "convert/models/mcf_stand_in.h"

#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

static const coffer__mcf_stand_in stand_ins[] = {
    { "BOOL", COFFER_DTYPE_BOOL, COFFER_DTYPE_U8, false },
    { "F8_E4M3", COFFER_DTYPE_F8_E4M3, COFFER_DTYPE_U8, false },
    { "F8_E5M2", COFFER_DTYPE_F8_E5M2, COFFER_DTYPE_U8, false },
    { "F8_E8M0", COFFER_DTYPE_NONE, COFFER_DTYPE_U8, false },
    { "F8_E4M3FNUZ", COFFER_DTYPE_NONE, COFFER_DTYPE_U8, false },
    { "F8_E5M2FNUZ", COFFER_DTYPE_NONE, COFFER_DTYPE_U8, false },
    { "C32", COFFER_DTYPE_C32, COFFER_DTYPE_F16, true },
    { "C64", COFFER_DTYPE_C64, COFFER_DTYPE_F32, true },
    { "C128", COFFER_DTYPE_C128, COFFER_DTYPE_F64, true },
};

#define STAND_IN_COUNT (sizeof stand_ins / sizeof *stand_ins)

const coffer__mcf_stand_in *coffer__mcf_stand_in_for(coffer_dtype dtype, const char *type_name)
{
    for (size_t i = 0; i < STAND_IN_COUNT; i++) {
        const coffer__mcf_stand_in *it = &stand_ins[i];
        if (dtype == COFFER_DTYPE_NONE ? strcmp(it->name, type_name) == 0 : it->dtype == dtype)
            return it;
    }
    return NULL;
}

static const coffer__mcf_stand_in *by_name(const char *name)
{
    for (size_t i = 0; i < STAND_IN_COUNT; i++) {
        if (strcmp(stand_ins[i].name, name) == 0)
            return &stand_ins[i];
    }
    return NULL;
}

static bool fits(const coffer__mcf_stand_in *it, const coffer_mcf_tensor *tensor)
{
    return tensor->dtype == it->stored &&
           (!it->pair || (tensor->rank > 0 && tensor->dims[tensor->rank - 1] == 2));
}

coffer_status coffer__mcf_stand_ins(const coffer__mcf_stand_in ***out, const coffer_mcf *model,
                                    coffer_error *err)
{
    static const size_t prefix = sizeof COFFER__MCF_DTYPE_KEY - 1;
    const coffer_mcf_model_info *info = NULL;
    const coffer__mcf_stand_in **found = NULL;
    size_t count = coffer_mcf_tensor_count(model);
    coffer_status status = coffer_mcf_get_model_info(&info, model, err);
    *out = NULL;
    if (status == COFFER_E_NO_MEMORY)
        return status;
    /* Tensors can be read without a valid ModelInfo. */
    for (size_t i = 0; !status && i < info->kv_count; i++) {
        const coffer_mcf_kv *kv = &info->kvs[i];
        if (kv->type != COFFER_MCF_KV_STRING || strncmp(kv->key, COFFER__MCF_DTYPE_KEY, prefix) != 0)
            continue;
        const char *name = kv->key + prefix;
        const coffer__mcf_stand_in *it = by_name(kv->text);
        size_t index = coffer_mcf_find_tensor(model, name, strlen(name));
        if (!it || index == COFFER_INDEX_NONE)
            continue;
        if (!found)
            found = coffer__calloc(count, sizeof *found);
        if (!found)
            return coffer__fail_no_memory(err, count * sizeof *found);
        if (fits(it, coffer_mcf_tensor_at(model, index)))
            found[index] = it;
    }
    *out = found;
    return COFFER_OK;
}
