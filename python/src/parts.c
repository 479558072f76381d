/* Jobs that several processes share: quantizing some tensors, packing some samples, joining what was made,
 * and a matrix that is written a few rows at a time. The functions of coffer/dask call them with their
 * options as a dict. */
#include "core.h"

#include <string.h>

/* ---- Options ---- */

/* A dict, and the strings that the options of the library point into. */
typedef struct settings {
    PyObject *given;
    PyObject *keep;  /* list of bytes */
    void *blocks[8]; /* arrays of pointers */
    size_t block_count;
    bool failed; /* an exception is set */
} settings;

static bool settings_init(settings *out, PyObject *given)
{
    *out = (settings){ .given = given, .keep = PyList_New(0) };
    return out->keep != NULL;
}

static void settings_free(settings *options)
{
    for (size_t i = 0; i < options->block_count; i++)
        PyMem_Free(options->blocks[i]);
    Py_XDECREF(options->keep);
}

/* Borrowed; NULL when it is absent or None. */
static PyObject *find(const settings *options, const char *name)
{
    PyObject *value = PyDict_GetItemString(options->given, name);
    return value == Py_None ? NULL : value;
}

static bool take_bool(const settings *options, const char *name)
{
    PyObject *value = find(options, name);
    return value && PyObject_IsTrue(value) == 1;
}

static uint64_t take_number(settings *options, const char *name)
{
    PyObject *value = find(options, name);
    unsigned long long number = value ? PyLong_AsUnsignedLongLong(value) : 0;
    options->failed = options->failed || (value && PyErr_Occurred());
    return number;
}

static uint32_t take_small(settings *options, const char *name)
{
    uint64_t number = take_number(options, name);
    if (number > UINT32_MAX && !options->failed) {
        PyErr_Format(PyExc_ValueError, "%s is %llu, too large", name, (unsigned long long)number);
        options->failed = true;
    }
    return (uint32_t)number;
}

static double take_real(settings *options, const char *name)
{
    PyObject *value = find(options, name);
    double number = value ? PyFloat_AsDouble(value) : 0.0;
    options->failed = options->failed || (value && PyErr_Occurred());
    return number;
}

/* A str or path as a C string that `keep` owns. */
static const char *keep_text(settings *options, PyObject *value)
{
    PyObject *bytes = options->failed ? NULL : core_path(value);
    if (!bytes || PyList_Append(options->keep, bytes) != 0)
        options->failed = true;
    const char *text = options->failed ? NULL : PyBytes_AsString(bytes);
    Py_XDECREF(bytes);
    return text;
}

static const char *take_text(settings *options, const char *name)
{
    PyObject *value = find(options, name);
    return value ? keep_text(options, value) : NULL;
}

static const char *const *take_texts(size_t *count, settings *options, const char *name)
{
    PyObject *value = find(options, name);
    Py_ssize_t size = value ? PySequence_Size(value) : 0;
    const char **list = size < 0 ? NULL : PyMem_Calloc((size_t)size + 1, sizeof *list);
    options->failed = options->failed || !list;
    if (!list)
        return NULL;
    options->blocks[options->block_count++] = list;
    for (Py_ssize_t i = 0; !options->failed && i < size; i++) {
        PyObject *item = PySequence_GetItem(value, i);
        list[i] = item ? keep_text(options, item) : NULL;
        options->failed = options->failed || !item;
        Py_XDECREF(item);
    }
    *count = options->failed ? 0 : (size_t)size;
    return list;
}

static const uint8_t *take_key(settings *options)
{
    PyObject *value = find(options, "key");
    char *bytes = NULL;
    Py_ssize_t len = 0;
    if (!value || options->failed)
        return NULL;
    if (PyBytes_AsStringAndSize(value, &bytes, &len) != 0) {
        options->failed = true;
    } else if (len != COFFER_MLDF_KEY_SIZE) {
        PyErr_Format(PyExc_ValueError, "a key has %d bytes, not %zd", COFFER_MLDF_KEY_SIZE, len);
        options->failed = true;
    }
    return options->failed ? NULL : (const uint8_t *)bytes;
}

/* ---- Models ---- */

