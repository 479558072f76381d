#include "base/fail.h"

#include "base/utf8.h"
#include "coffer/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The macros of fail.h are for the callers. */
#undef coffer__fail
#undef coffer__fail_no_memory
#undef coffer__fail_errno
#undef coffer__fail_output
#undef coffer__fail_other
#undef coffer__fail_input
#undef coffer__fail_prefix

static const char ellipsis[] = "\xe2\x80\xa6";

/* Replaces what would break the line or the terminal; every replacement is one byte for one byte. */
static void clean_line(char *text, size_t len)
{
    uint8_t *at = (uint8_t *)text;
    const uint8_t *end = at + len;
    while (at < end) {
        uint32_t code_point;
        size_t step = coffer__utf8_decode(&code_point, at, end);
        if (step == 0 || code_point < 0x20 || code_point == 0x7F) {
            *at++ = '?';
        } else if (code_point >= 0x80 && code_point < 0xA0) {
            *at++ = '?';
            *at++ = '?';
        } else {
            at += step;
        }
    }
}

/* The last place at or before len where a character begins. */
static size_t character_boundary(const char *text, size_t len)
{
    size_t at = len;
    while (at > 0 && len - at < 3 && ((uint8_t)text[at] & 0xC0) == 0x80)
        at--;
    return at;
}

void coffer__format_line(char *out, size_t size, const char *format, va_list arguments)
{
    int wanted = vsnprintf(out, size, format, arguments);
    if (wanted < 0) /* longer than an int can say, or a character that the locale does not have */
        wanted = snprintf(out, size, "%s", format);
    size_t len = (size_t)wanted;
    if (len >= size) {
        len = character_boundary(out, size - sizeof ellipsis);
        clean_line(out, len);
        memcpy(out + len, ellipsis, sizeof ellipsis);
    } else {
        clean_line(out, len);
    }
}

coffer_status coffer__fail(coffer_error *err, coffer_status status, uint64_t offset, const char *format, ...)
{
    if (!err)
        return status;
    /* The arguments may point into err->text. */
    char text[sizeof err->text];
    va_list arguments;
    va_start(arguments, format);
    coffer__format_line(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(err->text, text, sizeof text);
    err->status = status;
    err->system_error = 0;
    err->offset = offset;
    err->subject = COFFER_SUBJECT_INPUT;
    return status;
}

coffer_status coffer__fail_no_memory(coffer_error *err, uint64_t bytes)
{
    return coffer__fail(err, COFFER_E_NO_MEMORY, COFFER_OFFSET_NONE, "out of memory for %" PRIu64 " bytes",
                        bytes);
}

coffer_status coffer__fail_errno(coffer_error *err, const char *what, int error_number)
{
    char reason[128];
    coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE, "%s: %s", what,
                 strerror_r(error_number, reason, sizeof reason));
    if (err)
        err->system_error = error_number;
    return COFFER_E_IO;
}

coffer_status coffer__fail_copy(coffer_error *err, const coffer_error *kept)
{
    if (err)
        *err = *kept;
    return kept->status;
}

coffer_status coffer__fail_prefix(coffer_error *err, coffer_status status, const char *format, ...)
{
    if (!err || !status)
        return status;
    char words[sizeof err->text];
    va_list arguments;
    va_start(arguments, format);
    coffer__format_line(words, sizeof words, format, arguments);
    va_end(arguments);
    coffer_error inner = *err;
    coffer__fail(err, status, inner.offset, "%s: %s", words, inner.text);
    err->system_error = inner.system_error;
    err->subject = inner.subject;
    return status;
}

coffer_status coffer__fail_output(coffer_error *err, coffer_status status)
{
    if (err && status && err->subject == COFFER_SUBJECT_INPUT)
        err->subject = COFFER_SUBJECT_OUTPUT;
    return status;
}

/* Keeps the beginning and the end of a long name. */
static void shorten_name(char *out, size_t size, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash && slash[1] ? slash + 1 : path;
    size_t len = strlen(name), half = (size - sizeof ellipsis) / 2 - 3;
    if (len < size) {
        memcpy(out, name, len + 1);
        return;
    }
    size_t begin = character_boundary(name, half), end = character_boundary(name, len - half);
    memcpy(out, name, begin);
    memcpy(out + begin, ellipsis, sizeof ellipsis - 1);
    memcpy(out + begin + sizeof ellipsis - 1, name + end, len - end + 1);
}

coffer_status coffer__fail_other(coffer_error *err, coffer_status status, const char *name)
{
    char shown[80];
    if (!err || !status || !name)
        return status;
    shorten_name(shown, sizeof shown, name);
    coffer__fail_prefix(err, status, "%s", shown);
    err->subject = COFFER_SUBJECT_OTHER;
    return status;
}

coffer_status coffer__fail_input(coffer_error *err, coffer_status status, const char *name)
{
    bool elsewhere = status == COFFER_E_NO_MEMORY || status == COFFER_E_CANCELLED ||
                     status == COFFER_E_INVALID_ARGUMENT || (err && err->subject != COFFER_SUBJECT_INPUT);
    return elsewhere ? status : coffer__fail_other(err, status, name);
}

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
