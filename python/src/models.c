/* Functions that make models: pack, unpack, quantize. Their arguments are positional: the functions of
 * coffer/mcf.py call them. */
#include "core.h"

/* ---- Arguments ---- */

/* One call that reads a path, writes another one, and fills a tree. */
typedef struct model_call {
    PyObject *in, *out;  /* as given; borrowed */
    PyObject *from, *to; /* as bytes; from is NULL when there are several inputs */
    coffer_node *node;
    core_progress progress;
    coffer_error err;
} model_call;

/* in : NULL when the caller has its own inputs. False with an exception: model_call_end is still due. */
static bool model_call_begin(model_call *call, PyObject *in, PyObject *out)
{
    *call = (model_call){ .in = in, .out = out, .err = COFFER_ERROR_INIT };
    call->from = in ? core_path(in) : NULL;
    call->to = !in || call->from ? core_path(out) : NULL;
    call->node = call->to ? core_node_new() : NULL;
    return call->node;
}

static const char *from_path(const model_call *call)
{
    return PyBytes_AsString(call->from);
}

static const char *to_path(const model_call *call)
{
    return PyBytes_AsString(call->to);
}

/* The tree as an object; NULL with an exception when the status, or what came before, says so. */
static PyObject *model_call_end(core_state *state, model_call *call, coffer_status status)
{
    PyObject *result = NULL;
    if (call->node && !PyErr_Occurred())
        result = core_node_result(state, status, &call->err, call->node,
                                  call->err.subject == COFFER_SUBJECT_OUTPUT ? call->out : call->in);
    else
        coffer_node_free(call->node);
    Py_XDECREF(call->from);
    Py_XDECREF(call->to);
    return result;
}

/* A list of paths as an array of C strings that `keep`, a new list of bytes, owns. */
static const char **take_paths(PyObject **keep, PyObject *paths)
{
    Py_ssize_t count = PySequence_Size(paths);
    const char **list = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof *list);
    *keep = list ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; *keep && i < count; i++) {
        PyObject *item = PySequence_GetItem(paths, i);
        PyObject *bytes = item ? core_path(item) : NULL;
        if (!bytes || PyList_Append(*keep, bytes) != 0)
            Py_CLEAR(*keep);
        else
            list[i] = PyBytes_AsString(bytes);
        Py_XDECREF(bytes);
        Py_XDECREF(item);
    }
    if (*keep)
        return list;
    PyMem_Free(list);
    return NULL;
}

static coffer_mcf_quantize_rule *take_rules(size_t *count, PyObject *rules)
{
    Py_ssize_t size = PySequence_Size(rules);
    coffer_mcf_quantize_rule *list = size < 0 ? NULL : PyMem_Calloc((size_t)size + 1, sizeof *list);
    *count = size < 0 ? 0 : (size_t)size;
    for (Py_ssize_t i = 0; list && i < size; i++) {
        PyObject *pair = PySequence_GetItem(rules, i); /* the sequence keeps it */
        const char *type = NULL;
        coffer_mcf_quantize_rule_init(&list[i], sizeof list[i]);
        if (!pair || !PyArg_ParseTuple(pair, "zs", &list[i].glob, &type) ||
            (list[i].dtype = core_dtype(type)) == COFFER_DTYPE_NONE) {
            PyMem_Free(list);
            list = NULL;
        }
        Py_XDECREF(pair);
    }
    return list;
}

/* ---- Functions ---- */

/* pack_model(inputs, out, cast or None, model name or None, align, overwrite, threads, progress): (report of
 * what was converted, {"files": …}) */
static PyObject *pack_model(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    coffer_status status = COFFER_OK;
    model_call call;
    PyObject *inputs, *out, *callable, *keep = NULL;
    const char *cast;
    int overwrite;
    if (!PyArg_ParseTuple(args, "OOzzIpIO", &inputs, &out, &cast, &opts.model_name, &opts.align, &overwrite,
                          &opts.threads, &callable))
        return NULL;
    if (cast && (opts.cast = core_dtype(cast)) == COFFER_DTYPE_NONE)
        return NULL;
    const char **list = model_call_begin(&call, NULL, out) ? take_paths(&keep, inputs) : NULL;
    opts.notes = list ? core_report_new() : NULL;
    opts.report = call.node;
    if (opts.notes) {
        opts.overwrite = overwrite;
        opts.progress = core_progress_init(&call.progress, callable);
        size_t count = (size_t)PyList_Size(keep);
        Py_BEGIN_ALLOW_THREADS
        status = coffer_mcf_pack(to_path(&call), list, count, &opts, &call.err);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(list);
    Py_XDECREF(keep);
    PyObject *files = model_call_end(state, &call, status);
    PyObject *notes = files ? core_from_report(opts.notes) : NULL;
    coffer_report_free(opts.notes);
    if (notes)
        return Py_BuildValue("(NN)", notes, files);
    Py_XDECREF(files);
    return NULL;
}

/* unpack_model(path, folder, overwrite, progress): {"files": …} */
static PyObject *unpack_model(PyObject *module, PyObject *args)
{
    coffer_mcf_unpack_opts opts = COFFER_MCF_UNPACK_OPTS_INIT;
    coffer_status status = COFFER_OK;
    model_call call;
    PyObject *in, *out, *callable;
    int overwrite;
    if (!PyArg_ParseTuple(args, "OOpO", &in, &out, &overwrite, &callable))
        return NULL;
    if (model_call_begin(&call, in, out)) {
        opts.overwrite = overwrite;
        opts.progress = core_progress_init(&call.progress, callable);
        Py_BEGIN_ALLOW_THREADS
        status = coffer_mcf_unpack(call.node, to_path(&call), from_path(&call), &opts, &call.err);
        Py_END_ALLOW_THREADS
    }
    return model_call_end(core_state_of_module(module), &call, status);
}

/* quantize(in, out, [(glob or None, type)], method, target_bpw, requantize, overwrite, dry_run, threads,
 * progress) */
static PyObject *quantize(PyObject *module, PyObject *args)
{
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    coffer_status status = COFFER_OK;
    model_call call;
    PyObject *in, *out, *rules, *callable;
    int method, requantize, overwrite, dry_run;
    if (!PyArg_ParseTuple(args, "OOOidpppIO", &in, &out, &rules, &method, &opts.target_bpw, &requantize,
                          &overwrite, &dry_run, &opts.threads, &callable))
        return NULL;
    coffer_mcf_quantize_rule *list =
        model_call_begin(&call, in, out) ? take_rules(&opts.rule_count, rules) : NULL;
    if (list) {
        opts.rules = list;
        opts.method = (coffer_quant_method)method;
        opts.requantize = requantize;
        opts.overwrite = overwrite;
        opts.dry_run = dry_run;
        opts.progress = core_progress_init(&call.progress, callable);
        Py_BEGIN_ALLOW_THREADS
        status = coffer_mcf_quantize(call.node, to_path(&call), from_path(&call), &opts, &call.err);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(list);
    return model_call_end(core_state_of_module(module), &call, status);
}

static PyMethodDef functions[] = {
    { "pack_model", pack_model, METH_VARARGS, NULL },
    { "unpack_model", unpack_model, METH_VARARGS, NULL },
    { "quantize", quantize, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_models(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
