/* Rows of a payload: which bytes belong to them, and the way through the kernels. */
#include "base/checked.h"
#include "base/cpu.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "quant/quant.h"

/* Elements that go through the buffer of coffer__quant_read_rows at a time: a multiple of a super. */
#define PIECE_ELEMENTS ((uint64_t)65536)
/* Numbers on their way to a narrower type: they stay in the first cache. */
#define NARROW_ELEMENTS 2048

/* An output of this size is stored past the caches. */
#define STREAM_BYTES ((uint64_t)16 << 20)

const coffer__quant_kernels *coffer__quant_kernels_in_use(void)
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
    if (coffer__cpu() == COFFER__CPU_NEON)
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
    coffer__quant_decode_f32 decode = coffer__quant_kernels_in_use()->decode_f32[type->index];
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
    coffer__quant_kernels_in_use()->finish_stream();
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
    coffer__quant_kernels_in_use()->finish_stream();
    coffer__free(buffer);
    return status;
}
