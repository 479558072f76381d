#include "verbs.h"

const cli_verb cli_verb_flame = {
    .name = "flame",
    .usage = "FILE",
    .summary = "a flame graph of where memory comes from",
    .description = "Draws stacks as a flame graph (.svg, .html), or writes them as collapsed lines that "
                   "other tools draw.",
    .min_operands = 1,
    .max_operands = 1,
};
