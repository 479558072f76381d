/* Text that leaves the library in an error or a finding: one line, valid UTF-8, of a bounded length. */
#ifndef COFFER_BASE_TEXT_H
#define COFFER_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

/* Formats into out. What does not fit is cut at a character boundary and ends in "…"; control characters and
 * bytes that are not UTF-8 become '?'. size : at least 4. */
void coffer__format_line(char *out, size_t size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

#endif
