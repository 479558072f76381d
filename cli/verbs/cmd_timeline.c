#include "verbs.h"

const cli_verb cli_verb_timeline = {
    .name = "timeline",
    .usage = "FILE",
    .summary = "memory over the run of a program",
    .description = "Draws live bytes, live blocks and the rate of allocations over time, with markers and "
                   "collections, in the terminal, as a picture (.png, .svg) or as CSV.",
    .min_operands = 1,
    .max_operands = 1,
};
