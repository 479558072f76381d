/* MldfWriter: writes a new training set, or appends to one; and changes to a set: values, samples. */
#include "core.h"

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
    core_writer *self = (core_writer *)object;
    coffer_mldf_writer_opts opts = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    PyObject *path;
    const char *schema, *key;
    Py_ssize_t schema_len = 0, key_len = 0;
    int overwrite, dedup;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "Oz#pIipIz#", &path, &schema, &schema_len, &overwrite, &opts.page_size,
                          &opts.zstd_level, &dedup, &opts.threads, &key, &key_len))
        return -1;
    if (key && key_len != COFFER_MLDF_KEY_SIZE) {
        PyErr_Format(PyExc_ValueError, "a key has %d bytes, not %zd", COFFER_MLDF_KEY_SIZE, key_len);
        return -1;
    }
    PyObject *bytes = core_writer_begin(object, path, commit, discard);
    if (!bytes)
        return -1;
    coffer_mldf_writer *writer = NULL;
    opts.overwrite = overwrite;
    opts.dedup = dedup;
    opts.key = (const uint8_t *)key;
    Py_BEGIN_ALLOW_THREADS
    status = schema ? coffer_mldf_writer_create_json(&writer, PyBytes_AsString(bytes), schema,
                                                     (size_t)schema_len, &opts, &err)
                    : coffer_mldf_writer_append_to(&writer, PyBytes_AsString(bytes), &opts, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(bytes);
    self->writer = writer;
    if (status)
        core_raise(core_state_of(object), &err, self->path);
    return status ? -1 : 0;
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
    Py_ssize_t rank = PyTuple_Size(shape);
    if (!described || rank != (Py_ssize_t)described->ndim || rank > COFFER_MLDF_MAX_DIMS)
        PyErr_Format(PyExc_ValueError, "an array of %zd dimensions does not match its field", rank);
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < rank; i++)
        dims[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(shape, i));
    if (PyErr_Occurred()) {
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
        if (!item || PyList_Append(list, item) != 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *writer_sample(PyObject *object, void *unused)
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
    { "commit", core_writer_commit, METH_NOARGS, NULL },
    { "discard", core_writer_discard, METH_NOARGS, NULL },
    { "fields", writer_fields, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef writer_members[] = {
    { "sample", writer_sample, NULL, "The number of the next sample.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot writer_slots[] = {
    { Py_tp_init, writer_init },
    { Py_tp_dealloc, core_writer_dealloc },
    { Py_tp_methods, writer_methods },
    { Py_tp_getset, writer_members },
    { 0, NULL },
};

static PyType_Spec writer_spec = {
    .name = "coffer._core.MldfWriter",
    .basicsize = sizeof(core_writer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = writer_slots,
};

/* ---- Changes ---- */

/* mldf_delete(path, samples as uint64, key or None) */
static PyObject *delete_samples(PyObject *module, PyObject *args)
{
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer samples;
    PyObject *path;
    const char *key;
    Py_ssize_t key_len = 0;
    if (!PyArg_ParseTuple(args, "Oy*z#", &path, &samples, &key, &key_len))
        return NULL;
    PyObject *bytes = core_path(path);
    if (bytes && key && key_len != COFFER_MLDF_KEY_SIZE)
        PyErr_SetString(PyExc_ValueError, "a key has 32 bytes");
    if (!PyErr_Occurred()) {
        opts.key = (const uint8_t *)key;
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

/* mldf_replace(path, samples as uint64, fields as uint64, function, wrapper, key or None) */
static PyObject *replace_values(PyObject *module, PyObject *args)
{
    coffer_mldf_update_opts opts = COFFER_MLDF_UPDATE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer samples, fields;
    PyObject *path, *function, *wrapper;
    const char *key;
    Py_ssize_t key_len = 0;
    if (!PyArg_ParseTuple(args, "Oy*y*OOz#", &path, &samples, &fields, &function, &wrapper, &key, &key_len))
        return NULL;
    PyObject *bytes = core_path(path);
    if (bytes && (samples.len != fields.len || (key && key_len != COFFER_MLDF_KEY_SIZE)))
        PyErr_SetString(PyExc_ValueError, "one field for each sample, and a key of 32 bytes");
    if (!PyErr_Occurred()) {
        fill_context context = { function, (core_writer *)wrapper };
        opts.key = (const uint8_t *)key;
        opts.threads = 1;
        Py_BEGIN_ALLOW_THREADS
        status =
            coffer_mldf_update_replace(PyBytes_AsString(bytes), samples.buf, fields.buf,
                                       (size_t)samples.len / sizeof(uint64_t), fill, &context, &opts, &err);
        Py_END_ALLOW_THREADS
        if (status)
            core_raise(core_state_of_module(module), &err, path);
    }
    Py_XDECREF(bytes);
    PyBuffer_Release(&samples);
    PyBuffer_Release(&fields);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* A writer without a file, for mldf_replace. */
static PyObject *empty_writer(PyObject *module, PyObject *unused)
{
    PyObject *type = PyObject_GetAttrString(module, "MldfWriter");
    (void)unused;
    if (!type)
        return NULL;
    allocfunc allocate = PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    PyObject *writer = allocate((PyTypeObject *)type, 0);
    Py_DECREF(type);
    return writer;
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

static uint8_t sound_codec(const coffer_audio_info *info)
{
    switch (info->kind) {
    case COFFER_AUDIO_FLAC:
        return COFFER_MLDF_CODEC_FLAC;
    case COFFER_AUDIO_MP3:
        return COFFER_MLDF_CODEC_MP3;
    case COFFER_AUDIO_AAC:
        return COFFER_MLDF_CODEC_AAC;
    case COFFER_AUDIO_VORBIS:
        return COFFER_MLDF_CODEC_VORBIS;
    case COFFER_AUDIO_OPUS:
        return COFFER_MLDF_CODEC_OPUS;
    default:
        return COFFER_MLDF_CODEC_FILE;
    }
}

/* mldf_sound(bytes of a file): its description, as set_bytes takes it. */
static PyObject *describe_sound(PyObject *module, PyObject *args)
{
    enum { FLOAT_BITS = 32 };
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer bytes;
    if (!PyArg_ParseTuple(args, "y*", &bytes))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_audio_probe(&info, bytes.buf, (size_t)bytes.len, &err);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&bytes);
    if (status)
        return core_raise(core_state_of_module(module), &err, NULL);
    if (info.frames > UINT32_MAX || info.channels > UINT16_MAX)
        return PyErr_Format(PyExc_ValueError, "a sound of %llu frames is too long for a set",
                            (unsigned long long)info.frames);
    return Py_BuildValue("(iiiIIIIiii)", 0, 0, 0, info.channels, (unsigned)info.frames, info.sample_rate,
                         info.bit_depth ? info.bit_depth : FLOAT_BITS, sound_codec(&info), 0, 0);
}

static PyMethodDef functions[] = {
    { "mldf_sound", describe_sound, METH_VARARGS, NULL },
    { "mldf_concat", concat, METH_VARARGS, NULL },
    { "mldf_delete", delete_samples, METH_VARARGS, NULL },
    { "mldf_replace", replace_values, METH_VARARGS, NULL },
    { "mldf_empty_writer", empty_writer, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_mldf_writer(PyObject *module)
{
    return core_add_type(module, &writer_spec) ? -1 : PyModule_AddFunctions(module, functions);
}
