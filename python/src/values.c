/* Errors, progress and values, from C to Python and back. */
#include "core.h"

#include <string.h>
#include <time.h>

/* ---- Errors ---- */

PyObject *core_raise(core_state *state, const coffer_error *err, PyObject *path)
{
    if (PyErr_Occurred()) /* raised by a callback, which then cancelled the work */
        return NULL;
    if (err->status == COFFER_E_NO_MEMORY)
        return PyErr_NoMemory();
    PyObject *offset = Py_None;
    Py_INCREF(offset);
    if (err->offset != COFFER_OFFSET_NONE) {
        Py_DECREF(offset);
        offset = PyLong_FromUnsignedLongLong(err->offset);
    }
    PyObject *text = core_text(err->text, strlen(err->text));
    PyObject *error = NULL;
    if (offset && text)
        error =
            PyObject_CallFunction(state->make_error, "isiiOOO", err->status, coffer_status_name(err->status),
                                  err->system_error, err->subject, text, offset, path ? path : Py_None);
    Py_XDECREF(offset);
    Py_XDECREF(text);
    if (error) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

int core_raise_closed(void)
{
    PyErr_SetString(PyExc_ValueError, "the file is closed");
    return -1;
}

/* ---- Progress ---- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int step(void *context, uint64_t done, uint64_t total)
{
    enum { INTERVAL_NS = 50 * 1000 * 1000 };
    core_progress *self = context;
    uint64_t now = now_ns();
    if (now < self->next_ns && done != total)
        return 0;
    self->next_ns = now + INTERVAL_NS;
    PyGILState_STATE gil = PyGILState_Ensure();
    int stop = PyErr_CheckSignals();
    if (!stop && self->callable) {
        PyObject *result =
            PyObject_CallFunction(self->callable, "KK", (unsigned long long)done, (unsigned long long)total);
        stop = result ? 0 : -1;
        Py_XDECREF(result);
    }
    PyGILState_Release(gil);
    return stop;
}

const coffer_progress *core_progress_init(core_progress *out, PyObject *callable)
{
    coffer_progress_init(&out->progress, sizeof out->progress);
    out->progress.step = step;
    out->progress.context = out;
    out->callable = callable == Py_None ? NULL : callable;
    out->next_ns = 0;
    return &out->progress;
}

/* ---- Values ---- */

void core_append(PyObject **list, PyObject *item)
{
    if (!item || PyList_Append(*list, item) != 0)
        Py_CLEAR(*list);
    Py_XDECREF(item);
}

const uint8_t *core_key(PyObject *object)
{
    char *bytes = NULL;
    Py_ssize_t len = 0;
    if (!object || object == Py_None || PyBytes_AsStringAndSize(object, &bytes, &len) != 0)
        return NULL;
    if (len == COFFER_MLDF_KEY_SIZE)
        return (const uint8_t *)bytes;
    PyErr_Format(PyExc_ValueError, "a key has %d bytes, not %zd", COFFER_MLDF_KEY_SIZE, len);
    return NULL;
}

int core_dims(uint64_t *out, size_t most, PyObject *shape)
{
    Py_ssize_t rank = PyTuple_Size(shape);
    if (rank > (Py_ssize_t)most)
        PyErr_Format(PyExc_ValueError, "%zd dimensions; at most %zu are possible", rank, most);
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < rank; i++)
        out[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(shape, i));
    return PyErr_Occurred() ? -1 : 0;
}

PyObject *core_text(const char *text, size_t len)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, "surrogateescape");
}

static PyObject *from_list(const coffer_node *node)
{
    PyObject *list = PyList_New(0);
    for (const coffer_node *child = coffer_node_first(node); list && child; child = coffer_node_next(child)) {
        PyObject *item = core_from_node(child);
        core_append(&list, item);
    }
    return list;
}

static PyObject *from_map(const coffer_node *node)
{
    PyObject *map = PyDict_New();
    for (const coffer_node *child = coffer_node_first(node); map && child; child = coffer_node_next(child)) {
        const char *name = coffer_node_get_name(child);
        PyObject *key = core_text(name, strlen(name));
        PyObject *item = key ? core_from_node(child) : NULL;
        if (!item || PyDict_SetItem(map, key, item) != 0)
            Py_CLEAR(map);
        Py_XDECREF(item);
        Py_XDECREF(key);
    }
    return map;
}

