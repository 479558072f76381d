#include "verbs.h"

const cli_verb cli_verb_get = {
    .name = "get",
    .usage = "FILE [NAME]",
    .summary = "take something out of a file, for other programs to read",
    .description = "What NAME can be, and the ways to write it, depend on the format of the file.",
    .min_operands = 1,
    .max_operands = 2,
};
