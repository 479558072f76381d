/* McfWriter: writes a model file tensor by tensor. */
#include "core.h"

#include <string.h>

enum { MOST_DIMS = 32 };

static coffer_status create(void **out, const char *path, const void *opts, coffer_error *err)
{
    coffer_mcf_writer *writer = NULL;
    coffer_status status = coffer_mcf_writer_create(&writer, path, opts, err);
    *out = writer;
    return status;
}

static coffer_status commit(void *writer, coffer_error *err)
{
    return coffer_mcf_writer_commit(writer, err);
}

static void discard(void *writer)
{
    coffer_mcf_writer_discard(writer);
}

/* McfWriter(path, overwrite, align) */
static int writer_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const core_writer_acts acts = { create, commit, discard };
    coffer_mcf_writer_opts opts = COFFER_MCF_WRITER_OPTS_INIT;
    PyObject *path;
    int overwrite;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OpI", &path, &overwrite, &opts.align))
        return -1;
    opts.overwrite = overwrite;
    return core_writer_init(object, path, &acts, &opts);
}

/* set_info(model name or None, {key: text}) */
static PyObject *writer_set_info(PyObject *object, PyObject *args)
{
    coffer_mcf_writer *writer = core_writer_open(object);
    coffer_mcf_model_info info = COFFER_MCF_MODEL_INFO_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    PyObject *map, *key, *value;
    Py_ssize_t at = 0;
    if (!writer || !PyArg_ParseTuple(args, "zO!", &info.model_name, &PyDict_Type, &map))
        return NULL;
    coffer_mcf_kv *kvs = PyMem_Calloc((size_t)PyDict_Size(map) + 1, sizeof *kvs);
    if (!kvs)
        return PyErr_NoMemory();
    while (PyDict_Next(map, &at, &key, &value) && !PyErr_Occurred()) {
        coffer_mcf_kv *kv = &kvs[info.kv_count++];
        Py_ssize_t len = 0;
        coffer_mcf_kv_init(kv, sizeof *kv);
        kv->key = PyUnicode_AsUTF8AndSize(key, NULL);
        kv->text = PyUnicode_AsUTF8AndSize(value, &len);
        kv->text_len = (size_t)len;
    }
    info.kvs = kvs;
    PyObject *result = NULL;
    if (!PyErr_Occurred())
        result = core_writer_done(object, coffer_mcf_writer_set_model_info(writer, &info, &err), &err);
    PyMem_Free(kvs);
    return result;
}

/* add(name, element type, shape, bytes) */
static PyObject *writer_add(PyObject *object, PyObject *args)
{
    coffer_mcf_writer *writer = core_writer_open(object);
    coffer_mcf_new_tensor tensor = COFFER_MCF_NEW_TENSOR_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    uint64_t dims[MOST_DIMS] = { 0 };
    Py_buffer bytes;
    PyObject *shape;
    const char *type;
    Py_ssize_t name_len = 0;
    if (!writer ||
        !PyArg_ParseTuple(args, "s#sO!y*", &tensor.name, &name_len, &type, &PyTuple_Type, &shape, &bytes))
        return NULL;
    tensor.dtype = core_dtype(type);
    if (tensor.dtype == COFFER_DTYPE_NONE || core_dims(dims, MOST_DIMS, shape)) {
        PyBuffer_Release(&bytes);
        return NULL;
    }
    tensor.name_len = (size_t)name_len;
    tensor.rank = (uint32_t)PyTuple_Size(shape);
    tensor.dims = dims;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mcf_writer_begin_tensor(writer, &tensor, &err);
    if (!status)
        status = coffer_mcf_writer_write(writer, bytes.buf, (size_t)bytes.len, &err);
    if (!status)
        status = coffer_mcf_writer_end_tensor(writer, &err);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&bytes);
    return core_writer_done(object, status, &err);
}

static PyObject *writer_add_section(PyObject *object, PyObject *args)
{
    coffer_mcf_writer *writer = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    Py_buffer bytes;
    const char *name;
    if (!writer || !PyArg_ParseTuple(args, "sy*", &name, &bytes))
        return NULL;
    uint32_t type = coffer_mcf_section_by_name(name);
    coffer_status status = COFFER_OK;
    if (type)
        status = coffer_mcf_writer_add_section(writer, type, 1, bytes.buf, (size_t)bytes.len, &err);
    else
        PyErr_Format(PyExc_ValueError, "unknown section '%s'; config.json is one", name);
    PyBuffer_Release(&bytes);
    return type ? core_writer_done(object, status, &err) : NULL;
}

static PyMethodDef writer_methods[] = {
    { "set_info", writer_set_info, METH_VARARGS, NULL },
    { "add", writer_add, METH_VARARGS, NULL },
    { "add_section", writer_add_section, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_mcf_writer(PyObject *module)
{
    return core_add_writer(module, "coffer._core.McfWriter", sizeof(core_writer), writer_init,
                           writer_methods);
}
