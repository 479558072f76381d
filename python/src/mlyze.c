/* Mlyze: a memory trace: events in columns, stacks, statistics, timeline, comparison. */
#include "core.h"

#include <string.h>

static coffer_status open_handle(void **out, coffer_source *source, const void *opts, coffer_error *err)
{
    coffer_mlyze *trace = NULL;
    coffer_status status = coffer_mlyze_open(&trace, source, opts, err);
    *out = trace;
    return status;
}

static void release(void *trace)
{
    coffer_mlyze_close(trace);
}

static const core_handle_acts acts = { open_handle, release };

static int trace_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    PyObject *input;
    (void)kwargs;
    return PyArg_ParseTuple(args, "O", &input) ? core_handle_init(object, input, &acts, NULL) : -1;
}

static const coffer_mlyze *open_trace(PyObject *object)
{
    return core_handle_open(object);
}

/* ---- Events ---- */

static PyObject *trace_block_count(PyObject *object, PyObject *unused)
{
    const coffer_mlyze *trace = open_trace(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    size_t count = 0;
    (void)unused;
    if (!trace)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mlyze_block_count(&count, trace, &err);
    Py_END_ALLOW_THREADS
    return status ? core_handle_fail(object, &err) : PyLong_FromSize_t(count);
}

/* block(index): (first, count, time, address, size, id, thread, type), the columns as bytes. */
static PyObject *trace_block(PyObject *object, PyObject *args)
{
    const coffer_mlyze *trace = open_trace(object);
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_ssize_t index;
    if (!trace || !PyArg_ParseTuple(args, "n", &index))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mlyze_read_block(&events, trace, (size_t)index, &err);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (status) {
        core_handle_fail(object, &err);
    } else {
        Py_ssize_t wide = (Py_ssize_t)(events.count * sizeof(uint64_t));
        result = Py_BuildValue("(Kny#y#y#y#y#y#)", (unsigned long long)events.first, (Py_ssize_t)events.count,
                               (const char *)events.time, wide, (const char *)events.address, wide,
                               (const char *)events.size, wide, (const char *)events.id, wide,
                               (const char *)events.thread, (Py_ssize_t)(events.count * sizeof(uint16_t)),
                               (const char *)events.type, (Py_ssize_t)events.count);
    }
    coffer_mlyze_events_free(&events);
    return result;
}

/* The number of the first event at or after a moment: "1.5s", "1234", a marker. */
static PyObject *trace_moment(PyObject *object, PyObject *args)
{
    const coffer_mlyze *trace = open_trace(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    const char *text;
    uint64_t event = 0;
    if (!trace || !PyArg_ParseTuple(args, "s", &text))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mlyze_find_moment(&event, trace, text, &err);
    Py_END_ALLOW_THREADS
    return status ? core_handle_fail(object, &err) : PyLong_FromUnsignedLongLong(event);
}

/* ---- Stacks ---- */

/* (function or None, file or None, line) */
static PyObject *described_frame(const coffer_mlyze *trace, const coffer_mlyze_frame *frame)
{
    return Py_BuildValue("(zzK)", coffer_mlyze_function_name(trace, frame->func_id),
                         coffer_mlyze_file_name(trace, frame->file_id), (unsigned long long)frame->line);
}

/* stack(id): the frames of a stack, outermost first. */
static PyObject *trace_stack(PyObject *object, PyObject *args)
{
    const coffer_mlyze *trace = open_trace(object);
    unsigned long long id;
    size_t depth = 0;
    if (!trace || !PyArg_ParseTuple(args, "K", &id))
        return NULL;
    size_t index = coffer_mlyze_find_stack(trace, id);
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, trace, index);
    PyObject *list = PyList_New(0);
    for (size_t i = depth; list && i-- > 0;) { /* the library has the innermost first */
        PyObject *frame = described_frame(trace, &frames[i]);
        if (!frame || PyList_Append(list, frame) != 0)
            Py_CLEAR(list);
        Py_XDECREF(frame);
    }
    return list;
}

static PyObject *trace_name(PyObject *object, PyObject *args)
{
    const coffer_mlyze *trace = open_trace(object);
    unsigned long long id;
    if (!trace || !PyArg_ParseTuple(args, "K", &id))
        return NULL;
    const char *name = coffer_mlyze_function_name(trace, id);
    return name ? core_text(name, strlen(name)) : Py_NewRef(Py_None);
}

static PyObject *trace_metadata(PyObject *object, PyObject *unused)
{
    const coffer_mlyze *trace = open_trace(object);
    size_t len = 0;
    (void)unused;
    if (!trace)
        return NULL;
    const char *text = coffer_mlyze_metadata(trace, &len);
    return core_text(text, len);
}

/* ---- Statistics ---- */

static PyObject *totals_dict(const coffer_mlyze_totals *totals)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        { "events", totals->events },
        { "allocs", totals->allocs },
        { "frees", totals->frees },
        { "collections", totals->collections },
        { "markers", totals->markers },
        { "unknown_events", totals->unknown_events },
        { "total_allocated_bytes", totals->total_allocated_bytes },
        { "peak_bytes", totals->peak_bytes },
        { "peak_allocs", totals->peak_allocs },
        { "peak_event", totals->peak_event },
        { "peak_time_us", totals->peak_time_us },
        { "live_bytes_at_end", totals->live_bytes_at_end },
        { "live_allocs_at_end", totals->live_allocs_at_end },
        { "duration_us", totals->duration_us },
        { "reallocs", totals->reallocs },
        { "unknown_frees", totals->unknown_frees },
        { "double_allocs", totals->double_allocs },
        { "temporary_allocs", totals->temporary_allocs },
        { "temporary_bytes", totals->temporary_bytes },
        { "peak_rss_bytes", totals->peak_rss_bytes },
        { "lost_events", totals->lost_events },
    };
    PyObject *map = PyDict_New();
    for (size_t i = 0; map && i < sizeof rows / sizeof rows[0]; i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(rows[i].value);
        if (!value || PyDict_SetItemString(map, rows[i].name, value) != 0)
            Py_CLEAR(map);
        Py_XDECREF(value);
    }
    return map;
}

