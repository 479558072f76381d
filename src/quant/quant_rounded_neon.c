/* Rounded products for every ARMv8. */
#if defined(__aarch64__)
#include "quant/quant_rounded_neon.h"

const coffer__quant_rounded coffer__quant_rounded_neon = ALL_ROUNDED;
#endif
