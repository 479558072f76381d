/* Shared by the files of the preloaded library: the state of a thread and the way into its ring. */
#ifndef COFFER_RECORD_THREAD_H
#define COFFER_RECORD_THREAD_H

#include "record/record_wire.h"

#include <stdbool.h>
#include <stddef.h>

#define COFFER__RECORD_LIKELY(x) __builtin_expect(!!(x), 1)

/* One frame of a stack: the registers in it, and where those of its caller came from. */
typedef struct coffer__record_step {
    uintptr_t pc, sp, bp;
    uintptr_t bp_at; /* the caller's frame pointer was loaded from here; 0 = it is the same, 1 = unknown */
    uint64_t hash;   /* of the frames from this one outwards */
} coffer__record_step;

/* The stack that was walked last. Most of it is the same the next time. */
typedef struct coffer__record_walk {
    uint32_t first, count; /* steps[first] is the innermost */
    bool complete;         /* it reaches the outermost frame */
    uint32_t generation;   /* of the loaded modules */
    coffer__record_step steps[2 * COFFER__RECORD_DEPTH_MAX];
    coffer__record_step inner[COFFER__RECORD_DEPTH_MAX + 1]; /* scratch */
    uint64_t words[2 * COFFER__RECORD_DEPTH_MAX];            /* a stack with Python frames */
    uint64_t told[2 * COFFER__RECORD_DEPTH_MAX];             /* the stack that the reader heard of last */
    uint32_t told_count;
} coffer__record_walk;

typedef struct coffer__record_python_rows coffer__record_python_rows;

typedef struct coffer__record_thread {
    coffer__record_slot *slot; /* NULL until the first event */
    uint64_t head, tail;       /* tail: what was last seen of it */
    uint64_t time;             /* of the last event */
    uint64_t units;            /* of the last allocation or release in the ring */
    bool busy;                 /* inside a hook */
    bool off;                  /* this thread cannot record */
    uint8_t exits;             /* how often the end of the thread was announced */
    uintptr_t readable_low, readable_high;
    uint64_t *stacks; /* hashes of the stacks that the reader knows, by number */
    uint32_t stack_mask;
    int64_t sample_left; /* bytes until the next sample */
    uint64_t sample_seed;
    coffer__record_walk *walk;
    coffer__record_python_rows *python; /* NULL until the thread runs Python */
} coffer__record_thread;

/* ---- record_ring.c ---- */

extern coffer__record_memory *coffer__record_shared; /* NULL: this process does not record */

extern __thread coffer__record_thread coffer__record_self __attribute__((tls_model("initial-exec")));

/* Finds the shared memory; called once, before the first event. */
void coffer__record_attach(void);
/* Prepares the thread for an event. False: nothing is to be recorded. After success coffer__record_leave()
 * must follow. */
bool coffer__record_enter(coffer__record_thread *thread);
/* The time, after every instruction before it. */
uint64_t coffer__record_now(void);
/* Waits until the ring has room for this number of words. False: recording has ended. */
bool coffer__record_reserve(coffer__record_thread *thread, uint32_t words);
/* Makes the words written so far visible to the reader. */
void coffer__record_publish(coffer__record_thread *thread);
void coffer__record_put_text(coffer__record_thread *thread, const char *text, size_t len);
void coffer__record_put_marker(const char *text);
void coffer__record_put_collection(uint64_t objects, uint64_t bytes);
/* The entry of this process. */
coffer__record_session *coffer__record_session_here(void);

static inline void coffer__record_put(coffer__record_thread *thread, uint64_t word)
{
    thread->slot->ring[thread->head++ & (COFFER__RECORD_RING_WORDS - 1)] = word;
}

/* The units since the event before, if the short form of a record can have them. Times are rounded down in
 * the same way on all threads, so their order stays. */
static inline bool coffer__record_is_brief(uint64_t *units, coffer__record_thread *thread, uint64_t address,
                                           uint64_t time, unsigned bits)
{
    uint64_t now = time >> COFFER__RECORD_UNIT_SHIFT;
    *units = now - thread->units;
    thread->units = now;
    return *units >> bits == 0 && address % (1 << COFFER__RECORD_ALIGN_SHIFT) == 0;
}

