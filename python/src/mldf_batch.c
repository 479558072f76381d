/* MldfBatch: many samples at once, into memory of the caller. mldf_order: the order of an epoch. */
#include "core.h"

#include <string.h>

/* ---- Batches ---- */

typedef struct batch_object {
    PyObject_HEAD coffer_mldf_batch *batch;
    PyObject *set;
    coffer_image_decoder *decoder; /* made for the first picture */
    bool busy;                     /* the reader serves one thread at a time */
} batch_object;

static int batch_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    batch_object *self = (batch_object *)object;
    coffer_mldf_batch_opts opts = COFFER_MLDF_BATCH_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    PyObject *set;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OI", &set, &opts.threads))
        return -1;
    if (self->batch) {
        PyErr_SetString(PyExc_ValueError, "the reader was already made");
        return -1;
    }
    const coffer_mldf *opened = core_mldf_of(core_state_of(object), set);
    if (!opened)
        return -1;
    if (coffer_mldf_batch_new(&self->batch, opened, &opts, &err)) {
        core_handle_fail(set, &err);
        return -1;
    }
    self->set = Py_NewRef(set);
    return 0;
}

/* The set of the reader; NULL with an exception when it is closed. */
static const coffer_mldf *open_set(const batch_object *self)
{
    if (self->set)
        return core_handle_open(self->set);
    core_raise_closed();
    return NULL;
}

static void batch_dealloc(PyObject *object)
{
    batch_object *self = (batch_object *)object;
    coffer_image_decoder_free(self->decoder);
    if (self->batch)
        coffer_mldf_batch_free(self->batch);
    Py_XDECREF(self->set);
    core_free_object(object);
}

/* ---- Which samples ---- */

typedef struct sample_list {
    uint64_t *list;
    size_t count;
} sample_list;

enum { NUMBER_SIZE = 8 };

/* A number as Python has it: negative ones count from the end. */
static bool place_sample(uint64_t *out, int64_t number, uint64_t count)
{
    *out = number < 0 ? count + (uint64_t)number : (uint64_t)number;
    if (*out < count)
        return true;
    PyErr_Format(PyExc_IndexError, "sample %lld of %llu", (long long)number, (unsigned long long)count);
    return false;
}

static bool place_all(sample_list *out, const Py_buffer *numbers, uint64_t count)
{
    const char *format = numbers->format ? numbers->format : "B";
    bool fits = numbers->ndim == 1 && numbers->itemsize == NUMBER_SIZE && strlen(format) == 1;
    if (!fits || !strchr("lqLQ", *format)) {
        PyErr_SetString(PyExc_TypeError, "samples are a list of integers or an array of int64 or uint64");
        return false;
    }
    const char *at = numbers->buf;
    bool is_signed = *format == 'l' || *format == 'q';
    for (size_t i = 0; i < out->count; i++, at += NUMBER_SIZE) {
        int64_t number;
        memcpy(&number, at, sizeof number);
        if (number < 0 && !is_signed)
            number = INT64_MAX;
        if (!place_sample(&out->list[i], number, count))
            return false;
    }
    return true;
}

static bool place_items(sample_list *out, PyObject *sequence, uint64_t count)
{
    for (size_t i = 0; i < out->count; i++) {
        PyObject *item = PySequence_GetItem(sequence, (Py_ssize_t)i);
        Py_ssize_t number = item ? PyNumber_AsSsize_t(item, PyExc_IndexError) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred() || !place_sample(&out->list[i], number, count))
            return false;
    }
    return true;
}

/* A list or tuple of integers, or an array of 64-bit ones; out->list is freed with PyMem_Free, also when this
 * fails. */
