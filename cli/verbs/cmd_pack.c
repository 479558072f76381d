#include "verbs.h"

const cli_verb cli_verb_pack = {
    .name = "pack",
    .usage = "IN… OUT",
    .summary = "put many files into one",
    .description =
        "Makes one file out of a folder or several files: a model out of its parts, a training set out of "
        "pictures, sounds, texts or shards. The extension of OUT says which format it becomes. OUT appears "
        "whole or not at all.",
    .min_operands = 2,
    .max_operands = SIZE_MAX,
    .makes_file = true,
};