/* "rules": [(glob or None, type name or "keep")] */
static const coffer_mcf_quantize_rule *take_rules(size_t *count, settings *options)
{
    PyObject *value = find(options, "rules");
    Py_ssize_t size = value ? PySequence_Size(value) : 0;
    coffer_mcf_quantize_rule *list = size < 0 ? NULL : PyMem_Calloc((size_t)size + 1, sizeof *list);
    options->failed = options->failed || !list;
    if (!list)
        return NULL;
    options->blocks[options->block_count++] = list;
    for (Py_ssize_t i = 0; !options->failed && i < size; i++) {
        PyObject *pair = PySequence_GetItem(value, i), *glob = NULL;
        const char *type = NULL;
        coffer_mcf_quantize_rule_init(&list[i], sizeof list[i]);
        if (!pair || !PyArg_ParseTuple(pair, "Os", &glob, &type)) {
            options->failed = true;
        } else {
            list[i].glob = glob == Py_None ? NULL : keep_text(options, glob);
            bool keep = strcmp(type, "keep") == 0;
            list[i].dtype = keep ? COFFER_DTYPE_NONE : core_dtype(type);
            options->failed = options->failed || (!keep && list[i].dtype == COFFER_DTYPE_NONE);
        }
        Py_XDECREF(pair);
    }
    *count = (size_t)size;
    return list;
}

static coffer_mcf_quantize_opts quantize_options(settings *options)
{
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    opts.rules = take_rules(&opts.rule_count, options);
    opts.include = take_texts(&opts.include_count, options, "include");
    opts.exclude = take_texts(&opts.exclude_count, options, "exclude");
    opts.method = (coffer_quant_method)take_small(options, "method");
    opts.requantize = take_bool(options, "requantize");
    opts.nan_to_zero = take_bool(options, "nan_to_zero");
    opts.weights = take_text(options, "weights");
    opts.target_bpw = take_real(options, "target_bpw");
    opts.activations = take_bool(options, "activations");
    opts.percentile = take_real(options, "percentile");
    opts.dry_run = opts.plan_only = take_bool(options, "plan");
    opts.align = take_small(options, "align");
    opts.no_dedup = take_bool(options, "no_dedup");
    opts.no_checksums = take_bool(options, "no_checksums");
    opts.model_name = take_text(options, "name");
    opts.threads = take_small(options, "threads");
    opts.allow_damaged = take_bool(options, "allow_damaged");
    opts.portable_scales = take_bool(options, "portable_scales");
    opts.only = take_texts(&opts.only_count, options, "only");
    opts.parts = take_texts(&opts.part_count, options, "parts");
    return opts;
}

/* The exception for an error of a job: about the output, or about the first input. */
static PyObject *job_result(core_state *state, coffer_status status, const coffer_error *err,
                            coffer_node *node, PyObject *in, PyObject *out)
{
    PyObject *path = err->subject == COFFER_SUBJECT_OUTPUT ? out : in;
    PyObject *result = status ? core_raise(state, err, path) : core_from_node(node);
    coffer_node_free(node);
    return result;
}

/* quantize_job(in, out, options, progress): as coffer_mcf_quantize reports */
static PyObject *quantize_job(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *in, *out, *given, *callable, *result = NULL;
    settings options;
    if (!PyArg_ParseTuple(args, "OOO!O", &in, &out, &PyDict_Type, &given, &callable) ||
        !settings_init(&options, given))
        return NULL;
    coffer_mcf_quantize_opts opts = quantize_options(&options);
    const char *from = keep_text(&options, in), *to = out == Py_None ? NULL : keep_text(&options, out);
    coffer_node *node = options.failed ? NULL : core_node_new();
    if (node) {
        opts.progress = core_progress_init(&progress, callable);
        Py_BEGIN_ALLOW_THREADS
        status = coffer_mcf_quantize(node, to, from, &opts, &err);
        Py_END_ALLOW_THREADS
        result = job_result(state, status, &err, node, in, out);
    }
    settings_free(&options);
    return result;
}

/* ---- Training sets ---- */

static coffer_mldf_writer_opts write_options(settings *options)
{
    coffer_mldf_writer_opts write = COFFER_MLDF_WRITER_OPTS_INIT;
    write.page_size = take_small(options, "page_size");
    write.descriptor_stride = take_small(options, "descriptor_stride");
    write.no_checksums = take_bool(options, "no_checksums");
    write.dedup = take_bool(options, "dedup");
    write.zstd_level = (int)take_small(options, "zstd_level");
    write.key = take_key(options);
    write.threads = take_small(options, "threads");
    write.no_partial = true;
    return write;
}

