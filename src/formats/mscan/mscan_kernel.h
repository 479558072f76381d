/* The inner loop of the statistics: adds records to a table of rows, one row for each value of a 16-bit key.
 *
 * A row holds both columns packed, so that one 256-bit addition and one 128-bit maximum take a record in. The
 * fields are narrow; a row that has taken 2^15 records is full, and the kernel stops so that the caller can
 * drain it into 64-bit sums before any field overflows.
 *
 *   lane 0   sum of activation (32 bits), its zeros (16), its saturated values (16)
 *   lane 1   the same of grad_norm
 *   lane 2   sum of squares of activation (48 bits), records (16)
 *   lane 3   sum of squares of grad_norm
 *   extreme  largest value and largest complement of a value (so 0 is neutral for both), for each column
 *
 * Two records in a row often have the same key, and the second would wait for the first one's store. So the
 * table may hold two rows for each key, side by side, which records take in turn. */
#ifndef COFFER_FORMATS_MSCAN_KERNEL_H
#define COFFER_FORMATS_MSCAN_KERNEL_H

#include "base/cpu.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#define COFFER__MSCAN_KEYS 65536
#define COFFER__MSCAN_ROW_FULL (1u << 15)

enum { /* places in coffer__mscan_row.extreme; the others are scratch */
       COFFER__MSCAN_MAX_ACTIVATION = 2,
       COFFER__MSCAN_MIN_ACTIVATION = 3, /* complement */
       COFFER__MSCAN_MAX_GRAD_NORM = 6,
       COFFER__MSCAN_MIN_GRAD_NORM = 7 /* complement */
};

typedef struct coffer__mscan_row {
    alignas(64) uint64_t lane[4];
    uint16_t extreme[8];
} coffer__mscan_row;

static inline uint32_t coffer__mscan_row_count(const coffer__mscan_row *row)
{
    return (uint32_t)(row->lane[2] >> 48);
}

/* Adds packed records until all are added or a row is full; returns the number added. A full row
 * belongs to one of the last four of them.
 * rows       : 65536 << rows_shift, zeroed before the first call; key k has rows[k << rows_shift] and, when
 *              rows_shift is 1, the one after it.
 * keys       : the first record's 16-bit key; those of the others follow, key_stride bytes apart (0: all
 *              records have the same). */
typedef size_t (*coffer__mscan_kernel)(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *records,
                                       size_t count, const uint8_t *keys, size_t key_stride);

size_t coffer__mscan_kernel_generic(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *records,
                                    size_t count, const uint8_t *keys, size_t key_stride);
#if defined(__x86_64__)
size_t coffer__mscan_kernel_avx2(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *records,
                                 size_t count, const uint8_t *keys, size_t key_stride);
size_t coffer__mscan_kernel_avx512(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *records,
                                   size_t count, const uint8_t *keys, size_t key_stride);
#elif defined(__aarch64__)
size_t coffer__mscan_kernel_neon(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *records,
                                 size_t count, const uint8_t *keys, size_t key_stride);
#endif

static inline coffer__mscan_kernel coffer__mscan_kernel_for(coffer__cpu_level level)
{
#if defined(__x86_64__)
    if (level == COFFER__CPU_AVX512)
        return coffer__mscan_kernel_avx512;
    if (level == COFFER__CPU_AVX2)
        return coffer__mscan_kernel_avx2;
#elif defined(__aarch64__)
    if (level == COFFER__CPU_NEON)
        return coffer__mscan_kernel_neon;
#endif
    (void)level;
    return coffer__mscan_kernel_generic;
}

#endif
