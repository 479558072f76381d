#include "outside/text/number.h"

#include "base/real.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static bool parse_digits(uint64_t *out, const char *text, size_t len)
{
    uint64_t value = 0;
    if (len == 0 || len > 20)
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)(text[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *out = value;
    return true;
}

bool coffer__number_parse(coffer__number *out, const char *text, size_t len)
{
    uint64_t magnitude;
    if (parse_digits(&magnitude, text, len)) {
        *out = coffer__number_u64(magnitude);
        return true;
    }
    if (len > 1 && text[0] == '-' && parse_digits(&magnitude, text + 1, len - 1) &&
        magnitude <= UINT64_C(1) << 63) {
        *out = coffer__number_i64((int64_t)(0 - magnitude));
        return true;
    }
    double real;
    if (!coffer__parse_f64(&real, text, len))
        return false;
    *out = coffer__number_f64(real);
    return true;
}

bool coffer__number_as_u64(uint64_t *out, const coffer__number *number, uint64_t max)
{
    uint64_t value;
    switch (number->kind) {
    case COFFER__NUMBER_U64:
        value = number->as.u64;
        break;
    case COFFER__NUMBER_F64:
        /* 2^64 itself is out; NaN fails both comparisons. */
        if (!(number->as.f64 >= 0 && number->as.f64 < 18446744073709551616.0) ||
            number->as.f64 != floor(number->as.f64))
            return false;
        value = (uint64_t)number->as.f64;
        break;
    default:
        return false;
    }
    if (value > max)
        return false;
    *out = value;
    return true;
}

bool coffer__number_as_i64(int64_t *out, const coffer__number *number)
{
    if (number->kind == COFFER__NUMBER_I64) {
        *out = number->as.i64;
        return true;
    }
    if (number->kind != COFFER__NUMBER_U64 || number->as.u64 > INT64_MAX)
        return false;
    *out = (int64_t)number->as.u64;
    return true;
}

double coffer__number_as_f64(const coffer__number *number)
{
    switch (number->kind) {
    case COFFER__NUMBER_U64:
        return (double)number->as.u64;
    case COFFER__NUMBER_I64:
        return (double)number->as.i64;
    default:
        return number->as.f64;
    }
}

const char *coffer__number_text(char out[COFFER__NUMBER_TEXT], const coffer__number *number)
{
    switch (number->kind) {
    case COFFER__NUMBER_U64:
        snprintf(out, COFFER__NUMBER_TEXT, "%" PRIu64, number->as.u64);
        break;
    case COFFER__NUMBER_I64:
        snprintf(out, COFFER__NUMBER_TEXT, "%" PRId64, number->as.i64);
        break;
    default:
        snprintf(out, COFFER__NUMBER_TEXT, "%.9g", number->as.f64);
        break;
    }
    return out;
}
