// The fewest digits by Schubfach (R. Giulietti, "The Schubfach way to render doubles"): one candidate with
// the most digits that can be needed and one with a digit less, both from three products with a power of ten.
#include "base/real.h"

#include "base/real_powers.h"

#include <cmath>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace
{

using coffer_real::wide;

// Digits beyond which a whole number is written with an exponent, as printf("%.15g") has it.
constexpr int least_precision = 15;
constexpr int most_digits = 17;

// digits times ten to the power of exponent.
struct decimal {
    uint64_t digits;
    int exponent;
};

// value times power, without the last 128 bits; the last bit also says that some of them are set.
inline uint64_t round_to_odd(wide power, uint64_t value)
{
    wide low = coffer_real::multiply(power.low, value), high = coffer_real::multiply(power.high, value);
    uint64_t middle = high.low + low.high;
    return (high.high + (middle < high.low)) | (middle > 1);
}

inline wide power_rounded_up(int e)
{
    wide power = coffer_real::powers.entries[e - coffer_real::least_power];
    if (e < 0 || e > coffer_real::greatest_exact_power) {
        power.low++;
        power.high += power.low == 0;
    }
    return power;
}

// condition is 0 or 1.
inline uint64_t choose(uint64_t condition, uint64_t yes, uint64_t no)
{
    return no ^ ((yes ^ no) & (0 - condition));
}

// The shortest decimal number between the neighbors of significand times two to the power of exponent;
// of several, the nearest. is_power: the neighbor below is only half as far away as the one above.
__attribute__((always_inline)) inline decimal shortest(uint64_t significand, int exponent, bool is_power)
{
    int k = (exponent * 1262611 - (is_power ? 524031 : 0)) >> 22;
    int shift = exponent + coffer_real::floor_log2_of_power(-k) + 1;
    wide power = power_rounded_up(-k);
    uint64_t value = 4 * significand, odd = significand & 1;
    uint64_t lower = round_to_odd(power, (value - 2 + is_power) << shift) + odd;
    uint64_t scaled = round_to_odd(power, value << shift);
    uint64_t upper = round_to_odd(power, (value + 2) << shift) - odd;
    uint64_t most = scaled / 4, fewer = most / 10, middle = 4 * most + 2;
    // Which candidate it is cannot be predicted, so the choice is made with masks and not with branches.
    uint64_t up_fits = 40 * fewer + 40 <= upper, down_fits = lower <= 40 * fewer;
    uint64_t is_fewer = (down_fits ^ up_fits) & (fewer > 0), shorter = fewer + up_fits;
    up_fits = 4 * most + 4 <= upper;
    down_fits = lower <= 4 * most;
    uint64_t nearer_up = (scaled > middle) | ((scaled == middle) & most);
    uint64_t longer = most + choose(down_fits ^ up_fits, up_fits, nearer_up);
    return { choose(is_fewer, shorter, longer), k + static_cast<int>(is_fewer) };
}

// Eight digits of each number, each in a byte, the first in the lowest: halves, quarters and single digits at
// once.
struct digit_pair {
    uint64_t upper, lower;
};

#ifdef __SSE2__
inline digit_pair split_digits(uint32_t upper, uint32_t lower)
{
    __m128i values = _mm_set_epi32(0, static_cast<int>(lower), 0, static_cast<int>(upper));
    __m128i high = _mm_srli_epi64(_mm_mul_epu32(values, _mm_set1_epi32(static_cast<int>(0xd1b71759))), 45);
    __m128i low = _mm_sub_epi32(values, _mm_mul_epu32(high, _mm_set1_epi32(10000)));
    __m128i fours = _mm_or_si128(high, _mm_slli_epi64(low, 32));
    __m128i hundreds = _mm_srli_epi16(_mm_mulhi_epu16(fours, _mm_set1_epi16(5243)), 3);
    __m128i rest = _mm_sub_epi16(fours, _mm_mullo_epi16(hundreds, _mm_set1_epi16(100)));
    __m128i twos = _mm_or_si128(hundreds, _mm_slli_epi32(rest, 16));
    __m128i tens = _mm_mulhi_epu16(twos, _mm_set1_epi16(6554));
    __m128i ones = _mm_sub_epi16(twos, _mm_mullo_epi16(tens, _mm_set1_epi16(10)));
    __m128i digits = _mm_or_si128(tens, _mm_slli_epi16(ones, 8));
    digit_pair out;
    std::memcpy(&out, &digits, sizeof out);
    return out;
}
#else
inline uint64_t split_eight(uint32_t value)
{
    uint64_t fours = value / 10000 | static_cast<uint64_t>(value % 10000) << 32;
    uint64_t hundreds = (fours * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
    uint64_t tens = (twos * 103 >> 10) & UINT64_C(0x000f000f000f000f);
    return tens | (twos - 10 * tens) << 8;
}

inline digit_pair split_digits(uint32_t upper, uint32_t lower)
{
    return { split_eight(upper), split_eight(lower) };
}
#endif

inline void store_digits(char *to, uint64_t digits)
{
    digits |= UINT64_C(0x3030303030303030);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    digits = __builtin_bswap64(digits);
#endif
    std::memcpy(to, &digits, sizeof digits);
}

// Seventeen digits with a point after the first, times ten to the power of exponent. `count` says how many
// there are up to the last that is not zero.
struct digit_text {
    uint64_t upper, lower;
    int count, exponent;
    char first;

    // Writes the digits after the first; all of them, whatever their count.
    void store_rest(char *to) const
    {
        store_digits(to, upper);
        store_digits(to + 8, lower);
    }
};

constexpr uint64_t small_powers[] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
};

// Whole bytes of zeros at the end of the digits. Counting from the other end would be an instruction that
// waits for its last result.
inline int zeros_at_end(uint64_t digits)
{
    return __builtin_ctzll(__builtin_bswap64(digits)) >> 3;
}

// usual_len : the fewest digits that a number has, but for a few.
inline void split(digit_text *out, decimal number, int usual_len)
{
    const uint64_t eight = 100000000;
    int len = usual_len + (number.digits >= small_powers[usual_len]) +
              (number.digits >= small_powers[usual_len + 1]);
    while (number.digits < small_powers[len - 1] && len > 1)
        len--;
    uint64_t digits = number.digits * small_powers[most_digits - len];
    uint64_t leading = digits / eight, lead = leading / eight;
    auto [upper, lower] = split_digits(static_cast<uint32_t>(leading - lead * eight),
                                       static_cast<uint32_t>(digits - leading * eight));
    out->first = static_cast<char>('0' + lead);
    out->upper = upper;
    out->lower = lower;
    out->exponent = number.exponent + len - 1;
    out->count = most_digits - (lower ? zeros_at_end(lower) : upper ? 8 + zeros_at_end(upper) : 16);
}

char *put_text(char *to, const char *text)
{
    size_t len = std::strlen(text);
    std::memcpy(to, text, len);
    return to + len;
}

char *put_exponent(char *to, int exponent)
{
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    unsigned magnitude = static_cast<unsigned>(exponent < 0 ? -exponent : exponent);
    if (magnitude >= 100)
        *to++ = static_cast<char>('0' + magnitude / 100);
    *to++ = static_cast<char>('0' + magnitude / 10 % 10);
    *to++ = static_cast<char>('0' + magnitude % 10);
    return to;
}

inline char *lay_out(char *to, const digit_text &digits)
{
    int exponent = digits.exponent;
    int precision = digits.count > least_precision ? digits.count : least_precision;
    if (exponent <= 0 && exponent >= -4) {
        // "0.00DIGITS" and "D.IGITS" without a branch between them: the point is the second character of
        // both.
        int is_one = exponent == 0, first = is_one ? 0 : 1 - exponent;
        int rest = first + 1 + is_one, count = digits.count - 1 > is_one ? digits.count - 1 : is_one;
        std::memcpy(to, "0.000000", 8);
        to[first] = digits.first;
        digits.store_rest(to + rest);
        return to + rest + count;
    }
    *to++ = digits.first;
    if (exponent < 0 || exponent >= precision) {
        *to = '.';
        digits.store_rest(to + 1);
        return put_exponent(digits.count > 1 ? to + digits.count : to, exponent);
    }
    char rest[2 * most_digits];
    digits.store_rest(rest);
    std::memset(rest + most_digits - 1, '0', most_digits - 1);
    digits.store_rest(to);
    to += exponent;
    *to++ = '.';
    std::memcpy(to, rest + exponent, most_digits - 1);
    int fraction = digits.count - exponent - 1;
    return to + (fraction > 0 ? fraction : 1);
}

// An IEEE number, by the size of its mantissa.
template <typename Bits, int mantissa_bits, int usual_len> struct format {
    static constexpr int sign_bit = 8 * sizeof(Bits) - 1;
    static constexpr int greatest_exponent = (1 << (sign_bit - mantissa_bits)) - 1;
    static constexpr int bias = greatest_exponent / 2 + mantissa_bits;
    static constexpr Bits implicit = Bits(1) << mantissa_bits;

    static Bits fraction(Bits bits)
    {
        return bits & (implicit - 1);
    }

    static int exponent(Bits bits)
    {
        return static_cast<int>(bits >> mantissa_bits) & greatest_exponent;
    }

    // No digits: not a number that has any.
    static decimal to_decimal(Bits bits)
    {
        int power = exponent(bits);
        Bits rest = fraction(bits);
        if (power == greatest_exponent || (power == 0 && rest == 0))
            return { 0, 0 };
        return shortest(power ? implicit | rest : rest, (power ? power : 1) - bias, rest == 0 && power > 1);
    }

    static char *put_special(char *to, Bits bits)
    {
        if (exponent(bits) != greatest_exponent)
            return put_text(to, bits >> sign_bit ? "-0.0" : "0.0");
        if (fraction(bits))
            return put_text(to, "nan");
        return put_text(to, bits >> sign_bit ? "-inf" : "inf");
    }

    static char *put(char *to, Bits bits, const digit_text &digits)
    {
        if (digits.first == '0')
            return put_special(to, bits);
        *to = '-';
        return lay_out(to + (bits >> sign_bit), digits);
    }

    static char *put_one(char *to, Bits bits)
    {
        digit_text digits;
        split(&digits, to_decimal(bits), usual_len);
        return put(to, bits, digits);
    }

    // A number is a long chain of operations that wait for each other. Doing one step for several numbers
    // before the next step keeps the processor busy.
    static char *put_many(char *to, const Bits *values, size_t count, char separator)
    {
        constexpr size_t group = 32;
        decimal decimals[group];
        digit_text digits[group];
        for (; count > 0; count -= count < group ? count : group, values += group) {
            size_t some = count < group ? count : group;
            for (size_t i = 0; i < some; i++)
                decimals[i] = to_decimal(values[i]);
            for (size_t i = 0; i < some; i++)
                split(&digits[i], decimals[i], usual_len);
            for (size_t i = 0; i < some; i++) {
                to = put(to, values[i], digits[i]);
                *to++ = separator;
            }
        }
        return to;
    }
};

using f64_format = format<uint64_t, 52, 15>;
using f32_format = format<uint32_t, 23, 7>;

} // namespace

char *coffer__put_f64(char *to, double value)
{
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return f64_format::put_one(to, bits);
}

char *coffer__put_f32(char *to, float value)
{
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return f32_format::put_one(to, bits);
}

char *coffer__put_f64_list(char *to, const uint64_t *bits, size_t count, char separator)
{
    return f64_format::put_many(to, bits, count, separator);
}

char *coffer__put_f32_list(char *to, const uint32_t *bits, size_t count, char separator)
{
    return f32_format::put_many(to, bits, count, separator);
}
