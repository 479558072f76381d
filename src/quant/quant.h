/* The quantized types of a model container: where the parts of a payload lie, and how its rows become
 * numbers.
 *
 *   family   types         regions, each from a 64-byte boundary on
 *   blocks   q8 q4         f16 scale × rows·bpr | codes
 *   supers   k6 k4 k3 k2   f16 super-scale × rows·spr | u8 sub-scale × rows·bpr | codes
 *   whole    int8 int4     f32 scale | f32 zero point, of activations only | codes
 *
 *   bpr = ceil(cols / 32) blocks and spr = ceil(bpr / 8) supers a row. Codes are two's complement, least
 *   significant bit first; a row of blocks is padded to a whole one, the codes of int8 and int4 are dense. */
#ifndef COFFER_QUANT_QUANT_H
#define COFFER_QUANT_QUANT_H

#include "coffer/dtype.h"
#include "coffer/error.h"

#define COFFER__QUANT_BLOCK 32
#define COFFER__QUANT_SUPER 256
#define COFFER__QUANT_REGION_ALIGN 64

typedef enum coffer__quant_family {
    COFFER__QUANT_BLOCKS,
    COFFER__QUANT_SUPERS,
    COFFER__QUANT_WHOLE
} coffer__quant_family;

/* Places of the types in every table. */
enum {
    COFFER__QUANT_Q8,
    COFFER__QUANT_Q4,
    COFFER__QUANT_K6,
    COFFER__QUANT_K4,
    COFFER__QUANT_K3,
    COFFER__QUANT_K2,
    COFFER__QUANT_INT8,
    COFFER__QUANT_INT4,
    COFFER__QUANT_TYPE_COUNT
};

typedef struct coffer__quant_type {
    coffer_dtype dtype;
    coffer__quant_family family;
    uint8_t bits;                    /* of a code */
    uint16_t block_size, super_size; /* in elements, as QuantInfo has them; 0 for types without them */
    uint8_t index;                   /* of the row: kernels have a table of the same order */
} coffer__quant_type;

/* NULL for a type that is not quantized. */
const coffer__quant_type *coffer__quant_find_type(coffer_dtype dtype);

typedef enum coffer__quant_part {
    COFFER__QUANT_SCALES, /* or super-scales */
    COFFER__QUANT_SUBS,   /* sub-scales, or the zero point; empty where the type has none */
    COFFER__QUANT_CODES,
    COFFER__QUANT_PART_COUNT
} coffer__quant_part;

/* Bytes of a payload, counted from its start. */
typedef struct coffer__quant_region {
    uint64_t offset, size;
} coffer__quant_region;

typedef struct coffer__quant_layout {
    const coffer__quant_type *type;
    uint64_t rows, cols; /* cols : the product of all dims but the first */
    uint64_t blocks_per_row, supers_per_row;
    coffer__quant_region regions[COFFER__QUANT_PART_COUNT];
    uint64_t size; /* of the payload */
} coffer__quant_layout;

/* Computes the layout of a tensor of that type and shape. activations : int8 and int4 with a zero point.
 * COFFER_E_BAD_VALUE when the type does not allow the shape or activations, COFFER_E_SIZE_MISMATCH when
 * the payload does not fit into 64 bits. A tensor without elements has an empty payload. */
coffer_status coffer__quant_plan(coffer__quant_layout *out, coffer_dtype dtype, uint32_t rank,
                                 const uint64_t *dims, bool activations, coffer_error *err);

/* ---- Decoding ---- */

/* Rows [first, first + count), count × cols values, from a whole payload in memory. The most negative code
 * and the upper bits of a sub-scale, which no writer uses, count as the plain numbers that they are. */
void coffer__quant_decode_rows(float *out, const coffer__quant_layout *layout, const uint8_t *payload,
                               uint64_t first, uint64_t count);

/* The same as another plain type. */
void coffer__quant_decode_rows_as(void *out, coffer_dtype as, const coffer__quant_layout *layout,
                                  const uint8_t *payload, uint64_t first, uint64_t count);

/* The bytes of each region that belong to rows [first, first + count); count and the columns are not 0. */
void coffer__quant_locate_rows(coffer__quant_region out[COFFER__QUANT_PART_COUNT],
                               const coffer__quant_layout *layout, uint64_t first, uint64_t count);

