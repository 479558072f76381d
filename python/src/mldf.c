/* Mldf: a training set. set[i, "label"] is answered here; pictures, sounds and arrays are decoded by methods
 * of the class in coffer/mldf.py. */
#include "core.h"

#include <string.h>

typedef struct mldf_object {
    PyObject_HEAD coffer_mldf *set;
    PyObject *source;
    PyObject *indices;             /* dict: field name -> index */
    PyObject *names;               /* tuple of field names */
    coffer_image_decoder *decoder; /* lent to one call at a time */
    bool closed;
} mldf_object;

static PyObject *path_of(const mldf_object *self)
{
    return ((core_source *)self->source)->path;
}

static PyObject *fail(PyObject *object, const coffer_error *err)
{
    return core_raise(core_state_of(object), err, path_of((mldf_object *)object));
}

static bool name_fields(mldf_object *self)
{
    size_t count = coffer_mldf_field_count(self->set);
    self->indices = PyDict_New();
    self->names = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; self->indices && self->names && i < count; i++) {
        PyObject *name = PyUnicode_FromString(coffer_mldf_field_at(self->set, i)->name);
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

static int mldf_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    mldf_object *self = (mldf_object *)object;
    core_state *state = core_state_of(object);
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    PyObject *input;
    const char *key = NULL;
    Py_ssize_t key_len = 0;
    int verify = 0;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O|z#p", &input, &key, &key_len, &verify))
        return -1;
    if (self->set) {
        PyErr_SetString(PyExc_RuntimeError, "a set is opened once");
        return -1;
    }
    if (key && key_len != COFFER_MLDF_KEY_SIZE) {
        PyErr_Format(PyExc_ValueError, "a key has %d bytes, not %zd", COFFER_MLDF_KEY_SIZE, key_len);
        return -1;
    }
    core_source *source = core_as_source(state, input);
    if (!source)
        return -1;
    self->source = Py_NewRef(input);
    opts.key = (const uint8_t *)key;
    opts.verify = verify;
    Py_BEGIN_ALLOW_THREADS
    coffer_source_view(source->source, 0, 1); /* maps a file: reading a number needs no system call then */
    status = coffer_mldf_open(&self->set, source->source, &opts, &err);
    Py_END_ALLOW_THREADS
    if (status) {
        fail(object, &err);
        return -1;
    }
    return name_fields(self) ? 0 : -1;
}

static void mldf_dealloc(PyObject *object)
{
    mldf_object *self = (mldf_object *)object;
    coffer_image_decoder_free(self->decoder);
    if (self->set)
        coffer_mldf_close(self->set);
    Py_XDECREF(self->source);
    Py_XDECREF(self->indices);
    Py_XDECREF(self->names);
    core_free_object(object);
}

static const coffer_mldf *open_set(PyObject *object)
{
    mldf_object *self = (mldf_object *)object;
    if (!self->set || self->closed) {
        core_raise_closed();
        return NULL;
    }
    return self->set;
}

PyObject *core_mldf_fail(PyObject *object, const coffer_error *err)
{
    return fail(object, err);
}

coffer_mldf *core_mldf_of(core_state *state, PyObject *object)
{
    int is = PyObject_IsInstance(object, (PyObject *)state->mldf_type);
    if (is == 1)
        return open_set(object) ? ((mldf_object *)object)->set : NULL;
    if (is == 0)
        PyErr_Format(PyExc_TypeError, "expected a Dataset, got %R", object);
    return NULL;
}

