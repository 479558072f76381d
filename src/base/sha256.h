/* SHA-256: by the processor's own instructions where it has them, else by libsodium. */
#ifndef COFFER_BASE_SHA256_H
#define COFFER_BASE_SHA256_H

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COFFER__SHA256_SIZE 32
#define COFFER__SHA256_BLOCK 64

typedef struct coffer__sha256 {
    bool by_processor;
    crypto_hash_sha256_state sodium; /* without such instructions */
    uint32_t state[8];
    uint64_t len;
    uint8_t pending[COFFER__SHA256_BLOCK]; /* the last len % 64 bytes */
} coffer__sha256;

void coffer__sha256_begin(coffer__sha256 *hash);
void coffer__sha256_add(coffer__sha256 *hash, const void *bytes, size_t len);
void coffer__sha256_end(uint8_t out[COFFER__SHA256_SIZE], coffer__sha256 *hash);
/* All three for bytes in one piece. */
void coffer__sha256_of(uint8_t out[COFFER__SHA256_SIZE], const void *bytes, size_t len);

/* Whole blocks, on x86 processors with SHA instructions. */
void coffer__sha256_blocks_shani(uint32_t state[8], const uint8_t *bytes, size_t blocks);

#endif
