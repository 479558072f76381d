#include "verbs.h"

const cli_verb cli_verb_head = {
    .name = "head",
    .usage = "FILE",
    .summary = "show the first samples of a set",
    .description = "A line for each sample and a column for each field: numbers and texts as they are, of "
                   "pictures, sounds and arrays what they are and how large.",
    .min_operands = 1,
    .max_operands = 1,
};
