#if defined(__x86_64__)
#include "convert/tensors/histogram_loops.h"

const coffer__histogram_kernels coffer__histogram_avx2 = COFFER__HISTOGRAM_TABLE;
#endif
