/* Products of quantized rows with vectors that are rounded to 8 bits. A block of 32 numbers becomes a scale
 * s = max|x| / 127 and whole numbers q = x / s; codes times q are summed in int32, which is exact, and
 *
 *   y = Σ over blocks  float(Σ code·q) · (factor of the block · s)
 *
 * in float32: each product and each sum is rounded once, in an order that is the same for every instruction
 * set. A row with one vector: sixteen sums, block b adds to sum b mod 16, and then the upper half is added to
 * the lower one until one is left. Rows with many vectors: one sum, block after block. */
#ifndef COFFER_QUANT_ROUNDED_H
#define COFFER_QUANT_ROUNDED_H

#include "quant/quant_product.h"

/* Elements of a row that kernels take at a time; rounded vectors are padded to whole parts with zeros. */
#define COFFER__QUANT_PART 512
#define COFFER__QUANT_PART_BLOCKS (COFFER__QUANT_PART / COFFER__QUANT_BLOCK)

/* Rounded vectors side by side, so that one register has the same four numbers of each: of vector v of n, the
 * numbers from 4k on are at codes[4 · (k · n + v)], block b has scales[b · n + v] and sums[b · n + v]. A
 * single vector has the order that the kernel of the type wants. */
typedef struct coffer__quant_panel {
    int8_t *codes;
    float *scales;
    int32_t *sums; /* of the codes of a block */
    float *totals; /* of each vector as it is rounded: what a zero point is multiplied with */
} coffer__quant_panel;

/* Rows that a thread takes at a time. Their codes, a part at a time, stay in the cache for all vectors. */
#define COFFER__QUANT_ROUNDED_ROWS 64
/* Vectors whose sums a thread keeps. */
#define COFFER__QUANT_ROUNDED_VECTORS 512

/* ---- Kernels ---- */

typedef struct coffer__quant_rounded {
    size_t panel; /* vectors of a panel: 4 to 16 */
    size_t rows;  /* of a tile: divides COFFER__QUANT_ROUNDED_ROWS */
    void (*round)(const coffer__quant_panel *out, size_t vector, size_t vectors, const float *x,
                  size_t count);
    /* Puts parts of a single vector into the order that `dot` wants; NULL where that is their own. */
    void (*fold[COFFER__QUANT_TYPE_COUNT])(int8_t *codes, size_t parts);
    float (*dot[COFFER__QUANT_TYPE_COUNT])(const coffer__quant_run *run, const coffer__quant_panel *x);
    /* Part `part` of a row: a byte for each code, as `tile` wants them, and the factor of each block. Past
     * the end of the row factors are 0. */
    void (*unpack[COFFER__QUANT_TYPE_COUNT])(uint8_t *codes, float *factors, const coffer__quant_run *run,
                                             size_t part);
    /* Adds the products of a part to the sums of `rows` rows with a panel. */
    void (*tile)(float *sums, const uint8_t *codes, const float *factors, const coffer__quant_panel *x,
                 size_t part);
} coffer__quant_rounded;

extern const coffer__quant_rounded coffer__quant_rounded_generic;
extern const coffer__quant_rounded coffer__quant_rounded_avx2;
extern const coffer__quant_rounded coffer__quant_rounded_avx512;
extern const coffer__quant_rounded coffer__quant_rounded_neon;
extern const coffer__quant_rounded coffer__quant_rounded_neon_dot;
/* Those for this processor. */
const coffer__quant_rounded *coffer__quant_rounded_in_use(void);

/* ---- Products ---- */

/* Bytes of a panel with that number of vectors; false when that does not fit into 64 bits. */
bool coffer__quant_panel_size(uint64_t *out, const coffer__quant_layout *layout, size_t vectors);
/* memory : aligned to 64 bytes. */
coffer__quant_panel coffer__quant_panel_at(void *memory, const coffer__quant_layout *layout, size_t vectors);

/* Rounds a vector of `cols` numbers into place `vector` of `vectors`. x : NULL for zeros. */
void coffer__quant_round(const coffer__quant_panel *out, const coffer__quant_rounded *kernels,
                         const coffer__quant_layout *layout, size_t vector, size_t vectors, const float *x);

/* A product of some rows with panels. */
typedef struct coffer__quant_tile {
    const coffer__quant_rounded *kernels;
    const coffer__quant_layout *layout;
    const uint8_t *payload;
    const coffer__quant_panel *panels;
    size_t vectors;        /* in all: at most COFFER__QUANT_ROUNDED_VECTORS */
    uint64_t first, count; /* rows: at most COFFER__QUANT_ROUNDED_ROWS */
} coffer__quant_tile;

/* Rows times vectors, each of which is a panel. */
void coffer__quant_matvec_rounded(const coffer__quant_products *out, const coffer__quant_tile *tile);

/* ---- Many vectors ---- */

typedef struct coffer__quant_room {
    _Alignas(64) uint8_t codes[COFFER__QUANT_ROUNDED_ROWS][COFFER__QUANT_PART];
    float factors[COFFER__QUANT_ROUNDED_ROWS][COFFER__QUANT_PART_BLOCKS];
    float sums[COFFER__QUANT_ROUNDED_ROWS][COFFER__QUANT_ROUNDED_VECTORS];
} coffer__quant_room;

/* Rows times panels as wide as the kernels want them. */
void coffer__quant_matmul_rounded(const coffer__quant_products *out, const coffer__quant_tile *tile,
                                  coffer__quant_room *room);

#endif
