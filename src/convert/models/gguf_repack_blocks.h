/* One block as plain integers, from and to the bytes of a GGUF block. */
#ifndef COFFER_CONVERT_GGUF_REPACK_BLOCKS_H
#define COFFER_CONVERT_GGUF_REPACK_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of 32 codes with a scale, or of 256 codes with eight sub-scales as the k types of MCF have them. */
typedef struct coffer__repack_block {
    uint16_t scale; /* f16 */
    uint8_t subs[8];
    int8_t codes[256];
} coffer__repack_block;

/* Codes of `bits` bits, two's complement, the lowest bits first. */
void coffer__repack_unpack_codes(int8_t *out, const uint8_t *bytes, unsigned bits, size_t count);
void coffer__repack_pack_codes(uint8_t *out, const int8_t *codes, unsigned bits, size_t count);

/* Whether an f16 scale is below the normal range and not 0: the first program of MCF reads it as 0. */
bool coffer__repack_scale_is_small(uint16_t scale);
/* True for the types that coffer__repack_from_gguf may accept. */
bool coffer__repack_knows(uint32_t type);
/* False when MCF cannot store the numbers of the block exactly. */
bool coffer__repack_from_gguf(coffer__repack_block *out, const uint8_t *bytes, uint32_t type);
/* Whether sub-scales and scale can be those of a K block. exact : set to false when the scale has to be
 * rounded.
 */
bool coffer__repack_super_fits(const coffer__repack_block *block, bool *exact);
/* type : Q8_0, Q4_0, Q6_K or Q4_K. */
void coffer__repack_to_gguf(uint8_t *out, const coffer__repack_block *block, uint32_t type);

#endif
