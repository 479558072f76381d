/* Changes to training sets in one commit: deleted samples, replaced values, joined sets. */
#include "core.h"

/* mldf_delete(path, samples as uint64, key or None) */
static PyObject *delete_samples(PyObject *module, PyObject *args)
{
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer samples;
    PyObject *path, *key;
    if (!PyArg_ParseTuple(args, "Oy*O", &path, &samples, &key))
        return NULL;
    opts.key = core_key(key);
    PyObject *bytes = PyErr_Occurred() ? NULL : core_path(path);
    if (bytes) {
        Py_BEGIN_ALLOW_THREADS
        status = coffer_mldf_update_delete(PyBytes_AsString(bytes), samples.buf,
                                           (size_t)samples.len / sizeof(uint64_t), &opts, &err);
        Py_END_ALLOW_THREADS
        if (status)
            core_raise(core_state_of_module(module), &err, path);
    }
    Py_XDECREF(bytes);
    PyBuffer_Release(&samples);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* A writer without a file, over which values are replaced. */
static core_writer *empty_writer(PyObject *module)
{
    PyObject *type = PyObject_GetAttrString(module, "MldfWriter");
    if (!type)
        return NULL;
    allocfunc allocate = PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    PyObject *writer = allocate((PyTypeObject *)type, 0);
    Py_DECREF(type);
    return (core_writer *)writer;
}

/* Calls a Python function with a writer, sample and field; it sets the value. */
typedef struct fill_context {
    PyObject *function;
    core_writer *wrapper;
} fill_context;

static coffer_status fill(void *context, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                          coffer_error *err)
{
    fill_context *self = context;
    PyGILState_STATE gil = PyGILState_Ensure();
    self->wrapper->writer = writer;
    PyObject *result = PyObject_CallFunction(self->function, "OKn", self->wrapper, (unsigned long long)sample,
                                             (Py_ssize_t)field);
    self->wrapper->writer = NULL;
    coffer_status status = result ? COFFER_OK : COFFER_E_CANCELLED;
    if (!result && err) {
        coffer_error_init(err);
        err->status = status;
    }
    Py_XDECREF(result);
    PyGILState_Release(gil);
    return status;
}

/* mldf_replace(path, samples as uint64, fields as uint64, function, key or None) */
static PyObject *replace_values(PyObject *module, PyObject *args)
{
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer samples, fields;
    PyObject *path, *function, *key;
    if (!PyArg_ParseTuple(args, "Oy*y*OO", &path, &samples, &fields, &function, &key))
        return NULL;
    opts.key = core_key(key);
    opts.threads = 1;
    if (!PyErr_Occurred() && samples.len != fields.len)
        PyErr_SetString(PyExc_ValueError, "each sample needs one field");
    PyObject *bytes = PyErr_Occurred() ? NULL : core_path(path);
    fill_context context = { function, bytes ? empty_writer(module) : NULL };
    if (context.wrapper) {
        Py_BEGIN_ALLOW_THREADS
        status =
            coffer_mldf_update_replace(PyBytes_AsString(bytes), samples.buf, fields.buf,
                                       (size_t)samples.len / sizeof(uint64_t), fill, &context, &opts, &err);
        Py_END_ALLOW_THREADS
        if (status)
            core_raise(core_state_of_module(module), &err, path);
    }
    Py_XDECREF((PyObject *)context.wrapper);
    Py_XDECREF(bytes);
    PyBuffer_Release(&samples);
    PyBuffer_Release(&fields);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* mldf_concat(out, sets, overwrite, progress) */
static PyObject *concat(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_mldf_concat_opts opts = COFFER_MLDF_CONCAT_OPTS_INIT;
    coffer_mldf_writer_opts write = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *out, *list, *callable;
    int overwrite;
    if (!PyArg_ParseTuple(args, "OO!pO", &out, &PyList_Type, &list, &overwrite, &callable))
        return NULL;
    size_t count = (size_t)PyList_Size(list);
    coffer_mldf **sets = PyMem_Calloc(count + 1, sizeof(coffer_mldf *));
    PyObject *path = sets ? core_path(out) : NULL;
    for (size_t i = 0; path && i < count && !PyErr_Occurred(); i++)
        sets[i] = core_mldf_of(state, PyList_GetItem(list, (Py_ssize_t)i));
    if (path && !PyErr_Occurred()) {
        write.overwrite = overwrite;
        opts.write = &write;
        opts.progress = core_progress_init(&progress, callable);
        Py_BEGIN_ALLOW_THREADS
        status = coffer_mldf_concat(PyBytes_AsString(path), sets, count, &opts, &err);
        Py_END_ALLOW_THREADS
        if (status)
            core_raise(state, &err, err.subject == COFFER_SUBJECT_OUTPUT ? out : NULL);
    }
    PyMem_Free(sets);
    Py_XDECREF(path);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    { "mldf_concat", concat, METH_VARARGS, NULL },
    { "mldf_delete", delete_samples, METH_VARARGS, NULL },
    { "mldf_replace", replace_values, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_mldf_update(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