static coffer_mldf_pack_opts pack_options(settings *options)
{
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    opts.kind = (coffer_dataset_kind)take_small(options, "kind");
    opts.jpeg_quality = take_small(options, "jpeg_quality");
    opts.max_size = take_small(options, "max_size");
    opts.raw = take_bool(options, "raw");
    opts.keep_going = take_bool(options, "keep_going");
    opts.zstd = take_bool(options, "zstd");
    opts.dictionary = take_small(options, "dictionary");
    opts.encrypt = take_bool(options, "encrypt");
    opts.strict = take_bool(options, "strict");
    opts.decode = take_bool(options, "decode");
    opts.store_damaged = take_bool(options, "store_damaged");
    opts.follow_links = take_bool(options, "follow_links");
    opts.exclude = take_texts(&opts.exclude_count, options, "exclude");
    opts.root = take_text(options, "root");
    opts.labels = take_text(options, "labels");
    opts.dry_run = take_bool(options, "plan");
    opts.first = take_number(options, "first");
    opts.count = take_number(options, "count");
    opts.parts = take_texts(&opts.part_count, options, "parts");
    opts.expected_input = take_text(options, "expected_input");
    size_t names = 0;
    const char *const *shown = take_texts(&names, options, "names");
    opts.input_names = names ? shown : NULL;
    return opts;
}

/* pack_job(out, options, progress), with the list "inputs" among the options: as coffer_mldf_pack reports */
static PyObject *pack_job(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *out, *given, *callable, *result = NULL;
    settings options;
    size_t count = 0;
    if (!PyArg_ParseTuple(args, "OO!O", &out, &PyDict_Type, &given, &callable) ||
        !settings_init(&options, given))
        return NULL;
    coffer_mldf_writer_opts write = write_options(&options);
    coffer_mldf_pack_opts opts = pack_options(&options);
    const char *const *list = take_texts(&count, &options, "inputs");
    const char *to = out == Py_None ? NULL : keep_text(&options, out);
    PyObject *first = options.failed || count == 0 ? NULL : PySequence_GetItem(find(&options, "inputs"), 0);
    coffer_node *node = options.failed ? NULL : core_node_new();
    if (node) {
        opts.write = &write;
        opts.progress = core_progress_init(&progress, callable);
        Py_BEGIN_ALLOW_THREADS
        status = coffer_mldf_pack(node, list, count, to, &opts, &err);
        Py_END_ALLOW_THREADS
        result = job_result(state, status, &err, node, first, out);
    }
    Py_XDECREF(first);
    settings_free(&options);
    return result;
}

static coffer_status copy_part(coffer_mldf_writer *writer, const char *path, const uint8_t *key,
                               const coffer_progress *progress, coffer_error *err)
{
    coffer_mldf_open_opts open = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf_copy_opts copy = COFFER_MLDF_COPY_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    open.key = key;
    copy.progress = progress;
    coffer_status status = coffer_source_open(&src, path, NULL, err);
    if (!status)
        status = coffer_mldf_open(&set, src, &open, err);
    if (!status)
        status = coffer_mldf_writer_copy(writer, set, &copy, err);
    coffer_mldf_close(set);
    coffer_source_close(src);
    return status;
}

/* mldf_join(out, options, progress), with "schema" and "parts" among the options: a new set with the samples
 * of all parts. Returns their number. */
static PyObject *mldf_join(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    core_progress progress;
    coffer_mldf_writer *writer = NULL;
    PyObject *out, *given, *callable;
    settings options;
    size_t count = 0, done = 0;
    uint64_t samples = 0;
    if (!PyArg_ParseTuple(args, "OO!O", &out, &PyDict_Type, &given, &callable) ||
        !settings_init(&options, given))
        return NULL;
    coffer_mldf_writer_opts write = write_options(&options);
    const char *const *list = take_texts(&count, &options, "parts");
    const char *schema = take_text(&options, "schema"), *to = keep_text(&options, out);
    const coffer_progress *step = core_progress_init(&progress, callable);
    if (!options.failed) {
        Py_BEGIN_ALLOW_THREADS
        status = coffer_mldf_writer_create_json(&writer, to, schema, strlen(schema), &write, &err);
        for (; !status && done < count; done++)
            status = copy_part(writer, list[done], write.key, step, &err);
        if (!status) {
            samples = coffer_mldf_writer_sample(writer);
            status = coffer_mldf_writer_commit(writer, &err);
            writer = NULL;
        }
        coffer_mldf_writer_discard(writer);
        Py_END_ALLOW_THREADS
        PyObject *culprit =
            status && done ? PySequence_GetItem(find(&options, "parts"), (Py_ssize_t)done - 1) : NULL;
        if (status)
            core_raise(state, &err, culprit ? culprit : out);
        Py_XDECREF(culprit);
    }
    bool failed = options.failed || status;
    settings_free(&options);
    return failed ? NULL : PyLong_FromUnsignedLongLong(samples);
}

