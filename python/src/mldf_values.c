/* Values of a training set that are not numbers: bytes, text, arrays, tokens, and the entries that describe
 * them. */
#include "core.h"

/* The bytes of a value: a View where the file has them as they are, else bytes; None when it is absent. */
static PyObject *value_bytes(PyObject *object, const coffer_mldf *set, uint64_t sample, size_t field)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    size_t size = 0;
    const uint8_t *data = coffer_mldf_view(&size, set, sample, field);
    if (data)
        return core_view(((core_handle *)object)->state, object, data, size);
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_read(&bytes, &entry, set, sample, field, &err);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (status)
        core_handle_fail(object, &err);
    else if (!entry.present)
        result = Py_NewRef(Py_None);
    else
        result = PyBytes_FromStringAndSize((const char *)bytes.data, (Py_ssize_t)bytes.size);
    coffer_free(bytes.data);
    return result;
}

PyObject *core_mldf_text(PyObject *object, const coffer_mldf *set, uint64_t sample, size_t field)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_status status;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_get_text(&bytes, set, sample, field, &err);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (!status)
        result = PyUnicode_DecodeUTF8((const char *)bytes.data, (Py_ssize_t)bytes.size, NULL);
    else if (status == COFFER_E_MISSING)
        result = Py_NewRef(Py_None);
    else
        core_handle_fail(object, &err);
    coffer_free(bytes.data);
    return result;
}

PyObject *core_mldf_bytes(PyObject *object, PyObject *args)
{
    uint64_t sample = 0;
    size_t field = 0;
    const coffer_mldf *set = core_mldf_place(&sample, &field, object, args);
    return set ? value_bytes(object, set, sample, field) : NULL;
}

/* The entry of a value in its row, as a dict; None when it is absent. */
PyObject *core_mldf_entry(PyObject *object, PyObject *args)
{
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t sample = 0;
    size_t field = 0;
    const coffer_mldf *set = core_mldf_place(&sample, &field, object, args);
    if (!set)
        return NULL;
    if (coffer_mldf_entry_at(&entry, set, sample, field, &err))
        return core_handle_fail(object, &err);
    if (!entry.present)
        Py_RETURN_NONE;
    return Py_BuildValue("{s:K,s:I,s:H,s:H,s:B,s:H,s:I,s:I,s:B,s:B,s:H,s:B}", "offset",
                         (unsigned long long)entry.offset, "size", entry.size, "height", entry.height,
                         "width", entry.width, "mode", entry.mode, "channels", entry.channels, "num_samples",
                         entry.num_samples, "sample_rate", entry.sample_rate, "bit_depth", entry.bit_depth,
                         "codec", entry.codec, "num_tokens", entry.num_tokens, "encoding", entry.encoding);
}

/* (bytes, shape, element type) of an array; None when it is absent. */
PyObject *core_mldf_array(PyObject *object, PyObject *args)
{
    core_state *state = ((core_handle *)object)->state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    uint64_t dims[COFFER_MLDF_MAX_DIMS] = { 0 };
    uint64_t sample = 0;
    size_t field = 0;
    coffer_status status;
    const coffer_mldf *set = core_mldf_place(&sample, &field, object, args);
    if (!set)
        return NULL;
    const coffer_mldf_field *described = coffer_mldf_field_at(set, field);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_get_array(&bytes, dims, set, sample, field, &err);
    Py_END_ALLOW_THREADS
    if (status) {
        coffer_free(bytes.data);
        if (status == COFFER_E_MISSING)
            Py_RETURN_NONE;
        return core_handle_fail(object, &err);
    }
    PyObject *block = core_block(state, bytes.data, bytes.size);
    PyObject *shape = block ? core_shape(dims, described->ndim) : NULL;
    if (!shape) {
        Py_XDECREF(block);
        return NULL;
    }
    return Py_BuildValue("(NNs)", block, shape, coffer_dtype_name(described->dtype));
}

/* Token ids as a block of uint32; None when they are absent. */
PyObject *core_mldf_tokens(PyObject *object, PyObject *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    uint64_t sample = 0;
    size_t field = 0;
    coffer_status status;
    const coffer_mldf *set = core_mldf_place(&sample, &field, object, args);
    if (!set)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_get_tokens(&bytes, set, sample, field, &err);
    Py_END_ALLOW_THREADS
    if (!status)
        return core_block(((core_handle *)object)->state, bytes.data, bytes.size);
    coffer_free(bytes.data);
    if (status == COFFER_E_MISSING)
        Py_RETURN_NONE;
    return core_handle_fail(object, &err);
}
