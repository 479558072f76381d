/* Both sides of an archive block predict from the events before: an address from the addresses freed
 * last, a stack from the stack before it, a size from the stack. It starts empty in every block. */
#ifndef COFFER_FORMATS_MLYZE_ARCHIVE_MODEL_H
#define COFFER_FORMATS_MLYZE_ARCHIVE_MODEL_H

#include "formats/mlyze/mlyze_layout.h"

#include <stdint.h>
#include <string.h>

#define COFFER__MLYZE_CLASSES 1024 /* sizes over 16 KiB share the last one */
#define COFFER__MLYZE_CLASS_GONE UINT16_MAX
#define COFFER__MLYZE_GUESS_ROWS 65536

/* Addresses that were freed, the last ones of each size class. */
typedef struct coffer__mlyze_freed {
    uint64_t items[COFFER__MLYZE_FREED_DEPTH]; /* a ring */
    uint32_t top, count;                       /* top : after the newest */
} coffer__mlyze_freed;

typedef struct coffer__mlyze_guess {
    uint64_t next, size; /* the stack that followed last, and the last size */
} coffer__mlyze_guess;

typedef struct coffer__mlyze_model {
    coffer__mlyze_freed freed[COFFER__MLYZE_CLASSES];
    coffer__mlyze_guess guesses[COFFER__MLYZE_GUESS_ROWS];
} coffer__mlyze_model;

static inline void coffer__mlyze_model_clear(coffer__mlyze_model *model)
{
    for (int i = 0; i < COFFER__MLYZE_CLASSES; i++)
        model->freed[i].top = model->freed[i].count = 0;
    memset(model->guesses, 0, sizeof model->guesses);
}

/* The bytes that a block takes with common allocators: 8 for the size before it, rounded up to 16. */
static inline uint64_t coffer__mlyze_chunk(uint64_t size)
{
    uint64_t chunk = (size + 23) & ~(uint64_t)15;
    return chunk < 32 ? 32 : chunk;
}

static inline uint16_t coffer__mlyze_class(uint64_t size)
{
    uint64_t number = coffer__mlyze_chunk(size) >> 4;
    return (uint16_t)(number < COFFER__MLYZE_CLASSES ? number : COFFER__MLYZE_CLASSES - 1);
}

static inline void coffer__mlyze_freed_push(coffer__mlyze_freed *freed, uint64_t address)
{
    freed->items[freed->top++ % COFFER__MLYZE_FREED_DEPTH] = address;
    freed->count += freed->count < COFFER__MLYZE_FREED_DEPTH;
}

/* Removes the n-th newest, which exists. */
static inline uint64_t coffer__mlyze_freed_take(coffer__mlyze_freed *freed, uint32_t n)
{
    uint32_t at = freed->top - 1 - n;
    uint64_t address = freed->items[at % COFFER__MLYZE_FREED_DEPTH];
    for (; n > 0; n--, at++)
        freed->items[at % COFFER__MLYZE_FREED_DEPTH] = freed->items[(at + 1) % COFFER__MLYZE_FREED_DEPTH];
    freed->top--;
    freed->count--;
    return address;
}

static inline coffer__mlyze_guess *coffer__mlyze_guess_of(coffer__mlyze_model *model, uint64_t stack)
{
    return &model->guesses[(stack ^ stack >> 16) % COFFER__MLYZE_GUESS_ROWS];
}

static inline uint64_t coffer__mlyze_zigzag(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t coffer__mlyze_unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

#endif
