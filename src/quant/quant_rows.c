/* Rows of a payload: which bytes belong to them, and the way through the kernels. */
#include "base/checked.h"
#include "base/cpu.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "quant/quant.h"

#include <inttypes.h>

/* The table of quantized types, and the plan of a payload. */

static const coffer__quant_type types[COFFER__QUANT_TYPE_COUNT] = {
    { COFFER_DTYPE_Q8, COFFER__QUANT_BLOCKS, 8, COFFER__QUANT_BLOCK, 0, 0 },
    { COFFER_DTYPE_Q4, COFFER__QUANT_BLOCKS, 4, COFFER__QUANT_BLOCK, 0, 1 },
    { COFFER_DTYPE_K6, COFFER__QUANT_SUPERS, 6, COFFER__QUANT_BLOCK, COFFER__QUANT_SUPER, 2 },
    { COFFER_DTYPE_K4, COFFER__QUANT_SUPERS, 4, COFFER__QUANT_BLOCK, COFFER__QUANT_SUPER, 3 },
    { COFFER_DTYPE_K3, COFFER__QUANT_SUPERS, 3, COFFER__QUANT_BLOCK, COFFER__QUANT_SUPER, 4 },
    { COFFER_DTYPE_K2, COFFER__QUANT_SUPERS, 2, COFFER__QUANT_BLOCK, COFFER__QUANT_SUPER, 5 },
    { COFFER_DTYPE_INT8, COFFER__QUANT_WHOLE, 8, 0, 0, 6 },
    { COFFER_DTYPE_INT4, COFFER__QUANT_WHOLE, 4, 0, 0, 7 },
};

const coffer__quant_type *coffer__quant_find_type(coffer_dtype dtype)
{
    for (size_t i = 0; i < COFFER__QUANT_TYPE_COUNT; i++) {
        if (types[i].dtype == dtype)
            return &types[i];
    }
    return NULL;
}

/* Rows and columns; false when the columns overflow. Up to one dimension there is a single row. */
static bool fold_shape(coffer__quant_layout *layout, uint32_t rank, const uint64_t *dims)
{
    layout->rows = rank > 1 ? dims[0] : 1;
    layout->cols = 1;
    for (uint32_t i = rank > 1; i < rank; i++) {
        if (!coffer__mul_u64(&layout->cols, layout->cols, dims[i]))
            return false;
    }
    return true;
}

/* Sizes of the regions of a tensor that has elements; false on overflow. */
static bool measure_regions(coffer__quant_layout *layout, bool activations)
{
    uint64_t *scales = &layout->regions[COFFER__QUANT_SCALES].size;
    uint64_t *subs = &layout->regions[COFFER__QUANT_SUBS].size;
    uint64_t *codes = &layout->regions[COFFER__QUANT_CODES].size;
    uint64_t blocks, elements;

    if (layout->type->family == COFFER__QUANT_WHOLE) {
        if (!coffer__mul_u64(&elements, layout->rows, layout->cols))
            return false;
        *scales = sizeof(float);
        *subs = activations ? sizeof(float) : 0;
        *codes = layout->type->bits == 8 ? elements : coffer__divide_up(elements, 2);
        return true;
    }
    layout->blocks_per_row = coffer__divide_up(layout->cols, COFFER__QUANT_BLOCK);
    if (!coffer__mul_u64(&blocks, layout->rows, layout->blocks_per_row) ||
        !coffer__mul_u64(codes, blocks, layout->type->bits * COFFER__QUANT_BLOCK / 8u))
        return false;
    if (layout->type->family == COFFER__QUANT_BLOCKS)
        return coffer__mul_u64(scales, blocks, sizeof(uint16_t));
    layout->supers_per_row =
        coffer__divide_up(layout->blocks_per_row, COFFER__QUANT_SUPER / COFFER__QUANT_BLOCK);
    *subs = blocks;
    *scales = layout->rows * layout->supers_per_row * sizeof(uint16_t); /* fewer than the codes, which fit */
    return true;
}

static bool place_regions(coffer__quant_layout *layout)
{
    uint64_t end = 0;
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++) {
        coffer__quant_region *region = &layout->regions[i];
        if (!region->size)
            continue;
        if (!coffer__align_up(&region->offset, end, COFFER__QUANT_REGION_ALIGN) ||
            !coffer__add_u64(&end, region->offset, region->size))
            return false;
    }
    layout->size = end;
    return true;
}

