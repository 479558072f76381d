/* PycausetWriter: a new matrix, some rows at a time. pycauset_edit: changes of metadata in one commit. */
#include "core.h"

#include <string.h>

/* ---- Changes ---- */

/* One of ("json", path, text), ("bytes", path, bytes), ("delete", path, None), ("checksums", "", None). */
static bool add_change(core_state *state, coffer_pycauset_changes *changes, PyObject *change)
{
    coffer_error err = COFFER_ERROR_INIT;
    const char *kind, *path, *bytes;
    Py_ssize_t len = 0;
    coffer_status status;
    if (!PyArg_ParseTuple(change, "ssz#", &kind, &path, &bytes, &len))
        return false;
    if (strcmp(kind, "json") == 0)
        status = coffer_pycauset_changes_set_json(changes, path, bytes, (size_t)len, &err);
    else if (strcmp(kind, "bytes") == 0)
        status = coffer_pycauset_changes_set_bytes(changes, path, bytes, (size_t)len, &err);
    else if (strcmp(kind, "checksums") == 0)
        status = coffer_pycauset_changes_set_checksums(changes, &err);
    else
        status = coffer_pycauset_changes_delete(changes, path, &err);
    if (status)
        core_raise(state, &err, NULL);
    return !status;
}

static coffer_pycauset_changes *take_changes(core_state *state, PyObject *list)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_changes *changes = NULL;
    if (coffer_pycauset_changes_new(&changes, &err)) {
        core_raise(state, &err, NULL);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        if (!add_change(state, changes, PyList_GetItem(list, i))) {
            coffer_pycauset_changes_free(changes);
            return NULL;
        }
    }
    return changes;
}

/* pycauset_edit(path, changes): one commit; returns the new generation. */
static PyObject *edit(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_editor *editor = NULL;
    coffer_status status;
    PyObject *path, *list;
    uint64_t generation = 0;
    if (!PyArg_ParseTuple(args, "OO!", &path, &PyList_Type, &list))
        return NULL;
    PyObject *bytes = core_path(path);
    coffer_pycauset_changes *changes = bytes ? take_changes(state, list) : NULL;
    if (changes) {
        Py_BEGIN_ALLOW_THREADS
        status = coffer_pycauset_editor_open(&editor, PyBytes_AsString(bytes), NULL, &err);
        if (!status)
            status = coffer_pycauset_editor_commit(&generation, editor, changes, &err);
        if (editor)
            coffer_pycauset_editor_close(editor);
        Py_END_ALLOW_THREADS
        coffer_pycauset_changes_free(changes);
        if (status)
            core_raise(state, &err, path);
    }
    Py_XDECREF(bytes);
    return PyErr_Occurred() ? NULL : PyLong_FromUnsignedLongLong(generation);
}

/* ---- Writer ---- */

typedef struct writer_object {
    core_writer base;
    uint64_t row_size;
} writer_object;

/* The options of a new file. */
typedef struct new_matrix {
    coffer_pycauset_shape shape;
    coffer_pycauset_writer_opts opts;
    const coffer_pycauset_changes *changes;
} new_matrix;

static coffer_status create(void **out, const char *path, const void *opts, coffer_error *err)
{
    const new_matrix *matrix = opts;
    coffer_pycauset_writer *writer = NULL;
    coffer_status status = coffer_pycauset_writer_create(&writer, path, &matrix->shape, &matrix->opts, err);
    if (!status)
        status = coffer_pycauset_writer_set_metadata(writer, matrix->changes, err);
    if (!status)
        *out = writer;
    else if (writer)
        coffer_pycauset_writer_discard(writer);
    return status;
}

static coffer_status commit(void *writer, coffer_error *err)
{
    return coffer_pycauset_writer_commit(writer, err);
}

static void discard(void *writer)
{
    coffer_pycauset_writer_discard(writer);
}

/* PycausetWriter(path, type number, element type, rows, cols, has_diagonal, changes, overwrite) */
static int writer_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const core_writer_acts acts = { create, commit, discard };
    new_matrix matrix = { COFFER_PYCAUSET_SHAPE_INIT, COFFER_PYCAUSET_WRITER_OPTS_INIT, NULL };
    PyObject *path, *list;
    const char *name;
    int type, diagonal, overwrite;
    unsigned long long rows, cols;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OisKKpO!p", &path, &type, &name, &rows, &cols, &diagonal, &PyList_Type,
                          &list, &overwrite))
        return -1;
    matrix.shape.dtype = core_dtype(name);
    coffer_pycauset_changes *changes =
        matrix.shape.dtype == COFFER_DTYPE_NONE ? NULL : take_changes(core_state_of(object), list);
    if (!changes)
        return -1;
    matrix.shape.type = (coffer_pycauset_type)type;
    matrix.shape.rows = rows;
    matrix.shape.cols = cols;
    matrix.shape.has_diagonal = diagonal;
    matrix.opts.overwrite = overwrite;
    matrix.changes = changes;
    ((writer_object *)object)->row_size =
        cols * (matrix.shape.dtype == COFFER_DTYPE_BIT ? 1 : coffer_dtype_size(matrix.shape.dtype));
    int result = core_writer_init(object, path, &acts, &matrix);
    coffer_pycauset_changes_free(changes);
    return result;
}

/* put_rows(bytes): the next rows */
static PyObject *writer_put_rows(PyObject *object, PyObject *args)
{
    coffer_pycauset_writer *writer = core_writer_open(object);
    uint64_t row_size = ((writer_object *)object)->row_size;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer bytes;
    if (!writer || !PyArg_ParseTuple(args, "y*", &bytes))
        return NULL;
    if (row_size == 0 || (uint64_t)bytes.len % row_size) {
        PyErr_Format(PyExc_ValueError, "%zd bytes are not a number of rows of %llu bytes", bytes.len,
                     (unsigned long long)row_size);
        PyBuffer_Release(&bytes);
        return NULL;
    }
    uint64_t rows = (uint64_t)bytes.len / row_size;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_pycauset_writer_put_rows(writer, bytes.buf, rows, &err);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&bytes);
    return core_writer_done(object, status, &err);
}

static PyMethodDef writer_methods[] = {
    { "put_rows", writer_put_rows, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyMethodDef functions[] = {
    { "pycauset_edit", edit, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_pycauset_writer(PyObject *module)
{
    if (core_add_writer(module, "coffer._core.PycausetWriter", sizeof(writer_object), writer_init,
                        writer_methods))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
