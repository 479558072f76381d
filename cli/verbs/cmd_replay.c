#include "verbs.h"

const cli_verb cli_verb_replay = {
    .name = "replay",
    .usage = "FILE",
    .summary = "show a recording step by step",
    .description = "Goes through the file in the order in which things happened.",
    .min_operands = 1,
    .max_operands = 1,
};
