/* The method absmax for AVX2. */
#if defined(__x86_64__)
#include "quant/quant_absmax_loops.h"

void coffer__quant_absmax_avx2(const coffer__quant_output *out, const coffer__quant_rows *rows)
{
    absmax(out, rows);
}
#endif
