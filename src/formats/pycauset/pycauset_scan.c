#include "formats/pycauset/pycauset_scan.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <string.h>

#define WINDOW ((size_t)1 << 20)
/* Bytes of false candidates that may be read, in addition to twice the bytes searched. */
#define SPARE_WORK (UINT64_C(64) << 20)

typedef struct search {
    coffer_source *source;
    const coffer_limits *limits;
    coffer__pycauset_scan *found;
    uint8_t *window;     /* where the source has no view */
    uint8_t *block_part; /* the same, for the bytes of a candidate */
    uint64_t work_left;
} search;

/* Length of the block according to its framing, or 0 when it cannot be a block. */
static uint64_t framed_length(const search *scan, const uint8_t *framing, uint64_t offset)
{
    uint64_t size = coffer_source_size(scan->source),
             len = coffer__load_u64(framing + COFFER__PYCAUSET_BLOCK_LENGTH_AT);
    if (memcmp(framing, COFFER__PYCAUSET_BLOCK_MAGIC, COFFER__PYCAUSET_BLOCK_MAGIC_SIZE) != 0 ||
        coffer__load_u32(framing + COFFER__PYCAUSET_BLOCK_VERSION_AT) != COFFER__PYCAUSET_BLOCK_VERSION ||
        coffer__load_u32(framing + COFFER__PYCAUSET_BLOCK_ENCODING_AT) != COFFER__PYCAUSET_ENCODING_VERSION ||
        coffer__load_u32(framing + COFFER__PYCAUSET_BLOCK_RESERVED_AT) != 0 ||
        coffer__load_u32(framing + COFFER__PYCAUSET_BLOCK_RESERVED_2_AT) != 0)
        return 0;
    if (len == 0 || len > scan->limits->json_bytes ||
        !coffer__range_fits(offset + COFFER__PYCAUSET_BLOCK_HEADER, len, size))
        return 0;
    return COFFER__PYCAUSET_BLOCK_HEADER + len;
}

static coffer_status sum_block(uint32_t *out, const search *scan, uint64_t offset, uint64_t length,
                               coffer_error *err)
{
    uint32_t crc = 0;
    for (uint64_t done = COFFER__PYCAUSET_BLOCK_HEADER; done < length;) {
        size_t len = length - done < WINDOW ? (size_t)(length - done) : WINDOW;
        const uint8_t *bytes;
        coffer_status status =
            coffer__source_fetch(&bytes, scan->source, offset + done, len, scan->block_part, err);
        if (status)
            return status;
        crc = coffer__crc32(crc, bytes, len);
        done += len;
    }
    *out = crc;
    return COFFER_OK;
}

/* *length is 0 when the offset does not have an intact block. */
static coffer_status try_block(uint64_t *length, search *scan, uint64_t offset, coffer_error *err)
{
    uint8_t framing[COFFER__PYCAUSET_BLOCK_HEADER];
    uint32_t crc = 0;
    coffer_status status;
    *length = 0;
    if (!coffer__range_fits(offset, sizeof framing, coffer_source_size(scan->source)))
        return COFFER_OK;
    status = coffer_source_read_at(framing, scan->source, offset, sizeof framing, err);
    uint64_t framed = status ? 0 : framed_length(scan, framing, offset);
    if (framed == 0)
        return status;
    if (framed > scan->work_left)
        return coffer__fail(err, COFFER_E_LIMIT, offset,
                            "too many bytes look like metadata but are not: the search stopped at %" PRIu64,
                            offset);
    scan->work_left -= framed;
    status = sum_block(&crc, scan, offset, framed, err);
    if (status)
        return status;
    if (crc == coffer__load_u32(framing + COFFER__PYCAUSET_BLOCK_CRC_AT))
        *length = framed;
    return COFFER_OK;
}

static coffer_status add_block(coffer__pycauset_scan *scan, uint64_t offset, uint64_t length,
                               coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&scan->items, &scan->capacity, scan->count, sizeof *scan->items, err);
    if (!status)
        scan->items[scan->count++] = (coffer__pycauset_found){ offset, length };
    return status;
}

/* Looks at one window from `at` on and moves it past what was seen. */
static coffer_status search_window(search *scan, uint64_t *at, uint64_t to, coffer_error *err)
{
    uint64_t start = *at, left = to - start, length;
    size_t len = left < WINDOW ? (size_t)left : WINDOW, in = 0;
    const uint8_t *bytes;
    coffer_status status = coffer__source_fetch(&bytes, scan->source, start, len, scan->window, err);
    for (; !status && in + COFFER__PYCAUSET_BLOCK_MAGIC_SIZE <= len;) {
        length = 0;
        if (memcmp(bytes + in, COFFER__PYCAUSET_BLOCK_MAGIC, COFFER__PYCAUSET_BLOCK_MAGIC_SIZE) == 0)
            status = try_block(&length, scan, start + in, err);
        if (length == 0) {
            in += COFFER__PYCAUSET_BLOCK_ALIGNMENT;
            continue;
        }
        if (!coffer__align_up(at, start + in + length, COFFER__PYCAUSET_BLOCK_ALIGNMENT))
            *at = to;
        return add_block(scan->found, start + in, length, err);
    }
    *at = start + len;
    return status;
}

