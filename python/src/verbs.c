/* Functions for files of any kind: describe, check, list, diff, repair, convert, compact. Their
 * arguments are positional: the functions of coffer/_verbs.py call them. */
#include "core.h"

#include <string.h>

/* ---- Files by path ---- */

static coffer_file *open_file(core_state *state, PyObject *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_file *file = NULL;
    coffer_status status;
    PyObject *bytes = core_path(path);
    if (!bytes)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_file_open(&file, PyBytes_AsString(bytes), &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(bytes);
    if (status)
        core_raise(state, &err, path);
    return file;
}

/* An unrecognized file is an error for every verb but check. */
static coffer_file *open_known(core_state *state, PyObject *path)
{
    coffer_file *file = open_file(state, path);
    const coffer_error *unknown = file ? coffer_file_unknown(file) : NULL;
    if (!unknown)
        return file;
    core_raise(state, unknown, path);
    coffer_file_close(file);
    return NULL;
}

static PyObject *describe(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_describe_opts opts = COFFER_DESCRIBE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *path, *callable;
    unsigned long long generation;
    int hash;
    if (!PyArg_ParseTuple(args, "OKpO", &path, &generation, &hash, &callable))
        return NULL;
    coffer_file *file = open_known(state, path);
    coffer_node *node = file ? core_node_new() : NULL;
    if (!node) {
        coffer_file_close(file);
        return NULL;
    }
    opts.generation = generation;
    opts.hash = hash;
    opts.progress = core_progress_init(&progress, callable);
    coffer_node_add_text(node, "format", coffer_file_kind(file));
    coffer_node_add_text(node, "title", coffer_file_title(file));
    coffer_node_add_u64(node, "size", coffer_file_size(file), COFFER_UNIT_BYTES);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_file_describe(node, file, &opts, &err);
    coffer_file_close(file);
    Py_END_ALLOW_THREADS
    return core_node_result(state, status, &err, node, path);
}

static PyObject *entries(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    PyObject *path;
    if (!PyArg_ParseTuple(args, "Ozz", &path, &opts.what, &opts.glob))
        return NULL;
    coffer_file *file = open_known(state, path);
    coffer_node *node = file ? core_node_new() : NULL;
    if (!node) {
        coffer_file_close(file);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = coffer_file_list(node, file, &opts, &err);
    coffer_file_close(file);
    Py_END_ALLOW_THREADS
    return core_node_result(state, status, &err, node, path);
}

static PyObject *check(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *path, *callable, *key;
    int full, decode;
    if (!PyArg_ParseTuple(args, "OppIOO", &path, &full, &decode, &opts.threads, &key, &callable))
        return NULL;
    opts.key = core_key(key);
    if (PyErr_Occurred())
        return NULL;
    coffer_file *file = open_file(state, path);
    coffer_report *report = file ? core_report_new() : NULL;
    if (!report) {
        coffer_file_close(file);
        return NULL;
    }
    opts.full = full;
    opts.decode = decode;
    opts.progress = core_progress_init(&progress, callable);
    const char *kind = coffer_file_kind(file);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_file_check(report, file, &opts, &err);
    coffer_file_close(file);
    Py_END_ALLOW_THREADS
    PyObject *result = core_report_result(state, status, &err, report, path);
    return result ? Py_BuildValue("(zN)", kind, result) : NULL;
}

static PyObject *diff(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_diff_opts opts = COFFER_DIFF_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *paths[2], *callable, *key;
    unsigned long long shown;
    if (!PyArg_ParseTuple(args, "OOdKIOO", &paths[0], &paths[1], &opts.tolerance, &shown, &opts.threads, &key,
                          &callable))
        return NULL;
    opts.key = core_key(key);
    if (PyErr_Occurred())
        return NULL;
    coffer_file *a = open_known(state, paths[0]);
    coffer_file *b = a ? open_known(state, paths[1]) : NULL;
    coffer_node *node = b ? core_node_new() : NULL;
    if (node) {
        opts.max_shown = shown;
        opts.progress = core_progress_init(&progress, callable);
        Py_BEGIN_ALLOW_THREADS
        status = coffer_file_diff(node, a, b, &opts, &err);
        Py_END_ALLOW_THREADS
    }
    coffer_file_close(a);
    coffer_file_close(b);
    return node ? core_node_result(state, status, &err, node, paths[0]) : NULL;
}

/* ---- Repairing and converting ---- */

/* repair(source, out, copy source or None, keep_tail, generation, overwrite, key, progress); out None: in
 * place. In place the result is (report, report of what is left, path of the kept original). */
static PyObject *repair(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *in, *out, *copy, *key, *callable;
    unsigned long long generation;
    int keep_tail, overwrite;
    if (!PyArg_ParseTuple(args, "OOOpKpOO", &in, &out, &copy, &keep_tail, &generation, &overwrite, &key,
                          &callable))
        return NULL;
    opts.key = core_key(key);
    if (PyErr_Occurred())
        return NULL;
    core_source *source = core_as_source(state, in);
    core_source *from = source && copy != Py_None ? core_as_source(state, copy) : NULL;
    if (!source || (copy != Py_None && !from))
        return NULL;
    PyObject *path = out == Py_None ? NULL : core_path(out);
    coffer_report *report = PyErr_Occurred() ? NULL : core_report_new(),
                  *left = report ? core_report_new() : NULL;
    if (!left) {
        coffer_report_free(report);
        Py_XDECREF(path);
        return NULL;
    }
    char *original = NULL;
    opts.keep_tail = keep_tail;
    opts.to_generation = generation;
    opts.overwrite = overwrite;
    opts.copy = from ? from->source : NULL;
    opts.progress = core_progress_init(&progress, callable);
    Py_BEGIN_ALLOW_THREADS
    status = path ? coffer_repair(report, source->source, PyBytes_AsString(path), &opts, &err)
                  : coffer_repair_in_place(report, left, &original, source->source, &opts, &err);
    Py_END_ALLOW_THREADS
    Py_XDECREF(path);
    PyObject *found = core_report_result(state, status, &err, report, source->path);
    PyObject *rest = found ? core_from_report(left) : NULL;
    PyObject *result = rest ? Py_BuildValue("(NNz)", found, rest, original) : NULL;
    if (!rest)
        Py_XDECREF(found);
    coffer_report_free(left);
    coffer_free(original);
    return result;
}

/* settings : a dict of str to str. The texts are borrowed from it. */
static coffer_setting *take_settings(size_t *count, PyObject *settings)
{
    Py_ssize_t at = 0;
    PyObject *name, *value;
    *count = 0;
    coffer_setting *list = PyMem_Calloc((size_t)PyDict_Size(settings) + 1, sizeof *list);
    if (!list) {
        PyErr_NoMemory();
        return NULL;
    }
    while (PyDict_Next(settings, &at, &name, &value)) {
        list[*count].name = PyUnicode_AsUTF8AndSize(name, NULL);
        list[*count].value = PyUnicode_AsUTF8AndSize(value, NULL);
        if (!list[*count].name || !list[*count].value) {
            PyMem_Free(list);
            return NULL;
        }
        ++*count;
    }
    return list;
}

/* convert(source, out, from or None, to or None, settings, overwrite, progress): a report of what the output
 * does not keep as it was. */
static PyObject *convert(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *in, *out, *settings, *callable;
    int overwrite;
    if (!PyArg_ParseTuple(args, "OOzzO!pO", &in, &out, &opts.from, &opts.to, &PyDict_Type, &settings,
                          &overwrite, &callable))
        return NULL;
    core_source *source = core_as_source(state, in);
    PyObject *path = source ? core_path(out) : NULL;
    coffer_setting *list = path ? take_settings(&opts.setting_count, settings) : NULL;
    if (!list) {
        Py_XDECREF(path);
        return NULL;
    }
    opts.settings = list;
    opts.overwrite = overwrite;
    opts.notes = core_report_new();
    opts.progress = core_progress_init(&progress, callable);
    PyObject *result = NULL;
    if (opts.notes) {
        Py_BEGIN_ALLOW_THREADS
        status = coffer_convert(source->source, PyBytes_AsString(path), &opts, &err);
        Py_END_ALLOW_THREADS
        PyObject *shown = err.subject == COFFER_SUBJECT_OUTPUT ? out : source->path;
        result = core_report_result(state, status, &err, opts.notes, shown);
    }
    PyMem_Free(list);
    Py_DECREF(path);
    return result;
}

/* convert_temporary(source, to, path): (report, Source), the converted content in a file that has a name in
 * the folder of `path` only until it is complete. */
static PyObject *convert_temporary(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *in, *place, *result = NULL;
    if (!PyArg_ParseTuple(args, "OsO", &in, &opts.to, &place))
        return NULL;
    core_source *source = core_as_source(state, in);
    PyObject *path = source ? core_path(place) : NULL;
    opts.notes = path ? core_report_new() : NULL;
    if (opts.notes) {
        char *temporary = NULL;
        opts.overwrite = true;
        opts.progress = core_progress_init(&progress, NULL);
        Py_BEGIN_ALLOW_THREADS
        status = coffer_temporary_create(&temporary, PyBytes_AsString(path), &err);
        if (!status)
            status = coffer_convert(source->source, temporary, &opts, &err);
        Py_END_ALLOW_THREADS
        PyObject *report = core_report_result(state, status, &err, opts.notes, source->path);
        PyObject *made =
            report ? PyObject_CallFunction((PyObject *)state->source_type, "ss", temporary, "mmap") : NULL;
        coffer_temporary_remove(temporary); /* the source stays readable */
        if (made)
            Py_CLEAR(((core_source *)made)->path);
        result = made ? Py_BuildValue("(NN)", report, made) : NULL;
        if (!made)
            Py_XDECREF(report);
    }
    Py_XDECREF(path);
    return result;
}

/* [(from, to, [(option, value, help)])] */
static PyObject *conversions(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    (void)module;
    (void)unused;
    for (size_t i = 0; list && i < coffer_conversion_count(); i++) {
        const coffer_conversion *row = coffer_conversion_at(i);
        PyObject *pair = Py_BuildValue("(ss)", coffer_conversion_from(row), coffer_conversion_to(row));
        core_append(&list, pair);
    }
    return list;
}

static PyObject *about(PyObject *module, PyObject *unused)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *node = NULL;
    (void)unused;
    if (coffer_about(&node, &err))
        return core_raise(core_state_of_module(module), &err, NULL);
    PyObject *result = core_from_node(node);
    coffer_node_free(node);
    return result;
}

/* ---- Rewriting ---- */

/* compact(path, out or None, overwrite, progress) */
static PyObject *compact(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_compact_opts opts = COFFER_COMPACT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *in, *out, *callable;
    int overwrite;
    if (!PyArg_ParseTuple(args, "OOpO", &in, &out, &overwrite, &callable))
        return NULL;
    PyObject *path = core_path(in);
    PyObject *target = path && out != Py_None ? core_path(out) : NULL;
    coffer_node *node = PyErr_Occurred() ? NULL : core_node_new();
    if (!node) {
        Py_XDECREF(path);
        Py_XDECREF(target);
        return NULL;
    }
    opts.overwrite = overwrite;
    opts.progress = core_progress_init(&progress, callable);
    Py_BEGIN_ALLOW_THREADS
    status =
        coffer_compact(node, PyBytes_AsString(path), target ? PyBytes_AsString(target) : NULL, &opts, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    Py_XDECREF(target);
    return core_node_result(state, status, &err, node,
                            err.subject == COFFER_SUBJECT_OUTPUT && out != Py_None ? out : in);
}

/* put(path or None, address, overwrite, part_size, parallel, abort, progress) */
static PyObject *put(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_put_opts opts = COFFER_PUT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *in, *callable;
    const char *address;
    unsigned long long part_size;
    unsigned int parallel;
    int overwrite, abort_only;
    if (!PyArg_ParseTuple(args, "OspKIpO", &in, &address, &overwrite, &part_size, &parallel, &abort_only,
                          &callable))
        return NULL;
    PyObject *path = in != Py_None ? core_path(in) : NULL;
    coffer_node *node = PyErr_Occurred() ? NULL : core_node_new();
    if (!node) {
        Py_XDECREF(path);
        return NULL;
    }
    opts.overwrite = overwrite;
    opts.part_size = part_size;
    opts.parallel = parallel;
    opts.progress = core_progress_init(&progress, callable);
    const char *text = path ? PyBytes_AsString(path) : NULL;
    Py_BEGIN_ALLOW_THREADS
    status = abort_only ? coffer_put_abort(node, text, address, &opts, &err)
                        : coffer_put(node, text, address, &opts, &err);
    Py_END_ALLOW_THREADS
    Py_XDECREF(path);
    PyObject *target = PyTuple_GetItem(args, 1);
    return core_node_result(state, status, &err, node,
                            err.subject == COFFER_SUBJECT_OUTPUT || !text ? target : in);
}

static PyMethodDef functions[] = {
    { "describe", describe, METH_VARARGS, NULL },
    { "entries", entries, METH_VARARGS, NULL },
    { "check", check, METH_VARARGS, NULL },
    { "diff", diff, METH_VARARGS, NULL },
    { "repair", repair, METH_VARARGS, NULL },
    { "convert", convert, METH_VARARGS, NULL },
    { "convert_temporary", convert_temporary, METH_VARARGS, NULL },
    { "conversions", conversions, METH_NOARGS, NULL },
    { "compact", compact, METH_VARARGS, NULL },
    { "put", put, METH_VARARGS, NULL },
    { "about", about, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_verbs(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
