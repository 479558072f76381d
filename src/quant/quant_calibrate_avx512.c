/* Calibrated encoding for AVX-512. */
#if defined(__x86_64__)
#include "quant/quant_calibrate_lanes.h"

const coffer__quant_calibrate_kernels coffer__quant_calibrate_avx512 = KERNELS;
#endif
