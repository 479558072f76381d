/* Mscan: a scan: records, statistics, grids. */
#include "core.h"

#include <string.h>

static coffer_status open_handle(void **out, coffer_source *source, const void *opts, coffer_error *err)
{
    coffer_mscan *scan = NULL;
    coffer_status status = coffer_mscan_open(&scan, source, opts, err);
    *out = scan;
    return status;
}

static void release(void *scan)
{
    coffer_mscan_close(scan);
}

static const core_handle_acts acts = { open_handle, release };

static int scan_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    PyObject *input;
    (void)kwargs;
    return PyArg_ParseTuple(args, "O", &input) ? core_handle_init(object, input, &acts, NULL) : -1;
}

static const coffer_mscan *open_scan(PyObject *object)
{
    return core_handle_open(object);
}

/* records(first, count): the packed records, 12 bytes each: a View where the file is mapped, else a block. */
static PyObject *scan_records(PyObject *object, PyObject *args)
{
    enum { RECORD_BYTES = 12 };
    const coffer_mscan *scan = open_scan(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    unsigned long long first, count;
    if (!scan || !PyArg_ParseTuple(args, "KK", &first, &count))
        return NULL;
    uint64_t total = coffer_mscan_record_count(scan);
    if (first > total || count > total - first) {
        PyErr_Format(PyExc_IndexError, "records %llu to %llu of %llu", first, first + count,
                     (unsigned long long)total);
        return NULL;
    }
    const uint8_t *data = coffer_mscan_view(scan, first, count);
    if (data)
        return core_view(((core_handle *)object)->state, object, data, (size_t)count * RECORD_BYTES);
    coffer_mscan_record *records = PyMem_Malloc((size_t)count * sizeof *records + 1);
    if (!records)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mscan_read(records, scan, first, count, &err);
    Py_END_ALLOW_THREADS
    _Static_assert(sizeof *records == RECORD_BYTES, "records are packed");
    PyObject *result =
        status ? core_handle_fail(object, &err)
               : PyBytes_FromStringAndSize((const char *)records, (Py_ssize_t)(count * RECORD_BYTES));
    PyMem_Free(records);
    return result;
}

/* (scale, offset) or None for a metric, parameter and sequence. */
static PyObject *scan_scale(PyObject *object, PyObject *args)
{
    const coffer_mscan *scan = open_scan(object);
    int metric;
    unsigned short param;
    Py_ssize_t sequence;
    if (!scan || !PyArg_ParseTuple(args, "iHn", &metric, &param, &sequence))
        return NULL;
    const coffer_mscan_quantization *scale =
        coffer_mscan_quantization_of(scan, (coffer_mscan_metric)metric, param, (size_t)sequence);
    if (!scale)
        Py_RETURN_NONE;
    return Py_BuildValue("(dd)", scale->scale, scale->offset);
}

static PyObject *scan_scope(PyObject *object, PyObject *args)
{
    const coffer_mscan *scan = open_scan(object);
    int metric;
    if (!scan || !PyArg_ParseTuple(args, "i", &metric))
        return NULL;
    return PyLong_FromLong((long)coffer_mscan_quantization_scope(scan, (coffer_mscan_metric)metric));
}

static PyObject *scan_metadata(PyObject *object, PyObject *unused)
{
    const coffer_mscan *scan = open_scan(object);
    size_t len = 0;
    (void)unused;
    if (!scan)
        return NULL;
    const char *text = coffer_mscan_metadata(scan, &len);
    return core_text(text, len);
}

/* [(id, name)] */
static PyObject *scan_params(PyObject *object, PyObject *unused)
{
    const coffer_mscan *scan = open_scan(object);
    PyObject *list = scan ? PyList_New(0) : NULL;
    (void)unused;
    for (size_t i = 0; list && i < coffer_mscan_param_count(scan); i++) {
        const coffer_mscan_param *param = coffer_mscan_param_at(scan, i);
        PyObject *item =
            Py_BuildValue("(KN)", (unsigned long long)param->id, core_text(param->name, param->name_len));
        core_append(&list, item);
    }
    return list;
}

/* [(id, tokens, first token, source or None)] */
static PyObject *scan_sequences(PyObject *object, PyObject *unused)
{
    const coffer_mscan *scan = open_scan(object);
    PyObject *list = scan ? PyList_New(0) : NULL;
    (void)unused;
    for (size_t i = 0; list && i < coffer_mscan_sequence_count(scan); i++) {
        const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(scan, i);
        PyObject *text =
            sequence->source ? core_text(sequence->source, sequence->source_len) : Py_NewRef(Py_None);
        PyObject *item = Py_BuildValue("(KKKN)", (unsigned long long)sequence->sequence_id,
                                       (unsigned long long)sequence->num_tokens,
                                       (unsigned long long)sequence->first_token, text);
        core_append(&list, item);
    }
    return list;
}

/* ---- Statistics ---- */

/* Columns of a table, one array of 8-byte numbers after the other: the caller knows their types. */
enum { STATS_COLUMNS = 14 };

static void put_group(double *columns, size_t rows, size_t row, const coffer_mscan_group *group)
{
    uint64_t whole[2] = { group->key, group->count };
    memcpy(&columns[row], &whole[0], sizeof whole[0]);
    memcpy(&columns[rows + row], &whole[1], sizeof whole[1]);
    for (size_t metric = 0; metric < 2; metric++) {
        const coffer_mscan_column *column = &group->column[metric];
        const double values[6] = { coffer_mscan_mean(group, (coffer_mscan_metric)metric),
                                   coffer_mscan_stddev(group, (coffer_mscan_metric)metric),
                                   column->min,
                                   column->max,
                                   (double)column->zeros,
                                   (double)column->saturated };
        for (size_t i = 0; i < 6; i++)
            columns[(2 + metric * 6 + i) * rows + row] = values[i];
    }
}

/* stats(by, param_glob or None, token_begin, token_end, sequence or -1, threads, progress): (rows, bytes):
 * key and count as uint64, then for activation and grad_norm mean, std, min, max, zeros, saturated as
 * float64, of raw integers. */
static PyObject *scan_stats(PyObject *object, PyObject *args)
{
    const coffer_mscan *scan = open_scan(object);
    coffer_mscan_stats_opts opts = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan_stats *stats = NULL;
    coffer_status status;
    core_progress progress;
    PyObject *callable;
    int by;
    unsigned long long begin, end;
    Py_ssize_t sequence;
    if (!scan || !PyArg_ParseTuple(args, "izKKnIO", &by, &opts.param_glob, &begin, &end, &sequence,
                                   &opts.threads, &callable))
        return NULL;
    opts.by = (coffer_mscan_by)by;
    opts.token_begin = begin;
    opts.token_end = end;
    opts.sequence = sequence < 0 ? COFFER_INDEX_NONE : (size_t)sequence;
    opts.progress = core_progress_init(&progress, callable);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mscan_stats_new(&stats, scan, &opts, &err);
    Py_END_ALLOW_THREADS
    if (status)
        return core_handle_fail(object, &err);
    size_t rows = coffer_mscan_stats_count(stats);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(rows * STATS_COLUMNS * sizeof(double)));
    double *columns = bytes ? PyMem_Malloc(rows * STATS_COLUMNS * sizeof(double) + 1) : NULL;
    if (columns) {
        for (size_t i = 0; i < rows; i++)
            put_group(columns, rows, i, coffer_mscan_stats_at(stats, i));
        memcpy(PyBytes_AsString(bytes), columns, rows * STATS_COLUMNS * sizeof(double));
    }
    PyMem_Free(columns);
    coffer_mscan_stats_free(stats);
    if (!columns) {
        Py_XDECREF(bytes);
        return PyErr_NoMemory();
    }
    return Py_BuildValue("(nN)", (Py_ssize_t)rows, bytes);
}

