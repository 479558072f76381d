/* The kernel in 256-bit registers. Two files include it, each compiled for its own instruction set. */
#ifndef COFFER_FORMATS_MSCAN_KERNEL_X86_H
#define COFFER_FORMATS_MSCAN_KERNEL_X86_H

#include "formats/mscan/mscan_kernel.h"
#include "formats/mscan/mscan_layout.h"

#include <immintrin.h>
#include <string.h>

/* The hardware's own prefetching stops at page ends; this far ahead, memory keeps up with the arithmetic. */
#define PREFETCH_BYTES 2048

typedef struct constants {
    __m256i spread;  /* bytes of the record's last 8 into the lanes of a row, the columns doubled for flags */
    __m256i matches; /* what the flag fields of a row count */
    __m256i flags;   /* one in each field that counts */
    __m256i ones;
    __m128i complement;
} constants;

static inline constants load_constants(void)
{
    enum { A = 4, G = 6, Z = -1 }; /* activation and grad_norm in the last 8 bytes of a record; zero */
    constants c;
    c.spread = _mm256_setr_epi8(A, A + 1, Z, Z, A, A + 1, A, A + 1, G, G + 1, Z, Z, G, G + 1, G, G + 1, A,
                                A + 1, Z, Z, Z, Z, Z, Z, G, G + 1, Z, Z, Z, Z, Z, Z);
    c.matches = _mm256_setr_epi16(0, 0, 0, -1, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0);
    c.flags = _mm256_setr_epi16(0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0);
    c.ones = _mm256_set1_epi64x(1);
    c.complement = _mm_setr_epi16(0, 0, 0, -1, 0, 0, 0, -1);
    return c;
}

/* products | (found & flags) */
static inline __m256i join(__m256i products, __m256i found, __m256i flags)
{
#if defined(__AVX512VL__)
    return _mm256_ternarylogic_epi64(products, found, flags, 0xF8);
#else
    return _mm256_or_si256(products, _mm256_and_si256(found, flags));
#endif
}

/* Gives the row's lanes after the addition: a top bit is set when the row is full. */
static inline __m256i take(coffer__mscan_row *row, const uint8_t *record, const constants *c)
{
    int64_t tail; /* 8 bytes from offset 4 on: never past the record's end */
    memcpy(&tail, record + COFFER__MSCAN_PARAM_AT, sizeof tail);
    __m256i values = _mm256_shuffle_epi8(_mm256_set1_epi64x(tail), c->spread);
    __m256i found = _mm256_cmpeq_epi16(values, c->matches);
    __m256i products = _mm256_mul_epu32(values, _mm256_blend_epi32(values, c->ones, 0x0F));

    __m256i *lanes = (__m256i *)(void *)row->lane;
    __m256i sums = _mm256_add_epi64(_mm256_load_si256(lanes), join(products, found, c->flags));
    _mm256_store_si256(lanes, sums);

    __m128i *extremes = (__m128i *)(void *)row->extreme;
    __m128i either = _mm_xor_si128(_mm256_castsi256_si128(values), c->complement);
    _mm_store_si128(extremes, _mm_max_epu16(_mm_load_si128(extremes), either));
    return sums;
}

static inline coffer__mscan_row *row_of(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *key)
{
    return &rows[(size_t)coffer__load_u16(key) << rows_shift];
}

static inline size_t take_all(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *records,
                              size_t count, const uint8_t *keys, size_t key_stride)
{
    enum { STEP = COFFER__MSCAN_RECORD_SIZE };
    const constants c = load_constants();
    coffer__mscan_row *second_rows = rows + rows_shift;
    const uint8_t *at = records;
    size_t taken = 0;
    for (; taken + 4 <= count; taken += 4, at += 4 * STEP, keys += 4 * key_stride) {
        _mm_prefetch((const char *)at + PREFETCH_BYTES, _MM_HINT_T0);
        __m256i s0 = take(row_of(rows, rows_shift, keys), at, &c);
        __m256i s1 = take(row_of(second_rows, rows_shift, keys + key_stride), at + STEP, &c);
        __m256i s2 = take(row_of(rows, rows_shift, keys + 2 * key_stride), at + 2 * STEP, &c);
        __m256i s3 = take(row_of(second_rows, rows_shift, keys + 3 * key_stride), at + 3 * STEP, &c);
        __m256i any = _mm256_or_si256(_mm256_or_si256(s0, s1), _mm256_or_si256(s2, s3));
        if (_mm256_movemask_pd(_mm256_castsi256_pd(any)))
            return taken + 4;
    }
    for (; taken < count; taken++, at += STEP, keys += key_stride)
        take(row_of(rows, rows_shift, keys), at, &c);
    return taken;
}

#endif
