#include "convert/tensors/tensor_settings.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/quantity.h"
#include "io/source_private.h"

#include <string.h>

static size_t collect(const char **out, const coffer__convert_job *job, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < job->setting_count; i++) {
        if (strcmp(job->settings[i].name, name) == 0)
            out[count++] = job->settings[i].value;
    }
    return count;
}

coffer_status coffer__tensors_settings_read(coffer__tensors_settings *out, const coffer__convert_job *job,
                                            coffer_error *err)
{
    const char *cast = coffer__job_setting(job, "cast");
    coffer_status status = cast ? coffer__selection_cast(&out->selection.cast, cast, err) : COFFER_OK;
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
