/* A slow and plain model of the statistics of a trace, to compare the fast ones with, and random traces for
 * both. */
#ifndef SUPPORT_TRACE_MODEL_H
#define SUPPORT_TRACE_MODEL_H

#include "support/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MODEL_STACKS 40 /* ids: small ones, of which the metadata lists two, and vast ones */
#define MODEL_STRIDE 16 /* between addresses */

typedef struct model_event {
    uint8_t type;
    uint16_t thread;
    uint64_t time, address, size, id;
    bool lost; /* in a block that a test has damaged */
} model_event;

typedef struct model_trace {
    model_event *events;
    size_t count;
    uint64_t addresses; /* multiples of MODEL_STRIDE up to this many */
    trace_builder built;
} model_trace;

typedef struct model_kind {
    size_t events;
    uint64_t addresses;
    unsigned frees_in_16; /* how many of 16 events free something */
    uint16_t threads;
    uint32_t flags, per_block;
    bool sane; /* no address 0, no double allocations, no stray frees */
} model_kind;

void model_trace_new(model_trace *out, const model_kind *kind, uint64_t seed);
void model_trace_free(model_trace *trace);
/* Computes the statistics with each number of threads and compares every number with the model. */
void model_hold(const model_trace *trace, const coffer_mlyze_stats_opts *query);

/* A member of two structs, with its name in the message when it differs. */
#define MODEL_SAME(a, b, member)                                                     \
    do {                                                                             \
        if ((a)->member != (b)->member)                                              \
            fail_msg("%s: %llu, not %llu", #member, (unsigned long long)(a)->member, \
                     (unsigned long long)(b)->member);                               \
    } while (0)

#endif
