/* Rewrites a model into a new file, for compact and repair. */
#include "formats/mcf/mcf_writer.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/work.h"
#include "io/journal.h"

#include <stdlib.h>

#define STEP ((uint64_t)64 << 20) /* bytes between two calls of a progress */

uint32_t coffer__mcf_common_alignment(const coffer_mcf *model)
{
    uint64_t bits = COFFER__MCF_MAX_ALIGNMENT;
    bool any = false;
    for (size_t i = 0; i < model->index.count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(&model->index, i);
        if (entry.size > 0) {
            bits |= entry.offset;
            any = true;
        }
    }
    bits &= 0 - bits; /* the lowest one that is set */
    if (!any || bits < COFFER__MCF_PAYLOAD_ALIGNMENT)
        return COFFER__MCF_PAYLOAD_ALIGNMENT;
    return (uint32_t)bits;
}

static bool is_made_by_writer(uint32_t type)
{
    return type == COFFER_MCF_TENSOR_INDEX || type == COFFER_MCF_TENSOR_DATA ||
           type == COFFER_MCF_QUANT_INFO || type == COFFER_MCF_CHECKSUMS ||
           type == COFFER_MCF_DIRECTORY_COPY || type == COFFER_MCF_DAMAGE;
}

typedef struct numbered {
    uint32_t type;
    size_t place;
} numbered;

