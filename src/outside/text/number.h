/* A number as it comes from a file of any kind, before it is known what it must fit into. */
#ifndef COFFER_CONVERT_NUMBER_H
#define COFFER_CONVERT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
