#include "formats/mcf/mcf_check.h"

#include "base/bytes.h"

#define SUB_SCALE_MAX 63

void coffer__mcf_faults_init(coffer__mcf_faults *faults)
{
    for (int i = 0; i < COFFER__MCF_FAULT_COUNT; i++) {
        atomic_init(&faults->count[i], 0);
        atomic_init(&faults->first[i], UINT64_MAX);
    }
}

static void add(coffer__mcf_faults *faults, coffer__mcf_fault kind, uint64_t count, uint64_t at)
{
    uint_least64_t first;
    if (count == 0)
        return;
    first = atomic_load(&faults->first[kind]);
    atomic_fetch_add(&faults->count[kind], count);
    while (at < first && !atomic_compare_exchange_weak(&faults->first[kind], &first, at))
        ;
}

uint64_t coffer__mcf_scan_pieces(const coffer__quant_layout *layout)
{
    uint64_t codes = layout->regions[COFFER__QUANT_CODES].size;
    return 1 + codes / COFFER__MCF_SCAN_PIECE + (codes % COFFER__MCF_SCAN_PIECE != 0);
}

/* ---- Regions before the codes ---- */

static void scan_scales(coffer__mcf_faults *faults, const coffer__quant_layout *layout, const uint8_t *bytes,
                        size_t len, uint64_t at)
{
    bool whole = layout->type->family == COFFER__QUANT_WHOLE; /* one f32, else f16 */
    size_t size = whole ? sizeof(uint32_t) : sizeof(uint16_t);
    for (size_t i = 0; i + size <= len; i += size) {
        bool finite = whole ? (coffer__load_u32(bytes + i) & 0x7f800000u) != 0x7f800000u
                            : (coffer__load_u16(bytes + i) & 0x7c00u) != 0x7c00u;
        add(faults, COFFER__MCF_FAULT_SCALE, !finite, at + i);
    }
}

static void scan_subs(coffer__mcf_faults *faults, const coffer__quant_layout *layout, const uint8_t *bytes,
                      size_t len, uint64_t at)
{
    if (layout->type->family == COFFER__QUANT_WHOLE) { /* the zero point, a number like the scale */
        scan_scales(faults, layout, bytes, len, at);
        return;
    }
    for (size_t i = 0; i < len; i++)
        add(faults, COFFER__MCF_FAULT_SUB, bytes[i] > SUB_SCALE_MAX, at + i);
}

static void scan_padding(coffer__mcf_faults *faults, const coffer__quant_layout *layout, const uint8_t *bytes,
                         size_t len, uint64_t at)
{
    (void)layout;
    for (size_t i = 0; i < len; i++)
        add(faults, COFFER__MCF_FAULT_PADDING, bytes[i] != 0, at + i);
}

typedef void (*scan_bytes)(coffer__mcf_faults *faults, const coffer__quant_layout *layout,
                           const uint8_t *bytes, size_t len, uint64_t at);

static coffer_status scan_range(coffer__mcf_faults *faults, coffer_source *src, uint64_t offset,
                                const coffer__quant_layout *layout, uint64_t from, uint64_t to,
                                scan_bytes scan, uint8_t *scratch, coffer_error *err)
{
    while (from < to) {
        size_t n = to - from < COFFER__MCF_SCAN_PIECE ? (size_t)(to - from) : (size_t)COFFER__MCF_SCAN_PIECE;
        coffer_status status = coffer_source_read_at(scratch, src, offset + from, n, err);
        if (status)
            return status;
        scan(faults, layout, scratch, n, from);
        from += n;
    }
    return COFFER_OK;
}

static coffer_status scan_front(coffer__mcf_faults *faults, coffer_source *src, uint64_t offset,
                                const coffer__quant_layout *layout, uint8_t *scratch, coffer_error *err)
{
    const coffer__quant_region *scales = &layout->regions[COFFER__QUANT_SCALES];
    const coffer__quant_region *subs = &layout->regions[COFFER__QUANT_SUBS];
    const coffer__quant_region *codes = &layout->regions[COFFER__QUANT_CODES];
    uint64_t end = scales->offset + scales->size;
    coffer_status status =
        scan_range(faults, src, offset, layout, scales->offset, end, scan_scales, scratch, err);
    if (status == COFFER_OK && subs->size > 0) {
        status = scan_range(faults, src, offset, layout, end, subs->offset, scan_padding, scratch, err);
        end = subs->offset + subs->size;
        if (status == COFFER_OK)
            status = scan_range(faults, src, offset, layout, subs->offset, end, scan_subs, scratch, err);
    }
    return status ? status
                  : scan_range(faults, src, offset, layout, end, codes->offset, scan_padding, scratch, err);
}

