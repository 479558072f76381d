/* Blocks of GGUF and the quantized types of MCF have the same parts in different places. Where every number
 * of a tensor fits into a type of the other format exactly, codes and scales are copied and nothing is
 * decoded:
 *
 *   q8, q4          Q8_0, Q4_0: one scale for 32 codes
 *   k6              Q6_K: d = super / 32, both scales of 32 elements = sub
 *   k4, k3, k2      Q4_K: d = super / 32, dmin = super / 4, scale and minimum = sub, code + 8
 *   Q8_0, Q5_0, IQ4_NL   q8; Q4_0 : q4, or q8 when it has the code -8, which q4 must not have
 *   Q6_K, Q4_K      k6, k4, when they are as above: files that were converted from MCF */
#ifndef COFFER_CONVERT_GGUF_REPACK_H
#define COFFER_CONVERT_GGUF_REPACK_H

#include "convert/tensors/tensor_stream.h"
#include "outside/models/gguf.h"

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

#endif
