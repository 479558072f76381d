#include "base/options.h"

static coffer_limits defaults = COFFER_LIMITS_INIT;

void coffer_limits_init(coffer_limits *limits, uint32_t struct_size)
{
    coffer__init_struct(limits, struct_size, &defaults, sizeof defaults);
}

void coffer_limits_set_defaults(const coffer_limits *limits)
{
    defaults = coffer__limits(limits);
}

coffer_limits coffer__limits(const coffer_limits *given)
{
    coffer_limits limits = defaults;
    coffer__copy_options(&limits, sizeof limits, given);
    limits.struct_size = sizeof limits;
    return limits;
}
