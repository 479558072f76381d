/* Rounded products for ARMv8.2 with the dot product of bytes. */
#if defined(__aarch64__)
#include "quant/quant_rounded_neon.h"

const coffer__quant_rounded coffer__quant_rounded_neon_dot = ALL_ROUNDED;
#endif
