/* Looking payloads up in the allocation table. */
#include "formats/mldf/mldf_private.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/source_private.h"

#include <inttypes.h>

#define BLOCK 32 /* entries looked at in one step */

coffer_status coffer__mldf_fetch_table(const uint8_t **out, const coffer_mldf *set, uint64_t first,
                                       size_t count, uint8_t *scratch, coffer_error *err)
{
    uint64_t place = set->header.table + first * COFFER__MLDF_TABLE_ENTRY;
    size_t len = count * COFFER__MLDF_TABLE_ENTRY;
    return coffer__source_fetch(out, set->source, place, len, scratch, err);
}

/* A search under way: the first entry at or after the offset is one of [low, high], and those of [low, high)
 * begin in [from, to]. */
typedef struct search {
    uint64_t low, high, from, to;
} search;

/* Payloads of about the same size stand about where they would if all were: guessing by the place takes a few
 * steps where halving takes twenty. Every third step halves, so that no table makes it slow. */
static uint64_t guess(const search *bounds, uint64_t offset, unsigned step)
{
    uint64_t count = bounds->high - bounds->low;
    if (step % 3 == 2 || bounds->to <= bounds->from || offset < bounds->from || offset > bounds->to)
        return bounds->low + count / 2;
    double part = (double)(offset - bounds->from) / (double)(bounds->to - bounds->from);
    uint64_t at = (uint64_t)(part * (double)count);
    return bounds->low + (at < count ? at : count - 1);
}

