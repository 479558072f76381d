// The table of powers of ten is computed exactly while this file is compiled.
#include "base/real_powers.h"

namespace
{

using coffer_real::greatest_power;
using coffer_real::least_power;
using coffer_real::power_table;
using coffer_real::wide;

// Ten to the power of 324 has 1077 bits. The reciprocal of ten to the power of 342 begins 1137 bits after the
// point and needs 128 more.
constexpr int limb_count = 42, limb_bits = 32;

struct big {
    uint32_t limbs[limb_count];
};

constexpr wide first_bits(const big &number)
{
    int top = limb_count - 1, shift = 0;
    uint32_t words[4] = {};
    while (number.limbs[top] == 0)
        top--;
    while (number.limbs[top] << shift >> (limb_bits - 1) == 0)
        shift++;
    for (int i = 0; i < 4; i++) {
        uint32_t upper = top >= i ? number.limbs[top - i] : 0;
        uint32_t lower = top > i ? number.limbs[top - i - 1] : 0;
        words[i] = shift ? upper << shift | lower >> (limb_bits - shift) : upper;
    }
    return { static_cast<uint64_t>(words[0]) << limb_bits | words[1],
             static_cast<uint64_t>(words[2]) << limb_bits | words[3] };
}

constexpr power_table compute()
{
    power_table result = {};
    big power = {}, fraction = {};
    power.limbs[0] = 1;
    for (int e = 0; e <= greatest_power; e++) {
        result.entries[e - least_power] = first_bits(power);
        uint64_t carry = 0;
        for (int i = 0; i < limb_count; i++) {
            carry += static_cast<uint64_t>(power.limbs[i]) * 10;
            power.limbs[i] = static_cast<uint32_t>(carry);
            carry >>= limb_bits;
        }
    }
    // Rounding down after each division gives the same as rounding down once at the end.
    fraction.limbs[limb_count - 1] = UINT32_C(1) << (limb_bits - 1);
    for (int e = -1; e >= least_power; e--) {
        uint64_t rest = 0;
        for (int i = limb_count - 1; i >= 0; i--) {
            rest = rest << limb_bits | fraction.limbs[i];
            fraction.limbs[i] = static_cast<uint32_t>(rest / 10);
            rest %= 10;
        }
        result.entries[e - least_power] = first_bits(fraction);
    }
    return result;
}

} // namespace

constexpr power_table coffer_real::powers = compute();