/* scores(by, scope, param_glob, token_begin, token_end, sequence or -1, threads): (rows, bytes): key and
 * count as uint64, then z_activation, z_grad_norm, sps, integral_sps. */
static PyObject *scan_scores(PyObject *object, PyObject *args)
{
    enum { COLUMNS = 6 };
    const coffer_mscan *scan = open_scan(object);
    coffer_mscan_stats_opts opts = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan_scores *scores = NULL;
    coffer_status status;
    int by, scope;
    unsigned long long begin, end;
    Py_ssize_t sequence;
    if (!scan || !PyArg_ParseTuple(args, "iizKKnI", &by, &scope, &opts.param_glob, &begin, &end, &sequence,
                                   &opts.threads))
        return NULL;
    opts.by = (coffer_mscan_by)by;
    opts.scope = (coffer_mscan_scope)scope;
    opts.token_begin = begin;
    opts.token_end = end;
    opts.sequence = sequence < 0 ? COFFER_INDEX_NONE : (size_t)sequence;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mscan_scores_new(&scores, scan, &opts, &err);
    Py_END_ALLOW_THREADS
    if (status)
        return core_handle_fail(object, &err);
    size_t rows = coffer_mscan_scores_count(scores);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(rows * COLUMNS * sizeof(double)));
    for (size_t i = 0; bytes && i < rows; i++) {
        const coffer_mscan_score *score = coffer_mscan_scores_at(scores, i);
        const double reals[4] = { score->z_activation, score->z_grad_norm, score->sps, score->integral_sps };
        char *out = PyBytes_AsString(bytes);
        memcpy(out + 8 * i, &score->key, 8);
        memcpy(out + 8 * (rows + i), &score->count, 8);
        for (size_t k = 0; k < 4; k++)
            memcpy(out + 8 * ((2 + k) * rows + i), &reals[k], 8);
    }
    coffer_mscan_scores_free(scores);
    return bytes ? Py_BuildValue("(nN)", (Py_ssize_t)rows, bytes) : NULL;
}

