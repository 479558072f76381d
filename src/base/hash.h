/* Fast hashes, not cryptographic ones. */
#ifndef COFFER_BASE_HASH_H
#define COFFER_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* For tables inside the process. Never written to a file. */
uint64_t coffer__hash(const void *bytes, size_t len);
/* The same with a seed: who does not know it cannot choose keys that collide in a table. */
uint64_t coffer__hash_keyed(const void *bytes, size_t len, uint64_t seed);
/* 128 bits. With a seed that nobody knows, contents that hash to the same value cannot be made on purpose. */
void coffer__hash_seeded(uint64_t out[2], const void *bytes, size_t len, uint64_t seed);

/* 128 bits of a stream, to tell one content from another; XXH3, whose values never change, so that they can
 * be stored in files. */
typedef struct coffer__digest coffer__digest;

#define COFFER__DIGEST_HEX 32

coffer__digest *coffer__digest_new(void); /* NULL: no memory */
void coffer__digest_free(coffer__digest *digest);
void coffer__digest_add(coffer__digest *digest, const void *bytes, size_t len);
/* The digest of the bytes added so far, in lower-case hexadecimal digits with a NUL. */
void coffer__digest_hex(char out[COFFER__DIGEST_HEX + 1], const coffer__digest *digest);

#endif
