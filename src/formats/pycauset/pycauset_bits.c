/* Bits and bytes where the processor has nothing special for them. */
#include "base/bytes.h"
#include "formats/pycauset/pycauset_payload.h"

/* Eight bits, each in a byte of its own: the multiplication puts a copy into every byte, the mask keeps
 * another bit of each, and adding 0x7F carries it to the top. */
static uint64_t expand_byte(uint8_t bits)
{
    uint64_t spread = bits * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    return (spread + UINT64_C(0x00406070787C7E7F)) >> 7 & UINT64_C(0x0101010101010101);
}

static uint8_t pack_bytes(uint64_t bytes)
{
    const uint64_t low = UINT64_C(0x7F7F7F7F7F7F7F7F);
    uint64_t flags = (((bytes & low) + low) | bytes) >> 7 & UINT64_C(0x0101010101010101);
    return (uint8_t)(flags * UINT64_C(0x0102040810204080) >> 56);
}

static void expand(uint8_t *out, const uint8_t *bits, size_t words)
{
    for (size_t i = 0; i < 8 * words; i++)
        coffer__store_u64(out + 8 * i, expand_byte(bits[i]));
}

static void pack(uint8_t *bits, const uint8_t *bytes, size_t words)
{
    for (size_t i = 0; i < 8 * words; i++)
        bits[i] = pack_bytes(coffer__load_u64(bytes + 8 * i));
}

const coffer__pycauset_bit_kernels coffer__pycauset_bits_generic = { expand, pack };
