/* Code that all writers share: a path, an open state, and two ways to end. */
#include "core.h"

PyObject *core_writer_begin(PyObject *object, PyObject *path, coffer_status (*commit)(void *, coffer_error *),
                            void (*discard)(void *))
{
    core_writer *self = (core_writer *)object;
    if (self->path) {
        PyErr_SetString(PyExc_ValueError, "the writer was already opened");
        return NULL;
    }
    PyObject *bytes = core_path(path);
    self->path = bytes ? PyUnicode_DecodeFSDefault(PyBytes_AsString(bytes)) : NULL;
    if (!self->path) {
        Py_XDECREF(bytes);
        return NULL;
    }
    self->commit = commit;
    self->discard = discard;
    return bytes;
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

PyObject *core_writer_commit(PyObject *object, PyObject *unused)
{
    core_writer *self = (core_writer *)object;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    (void)unused;
    void *writer = self->commit ? core_writer_open(object) : NULL;
    if (!writer) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "this writer has no file to commit");
        return NULL;
    }
    self->writer = NULL;
    Py_BEGIN_ALLOW_THREADS
    status = self->commit(writer, &err);
    Py_END_ALLOW_THREADS
    return core_writer_done(object, status, &err);
}

PyObject *core_writer_discard(PyObject *object, PyObject *unused)
{
    core_writer *self = (core_writer *)object;
    (void)unused;
    if (self->writer && self->discard)
        self->discard(self->writer);
    self->writer = NULL;
    Py_RETURN_NONE;
}

void core_writer_dealloc(PyObject *object)
{
    core_writer *self = (core_writer *)object;
    if (self->writer && self->discard)
        self->discard(self->writer);
    Py_XDECREF(self->path);
    core_free_object(object);
}
