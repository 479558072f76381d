#include "verbs.h"

const cli_verb cli_verb_sheet = {
    .name = "sheet",
    .usage = "FILE",
    .summary = "draw random samples of a set on a contact sheet",
    .description =
        "Pictures as thumbnails, sounds as waves, texts as text, each with its label and its number "
        "below, as PNG or SVG. A sample that cannot be decoded says why in its place.",
    .min_operands = 1,
    .max_operands = 1,
};
