/* Pycauset: a matrix: tiles, metadata, statistics, history. */
#include "core.h"

#include <string.h>

/* Pycauset(source, generation) */
static coffer_status open_handle(void **out, coffer_source *source, const void *opts, coffer_error *err)
{
    coffer_pycauset *matrix = NULL;
    coffer_status status = coffer_pycauset_open(&matrix, source, opts, err);
    *out = matrix;
    return status;
}

static void release(void *matrix)
{
    coffer_pycauset_close(matrix);
}

static const core_handle_acts acts = { open_handle, release };

static int matrix_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    PyObject *input;
    unsigned long long generation;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OK", &input, &generation))
        return -1;
    opts.generation = generation;
    return core_handle_init(object, input, &acts, &opts);
}

static const coffer_pycauset *open_matrix(PyObject *object)
{
    return core_handle_open(object);
}

/* {"rows", "cols", "type", "dtype", "value_dtype", ...} */
static PyObject *matrix_info(PyObject *object, PyObject *unused)
{
    const coffer_pycauset *matrix = open_matrix(object);
    (void)unused;
    if (!matrix)
        return NULL;
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    const char *stored = info->dtype == COFFER_DTYPE_NONE ? NULL : coffer_dtype_name(info->dtype);
    return Py_BuildValue(
        "{s:K,s:K,s:s,s:z,s:s,s:O,s:O,s:O,s:d,s:d,s:K}", "rows", (unsigned long long)info->rows, "cols",
        (unsigned long long)info->cols, "type", coffer_pycauset_type_name(info->type), "dtype", stored,
        "value_dtype", coffer_dtype_name(info->value_dtype), "has_diagonal",
        info->has_diagonal ? Py_True : Py_False, "transposed", info->transposed ? Py_True : Py_False,
        "conjugated", info->conjugated ? Py_True : Py_False, "scalar_real", info->scalar_real, "scalar_imag",
        info->scalar_imag, "generation", (unsigned long long)info->generation);
}

/* view(): (view, dtype, rows, cols, row stride, col stride) of a dense matrix whose values need no change;
 * None otherwise. */
static PyObject *matrix_view(PyObject *object, PyObject *unused)
{
    const coffer_pycauset *matrix = open_matrix(object);
    coffer_pycauset_view view = COFFER_PYCAUSET_VIEW_INIT;
    (void)unused;
    if (!matrix)
        return NULL;
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    bool plain = info->scalar_real == 1 && info->scalar_imag == 0 && !info->conjugated;
    if (!plain || info->dtype != info->value_dtype || coffer_pycauset_get_view(&view, matrix, NULL))
        Py_RETURN_NONE;
    size_t size = (size_t)info->payload_needed;
    PyObject *bytes = core_view(((core_handle *)object)->state, object, view.data, size);
    return bytes ? Py_BuildValue("(NsKKLL)", bytes, coffer_dtype_name(view.dtype),
                                 (unsigned long long)view.rows, (unsigned long long)view.cols,
                                 (long long)view.row_stride, (long long)view.col_stride)
                 : NULL;
}

/* Compares the payload with its checksums, where the file has them: for views, which are not compared. */
static PyObject *matrix_verify(PyObject *object, PyObject *unused)
{
    const coffer_pycauset *matrix = open_matrix(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    (void)unused;
    if (!matrix)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_pycauset_verify(matrix, &err);
    Py_END_ALLOW_THREADS
    if (status)
        return core_handle_fail(object, &err);
    Py_RETURN_NONE;
}

/* read(out, type, row, rows, col, cols): the values of a tile. */
static PyObject *matrix_read(PyObject *object, PyObject *args)
{
    const coffer_pycauset *matrix = open_matrix(object);
    coffer_pycauset_tile tile = COFFER_PYCAUSET_TILE_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer out;
    PyObject *target;
    const char *name;
    unsigned long long row, rows, col, cols;
    if (!matrix || !PyArg_ParseTuple(args, "OsKKKK", &target, &name, &row, &rows, &col, &cols))
        return NULL;
    coffer_dtype dtype = core_dtype(name);
    size_t size = coffer_dtype_size(dtype);
    if (dtype == COFFER_DTYPE_NONE)
        return NULL;
    if (size == 0 || (cols && rows > SIZE_MAX / size / cols)) {
        PyErr_Format(PyExc_ValueError, "%llu x %llu values of type %s do not fit into memory", rows, cols,
                     name);
        return NULL;
    }
    if (core_writable(&out, target, rows * cols * size))
        return NULL;
    tile.row = row;
    tile.rows = rows;
    tile.col = col;
    tile.cols = cols;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_pycauset_read_tile(out.buf, 0, matrix, &tile, dtype, &err);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&out);
    if (status)
        return core_handle_fail(object, &err);
    Py_RETURN_NONE;
}

/* ---- Metadata ---- */

static PyObject *from_value(const coffer_pycauset_value *value);

static PyObject *from_children(const coffer_pycauset_value *value, bool map)
{
    PyObject *out = map ? PyDict_New() : PyList_New(0);
    for (size_t i = 0; out && i < coffer_pycauset_value_count(value); i++) {
        PyObject *item = from_value(coffer_pycauset_value_at(value, i));
        size_t len = 0;
        const char *name = map ? coffer_pycauset_value_key_at(value, i, &len) : NULL;
        PyObject *key = item && map ? core_text(name, len) : NULL;
        bool good =
            item && (map ? key && PyDict_SetItem(out, key, item) == 0 : PyList_Append(out, item) == 0);
        Py_XDECREF(key);
        Py_XDECREF(item);
        if (!good)
            Py_CLEAR(out);
    }
    return out;
}

