/* Checks that the public functions on tensors share. */
#ifndef COFFER_QUANT_API_H
#define COFFER_QUANT_API_H

#include "coffer/quant.h"
#include "quant/quant.h"

/* Computes the layout of a tensor that a caller describes, and checks the length of its payload. */
coffer_status coffer__quant_take_payload(coffer__quant_layout *out, const coffer_quant_tensor *tensor,
                                         coffer_error *err);

#endif
