/* Quantized payloads in memory: size, encoding, products. QuantWorkers is a pool of threads for products. */
#include "core.h"

typedef struct workers_object {
    PyObject_HEAD coffer_quant_workers *workers;
    bool busy; /* it runs one product at a time */
} workers_object;

static int workers_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    workers_object *self = (workers_object *)object;
    coffer_quant_workers_opts opts = COFFER_QUANT_WORKERS_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "I", &opts.threads))
        return -1;
    if (self->workers) {
        PyErr_SetString(PyExc_ValueError, "the workers were already started");
        return -1;
    }
    if (!coffer_quant_workers_new(&self->workers, &opts, &err))
        return 0;
    core_raise(core_state_of(object), &err, NULL);
    return -1;
}

static void workers_dealloc(PyObject *object)
{
    coffer_quant_workers_free(((workers_object *)object)->workers);
    core_free_object(object);
}

static bool take_tensor(coffer_quant_tensor *out, const char *type, unsigned long long rows,
                        unsigned long long cols)
{
    coffer_quant_tensor_init(out, sizeof *out);
    out->dtype = core_dtype(type);
    out->rows = rows;
    out->cols = cols;
    return out->dtype != COFFER_DTYPE_NONE;
}

/* A float32 buffer of at least `count` numbers. */
static bool take_floats(Py_buffer *out, PyObject *object, uint64_t count)
{
    if (PyObject_GetBuffer(object, out, PyBUF_C_CONTIGUOUS) != 0)
        return false;
    if ((uint64_t)out->len / sizeof(float) >= count && (uintptr_t)out->buf % _Alignof(float) == 0)
        return true;
    PyErr_Format(PyExc_ValueError, "%llu numbers of float32 are needed", (unsigned long long)count);
    PyBuffer_Release(out);
    return false;
}

static bool product_fits(uint64_t a, uint64_t b)
{
    if (b == 0 || a <= SIZE_MAX / sizeof(float) / b)
        return true;
    PyErr_SetString(PyExc_OverflowError, "the shape does not fit into memory");
    return false;
}

/* quant_size(type, rows, cols): bytes of the payload. */
static PyObject *quant_size(PyObject *module, PyObject *args)
{
    coffer_quant_tensor tensor;
    coffer_error err = COFFER_ERROR_INIT;
    const char *type;
    unsigned long long rows, cols;
    uint64_t size = 0;
    if (!PyArg_ParseTuple(args, "sKK", &type, &rows, &cols) || !take_tensor(&tensor, type, rows, cols))
        return NULL;
    if (coffer_quant_size(&size, &tensor, &err))
        return core_raise(core_state_of_module(module), &err, NULL);
    return PyLong_FromUnsignedLongLong(size);
}

/* quant_encode(type, rows, cols, values, out, method) */
static PyObject *quant_encode(PyObject *module, PyObject *args)
{
    coffer_quant_encode_opts opts = COFFER_QUANT_ENCODE_OPTS_INIT;
    coffer_quant_tensor tensor;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer values, payload;
    PyObject *from, *to;
    const char *type;
    unsigned long long rows, cols;
    uint64_t size = 0;
    int method;
    if (!PyArg_ParseTuple(args, "sKKOOi", &type, &rows, &cols, &from, &to, &method) ||
        !take_tensor(&tensor, type, rows, cols) || !product_fits(rows, cols))
        return NULL;
    if (coffer_quant_size(&size, &tensor, &err))
        return core_raise(core_state_of_module(module), &err, NULL);
    if (!take_floats(&values, from, rows * cols))
        return NULL;
    if (core_writable(&payload, to, size)) {
        PyBuffer_Release(&values);
        return NULL;
    }
    opts.method = (coffer_quant_method)method;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_quant_encode(payload.buf, &tensor, values.buf, &opts, &err);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&values);
    PyBuffer_Release(&payload);
    if (status)
        return core_raise(core_state_of_module(module), &err, NULL);
    Py_RETURN_NONE;
}

/* quant_matmul(workers, type, rows, cols, payload, x, out, columns, rounded): out is columns x rows. rounded
 * : x enters as 8 bits. */
static PyObject *quant_matmul(PyObject *module, PyObject *args)
{
    coffer_quant_product_opts opts = COFFER_QUANT_PRODUCT_OPTS_INIT;
    coffer_quant_tensor tensor;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer payload, x, out;
    PyObject *pool, *stored, *from, *to;
    const char *type;
    unsigned long long rows, cols;
    unsigned columns;
    int rounded;
    if (!PyArg_ParseTuple(args, "O!sKKOOOIp", core_state_of_module(module)->workers_type, &pool, &type, &rows,
                          &cols, &stored, &from, &to, &columns, &rounded) ||
        !take_tensor(&tensor, type, rows, cols) || !product_fits(rows, columns) ||
        !product_fits(cols, columns))
        return NULL;
    if (PyObject_GetBuffer(stored, &payload, PyBUF_C_CONTIGUOUS) != 0)
        return NULL;
    if (!take_floats(&x, from, cols * columns)) {
        PyBuffer_Release(&payload);
        return NULL;
    }
    if (core_writable(&out, to, rows * columns * sizeof(float))) {
        PyBuffer_Release(&payload);
        PyBuffer_Release(&x);
        return NULL;
    }
    workers_object *self = (workers_object *)pool;
    bool mine = !self->busy; /* another thread has it: this product runs on its own thread */
    self->busy = true;
    tensor.payload = payload.buf;
    tensor.size = (size_t)payload.len;
    opts.inputs = rounded ? COFFER_QUANT_INPUTS_INT8 : COFFER_QUANT_INPUTS_F32;
    opts.workers = mine ? self->workers : NULL;
    opts.by_vector = true;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_quant_matmul(out.buf, &tensor, x.buf, columns, &opts, &err);
    Py_END_ALLOW_THREADS
    if (mine)
        self->busy = false;
    PyBuffer_Release(&payload);
    PyBuffer_Release(&x);
    PyBuffer_Release(&out);
    if (status)
        return core_raise(core_state_of_module(module), &err, NULL);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "quant_size", quant_size, METH_VARARGS, NULL },
    { "quant_encode", quant_encode, METH_VARARGS, NULL },
    { "quant_matmul", quant_matmul, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot workers_slots[] = {
    { Py_tp_init, workers_init },
    { Py_tp_dealloc, workers_dealloc },
    { 0, NULL },
};

int core_add_quant(PyObject *module)
{
    core_state *state = core_state_of_module(module);
    state->workers_type =
        core_new_type(module, "coffer._core.QuantWorkers", sizeof(workers_object), 0, workers_slots, NULL);
    return state->workers_type ? PyModule_AddFunctions(module, functions) : -1;
}
