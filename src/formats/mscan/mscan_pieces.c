#include "formats/mscan/mscan_damage.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sorted.h"
#include "io/source_private.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 4096       /* records read at once */
#define READ_BYTES 65536 /* bytes read at once */

/* ---- Dividing ---- */

static coffer_status add_piece(coffer__mscan_pieces *pieces, const coffer__mscan_piece *piece,
                               coffer_error *err)
{
    if (piece->count == 0)
        return COFFER_OK;
    coffer_status status =
        coffer__array_reserve_one(&pieces->list, &pieces->capacity, pieces->count, sizeof *piece, err);
    if (status)
        return status;
    pieces->list[pieces->count] = *piece;
    pieces->list[pieces->count++].new_first = pieces->total;
    pieces->total += piece->count;
    return COFFER_OK;
}

static void take_record(coffer__mscan_pieces *pieces, const uint8_t *record)
{
    uint32_t token = coffer__mscan_load_token(record);
    uint16_t param = coffer__mscan_load_param(record);
    pieces->max_token = token > pieces->max_token ? token : pieces->max_token;
    pieces->past_count += token >= pieces->metadata->total_tokens;
    pieces->used_ids[param / 64] |= UINT64_C(1) << param % 64;
}

/* Splits consecutive records where some cannot be placed. */
static coffer_status divide(coffer__mscan_pieces *pieces, const coffer__mscan_piece *all,
                            uint64_t token_limit, coffer_error *err)
{
    uint8_t scratch[BATCH * COFFER__MSCAN_RECORD_SIZE];
    coffer__mscan_piece piece = { .offset = all->offset, .old_first = all->old_first };
    coffer_status status = COFFER_OK;
    for (uint64_t done = 0; !status && done < all->count;) {
        size_t some = all->count - done < BATCH ? (size_t)(all->count - done) : BATCH;
        const uint8_t *records = NULL;
        status = coffer__mscan_fetch(&records, pieces->source, all->offset, done, some, scratch, err);
        for (size_t i = 0; !status && i < some; i++) {
            const uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
            uint64_t offset = all->offset + (done + i) * COFFER__MSCAN_RECORD_SIZE;
            if (coffer__mscan_load_token(record) < token_limit) {
                take_record(pieces, record);
                piece.count++;
                continue;
            }
            if (pieces->dropped++ == 0)
                pieces->dropped_offset = offset;
            status = add_piece(pieces, &piece, err);
            piece = (coffer__mscan_piece){ .offset = offset + COFFER__MSCAN_RECORD_SIZE,
                                           .old_first = all->old_first + done + i + 1 };
        }
        done += some;
    }
    if (!status)
        status = add_piece(pieces, &piece, err);
    return status ? status : coffer_source_intact(pieces->source, err);
}

coffer_status coffer__mscan_pieces_find(coffer__mscan_pieces *out, const coffer__mscan_area *area,
                                        coffer_source *src, const coffer__mscan_header *header,
                                        const coffer__mscan_metadata *metadata, uint64_t token_limit,
                                        coffer_error *err)
{
    coffer__mscan_piece head = { .offset = area->start, .count = area->count };
    coffer__mscan_piece tail = { .offset = area->tail_start,
                                 .count = area->tail_count,
                                 .old_first = header->record_count - area->tail_count };
    if (area->overwritten_head)
        head.old_first = area->lost;
    *out = (coffer__mscan_pieces){ .source = src, .header = header, .metadata = metadata };
    coffer_status status = divide(out, &head, token_limit, err);
    if (!status)
        status = divide(out, &tail, token_limit, err);
    if (!status && out->count > 0 && out->list[0].old_first == 0)
        out->unmoved = out->list[0].count;
    return status;
}

void coffer__mscan_pieces_free(coffer__mscan_pieces *pieces)
{
    coffer__free(pieces->list);
    coffer__free(pieces->marks);
    coffer__free(pieces->bad_sequences);
}

/* ---- Marks ---- */

static coffer_status add_mark(coffer__mscan_pieces *pieces, const coffer__mscan_mark *mark, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&pieces->marks, &pieces->mark_capacity,
                                                     pieces->mark_count, sizeof *mark, err);
    if (!status)
        pieces->marks[pieces->mark_count++] = *mark;
    return status;
}

coffer_status coffer__mscan_pieces_mark_metadata(coffer__mscan_pieces *pieces, coffer_error *err)
{
    const coffer__mscan_seal *seal = &pieces->metadata->seal;
    coffer__mscan_mark mark = { .in_metadata = true,
                                .has_crc = seal->spelled && seal->readable,
                                .crc = seal->stored };
    return add_mark(pieces, &mark, err);
}

/* ---- Comparing checksums ---- */

