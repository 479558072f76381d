#include "formats/mlyze/read/mlyze_decode_loop.h"

/* The groups of 7 bits move together in three steps: to 14, to 28, to 56 bits. */
static inline uint64_t pack(uint64_t word, uint64_t bytes)
{
    word &= bytes & ~TOP_BITS;
    word >>= (unsigned)__builtin_ctzll(bytes | TOP_BIT) & ~7u;
    word = (word & UINT64_C(0x007F007F007F007F)) | (word & UINT64_C(0x7F007F007F007F00)) >> 1;
    word = (word & UINT64_C(0x00003FFF00003FFF)) | (word & UINT64_C(0x3FFF00003FFF0000)) >> 2;
    return (word & UINT64_C(0x000000000FFFFFFF)) | (word & UINT64_C(0x0FFFFFFF00000000)) >> 4;
}

void coffer__mlyze_decode_generic(coffer__mlyze_decoder *decoder)
{
    decode_loop(decoder);
}
