/* Calibrated encoding for any processor. */
#include "quant/quant_calibrate_lanes.h"

const coffer__quant_calibrate_kernels coffer__quant_calibrate_generic = KERNELS;
