#include "convert/tensors/tensor_selection.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "convert/convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

coffer_status coffer__selection_cast(coffer_dtype *out, const char *text, coffer_error *err)
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
