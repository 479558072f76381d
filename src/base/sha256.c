#include "base/sha256.h"

#include "base/cpu.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

static bool has_instructions(void)
{
    const unsigned sha = 1u << 29;
    unsigned a, b = 0, c, d;
    return coffer__cpu() != COFFER__CPU_GENERIC && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & sha);
}
#else
static bool has_instructions(void)
{
    return false;
}

void coffer__sha256_blocks_shani(uint32_t state[8], const uint8_t *bytes, size_t blocks)
{
    (void)state, (void)bytes, (void)blocks;
}
#endif

void coffer__sha256_begin(coffer__sha256 *hash)
{
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    hash->by_processor = has_instructions();
    hash->len = 0;
    memcpy(hash->state, start, sizeof start);
    if (!hash->by_processor)
        crypto_hash_sha256_init(&hash->sodium);
}

void coffer__sha256_add(coffer__sha256 *hash, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    if (!hash->by_processor) {
        crypto_hash_sha256_update(&hash->sodium, at, len);
        return;
    }
    size_t held = hash->len % COFFER__SHA256_BLOCK, room = COFFER__SHA256_BLOCK - held;
    hash->len += len;
    if (held > 0) {
        size_t some = len < room ? len : room;
        memcpy(hash->pending + held, at, some);
        at += some;
        len -= some;
        if (some == room)
            coffer__sha256_blocks_shani(hash->state, hash->pending, 1);
    }
    size_t blocks = len / COFFER__SHA256_BLOCK;
    coffer__sha256_blocks_shani(hash->state, at, blocks);
    len %= COFFER__SHA256_BLOCK;
    if (len > 0)
        memcpy(hash->pending, at + blocks * COFFER__SHA256_BLOCK, len);
}

static void store_big_endian(uint8_t *out, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(value >> 8 * (size - 1 - i));
}

void coffer__sha256_end(uint8_t out[COFFER__SHA256_SIZE], coffer__sha256 *hash)
{
    if (!hash->by_processor) {
        crypto_hash_sha256_final(&hash->sodium, out);
        return;
    }
    /* A one bit, zeros up to the last eight bytes of a block, the number of bits. */
    uint8_t padding[2 * COFFER__SHA256_BLOCK] = { 0x80 };
    size_t held = hash->len % COFFER__SHA256_BLOCK, last = COFFER__SHA256_BLOCK - sizeof(uint64_t);
    size_t zeros = held < last ? last - held : COFFER__SHA256_BLOCK + last - held;
    store_big_endian(padding + zeros, hash->len * 8, sizeof(uint64_t));
    coffer__sha256_add(hash, padding, zeros + sizeof(uint64_t));
    for (size_t i = 0; i < 8; i++)
        store_big_endian(out + i * sizeof(uint32_t), hash->state[i], sizeof(uint32_t));
}

void coffer__sha256_of(uint8_t out[COFFER__SHA256_SIZE], const void *bytes, size_t len)
{
    coffer__sha256 hash;
    coffer__sha256_begin(&hash);
    coffer__sha256_add(&hash, bytes, len);
    coffer__sha256_end(out, &hash);
}
