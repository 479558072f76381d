/* Names and stacks of a trace that is being written: equal ones are one. Positions count in the order of
 * adding, so that what is new since a moment is the end of each array. */
#ifndef COFFER_FORMATS_MLYZE_INTERN_H
#define COFFER_FORMATS_MLYZE_INTERN_H

#include "base/arena.h"
#include "base/hash.h"
#include "coffer/mlyze.h"

/* ---- Hash table: positions in an array that its owner keeps, who says which items are equal ---- */

typedef struct coffer__mlyze_intern_slot {
    uint32_t hash;
    uint32_t position; /* + 1; 0 = free */
} coffer__mlyze_intern_slot;

typedef struct coffer__mlyze_intern_slots {
    coffer__mlyze_intern_slot *slots;
    size_t size; /* a power of two, or 0 */
    size_t used;
} coffer__mlyze_intern_slots;

/* Positions are below this. */
#define COFFER__MLYZE_POSITIONS UINT32_MAX

static inline uint32_t coffer__mlyze_intern_hash(const void *bytes, size_t len)
{
    return (uint32_t)coffer__hash(bytes, len);
}

/* Makes room for one more, so that the next insert cannot fail. */
coffer_status coffer__mlyze_intern_slots_reserve(coffer__mlyze_intern_slots *slots, coffer_error *err);
void coffer__mlyze_intern_slots_insert(coffer__mlyze_intern_slots *slots, uint32_t hash, size_t position);
void coffer__mlyze_intern_slots_free(coffer__mlyze_intern_slots *slots);

/* The next position whose hash is this one, SIZE_MAX after the last. *at : the hash to begin with. */
static inline size_t coffer__mlyze_intern_slots_next(const coffer__mlyze_intern_slots *slots, uint32_t hash,
                                                     size_t *at)
{
    if (slots->size == 0)
        return SIZE_MAX;
    for (;; (*at)++) {
        const coffer__mlyze_intern_slot *slot = &slots->slots[*at & (slots->size - 1)];
        if (slot->position == 0)
            return SIZE_MAX;
        if (slot->hash == hash) {
            (*at)++;
            return (size_t)slot->position - 1;
        }
    }
}

/* ---- Names: the table of files, and that of functions ---- */

typedef struct coffer__mlyze_pool_name {
    uint64_t id;
    const char *text;
    size_t len;
} coffer__mlyze_pool_name;

typedef struct coffer__mlyze_name_pool {
    coffer__mlyze_pool_name *items;
    size_t count, capacity;
    uint64_t next_id;                          /* no id below it is free */
    coffer__mlyze_intern_slots by_text, by_id; /* by_id : of those whose id is not their position */
    coffer__arena texts;
} coffer__mlyze_name_pool;

/* The id of the first one with this text, or a new one: the smallest that is free. */
coffer_status coffer__mlyze_name_pool_add(uint64_t *id, coffer__mlyze_name_pool *names, const char *text,
                                          size_t len, coffer_error *err);
/* what : "file", "function". COFFER_E_DUPLICATE when the id has another text. */
coffer_status coffer__mlyze_name_pool_add_id(coffer__mlyze_name_pool *names, uint64_t id, const char *text,
                                             size_t len, const char *what, coffer_error *err);
void coffer__mlyze_name_pool_free(coffer__mlyze_name_pool *names);

/* ---- Stacks: paths in a trie ---- */

/* A frame and who called it. */
typedef struct coffer__mlyze_pool_call {
    coffer_mlyze_frame frame;
    uint32_t caller; /* position + 1; 0 = nobody */
    uint32_t depth;  /* frames from here to the outermost */
    uint32_t stack;  /* position + 1 of the first stack that ends here; 0 = none */
} coffer__mlyze_pool_call;

typedef struct coffer__mlyze_pool_stack {
    uint64_t id;
    uint32_t call; /* its innermost frame, position + 1; 0 = the stack without frames */
    bool listed;   /* in the metadata: it was added whole, or an event has it */
} coffer__mlyze_pool_stack;

typedef struct coffer__mlyze_stack_pool {
    coffer__mlyze_pool_call *calls;
    size_t call_count, call_capacity;
    coffer__mlyze_intern_slots by_call;
    coffer__mlyze_pool_stack *items;
    size_t count, capacity;
    uint64_t next_id;
    uint32_t empty;                   /* position + 1 of the stack without frames */
    size_t unlisted;                  /* how many are not */
    coffer__mlyze_intern_slots by_id; /* of those whose id is not their position */
} coffer__mlyze_stack_pool;

/* Position of the call of `frame` from another (position + 1, 0 = nobody), + 1. */
coffer_status coffer__mlyze_stack_pool_call(uint32_t *out, coffer__mlyze_stack_pool *stacks, uint32_t caller,
                                            const coffer_mlyze_frame *frame, coffer_error *err);
/* The calls of a whole stack, innermost frame first. */
coffer_status coffer__mlyze_stack_pool_path(uint32_t *out, coffer__mlyze_stack_pool *stacks,
                                            const coffer_mlyze_frame *frames, size_t depth,
                                            coffer_error *err);
/* The id of the stack that ends with a call, or a new one. */
coffer_status coffer__mlyze_stack_pool_id(uint64_t *id, coffer__mlyze_stack_pool *stacks, uint32_t call,
                                          bool listed, coffer_error *err);
/* COFFER_E_DUPLICATE when the id is that of another stack. */
coffer_status coffer__mlyze_stack_pool_add_id(coffer__mlyze_stack_pool *stacks, uint64_t id, uint32_t call,
                                              bool listed, coffer_error *err);
/* NULL when there is none with this id. */
coffer__mlyze_pool_stack *coffer__mlyze_stack_pool_find(const coffer__mlyze_stack_pool *stacks, uint64_t id);
/* An event has this stack. */
static inline void coffer__mlyze_stack_pool_use(coffer__mlyze_stack_pool *stacks, uint64_t id)
{
    coffer__mlyze_pool_stack *stack = coffer__mlyze_stack_pool_find(stacks, id);
    if (stack && !stack->listed) {
        stack->listed = true;
        stacks->unlisted--;
    }
}
void coffer__mlyze_stack_pool_free(coffer__mlyze_stack_pool *stacks);

/* ---- All of them ---- */

typedef struct coffer__mlyze_pools {
    coffer__mlyze_name_pool files, functions;
    coffer__mlyze_stack_pool stacks;
} coffer__mlyze_pools;

void coffer__mlyze_pools_free(coffer__mlyze_pools *tables);

#endif
