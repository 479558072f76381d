/* Pages of files: their arrays, and the HTML file that shows them. */
#include "core.h"

#include <string.h>

static PyObject *notes_of(const coffer_chunks *chunks)
{
    size_t count = coffer_chunks_note_count(chunks);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *text =
            PyUnicode_DecodeUTF8(coffer_chunks_note_at(chunks, i),
                                 (Py_ssize_t)strlen(coffer_chunks_note_at(chunks, i)), "replace");
        if (!text || PyList_SetItem(list, (Py_ssize_t)i, text))
            Py_CLEAR(list);
    }
    return list;
}

/* (name, type, bytes) of each. */
static PyObject *arrays_of(const coffer_chunks *chunks)
{
    size_t count = coffer_chunks_count(chunks);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const coffer_chunk *chunk = coffer_chunks_at(chunks, i);
        PyObject *row = Py_BuildValue("ssy#", chunk->name, coffer_chunk_type_name(chunk->type), chunk->data,
                                      (Py_ssize_t)chunk->size);
        if (!row || PyList_SetItem(list, (Py_ssize_t)i, row))
            Py_CLEAR(list);
    }
    return list;
}

/* files : 1 or 2. *html stays empty in a build without the script of the pages. */
static coffer_status read_page(coffer_chunks **out, coffer_bytes *html, const char *const paths[2],
                               const coffer_chunks_opts *opts, size_t *failed, coffer_error *err)
{
    coffer_file *files[2] = { NULL, NULL };
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < 2 && paths[i] && !status; i++) {
        *failed = i;
        status = coffer_file_open(&files[i], paths[i], err);
    }
    if (!status) {
        *failed = 0;
        status = coffer_chunks_new(out, files[0], files[1], opts, err);
    }
    if (!status && coffer_page_is_available())
        status = coffer_page_write(html, *out, err);
    coffer_file_close(files[0]);
    coffer_file_close(files[1]);
    return status;
}

/* page(path, other or None, max_bytes, max_read, threads, progress) → (kind, arrays, html or None, notes,
 * errors) */
static PyObject *page(PyObject *module, PyObject *args)
{
    core_state *state = core_state_of_module(module);
    coffer_chunks_opts opts = COFFER_CHUNKS_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_bytes html = COFFER_BYTES_INIT;
    coffer_chunks *chunks = NULL;
    coffer_status status;
    core_progress progress;
    PyObject *given[2], *callable, *paths[2] = { NULL, NULL };
    unsigned long long max_bytes, max_read;
    size_t failed = 0;
    if (!PyArg_ParseTuple(args, "OOKKIO", &given[0], &given[1], &max_bytes, &max_read, &opts.threads,
                          &callable))
        return NULL;
    for (size_t i = 0; i < 2 && given[i] != Py_None && !PyErr_Occurred(); i++)
        paths[i] = core_path(given[i]);
    if (PyErr_Occurred()) {
        Py_XDECREF(paths[0]);
        return NULL;
    }
    const char *const texts[2] = { PyBytes_AsString(paths[0]), paths[1] ? PyBytes_AsString(paths[1]) : NULL };
    opts.name = texts[0];
    opts.other_name = texts[1];
    opts.max_bytes = max_bytes;
    opts.max_read_bytes = max_read;
    opts.progress = core_progress_init(&progress, callable);
    Py_BEGIN_ALLOW_THREADS
    status = read_page(&chunks, &html, texts, &opts, &failed, &err);
    Py_END_ALLOW_THREADS
    Py_XDECREF(paths[0]);
    Py_XDECREF(paths[1]);
    PyObject *result = NULL;
    if (status)
        core_raise(state, &err, given[failed]);
    else
        result = Py_BuildValue("sNy#NK", coffer_chunks_page(chunks), arrays_of(chunks), html.data,
                               (Py_ssize_t)html.size, notes_of(chunks),
                               (unsigned long long)coffer_chunks_error_count(chunks));
    coffer_free(html.data);
    coffer_chunks_free(chunks);
    return result;
}

static PyMethodDef functions[] = {
    { "page", page, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_pages(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
