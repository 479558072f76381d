// Exact numbers out of text: most by one product with a power of ten (D. Lemire, "Number parsing at a
// gigabyte per second"), the others by the C++ library.
#include "base/real.h"

#include "base/real_powers.h"

#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <locale.h>
#include <system_error>

namespace
{

using coffer_real::wide;

// Longer than any number that a program writes, short enough for the stack.
constexpr size_t longest_number = 400;

// Digits that always fit 64 bits.
constexpr ptrdiff_t fitting_digits = 19;

// Five to the power of 27 is the largest below two to the power of 64.
constexpr int least_short_power = -27;

// significand times ten to the power of exponent.
struct decimal {
    uint64_t significand;
    int exponent;
    bool negative;
};

inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

inline const char *scan_digits(uint64_t *value, const char *at, const char *end)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (end - at >= 8) {
        uint64_t eight;
        std::memcpy(&eight, at, sizeof eight);
        uint64_t digits = eight - UINT64_C(0x3030303030303030);
        if (((eight + UINT64_C(0x4646464646464646)) | digits) & UINT64_C(0x8080808080808080))
            break;
        // Pairs, then fours, then all eight.
        digits = digits * 10 + (digits >> 8);
        const uint64_t mask = UINT64_C(0x000000ff000000ff);
        digits = ((digits & mask) * (100 + (UINT64_C(1000000) << 32)) +
                  (digits >> 16 & mask) * (1 + (UINT64_C(10000) << 32))) >>
                 32;
        *value = *value * 100000000 + digits;
        at += 8;
    }
#endif
    for (; at < end && is_digit(*at); at++)
        *value = *value * 10 + static_cast<uint64_t>(*at - '0');
    return at;
}

// Reads e+12 and its like at the end of a number; nothing is an exponent of 0.
bool scan_exponent(int *out, const char *at, const char *end)
{
    *out = 0;
    if (at == end)
        return true;
    if (*at != 'e' && *at != 'E')
        return false;
    at++;
    at += end - at > 1 && at[0] == '+' && is_digit(at[1]);
    std::from_chars_result result = std::from_chars(at, end, *out);
    return result.ec == std::errc() && result.ptr == end && *out < 1000 && *out > -1000;
}

// False for what is not a plain decimal number, and for one with more digits than fit.
bool scan(decimal *out, const char *text, const char *end)
{
    uint64_t value = 0;
    out->negative = text < end && *text == '-';
    text += out->negative;
    const char *at = scan_digits(&value, text, end);
    ptrdiff_t count = at - text, fraction = 0;
    if (at < end && *at == '.') {
        const char *after = scan_digits(&value, at + 1, end);
        fraction = after - at - 1;
        count += fraction;
        at = after;
    }
    if (count == 0 || count > static_cast<ptrdiff_t>(longest_number) ||
        !scan_exponent(&out->exponent, at, end))
        return false;
    for (; count > fitting_digits && (*text == '0' || *text == '.'); text++)
        count -= *text == '0';
    out->significand = value;
    out->exponent -= static_cast<int>(fraction);
    return count <= fitting_digits;
}

// The significand with its highest bit set times the power: the first 128 bits, or all that matter.
inline wide scaled_significand(uint64_t significand, int exponent)
{
    wide power = coffer_real::powers.entries[exponent - coffer_real::least_power];
    wide product = coffer_real::multiply(significand, power.high);
    if ((product.high & 0x1ff) == 0x1ff) {
        // Reciprocals that five to the power of -exponent determines in 64 bits are rounded up.
        power.low += exponent < 0 && exponent >= least_short_power;
        uint64_t more = coffer_real::multiply(significand, power.low).high;
        product.low += more;
        product.high += product.low < more;
    }
    return product;
}

// False when the number is not normal, or too near the middle of two doubles.
bool convert(double *out, const decimal &number)
{
    constexpr int mantissa_bits = 52, bias = 1023, greatest_power = 308, greatest_exponent = 2047;
    constexpr uint64_t implicit = UINT64_C(1) << mantissa_bits;
    int exponent = number.exponent;
    uint64_t bits = 0;
    if (number.significand) {
        if (exponent < coffer_real::least_power || exponent > greatest_power)
            return false;
        int zeros = __builtin_clzll(number.significand);
        wide product = scaled_significand(number.significand << zeros, exponent);
        bool is_short = exponent >= least_short_power && exponent <= coffer_real::greatest_exact_power;
        if (product.low == UINT64_MAX && !is_short)
            return false;
        int upper = static_cast<int>(product.high >> 63), shift = upper + 64 - mantissa_bits - 3;
        uint64_t mantissa = product.high >> shift;
        int binary = coffer_real::floor_log2_of_power(exponent) + 63 + upper - zeros + bias;
        // Exactly in the middle, which only these powers can be: to the even neighbor, which is below.
        if (product.low <= 1 && exponent >= -4 && exponent <= 23 && (mantissa & 3) == 1 &&
            mantissa << shift == product.high)
            mantissa--;
        mantissa = (mantissa + (mantissa & 1)) >> 1;
        if (mantissa == 2 * implicit) {
            mantissa = implicit;
            binary++;
        }
        if (binary <= 0 || binary >= greatest_exponent)
            return false;
        bits = (mantissa & (implicit - 1)) | static_cast<uint64_t>(binary) << mantissa_bits;
    }
    bits |= static_cast<uint64_t>(number.negative) << 63;
    std::memcpy(out, &bits, sizeof bits);
    return true;
}

// Too large or too small for the C++ library, which then gives no value: infinity, zero or the like.
bool parse_extreme(double *out, const char *text, size_t len)
{
    char copy[longest_number + 1], *end;
    if (len > longest_number)
        return false;
    std::memcpy(copy, text, len);
    copy[len] = '\0';
    // The C library hands out its own "C" locale here: nothing is allocated, whatever the program has set.
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(nullptr));
    *out = strtod_l(copy, &end, c_locale);
    freelocale(c_locale);
    return end == copy + len;
}

} // namespace

bool coffer__parse_f64(double *out, const char *text, size_t len)
{
    const char *end = text + len;
    decimal number;
    if (len > 1 && text[0] == '+' && text[1] != '-')
        text++;
    if (scan(&number, text, end) && convert(out, number))
        return true;
    std::from_chars_result result = std::from_chars(text, end, *out);
    if (result.ptr != end)
        return false;
#ifdef __i386__
    // The C++ library multiplies in x87 registers here, and rounds twice.
    double once;
    if (result.ec == std::errc() && parse_extreme(&once, text, static_cast<size_t>(end - text)))
        *out = once;
#endif
    if (result.ec == std::errc::result_out_of_range)
        return parse_extreme(out, text, static_cast<size_t>(end - text));
    return result.ec == std::errc();
}

extern "C" double coffer__nearest_decimal(double value, double tolerance)
{
    constexpr int most_digits = 17;
    char text[COFFER__REAL_TEXT];
    if (!std::isfinite(value))
        return value;
    for (int digits = 0; digits + 1 < most_digits; digits++) {
        auto written = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, digits);
        double found;
        if (written.ec == std::errc() &&
            coffer__parse_f64(&found, text, static_cast<size_t>(written.ptr - text)) &&
            std::fabs(found - value) <= tolerance)
            return found;
    }
    return value;
}
