/* Tensors: the named tensors of a file of any kind. Mcf: the sections of a model file of our own. */
#include "core.h"

#include <string.h>

static coffer_status open_over(void **out, coffer_source *source, const void *opts, coffer_error *err)
{
    coffer_tensors *set = NULL;
    coffer_status status = coffer_tensors_open(&set, source, opts, err);
    *out = set;
    return status;
}

static void release_tensors(void *set)
{
    coffer_tensors_close(set);
}

static int open_path(core_handle *self, PyObject *path, const coffer_tensors_open_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    coffer_tensors *set = NULL;
    PyObject *bytes = core_handle_is_new((PyObject *)self) ? core_path(path) : NULL;
    if (!bytes)
        return -1;
    Py_XDECREF(self->path); /* of an attempt that failed */
    self->path = Py_NewRef(path);
    self->state = core_state_of((PyObject *)self);
    self->release = release_tensors;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_tensors_open_path(&set, PyBytes_AsString(bytes), opts, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(bytes);
    self->handle = status ? NULL : set;
    if (status)
        core_handle_fail((PyObject *)self, &err);
    return status ? -1 : 0;
}

/* Tensors(path or source, access): files with shards are opened by path. */
static int tensors_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const core_handle_acts acts = { open_over, release_tensors };
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    PyObject *input;
    int access = 0;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O|i", &input, &access))
        return -1;
    opts.access = (coffer_access)access;
    if (PyUnicode_Check(input))
        return open_path((core_handle *)object, input, &opts);
    return core_handle_init(object, input, &acts, &opts);
}

static coffer_tensors *open_set(PyObject *object)
{
    return core_handle_open(object);
}

static PyObject *tensors_names(PyObject *object, PyObject *unused)
{
    const coffer_tensors *set = open_set(object);
    PyObject *list = set ? PyList_New((Py_ssize_t)coffer_tensors_count(set)) : NULL;
    (void)unused;
    for (size_t i = 0; list && i < coffer_tensors_count(set); i++) {
        PyObject *name = PyUnicode_FromString(coffer_tensors_at(set, i)->name);
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name) != 0)
            Py_CLEAR(list);
    }
    return list;
}

/* The index of a name. Raises KeyError. */
static PyObject *tensors_find(PyObject *object, PyObject *name)
{
    const coffer_tensors *set = open_set(object);
    const char *text = set ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (!text)
        return NULL;
    size_t index = coffer_tensors_find(set, text);
    if (index == COFFER_INDEX_NONE) {
        PyErr_SetObject(PyExc_KeyError, name);
        return NULL;
    }
    return PyLong_FromSize_t(index);
}

static const coffer_tensor *tensor_at(PyObject *object, PyObject *index, size_t *out)
{
    const coffer_tensors *set = open_set(object);
    if (!set)
        return NULL;
    *out = PyLong_AsSize_t(index);
    if (PyErr_Occurred())
        return NULL;
    const coffer_tensor *tensor = coffer_tensors_at(set, *out);
    if (!tensor)
        PyErr_Format(PyExc_IndexError, "tensor %zu of %zu", *out, coffer_tensors_count(set));
    return tensor;
}

/* (name, type, shape, bytes, elements, file, offset or None) */
static PyObject *tensors_info(PyObject *object, PyObject *index)
{
    size_t at = 0;
    const coffer_tensor *tensor = tensor_at(object, index, &at);
    PyObject *shape = tensor ? core_shape(tensor->dims, tensor->rank) : NULL;
    if (!shape)
        return NULL;
    PyObject *offset = tensor->offset == COFFER_OFFSET_NONE ? Py_NewRef(Py_None)
                                                            : PyLong_FromUnsignedLongLong(tensor->offset);
    return Py_BuildValue("(ssNKKzN)", tensor->name, coffer_tensor_dtype_name(tensor), shape,
                         (unsigned long long)tensor->size, (unsigned long long)tensor->elements, tensor->file,
                         offset);
}

