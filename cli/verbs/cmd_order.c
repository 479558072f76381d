#include "verbs.h"

const cli_verb cli_verb_order = {
    .name = "order",
    .usage = "FILE",
    .summary = "print the order in which a training run reads the samples",
    .description =
        "Numbers of samples, one a line. The order is computed from the seed, the epoch and the position "
        "alone: it can be gone on with at any position, and dealt to any number of processes and workers "
        "so that every sample comes exactly once. The library's coffer_mldf_order_at gives the same.",
    .min_operands = 1,
    .max_operands = 1,
};
