#include "verbs.h"

const cli_verb cli_verb_heatmap = {
    .name = "heatmap",
    .usage = "FILE",
    .summary = "draw a file's values as a picture, or right in the terminal",
    .description = "With -o a picture is written. Without it the terminal shows colored blocks.",
    .min_operands = 1,
    .max_operands = 1,
};
