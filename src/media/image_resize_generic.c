#include "media/image_resize_loops.h"

const coffer__resize_kernels coffer__resize_generic = { blend_rows, blend_columns };
