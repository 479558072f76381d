#include "base/hash.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

uint64_t coffer__hash(const void *bytes, size_t len)
{
    return XXH3_64bits(bytes, len);
}

uint64_t coffer__hash_keyed(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}

void coffer__hash_seeded(uint64_t out[2], const void *bytes, size_t len, uint64_t seed)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, len, seed);
    out[0] = hash.low64;
    out[1] = hash.high64;
}

struct coffer__digest {
    XXH3_state_t *state;
};

coffer__digest *coffer__digest_new(void)
{
    coffer__digest *digest = coffer__malloc(sizeof *digest);
    if (!digest)
        return NULL;
    digest->state = XXH3_createState();
    if (!digest->state || XXH3_128bits_reset(digest->state) != XXH_OK) {
        coffer__digest_free(digest);
        return NULL;
    }
    return digest;
}

void coffer__digest_free(coffer__digest *digest)
{
    if (!digest)
        return;
    XXH3_freeState(digest->state);
    coffer__free(digest);
}

void coffer__digest_add(coffer__digest *digest, const void *bytes, size_t len)
{
    XXH3_128bits_update(digest->state, bytes, len);
}

void coffer__digest_hex(char out[COFFER__DIGEST_HEX + 1], const coffer__digest *digest)
{
    XXH128_hash_t hash = XXH3_128bits_digest(digest->state);
    snprintf(out, COFFER__DIGEST_HEX + 1, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
}
