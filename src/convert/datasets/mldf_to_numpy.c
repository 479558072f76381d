/* Fields of a training set as NumPy arrays: one dimension more than their values, the samples. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/datasets/dataset_input.h"
#include "convert/datasets/mldf_export.h"
#include "outside/archives/zip.h"
#include "outside/arrays/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COLUMN_PART 8192 /* scalars read at a time */
#define PROGRESS_STEP 1024

typedef struct numpy_export {
    coffer__mldf_export common;
    coffer__zip_writer zip;
    bool is_archive;
    uint64_t done; /* values, for the progress */
} numpy_export;

static coffer_status put(numpy_export *export, const void *bytes, size_t len, coffer_error *err)
{
    return export->is_archive ? coffer__zip_put(&export->zip, bytes, len, err)
                              : coffer__sink_write(export->common.sink, bytes, len, err);
}

static coffer_status put_header(numpy_export *export, coffer_dtype dtype, const uint64_t *dims, uint32_t ndim,
                                coffer_error *err)
{
    coffer__npy_field field;
    coffer__npy npy = { .fields = &field, .field_count = 1, .dimensions = ndim + 1u };
    coffer__buffer header = COFFER__BUFFER_INIT;
    if (!coffer__npy_field_of(&field, dtype))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "NumPy has no type %s",
                            coffer_dtype_name(dtype));
    npy.shape[0] = export->common.end - export->common.begin;
    if (ndim)
        memcpy(npy.shape + 1, dims, ndim * sizeof *dims);
    coffer__npy_put_header(&header, &npy);
    coffer_status status =
        header.failed ? coffer__fail_no_memory(err, header.len) : put(export, header.data, header.len, err);
    coffer__buffer_free(&header);
    return status;
}

static coffer_status put_column(numpy_export *export, size_t index, coffer_error *err)
{
    const coffer_mldf_column_opts one_thread = { sizeof one_thread, 1 };
    coffer__mldf_export *common = &export->common;
    bool real = coffer__mldf_export_field(common, index)->kind == COFFER_MLDF_ENTRY_FLOAT;
    uint64_t *numbers = coffer__alloc_array(COLUMN_PART, sizeof *numbers);
    if (!numbers)
        return coffer__fail_no_memory(err, COLUMN_PART * sizeof *numbers);
    coffer_status status = put_header(export, real ? COFFER_DTYPE_F64 : COFFER_DTYPE_I64, NULL, 0, err);
    for (uint64_t at = common->begin; !status && at < common->end;) {
        uint64_t first = coffer__mldf_export_sample(common, at), part = 1;
        /* Neighbors are read together. */
        while (part < COLUMN_PART && at + part < common->end &&
               coffer__mldf_export_sample(common, at + part) == first + part)
            part++;
        status = coffer_mldf_read_column(numbers, common->set, common->fields[index], first, part,
                                         &one_thread, err);
        if (!status)
            status = put(export, numbers, (size_t)part * sizeof *numbers, err);
        at += part;
    }
    coffer__free(numbers);
    return status;
}

static coffer_status fail_shape(const coffer__mldf_export *common, size_t index, uint64_t sample,
                                const char *what, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "field \"%s\": sample %" PRIu64 " %s, and a NumPy array has one shape: "
                        "choose other fields with --fields",
                        coffer__mldf_export_field(common, index)->name, sample, what);
}

/* One value, of the same shape as the first. */
static coffer_status put_array_value(numpy_export *export, size_t index, uint64_t sample,
                                     const uint64_t *dims, coffer_error *err)
{
    coffer__mldf_export *common = &export->common;
    coffer_status status = coffer__mldf_export_read(common, sample, index, err);
    if (status)
        return status;
    if (!common->entry.present)
        return fail_shape(common, index, sample, "has no value", err);
    if (!common->has_dims)
        return fail_shape(common, index, sample, "is not an array", err);
    if (memcmp(dims, common->dims, common->ndim * sizeof *dims) != 0)
        return fail_shape(common, index, sample, "has another shape", err);
    status = put(export, common->bytes.data, common->bytes.size, err);
    if (!status && export->done++ % PROGRESS_STEP == 0)
        status = coffer__job_progress(common->job, export->done,
                                      (common->end - common->begin) * common->field_count, err);
    return status;
}

static coffer_status put_arrays(numpy_export *export, size_t index, coffer_error *err)
{
    coffer__mldf_export *common = &export->common;
    const coffer_mldf_field *field = coffer__mldf_export_field(common, index);
    uint64_t dims[COFFER_MLDF_MAX_DIMS] = { 0 };
    if (common->begin == common->end) {
        if (!coffer__dataset_is_array(field->type))
            return fail_shape(common, index, common->begin, "does not exist", err);
        return put_header(export, field->dtype, field->dims, field->ndim, err);
    }
    uint64_t first = coffer__mldf_export_sample(common, common->begin);
    coffer_status status = coffer__mldf_export_read(common, first, index, err);
    if (status)
        return status;
    if (!common->entry.present || !common->has_dims)
        return fail_shape(common, index, first, common->entry.present ? "is not an array" : "has no value",
                          err);
    memcpy(dims, common->dims, sizeof dims);
    status = put_header(export, common->dtype, dims, common->ndim, err);
    for (uint64_t i = common->begin; !status && i < common->end; i++)
        status = put_array_value(export, index, coffer__mldf_export_sample(common, i), dims, err);
    return status;
}

static coffer_status put_field(numpy_export *export, size_t index, coffer_error *err)
{
    coffer_mldf_entry_kind kind = coffer__mldf_export_field(&export->common, index)->kind;
    return kind == COFFER_MLDF_ENTRY_INT || kind == COFFER_MLDF_ENTRY_FLOAT ? put_column(export, index, err)
                                                                            : put_arrays(export, index, err);
}

coffer_status coffer__mldf_to_npy(const coffer__convert_job *job, coffer_error *err)
{
    numpy_export export = { 0 };
    coffer_status status = coffer__mldf_export_open(&export.common, job, err);
    if (!status && export.common.field_count != 1)
        status =
            coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                         "%zu fields: a .npy file has one array; choose a field with --fields, or write .npz",
                         export.common.field_count);
    if (!status)
        status = coffer__mldf_export_create(&export.common, err);
    if (!status)
        status = put_field(&export, 0, err);
    if (!status)
        status = coffer__mldf_export_commit(&export.common, err);
    coffer__mldf_export_close(&export.common);
    return status;
}

static coffer_status put_member(numpy_export *export, size_t index, coffer_error *err)
{
    char name[80];
    snprintf(name, sizeof name, "%s.npy", coffer__mldf_export_field(&export->common, index)->name);
    coffer_status status = coffer__zip_begin(&export->zip, name, err);
    if (!status)
        status = put_field(export, index, err);
    return status ? status : coffer__zip_end(&export->zip, err);
}

coffer_status coffer__mldf_to_npz(const coffer__convert_job *job, coffer_error *err)
{
    numpy_export export = { .is_archive = true };
    coffer_status status = coffer__mldf_export_open(&export.common, job, err);
    if (!status)
        status = coffer__mldf_export_create(&export.common, err);
    coffer__zip_writer_init(&export.zip, export.common.sink);
    for (size_t i = 0; !status && i < export.common.field_count; i++)
        status = put_member(&export, i, err);
    if (!status)
        status = coffer__zip_finish(&export.zip, err);
    if (!status)
        status = coffer__mldf_export_commit(&export.common, err);
    coffer__zip_writer_free(&export.zip);
    coffer__mldf_export_close(&export.common);
    return status;
}
