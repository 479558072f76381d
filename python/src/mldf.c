/* Mldf: a training set. set[i, "label"] is answered here; pictures, sounds and arrays are decoded by methods
 * of the class in coffer/mldf.py. */
#include "core.h"

#include <string.h>

static coffer_status open_handle(void **out, coffer_source *source, const void *opts, coffer_error *err)
{
    coffer_mldf *set = NULL;
    coffer_source_view(source, 0, 1); /* maps a file: reading a number needs no system call then */
    coffer_status status = coffer_mldf_open(&set, source, opts, err);
    *out = set;
    return status;
}

static void release(void *set)
{
    coffer_mldf_close(set);
}

static bool name_fields(core_mldf *self)
{
    const coffer_mldf *set = self->base.handle;
    size_t count = coffer_mldf_field_count(set);
    self->indices = PyDict_New();
    self->names = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; self->indices && self->names && i < count; i++) {
        PyObject *name = PyUnicode_FromString(coffer_mldf_field_at(set, i)->name);
        PyObject *index = PyLong_FromSize_t(i);
        bool good = name && index && PyDict_SetItem(self->indices, name, index) == 0;
        Py_XDECREF(index);
        if (!good) {
            Py_XDECREF(name);
            return false;
        }
        PyTuple_SetItem(self->names, (Py_ssize_t)i, name);
    }
    return self->indices && self->names;
}

/* Mldf(source, key or None, verify) */
static int mldf_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const core_handle_acts acts = { open_handle, release };
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    PyObject *input, *key = NULL;
    int verify = 0;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O|Op", &input, &key, &verify))
        return -1;
    opts.key = core_key(key);
    opts.verify = verify;
    if (PyErr_Occurred() || core_handle_init(object, input, &acts, &opts))
        return -1;
    return name_fields((core_mldf *)object) ? 0 : -1;
}

static void mldf_dealloc(PyObject *object)
{
    core_mldf *self = (core_mldf *)object;
    coffer_image_decoder_free(self->decoder);
    Py_XDECREF(self->indices);
    Py_XDECREF(self->names);
    core_handle_dealloc(object);
}

static coffer_mldf *open_set(PyObject *object)
{
    return core_handle_open(object);
}

coffer_mldf *core_mldf_of(core_state *state, PyObject *object)
{
    int is = PyObject_IsInstance(object, (PyObject *)state->mldf_type);
    if (is == 1)
        return open_set(object);
    if (is == 0)
        PyErr_Format(PyExc_TypeError, "expected a Dataset, got %R", object);
    return NULL;
}

/* ---- Samples and fields ---- */

/* A sample by number; negative ones count from the end. */
static bool sample_index(uint64_t *out, const coffer_mldf *set, PyObject *number)
{
    uint64_t count = coffer_mldf_sample_count(set);
    Py_ssize_t index = PyNumber_AsSsize_t(number, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred())
        return false;
    uint64_t sample = index < 0 ? count - (uint64_t)-index : (uint64_t)index;
    if (index < 0 ? (uint64_t)-index > count : sample >= count) {
        PyErr_Format(PyExc_IndexError, "sample %zd of %llu", index, (unsigned long long)count);
        return false;
    }
    *out = sample;
    return true;
}

/* A field by name or number. */
static bool field_index(size_t *out, PyObject *object, PyObject *field)
{
    const core_mldf *self = (core_mldf *)object;
    size_t count = coffer_mldf_field_count(self->base.handle);
    if (PyLong_Check(field)) {
        *out = PyLong_AsSize_t(field);
        if (PyErr_Occurred())
            return false;
        if (*out < count)
            return true;
        PyErr_Format(PyExc_IndexError, "field %zu of %zu", *out, count);
        return false;
    }
    PyObject *index = PyDict_GetItemWithError(self->indices, field);
    if (!index) {
        if (!PyErr_Occurred())
            PyErr_SetObject(PyExc_KeyError, field);
        return false;
    }
    *out = PyLong_AsSize_t(index);
    return true;
}

