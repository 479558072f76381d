/* The kernel in 256-bit registers. Two files include it, each compiled for its own instruction set. */
#ifndef COFFER_FORMATS_MSCAN_KERNEL_X86_H
#define COFFER_FORMATS_MSCAN_KERNEL_X86_H

#include "formats/mscan/mscan_kernel.h"
#include "formats/mscan/mscan_layout.h"

#include <immintrin.h>
#include <string.h>

/* The hardware's own prefetching stops at page ends; this far ahead, memory keeps up with the arithmetic. */
#define PREFETCH_BYTES 2048
#define ROWS_AHEAD 32 /* records */

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

/* The sums that one record, or several with one key, add to a row. */
typedef struct addend {
    __m256i lanes;
    __m128i extremes;
} addend;

static inline addend unpack(const uint8_t *record, const constants *c)
{
    int64_t tail; /* 8 bytes from offset 4 on: never past the record's end */
    memcpy(&tail, record + COFFER__MSCAN_PARAM_AT, sizeof tail);
    __m256i values = _mm256_shuffle_epi8(_mm256_set1_epi64x(tail), c->spread);
    __m256i found = _mm256_cmpeq_epi16(values, c->matches);
    __m256i products = _mm256_mul_epu32(values, _mm256_blend_epi32(values, c->ones, 0x0F));
    return (addend){ join(products, found, c->flags),
                     _mm_xor_si128(_mm256_castsi256_si128(values), c->complement) };
}

static inline addend both(addend a, addend b)
{
    return (addend){ _mm256_add_epi64(a.lanes, b.lanes), _mm_max_epu16(a.extremes, b.extremes) };
}

/* Gives the row's lanes after the addition: a top bit is set when the row is full. */
static inline __m256i add_to(coffer__mscan_row *row, addend what)
{
    __m256i *lanes = (__m256i *)(void *)row->lane;
    __m256i sums = _mm256_add_epi64(_mm256_load_si256(lanes), what.lanes);
    _mm256_store_si256(lanes, sums);
    __m128i *extremes = (__m128i *)(void *)row->extreme;
    _mm_store_si128(extremes, _mm_max_epu16(_mm_load_si128(extremes), what.extremes));
    return sums;
}

static inline coffer__mscan_row *row_of(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *key)
{
    return &rows[(size_t)coffer__load_u16(key) << rows_shift];
}

/* A table of one row a key is used for many keys, and larger than the nearer caches. */
static inline void prefetch_rows(coffer__mscan_row *rows, const uint8_t *keys, size_t key_stride)
{
    for (size_t i = 0; i < 4; i++)
        _mm_prefetch((const char *)row_of(rows, 0, keys + i * key_stride), _MM_HINT_T0);
}

static inline size_t take_all(coffer__mscan_row *rows, unsigned rows_shift, const uint8_t *records,
                              size_t count, const uint8_t *keys, size_t key_stride)
{
    enum { STEP = COFFER__MSCAN_RECORD_SIZE };
    const constants c = load_constants();
    const uint8_t *at = records;
    size_t taken = 0;
    for (; taken + 4 <= count; taken += 4, at += 4 * STEP, keys += 4 * key_stride) {
        _mm_prefetch((const char *)at + PREFETCH_BYTES, _MM_HINT_T0);
        if (rows_shift == 0 && taken + ROWS_AHEAD + 4 <= count)
            prefetch_rows(rows, keys + ROWS_AHEAD * key_stride, key_stride);
        addend a0 = unpack(at, &c), a1 = unpack(at + STEP, &c);
        addend a2 = unpack(at + 2 * STEP, &c), a3 = unpack(at + 3 * STEP, &c);
        coffer__mscan_row *r0 = row_of(rows, rows_shift, keys);
        coffer__mscan_row *r1 = row_of(rows, rows_shift, keys + key_stride);
        coffer__mscan_row *r2 = row_of(rows, rows_shift, keys + 2 * key_stride);
        coffer__mscan_row *r3 = row_of(rows, rows_shift, keys + 3 * key_stride);
        __m256i full;
        if (r0 == r1 && r2 == r3 && r0 == r2) { /* a run of one key goes to its row at once */
            full = add_to(r0, both(both(a0, a1), both(a2, a3)));
        } else {
            full = _mm256_or_si256(add_to(r0, a0), add_to(r1 + rows_shift, a1));
            full = _mm256_or_si256(full, add_to(r2, a2));
            full = _mm256_or_si256(full, add_to(r3 + rows_shift, a3));
        }
        if (_mm256_movemask_pd(_mm256_castsi256_pd(full)))
            return taken + 4;
    }
    for (; taken < count; taken++, at += STEP, keys += key_stride)
        add_to(row_of(rows, rows_shift, keys), unpack(at, &c));
    return taken;
}

#endif
