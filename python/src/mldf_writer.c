/* MldfWriter: writes a new training set, or appends to one. */
#include "core.h"

/* The options of a writer. schema : NULL = append to the set. */
typedef struct new_set {
    coffer_mldf_writer_opts opts;
    const char *schema;
    size_t schema_len;
} new_set;

static coffer_status create(void **out, const char *path, const void *opts, coffer_error *err)
{
    const new_set *set = opts;
    coffer_mldf_writer *writer = NULL;
    coffer_status status = set->schema ? coffer_mldf_writer_create_json(&writer, path, set->schema,
                                                                        set->schema_len, &set->opts, err)
                                       : coffer_mldf_writer_append_to(&writer, path, &set->opts, err);
    *out = writer;
    return status;
}

static coffer_status commit(void *writer, coffer_error *err)
{
    return coffer_mldf_writer_commit(writer, err);
}

static void discard(void *writer)
{
    coffer_mldf_writer_discard(writer);
}

/* MldfWriter(path, schema or None, overwrite, page_size, zstd_level, dedup, threads, key or None): without a
 * schema, samples are appended to an existing set. */
static int writer_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const core_writer_acts acts = { create, commit, discard };
    new_set set = { COFFER_MLDF_WRITER_OPTS_INIT, NULL, 0 };
    PyObject *path, *key;
    Py_ssize_t schema_len = 0;
    int overwrite, dedup;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "Oz#pIipIO", &path, &set.schema, &schema_len, &overwrite, &set.opts.page_size,
                          &set.opts.zstd_level, &dedup, &set.opts.threads, &key))
        return -1;
    set.schema_len = (size_t)schema_len;
    set.opts.overwrite = overwrite;
    set.opts.dedup = dedup;
    set.opts.key = core_key(key);
    return PyErr_Occurred() ? -1 : core_writer_init(object, path, &acts, &set);
}

static PyObject *writer_set_int(PyObject *object, PyObject *args)
{
    coffer_mldf_writer *writer = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    Py_ssize_t field;
    long long value;
    if (!writer || !PyArg_ParseTuple(args, "nL", &field, &value))
        return NULL;
    return core_writer_done(object, coffer_mldf_writer_set_int(writer, (size_t)field, value, &err), &err);
}

static PyObject *writer_set_float(PyObject *object, PyObject *args)
{
    coffer_mldf_writer *writer = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    Py_ssize_t field;
    double value;
    if (!writer || !PyArg_ParseTuple(args, "nd", &field, &value))
        return NULL;
    return core_writer_done(object, coffer_mldf_writer_set_float(writer, (size_t)field, value, &err), &err);
}

static PyObject *writer_set_text(PyObject *object, PyObject *args)
{
    coffer_mldf_writer *writer = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    Py_ssize_t field, len;
    const char *text;
    if (!writer || !PyArg_ParseTuple(args, "ns#", &field, &text, &len))
        return NULL;
    return core_writer_done(object,
                            coffer_mldf_writer_set_text(writer, (size_t)field, text, (size_t)len, &err),
                            &err);
}

/* set_bytes(field, bytes, (height, width, mode, channels, num_samples, sample_rate, bit_depth, codec,
 * num_tokens, encoding) or None) */
static PyObject *writer_set_bytes(PyObject *object, PyObject *args)
{
    coffer_mldf_writer *writer = core_writer_open(object);
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer bytes;
    PyObject *row;
    Py_ssize_t field;
    if (!writer || !PyArg_ParseTuple(args, "ny*O", &field, &bytes, &row))
        return NULL;
    if (row != Py_None &&
        !PyArg_ParseTuple(row, "HHBHIIBBHB", &entry.height, &entry.width, &entry.mode, &entry.channels,
                          &entry.num_samples, &entry.sample_rate, &entry.bit_depth, &entry.codec,
                          &entry.num_tokens, &entry.encoding)) {
        PyBuffer_Release(&bytes);
        return NULL;
    }
    entry.present = true;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_writer_set_bytes(writer, (size_t)field, bytes.buf, (size_t)bytes.len,
                                          row == Py_None ? NULL : &entry, &err);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&bytes);
    return core_writer_done(object, status, &err);
}

