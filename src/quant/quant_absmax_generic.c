/* The method absmax for any processor. */
#include "quant/quant_absmax_loops.h"

void coffer__quant_absmax_generic(const coffer__quant_output *out, const coffer__quant_rows *rows)
{
    absmax(out, rows);
}
