#include "formats/mldf/write/mldf_dedup.h"

#include "base/fail.h"
#include "base/memory.h"

#include <sodium.h>
#include <string.h>

#define FIRST_CAPACITY ((size_t)1 << 10)

void coffer__mldf_dedup_init(coffer__mldf_dedup *dedup, uint64_t memory)
{
    size_t most = FIRST_CAPACITY;
    memset(dedup, 0, sizeof *dedup);
    randombytes_buf(&dedup->seed, sizeof dedup->seed);
    while (most <= SIZE_MAX / 4 / sizeof *dedup->places && most * 2 * sizeof *dedup->places <= memory)
        most *= 2;
    dedup->max = most / 4 * 3;
}

void coffer__mldf_dedup_free(coffer__mldf_dedup *dedup)
{
    coffer__free(dedup->places);
    memset(dedup, 0, sizeof *dedup);
}

/* The place of an equal payload, or the free one where it would go. */
static coffer__mldf_known *place_of(const coffer__mldf_dedup *dedup, const coffer__mldf_known *payload)
{
    size_t mask = dedup->capacity - 1;
    for (size_t at = (size_t)payload->hash[0] & mask;; at = (at + 1) & mask) {
        coffer__mldf_known *place = &dedup->places[at];
        if (place->offset == 0 || (place->hash[0] == payload->hash[0] && place->hash[1] == payload->hash[1] &&
                                   place->size == payload->size && place->crc == payload->crc))
            return place;
    }
}

uint64_t coffer__mldf_dedup_find(const coffer__mldf_dedup *dedup, const coffer__mldf_known *payload)
{
    return dedup->capacity > 0 ? place_of(dedup, payload)->offset : 0;
}

static coffer_status grow(coffer__mldf_dedup *dedup, coffer_error *err)
{
    coffer__mldf_dedup larger = *dedup;
    larger.capacity = dedup->capacity ? dedup->capacity * 2 : FIRST_CAPACITY;
    larger.places = coffer__calloc(larger.capacity, sizeof *larger.places);
    if (!larger.places)
        return coffer__fail_no_memory(err, larger.capacity * sizeof *larger.places);
    for (size_t i = 0; i < dedup->capacity; i++) {
        if (dedup->places[i].offset != 0)
            *place_of(&larger, &dedup->places[i]) = dedup->places[i];
    }
    coffer__free(dedup->places);
    *dedup = larger;
    return COFFER_OK;
}

coffer_status coffer__mldf_dedup_add(coffer__mldf_dedup *dedup, const coffer__mldf_known *payload,
                                     coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (dedup->count == dedup->max)
        return COFFER_OK;
    if (dedup->count >= dedup->capacity / 4 * 3)
        status = grow(dedup, err);
    if (status)
        return status;
    *place_of(dedup, payload) = *payload;
    dedup->count++;
    return COFFER_OK;
}
