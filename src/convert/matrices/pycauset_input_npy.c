/* Rows from a NumPy array, in a file or an archive, and from a file of raw elements. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/matrices/pycauset_input.h"
#include "convert/matrices/pycauset_values.h"
#include "outside/arrays/npy.h"

#include <inttypes.h>
#include <string.h>

static coffer_status fail_type(const coffer__npy *npy, coffer_error *err)
{
    const coffer__npy_field *field = &npy->fields[0];
    if (npy->structured)
        return coffer__fail(
            err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
            "an array of items with %zu fields; a matrix has numbers: save one field, a[\"%s\"]",
            npy->field_count, npy->field_count ? npy->fields[0].name : "");
    if (field->kind == 'f' || field->kind == 'c')
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "elements of type %c%" PRIu64 "; the widest that a matrix has is %s", field->kind,
                            field->size,
                            field->kind == 'f' ? "f8: save a.astype(\"f8\")" : "c16: a.astype(\"c16\")");
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "elements of type %c%" PRIu64 " are not numbers", field->kind, field->size);
}

static coffer_status take_shape(coffer__pycauset_input *out, uint64_t *matrix, const coffer__npy *npy,
                                const coffer__convert_job *job, coffer_error *err)
{
    bool reshaped = coffer__job_has(job, "rows") || coffer__job_has(job, "cols");
    if (reshaped && npy->fortran_order && npy->dimensions > 1)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "an array in Fortran order keeps its shape; save a.reshape(...) instead");
    if (reshaped)
        return coffer__pycauset_reshape(out, npy->count, job, err);
    if (npy->dimensions > 2) {
        if (npy->fortran_order)
            return coffer__fail(
                err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                "an array of %zu dimensions in Fortran order; save numpy.ascontiguousarray(a)",
                npy->dimensions);
        out->rows = npy->shape[npy->dimensions - 2];
        out->cols = npy->shape[npy->dimensions - 1];
        return coffer__pycauset_slice(matrix, npy->shape, npy->dimensions, job, err);
    }
    if (coffer__job_has(job, "slice"))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "--slice is for arrays of three dimensions and more, this has %zu",
                            npy->dimensions);
    out->is_vector = npy->dimensions == 1;
    out->rows = npy->dimensions > 0 ? npy->shape[0] : 1;
    out->cols = npy->dimensions > 1 ? npy->shape[1] : 1;
    return COFFER_OK;
}

static coffer_status take_array(coffer__pycauset_input *out, coffer__pycauset_elements *elements,
                                const coffer__npy *npy, const coffer__convert_job *job, coffer_error *err)
{
    memset(out, 0, sizeof *out);
    out->dtype = npy->structured ? COFFER_DTYPE_NONE : coffer__npy_dtype(&npy->fields[0]);
    if (out->dtype == COFFER_DTYPE_NONE)
        return fail_type(npy, err);
    uint64_t matrix = 0;
    coffer_status status = take_shape(out, &matrix, npy, job, err);
    if (status)
        return status;
    /* The header was read with the whole size, so no product overflows. */
    elements->offset = npy->data_offset + matrix * out->rows * out->cols * npy->item_size;
    elements->big_endian = npy->fields[0].big_endian;
    elements->by_columns = npy->fortran_order && !out->is_vector;
    return COFFER_OK;
}

coffer_status coffer__pycauset_input_npy(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err)
{
    coffer__pycauset_elements elements = { .src = job->in };
    coffer__npy npy;
    coffer_status status = coffer__npy_read(&npy, job->in, err);
    if (status)
        return status;
    status = take_array(out, &elements, &npy, job, err);
    if (!status)
        status = coffer__pycauset_input_elements(out, &elements, &job->limits, err);
    coffer__npy_free(&npy);
    return status;
}

/* ---- Archives ---- */

typedef struct archive {
    coffer__npz npz;
    coffer_source *member;
} archive;

static void close_archive(void *owner)
{
    archive *held = owner;
    coffer_source_close(held->member);
    coffer__npz_close(&held->npz);
    coffer__free(held);
}

static coffer_status choose_member(size_t *out, const coffer__npz *npz, const coffer__convert_job *job,
                                   coffer_error *err)
{
    const char *name = coffer__job_setting(job, "member");
    coffer__buffer names = COFFER__BUFFER_INIT;
    *out = name ? coffer__npz_find(npz, name) : 0;
    if (*out < npz->count && (name || npz->count == 1))
        return COFFER_OK;
    for (size_t i = 0; i < npz->count && names.len < 120; i++)
        coffer__buffer_printf(&names, "%s%s", i ? ", " : "", npz->arrays[i].name);
    coffer_status status = name ? COFFER_E_NOT_FOUND : COFFER_E_INVALID_ARGUMENT;
    if (npz->count == 0)
        coffer__fail(err, status = COFFER_E_MISSING, COFFER_OFFSET_NONE, "no array in the archive");
    else if (name)
        coffer__fail(err, status, COFFER_OFFSET_NONE, "no array \"%s\" in the archive; there are %s", name,
                     coffer__buffer_text(&names));
    else
        coffer__fail(err, status, COFFER_OFFSET_NONE,
                     "%zu arrays in the archive; choose one with --member: %s", npz->count,
                     coffer__buffer_text(&names));
    coffer__buffer_free(&names);
    return status;
}

coffer_status coffer__pycauset_input_npz(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err)
{
    archive *held = coffer__calloc(1, sizeof *held);
    coffer__pycauset_elements elements = { .owner = held, .close_owner = close_archive };
    size_t index = 0;
    if (!held)
        return coffer__fail_no_memory(err, sizeof *held);
    coffer_status status = coffer__npz_open(&held->npz, job->in, &job->limits, err);
    if (!status)
        status = choose_member(&index, &held->npz, job, err);
    if (!status)
        status = take_array(out, &elements, &held->npz.arrays[index].npy, job, err);
    if (!status)
        status = coffer__npz_source(&held->member, &held->npz, index,
                                    elements.by_columns ? COFFER__ZIP_RANDOM : COFFER__ZIP_FORWARD, err);
    if (!status) {
        elements.src = held->member;
        status = coffer__pycauset_input_elements(out, &elements, &job->limits, err);
    }
    if (status)
        close_archive(held);
    return status;
}

/* ---- Raw elements ---- */

coffer_status coffer__pycauset_input_raw(coffer__pycauset_input *out, const coffer__convert_job *job,
                                         coffer_error *err)
{
    coffer__pycauset_elements elements = { .src = job->in };
    coffer_dtype dtype = COFFER_DTYPE_NONE;
    uint64_t size = coffer_source_size(job->in);
    memset(out, 0, sizeof *out);
    coffer_status status = coffer__pycauset_dtype_setting(&dtype, job, err);
    if (!status)
        status = coffer__job_number(&elements.offset, job, "offset", size, err);
    if (status)
        return status;
    if (dtype == COFFER_DTYPE_NONE)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "raw bytes need --dtype for the element type and --cols for the number per row");
    out->dtype = coffer__pycauset_memory_dtype(dtype);
    uint64_t element = coffer_dtype_size(out->dtype), bytes = size - elements.offset;
    if (bytes % element != 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "%" PRIu64 " bytes are not a multiple of the element size %" PRIu64, bytes,
                            element);
    out->rows = bytes / element;
    out->cols = 1;
    out->is_vector = true;
    if (coffer__job_has(job, "rows") || coffer__job_has(job, "cols"))
        status = coffer__pycauset_reshape(out, bytes / element, job, err);
    if (!status)
        status = coffer__pycauset_input_elements(out, &elements, &job->limits, err);
    return status;
}