/* The bytes of a payload without a copy, or None. */
static PyObject *tensors_view(PyObject *object, PyObject *index)
{
    size_t at = 0;
    const coffer_tensor *tensor = tensor_at(object, index, &at);
    if (!tensor)
        return NULL;
    const uint8_t *data = coffer_tensors_view(((core_handle *)object)->handle, at);
    if (!data)
        Py_RETURN_NONE;
    return core_view(((core_handle *)object)->state, object, data, (size_t)tensor->size);
}

static PyObject *finish(PyObject *object, coffer_status status, const coffer_error *err, Py_buffer *buffer)
{
    PyBuffer_Release(buffer);
    if (status)
        return core_handle_fail(object, err);
    Py_RETURN_NONE;
}

/* read(index, out, begin): fills out with payload bytes. */
static PyObject *tensors_read(PyObject *object, PyObject *args)
{
    const coffer_tensors *set = open_set(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer buffer;
    PyObject *out;
    Py_ssize_t index;
    unsigned long long begin;
    if (!set || !PyArg_ParseTuple(args, "nOK", &index, &out, &begin) || core_writable(&buffer, out, 0))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_tensors_read(buffer.buf, set, (size_t)index, begin, (size_t)buffer.len, &err);
    Py_END_ALLOW_THREADS
    return finish(object, status, &err, &buffer);
}

/* prefetch(indices): these tensors will be read soon. */
static PyObject *tensors_prefetch(PyObject *object, PyObject *args)
{
    const coffer_tensors *set = open_set(object);
    PyObject *list;
    if (!set || !PyArg_ParseTuple(args, "O!", &PyList_Type, &list))
        return NULL;
    Py_ssize_t count = PyList_Size(list);
    size_t *indices = PyMem_Malloc(((size_t)count + 1) * sizeof *indices);
    if (!indices)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        indices[i] = PyLong_AsSize_t(PyList_GetItem(list, i));
        if (PyErr_Occurred()) {
            PyMem_Free(indices);
            return NULL;
        }
    }
    Py_BEGIN_ALLOW_THREADS
    coffer_tensors_prefetch(set, indices, (size_t)count);
    Py_END_ALLOW_THREADS
    PyMem_Free(indices);
    Py_RETURN_NONE;
}

enum { ELEMENTS_AT_ONCE = 1 << 24, BYTES_AT_ONCE = 1 << 27 }; /* between two looks for Ctrl-C */

/* COFFER_E_CANCELLED with an exception after Ctrl-C. */
static coffer_status look_for_interrupt(void)
{
    return PyErr_CheckSignals() ? COFFER_E_CANCELLED : COFFER_OK;
}

