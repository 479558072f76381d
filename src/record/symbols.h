/* The module `symbols`: names of functions and lines for addresses in ELF files, by libdw. */
#ifndef COFFER_RECORD_SYMBOLS_H
#define COFFER_RECORD_SYMBOLS_H

#include "base/module.h"

/* Texts are borrowed from the file until it is closed; NULL = unknown. */
typedef struct coffer__symbol {
    const char *function, *file;
    uint64_t line; /* 0 = unknown */
} coffer__symbol;

typedef struct coffer__symbols_file coffer__symbols_file;

typedef struct coffer__symbols_module {
    coffer__module common;
    /* build_id : what the file must have; len 0 = anything. COFFER_E_CHANGED when it has another one. */
    coffer_status (*open)(coffer__symbols_file **out, const char *path, const uint8_t *build_id, size_t len,
                          coffer_error *err);
    /* The function at an address of the file, with the functions that were inlined there before it. Writes
     * at most max symbols, innermost first, and returns their number; 0 = unknown. */
    size_t (*find)(coffer__symbol *out, size_t max, coffer__symbols_file *file, uint64_t address);
    void (*close)(coffer__symbols_file *file);
} coffer__symbols_module;

#endif
