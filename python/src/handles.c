/* The base types: Handle, which reads a file and can be closed, and Writer, which ends with commit or
 * discard. */
#include "core.h"

/* ---- Handles ---- */

bool core_handle_is_new(PyObject *object)
{
    if (!((core_handle *)object)->handle)
        return true;
    PyErr_SetString(PyExc_ValueError, "the file was already opened");
    return false;
}

int core_handle_init(PyObject *object, PyObject *input, const core_handle_acts *acts, const void *opts)
{
    core_handle *self = (core_handle *)object;
    self->state = core_state_of(object);
    core_source *source = core_as_source(self->state, input);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    void *handle = NULL;
    if (!source || !core_handle_is_new(object))
        return -1;
    Py_XDECREF(self->source); /* of an attempt that failed */
    Py_XDECREF(self->path);
    self->source = Py_NewRef(input);
    self->path = Py_XNewRef(source->path);
    self->release = acts->release;
    Py_BEGIN_ALLOW_THREADS
    status = acts->open(&handle, source->source, opts, &err);
    Py_END_ALLOW_THREADS
    self->handle = status ? NULL : handle;
    if (status)
        core_handle_fail(object, &err);
    return status ? -1 : 0;
}

void *core_handle_open(PyObject *object)
{
    core_handle *self = (core_handle *)object;
    if (self->handle && !self->closed)
        return self->handle;
    core_raise_closed();
    return NULL;
}

void *core_handle_made(PyObject *object)
{
    if (!((core_handle *)object)->handle)
        core_raise_closed();
    return ((core_handle *)object)->handle;
}

PyObject *core_handle_fail(PyObject *object, const coffer_error *err)
{
    core_handle *self = (core_handle *)object;
    return core_raise(self->state, err, self->path);
}

static PyObject *handle_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    ((core_handle *)object)->closed = true;
    Py_RETURN_NONE;
}

static PyObject *handle_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((core_handle *)object)->closed);
}

void core_handle_dealloc(PyObject *object)
{
    core_handle *self = (core_handle *)object;
    if (self->handle)
        self->release(self->handle);
    Py_XDECREF(self->source);
    Py_XDECREF(self->path);
    core_free_object(object);
}

static PyMethodDef handle_methods[] = {
    { "close", handle_close, METH_NOARGS, "Closes the file; arrays that were taken from it stay valid." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef handle_members[] = {
    { "closed", handle_closed, NULL, "Whether close() was called.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot handle_slots[] = {
    { Py_tp_dealloc, core_handle_dealloc },
    { Py_tp_methods, handle_methods },
    { Py_tp_getset, handle_members },
    { 0, NULL },
};

/* ---- Writers ---- */

int core_writer_init(PyObject *object, PyObject *path, const core_writer_acts *acts, const void *opts)
{
    core_writer *self = (core_writer *)object;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    void *writer = NULL;
    if (self->path) {
        PyErr_SetString(PyExc_ValueError, "the writer was already opened");
        return -1;
    }
    PyObject *bytes = core_path(path);
    self->path = bytes ? PyUnicode_DecodeFSDefault(PyBytes_AsString(bytes)) : NULL;
    if (!self->path) {
        Py_XDECREF(bytes);
        return -1;
    }
    self->acts = acts;
    Py_BEGIN_ALLOW_THREADS
    status = acts->create(&writer, PyBytes_AsString(bytes), opts, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(bytes);
    self->writer = status ? NULL : writer;
    if (status)
        core_raise(core_state_of(object), &err, self->path);
    return status ? -1 : 0;
}

void *core_writer_open(PyObject *object)
{
    void *writer = ((core_writer *)object)->writer;
    if (!writer)
        PyErr_SetString(PyExc_ValueError, "the writer is closed");
    return writer;
}

PyObject *core_writer_done(PyObject *object, coffer_status status, const coffer_error *err)
{
    if (status)
        return core_raise(core_state_of(object), err, ((core_writer *)object)->path);
    Py_RETURN_NONE;
}

static PyObject *writer_commit(PyObject *object, PyObject *unused)
{
    core_writer *self = (core_writer *)object;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    (void)unused;
    void *writer = core_writer_open(object);
    if (!writer)
        return NULL;
    if (!self->acts) {
        PyErr_SetString(PyExc_ValueError, "this writer has no file to commit");
        return NULL;
    }
    self->writer = NULL;
    Py_BEGIN_ALLOW_THREADS
    status = self->acts->commit(writer, &err);
    Py_END_ALLOW_THREADS
    return core_writer_done(object, status, &err);
}

static void drop(core_writer *self)
{
    if (self->writer && self->acts)
        self->acts->discard(self->writer);
    self->writer = NULL;
}

static PyObject *writer_discard(PyObject *object, PyObject *unused)
{
    (void)unused;
    drop((core_writer *)object);
    Py_RETURN_NONE;
}

static void writer_dealloc(PyObject *object)
{
    drop((core_writer *)object);
    Py_XDECREF(((core_writer *)object)->path);
    core_free_object(object);
}

static PyMethodDef writer_methods[] = {
    { "commit", writer_commit, METH_NOARGS, "Makes the file complete, durable and visible." },
    { "discard", writer_discard, METH_NOARGS, "Leaves nothing behind." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot writer_slots[] = {
    { Py_tp_dealloc, writer_dealloc },
    { Py_tp_methods, writer_methods },
    { 0, NULL },
};

int core_add_bases(PyObject *module)
{
    core_state *state = core_state_of_module(module);
    state->handle_type = core_new_type(module, "coffer._core.Handle", sizeof(core_handle),
                                       Py_TPFLAGS_BASETYPE, handle_slots, NULL);
    state->writer_type = core_new_type(module, "coffer._core.Writer", sizeof(core_writer),
                                       Py_TPFLAGS_BASETYPE, writer_slots, NULL);
    return state->handle_type && state->writer_type ? 0 : -1;
}
