/* Declarations that the files of the extension module share. Only the limited API of Python 3.11 and the
 * public API of Coffer are used. Objects of Coffer are owned like this: array -> View -> handle -> Source, so
 * that memory is released with the last of them, whatever was closed before. */
#ifndef COFFER_PYTHON_CORE_H
#define COFFER_PYTHON_CORE_H

#include <pyconfig.h>
#ifndef Py_GIL_DISABLED /* builds of Python without the GIL do not have the stable ABI */
#define Py_LIMITED_API 0x030b0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <coffer/coffer.h>

/* ---- Module ---- */

typedef struct core_state {
    PyObject *make_error; /* coffer._errors.make */
    PyTypeObject *source_type, *view_type, *mldf_type, *workers_type;
} core_state;

core_state *core_state_of(PyObject *object); /* an instance of one of our types */
core_state *core_state_of_module(PyObject *module);
/* Makes a type of the module and adds it under its short name: a new reference, or 0 and -1. */
PyTypeObject *core_new_type(PyObject *module, PyType_Spec *spec);
int core_add_type(PyObject *module, PyType_Spec *spec);
/* The end of every tp_dealloc. */
void core_free_object(PyObject *object);

/* Each adds its types or functions; -1 with an exception on failure. */
int core_add_source(PyObject *module);
int core_add_verbs(PyObject *module);
int core_add_tensors(PyObject *module);
int core_add_models(PyObject *module);
int core_add_mcf_writer(PyObject *module);
int core_add_mcf_editor(PyObject *module);
int core_add_quant(PyObject *module);
int core_add_mldf(PyObject *module);
int core_add_mldf_batch(PyObject *module);
int core_add_mldf_writer(PyObject *module);
int core_add_mscan(PyObject *module);
int core_add_mscan_writer(PyObject *module);
int core_add_mlyze(PyObject *module);
int core_add_pycauset(PyObject *module);
int core_add_parts(PyObject *module);

/* ---- Errors ---- */

/* Raises the exception for an error; path: a str, or NULL. An exception that a callback raised stays. Returns
 * NULL. */
PyObject *core_raise(core_state *state, const coffer_error *err, PyObject *path);
int core_raise_closed(void); /* ValueError: the file is closed; returns -1 */

/* ---- Progress ---- */

/* Calls a Python callable (NULL: none) with done and total, and looks for Ctrl-C, at most every 50 ms. The
 * caller has released the GIL. */
typedef struct core_progress {
    coffer_progress progress;
    PyObject *callable;
    uint64_t next_ns;
} core_progress;

/* callable : None or NULL = none; borrowed. */
const coffer_progress *core_progress_init(core_progress *out, PyObject *callable);

/* ---- Values ---- */

PyObject *core_from_node(const coffer_node *node); /* dict, list, int, float, str, bool, None */
PyObject *core_from_report(const coffer_report *report);
PyObject *core_text(const char *text, size_t len); /* invalid UTF-8 is kept as lone surrogates */
PyObject *core_shape(const uint64_t *dims, size_t rank);
/* An element type by name; COFFER_DTYPE_NONE with ValueError. */
coffer_dtype core_dtype(const char *name);
/* A path as bytes (new reference), from str, bytes or os.PathLike. */
PyObject *core_path(PyObject *object);

/* A tree or a report to be filled by a call of the library. */
coffer_node *core_node_new(void);
coffer_report *core_report_new(void);
/* The tree or the report as an object, or the exception; both are freed. */
PyObject *core_node_result(core_state *state, coffer_status status, const coffer_error *err,
                           coffer_node *node, PyObject *path);
PyObject *core_report_result(core_state *state, coffer_status status, const coffer_error *err,
                             coffer_report *report, PyObject *path);

/* ---- Sources and views ---- */

typedef struct core_source {
    PyObject_HEAD coffer_source *source;
    Py_buffer buffer; /* of a source in memory */
    bool has_buffer;
    PyObject *file; /* of a source that reads a file object */
    PyObject *path; /* str, or NULL */
} core_source;

/* Fails with TypeError unless it is a Source. Borrowed. */
core_source *core_as_source(core_state *state, PyObject *object);
/* A handle of the library over a source: the types that need nothing else. */
typedef struct core_handle {
    PyObject_HEAD void *handle;
    PyObject *source; /* kept alive */
    bool closed;      /* views may still use the handle: it is freed with the last of them */
} core_handle;

/* The body of tp_init: opens the handle over a Source, without the GIL. opts : for `open`. -1 with an
 * exception. */
typedef coffer_status (*core_opener)(void **out, coffer_source *source, const void *opts, coffer_error *err);
int core_handle_init(PyObject *object, PyObject *input, core_opener open, const void *opts);
void *core_handle_open(PyObject *object); /* NULL with an exception when it is closed */
PyObject *core_handle_fail(PyObject *object, const coffer_error *err);
PyObject *core_handle_close(PyObject *object, PyObject *unused);
PyObject *core_handle_closed(PyObject *object, void *unused);
void core_handle_dealloc(PyObject *object); /* after the handle itself was freed */

/* Changes of metadata from a list of (kind, path, value); NULL with an exception. */
coffer_pycauset_changes *core_pycauset_changes(core_state *state, PyObject *list);

/* ---- Writers ---- */

/* A writer of the library: the types that end with commit or discard. */
typedef struct core_writer {
    PyObject_HEAD void *writer;                               /* NULL after commit or discard */
    PyObject *path;                                           /* str */
    coffer_status (*commit)(void *writer, coffer_error *err); /* frees the writer */
    void (*discard)(void *writer);
} core_writer;

/* Remembers how the writer ends and where its file is. The path as bytes, or NULL with an exception. */
PyObject *core_writer_begin(PyObject *object, PyObject *path, coffer_status (*commit)(void *, coffer_error *),
                            void (*discard)(void *));
void *core_writer_open(PyObject *object); /* NULL with an exception when it is closed */
/* None, or NULL with the exception of the error. */
PyObject *core_writer_done(PyObject *object, coffer_status status, const coffer_error *err);
PyObject *core_writer_commit(PyObject *object, PyObject *unused);
PyObject *core_writer_discard(PyObject *object, PyObject *unused);
void core_writer_dealloc(PyObject *object);

/* ---- Sets ---- */

/* The set of an open Mldf; NULL with an exception for anything else. */
coffer_mldf *core_mldf_of(core_state *state, PyObject *object);
PyObject *core_mldf_fail(PyObject *object, const coffer_error *err); /* raises; returns NULL */
/* Read-only bytes that keep `owner` alive. */
PyObject *core_view(core_state *state, PyObject *owner, const void *data, size_t size);
/* Writable bytes that the library allocated; they belong to the result, also when this fails. */
PyObject *core_block(core_state *state, void *data, size_t size);
/* A writable, contiguous buffer of at least `size` bytes; -1 with an exception. */
int core_writable(Py_buffer *out, PyObject *object, uint64_t size);

#endif
