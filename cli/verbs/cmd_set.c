#include "verbs.h"

/* Formats share the parser's view of --json: a switch, so that it can stand before a change or last. */
const cli_verb cli_verb_set = {
    .name = "set",
    .usage = "FILE [KEY=VALUE…]",
    .summary = "change single values of a file, in place",
    .description =
        "All changes of one command go into the file together: after a crash it has none of them or all. "
        "What is not named is not moved, however large it is. Which keys there are, and what values they "
        "can have, depends on the format of the file.",
    .min_operands = 1,
    .max_operands = SIZE_MAX,
};
