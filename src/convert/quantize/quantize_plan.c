/* Chooses the type of each tensor by the caller's rules and the requirements of the types. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "convert/quantize/quantize.h"

#include <inttypes.h>
#include <string.h>

static bool matches_any(const char *const *globs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (coffer__glob_match(globs[i], name, strlen(name)))
            return true;
    }
    return false;
}

static bool is_wanted(const coffer_mcf_quantize_opts *opts, const char *name)
{
    return (!opts->include_count || matches_any(opts->include, opts->include_count, name)) &&
           !matches_any(opts->exclude, opts->exclude_count, name);
}

/* The rule that applies to a tensor; NULL when none does. */
static const coffer_mcf_quantize_rule *quantize_rule_for(const coffer_mcf_quantize_opts *opts,
                                                         const char *name)
{
    for (size_t i = opts->rule_count; i-- > 0;) {
        const coffer_mcf_quantize_rule *rule = &opts->rules[i];
        if (!rule->glob || coffer__glob_match(rule->glob, name, strlen(name)))
            return rule;
    }
    return NULL;
}

/* True when a tensor meets the requirements of a quantized type. */
static bool quantize_can(const coffer_mcf_quantize_opts *opts, const coffer__chosen_tensor *chosen)
{
    const coffer_tensor *tensor = chosen->tensor;
    coffer_dtype from = tensor->dtype;
    /* Blocks of another format have to become numbers in any case. */
    bool decodes = coffer__tensors_can_decode(chosen->set, chosen->index) &&
                   (opts->requantize || !coffer_dtype_is_quantized(from));
    bool plain = coffer_dtype_is_float(from) && coffer__elements_can_convert(COFFER_DTYPE_F32, from);
    return tensor->rank == 2 && tensor->elements > 0 && (plain || decodes) && is_wanted(opts, tensor->name);
}

static coffer_status quantize(coffer__chosen_tensor *chosen, const coffer_mcf_quantize_opts *opts,
                              coffer_dtype dtype, coffer_error *err)
{
    const coffer__quant_type *type = coffer__quant_find_type(dtype);
    coffer__quant_layout layout;
    bool activations = opts->activations && type->family == COFFER__QUANT_WHOLE;
    coffer_status status = coffer__quant_plan(&layout, dtype, 2, chosen->tensor->dims, activations, err);
    if (status)
        return status;
    chosen->dtype = dtype;
    chosen->as_is = chosen->decoded = false;
    chosen->quantize = true;
    chosen->activations = activations;
    chosen->size = layout.size;
    return COFFER_OK;
}

static coffer_status cast(coffer__chosen_tensor *chosen, const coffer_mcf_quantize_opts *opts,
                          coffer_dtype dtype, coffer_error *err)
{
    const coffer_tensor *tensor = chosen->tensor;
    bool decodes = coffer__tensors_can_decode(chosen->set, chosen->index) &&
                   (opts->requantize || !coffer_dtype_is_quantized(tensor->dtype));
    bool plain = coffer_dtype_is_float(tensor->dtype) && coffer__elements_can_convert(dtype, tensor->dtype);
    if (tensor->dtype == dtype || !(plain || decodes) || !is_wanted(opts, tensor->name))
        return COFFER_OK;
    if (!coffer__mul_u64(&chosen->size, tensor->elements, coffer_dtype_size(dtype)))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "\"%s\" has %" PRIu64 " elements, too many for %s", tensor->name,
                            tensor->elements, coffer_dtype_name(dtype));
    chosen->dtype = dtype;
    chosen->as_is = chosen->decoded = false;
    return COFFER_OK;
}

coffer_status coffer__quantize_choose(coffer__chosen_tensor *chosen, const coffer_mcf_quantize_opts *opts,
                                      coffer_dtype dtype, coffer_error *err)
{
    if (dtype == COFFER_DTYPE_NONE)
        return COFFER_OK;
    if (!coffer_dtype_is_quantized(dtype))
        return cast(chosen, opts, dtype, err);
    return quantize_can(opts, chosen) ? quantize(chosen, opts, dtype, err) : COFFER_OK;
}

bool coffer__quantize_is_free(const coffer_mcf_quantize_opts *opts, const coffer__chosen_tensor *chosen)
{
    return !quantize_rule_for(opts, chosen->tensor->name) && quantize_can(opts, chosen);
}

/* A glob that nothing matches is a misspelled name. */
static coffer_status check_globs(const char *const *globs, size_t count, const coffer__selection *selection,
                                 coffer_error *err)
{
    for (size_t i = 0; i < count; i++) {
        size_t found = 0;
        while (globs[i] && found < selection->count &&
               !matches_any(&globs[i], 1, selection->items[found].tensor->name))
            found++;
        if (globs[i] && found == selection->count)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "no tensor name matches \"%s\"", globs[i]);
    }
    return COFFER_OK;
}

coffer_status coffer__quantize_plan(coffer__selection *selection, const coffer_mcf_quantize_opts *opts,
                                    coffer_error *err)
{
    coffer_status status = check_globs(opts->include, opts->include_count, selection, err);
    for (size_t i = 0; !status && i < opts->rule_count; i++)
        status = check_globs(&opts->rules[i].glob, 1, selection, err);
    coffer__quantize_model model = coffer__quantize_model_of(selection);
    selection->bytes = 0;
    for (size_t i = 0; !status && i < selection->count; i++) {
        coffer__chosen_tensor *chosen = &selection->items[i];
        const coffer_mcf_quantize_rule *rule = quantize_rule_for(opts, chosen->tensor->name);
        /* Norms and biases are small, and runtimes expect them in float32: only a rule for them changes them.
         */
        if (rule && (rule->glob || chosen->tensor->rank >= 2))
            status = coffer__quantize_choose(chosen, opts, rule->dtype, err);
        else if (!rule && opts->preset)
            status = coffer__quantize_choose(
                chosen, opts, coffer__quantize_preset_type(opts->preset, chosen->tensor->name, &model), err);
        selection->bytes += chosen->size;
    }
    return status;
}
