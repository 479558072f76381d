/* Models of float tensors for the tests of quantization. */
#ifndef SUPPORT_WEIGHTS_H
#define SUPPORT_WEIGHTS_H

#include "coffer/coffer.h"

/* Numbers like those of a bell curve, the same for the same seed. */
void weights_fill(float *out, size_t count, uint32_t seed);
/* "deep.weight" 64×320, "wide.weight" 3×700 and "tall.weight" 130×33 f32, "norm.weight" f32 of 320, "ids" i32
 * of 2×2. */
void weights_model(const char *path);
/* A model of one f32 tensor "w". */
void weights_one(const char *path, uint64_t rows, uint64_t cols, const float *values);

#endif
