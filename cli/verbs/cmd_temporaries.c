#include "verbs.h"

const cli_verb cli_verb_temporaries = {
    .name = "temporaries",
    .usage = "FILE",
    .summary = "what is allocated only to be freed at once",
    .description =
        "Lists the stacks whose blocks live shortest: memory that could be kept, put on the "
        "stack, or not be needed.\n"
        "A block is temporary when its thread frees it before it allocates anything else. heaptrack "
        "counts fewer: to it, a release of another block in between ends that, too.",
    .min_operands = 1,
    .max_operands = 1,
};
