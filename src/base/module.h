/* Modules: shared objects for work that needs a large library of others (codecs, drawing). Each is opened
 * when it is first needed, so that a program that reads tensors does not load them. HDF5, whose library is
 * not safe with untrusted files, is a program of its own instead (helper.h), which is found in the same
 * folders. */
#ifndef COFFER_BASE_MODULE_H
#define COFFER_BASE_MODULE_H

#include "coffer/error.h"
#include "coffer/version.h"

/* Changes with every change to a table of functions or to what its functions are passed. */
#define COFFER__MODULE_ABI 3

/* The file of module NAME is coffer-NAME.so. */
typedef enum coffer__module_id {
    COFFER__MODULE_JPEG,
    COFFER__MODULE_PNG,
    COFFER__MODULE_WEBP,
    COFFER__MODULE_TIFF,
    COFFER__MODULE_SOUND,
    COFFER__MODULE_HDF5,
    COFFER__MODULE_DRAW,
    COFFER__MODULE_HTTP,
    COFFER__MODULE_SYMBOLS,
    COFFER__MODULE_SERVE,
    COFFER__MODULE_CUDA,
    COFFER__MODULE_COUNT
} coffer__module_id;

/* Every table of functions begins with this. */
typedef struct coffer__module {
    uint32_t struct_size; /* of the whole table */
    uint32_t abi;         /* COFFER__MODULE_ABI */
    const char *version;  /* COFFER_VERSION_STRING */
    /* Version of the library that the module uses, without its name. */
    const char *(*library_version)(void);
} coffer__module;

/* First member of a table of the given type. */
#define COFFER__MODULE_INIT(type, library_version)                                 \
    {                                                                              \
        sizeof(type), COFFER__MODULE_ABI, COFFER_VERSION_STRING, (library_version) \
    }

/* The one symbol that module NAME exports: a pointer to its table. The tests link the modules statically, so
 * each has its own name. */
#define COFFER__MODULE_EXPORT(name, table)                   \
    extern const coffer__module *const coffer_module_##name; \
    __attribute__((visibility("default"))) const coffer__module *const coffer_module_##name = &(table).common

/* Loads a module, or returns the one that is loaded; it stays until the program ends. NULL with
 * COFFER_E_UNSUPPORTED when the module or its library is not installed; the text says what to install.
 * size : of the table that the caller expects.
 * Thread safety: may run concurrently. */
const void *coffer__module_load(coffer__module_id id, size_t size, coffer_error *err);
/* The path of the program of a module that runs in its own process; NULL as above. */
const char *coffer__module_program(coffer__module_id id, coffer_error *err);
/* The path of the library that `coffer record` preloads, coffer__free(); NULL as above. */
char *coffer__module_preloaded(coffer_error *err);
/* The table of a module that is linked into this program; NULL when it is not. */
const void *coffer__module_linked(coffer__module_id id);
/* Loads a module for the version of the library that it uses; NULL as above. */
const char *coffer__module_version(coffer__module_id id, coffer_error *err);
/* "jpeg" */
const char *coffer__module_name(coffer__module_id id);
/* "libjpeg-turbo" */
const char *coffer__module_library(coffer__module_id id);

#endif
