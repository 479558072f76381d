#include "verbs.h"

const cli_verb cli_verb_stats = {
    .name = "stats",
    .usage = "FILE",
    .summary = "sums, means and extremes of what a file holds",
    .description = "What is counted, and by what it can be grouped, depends on the format of the file.",
    .min_operands = 1,
    .max_operands = 1,
};