coffer_status coffer__quant_plan(coffer__quant_layout *out, coffer_dtype dtype, uint32_t rank,
                                 const uint64_t *dims, bool activations, coffer_error *err)
{
    coffer__quant_layout layout = { .type = coffer__quant_find_type(dtype) };
    const char *name = coffer_dtype_name(dtype);
    if (!layout.type)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "%s is not a quantized type", name);
    if (layout.type->family != COFFER__QUANT_WHOLE && rank != 2)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "a %s tensor has 2 dimensions, not %" PRIu32, name, rank);
    if (layout.type->family != COFFER__QUANT_WHOLE && activations)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "%s is for weights only", name);
    bool fits = fold_shape(&layout, rank, dims);
    if (fits && layout.rows && layout.cols)
        fits = measure_regions(&layout, activations) && place_regions(&layout);
    if (!fits)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "a %s tensor of %" PRIu64 " rows of %" PRIu64
                            " columns does not fit into 64 bits",
                            name, layout.rows, layout.cols);
    *out = layout;
    return COFFER_OK;
}

/* Elements that go through the buffer of coffer__quant_read_rows at a time: a multiple of a super. */
#define PIECE_ELEMENTS ((uint64_t)65536)
/* Numbers on their way to a narrower type: they stay in the first cache. */
#define NARROW_ELEMENTS 2048

/* An output of this size is stored past the caches. */
#define STREAM_BYTES ((uint64_t)16 << 20)

/* The set for this processor. */
static const coffer__quant_kernels *quant_kernels_in_use(void)
{
#if defined(__x86_64__)
    switch (coffer__cpu()) {
    case COFFER__CPU_AVX512:
        return &coffer__quant_avx512;
    case COFFER__CPU_AVX2:
        return &coffer__quant_avx2;
    default:
        break;
    }
#elif defined(__aarch64__)
    if (coffer__cpu() >= COFFER__CPU_NEON)
        return &coffer__quant_neon;
#endif
    return &coffer__quant_reference;
}

/* Some rows from column 0 on, whole, or a part of one row that begins at a super. */
typedef struct quant_piece {
    uint64_t row, rows, col;
    uint64_t elements; /* of each row */
} quant_piece;

static uint64_t block_bytes(const coffer__quant_type *type)
{
    return type->bits * COFFER__QUANT_BLOCK / 8u;
}

static coffer__quant_region region_at(const coffer__quant_layout *layout, coffer__quant_part part,
                                      uint64_t first, uint64_t size)
{
    return (coffer__quant_region){ layout->regions[part].offset + first, size };
}

/* The bytes of each region that belong to the piece: rows follow each other, so they are one range. */
static void locate(coffer__quant_region out[COFFER__QUANT_PART_COUNT], const coffer__quant_layout *layout,
                   const quant_piece *piece)
{
    uint64_t before = piece->rows - 1, bytes = block_bytes(layout->type);
    uint64_t block = piece->row * layout->blocks_per_row + piece->col / COFFER__QUANT_BLOCK;
    uint64_t blocks =
        before * layout->blocks_per_row + coffer__divide_up(piece->elements, COFFER__QUANT_BLOCK);
    uint64_t super = piece->row * layout->supers_per_row + piece->col / COFFER__QUANT_SUPER;
    uint64_t supers =
        before * layout->supers_per_row + coffer__divide_up(piece->elements, COFFER__QUANT_SUPER);
    uint64_t first = piece->row * layout->cols + piece->col;
    uint64_t end = first + before * layout->cols + piece->elements;

    out[COFFER__QUANT_SCALES] = layout->regions[COFFER__QUANT_SCALES];
    out[COFFER__QUANT_SUBS] = layout->regions[COFFER__QUANT_SUBS];
    switch (layout->type->family) {
    case COFFER__QUANT_BLOCKS:
        out[COFFER__QUANT_SCALES] = region_at(layout, COFFER__QUANT_SCALES, 2 * block, 2 * blocks);
        out[COFFER__QUANT_CODES] = region_at(layout, COFFER__QUANT_CODES, block * bytes, blocks * bytes);
        break;
    case COFFER__QUANT_SUPERS:
        out[COFFER__QUANT_SCALES] = region_at(layout, COFFER__QUANT_SCALES, 2 * super, 2 * supers);
        out[COFFER__QUANT_SUBS] = region_at(layout, COFFER__QUANT_SUBS, block, blocks);
        out[COFFER__QUANT_CODES] = region_at(layout, COFFER__QUANT_CODES, block * bytes, blocks * bytes);
        break;
    case COFFER__QUANT_WHOLE:
        if (layout->type->bits == 4) {
            first /= 2;
            end = coffer__divide_up(end, 2);
        }
        out[COFFER__QUANT_CODES] = region_at(layout, COFFER__QUANT_CODES, first, end - first);
        break;
    }
}