/* Where the bytes of the record area that a checksum is about are now; false when they are not all there and
 * in one piece. */
static bool find_bytes(uint64_t *offset, uint64_t *new_offset, const coffer__mscan_pieces *pieces,
                       const coffer__mscan_range *range)
{
    size_t low = COFFER__COUNT_UP_TO(pieces->list, pieces->count, coffer__mscan_piece, old_first,
                                     range->offset / COFFER__MSCAN_RECORD_SIZE);
    if (low == 0)
        return false;
    const coffer__mscan_piece *piece = &pieces->list[low - 1]; /* the last that begins at or before it */
    uint64_t inside = range->offset - piece->old_first * COFFER__MSCAN_RECORD_SIZE;
    if (!coffer__range_fits(inside, range->len, piece->count * COFFER__MSCAN_RECORD_SIZE))
        return false;
    *offset = piece->offset + inside;
    *new_offset = piece->new_first * COFFER__MSCAN_RECORD_SIZE + inside;
    return true;
}

static coffer_status crc_of(uint32_t *out, coffer_source *src, uint64_t offset, uint64_t len,
                            coffer_error *err)
{
    uint8_t scratch[READ_BYTES];
    uint32_t crc = 0;
    for (uint64_t done = 0; done < len;) {
        size_t some = len - done < READ_BYTES ? (size_t)(len - done) : READ_BYTES;
        const uint8_t *bytes = NULL;
        coffer_status status = coffer__source_fetch(&bytes, src, offset + done, some, scratch, err);
        if (status)
            return status;
        crc = coffer__crc32(crc, bytes, some);
        done += some;
    }
    *out = crc;
    return coffer_source_intact(src, err);
}

/* The beginning or the end of bytes of the new file that match a checksum or do not. */
typedef struct edge {
    uint64_t offset;
    int verified, damaged; /* +1 at the beginning, −1 at the end */
} edge;

typedef struct edges {
    edge *list;
    size_t count, capacity;
} edges;

static coffer_status add_edges(edges *found, uint64_t offset, uint64_t len, bool verified, coffer_error *err)
{
    edge begin = { offset, verified, !verified }, end = { offset + len, -verified, -!verified };
    coffer_status status =
        coffer__array_reserve_one(&found->list, &found->capacity, found->count, sizeof begin, err);
    if (status)
        return status;
    found->list[found->count++] = begin;
    status = coffer__array_reserve_one(&found->list, &found->capacity, found->count, sizeof end, err);
    if (!status)
        found->list[found->count++] = end;
    return status;
}

static coffer_status compare_range(edges *found, coffer__mscan_pieces *pieces,
                                   const coffer__mscan_range *range, coffer_error *err)
{
    uint64_t offset, new_offset;
    uint32_t crc;
    if (!find_bytes(&offset, &new_offset, pieces, range))
        return COFFER_OK;
    coffer_status status = crc_of(&crc, pieces->source, offset, range->len, err);
    if (status)
        return status;
    if (crc != range->crc && range->sequence != COFFER_INDEX_NONE)
        pieces->bad_sequences[range->sequence] = 1;
    return add_edges(found, new_offset, range->len, crc == range->crc, err);
}

/* The table and the sums of sequences, whichever there are. */
static coffer_status compare_all(edges *found, bool *any, coffer__mscan_pieces *pieces, coffer_error *err)
{
    const coffer__mscan_metadata *metadata = pieces->metadata;
    uint64_t size = (uint64_t)pieces->header->record_count * COFFER__MSCAN_RECORD_SIZE;
    uint32_t *sums = NULL;
    coffer_error ignored = COFFER_ERROR_INIT;
    coffer_status status =
        coffer__mscan_load_sums(any, &sums, metadata, pieces->header->record_count, &ignored);
    if (status == COFFER_E_NO_MEMORY)
        return coffer__fail_copy(err, &ignored);
    status = COFFER_OK;
    for (uint64_t i = 0; !status && *any && i < coffer__chunk_count(size); i++) {
        coffer__mscan_range range = { i * COFFER__CHUNK_BYTES, coffer__chunk_len(size, i), sums[i],
                                      COFFER_INDEX_NONE };
        status = compare_range(found, pieces, &range, err);
    }
    coffer__free(sums);
    for (size_t i = 0; !status && i < metadata->sequence_count; i++) {
        coffer__mscan_extent extent = coffer__mscan_extent_of(metadata->sequence_values[i]);
        if (!extent.has_crc || extent.num_records == 0 ||
            !coffer__range_fits(extent.first_record, extent.num_records, pieces->header->record_count))
            continue;
        coffer__mscan_range range = { extent.first_record * COFFER__MSCAN_RECORD_SIZE,
                                      extent.num_records * COFFER__MSCAN_RECORD_SIZE, extent.crc, i };
        *any = true;
        status = compare_range(found, pieces, &range, err);
    }
    return status;
}

