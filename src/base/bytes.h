/* Little-endian loads and stores at any address. */
#ifndef COFFER_BASE_BYTES_H
#define COFFER_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define COFFER__BIG_ENDIAN 1
#define COFFER__LE16(v) __builtin_bswap16(v)
#define COFFER__LE32(v) __builtin_bswap32(v)
#define COFFER__LE64(v) __builtin_bswap64(v)
#else
#define COFFER__BIG_ENDIAN 0
#define COFFER__LE16(v) (v)
#define COFFER__LE32(v) (v)
#define COFFER__LE64(v) (v)
#endif

/* Where the byte with the sign is in a number of the machine. */
static inline size_t coffer__sign_byte(size_t size)
{
    return COFFER__BIG_ENDIAN ? 0 : size - 1;
}

static inline uint16_t coffer__load_u16(const void *from)
{
    uint16_t v;
    memcpy(&v, from, sizeof v);
    return COFFER__LE16(v);
}

static inline uint32_t coffer__load_u32(const void *from)
{
    uint32_t v;
    memcpy(&v, from, sizeof v);
    return COFFER__LE32(v);
}

static inline uint64_t coffer__load_u64(const void *from)
{
    uint64_t v;
    memcpy(&v, from, sizeof v);
    return COFFER__LE64(v);
}

/* Numbers of a file in the machine's order, or the other way round, in place. size : of one number, in bytes.
 */
static inline void coffer__swap_numbers(void *numbers, size_t size, size_t count)
{
    uint8_t *at = (uint8_t *)numbers;
    if (!COFFER__BIG_ENDIAN || size < 2)
        return;
    for (size_t i = 0; i < count; i++, at += size) {
        for (size_t low = 0, high = size - 1; low < high; low++, high--) {
            uint8_t byte = at[low];
            at[low] = at[high];
            at[high] = byte;
        }
    }
}

static inline float coffer__load_f32(const void *from)
{
    uint32_t bits = coffer__load_u32(from);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline void coffer__store_u16(void *to, uint16_t v)
{
    v = COFFER__LE16(v);
    memcpy(to, &v, sizeof v);
}

static inline void coffer__store_u32(void *to, uint32_t v)
{
    v = COFFER__LE32(v);
    memcpy(to, &v, sizeof v);
}

static inline void coffer__store_u64(void *to, uint64_t v)
{
    v = COFFER__LE64(v);
    memcpy(to, &v, sizeof v);
}

static inline void coffer__store_f32(void *to, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    coffer__store_u32(to, bits);
}

#endif
