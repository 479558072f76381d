// The C++ library has the shortest digits and the exact parser; C has neither.
#include "base/real.h"

#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <locale.h>
#include <system_error>

namespace
{

// Digits beyond which a whole number is written with an exponent, as printf("%.15g") has it.
constexpr int least_precision = 15;
// Longer than any number that a program writes, short enough for the stack.
constexpr size_t longest_number = 400;

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

// 0.DIGITS times ten to the power of exponent + 1.
char *lay_out(char *to, const char *digits, int count, int exponent)
{
    int precision = count > least_precision ? count : least_precision;
    if (exponent < -4 || exponent >= precision) {
        *to++ = digits[0];
        if (count > 1)
            *to++ = '.';
        std::memcpy(to, digits + 1, static_cast<size_t>(count - 1));
        return put_exponent(to + count - 1, exponent);
    }
    if (exponent < 0) {
        to = put_text(to, "0.");
        for (int i = -1; i > exponent; i--)
            *to++ = '0';
        std::memcpy(to, digits, static_cast<size_t>(count));
        return to + count;
    }
    for (int i = 0; i <= exponent || i < count; i++) {
        if (i == exponent + 1)
            *to++ = '.';
        *to++ = i < count ? digits[i] : '0';
    }
    return count > exponent + 1 ? to : put_text(to, ".0");
}

template <typename Real> char *put_real(char *to, Real value)
{
    char text[COFFER__REAL_TEXT], digits[COFFER__REAL_TEXT];
    int count = 0, exponent = 0;
    if (std::isnan(value))
        return put_text(to, "nan");
    if (std::signbit(value))
        *to++ = '-';
    if (std::isinf(value))
        return put_text(to, "inf");
    const char *end =
        std::to_chars(text, text + sizeof text, std::fabs(value), std::chars_format::scientific).ptr;
    const char *at = text;
    for (; *at != 'e'; at++) {
        if (*at != '.')
            digits[count++] = *at;
    }
    at += at[1] == '+' ? 2 : 1;
    std::from_chars(at, end, exponent);
    return lay_out(to, digits, count, exponent);
}

// Too large or too small for the parser above, which then gives no value: infinity, zero or the like.
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

char *coffer__put_f64(char *to, double value)
{
    return put_real(to, value);
}

char *coffer__put_f32(char *to, float value)
{
    return put_real(to, value);
}

bool coffer__parse_f64(double *out, const char *text, size_t len)
{
    const char *end = text + len;
    if (len > 1 && text[0] == '+' && text[1] != '-')
        text++;
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
