#ifndef COFFER_ERROR_H
#define COFFER_ERROR_H

#include "coffer/api.h"

COFFER_BEGIN_DECLS

/* Result of every call that can fail: COFFER_OK or one of the negative codes below. The same codes name the
 * findings of `check`, and their names (coffer_status_name) appear in the command's JSON. Numbers never
 * change meaning. */
typedef int coffer_status;

enum {
    COFFER_OK = 0,

    /* Errors in the content of a file. */
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
    COFFER_E_INTERRUPTED_UPDATE = -23,    /* a rollback journal exists: a note, the old state is shown */
    COFFER_E_KEY_NEEDED = -24,            /* the data is encrypted and no key was given */
    COFFER_E_AUTHENTICATION_FAILED = -25, /* the key is wrong, or the encrypted data was changed */
    COFFER_E_UNDECODABLE = -26,           /* stored as the file says, but the codec cannot decode it */

    /* Errors of the system, the arguments and the surroundings. */
    COFFER_E_IO = -40,
    COFFER_E_NO_MEMORY = -41,
    COFFER_E_INVALID_ARGUMENT = -42,
    COFFER_E_NOT_FOUND = -43,
    COFFER_E_EXISTS = -44,
    COFFER_E_LOCKED = -45,
    COFFER_E_UNSUPPORTED = -46,
    COFFER_E_CANCELLED = -47,
    COFFER_E_CHANGED = -48 /* the file was changed or truncated while it was read */
};

#define COFFER_OFFSET_NONE UINT64_MAX

/* The file an error is about. */
enum coffer_subject {
    COFFER_SUBJECT_INPUT = 0,  /* the file that the call reads; also errors that concern no file */
    COFFER_SUBJECT_OUTPUT = 1, /* the file that the call writes or changes, or its folder */
    COFFER_SUBJECT_OTHER = 2   /* another file (a shard, a journal, a temporary file), named in `text` */
};

/* Lives on the caller's stack and never grows. Filled on failure only; every function accepts NULL in its
 * place. Programs decide by status, system_error and subject; `text` is for people. */
typedef struct coffer_error {
    coffer_status status;
    int system_error; /* errno of the system call that failed, or 0 */
    uint64_t offset;  /* offset in the file, or COFFER_OFFSET_NONE */
    uint8_t subject;  /* enum coffer_subject */
    uint8_t reserved[7];
    char text[200]; /* one line, UTF-8, with the numbers in it; without the path that the caller passed */
} coffer_error;

#define COFFER_ERROR_INIT                                              \
    {                                                                  \
        COFFER_OK, 0, COFFER_OFFSET_NONE, COFFER_SUBJECT_INPUT, { 0 }, \
        {                                                              \
            0                                                          \
        }                                                              \
    }

/* The same as COFFER_ERROR_INIT, for bindings. */
COFFER_API void coffer_error_init(coffer_error *err);

/* "bad-checksum" for COFFER_E_BAD_CHECKSUM; "unknown" for a number that is not a code. Never NULL. */
COFFER_API const char *coffer_status_name(coffer_status status);

COFFER_END_DECLS

#endif
