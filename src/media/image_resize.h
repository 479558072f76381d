/* The loops of resizing, compiled for each instruction set with the same results. */
#ifndef COFFER_MEDIA_IMAGE_RESIZE_H
#define COFFER_MEDIA_IMAGE_RESIZE_H

#include <stddef.h>
#include <stdint.h>

/* The `count` neighbors in a line of the input, from `first` on, that make one pixel of the output. */
typedef struct coffer__taps {
    uint32_t first, count;
    const float *weights;
} coffer__taps;

/* A row of floats has room for this many after its end: pixels are loaded four values at a time. */
#define COFFER__RESIZE_SLACK 4

typedef struct coffer__resize_kernels {
    /* out[i] = the sum over the taps of weight × byte i of the row; rows are `len` bytes and begin at `rows`.
     */
    void (*rows)(float *out, const uint8_t *rows, size_t len, const coffer__taps *taps);
    /* One row of `width` pixels from a row of floats. channels : 1 to 4. */
    void (*columns)(uint8_t *out, const float *row, const coffer__taps *taps, size_t width, size_t channels);
} coffer__resize_kernels;

extern const coffer__resize_kernels coffer__resize_generic;
#if defined(__x86_64__)
extern const coffer__resize_kernels coffer__resize_avx2;
#endif

#endif
