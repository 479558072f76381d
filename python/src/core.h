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
    PyObject *make_error;                    /* coffer._errors.make */
    PyTypeObject *handle_type, *writer_type; /* bases of the others */
    PyTypeObject *source_type, *view_type, *mldf_type, *workers_type;
} core_state;

core_state *core_state_of(PyObject *object); /* an instance of one of our types */
core_state *core_state_of_module(PyObject *module);
/* Makes an immutable type of the module and adds it under its short name.
 * name : "coffer._core.Name", static.    flags : more flags of Python.    base : NULL = object.
 * A new reference, or NULL with an exception. */
PyTypeObject *core_new_type(PyObject *module, const char *name, size_t size, unsigned flags,
                            PyType_Slot *slots, PyTypeObject *base);
/* The same for a type that only Python uses; -1 with an exception. */
int core_add_type(PyObject *module, const char *name, size_t size, PyType_Slot *slots);
/* A type whose instances are a core_handle, or begin with a core_writer. */
int core_add_handle(PyObject *module, const char *name, PyType_Slot *slots);
int core_add_writer(PyObject *module, const char *name, size_t size, initproc init, PyMethodDef *methods);
/* The end of every tp_dealloc. */
void core_free_object(PyObject *object);

/* Each adds its types or functions; -1 with an exception on failure. */
int core_add_source(PyObject *module);
int core_add_bases(PyObject *module);
int core_add_verbs(PyObject *module);
int core_add_pages(PyObject *module);
int core_add_tensors(PyObject *module);
int core_add_jobs(PyObject *module);
int core_add_mcf_writer(PyObject *module);
int core_add_mcf_editor(PyObject *module);
int core_add_quant(PyObject *module);
int core_add_mldf(PyObject *module);
int core_add_mldf_batch(PyObject *module);
int core_add_mldf_media(PyObject *module);
int core_add_mldf_writer(PyObject *module);
int core_add_mldf_update(PyObject *module);
int core_add_mscan(PyObject *module);
int core_add_mscan_writer(PyObject *module);
int core_add_mlyze(PyObject *module);
int core_add_pycauset(PyObject *module);
int core_add_pycauset_writer(PyObject *module);

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
/* A shape as dimensions; -1 with an exception for more than `most` of them. */
int core_dims(uint64_t *out, size_t most, PyObject *shape);
/* A key of 32 bytes, borrowed from the object; NULL for None (or NULL), or with ValueError. */
const uint8_t *core_key(PyObject *object);
/* Puts a new reference into a list, which is cleared on failure. */
void core_append(PyObject **list, PyObject *item);

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
/* A handle of the library, usually over a source. Types that need more begin with it. */
typedef struct core_handle {
    PyObject_HEAD void *handle;
    core_state *state; /* of the module: looking for it from a class written in Python is slow */
    void (*release)(void *handle);
    PyObject *source; /* kept alive; NULL when the handle was opened by path */
    PyObject *path;   /* str, or NULL */
    bool closed;      /* views may still use the handle: it is freed with the last of them */
} core_handle;

/* How the library opens and frees a handle. opts : as core_handle_init got them. */
typedef struct core_handle_acts {
    coffer_status (*open)(void **out, coffer_source *source, const void *opts, coffer_error *err);
    void (*release)(void *handle);
} core_handle_acts;

/* The body of tp_init: opens the handle over a Source, without the GIL. -1 with an exception. */
int core_handle_init(PyObject *object, PyObject *input, const core_handle_acts *acts, const void *opts);
/* Fails with ValueError when init runs twice. */
bool core_handle_is_new(PyObject *object);
void *core_handle_open(PyObject *object); /* NULL with an exception when it is closed */
void *core_handle_made(
    PyObject *object); /* also of a closed one; NULL with an exception before it was opened */
PyObject *core_handle_fail(PyObject *object, const coffer_error *err);
void core_handle_dealloc(PyObject *object);

/* ---- Writers ---- */

/* How the library makes and ends a writer. commit frees it, whatever it returns. */
typedef struct core_writer_acts {
    coffer_status (*create)(void **out, const char *path, const void *opts, coffer_error *err);
    coffer_status (*commit)(void *writer, coffer_error *err);
    void (*discard)(void *writer);
} core_writer_acts;

/* A writer of the library: the types that end with commit or discard, which their base type has. */
typedef struct core_writer {
    PyObject_HEAD void *writer; /* NULL after commit or discard */
    PyObject *path;             /* str */
    const core_writer_acts *acts;
} core_writer;

/* The body of tp_init: makes the writer, without the GIL. -1 with an exception. */
int core_writer_init(PyObject *object, PyObject *path, const core_writer_acts *acts, const void *opts);
void *core_writer_open(PyObject *object); /* NULL with an exception when it is closed */
/* None, or NULL with the exception of the error. */
PyObject *core_writer_done(PyObject *object, coffer_status status, const coffer_error *err);

/* ---- Sets ---- */

typedef struct core_mldf {
    core_handle base;
    PyObject *indices;             /* dict: field name -> index */
    PyObject *names;               /* tuple of field names */
    coffer_image_decoder *decoder; /* lent to one call at a time */
} core_mldf;

/* The set of an open Mldf; NULL with an exception for anything else. */
coffer_mldf *core_mldf_of(core_state *state, PyObject *object);
/* A sample and a field from (sample, field): negative samples count from the end, fields have a name or a
 * number. The set, or NULL with an exception. */
const coffer_mldf *core_mldf_place(uint64_t *sample, size_t *field, PyObject *object, PyObject *args);
/* A value that is not a number, or None when it is absent; NULL with an exception. */
PyObject *core_mldf_text(PyObject *object, const coffer_mldf *set, uint64_t sample, size_t field);
/* Methods of Mldf: they take (sample, field) or bytes. */
PyObject *core_mldf_bytes(PyObject *object, PyObject *args);
PyObject *core_mldf_entry(PyObject *object, PyObject *args);
PyObject *core_mldf_array(PyObject *object, PyObject *args);
PyObject *core_mldf_tokens(PyObject *object, PyObject *args);
PyObject *core_mldf_decode_image(PyObject *object, PyObject *args);
PyObject *core_mldf_scale(PyObject *object, PyObject *args);
PyObject *core_mldf_decode_audio(PyObject *object, PyObject *args);
PyObject *core_mldf_probe_audio(PyObject *object, PyObject *args);

/* ---- Bytes ---- */

/* Read-only bytes that keep `owner` alive. */
PyObject *core_view(core_state *state, PyObject *owner, const void *data, size_t size);
/* Writable bytes that the library allocated; they belong to the result, also when this fails. */
PyObject *core_block(core_state *state, void *data, size_t size);
/* A writable, contiguous buffer of at least `size` bytes; -1 with an exception. */
int core_writable(Py_buffer *out, PyObject *object, uint64_t size);

#endif
