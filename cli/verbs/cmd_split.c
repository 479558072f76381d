#include "verbs.h"

const cli_verb cli_verb_split = {
    .name = "split",
    .usage = "FILE",
    .summary = "divide the samples of a set among several files",
    .description =
        "Every sample goes into exactly one of the new files, which are called NAME-PART.EXT and appear "
        "beside "
        "FILE or in the folder that -o names. FILE stays as it is. When one of them cannot be written, none "
        "is left.",
    .min_operands = 1,
    .max_operands = 1,
};
