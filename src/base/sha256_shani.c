/* SHA-256 by the instructions of x86 processors. Two messages side by side are not faster than one after the
 * other (Zen 4). */
#include "base/cpu.h"
#include "base/sha256.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define GROUPS 16 /* of four rounds */

static const uint32_t constants[GROUPS * 4] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* The state as the instructions want it: words A B E F and C D G H. */
typedef struct halves {
    __m128i abef, cdgh;
} halves;

static __m128i load(const void *from)
{
    return _mm_loadu_si128(from);
}

static halves load_state(const uint32_t state[8])
{
    __m128i abcd = _mm_shuffle_epi32(load(state), 0xb1), efgh = _mm_shuffle_epi32(load(state + 4), 0x1b);
    return (halves){ _mm_alignr_epi8(abcd, efgh, 8), _mm_blend_epi16(efgh, abcd, 0xf0) };
}

static void store_state(uint32_t state[8], halves from)
{
    __m128i feba = _mm_shuffle_epi32(from.abef, 0x1b), dchg = _mm_shuffle_epi32(from.cdgh, 0xb1);
    __m128i low = _mm_blend_epi16(feba, dchg, 0xf0), high = _mm_alignr_epi8(dchg, feba, 8);
    void *to = state;
    _mm_storeu_si128(to, low);
    _mm_storeu_si128((__m128i *)to + 1, high);
}

void coffer__sha256_blocks_shani(uint32_t state[8], const uint8_t *bytes, size_t blocks)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    /* The SHA instructions have only the old encoding, which is slow while the upper halves of registers are
     * in use; CRCs in between leave them so. */
    _mm256_zeroupper();
    halves now = load_state(state);
    for (; blocks > 0; blocks--, bytes += COFFER__SHA256_BLOCK) {
        halves before = now;
        __m128i words[4];
        for (size_t i = 0; i < 4; i++)
            words[i] = _mm_shuffle_epi8(load(bytes + sizeof *words * i), big_endian);
        COFFER__UNROLL(16)
        for (size_t group = 0; group < GROUPS; group++) {
            __m128i current = words[group % 4], last = words[(group + 3) % 4];
            __m128i input = _mm_add_epi32(current, load(constants + 4 * group));
            now.cdgh = _mm_sha256rnds2_epu32(now.cdgh, now.abef, input);
            now.abef = _mm_sha256rnds2_epu32(now.abef, now.cdgh, _mm_shuffle_epi32(input, 0x0e));
            /* The words of the group four later. */
            __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(current, words[(group + 1) % 4]),
                                        _mm_alignr_epi8(last, words[(group + 2) % 4], 4));
            words[group % 4] = _mm_sha256msg2_epu32(sum, last);
        }
        now.abef = _mm_add_epi32(now.abef, before.abef);
        now.cdgh = _mm_add_epi32(now.cdgh, before.cdgh);
    }
    store_state(state, now);
}
#endif
