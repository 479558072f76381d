/* Which payloads are in the file already. */
#ifndef COFFER_FORMATS_MLDF_DEDUP_H
#define COFFER_FORMATS_MLDF_DEDUP_H

#include "coffer/error.h"

/* Payloads are the same when size, CRC-32 and a 128-bit hash are; the hash has a seed of its own for every
 * writer, so that a set cannot be made in which two different ones look the same. */
typedef struct coffer__mldf_known {
    uint64_t hash[2];
    uint64_t offset; /* never 0: 0 marks a free place */
    uint32_t size, crc;
} coffer__mldf_known;

typedef struct coffer__mldf_dedup {
    uint64_t seed;
    coffer__mldf_known *places; /* open addressing, a power of two of them */
    size_t count, capacity;
    size_t max; /* of count: later payloads are stored without being remembered */
} coffer__mldf_dedup;

void coffer__mldf_dedup_init(coffer__mldf_dedup *dedup, uint64_t memory);
void coffer__mldf_dedup_free(coffer__mldf_dedup *dedup);
/* Where an equal payload stands, or 0. */
uint64_t coffer__mldf_dedup_find(const coffer__mldf_dedup *dedup, const coffer__mldf_known *payload);
/* payload : not in the table. */
coffer_status coffer__mldf_dedup_add(coffer__mldf_dedup *dedup, const coffer__mldf_known *payload,
                                     coffer_error *err);

#endif
