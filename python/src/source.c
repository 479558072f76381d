/* Source: a file, memory or a Python file object. View: bytes inside of it, or bytes of its own. */
#include "core.h"

#include <limits.h>
#include <string.h>

/* ---- File objects ---- */

/* Reads [offset, offset + len) with seek and readinto. The GIL makes the two one step: every reader of the
 * object comes through here. */
static bool read_file(PyObject *file, void *out, uint64_t offset, size_t len)
{
    PyObject *sought = PyObject_CallMethod(file, "seek", "K", (unsigned long long)offset);
    Py_XDECREF(sought);
    char *at = out;
    bool good = sought != NULL;
    while (good && len > 0) {
        size_t part = len < PY_SSIZE_T_MAX ? len : PY_SSIZE_T_MAX;
        PyObject *bytes = PyObject_CallMethod(file, "read", "n", (Py_ssize_t)part);
        char *data = NULL;
        Py_ssize_t got = 0;
        good = bytes && PyBytes_AsStringAndSize(bytes, &data, &got) == 0;
        if (good && (got == 0 || (size_t)got > len)) {
            PyErr_SetString(PyExc_OSError, "the file object ended early");
            good = false;
        }
        if (good) {
            memcpy(at, data, (size_t)got);
            at += got;
            len -= (size_t)got;
        }
        Py_XDECREF(bytes);
    }
    return good;
}

static coffer_status read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    bool good = read_file(context, out, offset, len);
    if (!good && err) { /* threads of the library may have called: the exception cannot wait there */
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyObject *text = value ? PyObject_Str(value) : NULL;
        PyObject *utf8 = text ? PyUnicode_AsUTF8String(text) : NULL;
        coffer_error_init(err);
        err->status = COFFER_E_IO;
        err->offset = offset;
        PyOS_snprintf(err->text, sizeof err->text, "reading the file object: %s",
                      utf8 ? PyBytes_AsString(utf8) : "failed");
        Py_XDECREF(utf8);
        Py_XDECREF(text);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        PyErr_Clear();
    }
    PyGILState_Release(gil);
    return good ? COFFER_OK : COFFER_E_IO;
}

static int open_file_object(core_source *self, PyObject *file)
{
    coffer_source_ops ops = COFFER_SOURCE_OPS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    PyObject *size = PyObject_CallMethod(file, "seek", "ii", 0, 2);
    unsigned long long bytes = size ? PyLong_AsUnsignedLongLong(size) : 0;
    Py_XDECREF(size);
    if (PyErr_Occurred())
        return -1;
    ops.read_at = read_at;
    if (coffer_source_new(&self->source, &ops, file, bytes, "file object", &err)) {
        core_raise(core_state_of((PyObject *)self), &err, NULL);
        return -1;
    }
    Py_INCREF(file);
    self->file = file;
    return 0;
}

/* ---- Source ---- */

static int open_path(core_source *self, PyObject *path, const coffer_source_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    PyObject *bytes = core_path(path);
    if (!bytes)
        return -1;
    self->path = PyUnicode_DecodeFSDefault(PyBytes_AsString(bytes));
    Py_BEGIN_ALLOW_THREADS
    status = coffer_source_open(&self->source, PyBytes_AsString(bytes), opts, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(bytes);
    if (status)
        core_raise(core_state_of((PyObject *)self), &err, self->path);
    return status ? -1 : 0;
}

static int open_memory(core_source *self, PyObject *object)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (PyObject_GetBuffer(object, &self->buffer, PyBUF_SIMPLE) != 0)
        return -1;
    self->has_buffer = true;
    if (!coffer_source_from_memory(&self->source, self->buffer.buf, (size_t)self->buffer.len, &err))
        return 0;
    core_raise(core_state_of((PyObject *)self), &err, NULL);
    return -1;
}

