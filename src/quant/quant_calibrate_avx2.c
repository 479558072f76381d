/* Calibrated encoding for AVX2. */
#if defined(__x86_64__)
#include "quant/quant_calibrate_lanes.h"

const coffer__quant_calibrate_kernels coffer__quant_calibrate_avx2 = KERNELS;
#endif
