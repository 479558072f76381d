#include "base/limits.h"

#include "base/options.h"

COFFER__INIT_FUNCTION(coffer_limits, COFFER_LIMITS_INIT)

coffer_limits coffer__limits(const coffer_limits *given)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer__copy_options(&limits, sizeof limits, given);
    return limits;
}