static PyObject *from_value(const coffer_pycauset_value *value)
{
    size_t len = 0;
    const char *text;
    switch (coffer_pycauset_value_kind(value)) {
    case COFFER_PYCAUSET_BOOL:
        return PyBool_FromLong(coffer_pycauset_value_bool(value));
    case COFFER_PYCAUSET_I64:
        return PyLong_FromLongLong(coffer_pycauset_value_i64(value));
    case COFFER_PYCAUSET_U64:
        return PyLong_FromUnsignedLongLong(coffer_pycauset_value_u64(value));
    case COFFER_PYCAUSET_F64:
        return PyFloat_FromDouble(coffer_pycauset_value_f64(value));
    case COFFER_PYCAUSET_STRING:
        text = coffer_pycauset_value_text(value, &len);
        return core_text(text, len);
    case COFFER_PYCAUSET_BYTES:
        text = coffer_pycauset_value_text(value, &len);
        return PyBytes_FromStringAndSize(text, (Py_ssize_t)len);
    case COFFER_PYCAUSET_ARRAY:
        return from_children(value, false);
    case COFFER_PYCAUSET_MAP:
        return from_children(value, true);
    }
    Py_RETURN_NONE;
}

static PyObject *matrix_metadata(PyObject *object, PyObject *unused)
{
    const coffer_pycauset *matrix = open_matrix(object);
    (void)unused;
    return matrix ? from_value(coffer_pycauset_metadata(matrix)) : NULL;
}

/* history(): [(generation, committed, active, date or None, metadata)] */
static PyObject *matrix_history(PyObject *object, PyObject *unused)
{
    const coffer_pycauset *matrix = open_matrix(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_history *history = NULL;
    coffer_status status;
    (void)unused;
    if (!matrix)
        return NULL;
    coffer_source *src = ((core_source *)((core_handle *)object)->source)->source;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_pycauset_history_open(&history, src, NULL, &err);
    Py_END_ALLOW_THREADS
    if (status)
        return core_handle_fail(object, &err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < coffer_pycauset_history_count(history); i++) {
        const coffer_pycauset_generation *row = coffer_pycauset_history_at(history, i);
        PyObject *metadata = from_value(row->metadata);
        PyObject *item = metadata ? Py_BuildValue("(KOOzN)", (unsigned long long)row->generation,
                                                  row->committed ? Py_True : Py_False,
                                                  row->active ? Py_True : Py_False, row->date, metadata)
                                  : NULL;
        core_append(&list, item);
    }
    coffer_pycauset_history_close(history);
    return list;
}

static PyObject *matrix_stats(PyObject *object, PyObject *args)
{
    const coffer_pycauset *matrix = open_matrix(object);
    coffer_pycauset_stats_opts opts = COFFER_PYCAUSET_STATS_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_stats *stats = NULL;
    coffer_status status;
    core_progress progress;
    PyObject *callable;
    if (!matrix || !PyArg_ParseTuple(args, "IO", &opts.threads, &callable))
        return NULL;
    opts.progress = core_progress_init(&progress, callable);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_pycauset_stats_new(&stats, matrix, &opts, &err);
    Py_END_ALLOW_THREADS
    if (status)
        return core_handle_fail(object, &err);
    const coffer_pycauset_summary *total = coffer_pycauset_stats_total(stats);
    PyObject *result = Py_BuildValue(
        "{s:K,s:K,s:K,s:K,s:d,s:d,s:d,s:d,s:d,s:d}", "elements", (unsigned long long)total->elements,
        "nonzero", (unsigned long long)total->nonzero, "nans", (unsigned long long)total->nans, "infinities",
        (unsigned long long)total->infinities, "density", total->density, "min", total->min, "max",
        total->max, "mean", total->mean, "std", total->std, "frobenius", total->frobenius);
    coffer_pycauset_stats_free(stats);
    return result;
}

/* downsample(out, rows, cols): means as float64. */
static PyObject *matrix_downsample(PyObject *object, PyObject *args)
{
    const coffer_pycauset *matrix = open_matrix(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer out;
    PyObject *target;
    unsigned rows, cols;
    if (!matrix || !PyArg_ParseTuple(args, "OII", &target, &rows, &cols) ||
        core_writable(&out, target, (uint64_t)rows * cols * sizeof(double)))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_pycauset_downsample(out.buf, rows, cols, matrix, NULL, &err);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&out);
    if (status)
        return core_handle_fail(object, &err);
    Py_RETURN_NONE;
}

static PyMethodDef matrix_methods[] = {
    { "info", matrix_info, METH_NOARGS, NULL },
    { "view", matrix_view, METH_NOARGS, NULL },
    { "verify", matrix_verify, METH_NOARGS, NULL },
    { "read", matrix_read, METH_VARARGS, NULL },
    { "metadata", matrix_metadata, METH_NOARGS, NULL },
    { "history", matrix_history, METH_NOARGS, NULL },
    { "stats", matrix_stats, METH_VARARGS, NULL },
    { "downsample", matrix_downsample, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot matrix_slots[] = {
    { Py_tp_init, matrix_init },
    { Py_tp_methods, matrix_methods },
    { 0, NULL },
};

int core_add_pycauset(PyObject *module)
{
    return core_add_handle(module, "coffer._core.Pycauset", matrix_slots);
}
