/* The module itself: its state, its functions and types. */
#include "core.h"

static int execute(PyObject *module);

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    core_state *state = PyModule_GetState(module);
    Py_VISIT(state->make_error);
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

PyTypeObject *core_new_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, (PyTypeObject *)type) == 0)
        return (PyTypeObject *)type;
    Py_XDECREF(type);
    return NULL;
}

int core_add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = core_new_type(module, spec);
    Py_XDECREF((PyObject *)type); /* the module has its own reference */
    return type ? 0 : -1;
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
    if (core_add_source(module) || core_add_verbs(module) || core_add_tensors(module) ||
        core_add_models(module) || core_add_mcf_writer(module) || core_add_mcf_editor(module) ||
        core_add_quant(module) || core_add_mldf(module) || core_add_mldf_writer(module) ||
        core_add_mscan(module) || core_add_mscan_writer(module) || core_add_mlyze(module) ||
        core_add_pycauset(module) || core_add_parts(module))
        return -1;
    return 0;
}

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
