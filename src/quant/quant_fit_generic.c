/* The fitter for any processor. */
#include "quant/quant_fit_lanes.h"

void coffer__quant_fit_generic(coffer__quant_fitted *out, const coffer__quant_lanes *lanes,
                               const coffer__quant_type *type)
{
    fit(out, lanes, type);
}
