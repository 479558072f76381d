/* Rows of numbers of any type: conversion, summary, comparison. Chosen at run time by the instructions the
 * processor has; every path gives the same values. Bytes may be unaligned. */
#ifndef COFFER_BASE_ELEMENTS_H
#define COFFER_BASE_ELEMENTS_H

#include "coffer/dtype.h"
#include "coffer/error.h"

/* One number between the types. Narrowing to F16 and BF16 rounds to nearest, ties to even. */
float coffer__f16_to_f32(uint16_t half);
uint16_t coffer__f16_from_f32(float value);
uint16_t coffer__f16_from_f64(double value); /* rounded once */
float coffer__bf16_to_f32(uint16_t bits);
uint16_t coffer__bf16_from_f32(float value);

/* For plain types: bits and unsigned integers do not have negatives. */
static inline bool coffer__dtype_has_negatives(coffer_dtype dtype)
{
    return dtype != COFFER_DTYPE_BIT && dtype != COFFER_DTYPE_BOOL && dtype != COFFER_DTYPE_U8 &&
           dtype != COFFER_DTYPE_U16 && dtype != COFFER_DTYPE_U32 && dtype != COFFER_DTYPE_U64;
}

/* True when elements of one type can be converted to the other: any plain types, but complex only to complex.
 */
bool coffer__elements_can_convert(coffer_dtype to, coffer_dtype from);
/* Converts count elements; in and out do not overlap. Integers out of the range of the target are clamped,
 * NaN becomes 0 there; a real becomes a complex with imaginary part 0; anything but zero becomes BOOL 1. */
void coffer__elements_convert(void *out, coffer_dtype to, const void *in, coffer_dtype from, size_t count);

/* The plain type that holds the values of both, as well as one can: integers of different signs become a
 * wider one, U64 with a signed one F64. */
coffer_dtype coffer__elements_promote(coffer_dtype a, coffer_dtype b);

/* Summary statistics of a set of numbers. Means and deviations come from sums that keep their precision over
 * billions of elements. A complex element counts by its magnitude. */
typedef struct coffer__summary {
    uint64_t count;
    uint64_t nans, infinities, zeros;
    double min, max;     /* of the finite ones; NaN without finite ones */
    double sum, sum_low; /* of the finite ones, with the rounding that was left out */
    double squares, squares_low;
} coffer__summary;

void coffer__summary_init(coffer__summary *summary);
/* Any plain type. The result does not depend on how a row is cut into calls only when the cuts are at
 * multiples of 4096 elements; merge in a fixed order for results that do not depend on the number of threads.
 */
void coffer__summary_add(coffer__summary *summary, const void *elements, coffer_dtype dtype, size_t count);
/* `count` elements of the same value. */
void coffer__summary_add_repeated(coffer__summary *summary, double value, uint64_t count);
void coffer__summary_merge(coffer__summary *into, const coffer__summary *from);
double coffer__summary_mean(const coffer__summary *summary);
double coffer__summary_deviation(const coffer__summary *summary); /* of the population */
double coffer__summary_norm(const coffer__summary *summary);      /* square root of the sum of squares */

/* How two rows of numbers differ. Two NaNs are equal; a NaN against a number is a difference that max_abs
 * shows as infinity. */
typedef struct coffer__comparison {
    uint64_t count;
    uint64_t differing; /* by more than the tolerance */
    uint64_t first;     /* index of the first that differs; UINT64_MAX when all agree */
    double max_abs;     /* largest difference */
    uint64_t max_at;
    double squares; /* of the differences */
    double a_squares, b_squares, products;
} coffer__comparison;

void coffer__comparison_init(coffer__comparison *comparison);
/* index : of the first element in the whole. Types may differ; both plain. */
void coffer__comparison_add(coffer__comparison *comparison, uint64_t index, const void *a,
                            coffer_dtype a_type, const void *b, coffer_dtype b_type, size_t count,
                            double tolerance);
void coffer__comparison_merge(coffer__comparison *into, const coffer__comparison *from);
double coffer__comparison_rmse(const coffer__comparison *comparison);
double coffer__comparison_snr(const coffer__comparison *comparison); /* dB, a as the signal; inf when equal */
double coffer__comparison_cosine(const coffer__comparison *comparison); /* 1 when both are all zero */

#endif
