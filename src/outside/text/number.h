/* A number as it comes from a file of any kind, before it is known what it must fit into. */
#ifndef COFFER_CONVERT_NUMBER_H
#define COFFER_CONVERT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum coffer__number_kind {
    COFFER__NUMBER_U64, /* integers from 0 on */
    COFFER__NUMBER_I64, /* negative integers */
    COFFER__NUMBER_F64
} coffer__number_kind;

typedef struct coffer__number {
    coffer__number_kind kind;
    union {
        uint64_t u64;
        int64_t i64;
        double f64;
    } as;
} coffer__number;

static inline coffer__number coffer__number_u64(uint64_t value)
{
    return (coffer__number){ COFFER__NUMBER_U64, { .u64 = value } };
}

static inline coffer__number coffer__number_i64(int64_t value)
{
    if (value >= 0)
        return coffer__number_u64((uint64_t)value);
    return (coffer__number){ COFFER__NUMBER_I64, { .i64 = value } };
}

static inline coffer__number coffer__number_f64(double value)
{
    return (coffer__number){ COFFER__NUMBER_F64, { .f64 = value } };
}

/* Reads decimal text: an integer, or anything that strtod takes in the C locale, but for hexadecimal. The
 * whole text must be the number. */
bool coffer__number_parse(coffer__number *out, const char *text, size_t len);
/* False when it is negative, larger than max, or has a fraction. */
bool coffer__number_as_u64(uint64_t *out, const coffer__number *number, uint64_t max);
/* The same for whole numbers of either sign. */
bool coffer__number_as_i64(int64_t *out, const coffer__number *number);
double coffer__number_as_f64(const coffer__number *number);
/* For messages. */
#define COFFER__NUMBER_TEXT 40
const char *coffer__number_text(char out[COFFER__NUMBER_TEXT], const coffer__number *number);

/* Whole numbers as decimal text, fast. */
#define COFFER__DECIMAL_U32 10 /* digits of the longest */
#define COFFER__DECIMAL_U64 20

/* Writes the digits without a NUL and returns their end. */
static inline char *coffer__put_u32(char *to, uint32_t value)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
        "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";
    char digits[COFFER__DECIMAL_U32];
    char *at = digits + sizeof digits;
    while (value >= 100) {
        at -= 2;
        memcpy(at, pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10) {
        at -= 2;
        memcpy(at, pairs + 2 * value, 2);
    } else {
        *--at = (char)('0' + value);
    }
    size_t len = (size_t)(digits + sizeof digits - at);
    memcpy(to, at, len);
    return to + len;
}

static inline char *coffer__put_u64(char *to, uint64_t value)
{
    const uint32_t billion = 1000000000;
    if (value <= UINT32_MAX)
        return coffer__put_u32(to, (uint32_t)value);
    to = coffer__put_u64(to, value / billion);
    /* Nine digits with leading zeros: written after a 1, which is then overwritten. */
    char digits[COFFER__DECIMAL_U32];
    coffer__put_u32(digits, billion + (uint32_t)(value % billion));
    memcpy(to, digits + 1, 9);
    return to + 9;
}

static inline char *coffer__put_i64(char *to, int64_t value)
{
    if (value >= 0)
        return coffer__put_u64(to, (uint64_t)value);
    *to++ = '-';
    return coffer__put_u64(to, 0 - (uint64_t)value);
}

#endif
