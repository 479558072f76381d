#include "coffer/error.h"

void coffer_error_init(coffer_error *err)
{
    *err = (coffer_error)COFFER_ERROR_INIT;
}

const char *coffer_status_name(coffer_status status)
{
    switch (status) {
    case COFFER_OK:
        return "ok";
    case COFFER_E_NOT_RECOGNISED:
        return "not-recognised";
    case COFFER_E_BAD_MAGIC:
        return "bad-magic";
    case COFFER_E_UNSUPPORTED_VERSION:
        return "unsupported-version";
    case COFFER_E_TRUNCATED:
        return "truncated";
    case COFFER_E_OUT_OF_BOUNDS:
        return "out-of-bounds";
    case COFFER_E_OVERLAP:
        return "overlap";
    case COFFER_E_MISALIGNED:
        return "misaligned";
    case COFFER_E_BAD_VALUE:
        return "bad-value";
    case COFFER_E_BAD_CHECKSUM:
        return "bad-checksum";
    case COFFER_E_BAD_JSON:
        return "bad-json";
    case COFFER_E_BAD_TEXT:
        return "bad-text";
    case COFFER_E_BAD_VARINT:
        return "bad-varint";
    case COFFER_E_DANGLING_REFERENCE:
        return "dangling-reference";
    case COFFER_E_DUPLICATE:
        return "duplicate";
    case COFFER_E_NOT_SORTED:
        return "not-sorted";
    case COFFER_E_RESERVED_NOT_ZERO:
        return "reserved-not-zero";
    case COFFER_E_SIZE_MISMATCH:
        return "size-mismatch";
    case COFFER_E_TRAILING_BYTES:
        return "trailing-bytes";
    case COFFER_E_MISSING:
        return "missing";
    case COFFER_E_INCONSISTENT:
        return "inconsistent";
    case COFFER_E_UNSAFE_PATH:
        return "unsafe-path";
    case COFFER_E_LIMIT:
        return "limit";
    case COFFER_E_INTERRUPTED_UPDATE:
        return "interrupted-update";
    case COFFER_E_KEY_NEEDED:
        return "key-needed";
    case COFFER_E_AUTHENTICATION_FAILED:
        return "authentication-failed";
    case COFFER_E_UNDECODABLE:
        return "undecodable";
    case COFFER_E_IO:
        return "io";
    case COFFER_E_NO_MEMORY:
        return "no-memory";
    case COFFER_E_INVALID_ARGUMENT:
        return "invalid-argument";
    case COFFER_E_NOT_FOUND:
        return "not-found";
    case COFFER_E_EXISTS:
        return "exists";
    case COFFER_E_LOCKED:
        return "locked";
    case COFFER_E_UNSUPPORTED:
        return "unsupported";
    case COFFER_E_CANCELLED:
        return "cancelled";
    case COFFER_E_CHANGED:
        return "changed";
    default:
        return "unknown";
    }
}