static PyObject *mldf_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    ((mldf_object *)object)->closed = true;
    Py_RETURN_NONE;
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
static bool field_index(size_t *out, const mldf_object *self, PyObject *field)
{
    if (PyLong_Check(field)) {
        *out = PyLong_AsSize_t(field);
        if (PyErr_Occurred())
            return false;
        if (*out < coffer_mldf_field_count(self->set))
            return true;
        PyErr_Format(PyExc_IndexError, "field %zu of %zu", *out, coffer_mldf_field_count(self->set));
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

/* The bytes of a value: a View where the file has them as they are, else bytes; None when it is absent. */
static PyObject *value_bytes(PyObject *object, const coffer_mldf *set, uint64_t sample, size_t field)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    size_t size = 0;
    const uint8_t *data = coffer_mldf_view(&size, set, sample, field);
    if (data)
        return core_view(core_state_of(object), object, data, size);
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_read(&bytes, &entry, set, sample, field, &err);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (status)
        fail(object, &err);
    else if (!entry.present)
        result = Py_NewRef(Py_None);
    else
        result = PyBytes_FromStringAndSize((const char *)bytes.data, (Py_ssize_t)bytes.size);
    coffer_free(bytes.data);
    return result;
}

static PyObject *text_value(PyObject *object, const coffer_mldf *set, uint64_t sample, size_t field)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    coffer_status status;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_get_text(&bytes, set, sample, field, &err);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (!status)
        result = PyUnicode_DecodeUTF8((const char *)bytes.data, (Py_ssize_t)bytes.size, NULL);
    else if (status == COFFER_E_MISSING)
        result = Py_NewRef(Py_None);
    else
        fail(object, &err);
    coffer_free(bytes.data);
    return result;
}

static PyObject *field_value(PyObject *object, const coffer_mldf *set, uint64_t sample, size_t field)
{
    const coffer_mldf_field *described = coffer_mldf_field_at(set, field);
    coffer_error err = COFFER_ERROR_INIT;
    int64_t integer = 0;
    double real = 0;
    switch (described->kind) {
    case COFFER_MLDF_ENTRY_INT:
        if (coffer_mldf_get_int(&integer, set, sample, field, &err))
            return fail(object, &err);
        return PyLong_FromLongLong(integer);
    case COFFER_MLDF_ENTRY_FLOAT:
        if (coffer_mldf_get_float(&real, set, sample, field, &err))
            return fail(object, &err);
        return PyFloat_FromDouble(real);
    default:
        if (described->type == COFFER_MLDF_TEXT)
            return text_value(object, set, sample, field);
        return PyObject_CallMethod(object, "_decode", "Kn", (unsigned long long)sample, (Py_ssize_t)field);
    }
}

static PyObject *whole_sample(PyObject *object, const coffer_mldf *set, uint64_t sample)
{
    mldf_object *self = (mldf_object *)object;
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
            !field_index(&field, (mldf_object *)object, PyTuple_GetItem(key, 1)))
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

static bool parse_place(uint64_t *sample, size_t *field, PyObject *object, PyObject *args)
{
    const coffer_mldf *set = open_set(object);
    PyObject *number, *name;
    return set && PyArg_ParseTuple(args, "OO", &number, &name) && sample_index(sample, set, number) &&
           field_index(field, (mldf_object *)object, name);
}

static PyObject *mldf_bytes(PyObject *object, PyObject *args)
{
    uint64_t sample = 0;
    size_t field = 0;
    if (!parse_place(&sample, &field, object, args))
        return NULL;
    return value_bytes(object, ((mldf_object *)object)->set, sample, field);
}

/* The entry of a value in its row, as a dict; None when it is absent. */
static PyObject *mldf_entry(PyObject *object, PyObject *args)
{
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t sample = 0;
    size_t field = 0;
    if (!parse_place(&sample, &field, object, args))
        return NULL;
    if (coffer_mldf_entry_at(&entry, ((mldf_object *)object)->set, sample, field, &err))
        return fail(object, &err);
    if (!entry.present)
        Py_RETURN_NONE;
    return Py_BuildValue("{s:K,s:I,s:H,s:H,s:B,s:H,s:I,s:I,s:B,s:B,s:H,s:B}", "offset",
                         (unsigned long long)entry.offset, "size", entry.size, "height", entry.height,
                         "width", entry.width, "mode", entry.mode, "channels", entry.channels, "num_samples",
                         entry.num_samples, "sample_rate", entry.sample_rate, "bit_depth", entry.bit_depth,
                         "codec", entry.codec, "num_tokens", entry.num_tokens, "encoding", entry.encoding);
}

