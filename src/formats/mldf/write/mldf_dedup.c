#include "formats/mldf/write/mldf_write.h"

#include "base/fail.h"
#include "base/memory.h"

#include <sodium.h>
#include <stdlib.h>
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

/* Payloads of the set that is changed, for new ones to be shared with: found by size and CRC-32, which the
 * allocation table has, and then compared byte by byte. */

#define ENTRIES_AT_ONCE 1024
#define COMPARED_AT_ONCE 4096

static int by_content(const void *a, const void *b)
{
    const coffer__mldf_allocation *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    if (x->crc != y->crc)
        return x->crc < y->crc ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

coffer_status coffer__mldf_base_learn(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__mldf_base *base = writer->base;
    const coffer_mldf *set = base->set;
    uint8_t scratch[ENTRIES_AT_ONCE * COFFER__MLDF_TABLE_ENTRY];
    coffer_status status = COFFER_OK;
    /* Payloads that do not fit are not shared. */
    if (!writer->dedup || !writer->checksums ||
        set->table_count > writer->limits.memory_bytes / 4 / sizeof *base->payloads)
        return COFFER_OK;
    base->payloads = coffer__alloc_array((size_t)set->table_count, sizeof *base->payloads);
    if (!base->payloads)
        return coffer__fail_no_memory(err, set->table_count * sizeof *base->payloads);
    for (uint64_t first = 0; first < set->table_count && !status; first += ENTRIES_AT_ONCE) {
        uint64_t left = set->table_count - first;
        size_t count = left < ENTRIES_AT_ONCE ? (size_t)left : ENTRIES_AT_ONCE;
        const uint8_t *entries = NULL;
        status = coffer__mldf_fetch_table(&entries, set, first, count, scratch, err);
        for (size_t i = 0; i < count && !status; i++)
            base->payloads[base->payload_count++] =
                coffer__mldf_load_allocation(entries + i * COFFER__MLDF_TABLE_ENTRY);
    }
    qsort(base->payloads, base->payload_count, sizeof *base->payloads, by_content);
    return status;
}

static coffer_status is_same(bool *same, const coffer_mldf *set, uint64_t offset, const uint8_t *bytes,
                             size_t size, coffer_error *err)
{
    uint8_t piece[COMPARED_AT_ONCE];
    *same = false;
    for (size_t at = 0; at < size;) {
        size_t len = size - at < sizeof piece ? size - at : sizeof piece;
        coffer_status status = coffer_source_read_at(piece, set->source, offset + at, len, err);
        if (status)
            return status;
        if (memcmp(piece, bytes + at, len) != 0)
            return COFFER_OK;
        at += len;
    }
    *same = true;
    return COFFER_OK;
}

coffer_status coffer__mldf_base_find(uint64_t *offset, const coffer_mldf_writer *writer,
                                     const coffer__mldf_item *item, coffer_error *err)
{
    const coffer__mldf_base *base = writer->base;
    coffer__mldf_allocation wanted = { 0, item->stored_size, item->crc };
    size_t low = 0, high = base->payload_count;
    bool same = false;
    coffer_status status = COFFER_OK;
    *offset = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_content(&base->payloads[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    /* Only the first of those that look the same: a set made to have many would take long. */
    if (low == base->payload_count || base->payloads[low].size != wanted.size ||
        base->payloads[low].crc != wanted.crc)
        return COFFER_OK;
    status = is_same(&same, base->set, base->payloads[low].offset, item->stored, item->stored_size, err);
    if (!status && same)
        *offset = base->payloads[low].offset;
    /* A place outside of the file is found out when the table is copied. */
    return status == COFFER_E_OUT_OF_BOUNDS ? COFFER_OK : status;
}
