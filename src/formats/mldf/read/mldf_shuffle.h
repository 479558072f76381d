/* Keyed permutations of [0, count): every position by itself, in both directions. */
#ifndef COFFER_FORMATS_MLDF_SHUFFLE_H
#define COFFER_FORMATS_MLDF_SHUFFLE_H

#include <stdint.h>

typedef struct coffer__mldf_shuffle {
    uint64_t count;
    uint64_t key;
    uint64_t rows, columns; /* the smallest rectangle, as good as square, with room for count */
    unsigned rounds;
} coffer__mldf_shuffle;

/* a, b : numbers that pick the permutation, an epoch and a seed say. */
coffer__mldf_shuffle coffer__mldf_shuffle_of(uint64_t count, uint64_t a, uint64_t b);
/* position < count. */
uint64_t coffer__mldf_shuffle_forward(const coffer__mldf_shuffle *shuffle, uint64_t position);
/* The position that holds this value. */
uint64_t coffer__mldf_shuffle_back(const coffer__mldf_shuffle *shuffle, uint64_t value);

#endif