/* read_as(index, out, type, first, count): elements, converted or decoded. */
static PyObject *tensors_read_as(PyObject *object, PyObject *args)
{
    const coffer_tensors *set = open_set(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer buffer;
    PyObject *out;
    const char *name;
    Py_ssize_t index;
    unsigned long long first, count;
    if (!set || !PyArg_ParseTuple(args, "nOsKK", &index, &out, &name, &first, &count))
        return NULL;
    coffer_dtype dtype = core_dtype(name);
    size_t size = coffer_dtype_size(dtype);
    if (dtype == COFFER_DTYPE_NONE)
        return NULL;
    if (size == 0 || count > SIZE_MAX / size) {
        PyErr_Format(PyExc_ValueError, "cannot read %llu elements as %s", count, name);
        return NULL;
    }
    if (core_writable(&buffer, out, count * size))
        return NULL;
    const coffer_tensor *tensor = coffer_tensors_at(set, (size_t)index);
    uint64_t row = tensor && tensor->rank ? tensor->dims[tensor->rank - 1] : 1, done = 0;
    uint64_t at_once = row && row < ELEMENTS_AT_ONCE ? ELEMENTS_AT_ONCE / row * row : count; /* whole rows */
    do {
        uint64_t now = count - done < at_once ? count - done : at_once;
        Py_BEGIN_ALLOW_THREADS
        status = coffer_tensors_read_as((char *)buffer.buf + done * size, dtype, set, (size_t)index,
                                        first + done, now, &err);
        Py_END_ALLOW_THREADS
        done += now;
    } while (!status && done < count && !(status = look_for_interrupt()));
    return finish(object, status, &err, &buffer);
}

static PyObject *tree(PyObject *object,
                      coffer_status (*fill)(coffer_node *, const coffer_tensors *, coffer_error *))
{
    const coffer_tensors *set = open_set(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    coffer_node *node = set ? core_node_new() : NULL;
    if (!node)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = fill(node, set, &err);
    Py_END_ALLOW_THREADS
    PyObject *result = status ? core_handle_fail(object, &err) : core_from_node(node);
    coffer_node_free(node);
    return result;
}

static PyObject *tensors_metadata(PyObject *object, PyObject *unused)
{
    (void)unused;
    return tree(object, coffer_tensors_metadata);
}

static PyObject *tensors_describe(PyObject *object, PyObject *unused)
{
    (void)unused;
    return tree(object, coffer_tensors_describe);
}

static PyObject *stats_row(const coffer_tensor_stats *row, const char *name)
{
    PyObject *bins = PyList_New(COFFER_TENSOR_HISTOGRAM_BINS);
    for (int i = 0; bins && i < COFFER_TENSOR_HISTOGRAM_BINS; i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(row->histogram[i]);
        if (!count || PyList_SetItem(bins, i, count) != 0)
            Py_CLEAR(bins);
    }
    if (!bins)
        return NULL;
    return Py_BuildValue("{s:s,s:K,s:K,s:K,s:K,s:K,s:d,s:d,s:d,s:d,s:N}", "name", name, "elements",
                         (unsigned long long)row->elements, "nans", (unsigned long long)row->nans,
                         "infinities", (unsigned long long)row->infinities, "zeros",
                         (unsigned long long)row->zeros, "outliers", (unsigned long long)row->outliers, "min",
                         row->min, "max", row->max, "mean", row->mean, "std", row->std, "histogram", bins);
}

/* stats(include or None, exclude or None, threads, progress): a dict for each tensor. */
static PyObject *tensors_stats(PyObject *object, PyObject *args)
{
    const coffer_tensors *set = open_set(object);
    coffer_tensors_stats_opts opts = COFFER_TENSORS_STATS_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_tensors_stats *stats = NULL;
    coffer_status status;
    core_progress progress;
    PyObject *callable;
    if (!set || !PyArg_ParseTuple(args, "zzIO", &opts.include, &opts.exclude, &opts.threads, &callable))
        return NULL;
    opts.progress = core_progress_init(&progress, callable);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_tensors_stats_new(&stats, set, &opts, &err);
    Py_END_ALLOW_THREADS
    if (status)
        return core_handle_fail(object, &err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < coffer_tensors_stats_count(stats); i++) {
        const coffer_tensor_stats *row = coffer_tensors_stats_at(stats, i);
        PyObject *item = stats_row(row, coffer_tensors_at(set, row->tensor)->name);
        core_append(&list, item);
    }
    coffer_tensors_stats_free(stats);
    return list;
}

/* Compares the payload of a tensor with its checksums, where the file has them. Raises ChecksumError. */
static PyObject *tensors_verify(PyObject *object, PyObject *index)
{
    size_t at = 0;
    const coffer_tensor *tensor = tensor_at(object, index, &at);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    if (!tensor)
        return NULL;
    const coffer_tensors *set = ((core_handle *)object)->handle;
    uint64_t done = 0;
    do {
        uint64_t now = tensor->size - done < BYTES_AT_ONCE ? tensor->size - done : BYTES_AT_ONCE;
        Py_BEGIN_ALLOW_THREADS
        status = coffer_tensors_verify(set, at, done, now, &err);
        Py_END_ALLOW_THREADS
        done += now;
    } while (!status && done < tensor->size && !(status = look_for_interrupt()));
    if (status)
        return core_handle_fail(object, &err);
    Py_RETURN_NONE;
}

/* cuda_load(index, address, size, stream): the stored bytes, verified, into memory of a GPU. */
static PyObject *tensors_cuda_load(PyObject *object, PyObject *args)
{
    const coffer_tensors *set = open_set(object);
    coffer_cuda_load_opts opts = COFFER_CUDA_LOAD_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    core_progress progress;
    coffer_status status;
    Py_ssize_t index;
    unsigned long long address, size, stream;
    if (!set || !PyArg_ParseTuple(args, "nKKK", &index, &address, &size, &stream))
        return NULL;
    opts.stream = (void *)(uintptr_t)stream;             // NOLINT(performance-no-int-to-ptr)
    opts.progress = core_progress_init(&progress, NULL); /* looks for Ctrl-C */
    Py_BEGIN_ALLOW_THREADS
    status = coffer_cuda_load((void *)(uintptr_t)address, (size_t)size, set, (size_t)index, &opts, &err);
    Py_END_ALLOW_THREADS
    if (status)
        return core_handle_fail(object, &err);
    Py_RETURN_NONE;
}

static PyObject *tensors_intact(PyObject *object, PyObject *unused)
{
    const coffer_tensors *set =
        ((core_handle *)object)->handle; /* also of a closed file: its views are in use */
    coffer_error err = COFFER_ERROR_INIT;
    (void)unused;
    if (set && coffer_tensors_intact(set, &err))
        return core_handle_fail(object, &err);
    Py_RETURN_NONE;
}

static PyObject *tensors_kind(PyObject *object, void *unused)
{
    (void)unused;
    const coffer_tensors *set = core_handle_made(object);
    return set ? PyUnicode_FromString(coffer_tensors_kind(set)) : NULL;
}

static PyObject *tensors_size(PyObject *object, void *unused)
{
    (void)unused;
    const coffer_tensors *set = core_handle_made(object);
    return set ? PyLong_FromUnsignedLongLong(coffer_tensors_size(set)) : NULL;
}

static Py_ssize_t tensors_length(PyObject *object)
{
    const coffer_tensors *set = open_set(object);
    return set ? (Py_ssize_t)coffer_tensors_count(set) : -1;
}

static PyMethodDef tensors_methods[] = {
    { "names", tensors_names, METH_NOARGS, NULL },
    { "find", tensors_find, METH_O, NULL },
    { "info", tensors_info, METH_O, NULL },
    { "view", tensors_view, METH_O, NULL },
    { "read", tensors_read, METH_VARARGS, NULL },
    { "prefetch", tensors_prefetch, METH_VARARGS, NULL },
    { "read_as", tensors_read_as, METH_VARARGS, NULL },
    { "metadata", tensors_metadata, METH_NOARGS, NULL },
    { "describe", tensors_describe, METH_NOARGS, NULL },
    { "stats", tensors_stats, METH_VARARGS, NULL },
    { "verify", tensors_verify, METH_O, NULL },
    { "cuda_load", tensors_cuda_load, METH_VARARGS, NULL },
    { "intact", tensors_intact, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef tensors_members[] = {
    { "kind", tensors_kind, NULL, NULL, NULL },
    { "size", tensors_size, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot tensors_slots[] = {
    { Py_tp_init, tensors_init },
    { Py_tp_methods, tensors_methods },
    { Py_tp_getset, tensors_members },
    { Py_sq_length, tensors_length },
    { 0, NULL },
};

/* ---- Model files of our own ---- */

static coffer_status open_mcf(void **out, coffer_source *source, const void *opts, coffer_error *err)
{
    coffer_mcf *model = NULL;
    coffer_status status = coffer_mcf_open(&model, source, opts, err);
    *out = model;
    return status;
}

static void release_mcf(void *model)
{
    coffer_mcf_close(model);
}

/* Mcf(source) */
static int mcf_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const core_handle_acts acts = { open_mcf, release_mcf };
    PyObject *input;
    (void)kwargs;
    return PyArg_ParseTuple(args, "O", &input) ? core_handle_init(object, input, &acts, NULL) : -1;
}

static const coffer_mcf *open_model(PyObject *object)
{
    return core_handle_open(object);
}

/* [(type, name or None, version, offset, size)] */
static PyObject *mcf_sections(PyObject *object, PyObject *unused)
{
    const coffer_mcf *model = open_model(object);
    PyObject *list = model ? PyList_New(0) : NULL;
    (void)unused;
    for (size_t i = 0; list && i < coffer_mcf_section_count(model); i++) {
        const coffer_mcf_section *section = coffer_mcf_section_at(model, i);
        PyObject *item =
            Py_BuildValue("(IzIKK)", section->type, coffer_mcf_section_name(section->type), section->version,
                          (unsigned long long)section->offset, (unsigned long long)section->size);
        core_append(&list, item);
    }
    return list;
}

/* Bytes that the library allocated, as an object; they are freed. */
static PyObject *take_bytes(PyObject *object, coffer_status status, const coffer_error *err, uint8_t *bytes,
                            size_t len)
{
    if (status)
        return core_handle_fail(object, err);
    PyObject *result = PyBytes_FromStringAndSize((const char *)bytes, (Py_ssize_t)len);
    coffer_free(bytes);
    return result;
}

/* The bytes of a section by type. Raises KeyError when the file does not have it. */
static PyObject *mcf_read_section(PyObject *object, PyObject *number)
{
    const coffer_mcf *model = open_model(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    uint8_t *bytes = NULL;
    size_t len = 0;
    unsigned long type = model ? PyLong_AsUnsignedLong(number) : 0;
    if (PyErr_Occurred())
        return NULL;
    if (type > UINT32_MAX || !coffer_mcf_find_section(model, (uint32_t)type)) {
        PyErr_SetObject(PyExc_KeyError, number);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mcf_read_section(&bytes, &len, model, (uint32_t)type, &err);
    Py_END_ALLOW_THREADS
    return take_bytes(object, status, &err, bytes, len);
}

/* [(name, bytes)] of the other files of the model's folder. */
static PyObject *mcf_files(PyObject *object, PyObject *unused)
{
    const coffer_mcf *model = open_model(object);
    coffer_error err = COFFER_ERROR_INIT;
    const coffer_mcf_file *files = NULL;
    size_t count = 0;
    (void)unused;
    if (!model)
        return NULL;
    if (coffer_mcf_get_files(&files, &count, model, &err))
        return core_handle_fail(object, &err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++)
        core_append(&list, Py_BuildValue("(sK)", files[i].name, (unsigned long long)files[i].size));
    return list;
}

static PyObject *mcf_read_file(PyObject *object, PyObject *name)
{
    const coffer_mcf *model = open_model(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    uint8_t *bytes = NULL;
    size_t len = 0;
    const char *text = model ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (!text)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mcf_read_file(&bytes, &len, model, text, &err);
    Py_END_ALLOW_THREADS
    return take_bytes(object, status, &err, bytes, len);
}

/* (activations, min_clip, max_clip, snr_db or None, max_error or None) of a tensor by name, or None. */
static PyObject *mcf_quant(PyObject *object, PyObject *name)
{
    const coffer_mcf *model = open_model(object);
    Py_ssize_t len = 0;
    const char *text = model ? PyUnicode_AsUTF8AndSize(name, &len) : NULL;
    if (!text)
        return NULL;
    size_t tensor = coffer_mcf_find_tensor(model, text, (size_t)len);
    const coffer_mcf_quant *quant = tensor == COFFER_INDEX_NONE ? NULL : coffer_mcf_quant_at(model, tensor);
    if (!quant)
        Py_RETURN_NONE;
    const coffer_mcf_quality *quality = coffer_mcf_quality_at(model, tensor);
    PyObject *snr = quality ? PyFloat_FromDouble((double)quality->snr_db) : Py_NewRef(Py_None);
    PyObject *error = quality ? PyFloat_FromDouble((double)quality->max_error) : Py_NewRef(Py_None);
    return Py_BuildValue("(OddNN)", quant->activations ? Py_True : Py_False, (double)quant->min_clip,
                         (double)quant->max_clip, snr, error);
}

static PyMethodDef mcf_methods[] = {
    { "sections", mcf_sections, METH_NOARGS, NULL },
    { "read_section", mcf_read_section, METH_O, NULL },
    { "files", mcf_files, METH_NOARGS, NULL },
    { "read_file", mcf_read_file, METH_O, NULL },
    { "quant", mcf_quant, METH_O, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot mcf_slots[] = {
    { Py_tp_init, mcf_init },
    { Py_tp_methods, mcf_methods },
    { 0, NULL },
};

int core_add_tensors(PyObject *module)
{
    return core_add_handle(module, "coffer._core.Tensors", tensors_slots) ||
                   core_add_handle(module, "coffer._core.Mcf", mcf_slots)
               ? -1
               : 0;
}
