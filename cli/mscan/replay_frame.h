/* One token of a scan, as text: where it is, and what stands out in it. */
#ifndef COFFER_CLI_REPLAY_FRAME_H
#define COFFER_CLI_REPLAY_FRAME_H

#include "coffer/mscan.h"

#include <stdio.h>

typedef struct replay_frame replay_frame;

typedef struct replay_look {
    bool by_block; /* bars for blocks, else for parameters */
    coffer_mscan_metric metric;
    size_t top;      /* bars a token */
    double full_bar; /* raw value of the longest bar */
} replay_look;

/* NULL when out of memory. scan : borrowed. */
replay_frame *replay_frame_new(const coffer_mscan *scan, const replay_look *look);
void replay_frame_free(replay_frame *frame);

/* The line that opens a sequence: number, tokens, beginning of its source. */
void replay_frame_print_sequence(const replay_frame *frame, size_t index, FILE *out);
/* The token's line, and the groups whose mean is farthest from that of all groups of the token. Gives the
 * number of lines. */
unsigned replay_frame_print_step(replay_frame *frame, const coffer_mscan_step *step, FILE *out);

#endif