static bool take_samples(sample_list *out, const batch_object *self, PyObject *samples)
{
    const coffer_mldf *set = open_set(self);
    uint64_t count = set ? coffer_mldf_sample_count(set) : 0;
    Py_ssize_t size = set ? PyObject_Size(samples) : -1;
    *out = (sample_list){ NULL, size < 0 ? 0 : (size_t)size };
    if (size < 0)
        return false;
    out->list = PyMem_Malloc((out->count ? out->count : 1) * sizeof *out->list);
    if (!out->list)
        return PyErr_NoMemory() != NULL;
    if (PyList_Check(samples) || PyTuple_Check(samples))
        return place_items(out, samples, count);
    Py_buffer numbers;
    if (PyObject_GetBuffer(samples, &numbers, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0)
        return false;
    bool good = place_all(out, &numbers, count);
    PyBuffer_Release(&numbers);
    return good;
}

static bool begin_use(batch_object *self)
{
    if (self->busy)
        PyErr_SetString(PyExc_RuntimeError, "a batch reader serves one thread at a time");
    else
        self->busy = true;
    return !PyErr_Occurred();
}

/* size(samples, field): bytes of all values together. */
static PyObject *batch_size(PyObject *object, PyObject *args)
{
    batch_object *self = (batch_object *)object;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    sample_list samples = { NULL, 0 };
    PyObject *which;
    Py_ssize_t field;
    uint64_t size = 0;
    if (!PyArg_ParseTuple(args, "On", &which, &field))
        return NULL;
    if (take_samples(&samples, self, which) && begin_use(self)) {
        Py_BEGIN_ALLOW_THREADS
        status = coffer_mldf_batch_size(&size, self->batch, samples.list, samples.count, (size_t)field, &err);
        Py_END_ALLOW_THREADS
        self->busy = false;
        if (status)
            core_handle_fail(self->set, &err);
    }
    PyMem_Free(samples.list);
    return PyErr_Occurred() ? NULL : PyLong_FromUnsignedLongLong(size);
}

enum { MOST_TARGETS = 64, BUFFERS_OF_TARGET = 3 };

typedef struct batch_targets {
    coffer_mldf_target list[MOST_TARGETS];
    Py_buffer buffers[MOST_TARGETS * BUFFERS_OF_TARGET];
    size_t count, buffer_count;
} batch_targets;

static bool take_buffer(void **out, size_t *size, batch_targets *targets, PyObject *object)
{
    *out = NULL;
    *size = 0;
    if (object == Py_None)
        return true;
    Py_buffer *buffer = &targets->buffers[targets->buffer_count];
    if (core_writable(buffer, object, 0))
        return false;
    targets->buffer_count++;
    *out = buffer->buf;
    *size = (size_t)buffer->len;
    return true;
}

/* One of (field, data, stride, offsets or None, sizes or None), for `samples` samples. */
static bool take_target(batch_targets *targets, PyObject *item, size_t samples)
{
    coffer_mldf_target *target = &targets->list[targets->count];
    PyObject *data, *offsets, *sizes;
    Py_ssize_t field, stride;
    size_t offsets_size = 0, sizes_size = 0;
    void *offset_data = NULL, *size_data = NULL;
    coffer_mldf_target_init(target, sizeof *target);
    if (!PyArg_ParseTuple(item, "nOnOO", &field, &data, &stride, &offsets, &sizes) ||
        !take_buffer(&target->data, &target->data_size, targets, data) ||
        !take_buffer(&offset_data, &offsets_size, targets, offsets) ||
        !take_buffer(&size_data, &sizes_size, targets, sizes))
        return false;
    if ((offset_data && offsets_size / 8 < samples + 1) || (size_data && sizes_size / 4 < samples)) {
        PyErr_SetString(PyExc_ValueError, "offsets or sizes are too short");
        return false;
    }
    target->field = (size_t)field;
    target->stride = (size_t)stride;
    target->offsets = offset_data;
    target->sizes = size_data;
    targets->count++;
    return true;
}

/* read(samples, [(field, data, stride, offsets, sizes)]) */
static PyObject *batch_read(PyObject *object, PyObject *args)
{
    batch_object *self = (batch_object *)object;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    sample_list samples = { NULL, 0 };
    PyObject *which, *items;
    if (!PyArg_ParseTuple(args, "OO!", &which, &PyList_Type, &items))
        return NULL;
    batch_targets *targets = PyMem_Malloc(sizeof *targets);
    if (!targets)
        return PyErr_NoMemory();
    targets->count = targets->buffer_count = 0;
    bool good = PyList_Size(items) <= MOST_TARGETS;
    if (!good)
        PyErr_Format(PyExc_ValueError, "more than %d fields", MOST_TARGETS);
    good = good && take_samples(&samples, self, which);
    for (Py_ssize_t i = 0; good && i < PyList_Size(items); i++)
        good = take_target(targets, PyList_GetItem(items, i), samples.count);
    if (good && begin_use(self)) {
        Py_BEGIN_ALLOW_THREADS
        status = coffer_mldf_batch_read(self->batch, samples.list, samples.count, targets->list,
                                        targets->count, &err);
        Py_END_ALLOW_THREADS
        self->busy = false;
        if (status)
            core_handle_fail(self->set, &err);
    }
    for (size_t i = 0; i < targets->buffer_count; i++)
        PyBuffer_Release(&targets->buffers[i]);
    PyMem_Free(targets);
    PyMem_Free(samples.list);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* ---- Pictures of one size ---- */

typedef struct picture_job {
    const coffer_mldf *set;
    coffer_image_decoder *decoder;
    coffer_image_decode_opts opts;
    size_t field;
    uint8_t *out; /* of the next picture */
    coffer_bytes bytes;
    coffer_pixels pixels, scaled;
} picture_job;

static const uint8_t *stored_picture(size_t *size, picture_job *job, uint64_t sample, coffer_error *err)
{
    const uint8_t *view = coffer_mldf_view(size, job->set, sample, job->field);
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    if (view)
        return view;
    if (coffer_mldf_read(&job->bytes, &entry, job->set, sample, job->field, err))
        return NULL;
    *size = job->bytes.size;
    if (entry.present && job->bytes.data)
        return job->bytes.data;
    coffer_error_init(err);
    err->status = COFFER_E_MISSING;
    PyOS_snprintf(err->text, sizeof err->text, "sample %llu has no picture", (unsigned long long)sample);
    return NULL;
}

/* Decodes a picture, scales it and stores it at job->out. */
static coffer_status decode_picture(picture_job *job, uint64_t sample, coffer_error *err)
{
    uint32_t width = job->opts.min_width, height = job->opts.min_height, channels = job->opts.channels;
    size_t size = 0, row = (size_t)width * height * channels;
    const uint8_t *stored = stored_picture(&size, job, sample, err);
    if (!stored)
        return err->status;
    const coffer_pixels *found = &job->pixels;
    coffer_status status = coffer_image_decode(&job->pixels, job->decoder, stored, size, &job->opts, err);
    if (!status && (found->width != width || found->height != height)) {
        status = coffer_pixels_resize(&job->scaled, &job->pixels, width, height, err);
        found = &job->scaled;
    }
    if (status)
        return status;
    memcpy(job->out, found->data, row);
    job->out += row;
    return COFFER_OK;
}

static bool decode_pictures(picture_job *job, const batch_object *self, const sample_list *samples)
{
    enum { PICTURES_AT_ONCE = 8 }; /* between two looks for Ctrl-C */
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < samples->count;) {
        Py_BEGIN_ALLOW_THREADS
        for (size_t end = i + PICTURES_AT_ONCE; i < end && i < samples->count && !status; i++)
            status = decode_picture(job, samples->list[i], &err);
        Py_END_ALLOW_THREADS
        if (status) {
            core_handle_fail(self->set, &err);
            return false;
        }
        if (PyErr_CheckSignals() != 0)
            return false;
    }
    return true;
}

/* prefetch(samples, field): these values will be read one by one. */
static PyObject *batch_prefetch(PyObject *object, PyObject *args)
{
    batch_object *self = (batch_object *)object;
    sample_list samples = { NULL, 0 };
    PyObject *which;
    Py_ssize_t field;
    if (!PyArg_ParseTuple(args, "On", &which, &field))
        return NULL;
    const coffer_mldf *set = open_set(self);
    if (set && take_samples(&samples, self, which)) {
        Py_BEGIN_ALLOW_THREADS
        coffer_mldf_prefetch(set, (size_t)field, samples.list, samples.count);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(samples.list);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* pictures(samples, field, out, height, width, channels): fills out with pictures of one size. No value of
 * the field may be absent. */
static PyObject *batch_pictures(PyObject *object, PyObject *args)
{
    batch_object *self = (batch_object *)object;
    picture_job job = { .opts = COFFER_IMAGE_DECODE_OPTS_INIT,
                        .bytes = COFFER_BYTES_INIT,
                        .pixels = COFFER_PIXELS_INIT,
                        .scaled = COFFER_PIXELS_INIT };
    coffer_error err = COFFER_ERROR_INIT;
    sample_list samples = { NULL, 0 };
    Py_buffer out;
    PyObject *which, *target;
    Py_ssize_t field;
    unsigned height, width, channels;
    if (!PyArg_ParseTuple(args, "OnOIII", &which, &field, &target, &height, &width, &channels))
        return NULL;
    if (core_writable(&out, target, 0))
        return NULL;
    job.set = open_set(self);
    job.opts.min_height = height;
    job.opts.min_width = width;
    job.opts.channels = channels;
    job.field = (size_t)field;
    job.out = out.buf;
    bool good = job.set && take_samples(&samples, self, which);
    if (good && (height > UINT16_MAX || width > UINT16_MAX || !height || !width || channels - 1 > 3 ||
                 (uint64_t)out.len / ((uint64_t)height * width * channels) < samples.count)) {
        PyErr_SetString(PyExc_ValueError, "the output has no room for pictures of that size");
        good = false;
    }
    if (good && begin_use(self)) {
        if (!self->decoder && coffer_image_decoder_new(&self->decoder, NULL, &err))
            core_handle_fail(self->set, &err);
        job.decoder = self->decoder;
        if (self->decoder)
            decode_pictures(&job, self, &samples);
        self->busy = false;
    }
    coffer_free(job.bytes.data);
    coffer_free(job.pixels.data);
    coffer_free(job.scaled.data);
    PyMem_Free(samples.list);
    PyBuffer_Release(&out);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef batch_methods[] = {
    { "size", batch_size, METH_VARARGS, NULL },
    { "prefetch", batch_prefetch, METH_VARARGS, NULL },
    { "read", batch_read, METH_VARARGS, NULL },
    { "pictures", batch_pictures, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot batch_slots[] = {
    { Py_tp_init, batch_init },
    { Py_tp_dealloc, batch_dealloc },
    { Py_tp_methods, batch_methods },
    { 0, NULL },
};

/* ---- Order ---- */

/* order(out, samples, epoch, first, seed, sequential, window_pages, page_samples, rank, world, tail): fills
 * out, an array of uint64, with the samples at positions [first, first + len(out)); returns the samples per
 * epoch. */
static PyObject *order(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_mldf_order_opts opts = COFFER_MLDF_ORDER_OPTS_INIT;
    coffer_mldf_order prepared = COFFER_MLDF_ORDER_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    Py_buffer out;
    PyObject *target;
    unsigned long long samples, epoch, first, seed, page_samples;
    int sequential, tail;
    if (!PyArg_ParseTuple(args, "OKKKKpIKIIi", &target, &samples, &epoch, &first, &seed, &sequential,
                          &opts.window_pages, &page_samples, &opts.rank, &opts.world, &tail))
        return NULL;
    opts.seed = seed;
    opts.sequential = sequential;
    opts.page_samples = page_samples;
    opts.tail = (coffer_mldf_tail)tail;
    if (coffer_mldf_order_prepare(&prepared, samples, &opts, &err))
        return core_raise(state, &err, NULL);
    if (core_writable(&out, target, 0))
        return NULL;
    uint64_t length = coffer_mldf_order_length(&prepared);
    size_t count = (size_t)out.len / sizeof(uint64_t);
    if (first > length || count > length - first) {
        PyBuffer_Release(&out);
        PyErr_Format(PyExc_IndexError, "positions %llu to %llu of an epoch of %llu", first, first + count,
                     (unsigned long long)length);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    char *at = out.buf;
    for (size_t i = 0; i < count; i++, at += sizeof(uint64_t)) {
        uint64_t sample = coffer_mldf_order_at(&prepared, epoch, first + i);
        memcpy(at, &sample, sizeof sample);
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&out);
    return PyLong_FromUnsignedLongLong(length);
}

static PyMethodDef functions[] = {
    { "mldf_order", order, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_mldf_batch(PyObject *module)
{
    return core_add_type(module, "coffer._core.MldfBatch", sizeof(batch_object), batch_slots)
               ? -1
               : PyModule_AddFunctions(module, functions);
}