static int compare_edges(const void *left, const void *right)
{
    const edge *a = left, *b = right;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Marks the bytes [begin, end) of the new file's records; joins the mark before it. */
static coffer_status mark_bytes(coffer__mscan_pieces *pieces, uint64_t begin, uint64_t end, bool unverified,
                                coffer_error *err)
{
    uint64_t first = begin / COFFER__MSCAN_RECORD_SIZE;
    uint64_t past = (end + COFFER__MSCAN_RECORD_SIZE - 1) / COFFER__MSCAN_RECORD_SIZE;
    coffer__mscan_mark *last = pieces->mark_count ? &pieces->marks[pieces->mark_count - 1] : NULL;
    if (begin >= end)
        return COFFER_OK;
    if (last && !last->in_metadata && last->unverified == unverified &&
        first <= last->first_record + last->num_records) {
        last->num_records = past - last->first_record;
        return COFFER_OK;
    }
    coffer__mscan_mark mark = { .first_record = first,
                                .num_records = past - first,
                                .unverified = unverified };
    return add_mark(pieces, &mark, err);
}

/* Bytes that some checksum matches are right, whatever another one says. */
static coffer_status mark_between(coffer__mscan_pieces *pieces, const edges *found, coffer_error *err)
{
    uint64_t end = pieces->total * COFFER__MSCAN_RECORD_SIZE, offset = 0;
    int verified = 0, damaged = 0;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < found->count; i++) {
        if (verified == 0)
            status = mark_bytes(pieces, offset, found->list[i].offset, damaged == 0, err);
        verified += found->list[i].verified;
        damaged += found->list[i].damaged;
        offset = found->list[i].offset;
    }
    return status ? status : mark_bytes(pieces, offset, end, true, err);
}

/* Marks that the damaged file has already, with the new numbers of their records. */
static coffer_status keep_marks(coffer__mscan_pieces *pieces, coffer_error *err)
{
    const coffer__mscan_metadata *metadata = pieces->metadata;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < metadata->mark_count; i++) {
        coffer__mscan_mark mark = metadata->marks[i];
        uint64_t end;
        if (mark.in_metadata) {
            status = add_mark(pieces, &mark, err);
            continue;
        }
        if (!coffer__add_u64(&end, mark.first_record, mark.num_records))
            end = UINT64_MAX;
        for (size_t k = 0; !status && k < pieces->count; k++) {
            const coffer__mscan_piece *piece = &pieces->list[k];
            uint64_t low = mark.first_record > piece->old_first ? mark.first_record : piece->old_first;
            uint64_t high = end < piece->old_first + piece->count ? end : piece->old_first + piece->count;
            if (low >= high)
                continue;
            coffer__mscan_mark moved = mark;
            moved.first_record = piece->new_first + (low - piece->old_first);
            moved.num_records = high - low;
            status = add_mark(pieces, &moved, err);
        }
    }
    return status;
}

coffer_status coffer__mscan_pieces_verify(coffer__mscan_pieces *pieces, coffer_error *err)
{
    edges found = { 0 };
    bool any = false;
    size_t sequences = pieces->metadata->sequence_count;
    coffer_status status = keep_marks(pieces, err);
    if (status)
        return status;
    pieces->bad_sequences = coffer__calloc(sequences ? sequences : 1, 1);
    if (!pieces->bad_sequences)
        return coffer__fail_no_memory(err, sequences);
    status = compare_all(&found, &any, pieces, err);
    if (!status && any && pieces->total > 0) {
        if (found.count > 0)
            qsort(found.list, found.count, sizeof *found.list, compare_edges);
        status = mark_between(pieces, &found, err);
    }
    coffer__free(found.list);
    return status;
}

/* ---- Sums of the new file ---- */

coffer_status coffer__mscan_pieces_sum(coffer__chunk_counter *out, const coffer__mscan_pieces *pieces,
                                       coffer_error *err)
{
    uint8_t scratch[READ_BYTES];
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < pieces->count; i++) {
        uint64_t len = pieces->list[i].count * COFFER__MSCAN_RECORD_SIZE;
        for (uint64_t done = 0; !status && done < len;) {
            size_t some = len - done < READ_BYTES ? (size_t)(len - done) : READ_BYTES;
            const uint8_t *bytes = NULL;
            status = coffer__source_fetch(&bytes, pieces->source, pieces->list[i].offset + done, some,
                                          scratch, err);
            if (!status)
                status = coffer__chunk_counter_add(out, bytes, some, err);
            done += some;
        }
    }
    if (!status)
        status = coffer__chunk_counter_end(out, err);
    return status ? status : coffer_source_intact(pieces->source, err);
}
