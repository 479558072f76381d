#ifndef COFFER_BASE_LIMITS_H
#define COFFER_BASE_LIMITS_H

#include "coffer/limits.h"

/* Fills in the defaults for NULL and for members that an older caller's struct does not have. */
coffer_limits coffer__limits(const coffer_limits *given);

#endif