static size_t first_at(const uint8_t *block, size_t count, uint64_t offset)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (coffer__load_u64(block + middle * COFFER__MLDF_TABLE_ENTRY) < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

coffer_status coffer__mldf_lower_bound(uint64_t *out, const coffer_mldf *set, uint64_t offset,
                                       coffer_error *err)
{
    search bounds = { 0, set->table_count, set->header.data, set->header.table };
    uint8_t scratch[BLOCK * COFFER__MLDF_TABLE_ENTRY];
    for (unsigned step = 0; bounds.low < bounds.high; step++) {
        uint64_t middle = guess(&bounds, offset, step);
        uint64_t start = middle - bounds.low < BLOCK / 2 ? bounds.low : middle - BLOCK / 2;
        size_t count = bounds.high - start < BLOCK ? (size_t)(bounds.high - start) : BLOCK;
        const uint8_t *block = NULL;
        coffer_status status = coffer__mldf_fetch_table(&block, set, start, count, scratch, err);
        if (status)
            return status;
        size_t at = first_at(block, count, offset);
        if (at == 0) {
            bounds.high = start;
            bounds.to = coffer__load_u64(block);
        } else if (at == count) {
            bounds.low = start + count;
            bounds.from = coffer__load_u64(block + (count - 1) * COFFER__MLDF_TABLE_ENTRY);
        } else {
            bounds.low = bounds.high = start + at;
        }
    }
    *out = bounds.low;
    return COFFER_OK;
}

/* When two begin at the same offset, the first is empty. */
coffer_status coffer__mldf_find_allocation(coffer__mldf_allocation *out, uint64_t *index, bool *found,
                                           const coffer_mldf *set, uint64_t offset, uint32_t size,
                                           coffer_error *err)
{
    uint8_t scratch[2 * COFFER__MLDF_TABLE_ENTRY];
    const uint8_t *entries = NULL;
    uint64_t first = 0;
    coffer_status status = coffer__mldf_lower_bound(&first, set, offset, err);
    *found = false;
    if (status)
        return status;
    size_t count = set->table_count - first < 2 ? (size_t)(set->table_count - first) : 2;
    status = coffer__mldf_fetch_table(&entries, set, first, count, scratch, err);
    if (status)
        return status;
    for (size_t i = 0; i < count && !*found; i++) {
        coffer__mldf_allocation entry = coffer__mldf_load_allocation(entries + i * COFFER__MLDF_TABLE_ENTRY);
        if (entry.offset != offset || entry.size != size)
            continue;
        *found = true;
        *out = entry;
        if (index)
            *index = first + i;
    }
    return COFFER_OK;
}

coffer_status coffer__mldf_data_end(uint64_t *out, const coffer_mldf *set, coffer_error *err)
{
    uint8_t scratch[COFFER__MLDF_TABLE_ENTRY];
    const uint8_t *last = NULL;
    coffer__mldf_allocation allocation;
    coffer_status status;
    if (set->table_count == 0) {
        *out = set->header.data;
        return COFFER_OK;
    }
    status = coffer__mldf_fetch_table(&last, set, set->table_count - 1, 1, scratch, err);
    if (status)
        return status;
    allocation = coffer__mldf_load_allocation(last);
    *out = allocation.offset + allocation.size;
    return COFFER_OK;
}

coffer_status coffer__mldf_find_region_only(coffer_mldf *set, coffer_error *err)
{
    uint8_t scratch[BLOCK * COFFER__MLDF_TABLE_ENTRY];
    bool none = (set->header.flags & COFFER_MLDF_CHECKSUMMED) && set->header.table_crc == 0;
    set->region_only = false;
    for (uint64_t first = 0; none && first < set->table_count; first += BLOCK) {
        uint64_t left = set->table_count - first;
        size_t count = left < BLOCK ? (size_t)left : BLOCK;
        const uint8_t *at = NULL;
        coffer_status status = coffer__mldf_fetch_table(&at, set, first, count, scratch, err);
        if (status)
            return status;
        for (size_t i = 0; none && i < count; i++)
            none = coffer__mldf_load_allocation(at + i * COFFER__MLDF_TABLE_ENTRY).crc == 0;
    }
    set->region_only = none;
    return COFFER_OK;
}

/* One descriptor alone does not show whether the four zeros after it are its own: both sums are right then.
 * The other is found without summing again: that of what follows the descriptor is the same. */
coffer_status coffer__mldf_table_sum_agrees(bool *out, const coffer_mldf *set, uint32_t crc,
                                            coffer_error *err)
{
    const coffer__mldf_header *header = &set->header;
    uint64_t behind = header->samples * set->schema.row_size + (set->file_size - header->table);
    uint8_t bytes[COFFER__MLDF_STRIDE];
    uint32_t differ;
    coffer_status status;
    *out = crc == header->table_crc;
    if (*out || header->fields != 1 || !coffer__range_fits(header->descriptors, sizeof bytes, set->file_size))
        return COFFER_OK;
    status = coffer_source_read_at(bytes, set->source, header->descriptors, sizeof bytes, err);
    if (status)
        return status;
    differ =
        coffer__crc32(0, bytes, COFFER__MLDF_STRIDE) ^ coffer__crc32(0, bytes, COFFER__MLDF_STRIDE_TUTORIAL);
    *out = (crc ^ coffer__crc32_combine(differ, 0, behind)) == header->table_crc;
    return COFFER_OK;
}

coffer_status coffer__mldf_sum_range(uint32_t *crc, const coffer_mldf *set, uint64_t offset, uint64_t len,
                                     uint8_t *scratch, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    while (!status && len > 0) {
        size_t part = len < COFFER__MLDF_SUM_BLOCK ? (size_t)len : COFFER__MLDF_SUM_BLOCK;
        const uint8_t *bytes = coffer_source_view(set->source, offset, part);
        if (!bytes) {
            status = coffer_source_read_at(scratch, set->source, offset, part, err);
            bytes = scratch;
        }
        if (!status)
            *crc = coffer__crc32(*crc, bytes, part);
        offset += part;
        len -= part;
    }
    return status;
}

coffer_status coffer__mldf_sum_tables(uint32_t *out, const coffer_mldf *set, coffer_error *err)
{
    const coffer__mldf_header *header = &set->header;
    uint8_t *scratch = coffer__malloc(COFFER__MLDF_SUM_BLOCK);
    uint32_t crc = 0;
    coffer_status status;
    if (!scratch)
        return coffer__fail_no_memory(err, COFFER__MLDF_SUM_BLOCK);
    status = coffer__mldf_sum_range(&crc, set, header->descriptors,
                                    (uint64_t)set->schema.stride * header->fields, scratch, err);
    if (!status)
        status = coffer__mldf_sum_range(&crc, set, header->metadata, header->samples * set->schema.row_size,
                                        scratch, err);
    if (!status)
        status =
            coffer__mldf_sum_range(&crc, set, header->table, set->file_size - header->table, scratch, err);
    if (!status)
        status = coffer_source_intact(set->source, err);
    coffer__free(scratch);
    *out = crc;
    return status;
}

/* ---- For callers ---- */

COFFER__INIT_FUNCTION(coffer_mldf_allocation, COFFER_MLDF_ALLOCATION_INIT)

uint64_t coffer_mldf_allocation_count(const coffer_mldf *set)
{
    return set->table_count;
}

coffer_status coffer_mldf_allocation_at(coffer_mldf_allocation *out, const coffer_mldf *set, uint64_t index,
                                        coffer_error *err)
{
    coffer_mldf_allocation found = COFFER_MLDF_ALLOCATION_INIT;
    uint8_t scratch[COFFER__MLDF_TABLE_ENTRY];
    const uint8_t *at = NULL;
    if (index >= set->table_count)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "allocation %" PRIu64 " requested, the set has %" PRIu64, index,
                            set->table_count);
    coffer_status status = coffer__mldf_fetch_table(&at, set, index, 1, scratch, err);
    if (status)
        return status;
    coffer__mldf_allocation entry = coffer__mldf_load_allocation(at);
    found.offset = entry.offset;
    found.size = entry.size;
    found.has_crc32 = coffer__mldf_has_sums(set);
    found.crc32 = found.has_crc32 ? entry.crc : 0;
    return coffer__give_struct(out, &found, sizeof found, err);
}

