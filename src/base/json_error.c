#include "base/json.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

/* The next state of the scanner. */
typedef enum step {
    STEP_VALUE, /* a value is due */
    STEP_ENDED, /* a value has ended */
    STEP_DONE,  /* the text has ended as it should, or the wanted value is reached */
    STEP_BAD    /* `reason` and `at` say what and where */
} step;

typedef struct scanner {
    const uint8_t *start, *at, *end;
    const uint8_t *key;    /* the last one seen */
    uint64_t values_begun; /* so far */
    uint64_t wanted_value; /* stop where this one begins */
    uint32_t depth, max_depth;
    coffer_status status;
    const char *reason;
    coffer__json_odd_number *odd; /* those found so far, when they are to be kept */
    size_t odd_count, odd_capacity;
    bool keep_odd, python;
    bool in_object[COFFER__JSON_MAX_DEPTH];
} scanner;

static void scanner_init(scanner *s, const char *text, size_t len, uint32_t max_depth)
{
    memset(s, 0, sizeof *s);
    s->start = s->at = (const uint8_t *)text;
    s->end = s->start + len;
    s->max_depth = max_depth;
    s->wanted_value = UINT64_MAX;
}

/* Reports an error at s->at. Bytes that are not UTF-8 are reported as such, whatever was expected there. */
static step bad(scanner *s, const char *reason)
{
    uint32_t code_point;
    s->status = COFFER_E_BAD_JSON;
    s->reason = reason;
    if (s->at < s->end && coffer__utf8_decode(&code_point, s->at, s->end) == 0) {
        s->status = COFFER_E_BAD_TEXT;
        s->reason = "bytes that are not UTF-8";
    }
    return STEP_BAD;
}

/* The next byte, or 0 at the end: 0 is never an expected byte. */
static uint8_t peek(const scanner *s)
{
    return s->at < s->end ? *s->at : 0;
}

static void skip_space(scanner *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        s->at++;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* ---- Strings ---- */

/* Four hexadecimal digits, or -1 with s->at where one was missing. */
static int32_t scan_hex(scanner *s)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++, s->at++) {
        uint8_t c = peek(s);
        int32_t digit;
        if (is_digit(c))
            digit = c - '0';
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            digit = (c | 0x20) - 'a' + 10;
        else
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* \uXXXX after its backslash; a surrogate needs its other half. */
static step scan_unicode_escape(scanner *s)
{
    const uint8_t *backslash = s->at - 1;
    s->at++;
    int32_t value = scan_hex(s);
    if (value < 0)
        return bad(s, "expected four hexadecimal digits after \\u");
    if (value < 0xD800 || value > 0xDFFF)
        return STEP_ENDED;
    int32_t low = -1;
    if (value < 0xDC00 && s->end - s->at >= 6 && s->at[0] == '\\' && s->at[1] == 'u') {
        s->at += 2;
        low = scan_hex(s);
        if (low < 0)
            return bad(s, "expected four hexadecimal digits after \\u");
    }
    if (low < 0xDC00 || low > 0xDFFF) {
        s->at = backslash;
        return bad(s, "half of a surrogate pair");
    }
    return STEP_ENDED;
}

static step scan_escape(scanner *s)
{
    s->at++;
    uint8_t c = peek(s);
    if (c == 'u')
        return scan_unicode_escape(s);
    if (c == 0 || !strchr("\"\\/bfnrt", c))
        return bad(s, s->at < s->end ? "unknown escape in a string" : "unexpected end inside a string");
    s->at++;
    return STEP_ENDED;
}

static step scan_string(scanner *s)
{
    s->at++;
    while (s->at < s->end) {
        uint8_t c = *s->at;
        if (c == '"') {
            s->at++;
            return STEP_ENDED;
        }
        if (c == '\\') {
            if (scan_escape(s) == STEP_BAD)
                return STEP_BAD;
            continue;
        }
        if (c < 0x20)
            return bad(s, "control character in a string");
        uint32_t code_point;
        size_t len = coffer__utf8_decode(&code_point, s->at, s->end);
        if (len == 0)
            return bad(s, NULL);
        s->at += len;
    }
    return bad(s, "unexpected end inside a string");
}

/* ---- Numbers ---- */

static bool integer_fits(const uint8_t *at, const uint8_t *end)
{
    bool negative = *at == '-';
    uint64_t value = 0, most = negative ? UINT64_C(1) << 63 : UINT64_MAX;
    for (at += negative; at < end; at++) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    }
    return value <= most;
}

