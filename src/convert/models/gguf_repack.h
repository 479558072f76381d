/* Blocks of GGUF and the quantized types of MCF have the same parts in different places. Where every number
 * of a tensor fits into a type of the other format exactly, codes and scales are copied and nothing is
 * decoded:
 *
 *   q8, q4          Q8_0, Q4_0: one scale for 32 codes
 *   k6              Q6_K: d = super / 32, both scales of 32 elements = sub
 *   k4, k3, k2      Q4_K: d = super / 32, dmin = super / 4, scale and minimum = sub, code + 8
 *   k6; k4, k3, k2  Q8_0; Q4_0, when a row is not a multiple of 256 elements: scale = super · sub / 32,
 *                   which is rounded
 *   Q8_0, Q5_0, IQ4_NL   q8; Q4_0 : q4, or q8 when it has the code -8, which q4 must not have
 *   Q6_K, Q4_K      k6, k4, when they are as above: files that were converted from MCF */
#ifndef COFFER_CONVERT_GGUF_REPACK_H
#define COFFER_CONVERT_GGUF_REPACK_H

#include "convert/tensors/tensor_selection.h"
#include "outside/models/gguf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The block type that holds a quantized tensor of MCF; NULL when GGUF has no such type. Reads the scales.
 * exact : false when small scales have to be rounded. */
coffer_status coffer__gguf_repack_type(const coffer__gguf_type **out, bool *exact, const coffer_tensors *set,
                                       size_t index, coffer_error *err);
/* Writes a tensor of MCF as blocks of that type. */
coffer_status coffer__gguf_repack_out(const coffer__chosen_tensor *chosen, const coffer__gguf_type *type,
                                      coffer__tensors_stream *stream, coffer__tensors_put put, void *context,
                                      coffer_error *err);

/* The quantized type that holds a tensor of GGUF exactly; COFFER_DTYPE_NONE when MCF has no such type. Reads
 * the payload if its type may qualify. */
coffer_status coffer__gguf_repack_dtype(coffer_dtype *out, const coffer_tensors *set, size_t index,
                                        coffer_error *err);
/* Writes the blocks of GGUF as a payload of chosen->dtype. largest : the largest magnitude. small_scales :
 * counts scales below the normal range of float16, which the first program of MCF reads as 0. */
coffer_status coffer__gguf_repack_in(float *largest, uint64_t *small_scales,
                                     const coffer__chosen_tensor *chosen, coffer__tensors_stream *stream,
                                     coffer__tensors_put put, void *context, coffer_error *err);

/* One block as plain integers, from and to the bytes of a GGUF block. */

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
