#ifndef COFFER_ERROR_H
#define COFFER_ERROR_H

#include "coffer/api.h"

COFFER_BEGIN_DECLS

/* Result of every call that can fail: COFFER_OK or one of the negative codes below. The same codes name the
 * findings of `check`, and their names (coffer_status_name) stand in the command's JSON. Numbers never change
 * meaning. */
typedef int coffer_status;

enum {
    COFFER_OK = 0,

    /* What can be wrong with a file. */
    COFFER_E_NOT_RECOGNISED = -1,
    COFFER_E_BAD_MAGIC = -2,
    COFFER_E_UNSUPPORTED_VERSION = -3,
    COFFER_E_TRUNCATED = -4,
    COFFER_E_OUT_OF_BOUNDS = -5,
    COFFER_E_OVERLAP = -6,
    COFFER_E_MISALIGNED = -7,
    COFFER_E_BAD_VALUE = -8,
    COFFER_E_BAD_CHECKSUM = -9,
    COFFER_E_BAD_JSON = -10,
    COFFER_E_BAD_TEXT = -11,
    COFFER_E_BAD_VARINT = -12,
    COFFER_E_DANGLING_REFERENCE = -13,
    COFFER_E_DUPLICATE = -14,
    COFFER_E_NOT_SORTED = -15,
    COFFER_E_RESERVED_NOT_ZERO = -16,
    COFFER_E_SIZE_MISMATCH = -17,
    COFFER_E_TRAILING_BYTES = -18,
    COFFER_E_MISSING = -19,
    COFFER_E_INCONSISTENT = -20,
    COFFER_E_UNSAFE_PATH = -21,
    COFFER_E_LIMIT = -22,
    COFFER_E_INTERRUPTED_UPDATE =
        -23, /* a rollback journal lies beside the file: a note, the old state is shown */

    /* What can go wrong around it. */
    COFFER_E_IO = -40,
    COFFER_E_NO_MEMORY = -41,
    COFFER_E_INVALID_ARGUMENT = -42,
    COFFER_E_NOT_FOUND = -43,
    COFFER_E_EXISTS = -44,
    COFFER_E_LOCKED = -45,
    COFFER_E_UNSUPPORTED = -46,
    COFFER_E_CANCELLED = -47,
    COFFER_E_CHANGED = -48 /* the file was changed or cut while it was read */
};

#define COFFER_OFFSET_NONE UINT64_MAX

/* Lives on the caller's stack. Filled on failure only; every function accepts NULL in its place. */
typedef struct coffer_error {
    coffer_status status;
    uint64_t offset; /* place in the file, or COFFER_OFFSET_NONE */
    char text[200];  /* one line, UTF-8, with the numbers in it */
} coffer_error;

#define COFFER_ERROR_INIT                 \
    {                                     \
        COFFER_OK, COFFER_OFFSET_NONE, "" \
    }

/* "bad-checksum" for COFFER_E_BAD_CHECKSUM; "unknown" for a number that is no code. Never NULL. */
COFFER_API const char *coffer_status_name(coffer_status status);

COFFER_END_DECLS

#endif
