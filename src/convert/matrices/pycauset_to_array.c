/* The values of a matrix as a NumPy array, and the same bytes without NumPy's header. */
#include "base/fail.h"
#include "convert/matrices/pycauset_export.h"
#include "outside/arrays/npy.h"

#include <string.h>

static coffer_status write_header(coffer__sink *sink, const coffer__pycauset_export *export,
                                  coffer_error *err)
{
    coffer__buffer header = COFFER__BUFFER_INIT;
    const coffer_pycauset_tile *tile = &export->selection;
    coffer__npy_field field;
    if (!coffer__npy_field_of(&field, export->dtype))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "NumPy has no type for %s",
                            coffer_dtype_name(export->dtype));
    coffer__npy npy = { .fields = &field, .field_count = 1, .item_size = field.size };
    npy.count = tile->rows * tile->cols;
    npy.dimensions = export->is_vector ? 1 : 2;
    npy.shape[0] = export->is_vector ? npy.count : tile->rows;
    npy.shape[1] = tile->cols;
    coffer__npy_put_header(&header, &npy);
    coffer_status status = header.failed ? coffer__fail_no_memory(err, header.len)
                                         : coffer__sink_write(sink, header.data, header.len, err);
    coffer__buffer_free(&header);
    return status;
}

static coffer_status write_values(coffer__sink *sink, coffer__pycauset_export *export, coffer_error *err)
{
    size_t size = coffer_dtype_size(export->dtype);
    for (;;) {
        const uint8_t *values;
        coffer_pycauset_tile tile;
        coffer_status status = coffer__pycauset_export_next(&values, &tile, export, err);
        if (!status && values)
            status = coffer__sink_write(sink, values, (size_t)(tile.rows * tile.cols) * size, err);
        if (status || !values)
            return status;
    }
}

static coffer_status to_array(const coffer__convert_job *job, const coffer__pycauset_target *target,
                              bool has_header, coffer_error *err)
{
    coffer__pycauset_export export;
    coffer__sink *sink = NULL;
    coffer_status status = coffer__pycauset_export_open(&export, job, target, err);
    if (status)
        return status;
    status = coffer__pycauset_export_create(&sink, &export, err);
    if (!status && has_header)
        status = write_header(sink, &export, err);
    if (!status)
        status = write_values(sink, &export, err);
    if (status)
        coffer__sink_discard(sink);
    else
        status = coffer__pycauset_export_commit(sink, &export, err);
    coffer__pycauset_export_close(&export);
    return status;
}

coffer_status coffer__pycauset_to_npy(const coffer__convert_job *job, coffer_error *err)
{
    static const coffer__pycauset_target target = { "NumPy", true, false };
    return to_array(job, &target, true, err);
}

coffer_status coffer__pycauset_to_raw(const coffer__convert_job *job, coffer_error *err)
{
    static const coffer__pycauset_target target = { "a raw file", true, true };
    return to_array(job, &target, false, err);
}