/* Reads bytes of the payload. */
typedef coffer_status (*coffer__quant_read)(void *context, void *out, uint64_t offset, size_t len,
                                            coffer_error *err);
/* The same from a payload that is read piece by piece, through a small buffer; only what belongs to the rows
 * is read. */
coffer_status coffer__quant_read_rows(float *out, const coffer__quant_layout *layout, uint64_t first,
                                      uint64_t count, coffer__quant_read read, void *context,
                                      coffer_error *err);

/* ---- Kernels ---- */

/* A run of elements of one row. Of blocks and supers it begins at a block, or super, of its own, and each
 * pointer is at what belongs to that one. */
typedef struct coffer__quant_run {
    const uint8_t *parts[COFFER__QUANT_PART_COUNT]; /* NULL for an empty one */
    size_t skip; /* codes in the first byte that belong to elements before the run: int4 alone */
    size_t elements;
    bool stream; /* there is so much of it that it should not pass through the cache */
} coffer__quant_run;

/* A whole row of a payload in memory; it has columns. */
coffer__quant_run coffer__quant_run_of_row(const coffer__quant_layout *layout, const uint8_t *payload,
                                           uint64_t row);

/* Moves a run from a whole row to the next one. */
static inline void coffer__quant_next_row(coffer__quant_run *run, const coffer__quant_layout *layout)
{
    const coffer__quant_type *type = layout->type;
    size_t blocks = (size_t)layout->blocks_per_row, codes = run->skip + run->elements;
    switch (type->family) {
    case COFFER__QUANT_BLOCKS:
        run->parts[COFFER__QUANT_SCALES] += 2 * blocks;
        break;
    case COFFER__QUANT_SUPERS:
        run->parts[COFFER__QUANT_SCALES] += 2 * (size_t)layout->supers_per_row;
        run->parts[COFFER__QUANT_SUBS] += blocks;
        break;
    case COFFER__QUANT_WHOLE:
        run->parts[COFFER__QUANT_CODES] += type->bits == 4 ? codes / 2 : codes;
        run->skip = type->bits == 4 ? codes % 2 : 0;
        return;
    }
    run->parts[COFFER__QUANT_CODES] += blocks * (type->bits * COFFER__QUANT_BLOCK / 8u);
}

typedef void (*coffer__quant_decode_f32)(float *out, const coffer__quant_run *run);

/* One table for each instruction set, indexed by coffer__quant_type.index. */
typedef struct coffer__quant_kernels {
    coffer__quant_decode_f32 decode_f32[COFFER__QUANT_TYPE_COUNT];
    void (*finish_stream)(void); /* after the last run that streams: others see it from here on */
} coffer__quant_kernels;

/* The reference: all other sets must equal it bit for bit. */
extern const coffer__quant_kernels coffer__quant_reference;
extern const coffer__quant_kernels coffer__quant_avx2;
extern const coffer__quant_kernels coffer__quant_avx512;
extern const coffer__quant_kernels coffer__quant_neon;
/* The factor of a block's codes. */
float coffer__quant_block_scale(const coffer__quant_run *run, size_t block, bool supers);
/* Of int8 and int4. Weights have no zero point; taking 0 away changes no code. */
float coffer__quant_whole_scale(const coffer__quant_run *run);
float coffer__quant_zero_point(const coffer__quant_run *run);

/* Eight codes, which fill as many bytes as a code has bits. */
static inline uint64_t coffer__quant_load_eight(const uint8_t *codes, unsigned bits)
{
    uint64_t packed = 0;
    for (unsigned i = 0; i < bits; i++)
        packed |= (uint64_t)codes[i] << (8 * i);
    return packed;
}

static inline void coffer__quant_unpack_eight(int8_t out[8], const uint8_t *codes, unsigned bits)
{
    uint64_t packed = coffer__quant_load_eight(codes, bits);
    for (unsigned i = 0; i < 8; i++) {
        uint8_t at_top = (uint8_t)((packed >> (i * bits)) << (8 - bits));
        out[i] = (int8_t)((int8_t)at_top >> (8 - bits));
    }
}

#endif