coffer_status coffer__pycauset_scan_range(coffer__pycauset_scan *out, coffer_source *src, uint64_t from,
                                          uint64_t to, const coffer_limits *limits, coffer_error *err)
{
    search scan = { .source = src, .limits = limits, .found = out };
    coffer_status status = COFFER_OK;
    if (to > coffer_source_size(src))
        to = coffer_source_size(src);
    if (!coffer__align_up(&from, from, COFFER__PYCAUSET_BLOCK_ALIGNMENT) || from >= to)
        return COFFER_OK;
    if (!coffer__mul_u64(&scan.work_left, to - from, 2) ||
        !coffer__add_u64(&scan.work_left, scan.work_left, SPARE_WORK))
        scan.work_left = UINT64_MAX;
    scan.window = coffer__malloc(WINDOW);
    scan.block_part = coffer__malloc(WINDOW);
    if (!scan.window || !scan.block_part)
        status = coffer__fail_no_memory(err, 2 * WINDOW);
    while (!status && from < to)
        status = search_window(&scan, &from, to, err);
    coffer__free(scan.window);
    coffer__free(scan.block_part);
    return status ? status : coffer_source_intact(src, err);
}

/* The size that the payload needs, if a slot leads to it; the length in the slots may extend into the
 * metadata after it. */
static uint64_t payload_size(coffer_source *src, const coffer__pycauset_header *header,
                             const coffer_limits *limits)
{
    const int order[2] = { header->active, 1 - header->active };
    for (int i = 0; i < 2; i++) {
        const coffer__pycauset_slot *slot = &header->slots[order[i]];
        coffer__pycauset_tree tree = { .root = NULL };
        coffer_pycauset_info info;
        bool known = slot->fault == COFFER_OK &&
                     coffer__pycauset_read_block(&tree, src, slot->metadata_offset, slot->metadata_length,
                                                 limits, NULL) == COFFER_OK &&
                     coffer__pycauset_interpret(&info, tree.root, 0, NULL) == COFFER_OK &&
                     info.payload_needed <= slot->payload_length;
        coffer__pycauset_tree_free(&tree);
        if (known && info.type == COFFER_PYCAUSET_UNKNOWN)
            return coffer__pycauset_slot_payload(header, order[i]);
        if (known)
            return info.payload_needed;
    }
    return header->slots[header->active].payload_length;
}

/* Padding between blocks is shorter than their alignment. */
static uint64_t count_damaged(const coffer__pycauset_scan *scan, const coffer__pycauset_header *header,
                              uint64_t payload_end)
{
    uint64_t at = payload_end, end = payload_end, sum = 0;
    for (int i = 0; i < 2; i++) {
        const coffer__pycauset_slot *slot = &header->slots[i];
        if (slot->fault == COFFER_OK && slot->metadata_offset + slot->metadata_length > end)
            end = slot->metadata_offset + slot->metadata_length;
    }
    for (size_t i = 0; i <= scan->count && at < end; i++) {
        uint64_t begin = i < scan->count ? scan->items[i].offset : end;
        if (begin > at && begin - at >= COFFER__PYCAUSET_BLOCK_ALIGNMENT)
            sum += begin - at;
        if (i < scan->count && begin >= at)
            at = begin + scan->items[i].length;
    }
    return sum;
}

coffer_status coffer__pycauset_scan_blocks(coffer__pycauset_scan *out, coffer_source *src,
                                           const coffer__pycauset_header *header, const coffer_limits *limits,
                                           coffer_error *err)
{
    const coffer__pycauset_slot *slot = &header->slots[header->active];
    uint64_t payload_end = slot->payload_offset + payload_size(src, header, limits);
    coffer_status status = coffer__pycauset_scan_range(out, src, COFFER__PYCAUSET_HEADER_SIZE,
                                                       slot->payload_offset, limits, err);
    if (!status)
        status = coffer__pycauset_scan_range(out, src, payload_end, UINT64_MAX, limits, err);
    if (!status)
        out->damaged = count_damaged(out, header, payload_end);
    return status;
}

void coffer__pycauset_scan_free(coffer__pycauset_scan *scan)
{
    coffer__free(scan->items);
    *scan = (coffer__pycauset_scan){ .items = NULL };
}
