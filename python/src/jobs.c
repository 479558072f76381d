/* Work that reads files and writes one, and reports a tree: packing, unpacking and quantizing models, packing
 * sets. The functions take (input or inputs, output or None, options as a dict, progress). Workers of a
 * cluster do parts of the same jobs. */
#include "core.h"

#include <string.h>

/* ---- Options ---- */

/* A dict, and the strings that the options of the library point into. */
typedef struct settings {
    PyObject *given;
    PyObject *keep;   /* list of bytes */
    void *blocks[16]; /* arrays of pointers */
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

/* Zeroed memory for the items of a sequence (NULL: none) and one more, which the settings own. */
static void *new_block(size_t *count, settings *options, PyObject *sequence, size_t item_size)
{
    Py_ssize_t size = sequence ? PySequence_Size(sequence) : 0;
    void *block = size < 0 ? NULL : PyMem_Calloc((size_t)size + 1, item_size);
    *count = size < 0 ? 0 : (size_t)size;
    if (block)
        options->blocks[options->block_count++] = block;
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
    options->failed = options->failed || !block;
    return block;
}

static const char *const *take_texts(size_t *count, settings *options, const char *name)
{
    PyObject *value = find(options, name);
    size_t size = 0;
    const char **list = new_block(&size, options, value, sizeof *list);
    for (size_t i = 0; !options->failed && i < size; i++) {
        PyObject *item = PySequence_GetItem(value, (Py_ssize_t)i);
        list[i] = item ? keep_text(options, item) : NULL;
        options->failed = options->failed || !item;
        Py_XDECREF(item);
    }
    *count = options->failed ? 0 : size;
    return list;
}

/* ---- Jobs ---- */

typedef struct job_call {
    PyObject *in, *out;        /* as given; borrowed */
    const char *const *inputs; /* in: a path or a sequence of paths */
    size_t input_count;
    const char *to; /* NULL without an output */
    settings options;
    coffer_node *node;
    core_progress progress;
    const coffer_progress *step;
    coffer_error err;
} job_call;

/* Parses the arguments. The caller takes its options and calls job_run. */
static void job_begin(job_call *job, PyObject *args)
{
    PyObject *given = NULL, *callable = NULL;
    *job = (job_call){ .err = COFFER_ERROR_INIT };
    if (!PyArg_ParseTuple(args, "OOO!O", &job->in, &job->out, &PyDict_Type, &given, &callable) ||
        !settings_init(&job->options, given)) {
        job->options.failed = true;
        return;
    }
    bool several = PyList_Check(job->in);
    const char **list = new_block(&job->input_count, &job->options, several ? job->in : NULL, sizeof *list);
    job->input_count = several ? job->input_count : 1;
    for (size_t i = 0; !job->options.failed && i < job->input_count; i++)
        list[i] = keep_text(&job->options, several ? PyList_GetItem(job->in, (Py_ssize_t)i) : job->in);
    job->inputs = list;
    job->to = job->out == Py_None ? NULL : keep_text(&job->options, job->out);
    job->node = job->options.failed ? NULL : core_node_new();
    job->options.failed = !job->node;
    job->step = core_progress_init(&job->progress, callable);
}

/* Runs the job without the GIL, unless an argument was wrong. The tree as an object, or NULL with an
 * exception. */
static PyObject *job_run(PyObject *module, job_call *job,
                         coffer_status (*work)(job_call *job, const void *opts), const void *opts)
{
    PyObject *result = NULL;
    coffer_status status;
    if (job->options.failed) {
        coffer_node_free(job->node);
    } else {
        Py_BEGIN_ALLOW_THREADS
        status = work(job, opts);
        Py_END_ALLOW_THREADS
        PyObject *in = job->input_count != 1   ? NULL
                       : PyList_Check(job->in) ? PyList_GetItem(job->in, 0)
                                               : job->in;
        result = core_node_result(core_state_of_module(module), status, &job->err, job->node,
                                  job->err.subject == COFFER_SUBJECT_OUTPUT && job->to ? job->out : in);
    }
    settings_free(&job->options);
    return result;
}

/* ---- Models ---- */

static coffer_status run_pack_model(job_call *job, const void *opts)
{
    return coffer_mcf_pack(job->to, job->inputs, job->input_count, opts, &job->err);
}

/* pack_model: (report of what was converted, {"files": …}) */
static PyObject *pack_model(PyObject *module, PyObject *args)
{
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    job_call job;
    job_begin(&job, args);
    if (!job.options.failed) {
        const char *cast = take_text(&job.options, "cast");
        opts.model_name = take_text(&job.options, "name");
        opts.align = take_small(&job.options, "align");
        opts.overwrite = take_bool(&job.options, "overwrite");
        opts.threads = take_small(&job.options, "threads");
        opts.cast = cast ? core_dtype(cast) : COFFER_DTYPE_NONE;
        opts.notes = PyErr_Occurred() ? NULL : core_report_new();
        opts.report = job.node;
        opts.progress = job.step;
        job.options.failed = !opts.notes;
    }
    PyObject *files = job_run(module, &job, run_pack_model, &opts);
    PyObject *notes = files ? core_from_report(opts.notes) : NULL;
    coffer_report_free(opts.notes);
    if (notes)
        return Py_BuildValue("(NN)", notes, files);
    Py_XDECREF(files);
    return NULL;
}

static coffer_status run_unpack_model(job_call *job, const void *opts)
{
    return coffer_mcf_unpack(job->node, job->to, job->inputs[0], opts, &job->err);
}

/* unpack_model: {"files": …} */
static PyObject *unpack_model(PyObject *module, PyObject *args)
{
    coffer_mcf_unpack_opts opts = COFFER_MCF_UNPACK_OPTS_INIT;
    job_call job;
    job_begin(&job, args);
    opts.overwrite = !job.options.failed && take_bool(&job.options, "overwrite");
    opts.progress = job.step;
    return job_run(module, &job, run_unpack_model, &opts);
}

/* "rules": [(glob or None, type name or "keep")] */
static const coffer_mcf_quantize_rule *take_rules(size_t *count, settings *options)
{
    PyObject *value = find(options, "rules");
    coffer_mcf_quantize_rule *list = new_block(count, options, value, sizeof *list);
    for (size_t i = 0; !options->failed && i < *count; i++) {
        PyObject *pair = PySequence_GetItem(value, (Py_ssize_t)i), *glob = NULL;
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
    opts.hessian = take_text(options, "hessian");
    opts.damping = take_real(options, "damping");
    opts.min_snr = take_real(options, "min_snr");
    opts.max_error = take_real(options, "max_error");
    opts.max_size = take_number(options, "max_size");
    opts.preset = take_text(options, "preset");
    opts.target_bpw = take_real(options, "target_bpw");
    opts.activations = take_bool(options, "activations");
    opts.percentile = take_real(options, "percentile");
    opts.plan_only = take_bool(options, "plan");
    opts.dry_run = opts.plan_only || take_bool(options, "dry_run");
    opts.overwrite = take_bool(options, "overwrite");
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

static coffer_status run_quantize(job_call *job, const void *opts)
{
    return coffer_mcf_quantize(job->node, job->to, job->inputs[0], opts, &job->err);
}

/* quantize_preset: the meaning of a mixture of types, or None */
static PyObject *quantize_preset(PyObject *module, PyObject *args)
{
    const char *name, *text;
    (void)module;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    text = coffer_mcf_quantize_preset(name);
    return text ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

/* quantize: as coffer_mcf_quantize reports */
static PyObject *quantize(PyObject *module, PyObject *args)
{
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    job_call job;
    job_begin(&job, args);
    if (!job.options.failed)
        opts = quantize_options(&job.options);
    opts.progress = job.step;
    return job_run(module, &job, run_quantize, &opts);
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
    write.key = core_key(find(options, "key"));
    options->failed = options->failed || PyErr_Occurred();
    write.threads = take_small(options, "threads");
    write.overwrite = take_bool(options, "overwrite");
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

static coffer_status run_pack_set(job_call *job, const void *opts)
{
    return coffer_mldf_pack(job->node, job->inputs, job->input_count, job->to, opts, &job->err);
}

/* pack_set: as coffer_mldf_pack reports */
static PyObject *pack_set(PyObject *module, PyObject *args)
{
    coffer_mldf_writer_opts write = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_mldf_pack_opts opts = COFFER_MLDF_PACK_OPTS_INIT;
    job_call job;
    job_begin(&job, args);
    if (!job.options.failed) {
        write = write_options(&job.options);
        opts = pack_options(&job.options);
    }
    opts.write = &write;
    opts.progress = job.step;
    return job_run(module, &job, run_pack_set, &opts);
}

static PyMethodDef functions[] = {
    { "pack_model", pack_model, METH_VARARGS, NULL },
    { "unpack_model", unpack_model, METH_VARARGS, NULL },
    { "quantize_preset", quantize_preset, METH_VARARGS, NULL },
    { "quantize", quantize, METH_VARARGS, NULL },
    { "pack_set", pack_set, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_jobs(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