/* (stack id, allocs, bytes, peak allocs, peak bytes, live allocs, live bytes, oldest, newest, temporary
 * allocs, temporary bytes, growth in bytes/s, growth fit) */
static PyObject *stack_rows(const coffer_mlyze_stats *stats)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < coffer_mlyze_stats_stack_count(stats); i++) {
        const coffer_mlyze_stack_row *row = coffer_mlyze_stats_stack_at(stats, i);
        PyObject *item =
            Py_BuildValue("(KKKKKKKKKKKdd)", (unsigned long long)row->id, (unsigned long long)row->allocs,
                          (unsigned long long)row->allocated_bytes, (unsigned long long)row->peak_allocs,
                          (unsigned long long)row->peak_bytes, (unsigned long long)row->live_allocs,
                          (unsigned long long)row->live_bytes, (unsigned long long)row->oldest_us,
                          (unsigned long long)row->newest_us, (unsigned long long)row->temporary_allocs,
                          (unsigned long long)row->temporary_bytes, row->growth_bytes_per_s, row->growth_fit);
        core_append(&list, item);
    }
    return list;
}

/* Nested nodes of a flame graph: {"name", "file", "line", "bytes", "allocs", "children"}. Depth is bounded by
 * the tree. */
static PyObject *tree_node(const coffer_mlyze *trace, const coffer_mlyze_tree *tree, size_t index)
{
    const coffer_mlyze_tree_node *node = coffer_mlyze_tree_at(tree, index);
    PyObject *children = PyList_New(0);
    if (Py_EnterRecursiveCall(" in a flame graph"))
        Py_CLEAR(children);
    for (size_t at = node->first_child; children && at != COFFER_INDEX_NONE;
         at = coffer_mlyze_tree_at(tree, at)->next_sibling) {
        PyObject *child = tree_node(trace, tree, at);
        if (!child || PyList_Append(children, child) != 0)
            Py_CLEAR(children);
        Py_XDECREF(child);
    }
    Py_LeaveRecursiveCall();
    if (!children)
        return NULL;
    bool root = node->parent == COFFER_INDEX_NONE;
    return Py_BuildValue("{s:z,s:z,s:K,s:K,s:K,s:N}", "name",
                         root ? "all" : coffer_mlyze_function_name(trace, node->frame.func_id), "file",
                         root ? NULL : coffer_mlyze_file_name(trace, node->frame.file_id), "line",
                         root ? 0ULL : (unsigned long long)node->frame.line, "bytes",
                         (unsigned long long)node->bytes, "allocs", (unsigned long long)node->allocs,
                         "children", children);
}