static int by_type(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static int by_number(const void *a, const void *b)
{
    size_t x = ((const numbered *)a)->place, y = ((const numbered *)b)->place;
    return (x > y) - (x < y);
}

static coffer_status take_section(coffer_mcf_writer *writer, const coffer__mcf_rewrite *from,
                                  const coffer_mcf_section *section, coffer_error *err)
{
    coffer_mcf_section place = *section;
    coffer_source *source = from->model->source;
    for (size_t i = 0; i < from->moved_count; i++) {
        if (from->moved[i].type != section->type)
            continue;
        source = from->moved[i].source;
        place.offset = from->moved[i].offset;
    }
    return coffer__mcf_copy_section(writer, source, &place, err);
}

/* Readers use the first section of a type, so only that one is kept. */
static coffer_status take_sections(coffer_mcf_writer *writer, const coffer__mcf_rewrite *from,
                                   coffer_error *err)
{
    const coffer_mcf *model = from->model;
    size_t count = model->section_count, kept = 0;
    numbered *list = coffer__alloc_array(count, sizeof *list);
    coffer_status status = COFFER_OK;
    if (!list)
        return coffer__fail_no_memory(err, count * sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = (numbered){ model->sections[i].type, i };
    qsort(list, count, sizeof *list, by_type);
    for (size_t i = 0; i < count; i++) {
        bool first = kept == 0 || list[kept - 1].type != list[i].type;
        if (first && !is_made_by_writer(list[i].type))
            list[kept++] = list[i];
    }
    qsort(list, kept, sizeof *list, by_number);
    for (size_t i = 0; !status && i < kept; i++) {
        const coffer_mcf_section *section = &model->sections[list[i].place];
        if (!from->verified)
            status = coffer__mcf_verify_section(model, section, err);
        if (!status)
            status = take_section(writer, from, section, err);
    }
    coffer__free(list);
    return status;
}

/* ---- Tensors ---- */

typedef struct placed {
    uint64_t offset, size;
    size_t tensor;
} placed;

static int by_place(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/* The part of a payload at `at` comes from this patch, or ends where the next one begins. */
static const coffer__mcf_patch *patch_at(uint64_t *len, const coffer__mcf_rewrite *from, size_t tensor,
                                         uint64_t at)
{
    for (size_t i = 0; i < from->patch_count; i++) {
        const coffer__mcf_patch *patch = &from->patches[i];
        if (patch->tensor != tensor)
            continue;
        if (at >= patch->begin && at - patch->begin < patch->size) {
            uint64_t left = patch->size - (at - patch->begin);
            *len = left < *len ? left : *len;
            return patch;
        }
        if (patch->begin > at && patch->begin - at < *len)
            *len = patch->begin - at;
    }
    return NULL;
}

static coffer_status copy_payload(coffer_mcf_writer *writer, const coffer__mcf_rewrite *from,
                                  const placed *place, uint64_t *done, uint64_t total, coffer_error *err)
{
    const coffer_mcf *model = from->model;
    for (uint64_t at = 0; at < place->size;) {
        uint64_t n = place->size - at < STEP ? place->size - at : STEP;
        const coffer__mcf_patch *patch = patch_at(&n, from, place->tensor, at);
        coffer_status status = COFFER_OK;
        if (!patch && !from->verified && !model->allow_damaged)
            status = coffer__mcf_verify_range(model, place->offset + at, n, NULL, err);
        if (!status)
            status = patch ? coffer_mcf_writer_write_from(writer, patch->source,
                                                          patch->from + (at - patch->begin), n, err)
                           : coffer_mcf_writer_write_from(writer, model->source, place->offset + at, n, err);
        if (status)
            return status;
        at += n;
        *done += n;
        status = coffer__progress_step(from->progress, *done, total, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

/* The tensor's own record; one that its type implies when it has none. */
static bool record_of(coffer__mcf_quant_record *out, const coffer_mcf *model, size_t tensor,
                      uint32_t dtype_code)
{
    coffer_dtype dtype = coffer_mcf_dtype_from_code(dtype_code);
    coffer_mcf_quant implied = coffer__mcf_implied_quant(dtype);
    const coffer__mcf_quant_record *own = NULL;
    if (model->quant_of && model->quant_of[tensor])
        own = &model->quants[model->quant_of[tensor] - 1];
    if (!coffer_dtype_is_quantized(dtype))
        return false;
    *out = (coffer__mcf_quant_record){ .method = (uint8_t)dtype_code,
                                       .block_size = implied.block_size,
                                       .super_size = implied.super_size };
    if (own && own->method == dtype_code) {
        out->domain = own->domain == COFFER__MCF_DOMAIN_ACTIVATIONS && !coffer__mcf_is_blocked(dtype);
        out->min_clip = own->min_clip;
        out->max_clip = own->max_clip;
    }
    return true;
}

static coffer_status take_tensor(coffer_mcf_writer *writer, const coffer__mcf_rewrite *from,
                                 const placed *place, bool alias, uint64_t *done, uint64_t total,
                                 coffer_error *err)
{
    coffer__mcf_entry entry = coffer__mcf_index_entry(&from->model->index, place->tensor);
    coffer__mcf_quant_record record;
    bool quantized = record_of(&record, from->model, place->tensor, entry.dtype);
    coffer_status status;
    if (!entry.name || !entry.dims)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS,
                            coffer__mcf_entry_at(&from->model->index, place->tensor),
                            "tensor #%zu has no name or no shape; repair leaves it out", place->tensor);
    if (alias)
        return coffer__mcf_add_alias(writer, entry.name, entry.name_len, entry.dtype, entry.rank, entry.dims,
                                     writer->tensor_count - 1, quantized ? &record : NULL, err);
    status = coffer__mcf_begin_raw(writer, entry.name, entry.name_len, entry.dtype, entry.rank, entry.dims,
                                   entry.size, quantized ? &record : NULL, err);
    if (!status)
        status = copy_payload(writer, from, place, done, total, err);
    if (status)
        return status;
    return coffer_mcf_writer_end_tensor(writer, err);
}

/* Reserves room for index and checksums before the payloads. */
static coffer_status reserve(coffer_mcf_writer *writer, const coffer_mcf *model, const placed *list,
                             size_t count, coffer_error *err)
{
    uint64_t dims = 0, names = 0, bytes = 0;
    for (size_t i = 0; i < count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(&model->index, list[i].tensor);
        bytes += entry.size;
        dims += entry.rank;
        names += entry.name_len;
    }
    if (count == 0 || dims > UINT32_MAX)
        return COFFER_OK;
    coffer_status status =
        coffer_mcf_writer_reserve_index(writer, (uint32_t)count, (uint32_t)dims, names, err);
    return status ? status : coffer_mcf_writer_reserve_checksums(writer, (uint32_t)count, bytes, err);
}

static coffer_status take_tensors(coffer_mcf_writer *writer, const coffer__mcf_rewrite *from,
                                  coffer_error *err)
{
    const coffer_mcf *model = from->model;
    placed *list = coffer__alloc_array(model->index.count, sizeof *list);
    uint64_t done = 0, total = 0;
    size_t count = 0;
    coffer_status status = COFFER_OK;
    if (!list)
        return coffer__fail_no_memory(err, model->index.count * sizeof *list);
    for (size_t i = 0; !status && i < model->index.count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(&model->index, i);
        if (from->left_out && from->left_out[i])
            continue;
        if (!from->verified)
            status = coffer__mcf_check_range(model, i, err);
        list[count++] = (placed){ entry.offset, entry.size, i };
        total += entry.size;
    }
    if (status)
        goto out;
    qsort(list, count, sizeof *list, by_place);
    status = reserve(writer, model, list, count, err);
    for (size_t i = 0; !status && i < count; i++) {
        bool alias = i > 0 && list[i].size > 0 && list[i].offset == list[i - 1].offset &&
                     list[i].size == list[i - 1].size;
        status = take_tensor(writer, from, &list[i], alias, &done, total, err);
    }
out:
    coffer__free(list);
    return status;
}

coffer_status coffer__mcf_take_over(coffer_mcf_writer *writer, const coffer__mcf_rewrite *from,
                                    coffer_error *err)
{
    coffer_status status = take_sections(writer, from, err);
    return status ? status : take_tensors(writer, from, err);
}

/* ---- Compact ---- */

/* Recorded damage stays recorded. With permission to copy damaged payloads, theirs is added. */
static coffer_status take_damage(coffer_mcf_writer *writer, const coffer_mcf *model, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < model->damages.count; i++) {
        const coffer_mcf_damage *damage = &model->damages.items[i];
        if (damage->section || damage->reason == COFFER_MCF_DAMAGE_LOST || !model->allow_damaged)
            status = coffer_mcf_writer_add_damage(writer, damage, err);
    }
    for (size_t i = 0; !status && model->allow_damaged && i < model->index.count; i++) {
        coffer_mcf_damage *damages = NULL;
        size_t count = 0;
        status = coffer_mcf_tensor_damage(&damages, &count, model, i, err);
        for (size_t j = 0; !status && j < count; j++)
            status = coffer_mcf_writer_add_damage(writer, &damages[j], err);
        coffer__free(damages);
    }
    return status;
}

static coffer_status write_compact(const coffer_mcf *model, const char *out_path,
                                   const coffer_compact_opts *opts, coffer_error *err)
{
    coffer_mcf_writer_opts options = COFFER_MCF_WRITER_OPTS_INIT;
    coffer__mcf_rewrite from = { .model = model, .progress = opts->progress };
    coffer_mcf_writer *writer = NULL;
    coffer_status status;
    options.align = coffer__mcf_common_alignment(model);
    options.no_dedup = true;
    options.no_checksums = !coffer_mcf_find_section(model, COFFER_MCF_CHECKSUMS);
    options.flags = model->header.flags;
    options.overwrite = opts->overwrite;
    status = coffer_mcf_writer_create(&writer, out_path, &options, err);
    if (status)
        return status;
    status = coffer__mcf_take_over(writer, &from, err);
    if (!status)
        status = take_damage(writer, model, err);
    if (status) {
        coffer_mcf_writer_discard(writer);
        return status;
    }
    return coffer_mcf_writer_commit(writer, err);
}

static coffer_status describe(coffer_node *out, const coffer_mcf *model, const char *out_path,
                              coffer_error *err)
{
    uint64_t before = coffer_source_size(model->source);
    coffer_source *written = NULL;
    coffer_status status = coffer_source_open(&written, out_path, NULL, err);
    if (status)
        return status;
    coffer_node_add_u64(out, "size_before", before, COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "size_after", coffer_source_size(written), COFFER_UNIT_BYTES);
    coffer_node_add_i64(out, "dropped", (int64_t)before - (int64_t)coffer_source_size(written),
                        COFFER_UNIT_BYTES);
    coffer_node_add_u64(out, "tensors", model->index.count, COFFER_UNIT_NONE);
    coffer_source_close(written);
    return coffer_node_status(out, err);
}

coffer_status coffer__mcf_compact(coffer_node *out, const char *path, const char *out_path,
                                  const coffer_compact_opts *opts, coffer_error *err)
{
    const char *target = out_path ? out_path : path;
    coffer_mcf_open_opts open_options = COFFER_MCF_OPEN_OPTS_INIT;
    coffer__update *update = NULL;
    coffer_mcf *model = NULL;
    coffer_status status;
    open_options.limits = opts->limits;
    open_options.allow_damaged = opts->allow_damaged;
    /* The lock keeps editors out until the new file has the name. */
    status = coffer__update_open(&update, path, NULL, err);
    if (!status)
        status = coffer_mcf_open(&model, coffer__update_source(update), &open_options, err);
    if (!status)
        status = write_compact(model, target, opts, err);
    if (status)
        goto out;
    status = describe(out, model, target, err);
out:
    coffer_mcf_close(model);
    coffer__update_close(update);
    return status;
}
