/* The fitter for AVX-512. */
#if defined(__x86_64__)
#include "quant/quant_fit_lanes.h"

void coffer__quant_fit_avx512(coffer__quant_fitted *out, const coffer__quant_lanes *lanes,
                              const coffer__quant_type *type)
{
    fit(out, lanes, type);
}
#endif
