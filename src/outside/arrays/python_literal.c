#include "outside/arrays/python_literal.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

coffer_status coffer__literal_fail(coffer__literal *lit, coffer_status status, const char *what)
{
    uint64_t offset = lit->base + (uint64_t)(lit->at - lit->start);
    return coffer__fail(lit->err, status, offset, "NumPy header: %s at byte %" PRIu64 " of the file", what,
                        offset);
}

coffer_status coffer__literal_expected(coffer__literal *lit, const char *what)
{
    uint64_t offset = lit->base + (uint64_t)(lit->at - lit->start);
    return coffer__fail(lit->err, COFFER_E_BAD_VALUE, offset,
                        "NumPy header: expected %s at byte %" PRIu64 " of the file", what, offset);
}

void coffer__literal_skip_space(coffer__literal *lit)
{
    while (lit->at < lit->end &&
           (*lit->at == ' ' || *lit->at == '\t' || *lit->at == '\n' || *lit->at == '\r'))
        lit->at++;
}

bool coffer__literal_take(coffer__literal *lit, char c)
{
    coffer__literal_skip_space(lit);
    if (lit->at == lit->end || *lit->at != c)
        return false;
    lit->at++;
    return true;
}

bool coffer__literal_take_word(coffer__literal *lit, const char *word)
{
    size_t len = strlen(word);
    coffer__literal_skip_space(lit);
    if ((size_t)(lit->end - lit->at) < len || memcmp(lit->at, word, len) != 0)
        return false;
    lit->at += len;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static void put_code_point(char *out, size_t *len, uint32_t code)
{
    if (code < 0x80) {
        out[(*len)++] = (char)code;
        return;
    }
    out[(*len)++] = (char)(0xc0 | code >> 6);
    out[(*len)++] = (char)(0x80 | (code & 0x3f));
}

/* The backslash has been read. */
static bool take_escape(coffer__literal *lit, uint32_t *code)
{
    static const char from[] = "\\'\"nrt";
    static const char to[] = "\\'\"\n\r\t";
    const char *found;
    if (lit->at == lit->end)
        return false;
    char c = *lit->at++;
    if (c == 'x' && lit->end - lit->at >= 2 && hex_digit(lit->at[0]) >= 0 && hex_digit(lit->at[1]) >= 0) {
        *code = (uint32_t)(hex_digit(lit->at[0]) * 16 + hex_digit(lit->at[1]));
        lit->at += 2;
        return *code != 0;
    }
    found = c ? strchr(from, c) : NULL;
    if (!found)
        return false;
    *code = (unsigned char)to[found - from];
    return true;
}

coffer_status coffer__literal_take_string(char out[COFFER__LITERAL_STRING_SIZE], coffer__literal *lit)
{
    size_t len = 0;
    coffer__literal_skip_space(lit);
    if (lit->at < lit->end && *lit->at == 'u')
        lit->at++; /* Python 2 writes u'…' */
    if (lit->at == lit->end || (*lit->at != '\'' && *lit->at != '"'))
        return coffer__literal_expected(lit, "a string");
    char quote = *lit->at++;
    while (lit->at < lit->end && *lit->at != quote) {
        uint32_t code = (unsigned char)*lit->at++;
        if (code == 0)
            return coffer__literal_fail(lit, COFFER_E_BAD_TEXT, "a NUL in a string");
        if (len >= COFFER__LITERAL_MAX_STRING)
            return coffer__literal_fail(lit, COFFER_E_LIMIT, "a string of more than 1024 bytes");
        if (code == '\\') {
            if (!take_escape(lit, &code))
                return coffer__literal_fail(lit, COFFER_E_BAD_TEXT, "an escape that is not understood");
            put_code_point(out, &len, code);
        } else if (lit->utf8) {
            out[len++] = (char)code;
        } else {
            put_code_point(out, &len, code);
        }
    }
    if (lit->at == lit->end)
        return coffer__literal_fail(lit, COFFER_E_TRUNCATED, "a string that does not end");
    lit->at++;
    out[len] = '\0';
    if (!coffer__utf8_valid(out, len))
        return coffer__literal_fail(lit, COFFER_E_BAD_TEXT, "a name that is not UTF-8");
    return COFFER_OK;
}

coffer_status coffer__literal_take_integer(uint64_t *out, coffer__literal *lit)
{
    uint64_t value = 0;
    coffer__literal_skip_space(lit);
    if (lit->at == lit->end || *lit->at < '0' || *lit->at > '9')
        return coffer__literal_expected(lit, "an integer");
    for (; lit->at < lit->end && *lit->at >= '0' && *lit->at <= '9'; lit->at++) {
        if (!coffer__mul_u64(&value, value, 10) ||
            !coffer__add_u64(&value, value, (uint64_t)(*lit->at - '0')))
            return coffer__literal_fail(lit, COFFER_E_BAD_VALUE, "a number of more than 64 bits");
    }
    if (lit->at < lit->end && *lit->at == 'L')
        lit->at++; /* Python 2's long integers */
    *out = value;
    return COFFER_OK;
}
