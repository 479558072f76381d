#if defined(__x86_64__)
#include "base/elements_loops.h"

const coffer__elements_kernels coffer__elements_avx2 = COFFER__ELEMENTS_TABLE;
#endif