/* ---- Codes ---- */

/* Codes of a width, as many as fit a word of whole bytes: the highest bit of each, and the bits below it. */
typedef struct code_masks {
    size_t step; /* bytes */
    uint64_t high, low;
} code_masks;

static code_masks masks_of(unsigned bits)
{
    code_masks masks = { bits == 6 || bits == 3 ? 6 : 8, 0, 0 };
    for (unsigned at = 0; at < 8 * masks.step; at += bits) {
        masks.high |= UINT64_C(1) << (at + bits - 1);
        masks.low |= ((UINT64_C(1) << (bits - 1)) - 1) << at;
    }
    return masks;
}

/* The highest bit set and no other. bytes may be read up to 8 from the last step. */
static void scan_most_negative(coffer__mcf_faults *faults, const uint8_t *bytes, size_t len, unsigned bits,
                               uint64_t at)
{
    code_masks masks = masks_of(bits);
    uint64_t found = 0, first = UINT64_MAX;
    for (size_t i = 0; i < len; i += masks.step) {
        uint64_t word = coffer__load_u64(bytes + i);
        uint64_t hit = word & masks.high & ~((word & masks.low) + masks.low);
        if (hit != 0) {
            found += (uint64_t)__builtin_popcountll(hit);
            first = first == UINT64_MAX ? at + i : first;
        }
    }
    add(faults, COFFER__MCF_FAULT_CODE, found, first);
}

/* Whether the bits of a block from one on are all 0. */
static bool is_clear(const uint8_t *block, size_t from_bit, size_t end_bit)
{
    size_t byte = from_bit / 8;
    if (from_bit % 8 != 0 && block[byte++] >> (from_bit % 8) != 0)
        return false;
    for (; byte < end_bit / 8; byte++) {
        if (block[byte] != 0)
            return false;
    }
    return true;
}

/* The last block of every row that ends in the piece. */
static void scan_tails(coffer__mcf_faults *faults, const coffer__quant_layout *layout, const uint8_t *bytes,
                       size_t len, uint64_t codes_at, uint64_t begin)
{
    size_t used = (size_t)(layout->cols % COFFER__QUANT_BLOCK), bits = layout->type->bits;
    size_t block_bytes = COFFER__QUANT_BLOCK * bits / 8;
    uint64_t per_row = layout->blocks_per_row, first = begin / block_bytes;
    uint64_t last = first / per_row * per_row + per_row - 1; /* of the row that `first` is in */
    if (used == 0)
        return;
    for (; (last - first + 1) * block_bytes <= len; last += per_row) {
        const uint8_t *block = bytes + (size_t)(last - first) * block_bytes;
        add(faults, COFFER__MCF_FAULT_TAIL, !is_clear(block, used * bits, COFFER__QUANT_BLOCK * bits),
            codes_at + last * block_bytes);
    }
}

static void scan_last_half(coffer__mcf_faults *faults, const coffer__quant_layout *layout,
                           const uint8_t *bytes, size_t len, uint64_t end)
{
    bool odd = layout->type->dtype == COFFER_DTYPE_INT4 && layout->rows % 2 == 1 && layout->cols % 2 == 1;
    if (odd && end == layout->size)
        add(faults, COFFER__MCF_FAULT_HALF, bytes[len - 1] >> 4 != 0, end - 1);
}

coffer_status coffer__mcf_scan_piece(coffer__mcf_faults *faults, coffer_source *src, uint64_t offset,
                                     const coffer__quant_layout *layout, uint64_t piece, uint8_t *scratch,
                                     coffer_error *err)
{
    const coffer__quant_region *codes = &layout->regions[COFFER__QUANT_CODES];
    uint64_t begin;
    coffer_status status;
    size_t len;
    if (piece == 0)
        return scan_front(faults, src, offset, layout, scratch, err);
    begin = (piece - 1) * COFFER__MCF_SCAN_PIECE;
    len = codes->size - begin < COFFER__MCF_SCAN_PIECE ? (size_t)(codes->size - begin)
                                                       : (size_t)COFFER__MCF_SCAN_PIECE;
    status = coffer_source_read_at(scratch, src, offset + codes->offset + begin, len, err);
    if (status)
        return status;
    memset(scratch + len, 0, 8);
    if (layout->type->family == COFFER__QUANT_WHOLE)
        scan_last_half(faults, layout, scratch, len, codes->offset + begin + len);
    else
        scan_tails(faults, layout, scratch, len, codes->offset, begin);
    scan_most_negative(faults, scratch, len, layout->type->bits, codes->offset + begin);
    return COFFER_OK;
}
