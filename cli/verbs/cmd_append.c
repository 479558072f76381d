#include "verbs.h"

const cli_verb cli_verb_append = {
    .name = "append",
    .usage = "FILE IN",
    .summary = "add what another file holds to the end of this one",
    .description =
        "FILE is changed in place, under a rollback journal: after a crash it is what it was before, or "
        "all of IN is in it. What IN can be depends on the format of FILE.",
    .min_operands = 2,
    .max_operands = 2,
};