/* ---- Matrices ---- */

/* Asks for blocks of rows until all are written. -1 with an exception. */
static int put_blocks(core_state *state, coffer_pycauset_writer *writer, PyObject *next, size_t row_size,
                      uint64_t rows, PyObject *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    for (uint64_t done = 0; !status && done < rows;) {
        PyObject *block = PyObject_CallNoArgs(next);
        Py_buffer bytes;
        if (!block || PyObject_GetBuffer(block, &bytes, PyBUF_C_CONTIGUOUS) != 0) {
            Py_XDECREF(block);
            return -1;
        }
        uint64_t count = row_size ? (uint64_t)bytes.len / row_size : 0;
        if (count == 0 || (uint64_t)bytes.len % row_size || count > rows - done) {
            PyErr_Format(PyExc_ValueError, "%zd bytes are not a number of the remaining rows", bytes.len);
            status = COFFER_E_INVALID_ARGUMENT;
        } else {
            Py_BEGIN_ALLOW_THREADS
            status = coffer_pycauset_writer_put_rows(writer, bytes.buf, count, &err);
            Py_END_ALLOW_THREADS
            if (status)
                core_raise(state, &err, path);
            done += count;
        }
        PyBuffer_Release(&bytes);
        Py_DECREF(block);
    }
    return status ? -1 : 0;
}

/* pycauset_stream(path, type number, element type, rows, cols, has_diagonal, next, changes): a new file from
 * the rows that next() returns as bytes, some at a time. */
static PyObject *stream_matrix(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_writer *writer = NULL;
    coffer_status status;
    PyObject *path, *next, *list;
    const char *name;
    int type, diagonal;
    unsigned long long rows, cols;
    if (!PyArg_ParseTuple(args, "OisKKpOO!", &path, &type, &name, &rows, &cols, &diagonal, &next,
                          &PyList_Type, &list))
        return NULL;
    shape.dtype = core_dtype(name);
    PyObject *bytes = PyErr_Occurred() ? NULL : core_path(path);
    coffer_pycauset_changes *changes = bytes ? core_pycauset_changes(state, list) : NULL;
    if (!changes) {
        Py_XDECREF(bytes);
        return NULL;
    }
    size_t size = shape.dtype == COFFER_DTYPE_BIT ? 1 : coffer_dtype_size(shape.dtype);
    shape.type = (coffer_pycauset_type)type;
    shape.rows = rows;
    shape.cols = cols;
    shape.has_diagonal = diagonal;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_pycauset_writer_create(&writer, PyBytes_AsString(bytes), &shape, NULL, &err);
    if (!status)
        status = coffer_pycauset_writer_set_metadata(writer, changes, &err);
    Py_END_ALLOW_THREADS
    if (status)
        core_raise(state, &err, path);
    else if (put_blocks(state, writer, next, size * (size_t)cols, cols ? rows : 0, path))
        status = COFFER_E_CANCELLED;
    if (!status) {
        Py_BEGIN_ALLOW_THREADS
        status = coffer_pycauset_writer_commit(writer, &err);
        Py_END_ALLOW_THREADS
        writer = NULL;
        if (status)
            core_raise(state, &err, path);
    }
    if (writer)
        coffer_pycauset_writer_discard(writer);
    coffer_pycauset_changes_free(changes);
    Py_DECREF(bytes);
    return status ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    { "pycauset_stream", stream_matrix, METH_VARARGS, NULL },
    { "quantize_job", quantize_job, METH_VARARGS, NULL },
    { "pack_job", pack_job, METH_VARARGS, NULL },
    { "mldf_join", mldf_join, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_parts(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
