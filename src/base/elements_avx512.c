#if defined(__x86_64__)
#include "base/elements_loops.h"

const coffer__elements_kernels coffer__elements_avx512 = COFFER__ELEMENTS_TABLE;
#endif
