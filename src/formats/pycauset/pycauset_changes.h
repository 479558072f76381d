/* What a list of changes is made of. */
#ifndef COFFER_FORMATS_PYCAUSET_CHANGES_H
#define COFFER_FORMATS_PYCAUSET_CHANGES_H

#include "formats/pycauset/pycauset_private.h"

typedef enum coffer__pycauset_change_kind {
    COFFER__PYCAUSET_SET,
    COFFER__PYCAUSET_SET_CACHED, /* the value gets its signature when it is applied */
    COFFER__PYCAUSET_SET_CHECKSUMS,
    COFFER__PYCAUSET_DELETE
} coffer__pycauset_change_kind;

typedef struct coffer__pycauset_key {
    const char *text; /* NUL-terminated, escapes resolved */
    uint16_t len;
} coffer__pycauset_key;

typedef struct coffer__pycauset_change {
    coffer__pycauset_change_kind kind;
    const coffer__pycauset_key *path;
    size_t steps; /* 1 … COFFER__PYCAUSET_MAX_DEPTH */
    coffer_pycauset_value value;
} coffer__pycauset_change;

struct coffer_pycauset_changes {
    coffer__arena memory;
    coffer__pycauset_change *items;
    size_t count, capacity;
    bool system; /* may set what says what the payload is */
};

#endif
