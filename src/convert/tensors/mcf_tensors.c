/* MCF models as sets of tensors. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/utf8.h"
#include "coffer/mcf.h"
#include "convert/models/mcf_stand_in.h"
#include "convert/tensors/tensors.h"
#include "quant/quant.h"

#include <inttypes.h>
#include <string.h>

/* The format's names of types, where they are not our names in capitals. */
static const char *type_name(coffer_dtype dtype)
{
    static const char *const names[COFFER_DTYPE_COUNT] = {
        [COFFER_DTYPE_NONE] = "unknown", [COFFER_DTYPE_F32] = "F32",   [COFFER_DTYPE_F16] = "F16",
        [COFFER_DTYPE_BF16] = "BF16",    [COFFER_DTYPE_F64] = "F64",   [COFFER_DTYPE_I8] = "I8",
        [COFFER_DTYPE_U8] = "U8",        [COFFER_DTYPE_I16] = "I16",   [COFFER_DTYPE_U16] = "U16",
        [COFFER_DTYPE_I32] = "I32",      [COFFER_DTYPE_U32] = "U32",   [COFFER_DTYPE_I64] = "I64",
        [COFFER_DTYPE_U64] = "U64",      [COFFER_DTYPE_INT8] = "Int8", [COFFER_DTYPE_INT4] = "Int4",
        [COFFER_DTYPE_Q8] = "Q8",        [COFFER_DTYPE_Q4] = "Q4",     [COFFER_DTYPE_K6] = "K6",
        [COFFER_DTYPE_K4] = "K4",        [COFFER_DTYPE_K3] = "K3",     [COFFER_DTYPE_K2] = "K2",
    };
    return names[dtype] ? names[dtype] : names[COFFER_DTYPE_NONE];
}

/* A name as text: the bytes that are not UTF-8, which the format allows, and NULs as \xff. NULL: no memory.
 */
static const char *spell_name(coffer__buffer *scratch, const char *name, size_t *len)
{
    const uint8_t *at = (const uint8_t *)name, *end = at + *len;
    if (!memchr(name, 0, *len) && coffer__utf8_valid(name, *len))
        return name;
    scratch->len = 0;
    while (at < end) {
        uint32_t code_point = 0;
        size_t n = coffer__utf8_decode(&code_point, at, end);
        if (code_point != 0)
            coffer__buffer_append(scratch, at, n);
        else
            coffer__buffer_printf(scratch, "\\x%02x", *at);
        at += n > 0 ? n : 1;
    }
    *len = scratch->len;
    return scratch->failed ? NULL : coffer__buffer_text(scratch);
}

static coffer_status add_tensors(coffer_tensors *set, const coffer_mcf *model, coffer_error *err)
{
    const coffer__mcf_stand_in **true_types = NULL;
    coffer__buffer scratch = COFFER__BUFFER_INIT;
    coffer_status status = coffer__mcf_stand_ins(&true_types, model, err);
    for (size_t i = 0; !status && i < coffer_mcf_tensor_count(model); i++) {
        const coffer_mcf_tensor *from = coffer_mcf_tensor_at(model, i);
        const coffer__mcf_stand_in *stand_in = true_types ? true_types[i] : NULL;
        size_t name_len = from->name_len;
        coffer_tensor tensor = {
            .name = spell_name(&scratch, from->name, &name_len),
            .dtype = stand_in ? stand_in->dtype : from->dtype,
            .type_name = stand_in ? stand_in->name : type_name(from->dtype),
            .rank = stand_in && stand_in->pair ? from->rank - 1 : from->rank,
            .dims = from->dims,
            .size = from->size,
            .offset = from->offset,
        };
        status = tensor.name ? coffer__tensors_add(set, &tensor, name_len, i, err)
                             : coffer__fail_no_memory(err, from->name_len);
    }
    coffer__buffer_free(&scratch);
    coffer__free(true_types);
    return status;
}

static coffer_status open_model(coffer_tensors *set, coffer_source *src, coffer_error *err)
{
    coffer_mcf *model = NULL;
    coffer_mcf_open_opts opts = COFFER_MCF_OPEN_OPTS_INIT;
    opts.limits = &set->limits;
    opts.allow_damaged = set->allow_damaged;
    coffer_status status = coffer__tensors_add_part(set, src, false, err);
    if (!status)
        status = coffer_mcf_open(&model, src, &opts, err);
    if (status)
        return status;
    set->state = model;
    return add_tensors(set, model, err);
}

typedef struct payload {
    const coffer_mcf *model;
    size_t tensor;
} payload;

static coffer_status read_payload(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    const payload *from = context;
    return coffer_mcf_read(out, from->model, from->tensor, offset, len, err);
}

/* int8 and int4 may have more than two dimensions, and their codes know of no rows: any will do. */
static coffer_status decode_dense(float *out, const coffer_tensors *set, const coffer__tensors_entry *entry,
                                  uint64_t first, uint64_t count, coffer_error *err)
{
    const coffer_tensor *tensor = &entry->tensor;
    uint64_t row = tensor->dims[tensor->rank - 1], dims[2] = { tensor->elements / row, row };
    payload from = { set->state, entry->index };
    const coffer_mcf_quant *quant = coffer_mcf_quant_at(set->state, entry->index);
    coffer__quant_layout layout;
    coffer_status status =
        coffer__quant_plan(&layout, tensor->dtype, 2, dims, quant && quant->activations, err);
    return status ? status
                  : coffer__quant_read_rows(out, &layout, first / row, count / row, read_payload, &from, err);
}