static inline void coffer__record_put_alloc(coffer__record_thread *thread, const void *block, size_t size,
                                            uint32_t stack)
{
    uint64_t address = (uintptr_t)block & COFFER__RECORD_ADDRESS_MASK, units;
    if (COFFER__RECORD_LIKELY(
            coffer__record_is_brief(&units, thread, address, thread->time, COFFER__RECORD_ALLOC_UNIT_BITS) &&
            size >> (64 - 8 - COFFER__RECORD_ALLOC_UNIT_BITS) == 0 &&
            stack >> COFFER__RECORD_BRIEF_STACK_BITS == 0)) {
        coffer__record_put(thread, (uint64_t)size << (8 + COFFER__RECORD_ALLOC_UNIT_BITS) | units << 8 |
                                       COFFER__RECORD_BRIEF_ALLOC);
        coffer__record_put(thread,
                           address >> COFFER__RECORD_ALIGN_SHIFT << COFFER__RECORD_BRIEF_STACK_BITS | stack);
        return;
    }
    coffer__record_put(thread, thread->time << 8 | COFFER__RECORD_ALLOC);
    coffer__record_put(thread, address | (uint64_t)stack << COFFER__RECORD_ADDRESS_BITS);
    coffer__record_put(thread, (size & COFFER__RECORD_ADDRESS_MASK) | (uint64_t)(stack >> 16)
                                                                          << COFFER__RECORD_ADDRESS_BITS);
}

static inline void coffer__record_put_free(coffer__record_thread *thread, const void *block, uint64_t time)
{
    uint64_t address = (uintptr_t)block & COFFER__RECORD_ADDRESS_MASK, units;
    if (COFFER__RECORD_LIKELY(
            coffer__record_is_brief(&units, thread, address, time, COFFER__RECORD_FREE_UNIT_BITS))) {
        coffer__record_put(thread,
                           address >> COFFER__RECORD_ALIGN_SHIFT << (1 + COFFER__RECORD_FREE_UNIT_BITS) |
                               units << 1 | COFFER__RECORD_BRIEF_FREE);
        return;
    }
    coffer__record_put(thread, time << 8 | COFFER__RECORD_FREE);
    coffer__record_put(thread, address);
}

/* An event is coming whose time is not known yet: the reader waits for it. */
static inline void coffer__record_begin(coffer__record_thread *thread)
{
    atomic_store_explicit(&thread->slot->since, thread->time | 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void coffer__record_end(coffer__record_thread *thread)
{
    atomic_store_explicit(&thread->slot->since, 0, memory_order_release);
}

static inline void coffer__record_leave(coffer__record_thread *thread)
{
    atomic_signal_fence(memory_order_seq_cst);
    thread->busy = false;
}

/* ---- record_stack.c ---- */

/* Frees the Python tables of a thread that ends. */
void coffer__record_python_release(coffer__record_thread *thread);
/* The number of the calling stack in the thread's ring, after telling the reader about it. frame : address
 * of the hook's own frame (__builtin_frame_address(0)). */
uint32_t coffer__record_stack(coffer__record_thread *thread, const void *frame);
/* Forgets unwind rules and modules after a module was unloaded. */
void coffer__record_forget_modules(void);

/* ---- record_python.c ---- */

/* Finds the interpreter, when the program is one. */
void coffer__record_python_attach(void);
/* The Python frames of the thread as words of a stack, innermost first; 0 = it runs no Python. */
uint32_t coffer__record_python(coffer__record_thread *thread, uint64_t *out, uint32_t depth);
/* Whether a return address is in the function that runs Python code. */
bool coffer__record_python_is_evaluator(uintptr_t pc);

/* A text of the interpreter as UTF-8; returns its length. object : the text. */
size_t coffer__record_python_text(char *out, size_t max, const void *object);

/* ---- record_snapshot.c ---- */

/* Finds the functions of the interpreter that a snapshot needs. */
void coffer__record_snapshot_attach(void);
/* Asks the interpreter to take the snapshot that `coffer record` wants when it is between two instructions.
 * Called inside hooks: it allocates nothing. */
void coffer__record_snapshot_ask(coffer__record_session *mine);
/* Writes the objects of the heap and their references. The caller holds the interpreter's lock. False:
 * nothing was written, or not all. */
bool coffer__record_snapshot_take(void);

/* ---- record_mmap.c ---- */

void coffer__record_mmap_resolve(void);
/* Memory of the recorder's own, zeros, which is not recorded; NULL when none is left. */
void *coffer__record_map(size_t size);
void coffer__record_unmap(void *memory, size_t size);

/* ---- record_sample.c ---- */

/* Whether a new block is one of the sample; it is remembered then. */
bool coffer__record_sample(coffer__record_thread *thread, const void *block, size_t size);
/* Whether a block that is released was one of the sample; it is forgotten then. */
bool coffer__record_sampled(const void *block);

/* ---- record_modules.c ---- */

/* Tells the reader about the module that contains an address, once. NULL: none does. Gives the module's
 * .eh_frame_hdr. */
const uint8_t *coffer__record_module(coffer__record_thread *thread, uintptr_t pc);
void coffer__record_reset_modules(void);
/* How many modules were unloaded. Not for hooks of allocations: it takes the lock of the loader. */
uint64_t coffer__record_unloads(void);

#endif