void coffer__quant_locate_rows(coffer__quant_region out[COFFER__QUANT_PART_COUNT],
                               const coffer__quant_layout *layout, uint64_t first, uint64_t count)
{
    quant_piece rows = { .row = first, .rows = count, .elements = layout->cols };
    locate(out, layout, &rows);
}

/* Codes in the first byte of a row that belong to the row before. */
static size_t codes_before(const coffer__quant_layout *layout, uint64_t row, uint64_t col)
{
    bool halves = layout->type->family == COFFER__QUANT_WHOLE && layout->type->bits == 4;
    return halves ? (size_t)((row * layout->cols + col) % 2) : 0;
}

coffer__quant_run coffer__quant_run_of_row(const coffer__quant_layout *layout, const uint8_t *payload,
                                           uint64_t row)
{
    quant_piece piece = { .row = row, .rows = 1, .elements = layout->cols };
    coffer__quant_run run = { .elements = (size_t)layout->cols, .skip = codes_before(layout, row, 0) };
    coffer__quant_region regions[COFFER__QUANT_PART_COUNT];
    locate(regions, layout, &piece);
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++)
        run.parts[i] = regions[i].size ? payload + regions[i].offset : NULL;
    return run;
}

/* Whether one row follows the other in every region as the elements of one row do. */
static bool rows_are_one_run(const coffer__quant_layout *layout)
{
    switch (layout->type->family) {
    case COFFER__QUANT_BLOCKS:
        return layout->cols % COFFER__QUANT_BLOCK == 0;
    case COFFER__QUANT_SUPERS:
        return layout->cols % COFFER__QUANT_SUPER == 0;
    default:
        return true;
    }
}

/* parts : the bytes that `locate` names. stream : the piece belongs to an output that is past every cache by
 * the time it is read. */
static void decode_piece(float *out, const coffer__quant_layout *layout, const quant_piece *piece,
                         const uint8_t *const parts[COFFER__QUANT_PART_COUNT], bool stream)
{
    const coffer__quant_type *type = layout->type;
    coffer__quant_decode_f32 decode = quant_kernels_in_use()->decode_f32[type->index];
    coffer__quant_run run = { .elements = (size_t)piece->elements };
    uint64_t scales = type->family == COFFER__QUANT_SUPERS ? layout->supers_per_row : layout->blocks_per_row;

    run.stream = stream;
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++)
        run.parts[i] = parts[i];
    run.skip = codes_before(layout, piece->row, piece->col);
    if (rows_are_one_run(layout)) {
        run.elements = (size_t)((piece->rows - 1) * layout->cols + piece->elements);
        decode(out, &run);
        return;
    }
    for (uint64_t row = 0; row < piece->rows; row++, out += piece->elements) {
        run.parts[COFFER__QUANT_SCALES] = parts[COFFER__QUANT_SCALES] + 2 * row * scales;
        if (type->family == COFFER__QUANT_SUPERS)
            run.parts[COFFER__QUANT_SUBS] = parts[COFFER__QUANT_SUBS] + row * layout->blocks_per_row;
        run.parts[COFFER__QUANT_CODES] =
            parts[COFFER__QUANT_CODES] + row * layout->blocks_per_row * block_bytes(type);
        decode(out, &run);
    }
}

/* As many whole rows as `most` elements are, padded as they are in the payload, or the next part of a row
 * that is too long. most : a multiple of a super. */
static quant_piece next_piece(const coffer__quant_layout *layout, uint64_t row, uint64_t rows_left,
                              uint64_t col, uint64_t most)
{
    uint64_t padded = coffer__divide_up(layout->cols, COFFER__QUANT_SUPER) * COFFER__QUANT_SUPER;
    uint64_t left = layout->cols - col, rows = most / padded;
    if (col || !rows)
        return (quant_piece){ row, 1, col, left < most ? left : most };
    return (quant_piece){ row, rows < rows_left ? rows : rows_left, 0, layout->cols };
}

