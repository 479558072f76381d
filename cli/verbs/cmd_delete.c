#include "verbs.h"

const cli_verb cli_verb_delete = {
    .name = "delete",
    .usage = "FILE SAMPLE…",
    .summary = "take samples out of a set",
    .description =
        "SAMPLE is a number, from 0, or a range such as 7..9 (9 is not in it). Samples behind those that go "
        "move up and get new numbers. The file is changed in place, under a rollback journal: after a crash "
        "it is what it was before, or all of them are gone. Their bytes stay until 'coffer compact'.",
    .min_operands = 2,
    .max_operands = SIZE_MAX,
};
