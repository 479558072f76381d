/* MscanWriter: writes a scan, or appends to one. */
#include "core.h"

#include <string.h>

/* opts : NULL = append to the scan. */
static coffer_status create(void **out, const char *path, const void *opts, coffer_error *err)
{
    coffer_mscan_writer *writer = NULL;
    coffer_status status = opts ? coffer_mscan_writer_create(&writer, path, opts, err)
                                : coffer_mscan_writer_append_to(&writer, path, NULL, err);
    *out = writer;
    return status;
}

static coffer_status commit(void *writer, coffer_error *err)
{
    return coffer_mscan_writer_commit(writer, err);
}

static void discard(void *writer)
{
    coffer_mscan_writer_discard(writer);
}

/* MscanWriter(path, append, overwrite, model_name, block_size, activation scale or None, grad_norm scale or
 * None, extra JSON or None); a scale is (scale, offset). */
static int writer_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const core_writer_acts acts = { create, commit, discard };
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_mscan_quantization scales[2] = { COFFER_MSCAN_QUANTIZATION_INIT, COFFER_MSCAN_QUANTIZATION_INIT };
    PyObject *path, *given[2];
    int append, overwrite;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OppzIOOz", &path, &append, &overwrite, &opts.model_name, &opts.block_size,
                          &given[0], &given[1], &opts.extra_json))
        return -1;
    for (int i = 0; i < 2; i++)
        if (given[i] != Py_None && !PyArg_ParseTuple(given[i], "dd", &scales[i].scale, &scales[i].offset))
            return -1;
    opts.overwrite = overwrite;
    opts.activation = given[0] == Py_None ? NULL : &scales[0];
    opts.grad_norm = given[1] == Py_None ? NULL : &scales[1];
    return core_writer_init(object, path, &acts, append ? NULL : &opts);
}

static PyObject *writer_add_param(PyObject *object, PyObject *args)
{
    coffer_mscan_writer *writer = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    const char *name;
    uint16_t id = 0;
    if (!writer || !PyArg_ParseTuple(args, "s", &name))
        return NULL;
    if (coffer_mscan_writer_add_param(&id, writer, name, &err))
        return core_writer_done(object, err.status, &err);
    return PyLong_FromLong(id);
}

static PyObject *writer_begin_sequence(PyObject *object, PyObject *args)
{
    coffer_mscan_writer *writer = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    const char *source;
    Py_ssize_t len = 0;
    if (!writer || !PyArg_ParseTuple(args, "z#", &source, &len))
        return NULL;
    return core_writer_done(object, coffer_mscan_writer_begin_sequence_len(writer, source, (size_t)len, &err),
                            &err);
}

/* put_records(bytes): packed records of 12 bytes, little-endian. */
static PyObject *writer_put_records(PyObject *object, PyObject *args)
{
    coffer_mscan_writer *writer = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    Py_buffer bytes;
    if (!writer || !PyArg_ParseTuple(args, "y*", &bytes))
        return NULL;
    size_t count = (size_t)bytes.len / sizeof(coffer_mscan_record);
    coffer_mscan_record *records = PyMem_Malloc((size_t)bytes.len + 1);
    if (records)
        memcpy(records, bytes.buf, (size_t)bytes.len);
    PyBuffer_Release(&bytes);
    if (!records)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mscan_writer_put_records(writer, records, count, &err);
    Py_END_ALLOW_THREADS
    PyMem_Free(records);
    return core_writer_done(object, status, &err);
}

static PyObject *writer_end_sequence(PyObject *object, PyObject *args)
{
    coffer_mscan_writer *writer = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    unsigned long long tokens;
    if (!writer || !PyArg_ParseTuple(args, "K", &tokens))
        return NULL;
    return core_writer_done(object, coffer_mscan_writer_end_sequence(writer, tokens, &err), &err);
}

static PyMethodDef writer_methods[] = {
    { "add_param", writer_add_param, METH_VARARGS, NULL },
    { "begin_sequence", writer_begin_sequence, METH_VARARGS, NULL },
    { "put_records", writer_put_records, METH_VARARGS, NULL },
    { "end_sequence", writer_end_sequence, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_mscan_writer(PyObject *module)
{
    return core_add_writer(module, "coffer._core.MscanWriter", sizeof(core_writer), writer_init,
                           writer_methods);
}
