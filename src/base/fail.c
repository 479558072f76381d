#include "base/fail.h"

#include "base/text.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Here they are defined, not used as clang-tidy is to see them. */
#undef coffer__fail
#undef coffer__fail_no_memory
#undef coffer__fail_errno

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
    /* The arguments may point into err->text: a caller puts words before what failed below it. */
    char text[sizeof err->text];
    va_list arguments;
    va_start(arguments, format);
    coffer__format_line(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(err->text, text, sizeof text);
    err->status = status;
    err->offset = offset;
    return status;
}

coffer_status coffer__fail_no_memory(coffer_error *err, uint64_t bytes)
{
    return coffer__fail(err, COFFER_E_NO_MEMORY, COFFER_OFFSET_NONE, "out of memory for %" PRIu64 " bytes",
                        bytes);
}

coffer_status coffer__fail_errno(coffer_error *err, const char *what, const char *name, int error_number)
{
    char reason[128];
    return coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE, "%s: %s: %s", name, what,
                        strerror_r(error_number, reason, sizeof reason));
}
