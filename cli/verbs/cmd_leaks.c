#include "verbs.h"

const cli_verb cli_verb_leaks = {
    .name = "leaks",
    .usage = "FILE",
    .summary = "what was never freed, and what keeps growing",
    .description = "Lists the stacks whose blocks were live when the recording ended, with their ages.",
    .min_operands = 1,
    .max_operands = 1,
};
