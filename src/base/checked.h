/* Overflow-checked arithmetic for numbers from files: each call returns whether the result fits, and writes
 * it only then. */
#ifndef COFFER_BASE_CHECKED_H
#define COFFER_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool coffer__add_u64(uint64_t *out, uint64_t a, uint64_t b)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool coffer__mul_u64(uint64_t *out, uint64_t a, uint64_t b)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool coffer__add_size(size_t *out, size_t a, size_t b)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool coffer__mul_size(size_t *out, size_t a, size_t b)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* Never overflows. by : not 0. */
static inline uint64_t coffer__divide_up(uint64_t value, uint64_t by)
{
    return value / by + (value % by != 0);
}

/* Rounds up to a multiple of alignment, a power of two. */
static inline bool coffer__align_up(uint64_t *out, uint64_t value, uint64_t alignment)
{
    uint64_t sum;
    if (__builtin_add_overflow(value, alignment - 1, &sum))
        return false;
    *out = sum & ~(alignment - 1);
    return true;
}

static inline bool coffer__to_size(size_t *out, uint64_t value)
{
    if (value > SIZE_MAX)
        return false;
    *out = (size_t)value;
    return true;
}

/* True when [offset, offset + length) is inside [0, size). */
static inline bool coffer__range_fits(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

/* The upper 64 bits of a 128-bit product. */
static inline uint64_t coffer__mul_high(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)a * b >> 64);
#else
    uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    uint64_t carry = (uint32_t)middle + a_low * b_high;
    return a_high * b_high + (middle >> 32) + (carry >> 32);
#endif
}

/* Its two halves, one xor the other. */
static inline uint64_t coffer__mul_fold(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    return a * b ^ coffer__mul_high(a, b);
#endif
}

/* Whole numbers of more than 64 bits. A compiler without them, as those for i386 are, computes with reals of
 * 113 bits instead, which is exact for every product of two counts that a file has room for. */

#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 coffer__wide;
#else
__extension__ typedef __float128 coffer__wide;
#endif

#endif
