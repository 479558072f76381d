/* Payloads on the GPU. Addresses and streams are numbers: tensors of PyTorch have them, and keep the memory.
 */
#include "core.h"

static void *pointer_of(unsigned long long address)
{
    return (void *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
}

/* cuda_device_count() */
static PyObject *cuda_device_count(PyObject *module, PyObject *unused)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint32_t count = 0;
    (void)unused;
    if (coffer_cuda_device_count(&count, &err))
        return core_raise(core_state_of_module(module), &err, NULL);
    return PyLong_FromUnsignedLong(count);
}

typedef struct cuda_tensor {
    const char *type;
    unsigned long long rows, cols, payload, size;
    int activations;
} cuda_tensor;

static bool take_tensor(coffer_quant_tensor *out, const cuda_tensor *given)
{
    coffer_quant_tensor_init(out, sizeof *out);
    out->dtype = core_dtype(given->type);
    out->rows = given->rows;
    out->cols = given->cols;
    out->activations = given->activations != 0;
    out->payload = pointer_of(given->payload);
    out->size = (size_t)given->size;
    return out->dtype != COFFER_DTYPE_NONE;
}

static PyObject *finish(PyObject *module, coffer_status status, const coffer_error *err)
{
    if (status)
        return core_raise(core_state_of_module(module), err, NULL);
    Py_RETURN_NONE;
}

/* cuda_decode((type, rows, cols, activations, payload, size), out, as, stream) */
static PyObject *cuda_decode(PyObject *module, PyObject *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_quant_tensor tensor;
    coffer_status status;
    cuda_tensor given;
    const char *as;
    unsigned long long out, stream;
    if (!PyArg_ParseTuple(args, "(sKKpKK)KsK", &given.type, &given.rows, &given.cols, &given.activations,
                          &given.payload, &given.size, &out, &as, &stream) ||
        !take_tensor(&tensor, &given))
        return NULL;
    coffer_dtype dtype = core_dtype(as);
    if (dtype == COFFER_DTYPE_NONE)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_cuda_decode(pointer_of(out), dtype, &tensor, 0, tensor.rows, pointer_of(stream), &err);
    Py_END_ALLOW_THREADS
    return finish(module, status, &err);
}

/* cuda_matmul((type, rows, cols, activations, payload, size), x, out, vectors, stream): out is vectors x
 * rows.
 */
static PyObject *cuda_matmul(PyObject *module, PyObject *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_quant_tensor tensor;
    coffer_status status;
    cuda_tensor given;
    unsigned long long x, out, stream;
    unsigned vectors;
    if (!PyArg_ParseTuple(args, "(sKKpKK)KKIK", &given.type, &given.rows, &given.cols, &given.activations,
                          &given.payload, &given.size, &x, &out, &vectors, &stream) ||
        !take_tensor(&tensor, &given))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status =
        coffer_cuda_matmul(pointer_of(out), &tensor, pointer_of(x), vectors, true, pointer_of(stream), &err);
    Py_END_ALLOW_THREADS
    return finish(module, status, &err);
}

static PyMethodDef functions[] = {
    { "cuda_device_count", cuda_device_count, METH_NOARGS, NULL },
    { "cuda_decode", cuda_decode, METH_VARARGS, NULL },
    { "cuda_matmul", cuda_matmul, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_cuda(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
