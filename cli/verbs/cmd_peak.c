#include "verbs.h"

const cli_verb cli_verb_peak = {
    .name = "peak",
    .usage = "FILE",
    .summary = "what was live when a program used the most memory",
    .description = "Lists the stacks whose blocks were live at the high-water mark, or at any other moment. "
                   "The figures are exact: every allocation was recorded and is paired with its release.",
    .min_operands = 1,
    .max_operands = 1,
};
