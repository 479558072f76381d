#include "base/crc32.h"

#ifdef COFFER__PORTABLE

/* The remainders of four bits. */
static const uint32_t table[16] = { 0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                    0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                    0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c };
static const uint32_t table_c[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                      0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                      0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75 };

static uint32_t by_table(const uint32_t *remainders, uint32_t crc, const uint8_t *bytes, size_t len)
{
    crc = ~crc;
    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ remainders[crc & 15];
        crc = crc >> 4 ^ remainders[crc & 15];
    }
    return ~crc;
}

uint32_t coffer__crc32(uint32_t crc, const void *bytes, size_t len)
{
    return by_table(table, crc, bytes, len);
}

uint32_t coffer__crc32c(const void *bytes, size_t len)
{
    return by_table(table_c, 0, bytes, len);
}

const char *coffer__crc32_library(void)
{
    return "crc32 by table";
}

#else

#include <isa-l.h>

#define STRING_OF_TOKEN(token) #token
#define STRING_OF(macro) STRING_OF_TOKEN(macro)

uint32_t coffer__crc32(uint32_t crc, const void *bytes, size_t len)
{
    return crc32_gzip_refl(crc, bytes, len);
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

#endif

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
    uint32_t shift = ONE; /* x to the power of the bits after the first piece */
    for (uint32_t square = X_TO_THE_8; second_len > 0; second_len >>= 1) {
        if (second_len & 1)
            shift = multiply(square, shift);
        square = multiply(square, square);
    }
    return multiply(shift, first) ^ second;
}
