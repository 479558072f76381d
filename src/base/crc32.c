#include "base/crc32.h"

#include <isa-l.h>

#define STRING_OF_TOKEN(token) #token
#define STRING_OF(macro) STRING_OF_TOKEN(macro)

uint32_t coffer__crc32(uint32_t crc, const void *bytes, size_t len)
{
    return crc32_gzip_refl(crc, bytes, len);
}

/* A CRC is a polynomial over GF(2) modulo this one; the highest bit is the coefficient of x^0. */
#define POLYNOMIAL 0xedb88320u
#define ONE 0x80000000u
#define X_TO_THE_8 0x00800000u

static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; a != 0; a <<= 1) {
        if (a & ONE)
            product ^= b;
        b = b & 1 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

uint32_t coffer__crc32_combine(uint32_t first, uint32_t second, uint64_t second_len)
{
    uint32_t shift = ONE; /* x to the power of the number of bits after the first piece */
    for (uint32_t square = X_TO_THE_8; second_len > 0; second_len >>= 1) {
        if (second_len & 1)
            shift = multiply(square, shift);
        square = multiply(square, square);
    }
    return multiply(shift, first) ^ second;
}

uint32_t coffer__crc32c(const void *bytes, size_t len)
{
    const size_t step = (size_t)1 << 30;                   /* the library counts in int */
    unsigned char *at = (unsigned char *)(uintptr_t)bytes; /* which it does not change */
    uint32_t crc = UINT32_MAX;
    for (; len > step; len -= step, at += step)
        crc = crc32_iscsi(at, (int)step, crc);
    return ~crc32_iscsi(at, (int)len, crc);
}

const char *coffer__crc32_library(void)
{
    return "isa-l " STRING_OF(ISAL_MAJOR_VERSION) "." STRING_OF(ISAL_MINOR_VERSION);
}
