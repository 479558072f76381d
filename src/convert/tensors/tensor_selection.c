#include "convert/tensors/tensor_selection.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "convert/convert.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static size_t collect(const char **out, const coffer__convert_job *job, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < job->setting_count; i++) {
        if (strcmp(job->settings[i].name, name) == 0)
            out[count++] = job->settings[i].value;
    }
    return count;
}

/* "f16", "bf16", "f32", "keep". */
static coffer_status selection_cast(coffer_dtype *out, const char *text, coffer_error *err)
{
    coffer_dtype cast = coffer__dtype_of_setting(text);
    if (strcasecmp(text, "keep") == 0) {
        *out = COFFER_DTYPE_NONE;
        return COFFER_OK;
    }
    if (cast != COFFER_DTYPE_F16 && cast != COFFER_DTYPE_BF16 && cast != COFFER_DTYPE_F32)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "\"%s\" is not a type to cast to: must be f16, bf16, f32 or keep", text);
    *out = cast;
    return COFFER_OK;
}

coffer_status coffer__tensors_settings_read(coffer__tensors_settings *out, const coffer__convert_job *job,
                                            coffer_error *err)
{
    const char *cast = coffer__job_setting(job, "cast");
    coffer_status status = cast ? selection_cast(&out->selection.cast, cast, err) : COFFER_OK;
    if (!status)
        status = coffer__job_size(&out->shard_size, job, "shard-size", err);
    if (status)
        return status;
    out->globs = coffer__alloc_array(job->setting_count + 1, sizeof *out->globs);
    if (!out->globs)
        return coffer__fail_no_memory(err, job->setting_count * sizeof *out->globs);
    out->selection.include = out->globs;
    out->selection.include_count = collect(out->globs, job, "include");
    out->selection.exclude = out->globs + out->selection.include_count;
    out->selection.exclude_count = collect(out->globs + out->selection.include_count, job, "exclude");
    return COFFER_OK;
}

void coffer__tensors_settings_free(coffer__tensors_settings *settings)
{
    coffer__free(settings->globs);
    *settings = (coffer__tensors_settings){ 0 };
}

coffer_status coffer__job_size(uint64_t *out, const coffer__convert_job *job, const char *name,
                               coffer_error *err)
{
    const char *text = coffer__job_setting(job, name);
    uint64_t size;
    if (!text)
        return COFFER_OK;
    if (!coffer__parse_size(&size, text) || size == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s: expected a size such as 4096, 64K or 5GB, not \"%s\"", name, text);
    *out = size;
    return COFFER_OK;
}

coffer_status coffer__tensors_settings_open(coffer_tensors **out, const coffer__convert_job *job,
                                            coffer_error *err)
{
    const coffer__tensors_reader *reader = coffer__tensors_find_reader(job->from);
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    coffer_source *in = job->in, *unmapped = NULL;
    coffer_status status = COFFER_OK;
    opts.limits = &job->limits;
    opts.access = COFFER_ACCESS_READ;
    int fd = coffer__source_descriptor(in);
    if (fd >= 0)
        status = coffer__source_over_fd(&unmapped, fd, false, coffer_source_size(in), coffer_source_name(in),
                                        NULL, err);
    if (status)
        return status;
    if (unmapped)
        coffer_source_keep_damaged(unmapped, coffer__source_damage_report(in));
    status = coffer__tensors_open_with(out, reader, unmapped ? unmapped : in, unmapped != NULL, &opts, err);
    if (status)
        coffer_source_close(unmapped);
    return status;
}

static bool matches_any(const char *const *globs, size_t count, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < count; i++) {
        if (coffer__glob_match(globs[i], name, len))
            return true;
    }
    return false;
}

/* Chooses the type to write. Types that only the input format knows and that cannot be decoded stay bytes. */
static coffer_status choose_type(coffer__chosen_tensor *chosen, const coffer__selection_opts *opts,
                                 coffer_error *err)
{
    const coffer_tensor *tensor = chosen->tensor;
    coffer_dtype from = tensor->dtype;
    bool plain = coffer_dtype_size(from) != 0;
    bool decoded = !plain && coffer__tensors_can_decode(chosen->set, chosen->index) &&
                   !(opts->keep_quantized && coffer_dtype_is_quantized(from));
    chosen->dtype = from;
    if (decoded)
        chosen->dtype = opts->cast ? opts->cast : COFFER_DTYPE_F32;
    else if (opts->cast && coffer_dtype_is_float(from) && coffer__elements_can_convert(opts->cast, from))
        chosen->dtype = opts->cast;
    chosen->as_is = !decoded && chosen->dtype == from;
    chosen->decoded = decoded && !opts->cast;
    chosen->size = tensor->size;
    if (!chosen->as_is && !coffer__mul_u64(&chosen->size, tensor->elements, coffer_dtype_size(chosen->dtype)))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "\"%s\" has %" PRIu64 " elements, too many for %s", tensor->name,
                            tensor->elements, coffer_dtype_name(chosen->dtype));
    return COFFER_OK;
}