/* Steps past a piece: false when `end` is reached. */
static bool step_past(uint64_t *row, uint64_t *col, const quant_piece *piece,
                      const coffer__quant_layout *layout, uint64_t end)
{
    *col += piece->elements;
    if (*col == layout->cols) {
        *row += piece->rows;
        *col = 0;
    }
    return *row < end;
}

static bool is_streamed(uint64_t rows, uint64_t columns)
{
    return rows >= STREAM_BYTES / sizeof(float) / columns;
}

static void decode_from_memory(float *out, const coffer__quant_layout *layout, const uint8_t *payload,
                               const quant_piece *piece)
{
    coffer__quant_region regions[COFFER__QUANT_PART_COUNT];
    const uint8_t *parts[COFFER__QUANT_PART_COUNT];
    locate(regions, layout, piece);
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++)
        parts[i] = regions[i].size ? payload + regions[i].offset : NULL;
    decode_piece(out, layout, piece, parts, is_streamed(piece->rows, piece->elements));
}

void coffer__quant_decode_rows(float *out, const coffer__quant_layout *layout, const uint8_t *payload,
                               uint64_t first, uint64_t count)
{
    quant_piece rows = { .row = first, .rows = count, .elements = layout->cols };
    if (!count || !layout->cols)
        return;
    decode_from_memory(out, layout, payload, &rows);
    quant_kernels_in_use()->finish_stream();
}

void coffer__quant_decode_rows_as(void *out, coffer_dtype as, const coffer__quant_layout *layout,
                                  const uint8_t *payload, uint64_t first, uint64_t count)
{
    uint64_t row = first, end = first + count, col = 0;
    float numbers[NARROW_ELEMENTS];
    uint8_t *dest = out;
    for (bool more = count > 0 && layout->cols > 0; more;) {
        quant_piece piece = next_piece(layout, row, end - row, col, NARROW_ELEMENTS);
        size_t elements = (size_t)(piece.rows * piece.elements);
        decode_from_memory(numbers, layout, payload, &piece);
        coffer__elements_convert(dest, as, numbers, COFFER_DTYPE_F32, elements);
        dest += elements * coffer_dtype_size(as);
        more = step_past(&row, &col, &piece, layout, end);
    }
}

/* Where each part of a piece goes in the buffer: the codes take at most a byte an element. */
#define SUBS_AT (PIECE_ELEMENTS / COFFER__QUANT_BLOCK * 2)
#define CODES_AT (SUBS_AT + PIECE_ELEMENTS / COFFER__QUANT_BLOCK)
#define BUFFER_SIZE (CODES_AT + PIECE_ELEMENTS)

static coffer_status read_piece(float *out, uint8_t *buffer, const coffer__quant_layout *layout,
                                const quant_piece *piece, bool stream, coffer__quant_read read, void *context,
                                coffer_error *err)
{
    static const size_t places[COFFER__QUANT_PART_COUNT] = { 0, SUBS_AT, CODES_AT };
    coffer__quant_region regions[COFFER__QUANT_PART_COUNT];
    const uint8_t *parts[COFFER__QUANT_PART_COUNT] = { NULL };
    locate(regions, layout, piece);
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++) {
        if (!regions[i].size)
            continue;
        coffer_status status =
            read(context, buffer + places[i], regions[i].offset, (size_t)regions[i].size, err);
        if (status)
            return status;
        parts[i] = buffer + places[i];
    }
    decode_piece(out, layout, piece, parts, stream);
    return COFFER_OK;
}

coffer_status coffer__quant_read_rows(float *out, const coffer__quant_layout *layout, uint64_t first,
                                      uint64_t count, coffer__quant_read read, void *context,
                                      coffer_error *err)
{
    uint64_t row = first, end = first + count, col = 0;
    coffer_status status = COFFER_OK;
    uint8_t *buffer;
    if (!count || !layout->cols)
        return COFFER_OK;
    buffer = coffer__malloc(BUFFER_SIZE);
    if (!buffer)
        return coffer__fail_no_memory(err, BUFFER_SIZE);
    for (bool more = true; more && !status;) {
        quant_piece piece = next_piece(layout, row, end - row, col, PIECE_ELEMENTS);
        status =
            read_piece(out, buffer, layout, &piece, is_streamed(count, layout->cols), read, context, err);
        out += piece.rows * piece.elements;
        more = step_past(&row, &col, &piece, layout, end);
    }
    quant_kernels_in_use()->finish_stream();
    coffer__free(buffer);
    return status;
}
