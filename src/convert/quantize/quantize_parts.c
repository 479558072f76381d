/* A model that several calls work on: each writes a part with some of the tensors, and the last one joins the
 * parts. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/quantize/quantize.h"
#include "convert/tensors/tensors.h"

#include <inttypes.h>
#include <string.h>

/* ---- Writing a part ---- */

/* The place of a name in a selection, which is sorted; SIZE_MAX when it does not have the name. */
static size_t find(const coffer__selection *selection, const char *name)
{
    size_t begin = 0, end = selection->count;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        int order = strcmp(selection->items[middle].tensor->name, name);
        if (order == 0)
            return middle;
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return SIZE_MAX;
}

coffer_status coffer__quantize_keep_only(coffer__selection *selection, const coffer_mcf_quantize_opts *opts,
                                         coffer_error *err)
{
    bool *named = coffer__calloc(selection->count ? selection->count : 1, sizeof *named);
    size_t kept = 0;
    if (!named)
        return coffer__fail_no_memory(err, selection->count);
    for (size_t i = 0; i < opts->only_count; i++) {
        size_t place = find(selection, opts->only[i]);
        if (place == SIZE_MAX) {
            coffer__free(named);
            return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "no tensor is named \"%s\"",
                                opts->only[i]);
        }
        named[place] = true;
    }
    selection->bytes = 0;
    for (size_t i = 0; i < selection->count; i++) {
        if (!named[i])
            continue;
        selection->bytes += selection->items[i].size;
        selection->items[kept++] = selection->items[i];
    }
    selection->count = kept;
    coffer__free(named);
    return COFFER_OK;
}

/* ---- Joining parts ---- */

coffer_status coffer__quantize_open_parts(coffer__quantize_job *job, coffer_error *err)
{
    size_t count = job->opts.part_count;
    coffer_status status = COFFER_OK;
    if (!count)
        return COFFER_OK;
    job->parts = coffer__calloc(count, sizeof(coffer_tensors *));
    if (!job->parts)
        return coffer__fail_no_memory(err, count * sizeof(coffer_tensors *));
    for (size_t i = 0; !status && i < count; i++) {
        status = coffer_tensors_open_path(&job->parts[i], job->opts.parts[i], NULL, err);
        if (status)
            return coffer__fail_other(err, status, job->opts.parts[i]);
        job->part_count++;
        if (!coffer__mcf_model_of(job->parts[i]))
            status = coffer__fail_other(err,
                                        coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                                     "a part must be an MCF file"),
                                        job->opts.parts[i]);
    }
    return status;
}

void coffer__quantize_close_parts(coffer__quantize_job *job)
{
    for (size_t i = 0; i < job->part_count; i++)
        coffer_tensors_close(job->parts[i]);
    coffer__free(job->parts);
}

static bool is_as_chosen(const coffer_tensor *found, const coffer_mcf_quant *quant,
                         const coffer__chosen_tensor *chosen)
{
    const coffer_tensor *tensor = chosen->tensor;
    return found->dtype == chosen->dtype && found->rank == tensor->rank && found->size == chosen->size &&
           memcmp(found->dims, tensor->dims, tensor->rank * sizeof *tensor->dims) == 0 && quant &&
           quant->activations == chosen->activations;
}

static coffer_status copy_tensor(const coffer_tensors *part, size_t index, coffer__tensors_stream *stream,
                                 coffer_mcf_writer *writer, coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(part, index);
    coffer_source *src = coffer__tensors_source_at(part, index);
    coffer_status status = coffer__tensors_verify(part, index, 0, tensor->size, err);
    if (!status)
        status = coffer_mcf_writer_write_from(writer, src, tensor->offset, tensor->size, err);
    return status ? status : coffer__tensors_stream_count(stream, tensor->size, err);
}

coffer_status coffer__quantize_put_part(bool *done, coffer__quantize_job *job,
                                        const coffer__chosen_tensor *chosen, coffer__quantize_result *result,
                                        coffer__tensors_stream *stream, coffer_mcf_writer *writer,
                                        coffer_error *err)
{
    const char *name = chosen->tensor->name;
    size_t index = COFFER_INDEX_NONE, which = 0;
    for (; writer && which < job->part_count; which++) {
        index = coffer_tensors_find(job->parts[which], name);
        if (index != COFFER_INDEX_NONE)
            break;
    }
    *done = index != COFFER_INDEX_NONE;
    if (!*done)
        return COFFER_OK;
    const coffer_tensors *part = job->parts[which];
    const coffer_mcf *model = coffer__mcf_model_of(part);
    const coffer_tensor *found = coffer_tensors_at(part, index);
    size_t place = coffer__tensors_entry_at(part, index)->index;
    const coffer_mcf_quant *quant = coffer_mcf_quant_at(model, place);
    const coffer_mcf_quality *quality = coffer_mcf_quality_at(model, place);
    coffer_status status = COFFER_OK;
    if (!is_as_chosen(found, quant, chosen) || !quality)
        status = coffer__fail(err, COFFER_E_INCONSISTENT, found->offset,
                              "\"%s\" is %s with %" PRIu64 " bytes, it must be %s with %" PRIu64
                              ": the part belongs to another model or to other options",
                              name, coffer_dtype_name(found->dtype), found->size,
                              coffer_dtype_name(chosen->dtype), chosen->size);
    if (!status)
        status = copy_tensor(part, index, stream, writer, err);
    if (!status)
        status = coffer_mcf_writer_set_clip(writer, quant->min_clip, quant->max_clip, err);
    if (!status)
        status = coffer_mcf_writer_set_quality(writer, quality, err);
    result->known = true;
    result->recorded = quality;
    return coffer__fail_input(err, status, job->opts.parts[which]);
}
