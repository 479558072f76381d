/* The settings that all conversions of tensors have in common, and opening their input. */
#ifndef COFFER_CONVERT_TENSOR_SETTINGS_H
#define COFFER_CONVERT_TENSOR_SETTINGS_H

#include "convert/convert.h"
#include "convert/tensors/tensor_selection.h"

/* One text a line, for the tables of conversions. */
#define COFFER__TENSOR_OPTIONS                                                                    \
    { "cast", "TYPE", "convert floats of other types to this one", "keep|f16|bf16|f32", "keep" }, \
        { "include", "GLOB", "only tensors whose name matches" },                                 \
    {                                                                                             \
        "exclude", "GLOB", "leave out tensors whose name matches"                                 \
    }

typedef struct coffer__tensors_settings {
    coffer__selection_opts selection;
    uint64_t shard_size; /* 0 = one file */
    const char **globs;  /* memory of include and exclude */
} coffer__tensors_settings;

/* "include" and "exclude" may be there several times. */
coffer_status coffer__tensors_settings_read(coffer__tensors_settings *out, const coffer__convert_job *job,
                                            coffer_error *err);
void coffer__tensors_settings_free(coffer__tensors_settings *settings);
/* "4096", "5GB" (powers of ten), "2MiB", "64K" (powers of two). Untouched when the setting is not there. */
coffer_status coffer__job_size(uint64_t *out, const coffer__convert_job *job, const char *name,
                               coffer_error *err);

/* The input of the job as a set of tensors. It is read, not mapped: pages of a mapping would count as memory
 * of ours. */
coffer_status coffer__tensors_settings_open(coffer_tensors **out, const coffer__convert_job *job,
                                            coffer_error *err);

#endif
