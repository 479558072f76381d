/* One tensor of a model as an array. */
#include "base/fail.h"
#include "convert/convert.h"
#include "convert/tensors/tensor_out.h"
#include "convert/tensors/tensor_settings.h"

#include <inttypes.h>
#include <string.h>

const coffer_convert_option coffer__tensor_to_array_options[] = {
    { "tensor", "NAME", "name of the tensor; optional when there is only one" },
    { "rows", "A..B", "only these rows" },
    { NULL, NULL, NULL },
};

static coffer_status choose_tensor(coffer__tensor_out *out, const coffer__convert_job *job, coffer_error *err)
{
    const char *name = coffer__job_setting(job, "tensor");
    if (name)
        out->index = coffer_tensors_find(out->set, name);
    if (name && out->index == SIZE_MAX)
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                            "no tensor \"%s\" among the %zu tensors", name, coffer_tensors_count(out->set));
    if (!name && coffer_tensors_count(out->set) != 1)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the file has %zu tensors: choose one with the option \"tensor\"",
                            coffer_tensors_count(out->set));
    return COFFER_OK;
}

static coffer_status choose_rows(coffer__tensor_out *out, const coffer__convert_job *job, coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(out->set, out->index);
    uint64_t rows = coffer__tensor_rows(tensor), begin = 0, end = rows;
    coffer_status status = coffer__job_range(&begin, &end, job, "rows", err);
    if (status)
        return status;
    if (end > rows && end != UINT64_MAX)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "rows %" PRIu64 "..%" PRIu64 " of tensor \"%s\", which has %" PRIu64, begin, end,
                            tensor->name, rows);
    end = end < rows ? end : rows;
    out->first = begin < end ? begin : end;
    out->row_count = end - out->first;
    return COFFER_OK;
}

coffer_status coffer__tensor_to_array(const coffer__convert_job *job, coffer_error *err)
{
    coffer_tensors *set = NULL;
    coffer_status status = coffer__tensor_settings_open(&set, job, err);
    if (status)
        return status;
    coffer__tensor_out out = { .set = set, .path = job->out_path, .replace = job->overwrite };
    out.as = strcmp(job->to, "npy") == 0 ? COFFER__TENSOR_NPY : COFFER__TENSOR_CSV;
    if (!(status = choose_tensor(&out, job, err)) && !(status = choose_rows(&out, job, err))) {
        const coffer_tensor *tensor = coffer_tensors_at(set, out.index);
        bool plain = coffer_dtype_size(tensor->dtype) > 0;
        out.dtype = plain ? coffer__tensor_written_as(out.as, tensor->dtype) : COFFER_DTYPE_F32;
        status = coffer__tensor_write(&out, job->progress, err);
    }
    coffer_tensors_close(set);
    return status;
}
