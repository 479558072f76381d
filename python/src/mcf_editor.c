/* McfEditor: changes the metadata of a model file in one commit. */
#include "core.h"

#include <string.h>

static coffer_status create(void **out, const char *path, const void *opts, coffer_error *err)
{
    coffer_mcf_editor *editor = NULL;
    coffer_status status = coffer_mcf_editor_open(&editor, path, opts, err);
    *out = editor;
    return status;
}

static coffer_status commit(void *editor, coffer_error *err)
{
    coffer_status status = coffer_mcf_editor_commit(editor, err);
    coffer_mcf_editor_close(editor);
    return status;
}

static void discard(void *editor)
{
    coffer_mcf_editor_close(editor);
}

/* McfEditor(path): takes the write lock of the file. */
static int editor_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const core_writer_acts acts = { create, commit, discard };
    PyObject *path;
    (void)kwargs;
    return PyArg_ParseTuple(args, "O", &path) ? core_writer_init(object, path, &acts, NULL) : -1;
}

/* A section by name ("config.json") or as "0x80000001"; 0 with KeyError. */
static uint32_t section_number(const char *name)
{
    uint32_t type = coffer_mcf_section_by_name(name);
    if (!type && strncmp(name, "0x", 2) == 0) {
        PyObject *number = PyLong_FromString(name, NULL, 16);
        unsigned long value = number ? PyLong_AsUnsignedLong(number) : 0;
        Py_XDECREF(number);
        PyErr_Clear();
        type = value <= UINT32_MAX ? (uint32_t)value : 0;
    }
    if (!type)
        PyErr_Format(PyExc_KeyError, "no section is named %s; use files for the other files of a model",
                     name);
    return type;
}

/* set_section(name, bytes or None) */
static PyObject *editor_set_section(PyObject *object, PyObject *args)
{
    coffer_mcf_editor *editor = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    Py_buffer bytes;
    const char *name;
    if (!editor || !PyArg_ParseTuple(args, "sz*", &name, &bytes))
        return NULL;
    uint32_t type = section_number(name);
    if (type) {
        status = bytes.buf ? coffer_mcf_editor_set_section(editor, type, bytes.buf, (size_t)bytes.len, &err)
                           : coffer_mcf_editor_remove_section(editor, type, &err);
    }
    PyBuffer_Release(&bytes);
    return type ? core_writer_done(object, status, &err) : NULL;
}

/* set_info(field, text or None, "u32", "f32", "string" or None) */
static PyObject *editor_set_info(PyObject *object, PyObject *args)
{
    static const char *const names[] = { "", "u32", "f32", "string" };
    coffer_mcf_editor *editor = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    const char *field, *text, *type;
    if (!editor || !PyArg_ParseTuple(args, "szz", &field, &text, &type))
        return NULL;
    int number = 0;
    for (int i = 1; type && i <= (int)COFFER_MCF_KV_STRING; i++)
        if (strcmp(type, names[i]) == 0)
            number = i;
    if (type && !number)
        return PyErr_Format(PyExc_ValueError, "type is '%s'; it can be u32, f32 or string", type);
    coffer_status status =
        coffer_mcf_editor_set_model_info(editor, field, text, (coffer_mcf_kv_type)number, &err);
    return core_writer_done(object, status, &err);
}

/* set_file(name, bytes or None) */
static PyObject *editor_set_file(PyObject *object, PyObject *args)
{
    coffer_mcf_editor *editor = core_writer_open(object);
    coffer_error err = COFFER_ERROR_INIT;
    Py_buffer bytes;
    const char *name;
    if (!editor || !PyArg_ParseTuple(args, "sz*", &name, &bytes))
        return NULL;
    coffer_status status = coffer_mcf_editor_set_file(editor, name, bytes.buf, (size_t)bytes.len, &err);
    PyBuffer_Release(&bytes);
    return core_writer_done(object, status, &err);
}

/* set_checksums(threads, progress) */
static PyObject *editor_set_checksums(PyObject *object, PyObject *args)
{
    coffer_mcf_editor *editor = core_writer_open(object);
    coffer_mcf_work_opts opts = COFFER_MCF_WORK_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status;
    core_progress progress;
    PyObject *callable;
    if (!editor || !PyArg_ParseTuple(args, "IO", &opts.threads, &callable))
        return NULL;
    opts.progress = core_progress_init(&progress, callable);
    Py_BEGIN_ALLOW_THREADS
    status = coffer_mcf_editor_set_checksums(editor, &opts, &err);
    Py_END_ALLOW_THREADS
    return core_writer_done(object, status, &err);
}

static PyMethodDef editor_methods[] = {
    { "set_section", editor_set_section, METH_VARARGS, NULL },
    { "set_info", editor_set_info, METH_VARARGS, NULL },
    { "set_file", editor_set_file, METH_VARARGS, NULL },
    { "set_checksums", editor_set_checksums, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

int core_add_mcf_editor(PyObject *module)
{
    return core_add_writer(module, "coffer._core.McfEditor", sizeof(core_writer), editor_init,
                           editor_methods);
}
