/* Pickles of Python as data. A fixed set of opcodes is read, those of numbers, texts, containers and objects
 * with a state; nothing is imported or called, whatever a file asks for: classes are names. */
#ifndef COFFER_OUTSIDE_PICKLE_H
#define COFFER_OUTSIDE_PICKLE_H

#include "base/buffer.h"
#include "coffer/error.h"

#define COFFER__PICKLE_NONE UINT32_MAX /* no value */

typedef enum coffer__pickle_kind {
    COFFER__PICKLE_NULL,
    COFFER__PICKLE_BOOL,
    COFFER__PICKLE_INT,
    COFFER__PICKLE_FLOAT,
    COFFER__PICKLE_TEXT,
    COFFER__PICKLE_TUPLE,
    COFFER__PICKLE_LIST,
    COFFER__PICKLE_DICT,
    COFFER__PICKLE_CLASS,
    COFFER__PICKLE_OBJECT
} coffer__pickle_kind;

typedef struct coffer__pickle_value {
    uint64_t number; /* of an INT, as two's complement; offset of a TEXT; items of a LIST or DICT */
    /* TUPLE: its items, and their number. LIST and DICT: the first and the last run of items, + 1. TEXT: its
     * length in `count`. CLASS: module and name. OBJECT: class, and its state or COFFER__PICKLE_NONE. */
    uint32_t first, count;
    coffer__pickle_kind kind;
} coffer__pickle_value;

/* Items that were added to a list or dict together. */
typedef struct coffer__pickle_run {
    uint32_t first, count, next; /* next : + 1; 0 = the last */
} coffer__pickle_run;

typedef struct coffer__pickle {
    const uint8_t *bytes;
    size_t len;
    coffer__pickle_value *values;
    size_t value_count, value_capacity;
    uint32_t *items; /* values in containers */
    size_t item_count, item_capacity;
    coffer__pickle_run *runs;
    size_t run_count, run_capacity;
    uint32_t *stack, *memo, *marks; /* while it is read */
    size_t depth, stack_capacity, memo_count, memo_capacity, mark_count, mark_capacity;
    uint32_t root;
} coffer__pickle;

/* Whether a pickle of protocol 2 or later begins there. */
bool coffer__pickle_probe(const uint8_t *head, size_t len);
/* bytes : borrowed, must outlive the pickle. Free it even on failure. Memory is proportional to len. */
coffer_status coffer__pickle_read(coffer__pickle *out, const void *bytes, size_t len, coffer_error *err);
void coffer__pickle_free(coffer__pickle *pickle);

static inline const coffer__pickle_value *coffer__pickle_at(const coffer__pickle *pickle, uint32_t value)
{
    return &pickle->values[value];
}
/* Whether the value is this text. */
bool coffer__pickle_is(const coffer__pickle *pickle, uint32_t value, const char *text);
/* The value of a key of a DICT, which is a text; COFFER__PICKLE_NONE without it. */
uint32_t coffer__pickle_get(const coffer__pickle *pickle, uint32_t dict, const char *key);
/* Whether it is an object of this class. *state : may be COFFER__PICKLE_NONE. */
bool coffer__pickle_object(uint32_t *state, const coffer__pickle *pickle, uint32_t value, const char *module,
                           const char *name);

#endif