/* grid(rows, metric, width, height, token_begin, token_end, row_begin, row_end, param_glob, progress):
 * (height, width, token_begin, token_end, row_begin, row_end, means as float64) */
static PyObject *scan_grid(PyObject *object, PyObject *args)
{
    const coffer_mscan *scan = open_scan(object);
    coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan_grid *grid = NULL;
    coffer_status status;
    core_progress progress;
    PyObject *callable;
    int rows, metric;
    unsigned long long tokens[2], row_range[2];
    if (!scan || !PyArg_ParseTuple(args, "iiIIKKKKzO", &rows, &metric, &opts.width, &opts.height, &tokens[0],
                                   &tokens[1], &row_range[0], &row_range[1], &opts.param_glob, &callable))
        return NULL;
    opts.rows = (coffer_mscan_rows)rows;
    opts.metric = (coffer_mscan_metric)metric;
    opts.token_begin = tokens[0];
    opts.token_end = tokens[1];
    opts.row_begin = row_range[0];
    opts.row_end = row_range[1];
    opts.progress = core_progress_init(&progress, callable);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mscan_grid_new(&grid, scan, &opts, &err);
    Py_END_ALLOW_THREADS
    if (status)
        return core_handle_fail(object, &err);
    PyObject *result =
        Py_BuildValue("(IIKKKKy#)", grid->height, grid->width, (unsigned long long)grid->token_begin,
                      (unsigned long long)grid->token_end, (unsigned long long)grid->row_begin,
                      (unsigned long long)grid->row_end, (const char *)grid->mean,
                      (Py_ssize_t)((size_t)grid->width * grid->height * sizeof(double)));
    coffer_mscan_grid_free(grid);
    return result;
}

static PyObject *scan_model_name(PyObject *object, void *unused)
{
    const coffer_mscan *scan = open_scan(object);
    (void)unused;
    if (!scan)
        return NULL;
    const char *name = coffer_mscan_model_name(scan);
    return core_text(name, strlen(name));
}

static PyObject *scan_tokens(PyObject *object, void *unused)
{
    const coffer_mscan *scan = open_scan(object);
    (void)unused;
    return scan ? PyLong_FromUnsignedLongLong(coffer_mscan_total_tokens(scan)) : NULL;
}

static Py_ssize_t scan_length(PyObject *object)
{
    const coffer_mscan *scan = open_scan(object);
    return scan ? (Py_ssize_t)coffer_mscan_record_count(scan) : -1;
}

static PyMethodDef scan_methods[] = {
    { "records", scan_records, METH_VARARGS, NULL }, { "scale", scan_scale, METH_VARARGS, NULL },
    { "scope", scan_scope, METH_VARARGS, NULL },     { "metadata", scan_metadata, METH_NOARGS, NULL },
    { "params", scan_params, METH_NOARGS, NULL },    { "sequences", scan_sequences, METH_NOARGS, NULL },
    { "stats", scan_stats, METH_VARARGS, NULL },     { "scores", scan_scores, METH_VARARGS, NULL },
    { "grid", scan_grid, METH_VARARGS, NULL },       { NULL, NULL, 0, NULL },
};

static PyGetSetDef scan_members[] = {
    { "model_name", scan_model_name, NULL, NULL, NULL },
    { "tokens", scan_tokens, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot scan_slots[] = {
    { Py_tp_init, scan_init },
    { Py_tp_methods, scan_methods },
    { Py_tp_getset, scan_members },
    { Py_sq_length, scan_length },
    { 0, NULL },
};

int core_add_mscan(PyObject *module)
{
    return core_add_handle(module, "coffer._core.Mscan", scan_slots);
}