coffer_status coffer__selection_add(coffer__selection *selection, const coffer_tensors *set,
                                    const coffer__selection_opts *opts, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < coffer_tensors_count(set); i++) {
        const coffer_tensor *tensor = coffer_tensors_at(set, i);
        coffer__chosen_tensor chosen = { .set = set, .index = i, .tensor = tensor };
        if ((opts->include_count && !matches_any(opts->include, opts->include_count, tensor->name)) ||
            matches_any(opts->exclude, opts->exclude_count, tensor->name))
            continue;
        status = choose_type(&chosen, opts, err);
        if (!status)
            status = coffer__array_reserve_one(&selection->items, &selection->capacity, selection->count,
                                               sizeof chosen, err);
        if (status)
            break;
        selection->items[selection->count++] = chosen;
        selection->bytes += chosen.size;
    }
    return status;
}

static int by_name(const void *left, const void *right)
{
    const coffer__chosen_tensor *a = left, *b = right;
    return strcmp(a->tensor->name, b->tensor->name);
}

static coffer_status check_include(const char *glob, const coffer_tensors *const *sets, size_t set_count,
                                   coffer_error *err)
{
    for (size_t i = 0; i < set_count; i++) {
        for (size_t j = 0; j < coffer_tensors_count(sets[i]); j++) {
            const char *name = coffer_tensors_at(sets[i], j)->name;
            if (coffer__glob_match(glob, name, strlen(name)))
                return COFFER_OK;
        }
    }
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no tensor name matches \"%s\"",
                        glob);
}

coffer_status coffer__selection_finish(coffer__selection *selection, const coffer_tensors *const *sets,
                                       size_t set_count, const coffer__selection_opts *opts,
                                       coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < opts->include_count; i++)
        status = check_include(opts->include[i], sets, set_count, err);
    if (status)
        return status;
    if (selection->count == 0 && (opts->include_count || opts->exclude_count))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "no tensors left: everything included is also excluded");
    if (selection->count)
        qsort(selection->items, selection->count, sizeof *selection->items, by_name);
    for (size_t i = 1; i < selection->count; i++) {
        const coffer_tensor *a = selection->items[i - 1].tensor, *b = selection->items[i].tensor;
        if (strcmp(a->name, b->name) == 0)
            return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                                "the tensor \"%s\" is in two files: %s and %s", a->name, a->file, b->file);
    }
    return COFFER_OK;
}

void coffer__selection_free(coffer__selection *selection)
{
    coffer__free(selection->items);
    *selection = (coffer__selection){ 0 };
}

/* Notes about tensors whose type changes: how many, from which type to which, and the bytes before and after.
 */

#define MOST_CHANGES (sizeof((coffer__type_changes *)NULL)->items / sizeof(coffer__type_change))

void coffer__type_changes_add(coffer__type_changes *changes, const coffer_tensor *tensor, const char *how,
                              const char *to, uint64_t after)
{
    const char *from = coffer_tensor_dtype_name(tensor);
    size_t i = 0;
    for (; i < changes->count; i++) {
        const coffer__type_change *item = &changes->items[i];
        if (strcmp(item->from, from) == 0 && strcmp(item->to, to) == 0 && strcmp(item->how, how) == 0)
            break;
    }
    if (i == MOST_CHANGES)
        i--;
    else if (i == changes->count)
        changes->items[changes->count++] = (coffer__type_change){ .from = from, .to = to, .how = how };
    changes->items[i].tensors++;
    changes->items[i].before += tensor->size;
    changes->items[i].after += after;
}

void coffer__type_changes_note(coffer_report *notes, const coffer__type_changes *changes)
{
    for (size_t i = 0; notes && i < changes->count; i++) {
        const coffer__type_change *item = &changes->items[i];
        coffer__size_text before, after;
        coffer__size_text_of(before, item->before);
        coffer__size_text_of(after, item->after);
        bool same = strcmp(before, after) == 0;
        coffer__report_add(notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "%" PRIu64 " %s %s %s %s: %s%s%s", item->tensors,
                           item->tensors == 1 ? "tensor of type" : "tensors of type", item->from, item->how,
                           item->to, before, same ? ", as before" : " become ", same ? "" : after);
    }
}

void coffer__selection_note(coffer_report *notes, const coffer__selection *selection)
{
    coffer__type_changes changes = { .count = 0 };
    for (size_t i = 0; notes && i < selection->count; i++) {
        const coffer__chosen_tensor *chosen = &selection->items[i];
        /* A cast of plain floats is what the caller asked for. */
        if (chosen->as_is || chosen->quantize || coffer_dtype_size(chosen->tensor->dtype) != 0)
            continue;
        coffer__type_changes_add(&changes, chosen->tensor,
                                 chosen->repack ? "stored exactly as" : "decoded to",
                                 coffer_dtype_name(chosen->dtype), chosen->size);
    }
    coffer__type_changes_note(notes, &changes);
}
