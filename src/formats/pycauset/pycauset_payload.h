/* Where in the payload an element is, and how a stored row becomes values. */
#ifndef COFFER_FORMATS_PYCAUSET_PAYLOAD_H
#define COFFER_FORMATS_PYCAUSET_PAYLOAD_H

#include "base/cpu.h"
#include "base/elements_kernels.h"
#include "formats/pycauset/pycauset_private.h"

#include <stddef.h>
#include <stdint.h>

/* Rows of bits as rows of bytes and back, for each instruction set, and what is done to rows on their way
 * out. */
typedef struct coffer__pycauset_bit_kernels {
    /* One byte of 0 or 1 for each of `words` × 64 bits. */
    void (*expand)(uint8_t *out, const uint8_t *bits, size_t words);
    /* The other way: any byte but 0 is a 1. */
    void (*pack)(uint8_t *bits, const uint8_t *bytes, size_t words);
} coffer__pycauset_bit_kernels;

extern const coffer__pycauset_bit_kernels coffer__pycauset_bits_generic;
#if defined(__x86_64__)
extern const coffer__pycauset_bit_kernels coffer__pycauset_bits_avx2, coffer__pycauset_bits_avx512;
#elif defined(__aarch64__)
extern const coffer__pycauset_bit_kernels coffer__pycauset_bits_neon;
#endif

/* Bits [first, first + count) as bytes. Reads no byte of bits that none of them is in. */
void coffer__pycauset_expand_bits(uint8_t *out, const uint8_t *bits, size_t first, size_t count,
                                  coffer__cpu_level level);
/* count bytes into the first bits of `bits`; the rest of the last word becomes 0. Whole words are written. */
void coffer__pycauset_pack_bits(uint8_t *bits, const uint8_t *bytes, size_t count, coffer__cpu_level level);
/* How many of the bits [first, first + count) are set. */
uint64_t coffer__pycauset_count_bits(const uint8_t *bits, size_t first, size_t count);

/* How a stored row becomes a row of values. */
typedef struct coffer__pycauset_recipe {
    coffer_dtype stored; /* BIT, or a plain type; C32 comes in two planes */
    coffer_dtype to;
    bool negated; /* first of all: a mirror image */
    bool scaled, conjugated;
    double scalar_real, scalar_imag;
    coffer__cpu_level level;
    const coffer__elements_kernels *kernels;
} coffer__pycauset_recipe;

/* Where the elements of a stored row are. */
typedef struct coffer__pycauset_stored_row {
    const uint8_t *bytes, *imaginary; /* the second for C32 only */
    unsigned first_bit;               /* of BIT */
} coffer__pycauset_stored_row;

/* Writes count values to out, which does not overlap. */
void coffer__pycauset_expand_row(void *out, const coffer__pycauset_recipe *recipe,
                                 const coffer__pycauset_stored_row *row, size_t count);
/* out[j][i] = in[i][j] for elements of `size` bytes; strides in bytes. */
void coffer__pycauset_transpose(uint8_t *out, size_t out_stride, const uint8_t *in, size_t in_stride,
                                size_t rows, size_t cols, size_t size);

/* Where in the payload an element is, and what the files that read payloads share. */

/* The stored elements as rows. A vector is one row, whichever way it is seen. */
typedef struct coffer__pycauset_grid {
    uint64_t rows, cols;
    coffer_dtype dtype;
    size_t element; /* bytes, of one plane; 0 for BIT */
    bool triangular, has_diagonal;
    bool diagonal;        /* each row holds its element on the diagonal, nothing else */
    bool transposed;      /* the matrix that is seen is the transposed one */
    bool mirrored;        /* the part below the diagonal is the mirror image … */
    bool negative;        /* … or its negative */
    uint64_t row_bytes;   /* of a dense layout */
    uint64_t plane_bytes; /* where the imaginary parts of C32 begin */
} coffer__pycauset_grid;

/* info : as coffer__pycauset_interpret leaves it, so no size overflows. Not for BLOCK. */
void coffer__pycauset_grid_init(coffer__pycauset_grid *out, const coffer_pycauset_info *info);
/* The first column that a row holds; the number of columns when it holds none. */
uint64_t coffer__pycauset_grid_first(const coffer__pycauset_grid *grid, uint64_t row);
/* The column after the last that a row holds. */
uint64_t coffer__pycauset_grid_end(const coffer__pycauset_grid *grid, uint64_t row);
/* Offset in the payload (or plane) of the byte that has the element; col is at least the first one. first_bit
 * (may be NULL) : which of its bits, for BIT. */
uint64_t coffer__pycauset_grid_offset(const coffer__pycauset_grid *grid, uint64_t row, uint64_t col,
                                      unsigned *first_bit);
/* Bytes from that one on that count elements are in. */
uint64_t coffer__pycauset_grid_length(const coffer__pycauset_grid *grid, unsigned first_bit, uint64_t count);
/* Bytes of the row with its padding. */
uint64_t coffer__pycauset_grid_row_bytes(const coffer__pycauset_grid *grid, uint64_t row);

/* How values are made of stored elements: dtype is what they become. */
coffer__pycauset_recipe coffer__pycauset_recipe_for(const coffer_pycauset_info *info, coffer_dtype dtype);
/* Whether values differ from the stored elements at all. */
bool coffer__pycauset_recipe_changes(const coffer__pycauset_recipe *recipe);

/* Bytes of the payload: borrowed where they are mapped, else read piece by piece. */
typedef struct coffer__pycauset_payload {
    const coffer_pycauset *matrix; /* verifies what is read */
    coffer_source *source;
    uint64_t payload_offset;
    const uint8_t *view; /* NULL: to be read */
    size_t number;       /* bytes of an element, or of a part of a complex one; 0 for bits */
    struct coffer__pycauset_payload_window {
        uint8_t *bytes;
        uint64_t begin, end;
    } windows[2]; /* one for each plane */
} coffer__pycauset_payload;

/* No request may be longer. */
#define COFFER__PYCAUSET_PAYLOAD_WINDOW ((size_t)256 << 10)

void coffer__pycauset_payload_init(coffer__pycauset_payload *reader, const coffer_pycauset *matrix);
void coffer__pycauset_payload_free(coffer__pycauset_payload *reader);
/* `count` stored elements of a row from a column on, in the machine's byte order, until the next call.
 * needed_until : the caller will ask for all bytes of the plane up to there, so they may be read at once. */
coffer_status coffer__pycauset_payload_row(coffer__pycauset_stored_row *out, coffer__pycauset_payload *reader,
                                           const coffer__pycauset_grid *grid, uint64_t row, uint64_t col,
                                           uint64_t count, uint64_t needed_until, coffer_error *err);
/* To be asked when the work is done: whether what was mapped was really there. */
coffer_status coffer__pycauset_payload_intact(coffer__pycauset_payload *reader, coffer_error *err);

/* ---- Block matrices (pycauset_blocks.c) ---- */

/* As coffer_pycauset_read_tile, of a checked tile that is not empty. */
coffer_status coffer__pycauset_read_blocks(uint8_t *out, size_t out_stride, const coffer_pycauset *matrix,
                                           const coffer_pycauset_tile *tile, coffer_dtype dtype,
                                           coffer_error *err);

#endif
