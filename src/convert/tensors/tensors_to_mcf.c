/* Files of tensors as MCF models. A folder with a tokenizer beside its tensors is packed (mcf_pack.c). */
#include "base/fail.h"
#include "convert/convert.h"
#include "convert/models/gguf_names.h"
#include "convert/models/mcf_pack.h"
#include "convert/tensors/tensor_selection.h"

#include <inttypes.h>

#define TO_MCF_OPTIONS                                                                                \
    COFFER__TENSOR_OPTIONS, { "align", "SIZE", "align tensors to SIZE: 64, 4096 or 2M", NULL, "64" }, \
        { "no-dedup", NULL, "store equal tensors again instead of sharing them" },                    \
        { "no-checksums", NULL, "write no checksums" },                                               \
    {                                                                                                 \
        "model-name", "NAME", "name of the model", NULL, "that of the file"                           \
    }

const coffer_convert_option coffer__to_mcf_options[] = { TO_MCF_OPTIONS, { NULL, NULL, NULL } };
const coffer_convert_option coffer__gguf_to_mcf_options[] = { TO_MCF_OPTIONS,
                                                              COFFER__GGUF_NAMES_OPTION,
                                                              { NULL, NULL, NULL } };

static coffer_status read_settings(coffer_mcf_pack_opts *out, coffer__tensors_settings *settings,
                                   const coffer__convert_job *job, coffer_error *err)
{
    uint64_t align = 0;
    coffer_status status = coffer__tensors_settings_read(settings, job, err);
    if (!status)
        status = coffer__job_size(&align, job, "align", err);
    if (!status && align > UINT32_MAX)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "alignment %" PRIu64 " exceeds 2 MiB", align);
    out->cast = settings->selection.cast;
    out->include = settings->selection.include;
    out->include_count = settings->selection.include_count;
    out->exclude = settings->selection.exclude;
    out->exclude_count = settings->selection.exclude_count;
    out->align = (uint32_t)align;
    out->no_dedup = coffer__job_has(job, "no-dedup");
    out->no_checksums = coffer__job_has(job, "no-checksums");
    out->overwrite = job->overwrite;
    out->model_name = coffer__job_setting(job, "model-name");
    out->limits = &job->limits;
    out->progress = job->progress;
    out->notes = job->notes;
    return status;
}

coffer_status coffer__to_mcf(const coffer__convert_job *job, coffer_error *err)
{
    coffer__tensors_settings settings = { 0 };
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    coffer__mcf_pack pack = { 0 };
    coffer_tensors *set = NULL;
    coffer_status status = read_settings(&opts, &settings, job, err);
    if (!status)
        status = coffer__mcf_pack_init(&pack, &opts, err);
    if (!status)
        status = coffer__tensors_settings_open(&set, job, err);
    pack.hf_names = coffer__gguf_wants_hf_names(job);
    if (!status)
        status = coffer__mcf_pack_add_set(&pack, set, err);
    if (!status && !pack.info.model_name)
        status = coffer__mcf_pack_name(&pack, coffer_source_name(job->in), false, err);
    if (!status)
        status = coffer__mcf_pack_write(job->out_path, &pack, err);
    coffer__mcf_pack_free(&pack);
    coffer__tensors_settings_free(&settings);
    return status;
}
