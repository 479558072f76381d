// Powers of ten with 128 bits, for numbers as text and back.
#ifndef COFFER_BASE_REAL_POWERS_H
#define COFFER_BASE_REAL_POWERS_H

#include <cstdint>

namespace coffer_real
{

struct wide {
    uint64_t high, low;
};

constexpr int least_power = -342, greatest_power = 324;
constexpr int greatest_exact_power = 55; // five to this power has 128 bits

// The first 128 bits of ten to the power of least_power + i, rounded down, the highest bit set.
struct power_table {
    wide entries[greatest_power - least_power + 1];
};
extern const power_table powers;

// The place of the highest bit of ten to the power of e.
inline int floor_log2_of_power(int e)
{
    return (e * 1741647) >> 19;
}

inline wide multiply(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ using u128 = unsigned __int128;
    u128 product = static_cast<u128>(a) * b;
    return { static_cast<uint64_t>(product >> 64), static_cast<uint64_t>(product) };
#else
    uint64_t a0 = a & UINT32_MAX, a1 = a >> 32, b0 = b & UINT32_MAX, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & UINT32_MAX);
    return { a1 * b1 + (middle >> 32) + (other >> 32), a * b };
#endif
}

} // namespace coffer_real

#endif
