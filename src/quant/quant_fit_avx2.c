/* The fitter for AVX2. */
#if defined(__x86_64__)
#include "quant/quant_fit_lanes.h"

void coffer__quant_fit_avx2(coffer__quant_fitted *out, const coffer__quant_lanes *lanes,
                            const coffer__quant_type *type)
{
    fit(out, lanes, type);
}
#endif
