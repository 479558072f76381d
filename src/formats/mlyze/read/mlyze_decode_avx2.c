/* The same loop with the bit-gathering instruction of the processors that have AVX2. */
#if defined(__x86_64__)
#include "formats/mlyze/read/mlyze_decode_loop.h"

#include <immintrin.h>

static inline uint64_t pack(uint64_t word, uint64_t bytes)
{
    return _pext_u64(word, bytes & ~TOP_BITS);
}

void coffer__mlyze_decode_avx2(coffer__mlyze_decoder *decoder)
{
    decode_loop(decoder);
}
#endif
