/* Counts numbers into equal bins, and outliers. Every instruction set gives the same counts. */
#ifndef COFFER_CONVERT_HISTOGRAM_H
#define COFFER_CONVERT_HISTOGRAM_H

#include "coffer/dtype.h"

#define COFFER__HISTOGRAM_BINS 64
/* Elements that a kernel processes at a time. */
#define COFFER__HISTOGRAM_BLOCK 512

typedef struct coffer__histogram {
    uint64_t bins[COFFER__HISTOGRAM_BINS];
    uint64_t outside; /* finite numbers below `low` or above `high` */
} coffer__histogram;

/* Where the bins and the borders are. */
typedef struct coffer__histogram_ruler {
    double half_min, bins_per_half; /* halves: the range of numbers may be larger than a number can be */
    double low, high;
} coffer__histogram_ruler;

coffer__histogram_ruler coffer__histogram_rule(double min, double max, double low, double high);
/* Accepts any plain type, complex numbers by magnitude. Numbers that are not finite are skipped. count :
 * below 2^32. */
void coffer__histogram_add(coffer__histogram *histogram, const coffer__histogram_ruler *ruler,
                           const void *elements, coffer_dtype dtype, size_t count);
void coffer__histogram_merge(coffer__histogram *into, const coffer__histogram *from);

/* ---- Kernels ---- */

/* Bins of a block of floats or doubles, COFFER__HISTOGRAM_BINS for those that are not finite; gives how many
 * are outside. The numbers may be unaligned. */
typedef struct coffer__histogram_kernels {
    uint32_t (*place_f32)(uint8_t *bins, const void *values, const coffer__histogram_ruler *ruler);
    uint32_t (*place_f64)(uint8_t *bins, const void *values, const coffer__histogram_ruler *ruler);
} coffer__histogram_kernels;

extern const coffer__histogram_kernels coffer__histogram_generic;
#if defined(__x86_64__)
extern const coffer__histogram_kernels coffer__histogram_avx2, coffer__histogram_avx512;
#endif

#endif