/* set_array(field, shape, elements) */
static PyObject *writer_set_array(PyObject *object, PyObject *args)
{
    coffer_mldf_writer *writer = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    Py_buffer bytes;
    PyObject *shape;
    Py_ssize_t field;
    if (!writer || !PyArg_ParseTuple(args, "nO!y*", &field, &PyTuple_Type, &shape, &bytes))
        return NULL;
    const coffer_mldf_field *described = coffer_mldf_writer_field_at(writer, (size_t)field);
    if (!described || PyTuple_Size(shape) != (Py_ssize_t)described->ndim)
        PyErr_Format(PyExc_ValueError, "an array of %zd dimensions does not match its field",
                     PyTuple_Size(shape));
    if (PyErr_Occurred() || core_dims(dims, COFFER_MLDF_MAX_DIMS, shape)) {
        PyBuffer_Release(&bytes);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_writer_set_array(writer, (size_t)field, dims, bytes.buf, (size_t)bytes.len, &err);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&bytes);
    return core_writer_done(object, status, &err);
}

static PyObject *writer_end_sample(PyObject *object, PyObject *unused)
{
    coffer_mldf_writer *writer = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    (void)unused;
    if (!writer)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_writer_end_sample(writer, &err);
    Py_END_ALLOW_THREADS
    return core_writer_done(object, status, &err);
}

static PyObject *writer_cancel_sample(PyObject *object, PyObject *unused)
{
    coffer_mldf_writer *writer = core_writer_open(object);
    (void)unused;
    if (!writer)
        return NULL;
    coffer_mldf_writer_cancel_sample(writer);
    Py_RETURN_NONE;
}

/* [(name, type, dims, element type or None)] */
static PyObject *writer_fields(PyObject *object, PyObject *unused)
{
    coffer_mldf_writer *writer = core_writer_open(object);
    PyObject *list = writer ? PyList_New(0) : NULL;
    (void)unused;
    for (size_t i = 0; list && i < coffer_mldf_writer_field_count(writer); i++) {
        const coffer_mldf_field *field = coffer_mldf_writer_field_at(writer, i);
        PyObject *shape = core_shape(field->dims, field->ndim);
        PyObject *item =
            shape ? Py_BuildValue("(szNz)", field->name, coffer_mldf_type_name(field->type), shape,
                                  field->dtype == COFFER_DTYPE_NONE ? NULL : coffer_dtype_name(field->dtype))
                  : NULL;
        core_append(&list, item);
    }
    return list;
}

/* copy(set, progress): appends all samples of a set with the same fields. */
static PyObject *writer_copy(PyObject *object, PyObject *args)
{
    coffer_mldf_writer *writer = core_writer_open(object);
    coffer_mldf_copy_opts opts = COFFER_MLDF_COPY_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *from, *callable;
    if (!writer || !PyArg_ParseTuple(args, "OO", &from, &callable))
        return NULL;
    const coffer_mldf *set = core_mldf_of(core_state_of(object), from);
    if (!set)
        return NULL;
    opts.progress = core_progress_init(&progress, callable);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_writer_copy(writer, set, &opts, &err);
    Py_END_ALLOW_THREADS
    if (status && err.subject != COFFER_SUBJECT_OUTPUT)
        return core_handle_fail(from, &err);
    return core_writer_done(object, status, &err);
}

/* samples(): the number of samples so far. */
static PyObject *writer_samples(PyObject *object, PyObject *unused)
{
    coffer_mldf_writer *writer = core_writer_open(object);
    (void)unused;
    return writer ? PyLong_FromUnsignedLongLong(coffer_mldf_writer_sample(writer)) : NULL;
}

static PyMethodDef writer_methods[] = {
    { "set_int", writer_set_int, METH_VARARGS, NULL },
    { "set_float", writer_set_float, METH_VARARGS, NULL },
    { "set_text", writer_set_text, METH_VARARGS, NULL },
    { "set_bytes", writer_set_bytes, METH_VARARGS, NULL },
    { "set_array", writer_set_array, METH_VARARGS, NULL },
    { "end_sample", writer_end_sample, METH_NOARGS, NULL },
    { "cancel_sample", writer_cancel_sample, METH_NOARGS, NULL },
    { "copy", writer_copy, METH_VARARGS, NULL },
    { "fields", writer_fields, METH_NOARGS, NULL },
    { "samples", writer_samples, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_mldf_writer(PyObject *module)
{
    if (core_add_writer(module, "coffer._core.MldfWriter", sizeof(core_writer), writer_init, writer_methods))
        return -1;
    return core_add_mldf_update(module);
}