/* ---- Values ---- */

static PyObject *field_value(PyObject *object, const coffer_mldf *set, uint64_t sample, size_t field)
{
    const coffer_mldf_field *described = coffer_mldf_field_at(set, field);
    coffer_error err = COFFER_ERROR_INIT;
    int64_t integer = 0;
    double real = 0;
    switch (described->kind) {
    case COFFER_MLDF_ENTRY_INT:
        if (coffer_mldf_get_int(&integer, set, sample, field, &err))
            return core_handle_fail(object, &err);
        return PyLong_FromLongLong(integer);
    case COFFER_MLDF_ENTRY_FLOAT:
        if (coffer_mldf_get_float(&real, set, sample, field, &err))
            return core_handle_fail(object, &err);
        return PyFloat_FromDouble(real);
    default:
        if (described->type == COFFER_MLDF_TEXT)
            return core_mldf_text(object, set, sample, field);
        return PyObject_CallMethod(object, "_decode", "Kn", (unsigned long long)sample, (Py_ssize_t)field);
    }
}

static PyObject *whole_sample(PyObject *object, const coffer_mldf *set, uint64_t sample)
{
    core_mldf *self = (core_mldf *)object;
    size_t count = coffer_mldf_field_count(set);
    PyObject *map = PyDict_New();
    for (size_t i = 0; map && i < count; i++) {
        PyObject *value = field_value(object, set, sample, i);
        if (!value || PyDict_SetItem(map, PyTuple_GetItem(self->names, (Py_ssize_t)i), value) != 0)
            Py_CLEAR(map);
        Py_XDECREF(value);
    }
    return map;
}

/* Arrays of NumPy have __index__ as well. */
static bool is_number(PyObject *key)
{
    return PyLong_Check(key) || (PyIndex_Check(key) && !PySequence_Check(key));
}

static PyObject *mldf_subscript(PyObject *object, PyObject *key)
{
    const coffer_mldf *set = open_set(object);
    uint64_t sample = 0;
    size_t field = 0;
    if (!set)
        return NULL;
    if (PyTuple_Check(key) && PyTuple_Size(key) == 2 && is_number(PyTuple_GetItem(key, 0))) {
        if (!sample_index(&sample, set, PyTuple_GetItem(key, 0)) ||
            !field_index(&field, object, PyTuple_GetItem(key, 1)))
            return NULL;
        return field_value(object, set, sample, field);
    }
    if (is_number(key))
        return sample_index(&sample, set, key) ? whole_sample(object, set, sample) : NULL;
    return PyObject_CallMethod(object, "_select", "(O)", key);
}

static Py_ssize_t mldf_length(PyObject *object)
{
    const coffer_mldf *set = open_set(object);
    return set ? (Py_ssize_t)coffer_mldf_sample_count(set) : -1;
}

const coffer_mldf *core_mldf_place(uint64_t *sample, size_t *field, PyObject *object, PyObject *args)
{
    const coffer_mldf *set = open_set(object);
    PyObject *number, *name;
    if (set && PyArg_ParseTuple(args, "OO", &number, &name) && sample_index(sample, set, number) &&
        field_index(field, object, name))
        return set;
    return NULL;
}

/* ---- Many samples ---- */

/* read_column(field, out, first, count): 8 bytes each. */
static PyObject *mldf_column(PyObject *object, PyObject *args)
{
    const coffer_mldf *set = open_set(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer out;
    PyObject *target, *name;
    unsigned long long first, count;
    size_t field = 0;
    if (!set || !PyArg_ParseTuple(args, "OOKK", &name, &target, &first, &count) ||
        !field_index(&field, object, name))
        return NULL;
    if (count > SIZE_MAX / 8) {
        PyErr_SetString(PyExc_OverflowError, "too many samples");
        return NULL;
    }
    if (core_writable(&out, target, count * 8))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_read_column(out.buf, set, field, first, count, NULL, &err);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&out);
    if (status)
        return core_handle_fail(object, &err);
    Py_RETURN_NONE;
}