static int parse_access(coffer_access *out, const char *name)
{
    static const char *const names[] = { "auto", "mmap", "read", "direct", "copy" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (coffer_access)i;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "access is '%s'; it can be auto, mmap, read, direct or copy", name);
    return -1;
}

static int source_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    core_source *self = (core_source *)object;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    const char *access = "auto";
    PyObject *input;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O|s", &input, &access) || parse_access(&opts.access, access))
        return -1;
    if (self->source) {
        PyErr_SetString(PyExc_RuntimeError, "a source is opened once");
        return -1;
    }
    if (PyUnicode_Check(input) || PyObject_HasAttrString(input, "__fspath__"))
        return open_path(self, input, &opts);
    if (PyObject_CheckBuffer(input))
        return open_memory(self, input);
    if (PyObject_HasAttrString(input, "seek") && PyObject_HasAttrString(input, "read"))
        return open_file_object(self, input);
    PyErr_Format(PyExc_TypeError, "cannot open %R: give a path, bytes or a binary file object", input);
    return -1;
}

static void source_dealloc(PyObject *object)
{
    core_source *self = (core_source *)object;
    if (self->source)
        coffer_source_close(self->source);
    if (self->has_buffer)
        PyBuffer_Release(&self->buffer);
    Py_XDECREF(self->file);
    Py_XDECREF(self->path);
    core_free_object(object);
}

core_source *core_as_source(core_state *state, PyObject *object)
{
    int is = PyObject_IsInstance(object, (PyObject *)state->source_type);
    if (is == 1 && ((core_source *)object)->source)
        return (core_source *)object;
    if (is >= 0)
        PyErr_Format(PyExc_TypeError, "expected an open Source, got %R", object);
    return NULL;
}

/* NULL with an exception before it was opened. */
static coffer_source *opened(PyObject *object)
{
    coffer_source *source = ((core_source *)object)->source;
    if (!source)
        core_raise_closed();
    return source;
}

static PyObject *source_size(PyObject *object, void *unused)
{
    (void)unused;
    return opened(object) ? PyLong_FromUnsignedLongLong(coffer_source_size(opened(object))) : NULL;
}

static PyObject *source_path(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *path = ((core_source *)object)->path;
    return Py_NewRef(path ? path : Py_None);
}

static PyObject *source_interrupted(PyObject *object, void *unused)
{
    (void)unused;
    return opened(object) ? PyBool_FromLong(coffer_source_interrupted_update(opened(object))) : NULL;
}

/* Raises ChangedError when the file was truncated while it was mapped. */
static PyObject *source_intact(PyObject *object, PyObject *unused)
{
    core_source *self = (core_source *)object;
    coffer_error err = COFFER_ERROR_INIT;
    (void)unused;
    if (!opened(object))
        return NULL;
    if (coffer_source_intact(self->source, &err))
        return core_raise(core_state_of(object), &err, self->path);
    Py_RETURN_NONE;
}

static PyObject *source_identify(PyObject *object, PyObject *unused)
{
    core_source *self = (core_source *)object;
    coffer_error err = COFFER_ERROR_INIT;
    const char *kind = NULL;
    coffer_status status;
    (void)unused;
    if (!opened(object))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_convert_kind(&kind, self->source, &err);
    Py_END_ALLOW_THREADS
    return status ? core_raise(core_state_of(object), &err, self->path) : PyUnicode_FromString(kind);
}

/* read(offset, len): bytes, fewer at the end. */
static PyObject *source_read(PyObject *object, PyObject *args)
{
    core_source *self = (core_source *)object;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    unsigned long long offset, len;
    if (!opened(object) || !PyArg_ParseTuple(args, "KK", &offset, &len))
        return NULL;
    uint64_t size = coffer_source_size(self->source), left = offset < size ? size - offset : 0;
    size_t count = (size_t)(len < left ? len : left);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)count);
    char *data = bytes ? PyBytes_AsString(bytes) : NULL;
    if (!data)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_source_read_at(data, self->source, count ? offset : 0, count, &err);
    Py_END_ALLOW_THREADS
    if (!status)
        return bytes;
    Py_DECREF(bytes);
    return core_raise(core_state_of(object), &err, self->path);
}