/* (bytes, shape, element type) of an array; None when it is absent. */
static PyObject *mldf_array(PyObject *object, PyObject *args)
{
    core_state *state = core_state_of(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    uint64_t dims[COFFER_MLDF_MAX_DIMS] = { 0 };
    uint64_t sample = 0;
    size_t field = 0;
    coffer_status status;
    if (!parse_place(&sample, &field, object, args))
        return NULL;
    const coffer_mldf *set = ((mldf_object *)object)->set;
    const coffer_mldf_field *described = coffer_mldf_field_at(set, field);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_get_array(&bytes, dims, set, sample, field, &err);
    Py_END_ALLOW_THREADS
    if (status) {
        coffer_free(bytes.data);
        if (status == COFFER_E_MISSING)
            Py_RETURN_NONE;
        return fail(object, &err);
    }
    PyObject *block = core_block(state, bytes.data, bytes.size);
    PyObject *shape = block ? core_shape(dims, described->ndim) : NULL;
    if (!shape) {
        Py_XDECREF(block);
        return NULL;
    }
    return Py_BuildValue("(NNs)", block, shape, coffer_dtype_name(described->dtype));
}

/* Token ids as a block of uint32; None when they are absent. */
static PyObject *mldf_tokens(PyObject *object, PyObject *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes bytes = COFFER_BYTES_INIT;
    uint64_t sample = 0;
    size_t field = 0;
    coffer_status status;
    if (!parse_place(&sample, &field, object, args))
        return NULL;
    const coffer_mldf *set = ((mldf_object *)object)->set;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_get_tokens(&bytes, set, sample, field, &err);
    Py_END_ALLOW_THREADS
    if (!status)
        return core_block(core_state_of(object), bytes.data, bytes.size);
    coffer_free(bytes.data);
    if (status == COFFER_E_MISSING)
        Py_RETURN_NONE;
    return fail(object, &err);
}

/* ---- Pictures and sounds ---- */

static coffer_image_decoder *borrow_decoder(mldf_object *self, coffer_error *err)
{
    coffer_image_decoder *decoder = self->decoder;
    self->decoder = NULL;
    if (!decoder && coffer_image_decoder_new(&decoder, NULL, err))
        return NULL;
    return decoder;
}

static void return_decoder(mldf_object *self, coffer_image_decoder *decoder)
{
    if (self->decoder)
        coffer_image_decoder_free(decoder);
    else
        self->decoder = decoder;
}

/* decode_image(bytes, channels, width, height): (block, height, width, channels). With a width and a height
 * other than 0 the picture is scaled to them. */
static PyObject *mldf_decode_image(PyObject *object, PyObject *args)
{
    mldf_object *self = (mldf_object *)object;
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pixels pixels = COFFER_PIXELS_INIT, scaled = COFFER_PIXELS_INIT;
    coffer_status status;
    Py_buffer bytes;
    unsigned channels, width, height;
    if (!PyArg_ParseTuple(args, "y*III", &bytes, &channels, &width, &height))
        return NULL;
    coffer_image_decoder *decoder = borrow_decoder(self, &err);
    if (!decoder) {
        PyBuffer_Release(&bytes);
        return fail(object, &err);
    }
    opts.channels = channels;
    opts.min_width = width;
    opts.min_height = height;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_image_decode(&pixels, decoder, bytes.buf, (size_t)bytes.len, &opts, &err);
    if (!status && width && height && (pixels.width != width || pixels.height != height)) {
        status = coffer_pixels_resize(&scaled, &pixels, width, height, &err);
        coffer_free(pixels.data);
        pixels = scaled;
    }
    Py_END_ALLOW_THREADS
    return_decoder(self, decoder);
    PyBuffer_Release(&bytes);
    if (status) {
        coffer_free(pixels.data);
        return fail(object, &err);
    }
    PyObject *block = core_block(core_state_of(object), pixels.data,
                                 (size_t)pixels.width * pixels.height * pixels.channels);
    return block ? Py_BuildValue("(NIII)", block, pixels.height, pixels.width, pixels.channels) : NULL;
}

/* scale(pixels, height, width, channels, new height, new width): a block. */
static PyObject *mldf_scale(PyObject *object, PyObject *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pixels from = COFFER_PIXELS_INIT, scaled = COFFER_PIXELS_INIT;
    coffer_status status;
    Py_buffer bytes;
    unsigned height, width;
    if (!PyArg_ParseTuple(args, "y*IIIII", &bytes, &from.height, &from.width, &from.channels, &height,
                          &width))
        return NULL;
    if ((uint64_t)from.height * from.width > (uint64_t)bytes.len / (from.channels ? from.channels : 1)) {
        PyBuffer_Release(&bytes);
        PyErr_SetString(PyExc_ValueError, "the pixels are fewer than the size says");
        return NULL;
    }
    from.data = bytes.buf;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_pixels_resize(&scaled, &from, width, height, &err);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&bytes);
    if (status) {
        coffer_free(scaled.data);
        return fail(object, &err);
    }
    return core_block(core_state_of(object), scaled.data, (size_t)width * height * from.channels);
}

