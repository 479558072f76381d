#include "verbs.h"

const cli_verb cli_verb_log = {
    .name = "log",
    .usage = "FILE",
    .summary = "list the states a file has been in",
    .description =
        "Shows the older states that can still be found in a file, and what changed from one to the "
        "next. 'coffer info --generation N' looks at one of them, 'coffer repair --to N' goes back.",
    .min_operands = 1,
    .max_operands = 1,
};