static PyMethodDef source_methods[] = {
    { "read", source_read, METH_VARARGS, "Bytes at an offset; fewer at the end." },
    { "intact", source_intact, METH_NOARGS, "Raises ChangedError if the mapped file was cut meanwhile." },
    { "identify", source_identify, METH_NOARGS, "The kind of file: 'mcf', 'safetensors', 'npy' …" },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef source_members[] = {
    { "size", source_size, NULL, "Bytes.", NULL },
    { "path", source_path, NULL, "The path it was opened by, or None.", NULL },
    { "interrupted_update", source_interrupted, NULL,
      "Whether the state before an interrupted update is shown.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot source_slots[] = {
    { Py_tp_init, source_init },
    { Py_tp_dealloc, source_dealloc },
    { Py_tp_methods, source_methods },
    { Py_tp_getset, source_members },
    { 0, NULL },
};

/* ---- View ---- */

typedef struct core_view_object {
    PyObject_HEAD PyObject *owner; /* NULL: the bytes belong to the view, and may be written */
    void *data;
    size_t size;
} core_view_object;

static PyObject *new_view(core_state *state, PyObject *owner, void *data, size_t size)
{
    allocfunc allocate = PyType_GetSlot(state->view_type, Py_tp_alloc);
    core_view_object *self = (core_view_object *)allocate(state->view_type, 0);
    if (!self)
        return NULL;
    self->owner = Py_XNewRef(owner);
    self->data = data;
    self->size = size;
    return (PyObject *)self;
}

PyObject *core_view(core_state *state, PyObject *owner, const void *data, size_t size)
{
    union {
        const void *from;
        void *to;
    } bytes = { data }; /* exported as read-only */
    return new_view(state, owner, bytes.to, size);
}

PyObject *core_block(core_state *state, void *data, size_t size)
{
    PyObject *view = new_view(state, NULL, data, size);
    if (!view)
        coffer_free(data);
    return view;
}

static int view_buffer(PyObject *object, Py_buffer *out, int flags)
{
    core_view_object *self = (core_view_object *)object;
    out->obj = NULL; /* where a request is refused */
    return PyBuffer_FillInfo(out, object, self->data, (Py_ssize_t)self->size, self->owner != NULL, flags);
}

static void view_dealloc(PyObject *object)
{
    core_view_object *self = (core_view_object *)object;
    if (!self->owner)
        coffer_free(self->data);
    Py_XDECREF(self->owner);
    core_free_object(object);
}

static Py_ssize_t view_length(PyObject *object)
{
    return (Py_ssize_t)((core_view_object *)object)->size;
}

static PyType_Slot view_slots[] = {
    { Py_tp_dealloc, view_dealloc },
    { Py_bf_getbuffer, view_buffer },
    { Py_sq_length, view_length },
    { 0, NULL },
};

int core_writable(Py_buffer *out, PyObject *object, uint64_t size)
{
    if (PyObject_GetBuffer(object, out, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) != 0)
        return -1;
    if ((uint64_t)out->len >= size)
        return 0;
    PyErr_Format(PyExc_ValueError, "the output has %zd bytes, %llu are needed", out->len,
                 (unsigned long long)size);
    PyBuffer_Release(out);
    return -1;
}

int core_add_source(PyObject *module)
{
    core_state *state = core_state_of_module(module);
    state->source_type =
        core_new_type(module, "coffer._core.Source", sizeof(core_source), 0, source_slots, NULL);
    state->view_type = core_new_type(module, "coffer._core.View", sizeof(core_view_object),
                                     Py_TPFLAGS_DISALLOW_INSTANTIATION, view_slots, NULL);
    return state->source_type && state->view_type ? 0 : -1;
}
