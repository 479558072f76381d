#include "base/elements_loops.h"

const coffer__elements_kernels coffer__elements_generic = COFFER__ELEMENTS_TABLE;
