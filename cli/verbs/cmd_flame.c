#include "verbs.h"

const cli_verb cli_verb_flame = {
    .name = "flame",
    .usage = "FILE",
    .summary = "a flame graph of where memory comes from",
    .description =
        "Draws stacks as a flame graph (.svg, .html), or writes them as collapsed lines that "
        "other tools draw: a line for each different stack, the largest branch first ('coffer convert' "
        "writes the same frames, a line for each stack of the file). Frames past 512 are counted with "
        "the last one drawn.",
    .min_operands = 1,
    .max_operands = 1,
};
