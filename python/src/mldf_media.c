/* Pictures and sounds of a training set: decoding, scaling, describing. */
#include "core.h"

static coffer_image_decoder *borrow_decoder(core_mldf *self, coffer_error *err)
{
    coffer_image_decoder *decoder = self->decoder;
    self->decoder = NULL;
    if (!decoder && coffer_image_decoder_new(&decoder, NULL, err))
        return NULL;
    return decoder;
}

static void return_decoder(core_mldf *self, coffer_image_decoder *decoder)
{
    if (self->decoder)
        coffer_image_decoder_free(decoder);
    else
        self->decoder = decoder;
}

/* decode_image(bytes, channels, width, height): (block, height, width, channels). With a width and a height
 * other than 0 the picture is scaled to them. */
PyObject *core_mldf_decode_image(PyObject *object, PyObject *args)
{
    core_mldf *self = (core_mldf *)object;
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pixels pixels = COFFER_PIXELS_INIT, scaled = COFFER_PIXELS_INIT;
    coffer_status status;
    Py_buffer bytes;
    unsigned channels, width, height;
    if (!core_handle_open(object) || !PyArg_ParseTuple(args, "y*III", &bytes, &channels, &width, &height))
        return NULL;
    coffer_image_decoder *decoder = borrow_decoder(self, &err);
    if (!decoder) {
        PyBuffer_Release(&bytes);
        return core_handle_fail(object, &err);
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
        return core_handle_fail(object, &err);
    }
    PyObject *block = core_block(((core_handle *)object)->state, pixels.data,
                                 (size_t)pixels.width * pixels.height * pixels.channels);
    return block ? Py_BuildValue("(NIII)", block, pixels.height, pixels.width, pixels.channels) : NULL;
}

/* scale(pixels, height, width, channels, new height, new width): a block. */
PyObject *core_mldf_scale(PyObject *object, PyObject *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pixels from = COFFER_PIXELS_INIT, scaled = COFFER_PIXELS_INIT;
    coffer_status status;
    Py_buffer bytes;
    unsigned height, width;
    if (!core_handle_open(object) || !PyArg_ParseTuple(args, "y*IIIII", &bytes, &from.height, &from.width,
                                                       &from.channels, &height, &width))
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
        return core_handle_fail(object, &err);
    }
    return core_block(((core_handle *)object)->state, scaled.data, (size_t)width * height * from.channels);
}

/* decode_audio(bytes, out): float32 samples, interleaved; out has room for frames x channels. */
PyObject *core_mldf_decode_audio(PyObject *object, PyObject *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer bytes, out;
    PyObject *target;
    if (!core_handle_open(object) || !PyArg_ParseTuple(args, "y*O", &bytes, &target))
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
        return core_handle_fail(object, &err);
    Py_RETURN_NONE;
}

/* (frames, channels, sample rate, bit depth) of encoded audio. */
PyObject *core_mldf_probe_audio(PyObject *object, PyObject *args)
{
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    Py_buffer bytes;
    if (!core_handle_open(object) || !PyArg_ParseTuple(args, "y*", &bytes))
        return NULL;
    coffer_status status = coffer_audio_probe(&info, bytes.buf, (size_t)bytes.len, &err);
    PyBuffer_Release(&bytes);
    if (status)
        return core_handle_fail(object, &err);
    return Py_BuildValue("(KIII)", (unsigned long long)info.frames, info.channels, info.sample_rate,
                         info.bit_depth);
}

/* mldf_sound(bytes of a file): its description, as set_bytes takes it. */
static PyObject *describe_sound(PyObject *module, PyObject *args)
{
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer bytes;
    if (!PyArg_ParseTuple(args, "y*", &bytes))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mldf_describe_sound(&entry, bytes.buf, (size_t)bytes.len, &err);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&bytes);
    if (status)
        return core_raise(core_state_of_module(module), &err, NULL);
    return Py_BuildValue("(iiiIIIIiii)", 0, 0, 0, entry.channels, entry.num_samples, entry.sample_rate,
                         entry.bit_depth, entry.codec, 0, 0);
}

static PyMethodDef functions[] = {
    { "mldf_sound", describe_sound, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_mldf_media(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
