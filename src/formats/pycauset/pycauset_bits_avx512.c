#if defined(__x86_64__)
#include "base/bytes.h"
#include "formats/pycauset/pycauset_payload.h"

#include <immintrin.h>

static void expand(uint8_t *out, const uint8_t *bits, size_t words)
{
    for (size_t i = 0; i < words; i++)
        _mm512_storeu_si512(out + 64 * i, _mm512_maskz_set1_epi8(coffer__load_u64(bits + 8 * i), 1));
}

static void pack(uint8_t *bits, const uint8_t *bytes, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        __m512i flags = _mm512_loadu_si512(bytes + 64 * i);
        coffer__store_u64(bits + 8 * i, _mm512_test_epi8_mask(flags, flags));
    }
}

const coffer__pycauset_bit_kernels coffer__pycauset_bits_avx512 = { expand, pack };
#endif