static PyObject *flame(PyObject *object, const coffer_mlyze *trace, const coffer_mlyze_stats *stats,
                       int measure)
{
    enum { DEEPEST = 200 };
    coffer_mlyze_tree_opts opts = COFFER_MLYZE_TREE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze_tree *tree = NULL;
    opts.measure = (coffer_mlyze_measure)measure;
    opts.max_depth = DEEPEST;
    if (coffer_mlyze_tree_new(&tree, trace, stats, &opts, &err))
        return core_handle_fail(object, &err);
    PyObject *result = tree_node(trace, tree, 0);
    coffer_mlyze_tree_free(tree);
    return result;
}

/* stats(begin, end, growth_windows, threads, flame measure or -1, progress): (totals, rows, flame or None) */
static PyObject *trace_stats(PyObject *object, PyObject *args)
{
    const coffer_mlyze *trace = open_trace(object);
    coffer_mlyze_stats_opts opts = COFFER_MLYZE_STATS_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze_stats *stats = NULL;
    coffer_status status;
    core_progress progress;
    PyObject *callable;
    unsigned long long begin, end;
    int measure;
    if (!trace || !PyArg_ParseTuple(args, "KKIIiO", &begin, &end, &opts.growth_windows, &opts.threads,
                                    &measure, &callable))
        return NULL;
    opts.begin = begin;
    opts.end = end;
    opts.progress = core_progress_init(&progress, callable);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mlyze_stats_new(&stats, trace, &opts, &err);
    Py_END_ALLOW_THREADS
    if (status)
        return core_handle_fail(object, &err);
    PyObject *totals = totals_dict(coffer_mlyze_stats_totals(stats));
    PyObject *rows = totals ? stack_rows(stats) : NULL;
    PyObject *tree = NULL;
    if (rows)
        tree = measure < 0 ? Py_NewRef(Py_None) : flame(object, trace, stats, measure);
    coffer_mlyze_stats_free(stats);
    if (!tree) {
        Py_XDECREF(totals);
        Py_XDECREF(rows);
        return NULL;
    }
    return Py_BuildValue("(NNN)", totals, rows, tree);
}

/* timeline(width, begin_us, end_us, exact, progress): (exact, bytes): time, live bytes, live allocations,
 * highest, events as uint64 columns. */