static PyObject *described_field(const coffer_mldf_field *field)
{
    const char *type = coffer_mldf_type_name(field->type);
    PyObject *shape = core_shape(field->dims, field->ndim);
    if (!shape)
        return NULL;
    return Py_BuildValue("{s:s,s:z,s:H,s:i,s:z,s:N,s:O,s:O,s:O,s:I,s:B}", "name", field->name, "type", type,
                         "number", field->type, "kind", (int)field->kind, "dtype",
                         field->dtype == COFFER_DTYPE_NONE ? NULL : coffer_dtype_name(field->dtype), "shape",
                         shape, "optional", field->flags & COFFER_MLDF_FIELD_OPTIONAL ? Py_True : Py_False,
                         "zstd", field->flags & COFFER_MLDF_FIELD_ZSTD ? Py_True : Py_False, "encrypted",
                         field->flags & COFFER_MLDF_FIELD_ENCRYPTED ? Py_True : Py_False, "sample_rate",
                         field->sample_rate, "jpeg_quality", field->jpeg_quality);
}

static PyObject *mldf_describe_fields(PyObject *object, PyObject *unused)
{
    const coffer_mldf *set = open_set(object);
    PyObject *list = set ? PyList_New(0) : NULL;
    (void)unused;
    for (size_t i = 0; list && i < coffer_mldf_field_count(set); i++) {
        PyObject *item = described_field(coffer_mldf_field_at(set, i));
        core_append(&list, item);
    }
    return list;
}

static PyObject *mldf_names(PyObject *object, void *unused)
{
    (void)unused;
    return core_handle_made(object) ? Py_NewRef(((core_mldf *)object)->names) : NULL;
}

static PyObject *mldf_page_samples(PyObject *object, void *unused)
{
    (void)unused;
    const coffer_mldf *set = core_handle_made(object);
    return set ? PyLong_FromUnsignedLongLong(coffer_mldf_samples_per_page(set)) : NULL;
}

static PyObject *mldf_source(PyObject *object, void *unused)
{
    (void)unused;
    return core_handle_made(object) ? Py_NewRef(((core_handle *)object)->source) : NULL;
}

static PyMethodDef mldf_methods[] = {
    { "_bytes", core_mldf_bytes, METH_VARARGS, NULL },
    { "_entry", core_mldf_entry, METH_VARARGS, NULL },
    { "_array", core_mldf_array, METH_VARARGS, NULL },
    { "_tokens", core_mldf_tokens, METH_VARARGS, NULL },
    { "_decode_image", core_mldf_decode_image, METH_VARARGS, NULL },
    { "_scale", core_mldf_scale, METH_VARARGS, NULL },
    { "_decode_audio", core_mldf_decode_audio, METH_VARARGS, NULL },
    { "_probe_audio", core_mldf_probe_audio, METH_VARARGS, NULL },
    { "_column", mldf_column, METH_VARARGS, NULL },
    { "_describe_fields", mldf_describe_fields, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef mldf_members[] = {
    { "_names", mldf_names, NULL, NULL, NULL },
    { "_page_samples", mldf_page_samples, NULL, NULL, NULL },
    { "_source", mldf_source, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot mldf_slots[] = {
    { Py_tp_init, mldf_init },           { Py_tp_dealloc, mldf_dealloc },
    { Py_tp_methods, mldf_methods },     { Py_tp_getset, mldf_members },
    { Py_mp_subscript, mldf_subscript }, { Py_mp_length, mldf_length },
    { Py_sq_length, mldf_length },       { 0, NULL },
};

int core_add_mldf(PyObject *module)
{
    core_state *state = core_state_of_module(module);
    state->mldf_type = core_new_type(module, "coffer._core.Mldf", sizeof(core_mldf), Py_TPFLAGS_BASETYPE,
                                     mldf_slots, state->handle_type);
    return !state->mldf_type || core_add_mldf_batch(module) || core_add_mldf_media(module) ? -1 : 0;
}
