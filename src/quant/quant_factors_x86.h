/* The scales of blocks, eight at a time. */
#ifndef COFFER_QUANT_FACTORS_X86_H
#define COFFER_QUANT_FACTORS_X86_H

#include "base/bytes.h"
#include "quant/quant.h"

#include <immintrin.h>

/* Scales of eight blocks from a multiple of eight on; all of them are there. */
static inline void eight_factors(float out[8], const coffer__quant_run *run, size_t block, bool supers)
{
    const uint8_t *scales = run->parts[COFFER__QUANT_SCALES];
    __m256 factors;
    if (supers) {
        __m128i subs =
            _mm_loadl_epi64((const __m128i *)(const void *)(run->parts[COFFER__QUANT_SUBS] + block));
        __m256 parts = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(subs));
        float super = _cvtsh_ss(coffer__load_u16(scales + block / 8 * 2));
        factors = _mm256_mul_ps(_mm256_set1_ps(super), _mm256_mul_ps(parts, _mm256_set1_ps(0.03125f)));
    } else {
        factors = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(scales + 2 * block)));
    }
    _mm256_storeu_ps(out, factors);
}

/* Called after non-temporal stores. */
static inline void finish_stream(void)
{
    _mm_sfence();
}

#endif
