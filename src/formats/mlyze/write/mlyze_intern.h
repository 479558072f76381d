/* Names and stacks of a trace that is being written; equal ones are stored once. Positions are in the order
 * of adding, so new entries are always at the end of each array. */
#ifndef COFFER_FORMATS_MLYZE_INTERN_H
#define COFFER_FORMATS_MLYZE_INTERN_H

#include "base/buffer.h"
#include "base/table.h"
#include "coffer/mlyze.h"

/* ---- Names: the table of files, and that of functions ---- */

typedef struct coffer__mlyze_pool_name {
    uint64_t id;
    const char *text;
    size_t len;
} coffer__mlyze_pool_name;

typedef struct coffer__mlyze_name_pool {
    coffer__mlyze_pool_name *items;
    size_t count, capacity;
    uint64_t next_id;             /* no id below it is free */
    coffer__table by_text, by_id; /* by_id : of those whose id is not their position */
    coffer__arena texts;
} coffer__mlyze_name_pool;

/* The id of the first name with this text, or a new one: the smallest unused. */
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
    coffer__table by_call;
    coffer__mlyze_pool_stack *items;
    size_t count, capacity;
    uint64_t next_id;
    uint32_t empty;      /* position + 1 of the stack without frames */
    size_t unlisted;     /* how many are not */
    coffer__table by_id; /* only those whose id is not their position */
} coffer__mlyze_stack_pool;

/* Position + 1 of the call of `frame` from `caller` (position + 1, 0 = none). */
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
/* NULL when the id is not used. */
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

/* ---- Names and stacks together ---- */

typedef struct coffer__mlyze_pools {
    coffer__mlyze_name_pool files, functions;
    coffer__mlyze_stack_pool stacks;
} coffer__mlyze_pools;

void coffer__mlyze_pools_free(coffer__mlyze_pools *tables);

#endif