static coffer_status decode(float *out, const coffer_tensors *set, const coffer__tensors_entry *entry,
                            uint64_t first, uint64_t count, coffer_error *err)
{
    uint64_t row = coffer_mcf_row_elements(coffer_mcf_tensor_at(set->state, entry->index));
    if (row == 0) /* the shape cannot be read; the call below reports why */
        row = 1;
    if (entry->tensor.rank > 2)
        return decode_dense(out, set, entry, first, count, err);
    return coffer_mcf_read_rows_f32(out, set->state, entry->index, first / row, count / row, err);
}

static coffer_status verify(const coffer_tensors *set, const coffer__tensors_entry *entry, uint64_t begin,
                            uint64_t len, coffer_error *err)
{
    return coffer_mcf_verify(set->state, entry->index, begin, len, err);
}

static void describe_kv(coffer_node *out, const coffer_mcf_kv *kv)
{
    switch (kv->type) {
    case COFFER_MCF_KV_U32:
        coffer_node_add_u64(out, kv->key, kv->u32, COFFER_UNIT_NONE);
        break;
    case COFFER_MCF_KV_F32:
        coffer_node_add_f64(out, kv->key, (double)kv->f32, COFFER_UNIT_NONE);
        break;
    case COFFER_MCF_KV_STRING:
        coffer_node_add_text_len(out, kv->key, kv->text, kv->text_len);
        break;
    }
}

/* ---- Files ---- */

static bool is_listed(const coffer__tensors_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->names[i], name) == 0)
            return true;
    }
    return false;
}

/* Files and sections. A section that was changed while packing is there as a file too. */
static coffer_status list_files(coffer__tensors_files *out, const coffer_tensors *set, coffer_error *err)
{
    const coffer_mcf_file *files = NULL;
    size_t count = 0;
    coffer_status status = coffer_mcf_get_files(&files, &count, set->state, err);
    for (size_t i = 0; !status && i < count; i++) {
        if (files[i].kind == COFFER_MCF_FILE_WHOLE && !coffer__tensors_is_weights(files[i].name))
            status = coffer__tensors_files_add(out, files[i].name, err);
    }
    for (uint32_t type = COFFER_MCF_CONFIG; !status && type <= COFFER_MCF_MERGES; type++) {
        const char *name = coffer_mcf_section_name(type);
        if (coffer_mcf_find_section(set->state, type) && !is_listed(out, name))
            status = coffer__tensors_files_add(out, name, err);
    }
    return status;
}

static coffer_status read_file(uint8_t **out, size_t *len, const coffer_tensors *set, const char *name,
                               coffer_error *err)
{
    uint32_t type = coffer_mcf_section_by_name(name);
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status = coffer_mcf_read_file(out, len, set->state, name, &cause);
    if (status == COFFER_E_MISSING && type)
        return coffer_mcf_read_section(out, len, set->state, type, err);
    return status ? coffer__fail_copy(err, &cause) : COFFER_OK;
}

static void describe_info(coffer_node *out, const coffer_mcf_model_info *info)
{
    const struct {
        const char *name;
        uint32_t value;
    } numbers[] = {
        { "vocab_size", info->vocab_size },       { "hidden_size", info->hidden_size },
        { "layer_count", info->layer_count },     { "head_count", info->head_count },
        { "head_count_kv", info->head_count_kv }, { "context_length", info->context_length },
        { "train_context", info->train_context },
    };
    coffer_node_add_text(out, "model_name", info->model_name);
    coffer_node_add_text(out, "base_model", info->base_model);
    coffer_node_add_text(out, "arch", coffer_mcf_arch_name(info->arch));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        coffer_node_add_u64(out, numbers[i].name, numbers[i].value, COFFER_UNIT_NONE);
    coffer_node_add_text(out, "rope_type", coffer_mcf_rope_name(info->rope_type));
    coffer_node_add_f64(out, "rope_freq_base", (double)info->rope_freq_base, COFFER_UNIT_NONE);
    coffer_node_add_f64(out, "rope_scale", (double)info->rope_scale, COFFER_UNIT_NONE);
    for (size_t i = 0; i < info->kv_count; i++)
        describe_kv(out, &info->kvs[i]);
}

static coffer_status describe(coffer_node *out, const coffer_tensors *set, coffer_error *err)
{
    const coffer_mcf_model_info *info = NULL;
    coffer_status status = coffer_mcf_get_model_info(&info, set->state, err);
    if (!status)
        describe_info(out, info);
    return status == COFFER_E_MISSING ? COFFER_OK : status;
}

static void close_model(void *state)
{
    coffer_mcf_close(state);
}

const coffer__tensors_reader coffer__tensors_mcf = {
    .kind = "mcf",
    .shown_kind = "mcf",
    .title = "MCF model",
    .open = open_model,
    .verify = verify,
    .decode = decode,
    .describe = describe,
    .list_files = list_files,
    .read_file = read_file,
    .close = close_model,
};

const coffer_mcf *coffer__mcf_model_of(const coffer_tensors *set)
{
    return set->reader == &coffer__tensors_mcf ? set->state : NULL;
}
