/* The module itself: its state, its functions and types. */
#include "core.h"

static int execute(PyObject *module);

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    core_state *state = PyModule_GetState(module);
    Py_VISIT(state->make_error);
    Py_VISIT(state->handle_type);
    Py_VISIT(state->writer_type);
    Py_VISIT(state->source_type);
    Py_VISIT(state->view_type);
    Py_VISIT(state->mldf_type);
    Py_VISIT(state->workers_type);
    return 0;
}

static int clear(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    Py_CLEAR(state->make_error);
    Py_CLEAR(state->handle_type);
    Py_CLEAR(state->writer_type);
    Py_CLEAR(state->source_type);
    Py_CLEAR(state->view_type);
    Py_CLEAR(state->mldf_type);
    Py_CLEAR(state->workers_type);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    { Py_mod_exec, execute },
    { 0, NULL },
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "coffer._core",
    .m_doc = "The C part of the package: use the modules of coffer instead.",
    .m_size = sizeof(core_state),
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

core_state *core_state_of(PyObject *object)
{
    /* The type may be a subclass that was written in Python. */
    for (PyTypeObject *type = Py_TYPE(object); type; type = PyType_GetSlot(type, Py_tp_base)) {
        void *state = PyType_GetModuleState(type);
        if (state)
            return state;
        PyErr_Clear();
    }
    return NULL;
}

core_state *core_state_of_module(PyObject *module)
{
    return PyModule_GetState(module);
}

PyTypeObject *core_new_type(PyObject *module, const char *name, size_t size, unsigned flags,
                            PyType_Slot *slots_of_type, PyTypeObject *base)
{
    PyType_Spec spec = {
        .name = name,
        .basicsize = (int)size,
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | flags,
        .slots = slots_of_type,
    };
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, (PyObject *)base);
    if (type && PyModule_AddType(module, (PyTypeObject *)type) == 0)
        return (PyTypeObject *)type;
    Py_XDECREF(type);
    return NULL;
}

static int add_derived(PyObject *module, const char *name, size_t size, PyType_Slot *slots_of_type,
                       PyTypeObject *base)
{
    PyTypeObject *type = core_new_type(module, name, size, 0, slots_of_type, base);
    Py_XDECREF((PyObject *)type); /* the module has its own reference */
    return type ? 0 : -1;
}

int core_add_type(PyObject *module, const char *name, size_t size, PyType_Slot *slots_of_type)
{
    return add_derived(module, name, size, slots_of_type, NULL);
}

int core_add_handle(PyObject *module, const char *name, PyType_Slot *slots_of_type)
{
    return add_derived(module, name, sizeof(core_handle), slots_of_type,
                       core_state_of_module(module)->handle_type);
}

int core_add_writer(PyObject *module, const char *name, size_t size, initproc init, PyMethodDef *methods)
{
    PyType_Slot slots_of_type[] = {
        { Py_tp_init, init },
        { Py_tp_methods, methods },
        { 0, NULL },
    };
    return add_derived(module, name, size, slots_of_type, core_state_of_module(module)->writer_type);
}

void core_free_object(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF((PyObject *)type);
}

static int execute(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    PyObject *errors = PyImport_ImportModule("coffer._errors");
    if (!errors)
        return -1;
    state->make_error = PyObject_GetAttrString(errors, "make");
    Py_DECREF(errors);
    if (!state->make_error || PyModule_AddStringConstant(module, "version", coffer_version()) != 0)
        return -1;
    static int (*const parts[])(PyObject *) = {
        core_add_bases,           core_add_source,       core_add_pages,      core_add_verbs,
        core_add_tensors,         core_add_jobs,         core_add_mcf_writer, core_add_mcf_editor,
        core_add_quant,           core_add_cuda,         core_add_mldf,       core_add_mldf_writer,
        core_add_mscan,           core_add_mscan_writer, core_add_mlyze,      core_add_pycauset,
        core_add_pycauset_writer,
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i](module))
            return -1;
    return 0;
}

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