static PyObject *trace_timeline(PyObject *object, PyObject *args)
{
    enum { COLUMNS = 5 };
    const coffer_mlyze *trace = open_trace(object);
    coffer_mlyze_timeline_opts opts = COFFER_MLYZE_TIMELINE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze_timeline *timeline = NULL;
    coffer_status status;
    core_progress progress;
    PyObject *callable;
    unsigned long long begin, end;
    int exact;
    if (!trace || !PyArg_ParseTuple(args, "IKKpO", &opts.width, &begin, &end, &exact, &callable))
        return NULL;
    opts.begin_us = begin;
    opts.end_us = end;
    opts.exact = exact;
    opts.progress = core_progress_init(&progress, callable);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mlyze_timeline_new(&timeline, trace, &opts, &err);
    Py_END_ALLOW_THREADS
    if (status)
        return core_handle_fail(object, &err);
    size_t count = coffer_mlyze_timeline_count(timeline);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * COLUMNS * sizeof(uint64_t)));
    for (size_t i = 0; bytes && i < count; i++) {
        const coffer_mlyze_point *point = coffer_mlyze_timeline_at(timeline, i);
        const uint64_t row[COLUMNS] = { point->time_us, point->live_bytes, point->live_allocs,
                                        point->high_bytes, point->events };
        for (size_t k = 0; k < COLUMNS; k++)
            memcpy(PyBytes_AsString(bytes) + 8 * (k * count + i), &row[k], sizeof row[k]);
    }
    PyObject *was_exact = coffer_mlyze_timeline_is_exact(timeline) ? Py_True : Py_False;
    coffer_mlyze_timeline_free(timeline);
    return bytes ? Py_BuildValue("(OnN)", was_exact, (Py_ssize_t)count, bytes) : NULL;
}

/* diff(other, measure, max_shown, progress): a tree. */
static PyObject *trace_diff(PyObject *object, PyObject *args)
{
    const coffer_mlyze *a = open_trace(object), *b;
    coffer_mlyze_diff_opts opts = COFFER_MLYZE_DIFF_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *other, *callable;
    unsigned long long shown;
    int measure;
    if (!a || !PyArg_ParseTuple(args, "O!iKO", Py_TYPE(object), &other, &measure, &shown, &callable) ||
        !(b = open_trace(other)))
        return NULL;
    coffer_node *node = core_node_new();
    if (!node)
        return NULL;
    opts.measure = (coffer_mlyze_measure)measure;
    opts.max_shown = shown;
    opts.progress = core_progress_init(&progress, callable);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mlyze_diff(node, a, b, &opts, &err);
    Py_END_ALLOW_THREADS
    PyObject *result = status ? core_handle_fail(object, &err) : core_from_node(node);
    coffer_node_free(node);
    return result;
}

static PyObject *trace_event_count(PyObject *object, PyObject *unused)
{
    const coffer_mlyze *trace = open_trace(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    uint64_t count = 0;
    (void)unused;
    if (!trace)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mlyze_event_count(&count, trace, &err);
    Py_END_ALLOW_THREADS
    return status ? core_handle_fail(object, &err) : PyLong_FromUnsignedLongLong(count);
}

static PyObject *trace_start(PyObject *object, void *unused)
{
    const coffer_mlyze *trace = open_trace(object);
    (void)unused;
    return trace ? PyLong_FromUnsignedLongLong(coffer_mlyze_start_time(trace)) : NULL;
}

static PyMethodDef trace_methods[] = {
    { "block_count", trace_block_count, METH_NOARGS, NULL },
    { "block", trace_block, METH_VARARGS, NULL },
    { "event_count", trace_event_count, METH_NOARGS, NULL },
    { "moment", trace_moment, METH_VARARGS, NULL },
    { "stack", trace_stack, METH_VARARGS, NULL },
    { "name", trace_name, METH_VARARGS, NULL },
    { "metadata", trace_metadata, METH_NOARGS, NULL },
    { "stats", trace_stats, METH_VARARGS, NULL },
    { "timeline", trace_timeline, METH_VARARGS, NULL },
    { "diff", trace_diff, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef trace_members[] = {
    { "start_us", trace_start, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot trace_slots[] = {
    { Py_tp_init, trace_init },
    { Py_tp_methods, trace_methods },
    { Py_tp_getset, trace_members },
    { 0, NULL },
};

int core_add_mlyze(PyObject *module)
{
    return core_add_handle(module, "coffer._core.Mlyze", trace_slots) ? -1 : 0;
}
