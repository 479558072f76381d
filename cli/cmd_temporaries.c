#include "verbs.h"

const cli_verb cli_verb_temporaries = {
    .name = "temporaries",
    .usage = "FILE",
    .summary = "what is allocated only to be freed at once",
    .description = "Lists the stacks whose blocks live shortest: memory that could be kept, put on the "
                   "stack, or not be needed.",
    .min_operands = 1,
    .max_operands = 1,
};
