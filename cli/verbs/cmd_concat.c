#include "verbs.h"

const cli_verb cli_verb_concat = {
    .name = "concat",
    .usage = "IN… OUT",
    .summary = "join several files of a format into one",
    .description =
        "What the inputs hold goes into OUT, one behind the other; every value is compared with its "
        "checksum on the way. The inputs must have the same fields. OUT appears whole or not at all.",
    .min_operands = 2,
    .max_operands = SIZE_MAX,
    .makes_file = true,
};