/* The payload that begins at the offset: of two entries there, the second is not empty. */
static coffer_status find_payload(coffer__mldf_allocation *out, const coffer_mldf *set, uint64_t offset,
                                  coffer_error *err)
{
    uint8_t scratch[2 * COFFER__MLDF_TABLE_ENTRY];
    const uint8_t *at = NULL;
    uint64_t first = 0;
    bool found = false;
    coffer_status status = coffer__mldf_lower_bound(&first, set, offset, err);
    if (status)
        return status;
    size_t count = set->table_count - first < 2 ? (size_t)(set->table_count - first) : 2;
    status = coffer__mldf_fetch_table(&at, set, first, count, scratch, err);
    for (size_t i = 0; !status && i < count; i++) {
        coffer__mldf_allocation entry = coffer__mldf_load_allocation(at + i * COFFER__MLDF_TABLE_ENTRY);
        if (entry.offset != offset)
            break;
        *out = entry;
        found = true;
    }
    if (!status && !found)
        status =
            coffer__fail(err, COFFER_E_DANGLING_REFERENCE, offset,
                         "no payload begins at %" PRIu64 "; 'coffer ls --what table' lists them", offset);
    return status;
}

coffer_status coffer_mldf_read_payload(coffer_bytes *out, const coffer_mldf *set, uint64_t offset,
                                       coffer_error *err)
{
    coffer__mldf_allocation entry = { 0 };
    coffer_status status = find_payload(&entry, set, offset, err);
    if (status)
        return status;
    if (!coffer__range_fits(entry.offset, entry.size, set->file_size))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, entry.offset,
                            "%lu bytes at %" PRIu64 ", file has %" PRIu64, (unsigned long)entry.size,
                            entry.offset, set->file_size);
    out->size = 0;
    status = coffer__mldf_bytes_reserve(out, entry.size, err);
    if (!status)
        status = coffer_source_read_at(out->data, set->source, entry.offset, entry.size, err);
    if (status)
        return status;
    if (coffer__mldf_has_sums(set) && coffer__crc32(0, out->data, entry.size) != entry.crc)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, entry.offset,
                            "the CRC-32 of its %lu bytes at %" PRIu64 " is not that of the allocation table",
                            (unsigned long)entry.size, entry.offset);
    out->size = entry.size;
    return COFFER_OK;
}