static int64_t exponent_of(const uint8_t *at, const uint8_t *end)
{
    bool negative = *at == '-';
    int64_t value = 0;
    if (*at == '-' || *at == '+')
        at++;
    for (; at < end && value < INT64_MAX / 100; at++)
        value = value * 10 + (*at - '0');
    return negative ? -value : value;
}

/* True when a well-formed decimal number rounds to a finite double: d.ddd × 10^308 is compared with the
 * number half a step past the largest double, 1.797693134862315807937… × 10^308. */
static bool decimal_fits(const uint8_t *at, const uint8_t *end)
{
    static const char first_too_big[] = "179769313486231580793";
    char digits[sizeof first_too_big];
    size_t kept = 0;
    int64_t exponent = -1;
    bool fraction = false, significant = false;
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        fraction |= *at == '.';
        if (!is_digit(*at))
            continue;
        significant |= *at != '0';
        if (significant && kept < sizeof digits - 1)
            digits[kept++] = (char)*at;
        if (significant && !fraction)
            exponent++;
        else if (!significant && fraction)
            exponent--;
    }
    if (!significant)
        return true;
    if (at < end)
        exponent += exponent_of(at + 1, end);
    digits[kept] = '\0';
    return exponent < 308 || (exponent == 308 && strcmp(digits, first_too_big) < 0);
}

static bool skip_digits(scanner *s)
{
    const uint8_t *first = s->at;
    while (is_digit(peek(s)))
        s->at++;
    return s->at > first;
}

/* Remembers the number that ends at s->at, if those are wanted. */
static step keep_odd(scanner *s, const uint8_t *first)
{
    size_t len = (size_t)(s->at - first);
    if (!s->keep_odd)
        return STEP_ENDED;
    s->status = coffer__array_reserve_one(&s->odd, &s->odd_capacity, s->odd_count, sizeof *s->odd, NULL);
    if (s->status)
        return STEP_BAD;
    s->odd[s->odd_count++] =
        (coffer__json_odd_number){ s->values_begun - 1, (size_t)(first - s->start), len };
    return STEP_ENDED;
}

static step scan_python_number(scanner *s, const char *literal)
{
    const uint8_t *first = s->at;
    for (; *literal; literal++, s->at++) {
        if (peek(s) != (uint8_t)*literal) {
            s->at = first;
            return bad(s, "expected a value");
        }
    }
    return keep_odd(s, first);
}

static step scan_number(scanner *s)
{
    const uint8_t *first = s->at;
    bool integer = true;
    if (peek(s) == '-')
        s->at++;
    const uint8_t *whole = s->at;
    if (!skip_digits(s))
        return bad(s, "expected a digit");
    if (*whole == '0' && s->at > whole + 1) {
        s->at = whole;
        return bad(s, "a number with a leading zero");
    }
    if (peek(s) == '.') {
        integer = false;
        s->at++;
        if (!skip_digits(s))
            return bad(s, "expected a digit after the decimal point");
    }
    if ((peek(s) | 0x20) == 'e') {
        integer = false;
        s->at++;
        if (peek(s) == '+' || peek(s) == '-')
            s->at++;
        if (!skip_digits(s))
            return bad(s, "expected a digit in the exponent");
    }
    if (integer ? integer_fits(first, s->at) : decimal_fits(first, s->at))
        return STEP_ENDED;
    return keep_odd(s, first);
}

/* ---- Values ---- */

static step scan_literal(scanner *s, const char *literal)
{
    for (; *literal; literal++, s->at++) {
        if (peek(s) != (uint8_t)*literal)
            return bad(s, "expected true, false or null");
    }
    return STEP_ENDED;
}

/* A key and its colon. */
static step scan_key(scanner *s, const char *expected)
{
    skip_space(s);
    if (peek(s) != '"')
        return bad(s, s->at < s->end ? expected : "unexpected end inside an object");
    s->key = s->at;
    if (scan_string(s) == STEP_BAD)
        return STEP_BAD;
    skip_space(s);
    if (peek(s) != ':')
        return bad(s, "expected ':' after a key");
    s->at++;
    return STEP_VALUE;
}

