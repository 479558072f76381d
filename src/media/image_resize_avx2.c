#include "media/image_resize_loops.h"

#if defined(__x86_64__)
const coffer__resize_kernels coffer__resize_avx2 = { blend_rows, blend_columns };
#endif
