#if defined(__x86_64__)
#include "base/bytes.h"
#include "formats/pycauset/pycauset_payload.h"

#include <immintrin.h>

static void expand(uint8_t *out, const uint8_t *bits, size_t words)
{
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2,
                                            2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i select = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));
    const __m256i one = _mm256_set1_epi8(1);
    for (size_t i = 0; i < 2 * words; i++) {
        __m256i copies = _mm256_shuffle_epi8(_mm256_set1_epi32((int)coffer__load_u32(bits + 4 * i)), spread);
        __m256i clear = _mm256_cmpeq_epi8(_mm256_and_si256(copies, select), _mm256_setzero_si256());
        _mm256_storeu_si256((__m256i *)(void *)(out + 32 * i), _mm256_andnot_si256(clear, one));
    }
}

static void pack(uint8_t *bits, const uint8_t *bytes, size_t words)
{
    for (size_t i = 0; i < 2 * words; i++) {
        __m256i flags = _mm256_loadu_si256((const __m256i *)(const void *)(bytes + 32 * i));
        __m256i clear = _mm256_cmpeq_epi8(flags, _mm256_setzero_si256());
        coffer__store_u32(bits + 4 * i, ~(uint32_t)_mm256_movemask_epi8(clear));
    }
}

const coffer__pycauset_bit_kernels coffer__pycauset_bits_avx2 = { expand, pack };
#endif