static step open_container(scanner *s, bool object)
{
    if (s->depth == s->max_depth) {
        s->status = COFFER_E_LIMIT;
        return STEP_BAD;
    }
    s->in_object[s->depth++] = object;
    s->at++;
    skip_space(s);
    if (peek(s) == (object ? '}' : ']')) {
        s->at++;
        s->depth--;
        return STEP_ENDED;
    }
    return object ? scan_key(s, "expected a key or '}'") : STEP_VALUE;
}

static step scan_value(scanner *s)
{
    skip_space(s);
    if (s->values_begun++ == s->wanted_value)
        return STEP_DONE;
    switch (peek(s)) {
    case '{':
        return open_container(s, true);
    case '[':
        return open_container(s, false);
    case '"':
        return scan_string(s);
    case 't':
        return scan_literal(s, "true");
    case 'f':
        return scan_literal(s, "false");
    case 'n':
        return scan_literal(s, "null");
    case 'N':
        if (s->python)
            return scan_python_number(s, "NaN");
        break;
    case 'I':
        if (s->python)
            return scan_python_number(s, "Infinity");
        break;
    case '-':
        if (s->python && s->end - s->at > 1 && s->at[1] == 'I')
            return scan_python_number(s, "-Infinity");
        return scan_number(s);
    default:
        if (is_digit(peek(s)))
            return scan_number(s);
    }
    return bad(s, s->at < s->end ? "expected a value" : "unexpected end where a value was due");
}

static step after_value(scanner *s)
{
    skip_space(s);
    if (s->depth == 0)
        return s->at == s->end ? STEP_DONE : bad(s, "unexpected text after the value");
    bool object = s->in_object[s->depth - 1];
    uint8_t c = peek(s);
    if (c == ',') {
        s->at++;
        return object ? scan_key(s, "expected a key after ','") : STEP_VALUE;
    }
    if (c == (object ? '}' : ']')) {
        s->at++;
        s->depth--;
        return STEP_ENDED;
    }
    if (s->at == s->end)
        return bad(s, object ? "unexpected end inside an object" : "unexpected end inside an array");
    return bad(s, object ? "expected ',' or '}' after a value" : "expected ',' or ']' after a value");
}

static step scan(scanner *s)
{
    step next = STEP_VALUE;
    while (next == STEP_VALUE || next == STEP_ENDED)
        next = next == STEP_VALUE ? scan_value(s) : after_value(s);
    return next;
}

coffer_status coffer__json_explain(const char *text, size_t len, uint64_t base, uint32_t max_depth,
                                   bool python, coffer_error *err)
{
    static const char mark[] = "\xEF\xBB\xBF";
    scanner s;
    if (len >= 3 && memcmp(text, mark, 3) == 0)
        return coffer__fail(err, COFFER_E_BAD_JSON, base, "JSON begins with a byte order mark");
    scanner_init(&s, text, len, max_depth);
    s.python = python;
    if (scan(&s) == STEP_DONE)
        return COFFER_OK;
    uint64_t at = (uint64_t)(s.at - s.start);
    if (s.status == COFFER_E_LIMIT)
        return coffer__fail(err, COFFER_E_LIMIT, base + at,
                            "JSON is nested deeper than %" PRIu32 " at byte %" PRIu64, max_depth, at);
    return coffer__fail(err, s.status, base + at, "JSON, byte %" PRIu64 " of %zu: %s", at, len, s.reason);
}

coffer_status coffer__json_odd_numbers(coffer__json_odd_number **out, size_t *count, const char *text,
                                       size_t len, uint32_t max_depth, bool python)
{
    scanner s;
    scanner_init(&s, text, len, max_depth);
    s.keep_odd = true;
    s.python = python;
    if (scan(&s) != STEP_DONE) {
        coffer__free(s.odd);
        return s.status == COFFER_E_NO_MEMORY ? COFFER_E_NO_MEMORY : COFFER_E_BAD_JSON;
    }
    *out = s.odd;
    *count = s.odd_count;
    return COFFER_OK;
}

size_t coffer__json_key_position(const char *text, size_t len, uint64_t index)
{
    scanner s;
    scanner_init(&s, text, len, COFFER__JSON_MAX_DEPTH);
    s.wanted_value = index;
    return scan(&s) == STEP_DONE && s.key ? (size_t)(s.key - s.start) : 0;
}