/* decode_audio(bytes, out): float32 samples, interleaved; out has room for frames x channels. */
static PyObject *mldf_decode_audio(PyObject *object, PyObject *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer bytes, out;
    PyObject *target;
    if (!PyArg_ParseTuple(args, "y*O", &bytes, &target))
        return NULL;
    if (core_writable(&out, target, 0)) {
        PyBuffer_Release(&bytes);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status =
        coffer_audio_decode(out.buf, (size_t)out.len / sizeof(float), bytes.buf, (size_t)bytes.len, &err);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&bytes);
    PyBuffer_Release(&out);
    if (status)
        return fail(object, &err);
    Py_RETURN_NONE;
}

/* (frames, channels, sample rate, bit depth) of encoded audio. */
static PyObject *mldf_probe_audio(PyObject *object, PyObject *args)
{
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    Py_buffer bytes;
    if (!PyArg_ParseTuple(args, "y*", &bytes))
        return NULL;
    coffer_status status = coffer_audio_probe(&info, bytes.buf, (size_t)bytes.len, &err);
    PyBuffer_Release(&bytes);
    if (status)
        return fail(object, &err);
    return Py_BuildValue("(KIII)", (unsigned long long)info.frames, info.channels, info.sample_rate,
                         info.bit_depth);
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
        !field_index(&field, (mldf_object *)object, name))
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
        return fail(object, &err);
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
        if (!item || PyList_Append(list, item) != 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *mldf_names(PyObject *object, void *unused)
{
    (void)unused;
    return Py_NewRef(((mldf_object *)object)->names);
}

static PyObject *mldf_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((mldf_object *)object)->closed);
}

static PyObject *mldf_page_samples(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(coffer_mldf_samples_per_page(((mldf_object *)object)->set));
}

static PyObject *mldf_source(PyObject *object, void *unused)
{
    (void)unused;
    return Py_NewRef(((mldf_object *)object)->source);
}

static PyMethodDef mldf_methods[] = {
    { "close", mldf_close, METH_NOARGS, "Closes the set; arrays that were taken from it stay valid." },
    { "_bytes", mldf_bytes, METH_VARARGS, NULL },
    { "_entry", mldf_entry, METH_VARARGS, NULL },
    { "_array", mldf_array, METH_VARARGS, NULL },
    { "_tokens", mldf_tokens, METH_VARARGS, NULL },
    { "_decode_image", mldf_decode_image, METH_VARARGS, NULL },
    { "_scale", mldf_scale, METH_VARARGS, NULL },
    { "_decode_audio", mldf_decode_audio, METH_VARARGS, NULL },
    { "_probe_audio", mldf_probe_audio, METH_VARARGS, NULL },
    { "_column", mldf_column, METH_VARARGS, NULL },
    { "_describe_fields", mldf_describe_fields, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef mldf_members[] = {
    { "_names", mldf_names, NULL, NULL, NULL },
    { "closed", mldf_closed, NULL, "Whether close() was called.", NULL },
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

static PyType_Spec mldf_spec = {
    .name = "coffer._core.Mldf",
    .basicsize = sizeof(mldf_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = mldf_slots,
};

int core_add_mldf(PyObject *module)
{
    core_state *state = core_state_of_module(module);
    state->mldf_type = core_new_type(module, &mldf_spec);
    return state->mldf_type ? core_add_mldf_batch(module) : -1;
}