PyObject *core_from_node(const coffer_node *node)
{
    size_t len = 0;
    const char *text;
    switch (coffer_node_get_kind(node)) {
    case COFFER_NODE_BOOL:
        return PyBool_FromLong(coffer_node_get_bool(node));
    case COFFER_NODE_U64:
        return PyLong_FromUnsignedLongLong(coffer_node_get_u64(node));
    case COFFER_NODE_I64:
        return PyLong_FromLongLong(coffer_node_get_i64(node));
    case COFFER_NODE_F64:
        return PyFloat_FromDouble(coffer_node_get_f64(node));
    case COFFER_NODE_TEXT:
        text = coffer_node_get_text(node, &len);
        return core_text(text, len);
    case COFFER_NODE_LIST:
        return from_list(node);
    case COFFER_NODE_MAP:
        return from_map(node);
    case COFFER_NODE_NULL:
        break;
    }
    Py_RETURN_NONE;
}

static PyObject *from_finding(const coffer_finding *finding)
{
    PyObject *text = core_text(finding->text, strlen(finding->text));
    PyObject *offset = NULL, *result = NULL;
    if (finding->offset == COFFER_OFFSET_NONE) {
        offset = Py_None;
        Py_INCREF(offset);
    } else {
        offset = PyLong_FromUnsignedLongLong(finding->offset);
    }
    if (text && offset)
        result = Py_BuildValue("(ssOO)", coffer_status_name(finding->code),
                               coffer_severity_name(finding->severity), offset, text);
    Py_XDECREF(text);
    Py_XDECREF(offset);
    return result;
}

/* (findings, notes, warnings, errors): each finding is (code, severity, offset, text). */
PyObject *core_from_report(const coffer_report *report)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < coffer_report_count(report); i++) {
        PyObject *item = from_finding(coffer_report_at(report, i));
        core_append(&list, item);
    }
    if (!list)
        return NULL;
    return Py_BuildValue("(NKKK)", list, (unsigned long long)coffer_report_total(report, COFFER_NOTE),
                         (unsigned long long)coffer_report_total(report, COFFER_WARNING),
                         (unsigned long long)coffer_report_total(report, COFFER_ERROR));
}

PyObject *core_shape(const uint64_t *dims, size_t rank)
{
    PyObject *shape = PyTuple_New((Py_ssize_t)rank);
    for (size_t i = 0; shape && i < rank; i++) {
        PyObject *dim = PyLong_FromUnsignedLongLong(dims[i]);
        if (!dim || PyTuple_SetItem(shape, (Py_ssize_t)i, dim) != 0)
            Py_CLEAR(shape);
    }
    return shape;
}

coffer_dtype core_dtype(const char *name)
{
    coffer_dtype dtype = coffer_dtype_by_name(name);
    if (dtype == COFFER_DTYPE_NONE)
        PyErr_Format(PyExc_ValueError, "unknown element type '%s'; f32 is one", name);
    return dtype;
}

PyObject *core_path(PyObject *object)
{
    PyObject *bytes = NULL;
    return PyUnicode_FSConverter(object, &bytes) ? bytes : NULL;
}

coffer_node *core_node_new(void)
{
    coffer_node *node = NULL;
    if (coffer_node_new(&node, NULL))
        PyErr_NoMemory();
    return node;
}

coffer_report *core_report_new(void)
{
    coffer_report *report = NULL;
    if (coffer_report_new(&report, 0, NULL))
        PyErr_NoMemory();
    return report;
}

PyObject *core_node_result(core_state *state, coffer_status status, const coffer_error *err,
                           coffer_node *node, PyObject *path)
{
    PyObject *result = status ? core_raise(state, err, path) : core_from_node(node);
    coffer_node_free(node);
    return result;
}

PyObject *core_report_result(core_state *state, coffer_status status, const coffer_error *err,
                             coffer_report *report, PyObject *path)
{
    PyObject *result = status ? core_raise(state, err, path) : core_from_report(report);
    coffer_report_free(report);
    return result;
}
